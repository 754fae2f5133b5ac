//! Moving on: what is sent where after each kind of answer, and what the client gets in the end.
use super::*;
use crate::{
    domain::{
        admission::{Kinds, Limits, Note, Numbers, Strategy},
        dispatch::{Cause, Provenance},
        ids::{AccountId, CredentialId, RequestId},
        moment::Moment,
        pool::{
            Pool,
            edges::{Contents, sample},
        },
        protocol::Protocol,
    },
    engine::live::Registry,
    ports::{BrokenOff, Sending, Started, Timeouts},
};
use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use http_body_util::{BodyExt as _, Full};
use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// What upstream says to a credential, call by call: a status and a body, or nothing at all. The
/// last word is repeated.
type Word = Option<(u16, &'static str)>;

#[derive(Default)]
struct Script {
    words: Mutex<Vec<(u128, VecDeque<Word>)>>,
    asked: Mutex<Vec<u128>>,
}

impl Script {
    fn says(self, credential: u128, words: &[Word]) -> Self {
        let words = words.iter().copied().collect();
        self.words.lock().unwrap().push((credential, words));
        self
    }

    fn answer(&self, credential: u128) -> Result<Answer, SendFailure> {
        self.asked.lock().unwrap().push(credential);
        let mut all = self.words.lock().unwrap();
        let words = all.iter_mut().find(|(c, _)| *c == credential);
        let word = words.and_then(|(_, words)| match words.len() {
            0 | 1 => words.front().copied(),
            _ => words.pop_front(),
        });
        let Some(Some((status, body))) = word else {
            return Err(SendFailure {
                provenance: Provenance::NotDispatched,
                cause: Cause::Connection,
                detail: "refused".to_owned(),
            });
        };
        let (head, ()) = Response::builder()
            .status(status)
            .body(())
            .unwrap()
            .into_parts();
        let body = Full::new(Bytes::from_static(body.as_bytes()));
        let body = Box::pin(body.map_err(|e| BrokenOff(e.to_string())));
        Ok(Answer { head, body })
    }
}

impl Upstream for Script {
    fn open_socket<'a>(&'a self, _: crate::ports::Attempt<'a>) -> crate::ports::OpeningSocket<'a> {
        unreachable!("nothing here asks for a WebSocket")
    }

    fn send<'a>(&'a self, attempt: Attempt<'a>, _: &'a mut Started<'_>) -> Sending<'a> {
        let credential = attempt.target.trim_start_matches('/').parse().unwrap();
        Box::pin(async move { self.answer(credential) })
    }
}

/// Names the credential in its path.
struct Plain(HeaderMap);

impl Outgoing for Plain {
    fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e> {
        Attempt {
            base_url: &edge.endpoint().base_url,
            method: Method::POST,
            target: format!("/{}", edge.credential().id.as_u128()),
            headers: &self.0,
            edge_headers: Vec::new(),
            payload: None,
            timeouts: Timeouts {
                connect: Duration::ZERO,
                header: Duration::ZERO,
            },
        }
    }
}

#[derive(Default)]
struct Counts {
    failed: AtomicU32,
    moved: AtomicU32,
    limits: AtomicU32,
    refused: Mutex<Vec<CredentialId>>,
    unpaid: Mutex<Vec<AccountId>>,
}

impl Observer for Counts {
    fn attempt_failed(&self, _: &EdgeRef, _: &SendFailure) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn moved(&self, _: Moved) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }
}

impl PoolWatch for Counts {
    fn noted(&self, _: &Note) {}

    fn limit_met(&self, _: CredentialId) {
        self.limits.fetch_add(1, Ordering::Relaxed);
    }

    fn credential_refused(&self, credential: CredentialId, _: crate::domain::pool::Fingerprint) {
        self.refused.lock().unwrap().push(credential);
    }

    fn billing_refused(&self, accounts: &[AccountId]) {
        self.unpaid.lock().unwrap().extend(accounts);
    }
}

const STREAM: Kinds = Kinds::GENERATE;

const RULES: Rules = Rules {
    max_attempts: 3,
    is_repeatable: false,
    retries_5xx: false,
    patience: Duration::from_secs(10),
    answer_by: None,
};

fn demand() -> Demand {
    Demand {
        key: None,
        protocol: Protocol::OpenAi,
        model: Some("m".into()),
        kinds: STREAM,
        reattach: false,
        owner: Owner::Nobody,
        preferred: None,
        tried: Vec::new(),
        until: Moment::default(),
        is_moving: false,
        holder: crate::domain::ids::RequestId::from_u128(0),
    }
}

/// One pool, one script, and what became of it.
struct Stage {
    admission: Admission,
    counts: Counts,
    script: Script,
}

impl Stage {
    fn new(contents: Contents, script: Script) -> Self {
        let limits = Limits {
            stream: 1,
            create: 1,
            reserve: 0,
            waiters_per_key: 5,
            may_park: true,
            strategy: Strategy::FillFirst,
            breaker_threshold: 100,
            job: 2,
            fair_share_pct: 0,
        };
        let pool = Arc::new(Pool::new(contents));
        let admission = Admission::new(Numbers::default().layout(pool, limits));
        crate::tasks::spawn("time", admission.clone().keep_time());
        Self {
            admission,
            counts: Counts::default(),
            script,
        }
    }

