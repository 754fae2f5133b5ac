//! What the log remembers, finds and forgets.
use super::*;
use crate::domain::allowance::{Earlier, Wanted};

struct Bench {
    store: Store,
    dir: tempfile::TempDir,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("f.db")).unwrap();
    Bench { store, dir }
}

fn entry(millis: u128, n: u128) -> Entry {
    Entry {
        id: RequestId::from_u128((millis << 80) | n),
        started_at: i64::try_from(millis).unwrap(),
        key: Some(KeyId::from_u128(n % 2)),
        account: Some(AccountId::from_u128(n % 3)),
        credential: Some(CredentialId::from_u128(4)),
        endpoint: Some(EndpointId::from_u128(5)),
        protocol: Some(Protocol::FalQueue),
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        model: Some("m".into()),
        upstream_model: Some("n".into()),
        status: Some(if n.is_multiple_of(2) { 200 } else { 429 }),
        reason: (!n.is_multiple_of(2)).then_some(Reason::QueueFull),
        outcome: if n.is_multiple_of(2) {
            Outcome::Ok
        } else {
            Outcome::Refused
        },
        attempts: 2,
        request_bytes: 10,
        response_bytes: u64::MAX / 2,
        queued_ms: Some(0),
        headers_ms: None,
        first_byte_ms: Some(3),
        total_ms: Some(4),
        input_tokens: None,
        output_tokens: Some(0),
        cached_tokens: Some(6),
        upstream_request_id: Some("up".into()),
        error: Some("é".into()),
    }
}

async fn logged(count: u128) -> Bench {
    let bench = bench();
    for n in 0..count {
        assert!(bench.store.try_log(Box::new(entry(1000 + n, n))));
    }
    bench.store.flush().await.unwrap();
    bench
}

/// The last digits of the requests that are found, newest first.
async fn check(bench: &Bench, filter: LedgerFilter, expect: &[u128]) {
    let found = bench.store.requests(filter.clone()).await.unwrap();
    let numbers: Vec<u128> = found.iter().map(|e| e.id.as_u128() & 0xff).collect();
    assert_eq!(numbers, expect, "{filter:?}");
}

fn all() -> LedgerFilter {
    LedgerFilter {
        limit: 100,
        ..LedgerFilter::default()
    }
}

#[tokio::test]
async fn the_log_is_read_newest_first_page_by_page() {
    let bench = logged(6).await;
    check(&bench, all(), &[5, 4, 3, 2, 1, 0]).await;
    let page = LedgerFilter { limit: 2, ..all() };
    check(&bench, page.clone(), &[5, 4]).await;
    let before = Some(entry(1004, 4).id);
    check(&bench, LedgerFilter { before, ..page }, &[3, 2]).await;
}

#[tokio::test]
async fn the_log_is_narrowed_by_what_a_row_says() {
    let bench = logged(6).await;
    let key = Some(KeyId::from_u128(1));
    let account = Some(AccountId::from_u128(2));
    let status_class = Some(2);
    let outcome = Some(Outcome::Refused);
    check(&bench, LedgerFilter { key, ..all() }, &[5, 3, 1]).await;
    check(
        &bench,
        LedgerFilter {
            key,
            account,
            ..all()
        },
        &[5],
    )
    .await;
    check(
        &bench,
        LedgerFilter {
            status_class,
            ..all()
        },
        &[4, 2, 0],
    )
    .await;
    check(&bench, LedgerFilter { outcome, ..all() }, &[5, 3, 1]).await;
}

