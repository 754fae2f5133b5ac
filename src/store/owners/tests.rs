//! What the store remembers of owners, whose it is, and when it forgets.
use super::*;

struct Bench {
    store: Store,
    dir: tempfile::TempDir,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    Bench { store, dir }
}

impl Bench {
    /// Closes the file and opens it again.
    fn reopened(self) -> Self {
        self.store.close();
        let Self { store, dir } = self;
        drop(store);
        let store = Store::open(&dir.path().join("f.db")).unwrap();
        Self { store, dir }
    }
}

const ONE: Option<KeyId> = Some(KeyId::from_u128(1));
const TWO: Option<KeyId> = Some(KeyId::from_u128(2));
const THREE: Option<KeyId> = Some(KeyId::from_u128(3));

fn file(id: &str) -> Object {
    Object::new(ObjectKind::File, id)
}

fn row(object: Object, key: Option<KeyId>, credential: u128) -> OwnerRow {
    OwnerRow {
        object,
        owner: Owner {
            credential: CredentialId::from_u128(credential),
            endpoint: Some(EndpointId::from_u128(credential + 100)),
        },
        key,
        made_at: 1000,
    }
}

#[tokio::test]
async fn a_row_outlives_a_restart_whole() {
    let bench = bench();
    let nowhere = OwnerRow {
        owner: Owner {
            endpoint: None,
            ..row(file("b"), None, 2).owner
        },
        ..row(file("b"), None, 2)
    };
    let rows = [row(file("한/a"), ONE, 1), nowhere];
    bench.store.bind(rows.to_vec()).await.unwrap();
    let bench = bench.reopened();
    for expect in rows {
        let found = bench.store.owner(expect.object.clone(), expect.key).await;
        assert_eq!(found.unwrap(), Some(expect));
    }
    let other = Object::new(ObjectKind::Batch, "b");
    assert_eq!(bench.store.owner(other, None).await.unwrap(), None);
}

#[tokio::test]
async fn every_kind_has_its_place() {
    let bench = bench();
    for kind in ObjectKind::ALL {
        let object = Object::new(*kind, "x");
        let expect = row(object.clone(), ONE, 1);
        bench.store.bind(vec![expect.clone()]).await.unwrap();
        let found = bench.store.owner(object, ONE).await.unwrap();
        assert_eq!(found, Some(expect));
    }
}

#[tokio::test]
async fn a_queued_row_is_written_before_the_file_is_closed() {
    let bench = bench();
    for n in 0..50 {
        let id = n.to_string();
        assert!(bench.store.try_bind(row(file(&id), ONE, 1)));
    }
    let bench = bench.reopened();
    let found = bench.store.own_objects(ObjectKind::File, ONE).await;
    assert_eq!(found.unwrap().len(), 50);
    assert_eq!(bench.store.owners_dropped(), 0);
}

#[tokio::test]
async fn the_same_id_made_by_two_keys_is_each_ones_own() {
    let bench = bench();
    let rows = [row(file("a"), ONE, 1), row(file("a"), TWO, 2)];
    bench.store.bind(rows.to_vec()).await.unwrap();
    for expect in rows {
        let found = bench.store.owner(file("a"), expect.key).await.unwrap();
        assert_eq!(found, Some(expect));
    }
    let found = bench.store.owner(file("a"), THREE).await.unwrap();
    assert!(found.is_some_and(|row| row.key != THREE));
    let objects = vec![file("a"), file("b")];
    let seen = bench.store.sightings(objects, None).await.unwrap();
    assert_eq!(seen, [Sighting::Foreign, Sighting::Never]);
    // Made once more, it is where it was made last.
    let again = row(file("a"), ONE, 3);
    bench.store.bind(vec![again.clone()]).await.unwrap();
    let found = bench.store.owner(file("a"), ONE).await.unwrap();
    assert_eq!(found, Some(again));
}

#[tokio::test]
async fn a_keys_own_objects_are_listed_by_kind() {
    let bench = bench();
    let batch = Object::new(ObjectKind::Batch, "a");
    let rows = vec![
        row(file("a"), ONE, 1),
        row(file("b"), ONE, 2),
        row(file("c"), TWO, 1),
        row(file("d"), None, 1),
        row(batch, ONE, 1),
    ];
    bench.store.bind(rows).await.unwrap();
    let check = async |kind, caller, expect: &[&str]| {
        let found = bench.store.own_objects(kind, caller).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|row| &*row.object.id).collect();
        assert_eq!(ids, expect, "{kind:?} {caller:?}");
    };
    check(ObjectKind::File, ONE, &["a", "b"]).await;
    check(ObjectKind::File, None, &["d"]).await;
    check(ObjectKind::Batch, ONE, &["a"]).await;
    check(ObjectKind::Batch, TWO, &[]).await;
}

#[tokio::test]
async fn no_statement_looks_at_every_row() {
    let bench = bench();
    let check = async |sql: &'static str, expect: &str| {
        let explained = bench.store.read(move |conn| {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let nothing = vec![rusqlite::types::Null; statement.parameter_count()];
            let values = rusqlite::params_from_iter(nothing);
            let lines = statement.query_map(values, |row| row.get::<_, String>(3))?;
            Ok(lines.collect::<rusqlite::Result<Vec<_>>>()?.join("\n"))
        });
        let plan = explained.await.unwrap();
        assert!(plan.contains(expect) && !plan.contains("SCAN"), "{plan}");
    };
    check(OWNER, "USING PRIMARY KEY (kind=? AND id=?)").await;
    check(
        OWN_OBJECTS,
        "INDEX owners_by_key (key_id=? AND kind>? AND kind<?)",
    )
    .await;
    check(PRUNE, "INDEX owners_by_age (kind=? AND made_at<?)").await;
}

#[tokio::test]
async fn only_the_maker_can_have_an_object_forgotten() {
    let bench = bench();
    let store = &bench.store;
    store.bind(vec![row(file("a"), ONE, 1)]).await.unwrap();
    assert!(!store.forget_object(file("a"), TWO).await.unwrap());
    assert!(!store.forget_object(file("a"), None).await.unwrap());
    assert!(store.owner(file("a"), ONE).await.unwrap().is_some());
    assert!(store.forget_object(file("a"), ONE).await.unwrap());
    assert_eq!(store.owner(file("a"), ONE).await.unwrap(), None);
}

#[tokio::test]
async fn responses_are_forgotten_with_time_and_files_are_not() {
    let bench = bench();
    let store = &bench.store;
    let now = 100 * DAY_MS;
    let aged = |kind, id: String, days: i64| OwnerRow {
        made_at: now - days * DAY_MS,
        ..row(Object::new(kind, id), ONE, 1)
    };
    let old = (0..2500).map(|n| aged(ObjectKind::Response, format!("old-{n}"), 61));
    let mut rows: Vec<OwnerRow> = old.collect();
    rows.push(aged(ObjectKind::Response, "young".to_owned(), 59));
    rows.push(aged(ObjectKind::TurnState, "turn".to_owned(), 8));
    rows.push(aged(ObjectKind::File, "file".to_owned(), 99));
    store.bind(rows).await.unwrap();
    assert_eq!(store.prune_owners(now).await.unwrap(), 2501);
    assert_eq!(store.prune_owners(now).await.unwrap(), 0);
    let left = async |kind, id: &str| store.owner(Object::new(kind, id), ONE).await.unwrap();
    assert!(left(ObjectKind::Response, "young").await.is_some());
    assert!(left(ObjectKind::Response, "old-7").await.is_none());
    assert!(left(ObjectKind::File, "file").await.is_some());
}