    /// The status and body that the client gets, or why it gets none.
    async fn send(&self, demand: Demand, rules: Rules) -> Result<(u16, String), Reason> {
        let route = Route {
            admission: &self.admission,
            upstream: &self.script,
            observer: &self.counts,
            watch: &self.counts,
        };
        let live = Registry::default()
            .desk()
            .enter(RequestId::from_u128(1), false);
        let sent = dispatch(route, demand, rules, &live, &Plain(HeaderMap::new())).await;
        match sent {
            Ok(dispatched) => {
                let status = dispatched.answer.head.status.as_u16();
                let body = dispatched.answer.body.collect().await.unwrap();
                Ok((status, String::from_utf8(body.to_bytes().to_vec()).unwrap()))
            }
            Err(Undelivered::Denied(denied)) => Err(denied.refusal.reason),
            Err(Undelivered::Failed { reason, .. }) => Err(reason),
        }
    }

    /// Plays one request; nothing may be held afterwards.
    async fn check(&self, expect: Result<(u16, &str), Reason>, asked: &[u128]) {
        let got = self.send(demand(), RULES).await;
        let got = got.as_ref().map(|(s, b)| (*s, b.as_str()));
        assert_eq!(got, expect.as_ref().map(|e| *e));
        assert_eq!(*self.script.asked.lock().unwrap(), asked);
        assert_eq!(self.admission.counts(), (0, 0));
    }

    fn moved(&self) -> u32 {
        self.counts.moved.load(Ordering::Relaxed)
    }
}

const FINE: Word = Some((200, "fine"));
const BUSY: Word = Some((429, r#"{"error":{"message":"Rate limit exceeded"}}"#));

#[tokio::test(start_paused = true)]
async fn going_on_counts_only_where_there_is_somewhere_to_go() {
    for (accounts, failed, moved) in [(1, 1, 0), (2, 2, 1), (5, 3, 2)] {
        let stage = Stage::new(sample::contents(accounts), Script::default());
        let asked: Vec<u128> = (1..=u128::from(failed)).collect();
        stage.check(Err(Reason::UpstreamUnreachable), &asked).await;
        let counted = stage.counts.failed.load(Ordering::Relaxed);
        assert_eq!((counted, stage.moved()), (failed, moved));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_moves_the_request_to_another_account() {
    let script = Script::default().says(1, &[BUSY]).says(2, &[FINE]);
    let stage = Stage::new(sample::contents(2), script);
    stage.check(Ok((200, "fine")), &[1, 2]).await;
    assert_eq!(stage.moved(), 1);
    assert_eq!(stage.counts.limits.load(Ordering::Relaxed), 1);
    // The first cools, and is not asked again.
    stage.check(Ok((200, "fine")), &[1, 2, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn one_account_alone_heals_after_its_limit() {
    let script = Script::default().says(1, &[BUSY, FINE]);
    let stage = Stage::new(sample::contents(1), script);
    stage.check(Ok((200, "fine")), &[1, 1]).await;
}

#[tokio::test(start_paused = true)]
async fn where_nothing_heals_in_time_the_client_gets_what_upstream_said_last() {
    let said = r#"{"error":{"message":"Rate limit reached. Please try again in 40s."}}"#;
    let script = Script::default().says(1, &[Some((429, said))]);
    let stage = Stage::new(sample::contents(1), script);
    stage.check(Ok((429, said)), &[1]).await;
    // Whoever comes next is refused by fairlane: upstream need not be asked.
    stage.check(Err(Reason::AccountCooling), &[1]).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_secret_moves_to_its_neighbour_and_is_reported() {
    let mut contents = sample::contents(2);
    contents.credentials[1].accounts = vec![AccountId::from_u128(1)];
    let script = Script::default()
        .says(1, &[Some((401, "no"))])
        .says(2, &[FINE]);
    let stage = Stage::new(contents, script);
    stage.check(Ok((200, "fine")), &[1, 2]).await;
    let refused = stage.counts.refused.lock().unwrap();
    assert_eq!(*refused, [CredentialId::from_u128(1)]);
}

#[tokio::test(start_paused = true)]
async fn an_unpaid_account_is_left_with_all_its_credentials() {
    let mut contents = sample::contents(3);
    contents.credentials[1].accounts = vec![AccountId::from_u128(1)];
    let script = Script::default()
        .says(1, &[Some((402, "pay"))])
        .says(3, &[FINE]);
    let stage = Stage::new(contents, script);
    stage.check(Ok((200, "fine")), &[1, 3]).await;
    let unpaid = stage.counts.unpaid.lock().unwrap();
    assert_eq!(*unpaid, [AccountId::from_u128(1)]);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_passed_on_as_it_is() {
    for status in [400, 404, 422, 500, 502, 504, 520, 524] {
        let script = Script::default()
            .says(1, &[Some((status, "as it came"))])
            .says(2, &[FINE]);
        let stage = Stage::new(sample::contents(2), script);
        stage.check(Ok((status, "as it came")), &[1]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_error_moves_only_if_the_operator_says_so() {
    let script = Script::default()
        .says(1, &[Some((502, ""))])
        .says(2, &[FINE]);
    let stage = Stage::new(sample::contents(2), script);
    let rules = Rules {
        retries_5xx: true,
        ..RULES
    };
    assert_eq!(
        stage.send(demand(), rules).await,
        Ok((200, "fine".to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_real_answer_is_worth_more_than_a_failure_after_it() {
    let script = Script::default()
        .says(1, &[Some((503, "busy"))])
        .says(2, &[None]);
    let stage = Stage::new(sample::contents(2), script);
    stage.check(Ok((503, "busy")), &[1, 2]).await;
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_attempts_are_made() {
    let all = (1..=5).fold(Script::default(), |s, n| s.says(n, &[Some((503, "busy"))]));
    let stage = Stage::new(sample::contents(5), all);
    stage.check(Ok((503, "busy")), &[1, 2, 3]).await;
}
