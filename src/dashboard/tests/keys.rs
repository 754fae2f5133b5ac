//! The ways through the Keys page: making, changing, rotating, revoking, and where the secret is.
use super::*;
use crate::{
    clock, digest,
    domain::{
        ids::{AccountId, RequestId},
        pool::{ClientKey, KeyLimits, Pool},
    },
};

const ACCOUNT: &str = "preset=openai&name=team&base_url=https://api.openai.com/v1&secret=sk-0123456789abcdef&limit=inherit";

fn pool(bench: &Bench) -> Arc<Pool> {
    Arc::clone(&bench.state.reload().configuration().pool())
}

fn key(bench: &Bench) -> ClientKey {
    (*pool(bench).keys()[0]).clone()
}

/// A bench with an account, and its id.
async fn ready() -> (Bench, AccountId) {
    let bench = bench().await;
    bench.set_up().await;
    bench.post("/setup/account", ACCOUNT).await.location();
    let account = pool(&bench).accounts()[0].id;
    (bench, account)
}

/// The secret that an answer shows.
#[track_caller]
fn shown(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let mut parts = answer.text.split("id=\"secret\" translate=\"no\">");
    let secret = parts.nth(1).unwrap().split('<').next().unwrap();
    assert!(secret.starts_with("fl-"), "{secret}");
    secret.to_owned()
}

/// With one key; its form's address and its secret.
async fn with_key(form: &str) -> (Bench, String, String) {
    let (bench, _) = ready().await;
    let secret = shown(&bench.post("/keys/new", form).await);
    let path = format!("/keys/{}", key(&bench).id);
    (bench, path, secret)
}

fn works(bench: &Bench, secret: &str) -> bool {
    let hash = digest::sha256(secret.as_bytes());
    pool(bench).key(&hash).is_some()
}

#[tokio::test]
async fn making_a_key_needs_a_name_alone_and_shows_its_secret_once() {
    let (bench, _) = ready().await;
    bench.get("/keys").await.says("No client keys yet");
    let form = bench.get("/keys/new").await;
    form.says("<details class=\"more-fields\"><summary>");
    let made = bench.post("/keys/new", "name=ci").await;
    let secret = shown(&made);
    assert_eq!(made.header("cache-control"), "no-store");
    made.says(&format!("Authorization: Bearer {secret}"));
    made.says("https://lane.example.com/v1/chat/completions");
    made.says("id=\"base-url\" translate=\"no\">https://lane.example.com<");
    let stored = key(&bench);
    assert_eq!(stored.hash, digest::sha256(secret.as_bytes()));
    assert!(secret.ends_with(&*stored.secret_hint));
    assert_eq!(
        (stored.weight, stored.accounts, stored.models),
        (1, None, None)
    );
    assert_eq!(stored.expires_at, None);
    for file in std::fs::read_dir(bench.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let text = secret.as_bytes();
        assert!(!bytes.windows(text.len()).any(|part| part == text));
    }

    let again = bench.post("/keys/new", "name=ci").await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    again.says("cannot be shown a second time");
    assert_eq!(pool(&bench).keys().len(), 1);
}

#[tokio::test]
async fn no_page_that_can_be_asked_for_holds_a_secret() {
    let (bench, path, secret) = with_key("name=ci").await;
    for page in [
        "/keys",
        "/keys/new",
        &path,
        &format!("{path}/rotate"),
        &format!("{path}/revoke"),
        "/requests",
        "/",
    ] {
        let page = bench.get(page).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(!page.text.contains(&secret), "{}", page.text);
    }
    bench.get("/keys").await.says(&format!("href=\"{path}\""));
    bench.get(&path).await.says("cannot be shown again");
}

#[tokio::test]
async fn what_a_key_may_use_is_stored_as_it_was_chosen() {
    let (bench, account) = ready().await;
    let form = format!(
        "name=ci&weight=3&accounts_scope=some&accounts={account}&models_scope=some\
         &models=gpt-4o-mini%0D%0A+own+%0D%0A&expires_at=2999-12-31"
    );
    let made = bench.post("/keys/new", &form).await;
    shown(&made);
    made.says("model=&#34;gpt-4o-mini&#34;");
    let stored = key(&bench);
    assert_eq!(stored.weight, 3);
    assert_eq!(stored.accounts, Some(vec![account]));
    let models: Vec<&str> = stored.models.iter().flatten().map(|m| &**m).collect();
    assert_eq!(models, ["gpt-4o-mini", "own"]);
    // 2999-12-31T00:00:00Z
    assert_eq!(stored.expires_at, Some(32_503_593_600_000));
    let list = bench.get("/keys").await;
    list.says("31 Dec 2999, 00:00:00");
    list.says("<span translate=\"no\">team</span>");

    let path = format!("/keys/{}", stored.id);
    let page = bench.get(&path).await;
    page.says(&format!("value=\"{account}\" checked"));
    page.says("value=\"2999-12-31\"");
    let wide = "name=all&weight=&accounts_scope=all&models_scope=all&models=own&expires_at=";
    let saved = bench.post(&path, wide).await;
    assert_eq!(saved.location(), "/keys?done=changed");
    let changed = key(&bench);
    assert_eq!((&*changed.name, changed.weight), ("all", 1));
    assert_eq!((changed.accounts, changed.models), (None, None));
    assert_eq!(changed.expires_at, None);
    assert_eq!((changed.id, changed.hash), (stored.id, stored.hash));
    bench.get("/keys?done=changed").await.says("was changed");
}

