//! Accounts, credentials, endpoints and keys: made, read, changed and removed.
use super::*;
use crate::domain::pool::{DisabledReason, State as PoolState};

const SECRET: &str = "sk-upstream-secret-0001";

/// Adds the credential of that secret to the one endpoint and account.
async fn credential(bench: &Bench, secret: &str) -> Value {
    let body = json!({"secret": secret, "endpoints": ["openai"], "accounts": ["team"]});
    bench.ok("POST", "/credentials", &body).await
}

/// The only account of [`bench`].
async fn account(bench: &Bench) -> Value {
    bench.get("/accounts").await["items"][0].clone()
}

#[tokio::test]
async fn an_account_is_made_read_changed_and_removed() {
    let bench = bench().await;
    let body = json!({"name": "b", "stream_limit": 3, "weight": 2});
    let made = bench.ok("POST", "/accounts", &body).await;
    let path = format!("/accounts/{}", id(&made));
    assert_eq!(bench.get(&path).await, made);
    assert_eq!(
        (&made["stream_limit"], &made["create_limit"]),
        (&json!(3), &Value::Null)
    );
    let changed = bench.ok("PATCH", &path, &json!({"create_limit": 5})).await;
    assert_eq!(
        (&changed["stream_limit"], &changed["create_limit"]),
        (&json!(3), &json!(5))
    );
    let cleared = bench
        .ok(
            "PATCH",
            &path,
            &json!({"stream_limit": null, "weight": null}),
        )
        .await;
    assert_eq!(
        (&cleared["stream_limit"], &cleared["weight"]),
        (&Value::Null, &json!(1))
    );
    assert_eq!(bench.ok("PATCH", &path, &json!({})).await, cleared);
    bench.ok("DELETE", &path, &Value::Null).await;
    for method in ["GET", "DELETE"] {
        bench
            .refused((method, &path), &Value::Null, (404, "NOT_FOUND", ""))
            .await;
    }
    bench
        .refused(("PATCH", &path), &json!({}), (404, "NOT_FOUND", ""))
        .await;
}

#[tokio::test]
async fn a_new_name_keeps_the_id_and_everything_else() {
    let bench = bench().await;
    let before = account(&bench).await;
    let path = format!("/accounts/{}", id(&before));
    let after = bench.ok("PATCH", &path, &json!({"name": "crew"})).await;
    assert_eq!(
        (&after["id"], &after["name"]),
        (&before["id"], &json!("crew"))
    );
    assert_eq!(bench.get("/accounts").await["items"], json!([after]));
    assert_eq!(&*bench.pool().accounts()[0].name, "crew");
}

#[tokio::test]
async fn names_of_others_are_refused_instead_of_meaning_them() {
    let bench = bench().await;
    let before = account(&bench).await;
    let taken = (409, "NAME_TAKEN", "name");
    let body = json!({"name": "team", "stream_limit": 1});
    bench.refused(("POST", "/accounts"), &body, taken).await;
    let other = bench.ok("POST", "/accounts", &json!({"name": "b"})).await;
    let path = format!("/accounts/{}", id(&other));
    bench.refused(("PATCH", &path), &body, taken).await;
    assert_eq!(account(&bench).await, before);
}

#[tokio::test]
async fn what_a_document_would_refuse_is_refused_with_the_field() {
    let bench = bench().await;
    for (list, body, field) in [
        ("accounts", json!({}), "name"),
        (
            "accounts",
            json!({"name": "x", "stream_limit": -1}),
            "stream_limit",
        ),
        (
            "accounts",
            json!({"name": "x", "strem_limit": 1}),
            "strem_limit",
        ),
        (
            "accounts",
            json!({"name": "x", "egress_pool": "eu"}),
            "egress_pool",
        ),
        ("accounts", json!({"name": "x", "id": "acc_1"}), "id"),
        ("endpoints", json!({"name": "x"}), "base_url"),
        (
            "endpoints",
            json!({"name": "x", "base_url": "ftp://x"}),
            "base_url",
        ),
        ("credentials", json!({"endpoints": ["openai"]}), "secret"),
        ("credentials", json!({"secret": SECRET}), "endpoints"),
        (
            "credentials",
            json!({"secret": SECRET, "endpoints": ["none"]}),
            "endpoints[0]",
        ),
        ("keys", json!({"name": "x", "secret": "short"}), "secret"),
        ("keys", json!({"name": "x", "accounts": []}), "accounts"),
        (
            "keys",
            json!({"name": "x", "tokens_per_day": 0}),
            "tokens_per_day",
        ),
        (
            "keys",
            json!({"name": "x", "concurrency": 0}),
            "concurrency",
        ),
        (
            "keys",
            json!({"name": "x", "requests_per_minute": 1.5}),
            "requests_per_minute",
        ),
        ("keys", json!({"name": "x", "state": "active"}), "state"),
    ] {
        let path = format!("/{list}");
        bench
            .refused(("POST", &path), &body, (400, "INVALID_FIELD", field))
            .await;
    }
    let body = json!({"stream_limit": "many", "weight": 0});
    let expect = (400, "INVALID_FIELD", "name");
    let error = bench.refused(("POST", "/accounts"), &body, expect).await;
    assert_eq!(error["mistakes"].as_array().unwrap().len(), 3, "{error}");
}

