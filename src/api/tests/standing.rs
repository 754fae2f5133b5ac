//! How the pool stands, what would become of a request, and who changed what.
use super::*;
use crate::domain::{admission::Subject, cooldown::Kept};

const SECRET: &str = "sk-upstream-secret-0001";

/// Two accounts with a credential each, at one endpoint that serves one model under two names.
async fn pool() -> Bench {
    let bench = empty(Layer::default()).await;
    let credential = |name: &str, n: u8| json!({"name": name, "secret": format!("sk-upstream-secret-000{n}"), "accounts": [format!("of-{name}")], "endpoints": ["e"], "models": ["m", {"model": "fast", "upstream_model": "m"}]});
    let document = json!({
        "endpoints": [{"name": "e", "preset": "openai"}],
        "accounts": [{"name": "of-a"}, {"name": "of-b", "quota_scope": "credential"}],
        "credentials": [credential("a", 1), credential("b", 2)],
        "keys": [{"name": "ci", "secret": "fl-a-key-of-these-tests-1", "accounts": ["of-a"], "models": ["m"]}],
    });
    bench.ok("PUT", "/pool", &document).await;
    bench
}

impl Bench {
    fn cool(&self, subject: Subject) {
        let kept = Kept {
            ends_in_ms: 40_000,
            told_in_ms: None,
            length_ms: 40_000,
            is_quota: false,
        };
        let admission = self.state.reload().configuration().admission();
        admission.restore([(subject, None, kept)]);
    }

    fn account(&self, name: &str) -> Subject {
        let pool = self.pool();
        let found = pool.accounts().iter().find(|a| &*a.name == name);
        Subject::Account(found.unwrap().id)
    }

    fn credential(&self, name: &str) -> Subject {
        let pool = self.pool();
        let found = pool.credentials().iter().find(|c| &*c.name == name);
        Subject::Credential(found.unwrap().id)
    }

    async fn explain(&self, question: &Value) -> Value {
        self.ok("POST", "/explain", question).await
    }

    async fn audit(&self) -> Vec<String> {
        let lines = self.get("/audit?limit=200").await["items"].clone();
        let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
        let lines = lines.as_array().unwrap().iter().rev();
        lines
            .map(|l| {
                format!(
                    "{} {} {}",
                    text(l, "actor"),
                    text(l, "action"),
                    text(l, "detail")
                )
            })
            .collect()
    }
}

fn path(subject: Subject) -> String {
    match subject {
        Subject::Account(id) => format!("/accounts/{id}/clear-cooldown"),
        Subject::Credential(id) => format!("/credentials/{id}/clear-cooldown"),
    }
}

/// "account why-not" of each edge, in order.
fn edges(answer: &Value) -> Vec<String> {
    let edges = answer["edges"].as_array().unwrap().iter();
    let text = |edge: &Value| {
        let why = edge["why_not"]["code"].as_str().unwrap_or("takes it");
        assert_eq!(edge["would_take"], json!(edge["why_not"].is_null()));
        format!("{} {why}", edge["accounts"][0]["name"].as_str().unwrap())
    };
    edges.map(text).collect()
}

#[tokio::test]
async fn what_cools_is_shown_and_cleared_in_the_callers_name() {
    let bench = pool().await;
    let subject = bench.account("of-a");
    let nothing = bench.ok("POST", &path(subject), &Value::Null).await;
    assert_eq!(nothing, json!({"cleared": false}));
    bench.cool(subject);
    let state = |shown: &Value| shown["accounts"][0]["cooldown"]["state"].clone();
    let shown = bench.get("/concurrency").await;
    assert_eq!(state(&shown), json!("cooling"));
    assert!(shown["accounts"][0]["cooldown"]["until"].is_string());
    let done = bench.ok("POST", &path(subject), &Value::Null).await;
    assert_eq!(done, json!({"cleared": true}));
    assert_eq!(state(&bench.get("/concurrency").await), json!("open"));
    let lines = bench.audit().await;
    let cleared: Vec<_> = lines.iter().filter(|l| l.contains("cooldown")).collect();
    assert_eq!(cleared, ["token tests clear_cooldown of-a"]);
}

#[tokio::test]
async fn an_account_whose_limits_apply_to_each_credential_is_cleared_with_them() {
    let bench = pool().await;
    bench.cool(bench.credential("b"));
    let account = bench.account("of-b");
    let done = bench.ok("POST", &path(account), &Value::Null).await;
    assert_eq!(done, json!({"cleared": true}));
    let credential = path(bench.credential("b"));
    let nothing = bench.ok("POST", &credential, &Value::Null).await;
    assert_eq!(nothing, json!({"cleared": false}));
}

#[tokio::test]
async fn what_is_not_there_has_no_cooldown_to_clear() {
    let bench = pool().await;
    for path in [
        "/accounts/acc_00000000-0000-0000-0000-000000000009/clear-cooldown",
        "/credentials/cred_00000000-0000-0000-0000-000000000009/clear-cooldown",
        "/accounts/nobody/clear-cooldown",
    ] {
        let missing = (404, "NOT_FOUND", "");
        bench.refused(("POST", path), &Value::Null, missing).await;
    }
}

