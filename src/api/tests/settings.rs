//! Settings: where values come from, and changes that take all or nothing.
use super::*;

const PATCH: (&str, &str) = ("PATCH", "/settings");

/// One setting as it is shown.
async fn setting(bench: &Bench, name: &str) -> Value {
    let shown = bench.get("/settings").await;
    let all = shown["settings"].as_array().unwrap();
    all.iter().find(|s| s["name"] == name).unwrap().clone()
}

async fn version(bench: &Bench) -> i64 {
    bench.get("/settings").await["version"].as_i64().unwrap()
}

async fn set(bench: &Bench, version: i64, set: Value) -> Value {
    bench
        .ok(
            "PATCH",
            "/settings",
            &json!({"version": version, "set": set}),
        )
        .await
}

/// A bench whose environment says that accounts carry five streams.
async fn locked() -> Bench {
    let mut environment = Layer::default();
    environment.put(Name::AccountStreamLimit, Some(Setting::Integer(5)));
    empty(environment).await
}

#[tokio::test]
async fn every_setting_says_where_its_value_comes_from() {
    let bench = locked().await;
    let shown = setting(&bench, "account_stream_limit").await;
    assert_eq!(shown["source"], "environment");
    assert_eq!(
        (&shown["value"], &shown["env"], &shown["default"]),
        (&json!(5), &json!(5), &json!(8))
    );
    assert_eq!(
        (&shown["is_locked"], &shown["env_name"]),
        (&json!(true), &json!("FAIRLANE_ACCOUNT_STREAM_LIMIT"))
    );
    set(
        &bench,
        0,
        json!({"stage_trace": true, "cors_allowed_origins": "https://a.example"}),
    )
    .await;
    let shown = setting(&bench, "stage_trace").await;
    assert_eq!(
        (&shown["source"], &shown["inherited"]),
        (&json!("override"), &json!(false))
    );
    let shown = setting(&bench, "max_attempts").await;
    assert_eq!(
        (&shown["source"], &shown["env"], &shown["group"]),
        (&json!("default"), &Value::Null, &json!("routing"))
    );
}

#[tokio::test]
async fn a_change_is_in_force_at_once_and_null_clears_it() {
    let bench = empty(Layer::default()).await;
    let limit = || {
        bench
            .state
            .reload()
            .configuration()
            .settings()
            .integer(Name::AccountStreamLimit)
    };
    let after = set(&bench, 0, json!({"account_stream_limit": 12})).await;
    assert_eq!(limit(), 12);
    let version = after["version"].as_i64().unwrap();
    set(&bench, version, json!({"account_stream_limit": null})).await;
    assert_eq!(limit(), 8);
    assert_eq!(
        setting(&bench, "account_stream_limit").await["source"],
        "default"
    );
}

#[tokio::test]
async fn one_wrong_value_refuses_them_all() {
    let bench = empty(Layer::default()).await;
    for (name, value) in [
        ("account_stream_limit", json!(-1)),
        ("account_stream_limit", json!(1.5)),
        ("account_stream_limit", json!("many")),
        ("stage_trace", json!([true])),
        ("cors_allowed_origins", json!("chat.example")),
        ("no_such_setting", json!(1)),
    ] {
        let body = json!({"version": 0, "set": {"max_attempts": 2, name: value}});
        bench
            .refused(PATCH, &body, (400, "INVALID_FIELD", name))
            .await;
    }
    assert_eq!(version(&bench).await, 0);
    assert_eq!(setting(&bench, "max_attempts").await["source"], "default");
    let body = json!({"set": {"max_attempts": 99, "stage_trace": 7}, "sett": {}});
    let error = bench
        .refused(PATCH, &body, (400, "INVALID_FIELD", "sett"))
        .await;
    assert_eq!(error["mistakes"].as_array().unwrap().len(), 4, "{error}");
}

#[tokio::test]
async fn a_setting_that_changed_since_is_a_conflict_that_shows_both_values() {
    let bench = empty(Layer::default()).await;
    let now = set(&bench, 0, json!({"account_stream_limit": 20})).await;
    let body = json!({"version": 0, "set": {"max_attempts": 2, "account_stream_limit": 12}});
    let conflict = (409, "SETTING_CONFLICT", "account_stream_limit");
    let error = bench.refused(PATCH, &body, conflict).await;
    assert_eq!(
        (&error["yours"], &error["current"]),
        (&json!(12), &json!(20))
    );
    assert_eq!(setting(&bench, "max_attempts").await["source"], "default");
    // Somebody else's change of another setting is no conflict.
    set(&bench, 0, json!({"max_attempts": 2})).await;
    set(
        &bench,
        now["version"].as_i64().unwrap(),
        json!({"account_stream_limit": null}),
    )
    .await;
    let error = bench
        .refused(PATCH, &body, (409, "SETTING_CONFLICT", "max_attempts"))
        .await;
    assert_eq!((&error["yours"], &error["current"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn a_version_that_was_never_given_out_overrules_nobody() {
    let bench = empty(Layer::default()).await;
    for version in [json!(1_000_000), json!(-1), json!("0"), Value::Null] {
        let body = json!({"version": version, "set": {"max_attempts": 2}});
        bench
            .refused(PATCH, &body, (400, "INVALID_FIELD", "version"))
            .await;
    }
}

#[tokio::test]
async fn what_the_environment_states_can_be_cleared_but_not_set() {
    let bench = locked().await;
    let store = bench.state.store();
    let earlier = vec![(Name::AccountStreamLimit, Some(Setting::Integer(9)))];
    store.change_settings(0, earlier).await.unwrap();
    let now = version(&bench).await;
    let body = json!({"version": now, "set": {"max_attempts": 2, "account_stream_limit": 12}});
    let error = bench
        .refused(
            PATCH,
            &body,
            (409, "SETTING_LOCKED", "account_stream_limit"),
        )
        .await;
    assert_eq!(
        (&error["yours"], &error["current"]),
        (&json!(12), &json!(5))
    );
    assert_eq!(setting(&bench, "max_attempts").await["source"], "default");
    set(&bench, now, json!({"account_stream_limit": null})).await;
    assert_eq!(setting(&bench, "account_stream_limit").await["value"], 5);
}

#[tokio::test]
async fn a_change_of_nothing_changes_nothing() {
    let bench = empty(Layer::default()).await;
    let before = bench.state.reload().version();
    assert_eq!(set(&bench, 0, json!({})).await["version"], 0);
    assert_eq!(bench.state.reload().version(), before);
}