#[tokio::test]
async fn a_change_says_nothing_of_what_has_a_way_of_its_own() {
    let bench = bench().await;
    let made = credential(&bench, SECRET).await;
    let path = format!("/credentials/{}", id(&made));
    for (body, field) in [
        (json!({"secret": "sk-another-secret-0002"}), "secret"),
        (json!({"name": null}), "name"),
        (json!({"state": null}), "state"),
        (json!({"state": "gone"}), "state"),
        (json!({"endpoints": null}), "endpoints"),
    ] {
        bench
            .refused(("PATCH", &path), &body, (400, "INVALID_FIELD", field))
            .await;
    }
    assert_eq!(bench.get(&path).await, made);
}

#[tokio::test]
async fn references_are_accepted_by_id_and_by_name_and_shown_by_id() {
    let bench = bench().await;
    let account = account(&bench).await;
    let by_name = credential(&bench, SECRET).await;
    assert_eq!(by_name["accounts"], json!([account["id"]]));
    let body = json!({"secret": "sk-another-secret-0002", "endpoints": by_name["endpoints"], "accounts": by_name["accounts"]});
    let by_id = bench.ok("POST", "/credentials", &body).await;
    assert_eq!(by_id["endpoints"], by_name["endpoints"]);
    assert_eq!(by_id["accounts"], by_name["accounts"]);
    let gone = json!({"accounts": ["acc_00000000-0000-0000-0000-000000000009"]});
    let path = format!("/credentials/{}", id(&by_id));
    bench
        .refused(
            ("PATCH", &path),
            &gone,
            (400, "INVALID_FIELD", "accounts[0]"),
        )
        .await;
}

