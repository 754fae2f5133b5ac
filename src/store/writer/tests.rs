//! What commits together, what fails alone, and what is never acknowledged too early.
use super::*;
use crate::{
    domain::{
        ids::{CredentialId, RequestId},
        ledger::{Entry, Outcome},
        owners::{Object, ObjectKind, Owner},
    },
    store::{Fault, Store},
};
use rusqlite::TransactionBehavior;
use std::{path::PathBuf, sync::mpsc};

struct Bench {
    store: Store,
    path: PathBuf,
    _dir: tempfile::TempDir,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.db");
    let store = Store::open(&path).unwrap();
    store
        .write_blocking(|tx| Ok(tx.execute_batch("CREATE TABLE t (x BLOB UNIQUE)")?))
        .unwrap();
    Bench {
        store,
        path,
        _dir: dir,
    }
}

impl Bench {
    /// Keeps the writer busy until the returned sender is dropped, so that what is queued
    /// meanwhile shares one commit.
    fn hold(&self) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel();
        let (started, has_started) = mpsc::channel();
        let held = move |_: &Connection| {
            started.send(()).unwrap();
            // An error is the sign: the sender is gone.
            let _ = held.recv();
            Ok(())
        };
        drop(self.store.inner.writer.submit(held).unwrap());
        has_started.recv().unwrap();
        release
    }

    fn submit(
        &self,
        work: impl FnOnce(&Connection) -> Result<(), StoreError> + Send + 'static,
    ) -> Answer<()> {
        self.store.inner.writer.submit(work).unwrap()
    }

    fn insert(&self, x: i64) -> Answer<()> {
        self.submit(move |tx| {
            tx.execute("INSERT INTO t VALUES (?1)", [x])?;
            Ok(())
        })
    }

    fn stored(&self) -> Vec<i64> {
        self.store
            .read_blocking(|conn| {
                let mut statement = conn.prepare("SELECT x FROM t ORDER BY x")?;
                let rows = statement.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .unwrap()
    }

    fn second_connection(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }
}

fn entry(n: u32) -> Entry {
    Entry {
        id: RequestId::from_u128(u128::from(n)),
        started_at: 0,
        key: None,
        account: None,
        credential: None,
        endpoint: None,
        protocol: None,
        method: "POST".into(),
        path: "/v1/x".into(),
        model: None,
        upstream_model: None,
        status: Some(200),
        reason: None,
        outcome: Outcome::Ok,
        attempts: 1,
        request_bytes: 1,
        response_bytes: 1,
        queued_ms: None,
        headers_ms: None,
        first_byte_ms: None,
        total_ms: None,
        input_tokens: None,
        output_tokens: None,
        cached_tokens: None,
        upstream_request_id: None,
        error: None,
    }
}

fn outcome(answer: Answer<()>) -> Result<(), StoreError> {
    answer.blocking_recv().unwrap()
}

#[test]
fn a_failing_change_takes_nothing_of_its_neighbours_with_it() {
    let bench = bench();
    let held = bench.hold();
    let before = bench.insert(1);
    let twice = bench.insert(1);
    let half = bench.submit(|tx| {
        tx.execute("INSERT INTO t VALUES (7)", [])?;
        Err(StoreError::Closed)
    });
    let after = bench.insert(2);
    drop(held);
    assert_eq!(outcome(before), Ok(()));
    assert!(matches!(
        outcome(twice),
        Err(StoreError::Database {
            fault: Fault::Other,
            ..
        })
    ));
    assert_eq!(outcome(half), Err(StoreError::Closed));
    assert_eq!(outcome(after), Ok(()));
    assert_eq!(bench.stored(), [1, 2]);
}

#[test]
fn a_panicking_change_rolls_back_alone_and_leaves_the_writer_alive() {
    let bench = bench();
    let held = bench.hold();
    let before = bench.insert(1);
    let panicking = bench.submit(|tx| {
        tx.execute("INSERT INTO t VALUES (7)", [])?;
        panic!("a fault in a test");
    });
    let after = bench.insert(2);
    drop(held);
    assert_eq!(outcome(before), Ok(()));
    assert_eq!(outcome(panicking), Err(StoreError::Panicked));
    assert_eq!(outcome(after), Ok(()));
    assert_eq!(outcome(bench.insert(3)), Ok(()));
    assert_eq!(bench.stored(), [1, 2, 3]);
}

#[test]
fn an_answer_comes_after_the_commit_that_holds_the_change() {
    let bench = bench();
    let held = bench.hold();
    let first = bench.insert(1);
    let (release, wait) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let second = bench.submit(move |_| {
        started.send(()).unwrap();
        let _ = wait.recv();
        Ok(())
    });
    drop(held);
    has_started.recv().unwrap();
    // The first has been run, but its commit also waits for the second.
    let mut first = first;
    assert!(first.try_recv().is_err());
    assert_eq!(bench.stored(), [] as [i64; 0]);
    drop(release);
    assert_eq!(outcome(second), Ok(()));
    assert_eq!(outcome(first), Ok(()));
    assert_eq!(bench.stored(), [1]);
}

#[test]
fn a_full_disk_is_an_error_and_nothing_acknowledged_is_lost() {
    let bench = bench();
    assert_eq!(outcome(bench.insert(1)), Ok(()));
    let limit = bench.submit(|tx| {
        let pages: i64 = tx.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        tx.query_row(
            &format!("PRAGMA max_page_count = {}", pages + 2),
            [],
            |_| Ok(()),
        )?;
        Ok(())
    });
    assert_eq!(outcome(limit), Ok(()));
    let held = bench.hold();
    let small = bench.insert(2);
    let large = bench.submit(|tx| {
        tx.execute("INSERT INTO t VALUES (zeroblob(1000000))", [])?;
        Ok(())
    });
    let late = bench.insert(3);
    drop(held);
    let (small, large, late) = (outcome(small), outcome(large), outcome(late));
    assert!(
        matches!(
            &large,
            Err(StoreError::Database {
                fault: Fault::Full,
                ..
            })
        ),
        "{large:?}"
    );
    assert!(bench.store.health().trouble.is_some());
    // Neighbours either were kept and told so, or neither.
    let stored = bench.stored();
    assert_eq!(stored.contains(&2), small.is_ok(), "{stored:?}");
    assert_eq!(stored.contains(&3), late.is_ok(), "{stored:?}");
    assert!(stored.contains(&1));
    let room = bench.submit(|tx| {
        tx.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(()))?;
        Ok(())
    });
    assert_eq!(outcome(room), Ok(()));
    assert_eq!(outcome(bench.insert(4)), Ok(()));
    assert_eq!(bench.store.health().trouble, None);
}

