//! Who gets in, what is refused before any handler sees it, and how the process says it is.
use super::*;
use crate::{
    api::routes,
    domain::{
        ids::{KeyId, RequestId},
        ledger::{Entry, Outcome},
    },
    engine::live::Stage,
};

/// A path with an id where one belongs.
fn concrete(path: &str) -> String {
    format!("{PREFIX}{}", path.replace("{id}", "acc_0"))
}

#[tokio::test]
async fn every_route_answers_401_without_a_known_token() {
    let bench = bench().await;
    let expect = bench.raw("GET", PREFIX, None, Vec::new()).await.text;
    let mut calls: Vec<(String, String)> = routes::table()
        .into_iter()
        .map(|r| (r.method.to_string(), concrete(&r.path)))
        .collect();
    for path in [
        "",
        "/",
        "/nothing",
        "/accounts/",
        "/accounts/x/y/z",
        "//accounts",
    ] {
        calls.push(("GET".to_owned(), format!("{PREFIX}{path}")));
    }
    calls.push(("TRACE".to_owned(), concrete("/accounts")));
    calls.push(("GET".to_owned(), "/metrics".to_owned()));
    for (method, path) in calls {
        for token in [None, Some("wrong"), Some(""), Some(&TOKEN[1..])] {
            let answer = bench.raw(&method, &path, token, b"{".to_vec()).await;
            assert_eq!(answer.status, 401, "{method} {path}");
            assert_eq!(answer.text, expect, "{method} {path}");
            assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
        }
    }
    assert!(expect.contains("\"AUTH_REQUIRED\""), "{expect}");
}

#[tokio::test]
async fn a_token_counts_from_its_making_to_its_removal() {
    let bench = bench().await;
    let made = bench.ok("POST", "/tokens", &json!({"name": "ci"})).await;
    let secret = made["secret"].as_str().unwrap();
    let path = format!("{PREFIX}/tokens");
    let answer = bench.raw("GET", &path, Some(secret), Vec::new()).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.text.contains(secret));
    assert_eq!(made["secret_hint"], secret[secret.len() - 4..]);
    assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store");
    let removal = format!("/tokens/{}", id(&made));
    bench.ok("DELETE", &removal, &Value::Null).await;
    let answer = bench.raw("GET", &path, Some(secret), Vec::new()).await;
    assert_eq!(answer.status, 401);
    let gone = (404, "NOT_FOUND", "");
    bench
        .refused(("DELETE", &removal), &Value::Null, gone)
        .await;
}

#[tokio::test]
async fn a_token_needs_a_name_of_its_own() {
    let bench = bench().await;
    let call = ("POST", "/tokens");
    for body in [json!({}), json!({"name": " "}), json!({"name": 1})] {
        bench
            .refused(call, &body, (400, "INVALID_FIELD", "name"))
            .await;
    }
    let taken = (409, "NAME_TAKEN", "name");
    bench.refused(call, &json!({"name": "tests"}), taken).await;
    let unknown = json!({"name": "a", "scope": "all"});
    bench
        .refused(call, &unknown, (400, "INVALID_FIELD", "scope"))
        .await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_the_same_shape() {
    let bench = bench().await;
    let none = Value::Null;
    for path in [
        "",
        "/",
        "/nothing",
        "/accounts/nonsense",
        "/accounts/%ff",
        "/requests/req_1",
    ] {
        bench
            .refused(("GET", path), &none, (404, "NOT_FOUND", ""))
            .await;
    }
    bench
        .refused(("PUT", "/accounts"), &none, (405, "METHOD_NOT_ALLOWED", ""))
        .await;
    let answer = bench.call("PUT", "/accounts", &none).await;
    assert_eq!(answer.headers[header::ALLOW], "GET,HEAD,POST");
    let outside = bench
        .raw("GET", "/elsewhere", Some(TOKEN), Vec::new())
        .await;
    assert_eq!(
        (outside.status.as_u16(), &*outside.error().0),
        (404, "NOT_FOUND")
    );
    let wrong = bench.raw("POST", "/healthz", None, Vec::new()).await;
    assert_eq!(
        (wrong.status.as_u16(), &*wrong.error().0),
        (405, "METHOD_NOT_ALLOWED")
    );
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused_with_its_place() {
    let bench = bench().await;
    let path = format!("{PREFIX}/accounts");
    let send = async |body: &str| {
        let body = body.as_bytes().to_vec();
        bench.raw("POST", &path, Some(TOKEN), body).await
    };
    let answer = send("{\"name\":\n \"x\" \"secret-text\"}").await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.error().0),
        (400, "INVALID_JSON")
    );
    assert!(answer.text.contains("line 2, column 6"), "{}", answer.text);
    assert!(!answer.text.contains("secret-text"), "{}", answer.text);
    for body in ["", "[]", "7", "{} {}"] {
        assert_eq!(send(body).await.error().0, "INVALID_JSON", "{body}");
    }
    let large = send(&" ".repeat((1 << 20) + 1)).await;
    assert_eq!(
        (large.status.as_u16(), &*large.error().0),
        (413, "BODY_TOO_LARGE")
    );
}

