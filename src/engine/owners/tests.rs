//! What is known at once, what only after the disk, and what never.
use super::*;
use crate::{
    domain::{
        ids::{CredentialId, EndpointId},
        owners::{Role, affinity::AffinitySource},
    },
    ports::Stored,
};

/// A store that notes what it is asked, and fails when it is told to.
#[derive(Default)]
struct Shelf {
    rows: Mutex<Vec<OwnerRow>>,
    /// Rows that were taken and will not be found until they are written.
    queued: Mutex<Vec<OwnerRow>>,
    looked_for: Mutex<Vec<Object>>,
    is_broken: Mutex<bool>,
}

impl Shelf {
    fn check(&self) -> Result<(), Unstored> {
        if *self.is_broken.lock().unwrap() {
            return Err(Unstored("disk full".to_owned()));
        }
        Ok(())
    }

    fn looked_for(&self) -> Vec<Object> {
        std::mem::take(&mut *self.looked_for.lock().unwrap())
    }
}

impl OwnerStore for Shelf {
    fn bind(&self, rows: Vec<OwnerRow>) -> Stored<'_, ()> {
        let result = self.check();
        if result.is_ok() {
            self.rows.lock().unwrap().extend(rows);
        }
        Box::pin(async { result })
    }

    fn try_bind(&self, row: OwnerRow) -> bool {
        self.queued.lock().unwrap().push(row);
        true
    }

    fn sightings(&self, objects: Vec<Object>, caller: Option<KeyId>) -> Stored<'_, Vec<Sighting>> {
        let rows = self.rows.lock().unwrap();
        let sight = |object: &Object| {
            let mut same = rows.iter().filter(|row| row.object == *object);
            let own = same.clone().find(|row| row.key == caller);
            Sighting::of(own.or_else(|| same.next()), caller)
        };
        let found = objects.iter().map(sight).collect();
        self.looked_for.lock().unwrap().extend(objects);
        let result = self.check().map(|()| found);
        Box::pin(async { result })
    }

    fn own_objects(&self, kind: ObjectKind, caller: Option<KeyId>) -> Stored<'_, Vec<OwnerRow>> {
        let mut rows = self.rows.lock().unwrap().clone();
        rows.retain(|row| row.object.kind == kind && row.key == caller);
        Box::pin(async { Ok(rows) })
    }

    fn forget(&self, object: Object, caller: Option<KeyId>) -> Stored<'_, ()> {
        let mut rows = self.rows.lock().unwrap();
        rows.retain(|row| row.object != object || row.key != caller);
        Box::pin(async { Ok(()) })
    }
}

fn bench() -> (Arc<Shelf>, Owners) {
    let shelf = Arc::new(Shelf::default());
    let owners = Owners::new(Arc::<Shelf>::clone(&shelf));
    (shelf, owners)
}

fn response(id: &str) -> Object {
    Object::new(ObjectKind::Response, id)
}

fn maker(key: u128, credential: u128) -> Maker {
    Maker {
        key: Some(KeyId::from_u128(key)),
        owner: Owner {
            credential: CredentialId::from_u128(credential),
            endpoint: Some(EndpointId::from_u128(1)),
        },
    }
}

async fn resolved(owners: &Owners, ids: &[&str], key: u128) -> Result<Binding, Unstored> {
    let reference = |id: &&str| Reference {
        object: response(id),
        role: Role::Needed,
    };
    let references: Vec<Reference> = ids.iter().map(reference).collect();
    let caller = Some(KeyId::from_u128(key));
    owners.resolve(&references, caller).await
}

async fn check(owners: &Owners, ids: &[&str], key: u128, expect: Binding) {
    assert_eq!(
        resolved(owners, ids, key).await,
        Ok(expect),
        "{ids:?} {key}"
    );
}

const UNKNOWN: Binding = Binding::Unknown {
    is_continued: false,
};
const FOREIGN: Binding = Binding::Foreign {
    is_continued: false,
};

#[tokio::test]
async fn what_was_learned_is_known_before_it_is_on_disk() {
    let (shelf, owners) = bench();
    owners.learned(vec![response("a")], maker(1, 1));
    *shelf.is_broken.lock().unwrap() = true;
    check(&owners, &["a"], 1, Binding::Bound(maker(1, 1).owner)).await;
    assert_eq!(shelf.looked_for(), []);
    let queued = shelf.queued.lock().unwrap().clone();
    assert_eq!(queued.len(), 1);
    assert_eq!(
        (queued[0].key, &queued[0].object),
        (maker(1, 1).key, &response("a"))
    );
    assert!(queued[0].made_at > 0);
}

#[tokio::test]
async fn a_request_that_names_nothing_asks_nobody() {
    let (shelf, owners) = bench();
    *shelf.is_broken.lock().unwrap() = true;
    check(&owners, &[], 1, Binding::None).await;
}

