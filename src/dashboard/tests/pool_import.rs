//! Import by paste: what is shown before, what is written after, and what never comes back.
use super::{pool::filled, *};
use crate::domain::pool::State as Standing;

/// A text as a form's field sends it.
fn field(text: &str) -> String {
    let escaped = |b: u8| format!("%{b:02X}");
    text.bytes().map(escaped).collect()
}

/// What is stored and carries work, in short.
async fn stored(bench: &Bench) -> String {
    format!("{:?}", bench.state.store().pool().await.unwrap().contents)
}

/// The hidden fields of a preview, as its form sends them.
fn confirmation(page: &Answer) -> String {
    let value = |name: &str| {
        let opening = format!("name=\"{name}\" value=\"");
        let rest = page.text.split(&opening).nth(1).expect(&page.text);
        rest.split('"').next().unwrap().to_owned()
    };
    format!("pending={}&shown={}", value("pending"), value("shown"))
}

async fn paste(bench: &Bench, text: &str, more: &str) -> Answer {
    let form = format!("text={}&{more}", field(text));
    bench.post("/pool/import", &form).await
}

async fn preview(bench: &Bench, text: &str, more: &str) -> Answer {
    let address = paste(bench, text, more).await.location().to_owned();
    bench.get(&address).await
}

fn names(bench: &Bench) -> Vec<String> {
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    let credentials = pool.credentials().iter();
    credentials.map(|c| c.secret.expose().to_owned()).collect()
}

#[tokio::test]
async fn a_list_with_faults_shows_each_and_changes_nothing() {
    let (bench, _) = filled().await;
    let before = stored(&bench).await;
    let text = "sk-0123456789abcdef\nsk-new-new-new-1111\n\nsk-new-new-new-1111\nsk spaced\nsk-a,sk-b\n# note\n\"sk-quoted-quoted-2222\"\n";
    let refused = paste(&bench, text, "endpoint=main").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for said in [
        "<strong>Line 5</strong> <span>Character 3 cannot be part of a key.",
        "<strong>Line 6</strong> <span>Holds a comma.",
        "<strong>Line 4</strong> <span>The same secret as in Line 2.",
        "<strong>Line 7</strong> <span>Begins with #",
        "<strong>Line 8</strong> <span>Quotes or invisible",
        "…1111",
        "…2222",
        "…cdef",
        "<option translate=\"no\" selected>main</option>",
    ] {
        refused.says(said);
    }
    // Two are new, each with an account of its own; the stored one is listed and stays.
    refused.says("4 new, 0 changed, 0 drained or removed, 1 unchanged, 1 duplicate");
    assert!(!refused.text.contains("name=\"pending\""));
    for secret in ["sk-0123", "sk-new", "sk spaced", "sk-a", "sk-quoted"] {
        assert!(!refused.text.contains(secret), "{secret}");
    }
    assert_eq!(stored(&bench).await, before);
    assert_eq!(bench.state.pending().count(), 0);
}

#[tokio::test]
async fn a_remark_in_a_table_is_told_of_like_one_in_a_list() {
    let (bench, _) = filled().await;
    let text = "name,secret\n# note\nnew,sk-new-new-new-1111\n";
    let shown = preview(&bench, text, "endpoint=main").await;
    shown.says("<strong>Line 2</strong> <span>Begins with # and is left out.");
}

#[tokio::test]
async fn what_was_shown_is_stored_and_nothing_else() {
    let (bench, _) = filled().await;
    let before = stored(&bench).await;
    let text = "name,secret,account\nfirst,sk-new-new-new-1111,team\n,sk-0123456789abcdef,\n";
    let shown = preview(&bench, text, "endpoint=main").await;
    assert_eq!(shown.status, StatusCode::OK);
    shown.says("1 new, 0 changed, 0 drained or removed, 2 unchanged, 0 duplicate");
    assert!(!shown.text.contains("sk-"), "{}", shown.text);
    assert_eq!(stored(&bench).await, before);

    let done = bench.post("/pool/import", &confirmation(&shown)).await;
    assert_eq!(done.status, StatusCode::OK);
    done.says("The import is in force.");
    assert!(!done.text.contains("sk-"), "{}", done.text);
    assert_eq!(
        names(&bench),
        ["sk-0123456789abcdef", "sk-new-new-new-1111"]
    );
    assert_eq!(bench.state.pending().count(), 0);
    let again = bench.post("/pool/import", &confirmation(&shown)).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    again.says("not held any more");
}

