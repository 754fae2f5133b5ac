//! Streams after a promise are what they are without one: byte for byte, whole or visibly not.
use super::{COMMENT, LONG, asking, hold, holder, tight, waiters};
use crate::{
    hand::WAYS,
    harness::{KEY, chat},
};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Act, Close, Rule},
};

fn delta(text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// What upstream does, what of it the client gets, and how that is recorded.
struct Case {
    act: Act,
    expect: String,
    outcome: Outcome,
}

fn whole(body: &str, split_every: Option<usize>) -> Case {
    Case {
        act: Act {
            split_every,
            ..Act::chunks([body])
        },
        expect: body.to_owned(),
        outcome: Outcome::Ok,
    }
}

fn broken(act: Act, expect: String) -> Case {
    Case {
        act,
        expect,
        outcome: Outcome::Broken,
    }
}

fn cases() -> Vec<Case> {
    let end = [STOP, USAGE, DONE].concat();
    let big = delta(&"x".repeat(1 << 20));
    let odd = delta("\u{e9}\u{20ac}\u{d55c}\u{1f642}");
    let pings = [
        ":\n\n: ping\n\nevent: x\nid: 1\nretry: 5\n\n",
        &odd,
        "\n",
        &end,
    ]
    .concat();
    vec![
        whole(&[&big, &*odd, &end].concat(), Some(4096)),
        whole(&[&odd, &*end].concat().replace('\n', "\r\n"), Some(1)),
        whole(&pings, Some(1)),
        // Nothing is missed where the last line of some dialects is missing.
        whole(&[&odd, STOP].concat(), None),
        broken(Act::chunks([&*odd, &odd]), odd.repeat(2)),
        broken(
            Act {
                close_after: Some(1),
                ..Act {
                    close: Some(Close::MidBody),
                    ..Act::chunks([&*odd, &end])
                }
            },
            odd.clone(),
        ),
        broken(Act::chunks([&*odd, &end]).reset().closing(), odd + &end),
    ]
}

/// Ends a connection right where its last chunk would stand.
trait Closing {
    fn closing(self) -> Self;
}

impl Closing for Act {
    fn closing(self) -> Self {
        Self {
            close: Some(Close::NoTerminator),
            ..self
        }
    }
}

#[tokio::test]
async fn a_promised_stream_is_byte_for_byte_what_upstream_sent_and_breaks_where_that_breaks() {
    let world = tight(1, LONG, "1").start().await;
    hold(&world);
    let holder = holder(&world, KEY).await;
    let cases = cases();
    let mut callers = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        let query = format!("case={n}");
        let act = case.act.clone().header("content-type", "text/event-stream");
        world.sim.script([Rule::new(act).path(&query)]);
        let path = format!("/v1/chat/completions?{query}");
        callers.push(asking(&world, KEY, &path, &[], &chat(true)).await);
    }
    for caller in &mut callers {
        caller.sees(COMMENT).await;
    }
    waiters(&world, cases.len()).await;
    holder.leave(WAYS[0]);
    for (n, (caller, case)) in callers.into_iter().zip(&cases).enumerate() {
        let got = caller.end().await;
        assert_eq!(got.status(), 200);
        let is_whole = case.outcome == Outcome::Ok;
        assert_eq!(got.is_whole, is_whole, "case {n}");
        let text = String::from_utf8(got.body).unwrap();
        let came = text.trim_start_matches(COMMENT);
        assert!(came == case.expect, "case {n}: {} bytes", came.len());
    }
    let rows = world.rows().await;
    let mut counts = [0, 0];
    for row in rows.iter().filter(|row| row.queued_ms.is_some()) {
        counts[usize::from(row.outcome != Outcome::Ok)] += 1;
        let is_known = row.outcome != Outcome::Ok || row.attempts == 1;
        assert!(is_known && row.status == Some(200), "{row:?}");
    }
    assert_eq!(counts, [4, 3]);
    let counted = rows.iter().filter(|row| row.output_tokens == Some(4));
    assert!(counted.count() >= 3, "usage was not seen");
    world.end().await;
}

#[tokio::test]
async fn whoever_leaves_after_the_last_event_has_had_it_all() {
    let world = tight(1, LONG, "1").start().await;
    hold(&world);
    let act = Act {
        stall_after: Some(1),
        ..Act::chunks([[STOP, USAGE, DONE].concat(), String::from(": more\n\n")])
    };
    let act = act.header("content-type", "text/event-stream");
    world.sim.script([Rule::new(act).path("last")]);
    for way in WAYS {
        let holder = holder(&world, KEY).await;
        let path = "/v1/chat/completions?last";
        let mut caller = asking(&world, KEY, path, &[], &chat(true)).await;
        caller.until(COMMENT).await;
        holder.leave(way);
        caller.until(DONE).await;
        caller.leave(way);
        let row = world.last_row().await;
        assert_eq!((row.outcome, row.status), (Outcome::Ok, Some(200)));
        assert_eq!(row.output_tokens, Some(4));
    }
    world.check_unharmed().await;
    world.end().await;
}
