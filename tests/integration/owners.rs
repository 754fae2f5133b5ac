//! What lives on upstream is reached where it lives, by the key that made it and by no other.
#![expect(
    clippy::unwrap_used,
    reason = "a helper whose peer does not play along has failed its test"
)]

mod affinity;
mod bound;
mod lists;

use crate::{
    hand::within,
    harness::{Answer, KEY, Setup, World, request},
};
use bytes::Bytes;
use fairlane::{
    app::App,
    config::Boot,
    domain::pool::{DisabledReason, State},
};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

const RESPONSES: &str = "/v1/responses";

/// Another client's key.
const OTHER: &str = "fl-other-key-of-these-tests-01";

/// Two accounts without limits, and two keys.
fn two() -> Setup {
    let keys = json!([{"name": "test", "secret": KEY}, {"name": "other", "secret": OTHER}]);
    Setup::default().account("two").with("/keys", keys)
}

fn asks(key: &str, method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() {
        Full::default()
    } else {
        Full::from(body.to_string())
    };
    let mut request = request(method, path)
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    let bearer = HeaderValue::try_from(format!("Bearer {key}")).unwrap();
    request.headers_mut().insert("authorization", bearer);
    request
}

async fn read_as(world: &World, key: &str, path: &str) -> Answer {
    world
        .answer(asks(key, Method::GET, path, &Value::Null))
        .await
}

fn wish(more: &Value) -> Value {
    let mut wish = json!({"model": "m", "input": "say a few words"});
    let fields = more.as_object().unwrap().clone();
    wish.as_object_mut().unwrap().extend(fields);
    wish
}

fn continuing(id: &str) -> Value {
    wish(&json!({"previous_response_id": id}))
}

/// Which account got the last request for that path.
fn last_at(world: &World, path: &str) -> String {
    world.seen(path).pop().unwrap().credential.unwrap()
}

fn id_of(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Makes a response; its id and who has it.
async fn response(world: &World) -> (String, String) {
    let id = id_of(&world.post(RESPONSES, &wish(&json!({}))).await);
    (id, last_at(world, RESPONSES))
}

/// Sends a file; its id and who has it.
async fn file(world: &World, key: &str) -> (String, String) {
    let id = id_of(&world.answer(upload(key)).await);
    (id, last_at(world, "/v1/files"))
}

fn upload(key: &str) -> Request<Full<Bytes>> {
    let form = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
        --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n\
        {\"custom_id\":\"one\"}\n\r\n--b--\r\n";
    let mut request = asks(key, Method::POST, "/v1/files", &Value::Null);
    let form_type = HeaderValue::from_static("multipart/form-data; boundary=b");
    request.headers_mut().insert("content-type", form_type);
    *request.body_mut() = Full::from(form);
    request
}

/// Two files of the usual key's on two accounts.
async fn two_files(world: &World) -> [(String, String); 2] {
    let files = [file(world, KEY).await, file(world, KEY).await];
    assert_ne!(files[0].1, files[1].1, "both on one account");
    files
}

fn check_refused(answer: &Answer, status: u16, reason: &str, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.reason(), reason, "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], code, "{answer:?}");
}

/// Ends the instance and starts another one on the same database.
async fn restarted(world: World) -> World {
    let World { sim, app, dir } = world;
    app.stop().await.unwrap();
    let db = dir.path().join("fairlane.db").display().to_string();
    let env = [("FAIRLANE_DB", &*db), ("FAIRLANE_LISTEN", "127.0.0.1:0")];
    let env = env.into_iter().map(|(n, v)| (n.into(), v.into()));
    let app = App::start(&Boot::from_vars(env).unwrap()).await.unwrap();
    World { sim, app, dir }
}

/// The name of the account that has that secret.
fn account_with(secret: &str) -> &'static str {
    if secret.ends_with("-two") {
        "two"
    } else {
        "one"
    }
}

/// Puts an account into another state, or takes its credential away.
async fn change(world: &World, account: &str, state: Option<State>) {
    let store = world.app.store();
    if let Some(state) = state {
        let accounts = store.accounts().await.unwrap();
        let mut account = accounts.into_iter().find(|a| &*a.name == account).unwrap();
        account.state = state;
        assert!(store.update_account(account).await.unwrap());
    } else {
        let credentials = store.credentials().await.unwrap();
        let credential = credentials.iter().find(|c| &*c.name == account).unwrap();
        assert!(store.remove_credential(credential.id).await.unwrap());
    }
}

/// Asks until the answer is as wished; each round waits for its answer.
async fn until(world: &World, body: &Value, wish: impl Fn(&Answer) -> bool) -> Answer {
    let asking = async {
        loop {
            let answer = world.post(RESPONSES, body).await;
            if wish(&answer) {
                return answer;
            }
        }
    };
    within("a change to take effect", asking).await
}

const DISABLED: State = State::Disabled(DisabledReason::Operator);