#[tokio::test]
async fn a_document_is_shown_with_what_it_changes_and_its_keys_once() {
    let (bench, _) = filled().await;
    let text = r#"{"accounts":[{"name":"team","stream_limit":3}],"keys":[{"name":"ci"}],
        "credentials":[{"secret":"sk-new-new-new-1111","accounts":["team"],"endpoints":["main"]}]}"#;
    let shown = preview(&bench, text, "endpoint=").await;
    shown.says("2 new, 1 changed,");
    shown.says("credentials[0]");
    shown.says("One client key is given a secret");
    assert!(!shown.text.contains("fl-"), "{}", shown.text);
    let done = bench.post("/pool/import", &confirmation(&shown)).await;
    done.says("translate=\"no\">fl-");
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    assert_eq!(pool.accounts()[0].stream_limit, Some(3));
    assert_eq!(pool.keys().len(), 1);

    let before = stored(&bench).await;
    let text = r#"{"accounts":[{"name":"team","stream_limit":-1}],"credentials":{}}"#;
    let refused = paste(&bench, text, "").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.says("accounts[0].stream_limit");
    paste(&bench, "{\"accounts\":", "")
        .await
        .says("this is not JSON");
    assert_eq!(stored(&bench).await, before);
}

#[tokio::test]
async fn what_is_not_listed_drains_only_after_the_word() {
    let (bench, _) = filled().await;
    let state = |bench: &Bench| bench.state.reload().configuration().pool().credentials()[0].state;
    let shown = preview(&bench, "sk-new-new-new-1111", "endpoint=main&sync=on").await;
    shown.says("1 drained or removed");
    let form = confirmation(&shown);
    for word in ["", "&word=other"] {
        let refused = bench.post("/pool/import", &format!("{form}{word}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        refused.says("id=\"word-fault\"");
        assert_eq!(state(&bench), Standing::Active);
    }
    let form = format!("{form}&word=drain");
    assert_eq!(
        bench.post("/pool/import", &form).await.status,
        StatusCode::OK
    );
    assert_eq!(state(&bench), Standing::Draining);
}

#[tokio::test]
async fn a_plan_that_differs_by_now_is_shown_instead() {
    let (bench, [_, _, credential]) = filled().await;
    let text = "sk-0123456789abcdef\nsk-new-new-new-1111";
    let shown = preview(&bench, text, "endpoint=main").await;
    bench
        .post(&format!("{credential}/drain"), "")
        .await
        .location();
    let before = stored(&bench).await;
    let instead = bench.post("/pool/import", &confirmation(&shown)).await;
    assert_eq!(instead.status, StatusCode::CONFLICT);
    instead.says("The pool was changed meanwhile");
    instead.says("1 changed");
    assert_eq!(stored(&bench).await, before);
    let done = bench.post("/pool/import", &confirmation(&instead)).await;
    assert_eq!(done.status, StatusCode::OK);
    assert_eq!(names(&bench).len(), 2);
}

#[tokio::test]
async fn a_text_of_another_session_or_of_none_is_not_there() {
    let (bench, _) = filled().await;
    let shown = preview(&bench, "sk-new-new-new-1111", "endpoint=main").await;
    let form = confirmation(&shown);
    let mine = bench.cookie.lock().unwrap().clone();
    let log_in = format!("password={PASSWORD}&next=/").replace(' ', "+");
    bench.post("/login", &log_in).await.location();
    assert_ne!(*bench.cookie.lock().unwrap(), mine);
    for form in [&*form, "pending=guessed&shown="] {
        let refused = bench.post("/pool/import", form).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        refused.says("not held any more");
        let (pending, _) = form.split_once('&').unwrap();
        let page = bench.get(&format!("/pool/import?{pending}")).await;
        page.says("not held any more");
    }
    assert_eq!(names(&bench).len(), 1);
    *bench.cookie.lock().unwrap() = mine;
    let done = bench.post("/pool/import", &form).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
}

#[tokio::test]
async fn what_is_missing_stands_at_its_field() {
    let (bench, _) = filled().await;
    for (text, endpoint, at) in [
        (" \n", "main", "text"),
        ("sk-new-new-new-1111", "", "endpoint"),
        ("sk-new-new-new-1111", "unknown", "endpoint"),
    ] {
        let refused = paste(&bench, text, &format!("endpoint={endpoint}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        refused.says(&format!("id=\"{at}-fault\""));
    }
    let shown = preview(&bench, "sk-new-new-new-1111", "endpoint=groq").await;
    bench.post("/pool/import", &confirmation(&shown)).await;
    let pool = Arc::clone(&bench.state.reload().configuration().pool());
    assert!(pool.endpoints().iter().any(|e| &*e.name == "groq"));
}
