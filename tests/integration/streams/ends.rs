//! How a stream ends: whole, broken, or left by a client that has all it came for.
use super::*;
use crate::hand::{Caller, WAYS};
use fairlane::{
    domain::ledger::Outcome,
    sim::{Close, Framing, Phase},
};

/// Relays a stream that breaks as `act` says: the client's connection is cut, the log says
/// broken, and nothing is asked again.
async fn check_broken(tongue: Tongue, act: Act) {
    let world = World::start().await;
    let (got, row) = tongue.relayed(&world, act).await;
    assert_eq!(got, None, "{} ended cleanly", tongue.path);
    assert_eq!(row.outcome, Outcome::Broken, "{row:?}");
    assert!(row.error.is_some());
    assert_eq!((row.attempts, world.sim.log().len()), (1, 1));
    world.end().await;
}

fn without_its_end(tongue: Tongue) -> Act {
    let [first, more, _] = tongue.events();
    streaming([first, more])
}

#[tokio::test]
async fn a_clean_end_without_the_last_event_is_a_break() {
    for tongue in TONGUES {
        check_broken(tongue, without_its_end(tongue)).await;
    }
}

#[tokio::test]
async fn a_stream_of_nothing_is_a_break() {
    for tongue in TONGUES {
        check_broken(tongue, streaming::<&str>([])).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_closed_or_reset_midway_is_a_break() {
    for tongue in TONGUES {
        for close in [Close::MidBody, Close::MidChunk, Close::NoTerminator] {
            for rst in [false, true] {
                let act = Act {
                    close: Some(close),
                    rst,
                    ..without_its_end(tongue)
                };
                check_broken(tongue, act).await;
            }
        }
    }
}

#[tokio::test]
async fn what_came_before_a_break_reaches_the_client() {
    let world = World::start().await;
    let [first, more, _] = CHAT.events();
    let act = Act {
        close: Some(Close::NoTerminator),
        ..streaming([first.clone(), more.clone()])
    };
    world.sim.script([Rule::new(act)]);
    let ask = (CHAT.ask)().to_string();
    let got = Caller::post(world.address(), CHAT.path, &ask)
        .await
        .end()
        .await;
    assert_eq!((got.status(), got.is_whole), (200, false));
    assert_eq!(got.body, (first + &more).as_bytes());
    world.end().await;
}

#[tokio::test]
async fn a_body_of_stated_length_does_not_reach_it_if_its_last_event_is_missing() {
    let world = World::start().await;
    let [first, more, _] = CHAT.events();
    let act = Act::default().header("content-type", "text/event-stream");
    let act = act.body(first.clone() + &more);
    world.sim.script([Rule::new(act)]);
    let ask = (CHAT.ask)().to_string();
    let caller = Caller::post(world.address(), CHAT.path, &ask).await;
    let got = caller.end().await;
    assert!(got.head.contains("content-length: "), "{}", got.head);
    assert!(!got.is_whole);
    let (sent, last) = (first + &more, 1);
    assert_eq!(got.body, &sent.as_bytes()[..sent.len() - last]);
    assert_eq!(world.last_row().await.outcome, Outcome::Broken);
    world.end().await;
}

/// Relays `act`, which ends with its last event but without `[DONE]`, as a success.
async fn check_whole(tongue: Tongue, act: Act) {
    let world = World::start().await;
    let (got, row) = tongue.relayed(&world, act).await;
    assert_eq!(got.unwrap(), tongue.events().concat());
    assert_eq!((row.outcome, row.error), (Outcome::Ok, None));
    assert_eq!((row.input_tokens, row.output_tokens), USAGE);
    world.end().await;
}

#[tokio::test]
async fn a_last_event_needs_no_done_behind_it() {
    for tongue in TONGUES {
        check_whole(tongue, streaming(tongue.events())).await;
        let until_close = Act {
            framing: Some(Framing::UntilClose),
            ..streaming(tongue.events())
        };
        check_whole(tongue, until_close).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_after_the_last_event_has_been_served() {
    let world = World::start().await;
    for tongue in TONGUES {
        for way in WAYS {
            let events = tongue.events();
            let act = Act {
                stall_after: Some(3),
                ..streaming(events.clone())
            };
            world.sim.script([Rule::new(act).times(1)]);
            let ask = (tongue.ask)().to_string();
            let mut caller = Caller::post(world.address(), tongue.path, &ask).await;
            caller.until(&events[2]).await;
            caller.leave(way);
            let row = world.last_row().await;
            assert_eq!(row.outcome, Outcome::Ok, "{way:?} {row:?}");
            assert_eq!((row.input_tokens, row.output_tokens), USAGE);
            assert_eq!(row.status, Some(200));
        }
    }
    let closed = |n: usize| {
        move |log: &[fairlane::sim::Record]| {
            log.iter()
                .filter(|r| r.closed.is_some_and(|c| c.during == Phase::Answer))
                .count()
                == n
        }
    };
    world.sim.wait_for(closed(8)).await.unwrap();
    world.end().await;
}