#[tokio::test]
async fn the_edges_that_would_take_it_come_first_and_the_others_say_why_not() {
    let bench = pool().await;
    let asked = json!({"protocol": "openai", "model": "fast"});
    let answer = bench.explain(&asked).await;
    assert_eq!(edges(&answer), ["of-a takes it", "of-b takes it"]);
    assert_eq!(answer["edges"][0]["upstream_model"], json!("m"));
    assert_eq!(answer["then"]["outcome"], json!("goes"));
    bench.cool(bench.account("of-a"));
    let answer = bench.explain(&asked).await;
    assert_eq!(edges(&answer), ["of-b takes it", "of-a account_cooling"]);
    assert!(answer["edges"][1]["why_not"]["until"].is_string());
    let scoped = json!({"protocol": "openai", "model": "m", "key": "ci"});
    let answer = bench.explain(&scoped).await;
    assert_eq!(
        edges(&answer),
        ["of-a account_cooling", "of-b out_of_scope"]
    );
    // Forty seconds are longer than requests wait.
    let then = &answer["then"];
    assert_eq!(
        (&then["outcome"], &then["reason"]),
        (&json!("refused"), &json!("account_cooling"))
    );
    assert_eq!(then["status"], json!(429));
}

#[tokio::test]
async fn nothing_is_taken_by_asking() {
    let bench = pool().await;
    for _ in 0..50 {
        bench
            .explain(&json!({"protocol": "openai", "model": "m"}))
            .await;
    }
    let shown = bench.get("/concurrency").await;
    assert_eq!(shown["pool"]["streams_in_flight"], json!(0));
    assert_eq!(shown["accounts"][0]["streams"], json!(0));
}

#[tokio::test]
async fn a_question_that_cannot_be_understood_is_refused_at_its_field() {
    let bench = pool().await;
    for (question, field) in [
        (json!({}), "protocol"),
        (json!({"protocol": "smtp"}), "protocol"),
        (json!({"protocol": "openai", "key": "nobody"}), "key"),
        (json!({"protocol": "openai", "model": 3}), "model"),
        (json!({"protocol": "openai", "reattach": "yes"}), "reattach"),
        (json!({"protocol": "openai", "modell": "m"}), "modell"),
    ] {
        let expect = (400, "INVALID_FIELD", field);
        bench.refused(("POST", "/explain"), &question, expect).await;
    }
}

#[tokio::test]
async fn what_a_key_may_not_ask_for_and_what_nobody_serves_is_refused() {
    let bench = pool().await;
    for (model, key, reason) in [
        ("fast", Some("ci"), "model_not_allowed"),
        ("unheard-of", None, "model_not_found"),
    ] {
        let asked = json!({"protocol": "openai", "model": model, "key": key});
        let then = bench.explain(&asked).await["then"].clone();
        assert_eq!(
            (&then["outcome"], &then["reason"]),
            (&json!("refused"), &json!(reason))
        );
    }
}

#[tokio::test]
async fn every_change_stands_in_the_audit_log_by_the_tokens_name_and_page() {
    let bench = pool().await;
    let before = bench.audit().await.len();
    let Subject::Account(id) = bench.account("of-a") else {
        panic!("an account");
    };
    let Subject::Credential(credential) = bench.credential("a") else {
        panic!("a credential");
    };
    for verb in ["drain", "disable", "enable"] {
        let path = format!("/accounts/{id}/{verb}");
        bench.ok("POST", &path, &Value::Null).await;
    }
    let path = format!("/credentials/{credential}/rotate");
    let secret = json!({"secret": "sk-upstream-secret-0009"});
    bench.ok("POST", &path, &secret).await;
    let path = format!("/credentials/{credential}");
    bench.ok("DELETE", &path, &Value::Null).await;
    let change = json!({"version": 0, "set": {"account_stream_limit": 12}});
    bench.ok("PATCH", "/settings", &change).await;
    assert_eq!(
        bench.audit().await[before..],
        [
            "token tests drain_account of-a",
            "token tests disable_account of-a",
            "token tests enable_account of-a",
            "token tests rotate_credential a",
            "token tests remove_credential a",
            "token tests set_setting 12",
        ]
    );
    let first = bench.get("/audit?limit=2").await;
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let second = bench.get(&format!("/audit?limit=2&cursor={cursor}")).await;
    let actions = |page: &Value| {
        [
            page["items"][0]["action"].clone(),
            page["items"][1]["action"].clone(),
        ]
    };
    assert_eq!(actions(&first), ["set_setting", "remove_credential"]);
    assert_eq!(actions(&second), ["rotate_credential", "enable_account"]);
    assert!(
        !bench
            .get("/audit?limit=200")
            .await
            .to_string()
            .contains(&SECRET[..18])
    );
}