#[test]
fn another_processs_lock_loses_no_acknowledged_change() {
    let bench = bench();
    assert_eq!(outcome(bench.insert(1)), Ok(()));
    let mut other = bench.second_connection();
    let lock = other
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    lock.execute("INSERT INTO t VALUES (9)", []).unwrap();
    let waiting = bench.insert(2);
    lock.commit().unwrap();
    // It waited for the lock instead of failing.
    assert_eq!(outcome(waiting), Ok(()));
    assert_eq!(bench.stored(), [1, 2, 9]);
}

#[test]
fn a_lock_that_outlasts_our_patience_is_an_error_and_no_change() {
    let bench = bench();
    let impatient = bench.submit(|tx| Ok(tx.busy_timeout(Duration::ZERO)?));
    assert_eq!(outcome(impatient), Ok(()));
    let mut other = bench.second_connection();
    let lock = other
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    let locked = |error: Option<StoreError>| {
        matches!(
            error,
            Some(StoreError::Database {
                fault: Fault::Locked,
                ..
            })
        )
    };
    assert!(locked(outcome(bench.insert(1)).err()));
    assert!(locked(bench.store.health().trouble));
    lock.commit().unwrap();
    assert_eq!(outcome(bench.insert(2)), Ok(()));
    assert_eq!(bench.store.health().trouble, None);
    assert_eq!(bench.stored(), [2]);
}

#[test]
fn log_rows_outlast_another_processs_lock() {
    let bench = bench();
    let mut other = bench.second_connection();
    let lock = other
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    bench.store.try_log(Box::new(entry(1)));
    // The change takes the row along, which is not written and put back.
    let change = bench.insert(1);
    while bench.store.health().trouble.is_none() {
        thread::yield_now();
    }
    lock.commit().unwrap();
    assert_eq!(outcome(change), Ok(()));
    bench.store.close();
    let rows: i64 = bench
        .second_connection()
        .query_row("SELECT count(*) FROM requests", [], |row| row.get(0))
        .unwrap();
    assert_eq!((rows, bench.store.ledger_dropped()), (1, 0));
}

