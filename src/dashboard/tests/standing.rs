//! How the pool stands, on its page and on the overview, and what can be done about it.
use super::{pool::filled, *};
use crate::{
    clock,
    domain::{
        admission::Subject,
        cooldown::Kept,
        ids::{CredentialId, RequestId},
        ledger::{Entry, Outcome},
    },
    store::audit::Written,
};

fn cool(bench: &Bench, subject: Subject) {
    let kept = Kept {
        ends_in_ms: 41_000,
        told_in_ms: None,
        length_ms: 41_000,
        is_quota: false,
    };
    let admission = bench.state.reload().configuration().admission();
    admission.restore([(subject, None, kept)]);
}

fn account(bench: &Bench) -> Subject {
    Subject::Account(bench.state.reload().configuration().pool().accounts()[0].id)
}

async fn last_line(bench: &Bench) -> Written {
    let mut lines = bench.state.store().audit_lines(None, 1).await.unwrap();
    lines.remove(0)
}

#[tokio::test]
async fn a_cooldown_is_shown_with_its_end_and_ended_behind_a_question() {
    let (bench, [_, account_path, credential_path]) = filled().await;
    let clear = format!("{account_path}/clear-cooldown");
    assert!(!bench.get("/pool").await.text.contains(&clear));
    cool(&bench, account(&bench));
    let page = bench.get("/pool").await;
    page.says("<span>Cooling</span>");
    page.says("free in 41 s");
    page.says(&format!("href=\"{clear}\""));
    let overview = bench.get("/").await;
    overview.says("Account team cools since");
    overview.says(&format!("href=\"{clear}\">Clear cooldown</a>"));
    let question = bench.get(&clear).await;
    question.says("Clear cooldown");
    question.says("In flight on it now: no stream, no request being started.");
    let done = bench.post(&clear, "").await;
    let after = bench.get(done.location()).await;
    after.says("team takes requests again");
    assert!(!after.text.contains("<span>Cooling</span>"));
    let line = last_line(&bench).await;
    let line = (&*line.actor, &*line.action, &*line.detail);
    assert_eq!(line, ("dashboard", "clear_cooldown", "team"));
    // A credential has one of its own, an endpoint none.
    let credential = format!("{credential_path}/clear-cooldown");
    assert_eq!(bench.get(&credential).await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_endpoint_has_no_cooldown_to_clear() {
    let (bench, [endpoint, ..]) = filled().await;
    let path = format!("{endpoint}/clear-cooldown");
    assert_eq!(bench.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(bench.post(&path, "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_drains_and_holds_nothing_is_drained() {
    let (bench, [_, account, _]) = filled().await;
    bench.post(&format!("{account}/drain"), "").await;
    let page = bench.get("/pool").await;
    page.says("<span>Drained</span>");
    page.says("safe to remove");
    bench.get("/").await.says("<span>Drained</span>");
}

#[tokio::test]
async fn how_an_account_cools_is_chosen_in_its_form() {
    let (bench, [_, path, _]) = filled().await;
    let is = || {
        let pool = Arc::clone(&bench.state.reload().configuration().pool());
        let account = &pool.accounts()[0];
        (account.cooldown_per_model, account.trust_reset)
    };
    let checked = "name=\"cooldown_per_model\" value=\"on\" aria-describedby=\"cooldown_per_model-hint\" checked";
    assert!(!bench.get(&path).await.text.contains(checked));
    let form = "name=team&cooldown_per_model=on&trust_reset=on";
    bench.post(&path, form).await.location();
    assert_eq!(is(), (true, true));
    bench.get(&path).await.says(checked);
    bench.post(&path, "name=team").await.location();
    assert_eq!(is(), (false, false));
}

#[tokio::test]
async fn a_refused_credential_can_be_tested_again_from_the_overview() {
    let (bench, [_, _, path]) = filled().await;
    let id = bench.state.reload().configuration().pool().credentials()[0].id;
    let subject = Subject::Credential(id);
    let reason = crate::domain::pool::DisabledReason::Auth;
    bench.state.store().disable(subject, reason).await.unwrap();
    bench.state.reload().now().await.unwrap();
    let page = bench.get("/").await;
    page.says(&format!("<form method=\"post\" action=\"{path}/test\">"));
    page.says(&format!("href=\"{path}/rotate\""));
    let pool = bench.get("/pool").await;
    pool.says("The provider refuses its secret.");
}

#[tokio::test]
async fn a_request_is_explained_with_what_cools_and_nothing_is_sent() {
    let (bench, _) = filled().await;
    let form = bench.get("/pool/explain").await;
    form.says("name=\"model\"");
    assert!(!form.text.contains("id=\"edges-title\""));
    let asked = "/pool/explain?key=&protocol=openai&model=gpt-4o";
    let page = bench.get(asked).await;
    page.says("It would go at once");
    page.says("would get it");
    cool(&bench, account(&bench));
    let page = bench.get(asked).await;
    page.says("It would be refused at once, with 429 (account_cooling).");
    page.says("cools, free in 41 s");
    let page = bench.get("/pool/explain?protocol=gemini&model=x").await;
    page.says("Nothing in the pool speaks this protocol");
    let page = bench.get("/pool/explain?key=gone&protocol=openai").await;
    page.says("no client key of that name");
    assert!(bench.provider.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_known_of_a_quota_is_shown_and_switches_the_setting() {
    let (bench, [_, path, _]) = filled().await;
    bench
        .get(&path)
        .await
        .says("No limit (429) of this account is known");
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    let account = pool.accounts()[0].id;
    let now = clock::unix_millis();
    let served = Entry {
        account: Some(account),
        credential: Some(CredentialId::from_u128(9)),
        status: Some(200),
        started_at: now,
        ..entry(2)
    };
    assert!(bench.state.store().try_log(Box::new(served)));
    let met = vec![(pool.credentials()[0].id, now)];
    bench.state.store().keep_limits(met).await.unwrap();
    bench.state.store().flush().await.unwrap();
    let page = bench.get(&path).await;
    page.says("The limits apply to each credential on its own.");
    page.says("was served within the same second.");
    let switch = format!("{path}/part-limits");
    page.says(&format!("action=\"{switch}\""));
    bench.post(&switch, "").await.location();
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    let scope = pool.accounts()[0].quota_scope;
    assert_eq!(scope, crate::domain::pool::QuotaScope::Credential);
    assert!(!bench.get(&path).await.text.contains(&switch));
}

fn entry(n: u128) -> Entry {
    Entry {
        id: RequestId::from_u128(n),
        started_at: 1_000,
        key: None,
        account: None,
        credential: None,
        endpoint: None,
        protocol: None,
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        model: None,
        upstream_model: None,
        status: None,
        reason: None,
        outcome: Outcome::Ok,
        attempts: 1,
        request_bytes: 1,
        response_bytes: 1,
        queued_ms: None,
        headers_ms: None,
        first_byte_ms: None,
        total_ms: None,
        input_tokens: None,
        output_tokens: None,
        cached_tokens: None,
        upstream_request_id: None,
        error: None,
    }
}

#[tokio::test]
async fn models_are_shown_with_what_the_provider_is_asked_for() {
    let (bench, [endpoint, _, path]) = filled().await;
    let id = endpoint.rsplit('/').next().unwrap();
    bench
        .get("/pool/matrix")
        .await
        .says("Every model, under its own name:");
    let account = bench.state.reload().configuration().pool().accounts()[0].id;
    let form = format!("name=c&accounts={account}&endpoints={id}&models=fast+%3D+gpt-4o-mini");
    bench.post(&path, &form).await.location();
    for address in [
        "/pool/matrix".to_owned(),
        format!("/pool/matrix?endpoint={id}"),
    ] {
        let page = bench.get(&address).await;
        page.says("<th scope=\"row\" translate=\"no\">fast</th>");
        page.says("→ gpt-4o-mini");
    }
    let gone = bench.get("/pool/matrix?endpoint=ep_gone").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}
