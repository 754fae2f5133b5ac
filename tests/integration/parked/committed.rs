//! Streams that were promised while they still waited: kept alive in the form of their protocol, and
//! ended as it demands.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

use super::{CHAT, COMMENT, EVENT, LONG, asking, hold, holder, tight, waiters};
use crate::{
    hand::{Caller, Received, WAYS},
    harness::{KEY, Setup, chat},
};
use fairlane::{
    domain::{ledger::Outcome, reason::Reason},
    sim::{Act, Phase, Record, Rule},
};
use serde_json::{Value, json};

const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
const KEEPALIVE: &str = "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n";
const BLANK: &str = "\n\n";

const GEMINI: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";

/// A path, what a client says of itself, and what it hears while it waits.
type Surface = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

const SURFACES: [Surface; 6] = [
    (CHAT, &[], COMMENT),
    (CHAT, &[("originator", "codex_exec")], COMMENT),
    ("/v1/responses", &[], COMMENT),
    ("/v1/responses", &[("originator", "codex_exec")], KEEPALIVE),
    ("/v1/messages", &[("anthropic-version", "2023-06-01")], PING),
    (GEMINI, &[], BLANK),
];

fn body_of(path: &str) -> Value {
    if path == GEMINI {
        return json!({"contents": [{"parts": [{"text": "hi"}]}]});
    }
    let mut body = chat(true);
    body["input"] = json!("hi");
    body["max_tokens"] = json!(5);
    body
}

/// Waits until the client was told to wait.
async fn hears(caller: &mut Caller, form: &str) {
    // With its frame: every head ends with a blank line.
    let chunk = format!("\r\n\r\n{:X}\r\n{form}\r\n", form.len());
    caller.sees(&chunk).await;
}

/// What came after what kept the client waiting.
fn after(got: &Received, form: &str) -> String {
    assert_eq!(got.status(), 200, "{got:?}");
    assert_eq!(got.header("content-type"), "text/event-stream");
    assert_eq!(got.header("cache-control"), "no-cache");
    assert_eq!(got.header("content-encoding"), "");
    assert!(got.header("x-request-id").starts_with("req_"), "{got:?}");
    let text = got.text();
    let mut rest = &*text;
    while let Some(later) = rest.strip_prefix(form) {
        rest = later;
    }
    assert!(rest.len() < text.len(), "nothing kept it alive: {got:?}");
    rest.to_owned()
}

#[tokio::test]
async fn each_protocol_is_kept_alive_in_its_own_form_and_then_gets_its_stream() {
    let world = tight(1, LONG, "1").start().await;
    hold(&world);
    let said = |path: &str| {
        let done = if path == CHAT {
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        } else if path == "/v1/messages" {
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
        } else if path.contains("streamGenerate") {
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n"
        } else {
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n"
        };
        [": as it came\n\n", done].concat()
    };
    for path in [CHAT, "/v1/responses", "/v1/messages", GEMINI] {
        let act = Act::chunks([said(path)]).header("content-type", "text/event-stream; a=b");
        world.sim.script([Rule::new(act).path(path)]);
    }
    let holder = holder(&world, KEY).await;
    let mut callers = Vec::new();
    for surface in SURFACES {
        let mut headers = surface.1.to_vec();
        headers.push(("accept-encoding", "gzip, br"));
        callers.push(asking(&world, KEY, surface.0, &headers, &body_of(surface.0)).await);
    }
    for (caller, surface) in callers.iter_mut().zip(SURFACES) {
        hears(caller, surface.2).await;
    }
    waiters(&world, SURFACES.len()).await;
    holder.leave(WAYS[0]);
    for (caller, (path, _, form)) in callers.into_iter().zip(SURFACES) {
        let got = caller.end().await;
        assert_eq!(after(&got, form), said(path), "{path}");
        assert!(got.is_whole, "{path}");
    }
    for row in world.rows().await.iter().take(SURFACES.len()) {
        assert_eq!(
            (row.outcome, row.status),
            (Outcome::Ok, Some(200)),
            "{row:?}"
        );
        assert!(row.queued_ms.is_some_and(|ms| ms >= 1000), "{row:?}");
        assert_eq!(row.response_bytes, said(&row.path).len() as u64);
    }
    for record in &world.sim.log()[1..] {
        let offered = record.header("accept-encoding");
        assert_eq!(offered, Some("identity"), "what was promised is not packed");
    }
    world.end().await;
}

#[tokio::test]
async fn a_wait_in_vain_ends_with_the_protocols_own_error() {
    let world = tight(1, "2", "1").start().await;
    hold(&world);
    let holder = holder(&world, KEY).await;
    let mut callers = Vec::new();
    for (path, headers, _) in SURFACES {
        callers.push(asking(&world, KEY, path, headers, &body_of(path)).await);
    }
    for (caller, (path, _, form)) in callers.into_iter().zip(SURFACES) {
        let got = caller.end().await;
        assert!(got.is_whole, "cut: {got:?}");
        let event = after(&got, form);
        let (name, data) = event.split_once("data: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        let is_said = match path {
            "/v1/responses" => name == "event: error\n" && data["code"] == "account_stream_cap",
            "/v1/messages" => {
                name == "event: error\n" && data["error"]["type"] == "rate_limit_error"
            }
            GEMINI => name.is_empty() && data["error"]["status"] == "RESOURCE_EXHAUSTED",
            _ => name.is_empty() && data["error"]["code"] == "account_stream_cap",
        };
        assert!(is_said, "{path}: {event}");
    }
    holder.leave(WAYS[0]);
    let rows = world.rows().await;
    let refused = rows.iter().filter(|row| row.queued_ms.is_some());
    assert_eq!(refused.clone().count(), SURFACES.len());
    for row in refused {
        assert_eq!((row.outcome, row.status), (Outcome::Refused, Some(200)));
        assert_eq!(row.reason, Some(Reason::AccountStreamCap));
    }
    assert_eq!(world.sim.log().len(), 1);
    world.end().await;
}

