//! Hard owners: never left, and nobody else's.
use super::*;
use crate::{
    hand::{Caller, Way},
    harness::get,
};
use fairlane::sim::{Act, Rule};

#[tokio::test]
async fn a_response_is_continued_where_it_was_made_also_after_a_restart() {
    let mut world = two().start().await;
    let whole = response(&world).await;
    let streamed = world.post(RESPONSES, &wish(&json!({"stream": true}))).await;
    let streamed_at = last_at(&world, RESPONSES);
    let text = String::from_utf8(streamed.body.to_vec()).unwrap();
    let (_, rest) = text.split_once("\"id\":\"resp_").unwrap();
    let streamed = format!("resp_{}", rest.split_once('"').unwrap().0);
    let both = [whole, (streamed, streamed_at)];
    assert_ne!(both[0].1, both[1].1, "both on one account");
    for is_restarted in [false, true] {
        if is_restarted {
            world = restarted(world).await;
        }
        for (id, owner) in &both {
            for _ in 0..3 {
                let answer = world.post(RESPONSES, &continuing(id)).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                assert_eq!(last_at(&world, RESPONSES), *owner);
                let read = world.answer(get(&format!("{RESPONSES}/{id}"))).await;
                assert_eq!(id_of(&read), *id);
            }
        }
    }
    world.end().await;
}

#[tokio::test]
async fn to_another_key_it_does_not_exist() {
    let world = two().start().await;
    let (id, _) = response(&world).await;
    let (kept, _) = file(&world, KEY).await;
    let before = world.sim.log().len();
    let answer = world
        .answer(asks(OTHER, Method::POST, RESPONSES, &continuing(&id)))
        .await;
    check_refused(&answer, 404, "owner_unknown", "previous_response_not_found");
    for path in [format!("{RESPONSES}/{id}"), format!("/v1/files/{kept}")] {
        let theirs = read_as(&world, OTHER, &path).await;
        check_refused(&theirs, 404, "owner_unknown", "owner_unknown");
        // What nobody has made reads the same.
        let nobodys = read_as(&world, OTHER, &format!("{path}0")).await;
        assert_eq!(nobodys.body, theirs.body);
    }
    let never = world.post(RESPONSES, &continuing("resp_never")).await;
    check_refused(&never, 404, "owner_unknown", "previous_response_not_found");
    assert_eq!(world.sim.log().len(), before, "upstream was asked");
    world.end().await;
}

#[tokio::test]
async fn things_of_two_accounts_are_a_conflict() {
    let world = two().start().await;
    let [(first, _), (second, _)] = two_files(&world).await;
    let file = |id: &str| json!({"type": "input_file", "file_id": id});
    let body = wish(&json!({
        "input": [{"role": "user", "content": [file(&first), file(&second)]}]
    }));
    let answer = world.post(RESPONSES, &body).await;
    check_refused(&answer, 409, "owner_conflict", "owner_conflict");
    assert!(world.seen(RESPONSES).is_empty());
    world.end().await;
}

#[tokio::test]
async fn an_owner_out_of_service_is_read_and_makes_nothing_new() {
    for state in [State::Draining, DISABLED] {
        let world = two().start().await;
        let (id, owner) = response(&world).await;
        let (kept, kept_at) = file(&world, KEY).await;
        assert_ne!(owner, kept_at);
        change(&world, account_with(&owner), Some(state)).await;
        change(&world, account_with(&kept_at), Some(state)).await;
        let refused = until(&world, &continuing(&id), |a| a.status != 200).await;
        check_refused(&refused, 503, "owner_unavailable", "owner_unavailable");
        let batch = json!({"input_file_id": kept, "endpoint": "/v1/responses",
                           "completion_window": "24h"});
        let refused = world.post("/v1/batches", &batch).await;
        check_refused(&refused, 503, "owner_unavailable", "owner_unavailable");
        for path in [format!("{RESPONSES}/{id}"), format!("/v1/files/{kept}")] {
            id_of(&world.answer(get(&path)).await);
        }
        world.end().await;
    }
}

#[tokio::test]
async fn an_owner_that_is_gone_lets_the_client_begin_anew() {
    let world = two().start().await;
    let (id, owner) = response(&world).await;
    change(&world, account_with(&owner), None).await;
    let refused = until(&world, &continuing(&id), |a| a.status != 200).await;
    let code = "previous_response_not_found";
    check_refused(&refused, 503, "owner_unavailable", code);
    assert_eq!(refused.header("x-should-retry"), "false");
    let read = world.answer(get(&format!("{RESPONSES}/{id}"))).await;
    check_refused(&read, 503, "owner_unavailable", "owner_unavailable");
    // Its other account takes what names nothing.
    assert_eq!(world.post(RESPONSES, &wish(&json!({}))).await.status, 200);
    world.end().await;
}

#[tokio::test]
async fn an_owner_that_is_full_is_waited_for() {
    let setup = two()
        .env("FAIRLANE_ACCOUNT_STREAM_RESERVE", "0")
        .with("/accounts/0/stream_limit", json!(1))
        .with("/accounts/1/stream_limit", json!(1));
    let world = setup.start().await;
    let (id, owner) = response(&world).await;
    let stalled = Act {
        stall_after: Some(1),
        ..Act::default()
    };
    world.sim.script([Rule::new(stalled).times(1)]);
    let streamed = wish(&json!({"stream": true, "previous_response_id": id}));
    let mut caller = Caller::post(world.address(), RESPONSES, &streamed.to_string()).await;
    caller.until("response.created").await;
    let next = continuing(&id);
    let (answer, ()) = futures_util::join!(world.post(RESPONSES, &next), async {
        let parked = |(_, _, waiters)| waiters == 1;
        world.until("a waiter", parked).await;
        caller.leave(Way::Fin);
    });
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(last_at(&world, RESPONSES), owner);
    world.end().await;
}

