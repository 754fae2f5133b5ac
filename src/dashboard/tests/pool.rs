//! The ways through the Pool page: adding, changing, and what stands behind a confirmation.
use super::*;
use crate::domain::pool::{Pool, State as Standing};

const ENDPOINT: &str =
    "name=main&base_url=https://api.openai.com/v1&protocols=openai&protocols=anthropic";

fn pool(bench: &Bench) -> Arc<Pool> {
    Arc::clone(&bench.state.reload().configuration().pool())
}

fn done(answer: &Answer, what: &str) {
    let address = answer.location();
    let expected = format!("/pool?done={what}&at=");
    assert!(address.starts_with(&expected), "{address}");
}

/// A bench with one endpoint, one account and one credential; their forms' addresses.
pub(super) async fn filled() -> (Bench, [String; 3]) {
    let bench = bench().await;
    bench.set_up().await;
    let post = async |path: &str, form: &str| {
        assert!(
            bench
                .post(path, form)
                .await
                .location()
                .starts_with("/pool?done=added&at=")
        );
    };
    post("/pool/endpoints/new", ENDPOINT).await;
    post(
        "/pool/accounts/new",
        "name=team&stream_limit=&create_limit=0",
    )
    .await;
    let (endpoint, account) = {
        let pool = pool(&bench);
        (pool.endpoints()[0].id, pool.accounts()[0].id)
    };
    let form = format!("secret=sk-0123456789abcdef&accounts={account}&endpoints={endpoint}");
    post("/pool/credentials/new", &form).await;
    let credential = pool(&bench).credentials()[0].id;
    let paths = [
        format!("/pool/endpoints/{endpoint}"),
        format!("/pool/accounts/{account}"),
        format!("/pool/credentials/{credential}"),
    ];
    (bench, paths)
}

#[tokio::test]
async fn what_is_added_stands_in_the_list_without_its_secret() {
    let (bench, paths) = filled().await;
    let pool = pool(&bench);
    assert_eq!(pool.endpoints()[0].protocols.len(), 2);
    let account = &pool.accounts()[0];
    assert_eq!(
        (account.stream_limit, account.create_limit),
        (None, Some(0))
    );
    assert_eq!(pool.credentials()[0].accounts, [account.id]);
    let page = bench.get("/pool").await;
    for path in &paths {
        page.says(&format!("href=\"{path}\""));
        bench.get(path).await.says("value=\"");
    }
    page.says("8 (inherited)");
    page.says("unlimited");
    page.says("…cdef");
    page.says("https://api.openai.com/v1/models");
    assert!(!page.text.contains("sk-0123456789abcdef"));
    let form = bench.get(&paths[2]).await;
    assert!(!form.text.contains("cdef\""), "{}", form.text);
    assert!(!form.text.contains("name=\"secret\""), "{}", form.text);
}

#[tokio::test]
async fn a_preset_fills_the_form_and_says_what_will_be_called() {
    let bench = bench().await;
    bench.set_up().await;
    let form = bench.get("/pool/endpoints/new?preset=groq").await;
    form.says("value=\"https://api.groq.com/openai\"");
    form.says("https://api.groq.com/openai/v1/models");
    let piece = bench
        .get("/pool/called?base_url=http://localhost:1&protocols=openai")
        .await;
    piece.says("http://localhost:1/v1/models");
}

#[tokio::test]
async fn a_change_keeps_what_its_form_does_not_show() {
    let (bench, [endpoint, account, credential]) = filled().await;
    bench.post(&format!("{account}/drain"), "").await.location();
    let form = "name=renamed&stream_limit=5&create_limit=&priority=-1&weight=2";
    done(&bench.post(&account, form).await, "saved");
    let changed = pool(&bench).accounts()[0].clone();
    assert_eq!(&*changed.name, "renamed");
    assert_eq!(
        (changed.stream_limit, changed.create_limit),
        (Some(5), None)
    );
    assert_eq!((changed.priority, changed.weight), (-1, 2));
    assert_eq!(changed.state, Standing::Draining);
    let at = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let form = format!(
        "name=mine&endpoints={}&accounts={}",
        at(&endpoint),
        at(&account)
    );
    done(&bench.post(&credential, &form).await, "saved");
    let changed = pool(&bench).credentials()[0].clone();
    assert_eq!(&*changed.name, "mine");
    assert_eq!(changed.secret.expose(), "sk-0123456789abcdef");
}