#[tokio::test]
async fn what_the_store_knows_is_asked_for_once() {
    let (shelf, owners) = bench();
    let made = Owners::new(Arc::<Shelf>::clone(&shelf));
    made.bind_durably(vec![response("a")], maker(1, 1))
        .await
        .unwrap();
    for _ in 0..3 {
        check(&owners, &["a"], 1, Binding::Bound(maker(1, 1).owner)).await;
    }
    assert_eq!(shelf.looked_for(), [response("a")]);
}

#[tokio::test]
async fn that_something_is_unknown_is_not_remembered() {
    let (shelf, owners) = bench();
    check(&owners, &["a"], 1, UNKNOWN).await;
    check(&owners, &["a"], 1, UNKNOWN).await;
    assert_eq!(shelf.looked_for().len(), 2);
    owners.learned(vec![response("a")], maker(1, 1));
    check(&owners, &["a"], 1, Binding::Bound(maker(1, 1).owner)).await;
}

#[tokio::test]
async fn only_what_is_not_in_memory_is_looked_up() {
    let (shelf, owners) = bench();
    owners.learned(vec![response("a")], maker(1, 1));
    check(&owners, &["a", "b"], 1, Binding::Bound(maker(1, 1).owner)).await;
    assert_eq!(shelf.looked_for(), [response("b")]);
    owners.learned(vec![response("b")], maker(1, 2));
    check(&owners, &["a", "b"], 1, Binding::Conflict).await;
}

#[tokio::test]
async fn what_another_key_made_stays_its_own() {
    let (shelf, owners) = bench();
    owners.learned(vec![response("a")], maker(1, 1));
    check(&owners, &["a"], 2, FOREIGN).await;
    // Of two that made the same id, each has its own, whichever of them is in memory.
    owners
        .bind_durably(vec![response("b")], maker(1, 1))
        .await
        .unwrap();
    owners
        .bind_durably(vec![response("b")], maker(2, 2))
        .await
        .unwrap();
    check(&owners, &["b"], 1, Binding::Bound(maker(1, 1).owner)).await;
    check(&owners, &["b"], 2, Binding::Bound(maker(2, 2).owner)).await;
    check(&owners, &["b"], 3, FOREIGN).await;
    assert_eq!(shelf.rows.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_could_not_be_stored_is_not_known() {
    let (shelf, owners) = bench();
    *shelf.is_broken.lock().unwrap() = true;
    let bound = owners.bind_durably(vec![response("a")], maker(1, 1)).await;
    assert_eq!(bound, Err(Unstored("disk full".to_owned())));
    assert!(resolved(&owners, &["a"], 1).await.is_err());
    *shelf.is_broken.lock().unwrap() = false;
    check(&owners, &["a"], 1, UNKNOWN).await;
}

#[tokio::test]
async fn what_is_forgotten_is_unknown_again_to_its_maker_only() {
    let (shelf, owners) = bench();
    owners
        .bind_durably(vec![response("a")], maker(1, 1))
        .await
        .unwrap();
    owners.forget(response("a"), maker(2, 1).key).await.unwrap();
    check(&owners, &["a"], 1, Binding::Bound(maker(1, 1).owner)).await;
    let caller = maker(1, 1).key;
    let own = owners.own_objects(ObjectKind::Response, caller).await;
    assert_eq!(own.unwrap().len(), 1);
    owners.forget(response("a"), caller).await.unwrap();
    check(&owners, &["a"], 1, UNKNOWN).await;
    assert!(shelf.rows.lock().unwrap().is_empty());
}

#[tokio::test]
async fn more_than_can_wait_for_the_disk_stays_in_memory() {
    let (shelf, owners) = bench();
    *shelf.is_broken.lock().unwrap() = true;
    for n in 0..40_000 {
        owners.learned(vec![response(&n.to_string())], maker(1, 1));
    }
    for n in [39_999, 39_999 - 2 * 8192] {
        let id = n.to_string();
        check(
            &owners,
            &[id.as_str()],
            1,
            Binding::Bound(maker(1, 1).owner),
        )
        .await;
    }
    assert!(owners.recent().count() <= RECENT);
}

#[tokio::test(start_paused = true)]
async fn a_preference_lasts_for_its_lifetime_after_each_use() {
    let (_, owners) = bench();
    let ttl = Duration::from_mins(1);
    let key = AffinityKey::new(None, AffinitySource::SessionId, b"s");
    let edge = Preferred {
        credential: CredentialId::from_u128(1),
        endpoint: EndpointId::from_u128(2),
    };
    assert_eq!(owners.preferred(key, ttl), None);
    owners.prefer(key, edge, ttl);
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(owners.preferred(key, ttl), Some(edge));
    }
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(owners.preferred(key, ttl), None);
}
