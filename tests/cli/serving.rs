//! A running instance: its start, its signals, its neighbours.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose program does not play along has failed its test"
)]

use crate::program::{Home, Instance, KEY, Provider, pool};
use fairlane::sim::{Act, Framing, Rule};
use serde_json::Value;
use std::io::{ErrorKind, Read as _};

/// A database whose pool leads to `provider`.
fn home_for(provider: &Provider) -> Home {
    let home = Home::new();
    home.import(&pool(&provider.sim.base_url()));
    home
}

fn listen(instance: &Instance) -> String {
    instance.address.to_string()
}

#[test]
fn an_instance_starts_is_found_healthy_and_stops_on_a_signal() {
    for signal in ["-TERM", "-INT"] {
        let home = Home::new();
        let instance = home.serve(&[]);
        assert_eq!(instance.ask("GET /healthz", "", "").0, 200);
        let address = listen(&instance);
        let env = [("FAIRLANE_LISTEN", &*address)];
        let ran = home.run_with(&["healthcheck"], &env, "");
        assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(0), "", ""));
        instance.signal(signal);
        let (status, log, out) = instance.ended();
        assert_eq!((status.code(), &*out), (Some(0), ""), "{log}");
        let ran = home.run_with(&["healthcheck"], &env, "");
        assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{ran:?}");
    }
}

