//! Lists show a key its own things.
use super::*;
use crate::harness::{SECRET, secret_of};
use fairlane::sim::{Act, Rule};

async fn listed(world: &World, key: &str, query: &str) -> (Vec<String>, bool) {
    let answer = read_as(world, key, &format!("/v1/files{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = answer.json();
    let data = page["data"].as_array().unwrap();
    let ids: Vec<String> = data
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(page["first_id"].as_str(), ids.first().map(|id| &**id));
    assert_eq!(page["last_id"].as_str(), ids.last().map(|id| &**id));
    (ids, page["has_more"].as_bool().unwrap())
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

#[tokio::test]
async fn a_list_shows_the_keys_own_things_on_all_its_accounts() {
    let world = two().start().await;
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        mine.extend(two_files(&world).await.map(|(id, _)| id));
        theirs.push(file(&world, OTHER).await.0);
        // So that the other key's are on both accounts too.
        response(&world).await;
    }
    let (all, has_more) = listed(&world, KEY, "").await;
    assert_eq!((sorted(all.clone()), has_more), (sorted(mine), false));
    let (all_theirs, _) = listed(&world, OTHER, "?purpose=batch").await;
    assert_eq!(sorted(all_theirs), sorted(theirs));
    // Page by page it is the same list.
    for limit in [1, 2, 4] {
        let mut pages = Vec::new();
        let mut query = format!("?limit={limit}");
        loop {
            let (page, has_more) = listed(&world, KEY, &query).await;
            assert!(page.len() <= limit && !page.is_empty());
            query = format!("?limit={limit}&after={}", page[page.len() - 1]);
            pages.extend(page);
            if !has_more {
                break;
            }
        }
        assert_eq!(pages, all, "pages of {limit}");
    }
    world.end().await;
}

#[tokio::test]
async fn batches_are_listed_to_their_maker_with_what_they_have_made() {
    let world = two().start().await;
    let mut batches = Vec::new();
    for key in [KEY, OTHER] {
        let (input, _) = file(&world, key).await;
        let body = json!({"input_file_id": input, "endpoint": "/v1/responses",
                          "completion_window": "24h"});
        let made = asks(key, Method::POST, "/v1/batches", &body);
        batches.push(id_of(&world.answer(made).await));
    }
    let mine = &batches[0];
    // Done behind fairlane's back, so that only the list can tell what was made.
    for secret in [SECRET.to_owned(), secret_of("two")] {
        let done = asks(
            &secret,
            Method::GET,
            &format!("/v1/batches/{mine}"),
            &Value::Null,
        );
        world.answer_at(world.sim.addr, done).await;
    }
    let list = read_as(&world, KEY, "/v1/batches").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["data"][0]["id"], **mine);
    let output = list["data"][0]["output_file_id"].as_str().unwrap();
    id_of(&read_as(&world, KEY, &format!("/v1/files/{output}")).await);
    world.end().await;
}

#[tokio::test]
async fn a_list_can_be_walked_backwards_within_an_account() {
    let world = Setup::default().start().await;
    let version = HeaderValue::from_static("2023-06-01");
    let anthropic = |mut request: Request<Full<Bytes>>| {
        let headers = request.headers_mut();
        headers.insert("anthropic-version", version.clone());
        request
    };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(id_of(&world.answer(anthropic(upload(KEY))).await));
    }
    let path = format!("/v1/files?limit=1&before_id={}", ids[0]);
    let answer = world
        .answer(anthropic(asks(KEY, Method::GET, &path, &Value::Null)))
        .await;
    let page = answer.json();
    assert_eq!(page["data"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!(page["data"][0]["id"], *ids[1]);
    assert_eq!(page["has_more"], true);
    assert_eq!(world.sim.log().last().unwrap().target, path);
    world.end().await;
}

#[tokio::test]
async fn a_key_that_made_nothing_sees_an_empty_list_of_its_protocol() {
    let world = two().start().await;
    file(&world, KEY).await;
    let before = world.sim.log().len();
    for path in ["/v1/files", "/v1/batches"] {
        let answer = read_as(&world, OTHER, path).await;
        let expect = json!({"object": "list", "data": [], "has_more": false,
                            "first_id": null, "last_id": null});
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, expect));
        assert!(answer.header("x-request-id").starts_with("req_"));
    }
    let mut anthropic = asks(OTHER, Method::GET, "/v1/messages/batches", &Value::Null);
    let version = HeaderValue::from_static("2023-06-01");
    anthropic.headers_mut().insert("anthropic-version", version);
    let answer = world.answer(anthropic).await;
    let expect = json!({"data": [], "has_more": false, "first_id": null, "last_id": null});
    assert_eq!(answer.json(), expect);
    assert_eq!(world.sim.log().len(), before, "upstream was asked");
    world.end().await;
}

#[tokio::test]
async fn a_place_that_is_not_the_keys_own_is_unknown() {
    let world = two().start().await;
    let (id, _) = file(&world, KEY).await;
    file(&world, OTHER).await;
    let answer = read_as(&world, OTHER, &format!("/v1/files?after={id}")).await;
    check_refused(&answer, 404, "owner_unknown", "owner_unknown");
    world.end().await;
}

#[tokio::test]
async fn empty_pages_of_others_things_are_passed_over() {
    let world = Setup::default().start().await;
    let id = file(&world, KEY).await.0;
    let page = |ids: &[&str], has_more: bool| {
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        let page = json!({"object": "list", "data": items, "has_more": has_more});
        Act::default()
            .header("content-type", "application/json")
            .body(page.to_string())
    };
    world.sim.script([
        Rule::new(page(&["file-b"], false)).path("purpose=x&after=file-a"),
        Rule::new(page(&[&id, "file-c"], true)).path("purpose=x&after=file-9"),
        Rule::new(page(&["file-8", "file-9"], true)).path("purpose=x"),
    ]);
    let answer = read_as(&world, KEY, "/v1/files?purpose=x").await.json();
    let expect = json!({"object": "list", "data": [{"id": id}], "has_more": true});
    assert_eq!(answer, expect);
    world.end().await;
}

#[tokio::test]
async fn what_is_no_list_is_not_shown() {
    let world = two().start().await;
    let [_, (_, second)] = two_files(&world).await;
    let scripted = async |act: Act| {
        world.sim.clear_rules();
        world.sim.script([Rule::new(act).credential(&second)]);
        read_as(&world, KEY, "/v1/files").await
    };
    let answer = scripted(Act::default().body("{\"secret\":[1]}")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.reason()),
        (502, "upstream_ambiguous")
    );
    // Half a list is none: upstream's own refusal is passed on.
    let answer = scripted(Act::status(404)).await;
    assert_eq!((answer.status.as_u16(), answer.reason()), (404, ""));
    world.end().await;
}
