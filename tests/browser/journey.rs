//! An operator's way through the product: set-up from nothing, leaving and coming back, the pool,
//! the settings.
use crate::{
    chrome::Script,
    stage::{PASSWORD, Stage, play},
};
use fantoccini::Locator;
use serde_json::json;

/// The secret that the set-up saves.
const FIRST_SECRET: &str = "sk-browser-first-0123456789";

/// The secret that is added to the pool afterwards.
const SECOND_SECRET: &str = "sk-browser-second-0123456789";

/// The secret that takes the place of the first.
const ROTATED_SECRET: &str = "sk-browser-rotated-0123456789";

/// The key that is made on the Keys page.
const KEY_NAME: &str = "second-key";

#[test]
fn an_operator_is_served_in_english() {
    check("en", Script::On);
}

#[test]
fn an_operator_is_served_in_korean() {
    check("ko", Script::On);
}

#[test]
fn an_operator_is_served_in_chinese() {
    check("zh-CN", Script::On);
}

#[test]
fn an_operator_is_served_in_english_without_script() {
    check("en", Script::Off);
}

#[test]
fn an_operator_is_served_in_korean_without_script() {
    check("ko", Script::Off);
}

#[test]
fn an_operator_is_served_in_chinese_without_script() {
    check("zh-CN", Script::Off);
}

fn check(language: &'static str, script: Script) {
    play(
        language,
        script,
        |_| None,
        async |stage| {
            set_up(stage).await;
            leave_and_come_back(stage).await;
            extend_the_pool(stage).await;
            keep_a_key(stage).await;
            change_a_setting(stage).await;
        },
    );
}

/// The guide, until a request with the key that it showed has come through.
async fn set_up(stage: &Stage) {
    stage.choose_password().await;
    page_runs_script_as_meant(stage).await;
    save_an_account(stage).await;
    let secret = make_a_key(stage).await;
    wait_for_a_request(stage, &secret).await;
    stage.browser.press(".actions .is-primary").await;
    stage.browser.at("/").await;
    stage.says("h1", "overview-title").await;
}

/// The page itself notes the time zone in a cookie if it may run script; and what stands in a
/// `noscript` element is an element only if it may not.
async fn page_runs_script_as_meant(stage: &Stage) {
    let browser = &stage.browser;
    stage.says("h1", "setup-account-title").await;
    let tag = format!("html[lang='{}']", stage.language);
    browser.find(&tag).await;
    let cookies = browser.client.get_all_cookies().await.unwrap();
    let has_zone = cookies.iter().any(|c| c.name() == "fairlane_zone");
    assert_eq!(has_zone, stage.script == Script::On);
}

/// An address of one's own, tested before it is saved.
async fn save_an_account(stage: &Stage) {
    let browser = &stage.browser;
    browser.at("/setup/account").await;
    browser
        .press("a[href='/setup/account?preset=custom']")
        .await;
    browser.fill("#name", "team").await;
    let base_url = stage.provider.sim.base_url();
    browser.fill("#base_url", &base_url).await;
    if stage.script == Script::On {
        browser.text("#called code", &base_url).await;
        what_is_called_follows_the_protocol(stage).await;
    }
    browser.fill("#secret", FIRST_SECRET).await;
    browser.press("#account [value='test']").await;
    browser.text("#tested .is-ok", "200").await;
    let called = browser.text("#tested code", &base_url).await;
    assert!(called.ends_with("/models"), "{called}");
    let secrets: Vec<_> = stage.provider.sim.log();
    assert_eq!(secrets[0].credential.as_deref(), Some(FIRST_SECRET));
    if stage.script == Script::Off {
        // A whole page came, and a secret is never sent back.
        browser.fill("#secret", FIRST_SECRET).await;
    }
    browser.press("#account [value='save']").await;
    browser.at("/setup/key").await;
}

/// Another protocol is called elsewhere, also if nothing is typed any more.
async fn what_is_called_follows_the_protocol(stage: &Stage) {
    let browser = &stage.browser;
    browser.press("#protocol [value='gemini']").await;
    browser.text("#called code", "/v1beta").await;
    browser.press("#protocol [value='openai']").await;
    let base_url = stage.provider.sim.base_url();
    browser
        .text("#called code", &format!("{base_url}/v1/"))
        .await;
}

