//! The ways through the pages: set-up to its end, log-in, refusals.
use super::*;

const LIST: &str = r#"{"object":"list","data":[{"id":"gpt-4o-mini"},{"id":"other"}]}"#;

const ACCOUNT: &str = "preset=openai&name=team&base_url=https://api.openai.com/v1&secret=sk-0123456789abcdef&limit=inherit";

#[tokio::test]
async fn the_set_up_leads_from_nothing_to_a_key_without_script() {
    let bench = bench().await;
    assert_eq!(bench.get("/").await.location(), "/setup/password");
    assert_eq!(bench.get("/login").await.location(), "/setup/password");
    bench.get("/setup/password").await.says("Choose a password");
    bench.set_up().await;
    assert_eq!(bench.get("/setup").await.location(), "/setup/account");
    bench.get("/setup/account").await.says("preset=openai");
    let form = bench.get("/setup/account?preset=openai").await;
    form.says("https://api.openai.com/v1/models");
    assert_eq!(
        bench.post("/setup/account", ACCOUNT).await.location(),
        "/setup/key"
    );

    *bench.provider.answer.lock().unwrap() = Some((200, LIST));
    let done = bench.post("/setup/key", "name=ci").await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    assert_eq!(done.header("cache-control"), "no-store");
    let secret = done
        .text
        .split("id=\"secret\" translate=\"no\">")
        .nth(1)
        .unwrap();
    let secret = secret.split('<').next().unwrap();
    assert!(secret.starts_with("fl-"), "{secret}");
    done.says(&format!("Authorization: Bearer {secret}"));
    done.says("https://lane.example.com/v1/chat/completions");
    done.says("gpt-4o-mini");
    done.says("No request seen yet");
    assert_eq!(bench.get("/setup").await.location(), "/");
    bench.get("/").await.says("Nothing waits.");
}

#[tokio::test]
async fn a_set_up_that_was_left_is_found_again() {
    let bench = bench().await;
    bench.set_up().await;
    bench.get("/").await.says("href=\"/setup/account\"");
    bench.post("/setup/account", ACCOUNT).await;
    bench.get("/").await.says("href=\"/setup/key\"");
    *bench.cookie.lock().unwrap() = String::new();
    assert_eq!(bench.get("/setup/password").await.location(), "/login");
    assert_eq!(bench.get("/setup").await.location(), "/login?next=/setup");
}