#[tokio::test]
async fn a_panic_is_answered_without_a_word_of_it() {
    let bench = bench().await;
    let broken = Router::new().route(
        "/api/broken",
        get(async || -> &'static str { panic!("sk-1") }),
    );
    let router = finish(broken, bench.state.clone());
    let request = Request::get("/api/broken").body(Body::empty()).unwrap();
    let answer = bench.through(router, request).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.error().0),
        (500, "INTERNAL")
    );
    assert!(!answer.text.contains("sk-1"));
}

#[tokio::test]
async fn health_needs_no_token_and_says_why_no_work_is_wanted() {
    let bench = bench().await;
    for router in [router, own_listener, health] {
        let request = Request::get("/healthz").body(Body::empty()).unwrap();
        let answer = bench.through(router(bench.state.clone()), request).await;
        assert_eq!((answer.status.as_u16(), &*answer.text), (200, "ok"));
    }
    let ready = async || bench.raw("GET", "/readyz", None, Vec::new()).await;
    let answer = ready().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), json!({"ready": true, "reasons": []}));
    bench.readiness.drain();
    let answer = ready().await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.json()["reasons"][0]
            .as_str()
            .unwrap()
            .starts_with("draining")
    );
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_not_ready() {
    let bench = bench().await;
    bench.state.store().close();
    let answer = bench.raw("GET", "/readyz", None, Vec::new()).await;
    assert_eq!(answer.status, 503);
    let reason = answer.json()["reasons"][0].clone();
    assert!(
        reason
            .as_str()
            .unwrap()
            .starts_with("database_not_writable"),
        "{reason}"
    );
    let unavailable = (503, "STORE_UNAVAILABLE", "");
    bench
        .refused(("POST", "/accounts"), &json!({"name": "b"}), unavailable)
        .await;
}

