//! Every page in every language, held against what holds for all of them. Colours are those of one
//! language in all of them, so that each theme is looked at in full in one.
use crate::{
    audit::{First, THEMES, Visit, faults},
    chrome::Script,
    program::{KEY, pool},
    stage::{PASSWORD, Stage, play},
};
use fairlane::sim::{Act, Rule};
use fantoccini::Locator;
use serde_json::json;

#[test]
fn every_page_serves_everybody_in_english() {
    check("en", THEMES[0]);
}

#[test]
fn every_page_serves_everybody_in_english_in_the_dark() {
    check("en", THEMES[1]);
}

#[test]
fn every_page_serves_everybody_in_korean() {
    check("ko", THEMES[1]);
}

#[test]
fn every_page_serves_everybody_in_chinese() {
    check("zh-CN", THEMES[0]);
}

fn check(language: &'static str, theme: &str) {
    let document = |base_url: &str| {
        let mut document = pool(base_url);
        // One stream, and one that is kept for what must not wait.
        document["accounts"][0]["stream_limit"] = json!(2);
        Some(document)
    };
    play(language, Script::On, document, async |stage| {
        let mut found = look(stage, theme, &before_a_password()).await;
        stage.choose_password().await;
        stage.browser.at("/").await;
        stage.browser.client.delete_all_cookies().await.unwrap();
        found.extend(look(stage, theme, &before_a_session()).await);
        log_in(stage).await;
        leave_traces(stage);
        let mut visits = in_the_navigation(stage).await;
        visits.extend(in_the_pool(stage).await);
        visits.extend(of_keys(stage).await);
        visits.extend(in_the_log(stage).await);
        visits.extend(elsewhere(theme));
        found.extend(look(stage, theme, &visits).await);
        found.extend(in_use(stage, theme).await);
        assert!(found.is_empty(), "{}", found.join("\n"));
    });
}

async fn look(stage: &Stage, theme: &str, visits: &[Visit]) -> Vec<String> {
    let mut found = Vec::new();
    for visit in visits {
        found.extend(faults(stage, visit, theme).await);
    }
    found
}

fn visit(path: &str, first: First, status: u16) -> Visit {
    Visit {
        path: path.to_owned(),
        first,
        status,
    }
}

fn open(path: &str) -> Visit {
    visit(path, First::Nothing, 200)
}

fn refused(path: &str) -> Visit {
    visit(path, First::Send, 422)
}

/// A text is typed into a field, and its form is sent.
fn types(path: &str, field: &'static str, text: &str, then: &'static str) -> Visit {
    let text = text.to_owned();
    visit(path, First::Type { field, text, then }, 200)
}

fn before_a_password() -> Vec<Visit> {
    vec![open("/setup/password"), refused("/setup/password")]
}

fn before_a_session() -> Vec<Visit> {
    vec![
        open("/login"),
        refused("/login"),
        visit("/no/such/page", First::Nothing, 404),
    ]
}

fn elsewhere(theme: &str) -> Vec<Visit> {
    vec![
        visit("/", First::Unfold, 200),
        open("/setup/account"),
        open("/setup/account?preset=openai"),
        open("/setup/account?preset=custom"),
        refused("/setup/account?preset=custom"),
        open("/setup/key"),
        refused("/setup/key"),
        types(
            "/setup/key",
            "#name",
            &format!("set up in {theme}"),
            "#secret",
        ),
        types("/settings", "#account_stream_limit", "12", ".review"),
    ]
}

/// Whatever the navigation leads to.
async fn in_the_navigation(stage: &Stage) -> Vec<Visit> {
    stage.open("/").await;
    let links = links(stage, ".rail-menu ul a").await;
    assert!(links.len() >= 4, "{links:?}");
    links.iter().map(|path| open(path)).collect()
}

async fn in_the_pool(stage: &Stage) -> Vec<Visit> {
    stage.open("/pool").await;
    let mut visits = Vec::new();
    for sort in ["accounts", "credentials", "endpoints"] {
        let new = format!("/pool/{sort}/new");
        visits.extend([open(&new), refused(&new)]);
        let section = format!("section[aria-labelledby='{sort}-title'] tbody a");
        let mut rows = links(stage, &section).await;
        rows.dedup();
        assert!(rows.len() >= 2, "{rows:?}");
        visits.extend(rows.iter().map(|path| open(path)));
        visits.push(open(&format!("{}/remove", rows[0])));
        if sort == "credentials" {
            visits.push(open(&format!("{}/rotate", rows[0])));
        }
    }
    visits.extend([tested(), open("/pool/import"), refused("/pool/import")]);
    visits.extend([
        open("/pool/matrix"),
        open("/pool/explain"),
        open("/pool/explain?protocol=openai&model=gpt-4o-mini"),
    ]);
    let document = pool("http://127.0.0.1:9").to_string();
    visits.push(types(
        "/pool/import",
        "#text",
        &document,
        "[name='pending']",
    ));
    visits
}