#[tokio::test]
async fn a_mistake_stands_at_its_field_and_writes_nothing() {
    let (bench, [endpoint, account, credential]) = filled().await;
    let before = bench.state.store().pool().await.unwrap().contents;
    for (path, form, field) in [
        ("/pool/accounts/new", "name=", "name"),
        ("/pool/accounts/new", "name=team", "name"),
        (&*account, "name=a&stream_limit=x", "stream_limit"),
        (&*account, "name=a&create_limit=-1", "create_limit"),
        (
            &*account,
            "name=a&stream_limit_is=own&stream_limit=",
            "stream_limit",
        ),
        (&*account, "name=a&job_limit=x", "job_limit"),
        (&*account, "name=a&quota_scope=x", "quota_scope"),
        (
            &*credential,
            "name=a&endpoints=main&job_limit=-1",
            "job_limit",
        ),
        (&*credential, "name=a&endpoints=main&models=a%0Aa", "models"),
        (&*account, "name=a&priority=high", "priority"),
        (&*account, "name=a&weight=0", "weight"),
        (
            &*endpoint,
            "name=a&base_url=ftp://x&protocols=openai",
            "base_url",
        ),
        (&*endpoint, "name=a&base_url=https://x.example", "protocols"),
        (&*credential, "name=a", "endpoints"),
        (&*credential, "name=&endpoints=main", "name"),
        ("/pool/credentials/new", "endpoints=main&secret=", "secret"),
        (
            "/pool/credentials/new",
            "endpoints=main&secret=sk-0123456789abcdef",
            "secret",
        ),
        (
            "/pool/credentials/new",
            "endpoints=main&secret=sk-1&accounts=x",
            "accounts",
        ),
    ] {
        let refused = bench.post(path, form).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{path} {form}"
        );
        refused.says(&format!("id=\"{field}-fault\""));
        assert!(!refused.text.contains("sk-0123456789abcdef"));
    }
    let after = bench.state.store().pool().await.unwrap().contents;
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
}