#[tokio::test]
async fn a_file_is_used_where_it_is_and_forgotten_once_deleted() {
    let world = two().start().await;
    for (id, owner) in two_files(&world).await {
        let path = format!("/v1/files/{id}");
        let content = world.answer(get(&format!("{path}/content"))).await;
        assert_eq!(content.body, "{\"custom_id\":\"one\"}\n");
        let batch = json!({"input_file_id": id, "endpoint": "/v1/responses",
                           "completion_window": "24h"});
        let batch = id_of(&world.post("/v1/batches", &batch).await);
        let read = world.answer(get(&format!("/v1/batches/{batch}"))).await;
        let output = read.json()["output_file_id"].as_str().unwrap().to_owned();
        let output = format!("/v1/files/{output}");
        assert_eq!(last_at(&world, "/v1/batches"), owner);
        // What a batch made is its maker's as well.
        id_of(&world.answer(get(&output)).await);
        check_refused(
            &read_as(&world, OTHER, &output).await,
            404,
            "owner_unknown",
            "owner_unknown",
        );
        let delete = asks(KEY, Method::DELETE, &path, &Value::Null);
        assert_eq!(world.answer(delete).await.status, 200);
        let gone = world.answer(get(&path)).await;
        check_refused(&gone, 404, "owner_unknown", "owner_unknown");
    }
    world.end().await;
}

#[tokio::test]
async fn a_conversation_goes_on_where_it_began() {
    let world = two().start().await;
    let path = "/v1/conversations";
    for _ in 0..2 {
        let id = id_of(&world.post(path, &json!({})).await);
        let owner = last_at(&world, path);
        for conversation in [json!(id), json!({"id": id})] {
            let body = wish(&json!({"conversation": conversation}));
            id_of(&world.post(RESPONSES, &body).await);
            assert_eq!(last_at(&world, RESPONSES), owner);
        }
        let theirs = read_as(&world, OTHER, &format!("{path}/{id}")).await;
        check_refused(&theirs, 404, "owner_unknown", "owner_unknown");
    }
    world.end().await;
}

#[tokio::test]
async fn a_turn_goes_on_where_it_began() {
    let world = two().start().await;
    for state in ["turn-a", "turn-b"] {
        let named = Act::default().header("x-codex-turn-state", state);
        world.sim.script([Rule::new(named).times(1)]);
        let answer = world.post(RESPONSES, &wish(&json!({}))).await;
        assert_eq!(answer.header("x-codex-turn-state"), state);
        let owner = last_at(&world, RESPONSES);
        for _ in 0..2 {
            let mut next = asks(KEY, Method::POST, RESPONSES, &wish(&json!({})));
            let value = HeaderValue::from_static(state);
            next.headers_mut().insert("x-codex-turn-state", value);
            assert_eq!(world.answer(next).await.status, 200);
            assert_eq!(last_at(&world, RESPONSES), owner);
        }
    }
    world.end().await;
}

#[tokio::test]
async fn no_id_is_told_that_could_not_be_recorded() {
    let world = two().start().await;
    let (id, _) = file(&world, KEY).await;
    let conn = rusqlite::Connection::open(world.db()).unwrap();
    conn.execute_batch("ALTER TABLE owners RENAME TO elsewhere")
        .unwrap();
    let answer = world.answer(upload(KEY)).await;
    check_refused(&answer, 503, "store_unavailable", "store_unavailable");
    assert_eq!(answer.header("x-should-retry"), "false");
    assert!(!String::from_utf8_lossy(&answer.body).contains("file-"));
    // What is in memory is known; what is not cannot be looked up.
    let known = world.answer(get(&format!("/v1/files/{id}"))).await;
    assert_eq!(id_of(&known), id);
    for path in ["/v1/files/file-x", "/v1/files"] {
        let unread = world.answer(get(path)).await;
        check_refused(&unread, 503, "store_unavailable", "store_unavailable");
    }
    // What names nothing does not need the disk.
    assert_eq!(world.post(RESPONSES, &wish(&json!({}))).await.status, 200);
    conn.execute_batch("ALTER TABLE elsewhere RENAME TO owners")
        .unwrap();
    file(&world, KEY).await;
    world.end().await;
}

#[tokio::test]
async fn an_answer_that_must_be_read_comes_in_no_coding_that_cannot_be_undone() {
    let world = two().start().await;
    let check = async |mut request: Request<Full<Bytes>>, path: &str, expect: &str| {
        let offer = HeaderValue::from_static("gzip, br, zstd");
        request.headers_mut().insert("accept-encoding", offer);
        assert_eq!(world.answer(request).await.status, 200);
        let seen = world.seen(path).pop().unwrap();
        assert_eq!(seen.header("accept-encoding"), Some(expect), "{path}");
    };
    let generation = wish(&json!({}));
    let made = asks(KEY, Method::POST, RESPONSES, &generation);
    check(made, RESPONSES, "gzip, zstd").await;
    check(upload(KEY), "/v1/files", "gzip, zstd").await;
    check(get("/v1/files"), "/v1/files", "identity").await;
    let chat = crate::harness::chat(false);
    let other = asks(KEY, Method::POST, "/v1/chat/completions", &chat);
    check(other, "/v1/chat/completions", "gzip, br, zstd").await;
    world.end().await;
}
