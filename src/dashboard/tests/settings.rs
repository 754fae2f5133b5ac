//! Settings through the page: saving, clearing, and what is refused.
use super::*;
use crate::domain::settings::{Name, Source, Value};

async fn logged_in(environment: Layer) -> Bench {
    let bench = bench_with(environment).await;
    bench.set_up().await;
    bench
}

/// What is in force of a setting, not merely stored.
#[track_caller]
fn check(bench: &Bench, name: Name, value: &Value, source: Source) {
    let configuration = bench.state.reload().configuration();
    let settings = configuration.settings();
    let setting = settings.setting(name);
    assert_eq!((&setting.value, setting.source), (value, source));
}

fn number(n: i64) -> Value {
    Value::Integer(n)
}

#[tokio::test]
async fn what_was_changed_is_saved_and_in_force_and_the_rest_stays_inherited() {
    let bench = logged_in(Layer::default()).await;
    let page = bench.get("/settings").await;
    page.says("name=\"account_stream_limit\" value=\"8\"");
    page.says("In effect: 8, from the default");
    page.says("FAIRLANE_ACCOUNT_STREAM_LIMIT");
    let form = "version=0&account_stream_limit=12&was.account_stream_limit=8\
                &waiters_per_key=200&was.waiters_per_key=200";
    let saved = bench
        .post("/settings", &format!("{form}&confirmed=yes"))
        .await;
    assert_eq!(saved.location(), "/settings?done=saved");
    check(
        &bench,
        Name::AccountStreamLimit,
        &number(12),
        Source::Override,
    );
    check(&bench, Name::WaitersPerKey, &number(200), Source::Default);
    let page = bench.get("/settings?done=saved").await;
    page.says("Saved and in force.");
    page.says("If cleared: 8, from the default");

    let form = "version=1&setting=account_stream_limit";
    let cleared = bench.post("/settings/clear", form).await;
    assert_eq!(cleared.location(), "/settings?done=cleared");
    check(
        &bench,
        Name::AccountStreamLimit,
        &number(8),
        Source::Default,
    );
    let same = "version=2&max_attempts=3&was.max_attempts=3";
    let nothing = bench.post("/settings", same).await;
    assert_eq!(nothing.location(), "/settings?done=nothing");
}

#[tokio::test]
async fn what_is_not_accepted_is_said_at_its_field_and_nothing_is_saved() {
    let bench = logged_in(Layer::default()).await;
    let form = "version=0&account_stream_limit=12&was.account_stream_limit=8\
                &waiters_per_key=many%22&was.waiters_per_key=200";
    let refused = bench.post("/settings", form).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("href=\"#waiters_per_key\"");
    refused.says("id=\"waiters_per_key-fault\">Accepted is a whole number from 0 to 100,000");
    refused.says("value=\"many&#34;\"");
    refused.says("name=\"account_stream_limit\" value=\"12\"");
    check(
        &bench,
        Name::AccountStreamLimit,
        &number(8),
        Source::Default,
    );
    assert_eq!(bench.state.store().overrides().await.unwrap().version, 0);
}

#[tokio::test]
async fn a_conflict_shows_both_values_and_the_choice_is_kept() {
    let bench = logged_in(Layer::default()).await;
    let theirs = vec![(Name::AccountStreamLimit, Some(number(20)))];
    let store = bench.state.store();
    store.change_settings(0, theirs).await.unwrap();
    // Another setting that was read at the same version is no conflict.
    let other = "version=0&max_attempts=5&was.max_attempts=3&confirmed=yes";
    assert_eq!(
        bench.post("/settings", other).await.location(),
        "/settings?done=saved"
    );
    let form = "version=0&account_stream_limit=12&was.account_stream_limit=8&confirmed=yes";
    let refused = bench.post("/settings", form).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    refused.says("Somebody else changed this meanwhile.");
    refused.says("Yours: 12");
    refused.says("Theirs, in effect now: 20");
    refused.says("name=\"account_stream_limit\" value=\"12\"");
    let choice = |word: &str| {
        format!(
            "version=2&account_stream_limit=12&was.account_stream_limit=20\
             &choice.account_stream_limit={word}&confirmed=yes"
        )
    };
    let theirs = bench.post("/settings", &choice("theirs")).await;
    assert_eq!(theirs.location(), "/settings?done=nothing");
    check(
        &bench,
        Name::AccountStreamLimit,
        &number(20),
        Source::Override,
    );
    let clearing = "version=0&setting=account_stream_limit";
    let late = bench.post("/settings/clear", clearing).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    late.says("It was not cleared. Theirs, in effect now: 20.");
    let mine = bench.post("/settings", &choice("mine")).await;
    assert_eq!(mine.location(), "/settings?done=saved");
    check(
        &bench,
        Name::AccountStreamLimit,
        &number(12),
        Source::Override,
    );
}