#[tokio::test]
async fn an_action_is_said_before_it_is_done() {
    let (bench, [endpoint, account, credential]) = filled().await;
    for (path, verb, word, state) in [
        (&account, "drain", "takes no new work", "draining"),
        (&account, "disable", "until somebody enables it", "disabled"),
        (&account, "enable", "takes new work at once", "active"),
    ] {
        let path = format!("{path}/{verb}");
        bench.get(&path).await.says(word);
        assert_ne!(pool(&bench).accounts()[0].state.name(), state);
        bench.post(&path, "").await.location();
        assert_eq!(pool(&bench).accounts()[0].state.name(), state);
    }
    let refused = bench.post(&format!("{endpoint}/remove"), "").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("still used by these credentials");
    let rotate = format!("{credential}/rotate");
    let refused = bench.post(&rotate, "secret=").await;
    refused.says("id=\"secret-fault\"");
    bench
        .post(&rotate, "secret=sk-another-one")
        .await
        .location();
    let secret = pool(&bench).credentials()[0].secret.expose().to_owned();
    assert_eq!(secret, "sk-another-one");
    for path in [&credential, &account, &endpoint] {
        bench
            .get(&format!("{path}/remove"))
            .await
            .says("cannot be undone");
        bench.post(&format!("{path}/remove"), "").await.location();
        let gone = bench.get(path).await;
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
    assert!(pool(&bench).credentials().is_empty());
    let none = bench.get(&format!("{account}/rotate")).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_one_click_undoes_is_done_at_once_and_said() {
    let (bench, [endpoint, account, credential]) = filled().await;
    let list = bench.get("/pool").await;
    for path in [&endpoint, &account, &credential] {
        list.says(&format!("formaction=\"{path}/drain\""));
        for (verb, said) in [
            ("drain", "takes no new work"),
            ("disable", "is disabled"),
            ("enable", "takes new work."),
        ] {
            let address = bench.post(&format!("{path}/{verb}"), "").await;
            let after = bench.get(address.location()).await;
            after.says("<div role=\"status\">");
            after.says(said);
            let again = format!("action=\"{path}/enable\"><button");
            assert_eq!(after.text.contains(&again), verb != "enable");
        }
    }
    for made_up in ["at=accounts/x", "at=%3Cb%3E", ""] {
        let page = bench.get(&format!("/pool?done=drained&{made_up}")).await;
        assert!(!page.text.contains("<div role=\"status\">"));
    }
}

#[tokio::test]
async fn the_list_is_a_piece_that_is_sent_once() {
    let (bench, _) = filled().await;
    let piece = bench.fragment("/pool").await;
    assert!(
        piece
            .text
            .starts_with("<div id=\"live\" data-tick=\"5000\"")
    );
    let shown = [
        ("hx-request", "true"),
        ("x-shown-version", piece.header("x-version")),
    ];
    let same = bench.send(Method::GET, "/pool", "", &shown).await;
    assert_eq!(same.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_removal_says_who_loses_what() {
    let (bench, [endpoint, account, credential]) = filled().await;
    let page = bench.get(&format!("{endpoint}/remove")).await;
    page.says("One credential still uses it");
    page.says(&format!("action=\"{endpoint}/drain\" id=\"drain\""));
    let page = bench.get(&format!("{credential}/remove")).await;
    page.says("One account has no other credential and can take no more work: team.");
    bench.post(&format!("{account}/drain"), "").await.location();
    let page = bench.get(&format!("{account}/remove")).await;
    assert!(!page.text.contains("id=\"drain\""));
}

#[tokio::test]
async fn a_test_of_what_is_stored_says_what_came_back_and_writes_nothing() {
    let (bench, [endpoint, account, credential]) = filled().await;
    let test = async |path: &str| bench.post(&format!("{path}/test"), "").await;
    let refused = r#"{"error":{"message":"Incorrect: sk-0123456789abcdef.\nMore."}}"#;
    *bench.provider.answer.lock().unwrap() = Some((401, refused));
    for path in [&endpoint, &credential] {
        let answer = test(path).await;
        assert_eq!(answer.status, StatusCode::OK);
        answer.says("https://api.openai.com/v1/models");
        answer.says(">401<");
        answer.says(" ms<");
        answer.says("Incorrect: ");
        answer.says("The provider refuses the key.");
        answer.says("Check that the key is complete");
        assert!(!answer.text.contains("sk-0123456789abcdef"));
        let rotate = format!("href=\"{credential}/rotate\"");
        assert_eq!(answer.text.contains(&rotate), path == &credential);
    }
    let (_, headers) = bench.provider.seen.lock().unwrap()[0].clone();
    assert_eq!(headers["authorization"], "Bearer sk-0123456789abcdef");
    *bench.provider.answer.lock().unwrap() = Some((200, r#"{"data":[{"id":"one"}]}"#));
    test(&credential).await.says("It works: one model");
    *bench.provider.answer.lock().unwrap() = None;
    test(&credential).await.says("No connection could be made.");

    let calls = bench.provider.seen.lock().unwrap().len();
    let looked = bench.get(&format!("{credential}/test")).await;
    assert_eq!(looked.location(), credential);
    assert_eq!(test(&account).await.status, StatusCode::NOT_FOUND);
    bench
        .post(&format!("{credential}/remove"), "")
        .await
        .location();
    test(&endpoint)
        .await
        .says("no credential works at this endpoint");
    assert_eq!(bench.provider.seen.lock().unwrap().len(), calls);
}

#[tokio::test]
async fn every_field_is_stored_and_shown_again() {
    let (bench, [endpoint, account, credential]) = filled().await;
    let form = "name=team&quota_scope=credential&stream_limit_is=own&stream_limit=12\
        &create_limit_is=inherit&create_limit=5&job_limit=2&priority=&weight=";
    done(&bench.post(&account, form).await, "saved");
    let form = format!("{ENDPOINT}&models=a+%3D+b%0D%0A%0D%0Ac&headers=X-Team:+one:two%0D%0Ax-b:");
    done(&bench.post(&endpoint, &form).await, "saved");
    let form = "name=mine&endpoints=main&accounts=team&models=c&job_limit=3";
    done(&bench.post(&credential, form).await, "saved");

    let pool = pool(&bench);
    let stored = &pool.accounts()[0];
    assert_eq!(stored.quota_scope.name(), "credential");
    let limits = (stored.stream_limit, stored.create_limit, stored.job_limit);
    assert_eq!(limits, (Some(12), None, Some(2)));
    let stored = &pool.endpoints()[0];
    let models = stored.models.as_ref().unwrap().iter();
    let models: Vec<_> = models
        .map(|m| (&*m.model, m.upstream_model.as_deref()))
        .collect();
    assert_eq!(models, [("a", Some("b")), ("c", None)]);
    let headers: Vec<_> = stored.headers.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(headers, [("x-team", "one:two"), ("x-b", "")]);
    let stored = &pool.credentials()[0];
    assert_eq!(stored.job_limit, Some(3));
    assert_eq!(stored.models.as_ref().unwrap().len(), 1);

    let page = bench.get(&account).await;
    page.says("value=\"credential\" checked");
    page.says("name=\"stream_limit_is\" value=\"own\" checked");
    page.says("name=\"create_limit_is\" value=\"inherit\" checked");
    page.says("In effect: 12. If cleared: 8.");
    let page = bench.get(&endpoint).await;
    page.says(">\na = b\nc</textarea>");
    page.says(">\nx-team: one:two\nx-b: </textarea>");

    let clear = format!("{ENDPOINT}&models=&headers=");
    done(&bench.post(&endpoint, &clear).await, "saved");
    let endpoint = self::pool(&bench).endpoints()[0].clone();
    assert_eq!((endpoint.models, endpoint.headers.len()), (None, 0));
}

#[tokio::test]
async fn a_fault_in_many_lines_names_its_line() {
    let (bench, [endpoint, ..]) = filled().await;
    for (field, text, line) in [
        ("models", "a%0A%0Ab%0Aa", 4),
        ("models", "a%0Ab+%3D", 2),
        ("headers", "x-a:+1%0Anone", 2),
        ("headers", "x-a:+1%0A%0Ax-a:+2", 3),
        ("headers", "x-a:+1%0AX-A:+2", 2),
        ("headers", "x-a:+1%0Ahost:+x", 2),
    ] {
        let refused = bench
            .post(&endpoint, &format!("{ENDPOINT}&{field}={text}"))
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        refused.says(&format!("id=\"{field}-fault\">Line {line} is no "));
        refused.says("<details class=\"later-fields\" open>");
    }
}
