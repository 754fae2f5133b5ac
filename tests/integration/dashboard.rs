//! The dashboard through the real listeners: who is let in, from where, and to what.
use crate::harness::{Answer, Setup, World};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;

const PASSWORD: &str = "correct-horse-battery";

/// A request as a browser sends it for a form of the page itself.
fn browse(method: Method, path: &str, cookie: &str, form: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("origin", "http://localhost")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("cookie", cookie)
        .body(Full::new(Bytes::from(form.to_owned())))
        .unwrap()
}

async fn get(world: &World, path: &str, cookie: &str) -> Answer {
    world.answer(browse(Method::GET, path, cookie, "")).await
}

/// Logs in and gives the cookie.
async fn log_in(world: &World) -> String {
    let form = format!("password={PASSWORD}");
    let answer = world
        .answer(browse(Method::POST, "/login", "", &form))
        .await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
    let cookie = answer.header("set-cookie");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_environments_password_opens_dashboard_and_api_with_one_cookie() {
    let setup = Setup::default().env("FAIRLANE_ADMIN_PASSWORD", PASSWORD);
    let world = setup.start().await;
    assert!(world.app.setup_token.is_none());
    let stranger = get(&world, "/", "").await;
    assert_eq!(stranger.header("location"), "/login");
    let cookie = log_in(&world).await;
    let overview = get(&world, "/", &cookie).await;
    assert_eq!(overview.status, StatusCode::OK);
    assert!(String::from_utf8_lossy(&overview.body).contains("<h1>Overview</h1>"));
    assert_eq!(
        get(&world, "/api/admin/keys", "").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        get(&world, "/api/admin/keys", &cookie).await.status,
        StatusCode::OK
    );
    world.end().await;
}

#[tokio::test]
async fn from_the_machine_itself_the_set_up_asks_for_no_token() {
    let world = World::start().await;
    assert!(world.app.setup_token.is_some());
    let page = get(&world, "/setup/password", "").await;
    assert!(!String::from_utf8_lossy(&page.body).contains("name=\"token\""));
    let form = format!("password={PASSWORD}&repeated={PASSWORD}");
    let set = world
        .answer(browse(Method::POST, "/setup/password", "", &form))
        .await;
    assert_eq!(set.header("location"), "/setup");
    log_in(&world).await;
    world.end().await;
}

#[tokio::test]
async fn with_a_listener_of_its_own_the_dashboard_is_there_and_only_there() {
    let setup = Setup::default()
        .env("FAIRLANE_ADMIN_PASSWORD", PASSWORD)
        .env("FAIRLANE_ADMIN_LISTEN", "127.0.0.1:0");
    let world = setup.start().await;
    assert_eq!(
        get(&world, "/login", "").await.status,
        StatusCode::NOT_FOUND
    );
    let admin = world.app.admin_address.unwrap();
    let page = world
        .answer_at(admin, browse(Method::GET, "/login", "", ""))
        .await;
    assert_eq!(page.status, StatusCode::OK);
    world.end().await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_that_speaks_tls_the_cookie_is_secure() {
    let setup = Setup::default()
        .env("FAIRLANE_ADMIN_PASSWORD", PASSWORD)
        .env("FAIRLANE_TRUSTED_PROXIES", "127.0.0.1");
    let world = setup.start().await;
    let mut request = browse(Method::POST, "/login", "", &format!("password={PASSWORD}"));
    let headers = request.headers_mut();
    headers.insert("x-forwarded-proto", "https".parse().unwrap());
    headers.insert("x-forwarded-for", "198.51.100.9".parse().unwrap());
    let answer = world.answer(request).await;
    assert!(
        answer.header("set-cookie").ends_with("; Secure"),
        "{answer:?}"
    );
    let sessions = world.app.store().sessions().await.unwrap();
    assert_eq!(sessions[0].address, "198.51.100.9");
    world.end().await;
}

#[tokio::test]
async fn a_password_that_was_reset_from_the_shell_ends_every_session() {
    let setup = Setup::default().env("FAIRLANE_ADMIN_PASSWORD", PASSWORD);
    let world = setup.start().await;
    let cookie = log_in(&world).await;
    let reset = tokio::process::Command::new(env!("CARGO_BIN_EXE_fairlane"))
        .args(["admin", "reset-password", "--db"])
        .arg(world.db())
        .output()
        .await
        .unwrap();
    assert!(reset.status.success(), "{reset:?}");
    let printed = String::from_utf8(reset.stdout).unwrap();
    assert_eq!(get(&world, "/", &cookie).await.header("location"), "/login");
    let try_it = async |password: &str| {
        let form = format!("password={password}");
        let request = browse(Method::POST, "/login", "", &form);
        world.answer(request).await.status
    };
    assert_eq!(try_it(PASSWORD).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(try_it(printed.trim_end()).await, StatusCode::SEE_OTHER);
    world.end().await;
}