#[tokio::test]
async fn from_elsewhere_the_set_up_asks_for_the_token() {
    let mut bench = bench().await;
    bench.peer = "192.0.2.7:4711";
    bench.get("/setup/password").await.says("name=\"token\"");
    let form =
        |token: &str| format!("token={token}&password=long+enough+one&repeated=long+enough+one");
    let refused = bench.post("/setup/password", &form("setup-guess")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("That is not the token");
    let done = bench.post("/setup/password", &form(&bench.token)).await;
    assert_eq!(done.location(), "/setup");
}

#[tokio::test]
async fn logging_out_ends_the_session_and_logging_in_leads_back() {
    let bench = bench().await;
    bench.set_up().await;
    let cookie = bench.cookie.lock().unwrap().clone();
    assert_eq!(bench.post("/logout", "").await.location(), "/login");
    *bench.cookie.lock().unwrap() = cookie;
    assert_eq!(
        bench.get("/setup/key").await.location(),
        "/login?next=/setup/key"
    );
    bench
        .get("/login?next=/setup/key")
        .await
        .says("value=\"/setup/key\"");
    let wrong = bench.post("/login", "password=wrong&next=/setup/key").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    wrong.says("That is not the password.");
    let form = format!("password={PASSWORD}&next=/setup/key").replace(' ', "+");
    let right = bench.post("/login", &form).await;
    assert_eq!(right.location(), "/setup/key");
    let cookie = right.header("set-cookie");
    assert!(
        cookie.contains("HttpOnly; SameSite=Lax; Path=/"),
        "{cookie}"
    );
    assert!(!cookie.contains("Secure"), "{cookie}");
    let elsewhere = form.replace("/setup/key", "//evil.example");
    assert_eq!(bench.post("/login", &elsewhere).await.location(), "/");
}

#[tokio::test]
async fn a_test_says_what_was_called_and_never_the_secret() {
    let bench = bench().await;
    bench.set_up().await;
    let form = format!("{ACCOUNT}&action=test");
    let refused = r#"{"error":{"message":"Incorrect API key: sk-0123456789abcdef.\nMore."}}"#;
    *bench.provider.answer.lock().unwrap() = Some((401, refused));
    let whole = bench.post("/setup/account", &form).await;
    let piece = bench
        .send(
            Method::POST,
            "/setup/account",
            &form,
            &[("hx-request", "true")],
        )
        .await;
    assert!(
        piece.text.starts_with("<div id=\"tested\""),
        "{}",
        piece.text
    );
    for answer in [&whole, &piece] {
        answer.says("https://api.openai.com/v1/models");
        answer.says("401");
        answer.says("Incorrect API key: ….");
        answer.says("The provider refuses the key.");
        assert!(!answer.text.contains("sk-0123456789abcdef"));
    }
    whole.says("Keys are never sent back");
    let (called, headers) = bench.provider.seen.lock().unwrap()[0].clone();
    assert_eq!(called, "api.openai.com/v1/models");
    assert_eq!(headers["authorization"], "Bearer sk-0123456789abcdef");

    *bench.provider.answer.lock().unwrap() = Some((200, LIST));
    bench
        .post("/setup/account", &form)
        .await
        .says("It works: 2 models listed.");
    *bench.provider.answer.lock().unwrap() = None;
    bench
        .post("/setup/account", &form)
        .await
        .says("the name could not be resolved");
    assert!(
        bench
            .state
            .reload()
            .configuration()
            .pool()
            .accounts()
            .is_empty()
    );
}

#[tokio::test]
async fn what_cannot_be_saved_keeps_what_was_typed_but_the_secret() {
    let bench = bench().await;
    bench.set_up().await;
    let form = ACCOUNT
        .replace("https:", "ftp:")
        .replace("inherit", "own&own_limit=x");
    let refused = bench.post("/setup/account", &form).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("value=\"ftp://api.openai.com/v1\"");
    refused.says("id=\"base_url-fault\"");
    refused.says("id=\"own_limit-fault\"");
    assert!(!refused.text.contains("sk-0123456789abcdef"));

    assert_eq!(
        bench.post("/setup/account", ACCOUNT).await.location(),
        "/setup/key"
    );
    let again = bench.post("/setup/account", ACCOUNT).await;
    again.says("Another account has this name.");
    let other = ACCOUNT.replace("name=team", "name=other");
    bench
        .post("/setup/account", &other)
        .await
        .says("This key is in the pool already");
    let own = other
        .replace("abcdef", "zzzzzz")
        .replace("inherit", "own&own_limit=0");
    assert_eq!(
        bench.post("/setup/account", &own).await.location(),
        "/setup/key"
    );
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    let limits: Vec<_> = pool.accounts().iter().map(|a| a.stream_limit).collect();
    assert_eq!(limits, [None, Some(0)]);
    assert_eq!(
        pool.endpoints().len(),
        1,
        "the same address is one endpoint"
    );
}

#[tokio::test]
async fn what_another_site_sends_is_refused() {
    let bench = bench().await;
    bench.set_up().await;
    let evil = [("origin", "http://evil.example")];
    let refused = bench.send(Method::POST, "/logout", "", &evil).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    refused.says("another site");
    bench.get("/").await.says("<h1>Overview</h1>");
}

#[tokio::test]
async fn the_live_part_is_a_piece_and_is_sent_once() {
    let bench = bench().await;
    bench.set_up().await;
    let page = bench.get("/").await;
    page.says("<!DOCTYPE html>");
    assert!(page.header("vary").contains("hx-request"));
    let piece = bench.fragment("/").await;
    assert!(piece.text.starts_with("<div id=\"live\""), "{}", piece.text);
    let shown = [
        ("hx-request", "true"),
        ("x-shown-version", piece.header("x-version")),
    ];
    let same = bench.send(Method::GET, "/", "", &shown).await;
    assert_eq!(same.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_tick_after_signing_out_says_so_on_the_page_and_leads_nowhere() {
    let bench = bench().await;
    bench.set_up().await;
    *bench.cookie.lock().unwrap() = String::new();
    let page = "http://localhost:8080/requests?status=5xx";
    let tick = [
        ("hx-request", "true"),
        ("x-shown-version", ""),
        ("hx-current-url", page),
    ];
    let out = bench.send(Method::GET, "/", "", &tick).await;
    assert_eq!(out.status, StatusCode::UNAUTHORIZED);
    assert_eq!(out.header("hx-redirect"), "");
    assert_eq!(out.header("hx-retarget"), "#problems");
    out.says("Signed out");
    out.says("href=\"/login?next=/requests%3Fstatus%3D5xx\"");
    assert!(!out.text.contains("name=\"password\""));
    // What a person asked for leads to the login as ever.
    let asked = bench.fragment("/").await;
    assert_eq!(asked.header("hx-redirect"), "/login");
    let elsewhere = [
        tick[0],
        tick[1],
        ("hx-current-url", "https://evil.example//x"),
    ];
    let out = bench.send(Method::GET, "/", "", &elsewhere).await;
    out.says("href=\"/login\"");
}

#[tokio::test]
async fn errors_are_pages_or_pieces_with_their_status() {
    let bench = bench().await;
    let page = bench.get("/no/such/page").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    page.says("<h1>There is no such page</h1>");
    let piece = bench.fragment("/no/such/page").await;
    assert_eq!(piece.header("hx-retarget"), "#problems");
    assert!(!piece.text.contains("<html"));
    assert_eq!(
        bench.post("/", "").await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    for name in [
        "content-security-policy",
        "x-content-type-options",
        "referrer-policy",
    ] {
        assert_ne!(page.header(name), "", "{name}");
    }
    assert!(!page.header("content-security-policy").contains("unsafe"));
}

#[tokio::test]
async fn language_and_theme_are_remembered() {
    let bench = bench().await;
    let form = "language=ko&here=/setup/password";
    let chosen = bench.post("/preferences", form).await;
    assert_eq!(chosen.location(), "/setup/password");
    bench.get("/setup/password").await.says("<html lang=\"ko\"");
    bench.post("/preferences", "theme=dark&here=/").await;
    bench
        .get("/setup/password")
        .await
        .says("data-theme=\"dark\"");
    let accept = [("accept-language", "zh-CN,zh;q=0.9")];
    let chinese = bench
        .send(Method::GET, "/setup/password", "", &accept)
        .await;
    chinese.says("<html lang=\"zh-CN\"");
}

#[tokio::test]
async fn a_page_is_sent_compressed_to_whoever_takes_that() {
    let bench = bench().await;
    let accept = [("accept-encoding", "gzip")];
    let request = Request::builder()
        .uri("/login")
        .header(accept[0].0, accept[0].1)
        .body(Body::empty())
        .unwrap();
    let response = router(bench.state.clone()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let asset = Request::builder()
        .uri(assets::url("app.css"))
        .header(accept[0].0, accept[0].1)
        .body(Body::empty())
        .unwrap();
    let response = router(bench.state.clone()).oneshot(asset).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
}
