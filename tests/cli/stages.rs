//! The trace of stages in the log: the last label of a request tells which step hangs.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose program does not play along has failed its test"
)]

use crate::program::{Home, Instance, KEY, Provider, SECRET, pool};
use fairlane::sim::{Act, Rule};
use serde_json::{Value, json};

const CHAT: &str = "POST /v1/chat/completions";
const PROMPT: &str = "a prompt that is nobody's business";

/// What a request that is served passes, once each.
const SERVED: [&str; 9] = [
    "received",
    "authenticated",
    "parsed",
    "selected",
    "admitted",
    "dispatched",
    "upstream_headers",
    "first_byte",
    "finished",
];

/// An instance of one ordinary slot, and a token for it.
fn world(provider: &Provider) -> (Home, Instance, String) {
    let home = Home::new();
    let mut document = pool(&provider.sim.base_url());
    document["accounts"][0]["stream_limit"] = json!(2);
    home.import(&document);
    let token = home.run(&["admin", "create-token", "--name", "t"]).out;
    let instance = home.serve(&[]);
    (home, instance, token.trim_end().to_owned())
}

fn ask(is_stream: bool) -> String {
    let messages = json!([{"role": "user", "content": PROMPT}]);
    json!({"model": "gpt-4o-mini", "stream": is_stream, "messages": messages}).to_string()
}

/// Asks to the end; gives the request's id.
fn served(instance: &Instance) -> String {
    let (status, answer) = instance.ask(CHAT, KEY, &ask(false));
    assert_eq!(status, 200, "{answer}");
    let (_, rest) = answer.split_once("x-request-id: ").unwrap();
    rest.lines().next().unwrap().to_owned()
}

/// Switches the trace while the instance runs.
fn switch(instance: &Instance, token: &str, is_on: bool) {
    let body = |(status, answer): (u16, String)| -> Value {
        assert_eq!(status, 200, "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(&body[body.find('{').unwrap()..=body.rfind('}').unwrap()]).unwrap()
    };
    let settings = body(instance.ask("GET /api/admin/settings", token, ""));
    let change = json!({"version": settings["version"], "set": {"stage_trace": is_on}});
    body(instance.ask("PATCH /api/admin/settings", token, &change.to_string()));
}

/// One line of the trace.
#[derive(Debug)]
struct Line {
    request: String,
    stage: String,
    ms: u64,
}

/// The trace in a log, in its order.
fn trace(log: &str) -> Vec<Line> {
    let lines = log
        .lines()
        .filter_map(|line| line.split_once("fairlane::stage: "));
    let read = |(_, fields): (&str, &str)| {
        let field = |name: &str| {
            let (_, rest) = fields.split_once(&format!("{name}=")).unwrap();
            rest.split(' ').next().unwrap().trim_matches('"').to_owned()
        };
        Line {
            request: field("request"),
            stage: field("stage"),
            ms: field("ms").parse().unwrap(),
        }
    };
    lines.map(read).collect()
}

/// Waits until a request that none of `others` is has come to that stage; gives what the log calls it.
fn at(instance: &Instance, stage: &str, others: &[&str]) -> String {
    let is_it = |line: &Line| line.stage == stage && !others.contains(&&*line.request);
    instance.logged(|log| Some(trace(log).into_iter().rfind(is_it)?.request))
}

/// The stages of one request, whose times never go back.
fn stages(lines: &[Line], request: &str) -> Vec<String> {
    let its: Vec<_> = lines.iter().filter(|l| l.request == request).collect();
    assert!(its.is_sorted_by_key(|line| line.ms), "{its:?}");
    its.iter().map(|line| line.stage.clone()).collect()
}

#[test]
fn the_last_stage_in_the_log_tells_which_step_a_request_hangs_in() {
    let provider = Provider::start();
    let (_home, instance, token) = world(&provider);
    served(&instance);
    switch(&instance, &token, true);
    let id = served(&instance);
    let whole = &id[id.len() - 6..];
    assert_eq!(at(&instance, "finished", &[]), whole);

    // One hangs upstream, and the next one behind it.
    provider
        .sim
        .script([Rule::new(Act::delayed_ms(600_000)).times(1)]);
    let stuck = instance.begin(CHAT, KEY, &ask(true));
    let upstream = at(&instance, "dispatched", &[whole]);
    let parked = instance.begin(CHAT, KEY, &ask(true));
    let behind = at(&instance, "parked", &[whole, &upstream]);
    let so_far = instance.logged(|log| Some(trace(log)));
    assert_eq!(stages(&so_far, &upstream), SERVED[..6]);
    let waits = [&SERVED[..4], &["parked"]].concat();
    assert_eq!(stages(&so_far, &behind), waits);

    // Whoever came while it was on is traced to the end, and nobody else.
    switch(&instance, &token, false);
    drop(parked);
    at(&instance, "finished", &[whole, &upstream]);
    drop(stuck);
    at(&instance, "finished", &[whole, &behind]);
    served(&instance);
    let log = instance.stop();
    let lines = trace(&log);
    assert_eq!(stages(&lines, whole), SERVED);
    assert_eq!(
        stages(&lines, &behind),
        [&waits[..], &["finished"]].concat()
    );
    assert_eq!(
        stages(&lines, &upstream),
        [&SERVED[..6], &["finished"]].concat()
    );
    let known = [whole, &*upstream, &*behind];
    let stranger = lines.iter().find(|line| !known.contains(&&*line.request));
    // The calls of the admin API are no requests of clients.
    assert!(stranger.is_none(), "{stranger:?}");
    for secret in [KEY, SECRET, &*token, PROMPT] {
        assert!(!log.contains(secret), "{log}");
    }
}