#[tokio::test]
async fn what_the_form_does_not_change_stays_exactly_as_it_is() {
    let (bench, path, _) = with_key("name=ci").await;
    let before = key(&bench);
    let store = bench.state.store();
    // Ended in the middle of a day, and without the accounts that it was bound to.
    let changed = ClientKey {
        expires_at: Some(1_700_000_000_000),
        accounts: Some(Vec::new()),
        ..before
    };
    store.update_key(changed.clone()).await.unwrap();
    bench.state.reload().now().await.unwrap();
    bench.get("/keys").await.says("Expired");
    let page = bench.get(&path).await;
    page.says("value=\"2023-11-14\"");
    let form = "name=other&weight=1&accounts_scope=some&expires_at=2023-11-14";
    bench.post(&path, form).await.location();
    let expect = ClientKey {
        name: "other".into(),
        ..changed
    };
    assert_eq!(key(&bench), expect);
    let over = form.replace("11-14", "11-15");
    let refused = bench.post(&path, &over).await;
    refused.says("id=\"expires_at-fault\"");
    refused.says("has begun already");
}

#[tokio::test]
async fn a_mistake_stands_at_its_field_and_writes_nothing() {
    let (bench, path, _) = with_key("name=ci").await;
    let other = bench.post("/keys/new", "name=other").await;
    shown(&other);
    let before = bench.state.store().pool().await.unwrap().contents;
    let gone = AccountId::from_u128(1);
    let is_gone = format!("name=a&accounts_scope=some&accounts={gone}");
    for (path, form, field) in [
        ("/keys/new", "name=", "name"),
        ("/keys/new", "name=ci", "name"),
        (&*path, "name=other", "name"),
        ("/keys/new", "name=a&weight=0", "weight"),
        ("/keys/new", "name=a&weight=heavy", "weight"),
        (&*path, "name=a&weight=100001", "weight"),
        ("/keys/new", "name=a&expires_at=2020-01-01", "expires_at"),
        ("/keys/new", "name=a&expires_at=soon", "expires_at"),
        ("/keys/new", "name=a&accounts_scope=some", "accounts"),
        (&*path, &is_gone, "accounts"),
        (&*path, "name=a&models_scope=some&models=+%0A", "models"),
        (
            "/keys/new",
            "name=a&requests_per_minute=0",
            "requests_per_minute",
        ),
        (&*path, "name=a&concurrency=many", "concurrency"),
        (&*path, "name=a&tokens_per_day=1.5", "tokens_per_day"),
    ] {
        let refused = bench.post(path, form).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{path} {form}"
        );
        refused.says(&format!("id=\"{field}-fault\""));
        refused.says(&format!("href=\"#{field}\""));
    }
    let both = bench
        .post("/keys/new", "name=kept&weight=x&expires_at=2020-01-01")
        .await;
    both.says("id=\"weight-fault\"");
    both.says("id=\"expires_at-fault\"");
    both.says("value=\"kept\"");
    both.says("value=\"2020-01-01\"");
    both.says("<details class=\"more-fields\" open>");
    let after = bench.state.store().pool().await.unwrap().contents;
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}

#[tokio::test]
async fn rotating_ends_the_old_secret_and_shows_the_new_one_once() {
    let (bench, path, old) = with_key("name=ci&weight=2").await;
    let before = key(&bench);
    let rotate = format!("{path}/rotate");
    let question = bench.get(&rotate).await;
    question.says("stops working at once");
    question.says("autofocus>Cancel");
    assert!(works(&bench, &old));
    let form = format!("hint={}", before.secret_hint);
    let done = bench.post(&rotate, &form).await;
    let new = shown(&done);
    done.says(&format!("Authorization: Bearer {new}"));
    assert!(!works(&bench, &old));
    assert!(works(&bench, &new));
    let after = key(&bench);
    assert_eq!((after.id, after.weight), (before.id, 2));

    let again = bench.post(&rotate, &form).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    again.says("was replaced meanwhile");
    assert!(!again.text.contains(&new));
    assert!(works(&bench, &new));
}