#[tokio::test]
async fn a_row_is_read_back_whole() {
    let bench = logged(6).await;
    let one = bench.store.request(entry(1003, 3).id).await.unwrap();
    assert_eq!(one, Some(entry(1003, 3)));
    let none = bench.store.request(RequestId::from_u128(1)).await.unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn old_rows_of_the_log_are_removed_in_small_steps() {
    let bench = bench();
    let store = &bench.store;
    for n in 0..2500 {
        assert!(store.try_log(Box::new(entry(n, n))));
    }
    store.flush().await.unwrap();
    assert_eq!(store.prune_ledger(2100).await.unwrap(), 2100);
    assert_eq!(store.prune_ledger(2100).await.unwrap(), 0);
    let filter = LedgerFilter {
        limit: 500,
        ..LedgerFilter::default()
    };
    let left = store.requests(filter).await.unwrap();
    assert_eq!(left.len(), 400);
    assert_eq!(left.last().map(|e| e.started_at), Some(2100));
}

#[tokio::test]
async fn nothing_at_the_start_reads_the_log() {
    let bench = bench();
    for n in 0..2000 {
        assert!(bench.store.try_log(Box::new(entry(n, n))));
    }
    bench.store.flush().await.unwrap();
    drop(bench.store);
    // Garbage on every page of the log but its root goes unnoticed by an opening.
    let path = bench.dir.path().join("f.db");
    let conn = Connection::open(&path).unwrap();
    let pages: Vec<i64> = conn
        .prepare("SELECT pageno FROM dbstat WHERE name = 'requests' AND path <> '/'")
        .and_then(|mut s| s.query_map([], |row| row.get(0))?.collect())
        .unwrap();
    conn.close().unwrap();
    assert!(pages.len() > 50);
    let mut bytes = std::fs::read(&path).unwrap();
    for page in pages {
        let at = usize::try_from(page - 1).unwrap() * 4096;
        bytes[at..at + 4096].fill(0xa5);
    }
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.pool().await.unwrap().version, 1);
}

#[tokio::test]
async fn a_row_costs_no_temporary_table() {
    let bench = bench();
    let opcodes = bench.store.read(|conn| {
        let sql = format!(
            "EXPLAIN {}",
            insertion(conn)?.expanded_sql().unwrap_or_default()
        );
        let mut statement = conn.prepare(&sql)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(1))?;
        Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
    });
    let opcodes = opcodes.await.unwrap();
    assert!(opcodes.iter().any(|o| o == "IdxInsert"), "{opcodes:?}");
    assert!(!opcodes.iter().any(|o| o == "OpenEphemeral"), "{opcodes:?}");
}

#[tokio::test]
async fn requests_are_counted_by_minute_and_outcome_from_a_moment_on() {
    let bench = bench();
    for (n, millis) in [59_999, 60_000, 60_002, 60_004, 120_001]
        .into_iter()
        .enumerate()
    {
        assert!(bench.store.try_log(Box::new(entry(millis, n as u128))));
    }
    bench.store.flush().await.unwrap();
    let tallies = bench.store.recent(60_000).await.unwrap().tallies;
    let found: Vec<_> = tallies
        .iter()
        .map(|t| (t.minute, t.outcome, t.count))
        .collect();
    let expect = [
        (1, Outcome::Ok, 1),
        (1, Outcome::Refused, 2),
        (2, Outcome::Ok, 1),
    ];
    assert_eq!(found, expect);
}

#[tokio::test]
async fn the_use_of_a_key_is_counted_from_a_moment_on() {
    let bench = logged(7).await;
    let odd = KeyId::from_u128(1);
    let check = async |key, since_ms, count, last_at| {
        let found = bench.store.use_of_key(key, since_ms).await.unwrap();
        assert_eq!(found, KeyUse { count, last_at });
    };
    check(odd, 1000, 3, Some(1005)).await;
    check(odd, 1003, 2, Some(1005)).await;
    check(odd, 1006, 0, None).await;
    check(KeyId::from_u128(9), 0, 0, None).await;
}

#[tokio::test]
async fn first_bytes_are_ranked_by_minute_and_a_half_read_minute_is_left_out() {
    let bench = bench();
    let mut n = 0;
    let mut log = |millis: u128, first_byte_ms: Option<u64>| {
        n += 1;
        let entry = Entry {
            first_byte_ms,
            ..entry(millis, n)
        };
        assert!(bench.store.try_log(Box::new(entry)));
    };
    log(59_999, Some(9));
    for ms in [30, 10, 20] {
        log(60_000, Some(ms));
    }
    log(60_001, None);
    for ms in 1..=20 {
        log(120_000, Some(ms));
    }
    bench.store.flush().await.unwrap();
    let ranked = |minute, p50_ms, p95_ms, count| FirstBytes {
        minute,
        p50_ms,
        p95_ms,
        count,
    };
    let whole = bench.store.recent(60_000).await.unwrap();
    assert_eq!(
        whole.first_bytes,
        [ranked(1, 20, 30, 3), ranked(2, 10, 19, 20)]
    );
    assert_eq!(whole.first_bytes_in_all, Some(ranked(1, 11, 20, 23)));
    assert!(!whole.is_cut);
    let read = bench.store.read(|conn| recent(conn, 60_000, 21)).await;
    let cut = read.unwrap();
    assert_eq!(cut.first_bytes, [ranked(2, 10, 19, 20)]);
    assert!(cut.is_cut);
    assert_eq!(cut.tallies, whole.tallies);
}

