//! The page with samples of everything that can stand on it, its size, and its actions.
use super::*;
use crate::{
    domain::{
        admission::{Admission, Demand, Effects, Kinds, Limits, Numbers, Owner, Strategy, Subject},
        cooldown::Kept,
        ids::{AccountId, CredentialId, KeyId, RequestId},
        moment::Moment,
        pool::{
            ClientKey, DisabledReason, Pool, State as Standing,
            edges::{Contents, sample},
        },
        protocol::Protocol,
        reason::Reason,
    },
    engine::{
        live::{Live, Registry, Stage},
        look::Look,
        picture::Picture,
    },
};
use std::{collections::HashMap, sync::Arc};

const NOW: Moment = Moment::from_millis(0);

pub(super) const LIMITS: Limits = Limits {
    stream: 8,
    create: 4,
    job: 2,
    reserve: 1,
    fair_share_pct: 80,
    waiters_per_key: 200,
    may_park: true,
    strategy: Strategy::LeastLoaded,
    breaker_threshold: 5,
};

/// A pool in use: who asks for how much, and the requests in flight.
struct Scene {
    pool: Arc<Pool>,
    limits: Limits,
    machine: Admission,
    registry: Registry,
    live: Vec<Live>,
}

impl Scene {
    fn new(contents: Contents, limits: Limits) -> Self {
        let pool = Arc::new(Pool::new(contents));
        let layout = Numbers::default().layout(Arc::clone(&pool), limits);
        Self {
            machine: Admission::new(layout),
            registry: Registry::default(),
            live: Vec::new(),
            limits,
            pool,
        }
    }

    fn cool(&mut self, account: usize) {
        let kept = Kept {
            ends_in_ms: 41_000,
            told_in_ms: None,
            length_ms: 41_000,
            is_quota: false,
        };
        let subject = Subject::Account(self.pool.accounts()[account].id);
        self.machine.restore(NOW, subject, None, kept);
    }

    /// Requests of that key, of which those that find no room wait.
    fn ask(&mut self, key: Option<usize>, count: usize, kinds: Kinds) {
        let desk = self.registry.desk();
        for _ in 0..count {
            let n = self.live.len() as u128 + 1;
            let holder = RequestId::from_u128(n.wrapping_mul(SPREAD));
            let key = key.map(|n| Arc::clone(&self.pool.keys()[n]));
            let live = desk.enter(holder, false);
            if let Some(key) = &key {
                live.is_from(key.id);
            }
            let demand = Arc::new(Demand {
                holder,
                key,
                protocol: Protocol::OpenAi,
                model: Some("m".into()),
                kinds,
                reattach: false,
                owner: Owner::Nobody,
                preferred: None,
                tried: Vec::new(),
                until: NOW.plus(30_000),
                is_moving: false,
            });
            let asked = self.machine.request(NOW, &demand, &mut Effects::default());
            let is_parked = matches!(asked, crate::domain::admission::Decision::Parked(_));
            live.reach(if is_parked {
                Stage::Parked
            } else {
                Stage::FirstByte
            });
            self.live.push(live);
        }
    }

    fn seen(&mut self) -> Seen {
        let mut look = Look::default();
        for (subject, standing) in self.machine.standings() {
            look.put(subject, standing);
        }
        let state = (NOW, self.machine.held(), self.machine.waiting());
        let picture = Picture::of(Arc::clone(&self.pool), self.limits, look, state);
        Seen::sample(picture, self.registry.snapshot())
    }
}

/// Makes numbers look as random as ids do.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The incident: one key with all it can get, others with little, one account cooling.
fn busy() -> Scene {
    let mut contents = sample::contents(9);
    contents.keys = (1..=9).map(sample::key).collect();
    contents.accounts[6].state = Standing::Draining;
    contents.accounts[7].state = Standing::Disabled(DisabledReason::Auth);
    contents.accounts[5].stream_limit = Some(30);
    let mut scene = Scene::new(contents, LIMITS);
    scene.cool(0);
    scene.ask(Some(0), 40, Kinds::STREAM);
    for key in 1..8 {
        scene.ask(Some(key), key, Kinds::STREAM);
    }
    scene.ask(None, 2, Kinds::GENERATE);
    scene
}