#[test]
fn an_instance_with_a_certificate_is_found_healthy_by_that_certificate_alone() {
    let home = Home::new();
    let pem = |name: &str, text: String| {
        let path = home.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let made = || rcgen::generate_simple_self_signed(vec!["gateway.example".to_owned()]).unwrap();
    let (own, other) = (made(), made());
    let key = pem("key.pem", own.signing_key.serialize_pem());
    let chain = pem("chain.pem", own.cert.pem());
    let strange = pem("strange.pem", other.cert.pem());
    let tls = [("FAIRLANE_TLS_CERT", &*chain), ("FAIRLANE_TLS_KEY", &*key)];
    let instance = home.serve(&tls);
    let address = listen(&instance);
    let check = |chain: &str, expect: i32| {
        let env = [
            ("FAIRLANE_LISTEN", &*address),
            ("FAIRLANE_TLS_CERT", chain),
            ("FAIRLANE_TLS_KEY", &*key),
        ];
        let ran = home.run_with(&["healthcheck"], &env, "");
        assert_eq!(ran.code, Some(expect), "{ran:?}");
    };
    check(&chain, 0);
    check(&strange, 1);
    instance.stop();
}

#[test]
fn keys_made_on_the_shell_open_a_running_instance() {
    let provider = Provider::start();
    let home = home_for(&provider);
    let instance = home.serve(&[]);
    assert_eq!(instance.chat(KEY).0, 200);
    let made = home.run(&["admin", "create-key", "--name", "late"]).out;
    // It is known within a moment; each round waits for an answer.
    let served = (0..10_000).any(|_| instance.chat(made.trim_end()).0 == 200);
    assert!(served, "{}", instance.stop());
    instance.stop();
}

#[test]
fn a_second_instance_is_refused_and_the_first_serves_on() {
    let provider = Provider::start();
    let home = home_for(&provider);
    let first = home.serve(&[]);
    let ran = home.run(&["serve"]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    let pid = format!("process {}", first.pid());
    assert!(ran.err.contains(&pid), "{ran:?}");
    assert_eq!(first.chat(KEY).0, 200);
    first.stop();
    home.serve(&[]).stop();
}

#[test]
fn an_address_that_is_taken_is_said_and_keeps_nothing_locked() {
    let (home, other) = (Home::new(), Home::new());
    let instance = home.serve(&[]);
    let address = listen(&instance);
    let ran = other.run_with(&["serve"], &[("FAIRLANE_LISTEN", &address)], "");
    assert_eq!((ran.code, ran.err.lines().count()), (Some(1), 1), "{ran:?}");
    assert!(ran.err.contains(&address), "{ran:?}");
    other.serve(&[]).stop();
    instance.stop();
}

/// Names and states of the credentials.
fn credentials(home: &Home) -> Vec<(Value, Value)> {
    let exported: Value = serde_json::from_str(&home.export(&["--with-secrets"])).unwrap();
    let list = exported["credentials"].as_array().unwrap();
    list.iter()
        .map(|c| (c["secret"].clone(), c["state"].clone()))
        .collect()
}

#[test]
fn secrets_of_the_environment_are_synced_at_every_start_and_never_shown() {
    let home = Home::new();
    let start = |secrets: &str| {
        let env = [("FAIRLANE_KEYS_OPENAI", secrets), ("FAIRLANE_LOG", "trace")];
        let log = home.serve(&env).stop();
        assert!(!log.contains("sk-env-"), "{log}");
    };
    let (one, two, three) = (
        "sk-env-marker-one",
        "sk-env-marker-two",
        "sk-env-marker-three",
    );
    start(&format!("{one}, {two}"));
    let row = |secret: &str, state: Value| (Value::from(secret), state);
    assert_eq!(
        credentials(&home),
        [row(one, Value::Null), row(two, Value::Null)]
    );
    // By their fingerprints: the order says nothing, and what is listed no longer drains.
    start(&format!("{three},{two}"));
    let (drains, works) = (Value::from("draining"), Value::Null);
    let states = |states: [&Value; 3]| {
        let rows = [one, two, three].into_iter().zip(states);
        rows.map(|(secret, state)| row(secret, state.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(credentials(&home), states([&drains, &works, &works]));
    // Without the variable nothing changes; with an empty one all of them drain.
    home.serve(&[]).stop();
    assert_eq!(credentials(&home), states([&drains, &works, &works]));
    start("");
    assert_eq!(credentials(&home), states([&drains; 3]));
    start(&format!("{one},{three}"));
    assert_eq!(credentials(&home), states([&works, &drains, &works]));
}

/// Reads until that text has come.
fn read_until(stream: &mut impl std::io::Read, text: &str) -> String {
    let mut got = Vec::new();
    while !got.ends_with(text.as_bytes()) {
        let mut byte = [0];
        let n = stream.read(&mut byte).unwrap();
        assert!(n > 0, "ended before {text:?}");
        got.push(byte[0]);
    }
    String::from_utf8(got).unwrap()
}

const ASK: &str =
    r#"{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"a"}]}"#;
const LINE: &str = "POST /v1/chat/completions";
const EVENT: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":null}]}\n\n";

/// A stream that goes on for a second after its first event, or for ever.
fn slow(is_endless: bool) -> Rule {
    Rule::new(Act {
        chunk_delay_ms: Some(1000),
        stall_after: is_endless.then_some(1),
        ..Act::chunks([EVENT, "data: [DONE]\n\n"]).header("content-type", "text/event-stream")
    })
}

#[test]
fn a_stop_waits_for_streams_and_refuses_new_work() {
    let provider = Provider::start();
    let home = home_for(&provider);
    provider.sim.script([slow(false).times(20)]);
    let instance = home.serve(&[]);
    let mut streams: Vec<_> = (0..20).map(|_| instance.begin(LINE, KEY, ASK)).collect();
    for stream in &mut streams {
        read_until(stream, EVENT);
    }
    instance.signal("-TERM");
    // The signal has arrived once new work is refused; every stream is still running then.
    let refusal = (0..100_000)
        .map(|_| instance.chat(KEY))
        .find(|(status, _)| *status != 200);
    let (status, text) = refusal.unwrap();
    assert_eq!(status, 503, "{text}");
    assert!(
        text.contains("\r\nx-fairlane-reason: shutting_down\r\n"),
        "{text}"
    );
    assert!(text.contains("\r\nretry-after: "), "{text}");
    for mut stream in streams {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{rest:?}");
    }
    let (status, log, _) = instance.ended();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let provider = Provider::start();
    let home = home_for(&provider);
    provider.sim.script([slow(true).times(1)]);
    let instance = home.serve(&[("FAIRLANE_SHUTDOWN_GRACE_SECONDS", "3600")]);
    let mut stream = instance.begin(LINE, KEY, ASK);
    read_until(&mut stream, EVENT);
    instance.signal("-TERM");
    // The first has arrived once new work is refused.
    let is_stopping = (0..100_000).any(|_| instance.chat(KEY).0 == 503);
    assert!(is_stopping);
    instance.signal("-TERM");
    let (status, log, _) = instance.ended();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("second signal"), "{log}");
    home.serve(&[]).stop();
}

#[test]
fn a_killed_instance_leaves_nothing_in_the_way_of_the_next() {
    let provider = Provider::start();
    let home = home_for(&provider);
    provider.sim.script([slow(true)]);
    let instance = home.serve(&[]);
    let mut stream = instance.begin(LINE, KEY, ASK);
    read_until(&mut stream, EVENT);
    instance.signal("-KILL");
    let (status, _, _) = instance.ended();
    assert_eq!(status.code(), None);
    provider.sim.clear_rules();
    let next = home.serve(&[]);
    assert_eq!(next.chat(KEY).0, 200);
    next.stop();
    assert_eq!(home.run(&["check"]).code, Some(0));
}

/// How many rows the request log has.
fn rows(home: &Home) -> i64 {
    let conn = rusqlite::Connection::open(home.db()).unwrap();
    let count = conn.query_row("SELECT count(*) FROM requests", [], |row| row.get(0));
    count.unwrap()
}

#[test]
fn traffic_goes_on_while_another_program_locks_the_database() {
    let provider = Provider::start();
    let home = home_for(&provider);
    let instance = home.serve(&[]);
    assert_eq!(instance.chat(KEY).0, 200);
    let conn = rusqlite::Connection::open(home.db()).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..50 {
        assert_eq!(instance.chat(KEY).0, 200);
    }
    conn.execute_batch("ROLLBACK").unwrap();
    drop(conn);
    assert_eq!(instance.chat(KEY).0, 200);
    instance.stop();
    assert_eq!(rows(&home), 52, "rows were lost");
}

/// The most memory that a process has had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_stream_without_a_line_end_takes_little_memory() {
    const BYTES: u64 = 128 << 20;
    let provider = Provider::start();
    let home = home_for(&provider);
    let instance = home.serve(&[]);
    assert_eq!(instance.chat(KEY).0, 200);
    let before = peak_kib(instance.pid());
    let endless = Act {
        fill_bytes: Some(BYTES),
        framing: Some(Framing::Chunked),
        ..Act::default().header("content-type", "text/event-stream")
    };
    provider.sim.script([Rule::new(endless).times(1)]);
    let mut stream = instance.begin(LINE, KEY, ASK);
    read_until(&mut stream, "\r\n\r\n");
    let (mut buffer, mut fill) = (vec![0; 256 << 10], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                fill += buffer[..n]
                    .iter()
                    .map(|b| u64::from(*b == b'x'))
                    .sum::<u64>();
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    // It ends without its last event and is cut, and with it goes what waited to be written.
    assert!((BYTES - (1 << 20)..=BYTES).contains(&fill), "{fill}");
    let grown = peak_kib(instance.pid()) - before;
    assert!(grown < 32 << 10, "grew by {grown} KiB");
    assert_eq!(instance.chat(KEY).0, 200);
    instance.stop();
}