#[tokio::test]
async fn only_what_upstream_said_of_an_accounts_work_is_evidence_of_its_quota() {
    let bench = bench();
    let store = &bench.store;
    let account = AccountId::from_u128(7);
    let row = |n: u128, change: &dyn Fn(&mut Entry)| {
        let mut entry = entry(1_000 + n, n);
        entry.account = Some(account);
        (entry.status, entry.reason, entry.headers_ms) = (Some(200), None, Some(30));
        change(&mut entry);
        entry
    };
    let rows = [
        row(2, &|_| ()),
        row(3, &|e| e.status = Some(500)),
        row(4, &|e| e.reason = Some(Reason::QueueFull)),
        row(5, &|e| e.method = "GET".into()),
        row(6, &|e| e.account = Some(AccountId::from_u128(8))),
        row(7, &|e| e.credential = None),
    ];
    for row in rows {
        assert!(store.try_log(Box::new(row)));
    }
    let mut charged = crate::domain::pool::edges::sample::account(7);
    charged.id = account;
    store.add_account(charged).await.unwrap();
    let endpoint = crate::domain::pool::edges::sample::endpoint(1, Protocol::OpenAi);
    store.add_endpoint(endpoint).await.unwrap();
    let credential = crate::domain::pool::edges::sample::credential(1, 7, 1);
    let id = credential.id;
    store.add_credential(credential, None).await.unwrap();
    let now = crate::clock::unix_millis();
    let other = crate::domain::ids::CredentialId::from_u128(99);
    let old = now - 30 * 24 * 3_600_000;
    let met = vec![(id, old), (id, now - 5), (id, now), (other, now)];
    store.keep_limits(met).await.unwrap();
    let answers = store.answers(account).await.unwrap();
    let seen: Vec<_> = answers.iter().map(|a| (a.at_ms, a.is_limited)).collect();
    assert_eq!(seen, [(1_032, false), (now, true), (now - 5, true)]);
}

#[tokio::test]
async fn what_keys_used_earlier_is_what_began_in_time_and_before_this_process() {
    let bench = bench();
    let row = |millis: u128, n: u128, tokens| Entry {
        input_tokens: Some(tokens),
        output_tokens: Some(1),
        ..entry(millis, n)
    };
    let unsent = Entry {
        attempts: 0,
        ..row(70_500, 1, 1000)
    };
    let nobodys = Entry {
        key: None,
        ..row(70_501, 3, 9)
    };
    // An id may be a little older than the moment that is taken down.
    let early = Entry {
        started_at: 50_000,
        ..row(49_999, 5, 100_000)
    };
    let rows = [
        row(49_998, 7, 1_000_000),
        early,
        row(69_999, 9, 10_000),
        row(70_000, 11, 1),
        row(70_999, 13, 10),
        unsent,
        nobodys,
        row(71_000, 2, 100),
        row(72_000, 4, 5),
    ];
    for row in rows {
        assert!(bench.store.try_log(Box::new(row)));
    }
    bench.store.flush().await.unwrap();
    let wanted = Wanted {
        day_from_ms: 50_000,
        minute_from_ms: 70_000,
        until_ms: 72_000,
    };
    let mut found = bench.store.earlier_use(wanted).await.unwrap();
    found.sort_by_key(|earlier| earlier.key);
    let of = |key, tokens, starts: &[(i64, u32)]| Earlier {
        key: KeyId::from_u128(key),
        tokens,
        starts: starts.to_vec(),
    };
    let expect = [
        of(0, 101, &[(71_000, 1)]),
        of(1, 111_011 + 5, &[(70_999, 2)]),
    ];
    assert_eq!(found, expect);
}