/// What a credential gets from its provider.
fn tested() -> Visit {
    let (button, then) = ("button[id^='test-cred']", "main .facts");
    visit("/pool", First::Press { button, then }, 200)
}

/// The one key that there is, and what can be done to it.
async fn of_keys(stage: &Stage) -> Vec<Visit> {
    stage.open("/keys").await;
    let key = &links(stage, "tbody th a").await[0];
    let [rotate, revoke] = ["rotate", "revoke"].map(|action| format!("{key}/{action}"));
    vec![
        open("/keys?search=none"),
        open("/keys/new"),
        visit("/keys/new", First::Unfold, 200),
        refused("/keys/new"),
        types(
            "/keys/new",
            "#name",
            &format!("made for {}", stage.language),
            "#secret",
        ),
        open(key),
        open(&rotate),
        open(&revoke),
        refused(&revoke),
    ]
}

/// The log, and one request that went well and one that did not.
async fn in_the_log(stage: &Stage) -> Vec<Visit> {
    let both = async || {
        stage.open("/requests").await;
        let rows = links(stage, "tbody th a").await;
        (rows.len() == 2).then_some(rows)
    };
    let rows = stage.browser.until("two requests in the log", both).await;
    let mut visits: Vec<_> = rows.iter().map(|path| open(path)).collect();
    visits.push(open("/requests?outcome=ok"));
    visits
}

/// The pages of a stream that is in flight while another waits for its slot, and those that follow
/// when its slots were released.
async fn in_use(stage: &Stage, theme: &str) -> Vec<String> {
    let endless = Act {
        stall_after: Some(1),
        ..Act::chunks(["data: {}\n\n"]).header("content-type", "text/event-stream")
    };
    stage.provider.sim.clear_rules();
    stage.provider.sim.script([Rule::new(endless).path("chat")]);
    let ask = json!({"model": "gpt-4o-mini", "stream": true, "messages": []}).to_string();
    let begin = || stage.instance.begin("POST /v1/chat/completions", KEY, &ask);
    let _streams = [begin(), begin()];
    let lead = async || {
        stage.open("/concurrency").await;
        let first = async |css| links(stage, css).await.into_iter().next();
        let release = first("#live-rows a[href^='/concurrency/release']").await?;
        Some((release, first("#wait-rows a").await?))
    };
    let looked = stage.browser.until("one stream, and one that waits", lead);
    let (release, waits) = looked.await;
    stage.open("/keys").await;
    let key = links(stage, "tbody th a").await[0].replace("/keys/", "");
    let visits = [
        open("/concurrency"),
        open(&format!("/concurrency?key={key}")),
        open(&waits),
        open("/concurrency/reset"),
        open(&release),
    ];
    let mut found = look(stage, theme, &visits).await;
    stage.open(&release).await;
    stage.browser.press(".confirm .is-danger").await;
    stage.browser.find("main [role='status']").await;
    let visits = [
        open("/concurrency?done=released"),
        open("/concurrency?done=reset&slots=0&granted=0"),
        visit(&release, First::Nothing, 404),
    ];
    found.extend(look(stage, theme, &visits).await);
    found
}

async fn links(stage: &Stage, css: &str) -> Vec<String> {
    let found = stage.browser.client.find_all(Locator::Css(css)).await;
    let mut paths = Vec::new();
    for link in found.unwrap() {
        paths.push(link.attr("href").await.unwrap().unwrap());
    }
    paths
}

async fn log_in(stage: &Stage) {
    let browser = &stage.browser;
    stage.open("/login").await;
    browser.fill("#password", PASSWORD).await;
    browser.press("form[action='/login'] .is-primary").await;
    browser.at("/").await;
}

/// A request that goes well, and one that does not.
fn leave_traces(stage: &Stage) {
    let (status, answer) = stage.instance.chat(KEY);
    assert_eq!(status, 200, "{answer}");
    let broken = Act {
        status: Some(500),
        message: Some("The provider is out of order.".to_owned()),
        ..Act::default()
    };
    stage.provider.sim.script([Rule::new(broken).path("chat")]);
    let (status, answer) = stage.instance.chat(KEY);
    assert_eq!(status, 500, "{answer}");
}