#[tokio::test]
async fn nothing_is_promised_to_who_did_not_ask_for_a_stream() {
    let world = tight(1, "2", "1").start().await;
    hold(&world);
    let holder = holder(&world, KEY).await;
    for path in [
        CHAT,
        "/v1beta/models/m:generateContent",
        "/v1beta/models/m:streamGenerateContent",
    ] {
        let body = json!({"model": "m", "messages": [], "contents": []});
        let got = asking(&world, KEY, path, &[], &body).await.end().await;
        assert_eq!(got.status(), 429, "{path}");
        assert_eq!(got.header("x-fairlane-reason"), "account_stream_cap");
    }
    holder.leave(WAYS[0]);
    world.end().await;
}

#[tokio::test]
async fn a_client_that_leaves_after_the_promise_is_not_served() {
    for way in WAYS {
        let world = tight(1, LONG, "1").start().await;
        hold(&world);
        let holder = holder(&world, KEY).await;
        let mut told = asking(&world, KEY, CHAT, &[], &chat(true)).await;
        hears(&mut told, COMMENT).await;
        told.leave(way);
        waiters(&world, 0).await;
        world
            .until("the holder alone", |counts| counts == (1, 1, 0))
            .await;
        holder.leave(way);
        let rows = world.rows().await;
        let row = rows.iter().find(|row| row.attempts == 0).unwrap();
        assert_eq!((row.outcome, row.status), (Outcome::ClientGone, Some(200)));
        assert_eq!(world.sim.log().len(), 1);
        world.end().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_what_it_was_promised_midway_is_not_served_on() {
    let world = tight(1, LONG, "1").start().await;
    hold(&world);
    for (n, way) in WAYS.into_iter().enumerate() {
        let holder = holder(&world, KEY).await;
        let mut second = asking(&world, KEY, super::HELD, &[], &chat(true)).await;
        second.until(COMMENT).await;
        holder.leave(way);
        second.until(EVENT).await;
        second.leave(way);
        let count = 2 * (n + 1);
        let left = |log: &[Record]| {
            let closed = |r: &&Record| r.closed.is_some_and(|c| c.during == Phase::Answer);
            log.iter().filter(closed).count() == count
        };
        world.sim.wait_for(left).await.unwrap();
        let row = world.last_row().await;
        assert_eq!((row.outcome, row.status), (Outcome::ClientGone, Some(200)));
        assert_eq!(row.response_bytes, EVENT.len() as u64);
    }
    world.check_unharmed().await;
    world.end().await;
}

/// Two accounts whose slots are held; one is freed once a client was promised a stream, and then
/// upstream does that. Nobody else is asked, and the client is told.
async fn check_disappointed(act: Act, expect: &str, error: &str) {
    let setup: Setup = tight(1, LONG, "1").account("two");
    let world = setup
        .with("/accounts/1/stream_limit", json!(1))
        .start()
        .await;
    hold(&world);
    world.sim.script([Rule::new(act).path("second").times(1)]);
    let holders = [holder(&world, KEY).await, holder(&world, KEY).await];
    let path = "/v1/chat/completions?second";
    let mut caller = asking(&world, KEY, path, &[], &chat(true)).await;
    hears(&mut caller, COMMENT).await;
    drop(holders);
    let got = caller.end().await;
    assert!(got.is_whole, "cut: {got:?}");
    let event = after(&got, COMMENT);
    assert!(
        event.starts_with("data: {") && event.ends_with("}\n\n"),
        "{event}"
    );
    let data: Value = serde_json::from_str(&event["data: ".len()..]).unwrap();
    assert_eq!(data["error"]["message"], expect, "{event}");
    assert_eq!(world.seen("second").len(), 1, "it was sent again");
    let rows = world.rows().await;
    let row = rows.iter().find(|row| row.queued_ms.is_some()).unwrap();
    assert_eq!((row.outcome, row.status), (Outcome::Failed, Some(200)));
    assert!(
        row.error.as_ref().is_some_and(|e| e.contains(error)),
        "{row:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn what_comes_instead_of_the_promised_stream_is_told_and_tried_no_more() {
    let body = "{\"error\": {\"message\": \"own words\", \"type\": \"t\"}}";
    for status in [401, 429, 500, 503] {
        let act = Act::status(status).body(body);
        check_disappointed(act, "own words", &format!("status {status}")).await;
    }
    let act = Act::status(200)
        .header("content-type", "application/json")
        .body("{\"choices\":[]}");
    let expect = "The provider answered with something else than a stream of events.";
    check_disappointed(act, expect, "no stream").await;
}

#[tokio::test]
async fn what_is_lost_after_the_promise_is_told_and_not_sent_again() {
    let act = Act::close(fairlane::sim::Close::BeforeHeaders);
    let expect = "The connection to the provider broke before an answer came; the request may have been carried out and was not repeated.";
    check_disappointed(act, expect, "").await;
}