/// The first key; gives its secret.
async fn make_a_key(stage: &Stage) -> String {
    let browser = &stage.browser;
    stage.says("h1", "setup-key-title").await;
    browser.fill("#name", "ci").await;
    browser.press("form[action='/setup/key'] .is-primary").await;
    stage.says("h1", "setup-done-title").await;
    let secret = browser.text("#secret", "fl-").await;
    let snippet = browser.text(".snippet pre", &secret).await;
    let address = stage.instance.address.to_string();
    assert!(snippet.contains(&address), "{snippet}");
    let copies = Locator::Css("[data-copy]:not([hidden])");
    let copies = browser.client.find_all(copies).await.unwrap().len();
    assert_eq!(copies > 1, stage.script == Script::On, "{copies}");
    stage.says("#seen .is-wait", "key-not-seen").await;
    secret
}

async fn wait_for_a_request(stage: &Stage, secret: &str) {
    let (status, answer) = stage.instance.chat(secret);
    assert_eq!(status, 200, "{answer}");
    if stage.script == Script::Off {
        // The line is as old as the page; the request is in the log within a moment.
        let refresh = async || {
            stage.browser.press("noscript a").await;
            let seen = Locator::Css("#seen .is-ok");
            stage.browser.client.find(seen).await.ok()
        };
        stage.browser.until("the request", refresh).await;
    }
    let seen = stage.says("#seen .is-ok", "key-seen").await;
    assert!(seen.contains("200"), "{seen}");
}

async fn leave_and_come_back(stage: &Stage) {
    let browser = &stage.browser;
    stage.open("/settings").await;
    browser.press("form[action='/logout'] button").await;
    browser.at("/login").await;
    stage.open("/settings").await;
    browser.at("/login").await;
    stage.says("h1", "login-title").await;
    browser.fill("#password", "not it").await;
    browser.press("form[action='/login'] .is-primary").await;
    stage.says("#password-fault", "login-wrong").await;
    browser.fill("#password", PASSWORD).await;
    browser.press("form[action='/login'] .is-primary").await;
    browser.at("/settings").await;
}

/// Another endpoint, account and credential, and another secret for the first one.
async fn extend_the_pool(stage: &Stage) {
    let browser = &stage.browser;
    add(stage, "endpoints", "second-endpoint", async || {
        let base_url = stage.provider.sim.base_url();
        browser.fill("#base_url", &base_url).await;
        choose(stage, "protocols", "openai").await;
        if stage.script == Script::On {
            // It was typed before there was a protocol to call it by.
            browser.text("#called code", &base_url).await;
        }
    })
    .await;
    add(stage, "accounts", "second-account", async || {}).await;
    add(stage, "credentials", "second-credential", async || {
        browser.fill("#secret", SECOND_SECRET).await;
        choose(stage, "endpoints", "second-endpoint").await;
        choose(stage, "accounts", "second-account").await;
    })
    .await;
    let page = browser.client.source().await.unwrap();
    for secret in [FIRST_SECRET, SECOND_SECRET] {
        assert!(!page.contains(secret), "a secret was sent back");
    }
    rotate_the_first_credential(stage).await;
}

/// Adds one thing to the pool, on its form, which `rest` fills in but for the name.
async fn add(stage: &Stage, sort: &str, name: &str, rest: impl AsyncFnOnce()) {
    let browser = &stage.browser;
    browser.press(".rail-menu a[href='/pool']").await;
    browser.at("/pool").await;
    browser.press(&format!("a[href='/pool/{sort}/new']")).await;
    browser.fill("#name", name).await;
    rest().await;
    let form = format!("form[action='/pool/{sort}/new'] .is-primary");
    browser.press(&form).await;
    browser.at("/pool").await;
    let section = format!("section[aria-labelledby='{sort}-title']");
    browser.text(&section, name).await;
}

/// Ticks the box that stands beside `word`.
async fn choose(stage: &Stage, fieldset: &str, word: &str) {
    let path = format!("//fieldset[@id='{fieldset}']//label[normalize-space()='{word}']/input");
    stage.browser.click(Locator::XPath(&path)).await;
}

/// Gives the first credential another secret.
async fn rotate_the_first_credential(stage: &Stage) {
    let browser = &stage.browser;
    let rotate = "section[aria-labelledby='credentials-title'] a[href$='/rotate']";
    let form = browser.find(rotate).await.attr("href").await.unwrap();
    stage.open(&form.unwrap()).await;
    let effect = stage.words("pool-rotate-effect");
    browser.text("form.confirm", &effect).await;
    browser.fill("#secret", ROTATED_SECRET).await;
    browser.press("form.confirm .is-danger").await;
    browser.at("/pool").await;
}

