//! What is read, what is refused with which path, and what is written.
use super::*;
use crate::domain::pool::{
    Origin,
    document::{Field, OnMatch, WantedState},
};

/// The mistakes of reading, as lines.
fn mistakes(json: &str) -> Vec<String> {
    let found = match read_json(json.as_bytes()) {
        Ok(document) => document.mistakes,
        Err(mistakes) => mistakes,
    };
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_syntax_error_gives_its_line_and_column() {
    assert_eq!(
        mistakes("{\"endpoints\": [\n  {\"name\" \"x\"}]}"),
        ["line 2, column 11: this is not JSON: expected `:`"]
    );
    assert_eq!(mistakes("[]").len(), 1);
    assert_eq!(mistakes("{}"), [] as [&str; 0]);
    assert_eq!(mistakes("\u{feff}{}"), [] as [&str; 0]);
}

#[test]
fn every_mistake_is_found_at_once() {
    let found = mistakes(
        r#"{
          "endpoint": [],
          "egress_pools": [{"name": "eu"}],
          "endpoints": [
            {"name": " ", "base_url": "ftp://x", "protocols": ["openai", "soap"], "models": []},
            {"name": "e", "preset": "nope", "headers": {"Host": "x", "a b": "c", "x-a": 5, "X-A": "1", "x-b": "ü"}},
            {"base_url": 7, "protocols": [], "models": [{"model": "m"}, "m", {"modle": "x"}]},
            7],
          "accounts": [{"name": "a", "stream_limit": -1, "create_limit": 1.5, "weight": 0,
                        "quota_scope": "team", "egress_pool": "eu", "cooldown_per_model": true,
                        "trust_reset": true, "state": "gone", "prioritty": 1}],
          "credentials": [{"name": "c", "secret": "two words", "accounts": "a", "endpoints": [],
                           "submit_per_minute": 1, "requests_per_minute": 2, "min_interval_ms": 3},
                          {"secret": ""}],
          "keys": [{"name": "k", "accounts": [], "models": [""], "expires_at": "soon",
                    "requests_per_minute": 0, "concurrency": 100001, "tokens_per_day": 1.5, "weight": 3000000000}]
        }"#,
    );
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn fields_that_say_nothing_are_accepted_even_if_they_are_not_available() {
    let none = mistakes(
        r#"{"egress_pools": [],
            "accounts": [{"name": "a", "egress_pool": null, "cooldown_per_model": false, "trust_reset": false}],
            "credentials": [{"secret": "s", "submit_per_minute": null}]}"#,
    );
    assert_eq!(none, [] as [&str; 0]);
}

#[test]
fn absent_null_and_values_are_told_apart() {
    let document = read_json(
        br#"{"accounts": [{"name": "a", "stream_limit": null, "create_limit": 0, "state": "draining"}]}"#,
    )
    .unwrap();
    let account = &document.accounts[0];
    assert_eq!(account.stream_limit, Field::Null);
    assert_eq!(account.create_limit, Field::Value(0));
    assert_eq!(account.job_limit, Field::Absent);
    assert_eq!(account.state, Some(WantedState::Draining));
    assert!(document.covers.accounts && !document.covers.keys);
}

#[test]
fn what_surrounds_a_secret_is_removed_and_said() {
    let document = read_json(b"{\"credentials\": [{\"secret\": \" 'sk-1'\\n\"}]}").unwrap();
    assert_eq!(
        document.credentials[0].secret.as_ref().unwrap().expose(),
        "sk-1"
    );
    assert_eq!(
        document.warnings[0].to_string(),
        "credentials[0].secret: quotes and white space around it were removed"
    );
}

#[test]
fn no_mistake_quotes_a_secret() {
    let secret = "sk-very secret";
    let json = format!(
        r#"{{"credentials": [{{"secret": "{secret}"}}], "keys": [{{"name": "k", "secret": "{secret}"}}]}}"#
    );
    let list = format!("name,secret\na,{secret}\n{secret},b,c\n\"{secret}\n");
    let variable = format!("ok,{secret},'{secret}'");
    let lines = [
        mistakes(&json),
        texts(&read_list(&list, "openai")),
        texts(&from_environment(&[("openai", &variable)])),
    ];
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 2]);
    for line in lines.iter().flatten() {
        assert!(!line.contains("very"), "{line}");
    }
}