#[tokio::test]
async fn what_the_environment_states_can_be_cleared_but_not_set() {
    let mut environment = Layer::default();
    environment.put(Name::MaxAttempts, Some(number(2)));
    let bench = logged_in(environment).await;
    let stored = vec![(Name::MaxAttempts, Some(number(4)))];
    bench
        .state
        .store()
        .change_settings(0, stored)
        .await
        .unwrap();
    let page = bench.get("/settings").await;
    page.says("Set by FAIRLANE_MAX_ATTEMPTS");
    page.says("If cleared: 2, from the environment");
    assert!(!page.text.contains("name=\"max_attempts\""));
    let setting = "version=1&max_attempts=6&was.max_attempts=4";
    let refused = bench.post("/settings", setting).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("id=\"max_attempts-fault\">Set by FAIRLANE_MAX_ATTEMPTS");
    let clearing = "version=1&setting=max_attempts";
    let cleared = bench.post("/settings/clear", clearing).await;
    assert_eq!(cleared.location(), "/settings?done=cleared");
    check(&bench, Name::MaxAttempts, &number(2), Source::Environment);
}

#[tokio::test]
async fn a_form_that_no_page_gave_out_changes_nothing() {
    let bench = bench().await;
    assert_eq!(bench.get("/settings").await.location(), "/setup/password");
    bench.set_up().await;
    for (path, form) in [
        ("/settings", "max_attempts=5&was.max_attempts=3"),
        ("/settings", "version=7&max_attempts=5&was.max_attempts=3"),
        ("/settings", "version=x&max_attempts=no"),
        ("/settings/clear", "version=0&setting=nothing"),
    ] {
        let refused = bench.post(path, form).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{form}");
    }
    check(&bench, Name::MaxAttempts, &number(3), Source::Default);
}

#[tokio::test]
async fn what_would_change_is_shown_before_it_is_saved() {
    let bench = logged_in(Layer::default()).await;
    let form = "version=0&account_stream_limit=12&was.account_stream_limit=8\
                &waiters_per_key=200&was.waiters_per_key=200";
    let review = bench.post("/settings", form).await;
    assert_eq!(review.status, StatusCode::OK);
    review.says("8 (from the default)</span>");
    review.says("<span class=\"change-to\">12</span>");
    review.says("name=\"account_stream_limit\" value=\"12\"");
    review.says("name=\"was.account_stream_limit\" value=\"8\"");
    assert!(!review.text.contains("waiters_per_key"));
    assert_eq!(bench.state.store().overrides().await.unwrap().version, 0);
    let sent = "version=0&account_stream_limit=12&was.account_stream_limit=8";
    let again = bench.post("/settings", &format!("{sent}&edit=yes")).await;
    again.says("name=\"account_stream_limit\" value=\"12\"");
    again.says("name=\"was.account_stream_limit\" value=\"8\"");
    assert_eq!(bench.state.store().overrides().await.unwrap().version, 0);
    let saved = bench
        .post("/settings", &format!("{sent}&confirmed=yes"))
        .await;
    assert_eq!(saved.location(), "/settings?done=saved");
}

/// Stores a row as another version might have left it.
async fn leave(bench: &Bench, key: &'static str, value: &'static str, version: i64) {
    let left = bench.state.store().write(move |tx| {
        tx.execute(
            "INSERT INTO settings (key, value, version, updated_at) VALUES (?1, ?2, ?3, 0)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version",
            (key, value, version),
        )?;
        Ok(())
    });
    left.await.unwrap();
}

#[tokio::test]
async fn stored_rows_that_are_not_accepted_are_named_and_can_be_cleared() {
    let bench = logged_in(Layer::default()).await;
    assert!(!bench.get("/settings").await.text.contains("id=\"refused\""));
    leave(&bench, "max_attempts", "many", 1).await;
    leave(&bench, "of_another_version", "<1>", 2).await;
    let page = bench.get("/settings").await;
    page.says("<code translate=\"no\">max_attempts</code> = <code translate=\"no\">many</code>");
    page.says("it takes a whole number from 1 to 10");
    page.says("This version knows no setting of that name.");
    page.says("Clear: of_another_version");
    assert!(!page.text.contains("<1>"));
    for (version, key) in [(2, "max_attempts"), (3, "of_another_version")] {
        let form = format!("version={version}&setting={key}");
        let cleared = bench.post("/settings/clear", &form).await;
        assert_eq!(cleared.location(), "/settings?done=cleared");
    }
    assert_eq!(bench.state.store().overrides().await.unwrap().rows, []);
    leave(&bench, "of_another_version", "2", 9).await;
    let late = bench.post("/settings/clear", "version=4&setting=of_another_version");
    let late = late.await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    late.says("Somebody else changed this row meanwhile");
    late.says("<code translate=\"no\">2</code>");
}