/// A key's whole life: made, shown once, used, rotated, revoked.
async fn keep_a_key(stage: &Stage) {
    let browser = &stage.browser;
    browser.press(".rail-menu a[href='/keys']").await;
    browser.at("/keys").await;
    browser.press("a[href='/keys/new']").await;
    browser.fill("#name", KEY_NAME).await;
    browser.press("form[action='/keys/new'] .is-primary").await;
    stage.says("h1", "keys-made-title").await;
    let first = browser.text("#secret", "fl-").await;
    is_carried_by_the_new_pool(stage, &first);
    let path = key_row(stage).await;
    let page = browser.client.source().await.unwrap();
    assert!(!page.contains(&first), "a secret was shown twice");

    stage.open(&format!("{path}/rotate")).await;
    stage.says("form.confirm", "keys-rotate-effect").await;
    browser.press("form.confirm .is-danger").await;
    stage.says("h1", "keys-rotated-title").await;
    let second = browser.text("#secret", "fl-").await;
    assert_eq!(stage.instance.chat(&first).0, 401);
    is_carried_by_the_new_pool(stage, &second);
    revoke(stage, &path).await;
    assert_eq!(stage.instance.chat(&second).0, 401);
}

/// Opens the list. Gives the address of the key's own page.
async fn key_row(stage: &Stage) -> String {
    let browser = &stage.browser;
    browser.press(".actions a[href='/keys']").await;
    browser.at("/keys").await;
    let link = format!("//tbody//th/a[normalize-space()='{KEY_NAME}']");
    let link = browser.found(Locator::XPath(&link)).await;
    link.attr("href").await.unwrap().unwrap()
}

/// Takes a key away that was used today: its name must be typed.
async fn revoke(stage: &Stage, path: &str) {
    let browser = &stage.browser;
    // The request is in the log within a moment.
    let asks_its_name = async || {
        stage.open(&format!("{path}/revoke")).await;
        let field = Locator::Css("form.confirm #name");
        browser.client.find(field).await.ok()
    };
    browser
        .until("the question for its name", asks_its_name)
        .await;
    browser.fill("form.confirm #name", KEY_NAME).await;
    browser.press("form.confirm .is-danger").await;
    browser.at("/keys").await;
    browser.find("main [role='status'] .is-ok").await;
    let rows = browser.client.find_all(Locator::Css("tbody th")).await;
    for row in rows.unwrap() {
        assert_ne!(row.text().await.unwrap(), KEY_NAME);
    }
}

/// Requests are carried by what the pool has now.
fn is_carried_by_the_new_pool(stage: &Stage, secret: &str) {
    let (status, answer) = stage.instance.chat(secret);
    assert_eq!(status, 200, "{answer}");
    let log = stage.provider.sim.log();
    let chat = log.iter().rfind(|r| r.target.contains("chat/completions"));
    let carried_by = chat.unwrap().credential.as_deref();
    let carriers = [Some(SECOND_SECRET), Some(ROTATED_SECRET)];
    assert!(carriers.contains(&carried_by), "{carried_by:?}");
}

/// An override is in force until it is cleared.
async fn change_a_setting(stage: &Stage) {
    let browser = &stage.browser;
    stage.open("/settings").await;
    let key = "account_stream_limit";
    let field = format!("#{key}");
    let before = value(stage, &field).await;
    assert_ne!(before, json!("12"));
    browser.fill(&field, "12").await;
    let save = format!("form:has({field}) .actions .is-primary");
    browser.press(&save).await;
    stage.says("h1", "review-title").await;
    browser.text(".change-to", "12").await;
    browser.press("[name='confirmed']").await;
    stage.says("main [role='status']", "settings-saved").await;
    assert_eq!(value(stage, &field).await, json!("12"));
    browser
        .press(&format!("button[name='setting'][value='{key}']"))
        .await;
    browser.at("/settings").await;
    stage.says("main [role='status']", "settings-cleared").await;
    assert_eq!(value(stage, &field).await, before);
}

async fn value(stage: &Stage, field: &str) -> serde_json::Value {
    let field = stage.browser.find(field).await;
    json!(field.prop("value").await.unwrap())
}
