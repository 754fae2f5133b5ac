//! What passes through is what was sent, wherever it is cut, and is understood all the same.
use super::*;
use fairlane::domain::ledger::Outcome;
use futures_util::future::join_all;

const BIG: usize = 4 << 20;

/// Relays `act`, whose pieces are `expect`: byte for byte, as a success with its usage.
async fn check(world: &World, tongue: Tongue, act: Act, expect: &str) {
    let (got, row) = tongue.relayed(world, act).await;
    assert!(
        got.is_some_and(|g| g == expect.as_bytes()),
        "{}",
        tongue.path
    );
    assert_eq!(row.outcome, Outcome::Ok, "{row:?}");
    assert_eq!((row.input_tokens, row.output_tokens), USAGE, "{row:?}");
    assert_eq!(row.response_bytes, expect.len() as u64);
}

async fn check_big(place: usize) {
    let world = World::start().await;
    let big = "x".repeat(BIG);
    for tongue in TONGUES {
        let mut events = tongue.events();
        events[place] = [tongue.first, tongue.more, tongue.last][place](&big);
        let act = Act {
            split_every: Some(1024),
            ..streaming(events.clone())
        };
        check(&world, tongue, act, &events.concat()).await;
    }
    world.end().await;
}

#[tokio::test]
async fn a_line_of_4_mib_passes_as_the_first_event() {
    check_big(0).await;
}

#[tokio::test]
async fn a_line_of_4_mib_passes_as_an_event_in_the_middle() {
    check_big(1).await;
}

#[tokio::test]
async fn a_line_of_4_mib_passes_as_the_last_event() {
    check_big(2).await;
}

#[tokio::test]
async fn what_follows_the_reason_for_the_end_may_be_long() {
    let world = World::start().await;
    let sources = "s".repeat(BIG);
    let mut chunk = chunk("c", &json!("stop"));
    chunk["search_results"] = json!(sources);
    chunk["usage"] = json!({"prompt_tokens": 7, "completion_tokens": 3});
    let mut candidate = candidate("c");
    candidate["candidates"][0]["finishReason"] = json!("STOP");
    candidate["candidates"][0]["groundingMetadata"] = json!(sources);
    candidate["usageMetadata"] = json!({"promptTokenCount": 7, "candidatesTokenCount": 3});
    for (tongue, last) in [(CHAT, sse(&chunk)), (GEMINI, sse(&candidate))] {
        let events = [(tongue.first)("a"), last];
        check(&world, tongue, streaming(events.clone()), &events.concat()).await;
    }
    world.end().await;
}

/// The stream in pieces that end after each CR.
fn cut_after_returns(text: &str) -> Vec<String> {
    text.split_inclusive('\r').map(str::to_owned).collect()
}

#[tokio::test]
async fn lines_may_end_in_crlf_that_is_cut_in_two() {
    let world = World::start().await;
    for tongue in TONGUES {
        let text = tongue.events().concat().replace('\n', "\r\n");
        let pieces = cut_after_returns(&text);
        assert!(pieces.len() > 6 && pieces[1].starts_with('\n'));
        check(&world, tongue, streaming(pieces), &text).await;
        let bytewise = Act {
            split_every: Some(1),
            ..streaming([text.clone()])
        };
        check(&world, tongue, bytewise, &text).await;
    }
    world.end().await;
}

#[tokio::test]
async fn characters_may_be_cut_anywhere() {
    let world = World::start().await;
    let text = "é漢字😀";
    for tongue in TONGUES {
        let whole = [
            (tongue.first)("a"),
            (tongue.more)(text),
            (tongue.last)(text),
        ]
        .concat();
        let start = whole.find(text).unwrap();
        for at in start..=start + text.len() {
            let (a, b) = whole.as_bytes().split_at(at);
            check(&world, tongue, streaming([a, b]), &whole).await;
        }
    }
    world.end().await;
}

/// Has upstream refuse with `text` cut at `at`: the client gets it as it is, and the excerpt in
/// the request log is its beginning, without half a character.
async fn check_refusal(world: &World, text: &str, at: usize) {
    let (a, b) = text.as_bytes().split_at(at);
    let act = Act {
        status: Some(400),
        ..Act::chunks([a, b])
    };
    let (got, row) = CHAT.relayed(world, act).await;
    assert_eq!(got.unwrap(), text.as_bytes());
    assert_eq!(row.outcome, Outcome::Failed);
    let excerpt = row.error.unwrap();
    assert!(text.starts_with(&*excerpt), "{excerpt}");
    assert!(text.len() - excerpt.len() < 200, "{excerpt}");
}

#[tokio::test]
async fn excerpts_of_errors_end_between_two_characters() {
    let world = World::start().await;
    let text = "é漢字😀".repeat(40);
    for at in 0..=13 {
        check_refusal(&world, &text, at).await;
        // Moves what stands where an excerpt is cut off.
        check_refusal(&world, &format!("{}{text}", "x".repeat(at)), at + 1).await;
    }
    world.end().await;
}

#[tokio::test]
async fn an_error_within_a_success_is_kept_without_half_a_character() {
    let world = World::start().await;
    for shift in 0..4 {
        let message = "x".repeat(shift) + &"😀".repeat(200);
        let error = sse(&json!({"error": {"message": message}}));
        let (got, row) = CHAT.relayed(&world, streaming([error.clone()])).await;
        assert_eq!(got.unwrap(), error.as_bytes());
        assert_eq!(row.outcome, Outcome::Failed);
        let excerpt = row.error.unwrap();
        assert!(
            error.contains(&*excerpt) && excerpt.len() > 400,
            "{excerpt}"
        );
    }
    world.end().await;
}

/// The events with everything between them that a server may send.
fn interleaved(events: &[String]) -> Vec<String> {
    let noise = ":\n\n: ping - 2026-01-01 00:00:00\n\nid: 7\nretry: 3000\n\n\n\n";
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let around = events.iter().flat_map(|e| [noise, e, ping]);
    around.map(str::to_owned).collect()
}

#[tokio::test]
async fn comments_and_pings_pass_and_mean_nothing() {
    let world = World::start().await;
    for tongue in TONGUES {
        let pieces = interleaved(&tongue.events());
        let whole = pieces.concat();
        check(&world, tongue, streaming(pieces), &whole).await;
    }
    world.end().await;
}

#[tokio::test]
async fn streams_with_comments_disturb_no_others() {
    let world = World::start().await;
    let pieces = interleaved(&MESSAGES.events());
    let noisy = pieces.concat();
    let plain = CHAT.events();
    world.sim.script([
        Rule::new(streaming(pieces)).path(MESSAGES.path),
        Rule::new(streaming(plain.clone())).path(CHAT.path),
    ]);
    let ask = |tongue: Tongue| post(tongue.path, (tongue.ask)().to_string());
    let of = |n: usize| if n < 20 { MESSAGES } else { CHAT };
    let answers = join_all((0..40).map(|n| world.answer(ask(of(n))))).await;
    for (n, answer) in answers.into_iter().enumerate() {
        let expect = if n < 20 {
            noisy.clone()
        } else {
            plain.concat()
        };
        assert_eq!(answer.body, expect, "{n}");
    }
    let rows = world.rows().await;
    assert_eq!(rows.len(), 40);
    assert!(rows.iter().all(|r| r.outcome == Outcome::Ok));
    world.end().await;
}