#[tokio::test]
async fn an_unused_key_is_revoked_by_one_confirmation() {
    let (bench, path, secret) = with_key("name=ci").await;
    let revoke = format!("{path}/revoke");
    let question = bench.get(&revoke).await;
    question.says("None of its requests is in flight.");
    question.says("No request that came with it in the last 24 hours");
    question.says("autofocus>Cancel");
    assert!(!question.text.contains("name=\"name\""));
    assert!(works(&bench, &secret));
    let done = bench.post(&revoke, "").await;
    assert_eq!(done.location(), "/keys?done=revoked");
    assert!(!works(&bench, &secret));
    for path in [&path, &revoke, "/keys/none", "/keys/none/rotate"] {
        let none = bench.get(path).await;
        assert_eq!(none.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(bench.post(&revoke, "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn revoking_a_key_that_is_used_asks_for_its_name() {
    let (bench, path, secret) = with_key("name=ci").await;
    let id = key(&bench).id;
    let revoke = format!("{path}/revoke");
    let desk = bench.state.live().desk();
    let live = desk.enter(RequestId::from_u128(1), false);
    live.is_from(id);
    let question = bench.get(&revoke).await;
    question.says("One of its requests is in flight");
    question.says("name=\"name\"");
    drop(live);
    let question = bench.get(&revoke).await;
    assert!(!question.text.contains("name=\"name\""));

    let now_ms = clock::unix_millis();
    for (n, hours) in [(1, 1), (2, 2), (3, 25)] {
        let started_at = now_ms - hours * 3_600_000;
        let mut entry = super::requests::entry(n);
        entry.id = RequestId::from_u128((u128::from(started_at.unsigned_abs()) << 80) | n);
        entry.started_at = started_at;
        entry.key = Some(id);
        assert!(bench.state.store().try_log(Box::new(entry)));
    }
    bench.state.store().flush().await.unwrap();
    let question = bench.get(&revoke).await;
    question.says("2 requests came with it in the last 24 hours");
    let wrong = bench.post(&revoke, "name=cd").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    wrong.says("id=\"name-fault\"");
    wrong.says("value=\"cd\"");
    assert!(works(&bench, &secret));
    bench.post(&revoke, "name=ci").await.location();
    assert!(!works(&bench, &secret));
}

#[tokio::test]
async fn no_match_and_no_answer_are_told_from_no_keys() {
    let (bench, path, _) = with_key("name=ci").await;
    let found = bench.get("/keys?search=CI").await;
    found.says(&format!("href=\"{path}\""));
    let none = bench.get("/keys?search=%3Cb%3E").await;
    none.says("No key matches");
    assert!(!none.text.contains("<b>"));
    let broken = "ALTER TABLE client_keys RENAME TO gone";
    let store = bench.state.store();
    store
        .write(move |tx| Ok(tx.execute_batch(broken)?))
        .await
        .unwrap();
    let unread = bench.get("/keys").await;
    assert_eq!(unread.status, StatusCode::INTERNAL_SERVER_ERROR);
    unread.says("The keys could not be read");
    unread.says("href=\"/keys\">Try again");
}

#[tokio::test]
async fn the_pages_speak_the_language_that_was_chosen() {
    let (bench, path, _) = with_key("name=ci").await;
    let revoke = format!("{path}/revoke");
    for (language, list, question) in [
        ("ko", "클라이언트 키", "키를 폐기할까요?"),
        ("zh-CN", "客户端密钥", "吊销密钥 ci？"),
    ] {
        let accept = [("accept-language", language)];
        let page = bench.send(Method::GET, "/keys", "", &accept).await;
        page.says(&format!("<html lang=\"{language}\""));
        page.says(list);
        let page = bench.send(Method::GET, &revoke, "", &accept).await;
        page.says(question);
    }
}

#[tokio::test]
async fn limits_are_made_changed_and_shown_beside_what_is_used() {
    let form = "name=ci&requests_per_minute=60&concurrency=2&tokens_per_day=5000";
    let (bench, path, _) = with_key(form).await;
    let limits = KeyLimits {
        requests_per_minute: Some(60),
        concurrency: Some(2),
        tokens_per_day: Some(5000),
    };
    assert_eq!(key(&bench).limits, limits);
    let allowance = bench.state.reload().configuration().allowance();
    allowance
        .reserve(&key(&bench))
        .await
        .unwrap()
        .settle(Some(7));
    let _held = allowance.reserve(&key(&bench)).await.unwrap();
    for page in ["/keys", &path] {
        let page = bench.get(page).await;
        for words in [
            "2 of 60 a minute",
            "1 of 2 at once",
            "7 of 5,000 tokens today",
        ] {
            page.says(words);
        }
    }
    bench
        .get(&path)
        .await
        .says("name=\"concurrency\" type=\"text\" value=\"2\"");
    let changed = "name=ci&requests_per_minute=&concurrency=1&tokens_per_day=";
    bench.post(&path, changed).await.location();
    let expect = KeyLimits {
        concurrency: Some(1),
        ..KeyLimits::default()
    };
    assert_eq!(key(&bench).limits, expect);
    let list = bench.get("/keys").await;
    list.says("1 of 1 at once");
    list.says("#full");
    assert!(!list.text.contains("a minute</span>"), "{}", list.text);
}

#[tokio::test]
async fn what_is_not_known_of_a_keys_use_is_not_shown_as_nothing() {
    let form = "name=ci&requests_per_minute=60&concurrency=2";
    let (bench, _, _) = with_key(form).await;
    let allowance = bench.state.reload().configuration().allowance();
    let recalled = allowance.recall(async |_| Err("locked"));
    let read = async {
        let page = bench.get("/keys").await;
        page.says("– of 60 a minute");
        page.says("0 of 2 at once");
    };
    tokio::select! {
        () = recalled => panic!("it is never read"),
        () = read => (),
    }
}