pub(in crate::dashboard) fn samples(shell: &Shell) -> Vec<(&'static str, String)> {
    let page = |seen: &Seen, view: &View| {
        let page = ConcurrencyPage::new(shell.clone(), seen, view);
        ("concurrency", page.render().unwrap())
    };
    let mut seen = busy().seen();
    seen.refused = Some(HashMap::from([(Some(KeyId::from_u128(1)), 3)]));
    let all = View::default();
    let narrow = View {
        key: Some(KeyId::from_u128(9)),
        account: Some(AccountId::from_u128(99)),
        stage: Some(Stage::Parked),
        ..View::default()
    };
    let group = seen.picture.waits.first().unwrap();
    let key = group.key.map(|id| accounts::tail(&id.to_string()));
    let key = key.unwrap_or_else(|| "none".to_owned());
    let number = Reason::ALL.iter().position(|r| *r == group.reason);
    let mut few = View {
        open: Some(format!("{key}-{}", number.unwrap())),
        ..View::default()
    };
    few.shown.accounts = 1;
    few.shown.keys = 1;
    few.shown.requests = 1;
    let mut pages = vec![page(&seen, &all), page(&seen, &narrow), page(&seen, &few)];
    let off = Limits {
        fair_share_pct: 0,
        stream: 0,
        ..LIMITS
    };
    let mut unlimited = Scene::new(sample::contents(2), off);
    unlimited.ask(None, 3, Kinds::GENERATE);
    pages.push(page(&unlimited.seen(), &all));
    for contents in [sample::contents(2), Contents::default()] {
        pages.push(page(&Scene::new(contents, LIMITS).seen(), &all));
    }
    pages.extend(reset::samples(shell, &seen.picture));
    pages
}

/// 200 accounts and 500 keys, everything full, with ids as random as real ones.
fn large() -> Scene {
    let id = |n: u128| n.wrapping_mul(SPREAD);
    let mut contents = sample::contents(200);
    for (account, n) in contents.accounts.iter_mut().zip(1..) {
        account.id = AccountId::from_u128(id(n));
        account.name = format!("account-{n:03}").into();
    }
    for (credential, n) in contents.credentials.iter_mut().zip(1..) {
        credential.id = CredentialId::from_u128(id(n));
        credential.accounts = vec![AccountId::from_u128(id(n))];
    }
    let key = |n: u128| ClientKey {
        id: KeyId::from_u128(id(n)),
        name: format!("key-{n:03}").into(),
        hash: crate::digest::sha256(&n.to_be_bytes()),
        ..(*sample::key(1)).clone()
    };
    contents.keys = (1..=500).map(|n| Arc::new(key(n))).collect();
    let mut scene = Scene::new(contents, LIMITS);
    for account in 0..20 {
        scene.cool(account);
    }
    scene.ask(Some(0), 300, Kinds::STREAM);
    for key in 1..500 {
        scene.ask(Some(key), 1 + key % 4, Kinds::STREAM);
    }
    scene
}

#[test]
fn the_fragment_stays_small_with_200_accounts_and_500_keys_and_everything_full() {
    for language in ["en", "ko", "zh-CN"] {
        let (fragment, packed) = large_fragment(language);
        for rows in ["accounts", "keys", "waits", "requests"] {
            assert!(fragment.contains(&format!("id=\"{rows}-more\"")), "{rows}");
        }
        assert!(fragment.len() < 60 << 10, "{language}: {}", fragment.len());
        assert!(packed < 10 << 10, "{language}: {packed} packed");
    }
}

/// The live part of a full page, and how large it is on the wire.
fn large_fragment(language: &str) -> (String, usize) {
    use std::io::Write as _;
    let shell = crate::dashboard::tests::shell(language);
    let mut seen = large().seen();
    let keys = seen.picture.keys.iter();
    seen.refused = Some(keys.map(|key| (key.key, 7)).collect());
    assert!(seen.picture.totals.is_congested() && seen.picture.waits.len() > 100);
    let page = ConcurrencyPage::new(shell, &seen, &View::default());
    let fragment = page.as_live().render().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(fragment.as_bytes()).unwrap();
    let packed = packed.finish().unwrap().len();
    (fragment, packed)
}