#[tokio::test]
async fn a_credential_without_accounts_gets_one_that_goes_with_it() {
    let bench = bench().await;
    let body = json!({"name": "solo", "secret": SECRET, "endpoints": ["openai"]});
    let made = bench.ok("POST", "/credentials", &body).await;
    let own = bench.get("/accounts").await["items"][1].clone();
    assert_eq!(
        (&own["id"], &own["made_for"]),
        (&made["accounts"][0], &made["id"])
    );
    let path = format!("/credentials/{}", id(&made));
    bench.ok("DELETE", &path, &Value::Null).await;
    assert_eq!(
        bench.get("/accounts").await["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn secrets_of_others_are_refused_instead_of_meaning_them() {
    let bench = bench().await;
    let first = credential(&bench, SECRET).await;
    let second = credential(&bench, "sk-another-secret-0002").await;
    let body = json!({"secret": format!(" {SECRET}\n"), "endpoints": ["openai"]});
    let taken = (409, "SECRET_TAKEN", "secret");
    bench.refused(("POST", "/credentials"), &body, taken).await;
    let path = format!("/credentials/{}/rotate", id(&second));
    bench
        .refused(("POST", &path), &json!({"secret": SECRET}), taken)
        .await;
    let key = json!({"name": "a", "secret": "a-secret-of-twenty-characters"});
    bench.ok("POST", "/keys", &key).await;
    let key = json!({"name": "b", "secret": "a-secret-of-twenty-characters"});
    bench.refused(("POST", "/keys"), &key, taken).await;
    assert_eq!(
        bench.get("/credentials").await["items"],
        json!([first, second])
    );
}

#[tokio::test]
async fn a_rotation_changes_the_secret_and_nothing_else() {
    let bench = bench().await;
    let made = credential(&bench, SECRET).await;
    let path = format!("/credentials/{}/rotate", id(&made));
    let new = "\"sk-rotated-secret-9999\"";
    let rotated = bench.ok("POST", &path, &json!({"secret": new})).await;
    assert_eq!(
        (&rotated["id"], &rotated["name"]),
        (&made["id"], &made["name"])
    );
    assert_eq!(rotated["secret_hint"], "9999");
    assert_eq!(rotated["warnings"][0]["path"], "secret");
    let pool = bench.pool();
    assert_eq!(pool.credentials().len(), 1);
    assert_eq!(
        pool.credentials()[0].secret.expose(),
        "sk-rotated-secret-9999"
    );
    // It had a made-up name, and still has: a list may use that name for another.
    assert!(!pool.credentials()[0].is_named);
    for (body, field) in [
        (json!({}), "secret"),
        (json!({"secret": "a b"}), "secret"),
        (json!({"secret": SECRET, "name": "x"}), "name"),
    ] {
        bench
            .refused(("POST", &path), &body, (400, "INVALID_FIELD", field))
            .await;
    }
}

#[tokio::test]
async fn a_new_secret_gives_a_refused_credential_another_chance_but_keeps_it_draining() {
    let bench = bench().await;
    let made = credential(&bench, SECRET).await;
    let path = format!("/credentials/{}", id(&made));
    let mut stored = bench.pool().credentials()[0].clone();
    stored.state = PoolState::Disabled(DisabledReason::Auth);
    assert!(bench.state.store().update_credential(stored).await.unwrap());
    let patched = bench.ok("PATCH", &path, &json!({"stream_limit": 2})).await;
    assert_eq!(patched["disabled_reason"], "auth");
    let rotate = format!("{path}/rotate");
    let rotated = bench
        .ok(
            "POST",
            &rotate,
            &json!({"secret": "sk-rotated-secret-0001"}),
        )
        .await;
    assert_eq!(rotated["state"], "active");
    bench
        .ok("POST", &format!("{path}/drain"), &Value::Null)
        .await;
    let rotated = bench
        .ok(
            "POST",
            &rotate,
            &json!({"secret": "sk-rotated-secret-0002"}),
        )
        .await;
    assert_eq!(rotated["state"], "draining");
}

#[tokio::test]
async fn states_are_turned_and_survive_other_changes() {
    let bench = bench().await;
    let path = format!("/accounts/{}", id(&account(&bench).await));
    for (verb, state, reason) in [
        ("drain", "draining", Value::Null),
        ("disable", "disabled", json!("operator")),
        ("enable", "active", Value::Null),
    ] {
        let turned = bench
            .ok("POST", &format!("{path}/{verb}"), &Value::Null)
            .await;
        assert_eq!(
            (&turned["state"], &turned["disabled_reason"]),
            (&json!(state), &reason)
        );
        let changed = bench.ok("PATCH", &path, &json!({"priority": 4})).await;
        assert_eq!(changed["state"], state, "{verb}");
    }
    let missing = "/accounts/acc_00000000-0000-0000-0000-000000000009/drain";
    bench
        .refused(("POST", missing), &Value::Null, (404, "NOT_FOUND", ""))
        .await;
}

#[tokio::test]
async fn what_upstream_disabled_stays_out_once_the_operator_says_so() {
    let bench = bench().await;
    let made = credential(&bench, SECRET).await;
    let path = format!("/credentials/{}", id(&made));
    let mut stored = bench.pool().credentials()[0].clone();
    stored.state = PoolState::Disabled(DisabledReason::Auth);
    assert!(bench.state.store().update_credential(stored).await.unwrap());
    // What was read and is written back decides nothing.
    let same = json!({"state": "disabled", "stream_limit": 3});
    let patched = bench.ok("PATCH", &path, &same).await;
    assert_eq!(patched["disabled_reason"], "auth");
    let disabled = bench
        .ok("POST", &format!("{path}/disable"), &Value::Null)
        .await;
    assert_eq!(disabled["disabled_reason"], "operator");
}

#[tokio::test]
async fn what_is_in_use_is_not_removed() {
    let bench = bench().await;
    let made = credential(&bench, SECRET).await;
    for (list, field) in [("accounts", "accounts"), ("endpoints", "endpoints")] {
        let path = format!("/{list}/{}", made[field][0].as_str().unwrap());
        bench
            .refused(("DELETE", &path), &Value::Null, (409, "IN_USE", ""))
            .await;
    }
}

#[tokio::test]
async fn an_endpoint_takes_what_it_lacks_from_its_preset() {
    let bench = bench().await;
    let body = json!({"name": "g", "preset": "groq", "models": ["m", {"model": "a", "upstream_model": "b"}], "headers": {"X-Team": "one"}});
    let made = bench.ok("POST", "/endpoints", &body).await;
    assert_eq!(made["base_url"], "https://api.groq.com/openai");
    assert_eq!(made["headers"], json!({"x-team": "one"}));
    assert_eq!(
        made["models"][0],
        json!({"model": "m", "upstream_model": null})
    );
    let path = format!("/endpoints/{}", id(&made));
    let changed = bench
        .ok(
            "PATCH",
            &path,
            &json!({"base_url": "http://localhost:9/v1/", "models": null, "headers": null}),
        )
        .await;
    assert_eq!(changed["base_url"], "http://localhost:9");
    assert_eq!(
        (&changed["models"], &changed["headers"]),
        (&Value::Null, &json!({}))
    );
    assert_eq!(changed["protocols"], json!(["openai"]));
}

#[tokio::test]
async fn a_key_shows_its_secret_once() {
    let bench = bench().await;
    let body =
        json!({"name": "ci", "accounts": ["team"], "models": ["m"], "expires_at": "2030-01-31"});
    let made = bench.ok("POST", "/keys", &body).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("fl-") && secret.len() > 40, "{secret}");
    assert_eq!(made["expires_at"], "2030-01-31T00:00:00Z");
    let is_known = |secret: &str| {
        bench
            .pool()
            .key(&digest::sha256(secret.as_bytes()))
            .is_some()
    };
    assert!(is_known(secret));
    let path = format!("/keys/{}", id(&made));
    let rotated = bench
        .ok("POST", &format!("{path}/rotate"), &Value::Null)
        .await;
    let fresh = rotated["secret"].as_str().unwrap();
    assert!(is_known(fresh) && !is_known(secret));
    assert_eq!(
        (&rotated["id"], &rotated["accounts"]),
        (&made["id"], &made["accounts"])
    );
    let given = "'given-secret-of-the-operator'";
    let rotated = bench
        .ok("POST", &format!("{path}/rotate"), &json!({"secret": given}))
        .await;
    assert_eq!(rotated["secret"], "given-secret-of-the-operator");
    let changed = bench
        .ok("PATCH", &path, &json!({"models": null, "expires_at": null}))
        .await;
    assert_eq!(
        (&changed["models"], &changed["expires_at"]),
        (&Value::Null, &Value::Null)
    );
    assert!(is_known("given-secret-of-the-operator"));
    bench.ok("DELETE", &path, &Value::Null).await;
    assert!(!is_known("given-secret-of-the-operator"));
}

#[tokio::test]
async fn no_read_shows_a_secret() {
    let bench = bench().await;
    let secret = "sk-very-secret-upstream-0001";
    let made = credential(&bench, secret).await;
    let key = bench.ok("POST", "/keys", &json!({"name": "ci"})).await;
    let token = bench.ok("POST", "/tokens", &json!({"name": "ci"})).await;
    assert_eq!(made["secret_hint"], "0001");
    let minted = [&key, &token].map(|thing| thing["secret"].as_str().unwrap().to_owned());
    let mut paths: Vec<String> = routes::table()
        .into_iter()
        .filter(|r| r.method == Method::GET && !r.path.contains("{id}"))
        .map(|r| r.path)
        .collect();
    paths.push(format!("/credentials/{}", id(&made)));
    paths.push(format!("/keys/{}", id(&key)));
    for path in paths {
        let text = bench.get(&path).await.to_string();
        for secret in minted.iter().map(String::as_str).chain([secret]) {
            assert!(!text.contains(secret), "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn a_change_is_in_force_when_its_answer_arrives() {
    let bench = bench().await;
    assert_eq!(bench.pool().edges().len(), 0);
    let made = credential(&bench, SECRET).await;
    let edges = bench.pool().edges().len();
    assert!(edges > 0);
    let path = format!("/credentials/{}", id(&made));
    bench
        .ok("POST", &format!("{path}/disable"), &Value::Null)
        .await;
    let pool = bench.pool();
    assert!(!pool.edges().iter().any(|edge| pool.takes_work(edge)));
    bench.ok("DELETE", &path, &Value::Null).await;
    assert_eq!(bench.pool().edges().len(), 0);
}

#[tokio::test]
async fn lists_are_paged_in_the_order_of_ids() {
    let bench = bench().await;
    for n in 1..=4 {
        bench
            .ok("POST", "/accounts", &json!({"name": format!("a-{n}")}))
            .await;
    }
    let mut names = Vec::new();
    let mut path = "/accounts?limit=2".to_owned();
    let mut pages = 0;
    loop {
        let page = bench.get(&path).await;
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|a| a["name"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/accounts?limit=2&cursor={cursor}");
    }
    assert_eq!(names, ["team", "a-1", "a-2", "a-3", "a-4"]);
    assert_eq!(pages, 3);
}
