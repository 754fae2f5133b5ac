//! Nothing is asked for that the client did not ask for.
use super::*;
use fairlane::domain::ledger::Outcome;

/// Asks with that addition: upstream gets the very bytes, and the client a count only if `asks`.
async fn check(options: &str, asks: bool) {
    let world = World::start().await;
    let sent = format!(
        r#"{{ "model":"gpt-4o-mini" ,"stream": true,{options} "messages":[{{"role":"user","content":"caf\u00e9 é"}}]}}"#
    );
    let answer = world.answer(post(CHAT.path, sent.clone())).await;
    let log = world.sim.log();
    let body = &log[0].body.as_ref().unwrap().0;
    assert_eq!(body, sent.as_bytes(), "{options}");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(text.contains("prompt_tokens"), asks, "{options}");
    let row = world.last_row().await;
    assert_eq!(row.outcome, Outcome::Ok);
    assert_eq!(row.input_tokens.is_some(), asks, "{row:?}");
    world.end().await;
}

#[tokio::test]
async fn usage_is_neither_asked_for_nor_hidden() {
    check("", false).await;
    check(r#""stream_options":{"include_usage":false},"#, false).await;
    check(r#""stream_options":{"include_usage":true},"#, true).await;
    check(r#""stream_options":{"other":1},"#, false).await;
    check(r#""stream_options":null,"#, false).await;
}

#[tokio::test]
async fn what_upstream_says_of_the_option_is_passed_on() {
    let world = World::start().await;
    let act = Act {
        message: Some("stream_options is not supported".to_owned()),
        ..Act::status(400)
    };
    let mut ask = (CHAT.ask)();
    ask["stream_options"] = json!({"include_usage": true});
    world.sim.script([Rule::new(act)]);
    let answer = world.post(CHAT.path, &ask).await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error"]["message"],
        "stream_options is not supported"
    );
    assert_eq!(world.sim.log().len(), 1);
    world.end().await;
}