fn texts(document: &Document) -> Vec<String> {
    let notes = document.mistakes.iter().chain(&document.warnings);
    notes.map(ToString::to_string).collect()
}

/// Credentials as "name secret account", and what was noted.
fn check_list(text: &str, credentials: &[&str], notes: &[&str]) {
    let document = read_list(text, "openai");
    let read: Vec<String> = document
        .credentials
        .iter()
        .map(|c| {
            let account = match &c.accounts {
                Field::Value(names) => names.join(" "),
                _ => "-".to_owned(),
            };
            let secret = c.secret.as_ref().unwrap().expose();
            format!("{} {secret} {account}", c.name.as_deref().unwrap_or("-"))
        })
        .collect();
    assert_eq!(read, credentials, "{text}");
    assert_eq!(texts(&document), notes, "{text}");
}

#[test]
fn plain_lists_are_one_secret_a_line() {
    check_list("sk-1\r\n\n  sk-2\n", &["- sk-1 -", "- sk-2 -"], &[]);
    check_list("\u{feff}sk-1", &["- sk-1 -"], &[]);
    check_list(
        "\"sk-1\"\n# sk-2\nsk 3\nsk-4,sk-5\n",
        &["- sk-1 -"],
        &[
            "line 3: the secret holds ' ' at character 3, which cannot be sent in a header; accepted are printable ASCII characters without spaces",
            "line 4: holds a comma; one secret a line, or a first line such as name,secret,account",
            "line 1: the quotes around it were removed",
            "line 2: begins with # and was left out",
        ],
    );
}

#[test]
fn tables_name_their_columns() {
    check_list(
        "Name, Secret ,account\na,sk-1,team\n,sk-2,\n\"b, \"\"c\"\"\",\"sk-3\",team\n",
        &["a sk-1 team", "- sk-2 -", "b, \"c\" sk-3 team"],
        &[],
    );
    check_list("secret\nsk-1\n", &["- sk-1 -"], &[]);
    check_list(
        "secret,region\nsk-1\nsk-2,eu\n\"sk-3\nsk-4\"x,eu\n\"sk-5\" x,eu\n",
        &[],
        &[
            "line 2: has 1 columns; the first line names 2",
            "line 3: there is no column \"region\"; known are name, secret, account",
            "line 4: has a quote that is never closed",
            "line 5: there is no column \"region\"; known are name, secret, account",
            "line 6: has text after a closing quote",
        ],
    );
    let document = read_list("secret,account\nsk-1,team\nsk-2,team\nsk-3,other", "openai");
    let accounts: Vec<&str> = document.accounts.iter().map(|a| &*a.name).collect();
    assert_eq!(accounts, ["team", "other"]);
}

#[test]
fn a_list_creates_the_endpoint_of_a_preset_and_no_other() {
    assert_eq!(read_list("sk-1", "groq").endpoints.len(), 1);
    assert!(read_list("sk-1", "groq").endpoints[0].only_if_missing);
    assert!(read_list("sk-1", "custom").endpoints.is_empty());
    assert!(read_list("sk-1", "mine").endpoints.is_empty());
}

#[test]
fn the_environment_is_a_list_of_what_each_present_variable_brings() {
    let document = from_environment(&[("openai", " sk-1, 'sk-2' ,,sk-3"), ("fal", " ")]);
    let secrets: Vec<&str> = document
        .credentials
        .iter()
        .map(|c| c.secret.as_ref().unwrap().expose())
        .collect();
    assert_eq!(secrets, ["sk-1", "sk-2", "sk-3"]);
    assert!(document.credentials.iter().all(|c| c.name.is_none()
        && c.on_match == OnMatch::Keep
        && c.origin == Origin::Environment));
    assert_eq!(
        texts(&document),
        [
            "FAIRLANE_KEYS_OPENAI, entry 2: the quotes around it were removed",
            "FAIRLANE_KEYS_OPENAI, entry 3: is empty and was left out",
        ]
    );
    assert_eq!(document.endpoints.len(), 1);
    // A variable without secrets is present all the same.
    let present = vec!["openai".into(), "fal".into()];
    let covers = Covers {
        credentials: Some(Coverage::Environment(present)),
        ..Covers::default()
    };
    assert_eq!(document.covers, covers);
}