#[tokio::test]
async fn the_health_router_serves_nothing_else() {
    let bench = bench().await;
    for path in ["/metrics", "/api/admin/pool"] {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
        let request = request.body(Body::empty()).unwrap();
        let answer = bench.through(health(bench.state.clone()), request).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn metrics_need_a_token_only_on_the_main_listener() {
    let bench = bench().await;
    let _live = bench.live.desk().enter(RequestId::from_u128(1), false);
    let request = || Request::get("/metrics").body(Body::empty()).unwrap();
    let main = bench.through(router(bench.state.clone()), request()).await;
    assert_eq!(main.status, 401);
    let own = bench
        .through(own_listener(bench.state.clone()), request())
        .await;
    let with_token = bench.raw("GET", "/metrics", Some(TOKEN), Vec::new()).await;
    for answer in [own, with_token] {
        assert_eq!(answer.status, 200);
        assert!(
            answer.text.contains("fairlane_live_requests 1\n"),
            "{}",
            answer.text
        );
        let kind = answer.headers[header::CONTENT_TYPE].to_str().unwrap();
        assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    }
}

#[tokio::test]
async fn the_admin_listener_of_its_own_guards_all_the_rest() {
    let bench = bench().await;
    let request = Request::get(concrete("/pool")).body(Body::empty()).unwrap();
    let answer = bench
        .through(own_listener(bench.state.clone()), request)
        .await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn concurrency_shows_each_request_with_its_stage() {
    let bench = bench().await;
    let live = bench.live.desk().enter(RequestId::from_u128(7), false);
    live.reach(Stage::Parked);
    let shown = bench.get("/concurrency").await;
    assert_eq!(shown["live_requests"][0]["stage"], "parked");
    assert_eq!(
        shown["live_requests"][0]["id"],
        RequestId::from_u128(7).to_string()
    );
    drop(live);
    assert_eq!(bench.get("/concurrency").await["live_requests"], json!([]));
}

fn entry(n: u128, status: u16, outcome: Outcome) -> Entry {
    Entry {
        id: RequestId::from_u128(n),
        started_at: 1_700_000_000_000,
        key: Some(KeyId::from_u128(n % 2)),
        account: None,
        credential: None,
        endpoint: None,
        protocol: None,
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        model: Some("m".into()),
        upstream_model: None,
        status: Some(status),
        reason: None,
        outcome,
        attempts: 1,
        request_bytes: 2,
        response_bytes: 3,
        queued_ms: None,
        headers_ms: Some(4),
        first_byte_ms: None,
        total_ms: Some(5),
        input_tokens: None,
        output_tokens: None,
        cached_tokens: None,
        upstream_request_id: None,
        error: None,
    }
}

/// The last digits of the listed requests.
async fn listed(bench: &Bench, query: &str) -> (Vec<String>, Value) {
    let page = bench.get(&format!("/requests{query}")).await;
    let items = page["items"].as_array().unwrap();
    let tail = |item: &Value| {
        item["id"]
            .as_str()
            .unwrap()
            .trim_start_matches("req_00000000-0000-0000-0000-")
            .trim_start_matches('0')
            .to_owned()
    };
    (
        items.iter().map(tail).collect(),
        page["next_cursor"].clone(),
    )
}

#[tokio::test]
async fn the_request_log_is_paged_and_filtered() {
    let bench = bench().await;
    let store = bench.state.store();
    for (n, status, outcome) in [
        (1, 200, Outcome::Ok),
        (2, 429, Outcome::Refused),
        (3, 502, Outcome::Failed),
        (4, 200, Outcome::Broken),
    ] {
        assert!(store.try_log(Box::new(entry(n, status, outcome))));
    }
    store.flush().await.unwrap();
    let (first, cursor) = listed(&bench, "?limit=3").await;
    assert_eq!(first, ["4", "3", "2"]);
    let cursor = cursor.as_str().unwrap().to_owned();
    let rest = listed(&bench, &format!("?limit=3&cursor={cursor}")).await;
    assert_eq!(rest, (vec!["1".to_owned()], Value::Null));
    let key = KeyId::from_u128(1);
    for (query, expect) in [
        ("?status=2xx".to_owned(), vec!["4", "1"]),
        ("?status=4".to_owned(), vec!["2"]),
        ("?outcome=failed".to_owned(), vec!["3"]),
        (format!("?key={key}&status=5xx"), vec!["3"]),
        ("?limit=4".to_owned(), vec!["4", "3", "2", "1"]),
    ] {
        assert_eq!(
            listed(&bench, &query).await,
            (
                expect.iter().map(|n| (*n).to_owned()).collect(),
                Value::Null
            ),
            "{query}"
        );
    }
    let one = bench
        .get(&format!("/requests/{}", RequestId::from_u128(3)))
        .await;
    assert_eq!(
        (&one["status"], &one["input_tokens"]),
        (&json!(502), &Value::Null)
    );
    assert_eq!(one["started_at"], "2023-11-14T22:13:20Z");
}

#[tokio::test]
async fn query_parameters_that_mean_nothing_are_refused() {
    let bench = bench().await;
    for (query, field) in [
        ("?limit=0", "limit"),
        ("?limit=201", "limit"),
        ("?cursor=acc_1", "cursor"),
        ("?status=6xx", "status"),
        ("?outcome=fine", "outcome"),
        ("?key=ci", "key"),
        ("?kye=1", "kye"),
        ("?limit=1&limit=2", "limit"),
    ] {
        let path = format!("/requests{query}");
        let expect = (400, "INVALID_QUERY", field);
        bench.refused(("GET", &path), &Value::Null, expect).await;
    }
}

/// A session of the operator, as the header Cookie.
async fn log_in(bench: &Bench) -> String {
    let local = Sender {
        address: [127, 0, 0, 1].into(),
        is_tls: false,
        is_local: true,
    };
    let access = bench.state.access();
    let done = access.set_up(&local, "", "a password of tests", "").await;
    assert!(matches!(done, Ok(SetUp::Done(_))), "{done:?}");
    let opened = access.log_in(&local, "a password of tests", "").await;
    match opened {
        Ok(Login::Opened(secret)) => format!("{}={secret}", crate::access::COOKIE),
        other => panic!("{other:?}"),
    }
}

async fn with_cookie(bench: &Bench, method: &str, cookie: &str, extra: (&str, &str)) -> u16 {
    let path = format!("{PREFIX}/accounts");
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::COOKIE, cookie)
        .header(header::HOST, "lane:8080")
        .header(extra.0, extra.1);
    let request = request.body(Body::from(r#"{"name":"a"}"#)).unwrap();
    let answer = bench.through(router(bench.state.clone()), request).await;
    answer.status.as_u16()
}

#[tokio::test]
async fn a_session_opens_the_api_but_not_for_pages_of_other_sites() {
    let bench = empty(Layer::default()).await;
    let cookie = log_in(&bench).await;
    let nothing = ("x-nothing", "");
    assert_eq!(with_cookie(&bench, "GET", &cookie, nothing).await, 200);
    assert_eq!(
        with_cookie(&bench, "GET", "fairlane_session=x", nothing).await,
        401
    );
    assert_eq!(with_cookie(&bench, "POST", &cookie, nothing).await, 403);
    let other = ("origin", "http://evil.example");
    assert_eq!(with_cookie(&bench, "POST", &cookie, other).await, 403);
    let own = ("origin", "http://lane:8080");
    assert_eq!(with_cookie(&bench, "POST", &cookie, own).await, 201);
}