#[test]
fn a_queue_that_is_full_refuses_at_once() {
    let bench = bench();
    let held = bench.hold();
    let answers: Vec<_> = (0..4096).map(|x| bench.insert(x)).collect();
    let refused = bench.store.inner.writer.submit(|_| Ok(()));
    assert_eq!(refused.err(), Some(StoreError::Busy));
    assert!(bench.store.health().queued == 4096);
    assert!(bench.store.health().oldest_unanswered.is_some());
    drop(held);
    for answer in answers {
        assert_eq!(outcome(answer), Ok(()));
    }
    assert_eq!(bench.stored().len(), 4096);
    assert!(bench.store.health().last_success_at.is_some());
}

#[test]
fn log_rows_beyond_the_queue_are_dropped_and_counted() {
    let bench = bench();
    let held = bench.hold();
    let taken = (0..8200)
        .filter(|n| bench.store.try_log(Box::new(entry(*n))))
        .count();
    assert_eq!(taken, 8192);
    assert_eq!(bench.store.ledger_dropped(), 8);
    drop(held);
    bench.store.close();
    let rows: i64 = bench
        .second_connection()
        .query_row("SELECT count(*) FROM requests", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 8192);
}

#[test]
fn a_log_row_that_no_table_takes_is_counted_and_spares_the_others() {
    let bench = bench();
    bench
        .store
        .write_blocking(|tx| {
            Ok(tx.execute_batch(
                "CREATE TRIGGER bad BEFORE INSERT ON requests WHEN new.path = '/bad'
                 BEGIN SELECT RAISE(ABORT, 'refused'); END",
            )?)
        })
        .unwrap();
    let held = bench.hold();
    bench.store.try_log(Box::new(entry(1)));
    bench.store.try_log(Box::new(Entry {
        path: "/bad".into(),
        ..entry(2)
    }));
    bench.store.try_log(Box::new(entry(3)));
    drop(held);
    bench.store.close();
    assert_eq!(bench.store.ledger_dropped(), 1);
    let rows: i64 = bench
        .second_connection()
        .query_row("SELECT count(*) FROM requests", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 2);
}

#[test]
fn closing_writes_what_is_queued_and_takes_nothing_more() {
    let bench = bench();
    let held = bench.hold();
    let queued = bench.insert(1);
    bench.store.try_log(Box::new(entry(1)));
    let store = bench.store.clone();
    let closing = thread::spawn(move || store.close());
    drop(held);
    closing.join().unwrap();
    assert_eq!(outcome(queued), Ok(()));
    assert_eq!(
        bench.store.write_blocking(|_| Ok(())),
        Err(StoreError::Closed)
    );
    assert!(!bench.store.try_log(Box::new(entry(2))));
}

#[test]
fn every_answered_change_is_observed() {
    let bench = bench();
    let (seen, times) = mpsc::channel();
    assert!(
        bench
            .store
            .observe_writes(Box::new(move |took| seen.send(took).unwrap()))
    );
    assert_eq!(outcome(bench.insert(1)), Ok(()));
    assert!(times.recv().is_ok());
    assert!(!bench.store.observe_writes(Box::new(|_| {})));
}

fn owner(n: u128) -> OwnerRow {
    OwnerRow {
        object: Object::new(ObjectKind::Response, n.to_string()),
        owner: Owner {
            credential: CredentialId::from_u128(1),
            endpoint: None,
        },
        key: None,
        made_at: 1,
    }
}

#[test]
fn owners_have_room_where_log_rows_have_none_left() {
    let bench = bench();
    let held = bench.hold();
    for n in 0..8192 {
        assert!(bench.store.try_log(Box::new(entry(n))));
    }
    let taken = (0..8200)
        .filter(|n| bench.store.try_bind(owner(*n)))
        .count();
    assert_eq!(taken, 8192);
    assert!(!bench.store.try_log(Box::new(entry(9000))));
    assert_eq!(bench.store.owners_dropped(), 8);
    assert_eq!(bench.store.ledger_dropped(), 1);
    drop(held);
    bench.store.close();
    let conn = bench.second_connection();
    let rows = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(rows("SELECT count(*) FROM owners"), 8192);
    assert_eq!(rows("SELECT count(*) FROM requests"), 8192);
}
