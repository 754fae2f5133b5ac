//! Identity follows the secret, whatever is done to the list.
mod environment;
mod properties;

use super::*;
use crate::domain::pool::{Account, Credential, Fingerprint, KeyHash, edges::Contents, presets};

fn secret(text: &str) -> Secret {
    Secret::clean(text).unwrap().0
}

/// Any injective function will do for a fingerprint.
fn print(text: &str) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn hash(text: &str) -> KeyHash {
    let mut bytes = print(text);
    bytes[31] = 1;
    bytes
}

/// Plans with ids that go on from those in `existing`.
fn planned(document: &Document, existing: &Contents, mode: Mode) -> Result<Plan, Vec<Mistake>> {
    let used = existing
        .endpoints
        .iter()
        .map(|e| e.id.as_u128())
        .chain(existing.accounts.iter().map(|a| a.id.as_u128()))
        .chain(existing.credentials.iter().map(|c| c.id.as_u128()))
        .chain(existing.keys.iter().map(|k| k.id.as_u128()));
    let mut last = used.max().unwrap_or(0);
    let mut secrets = 0;
    let mut tools = Tools {
        mint: &mut || {
            last += 1;
            last
        },
        new_secret: &mut || {
            secrets += 1;
            format!("fl-minted-secret-{secrets:04}")
        },
        fingerprint: &print,
        hash_key: &hash,
    };
    plan(document, existing, &mut tools, mode)
}

fn endpoint() -> EndpointEntry {
    EndpointEntry {
        path: "endpoints[0]".into(),
        name: "openai".into(),
        preset: presets::by_name("openai"),
        ..EndpointEntry::default()
    }
}

fn credential(n: usize, name: Option<&str>, text: &str) -> CredentialEntry {
    CredentialEntry {
        path: format!("credentials[{n}]"),
        name: name.map(Into::into),
        secret: Some(secret(text)),
        endpoints: Field::Value(vec!["openai".into()]),
        ..CredentialEntry::default()
    }
}

/// A document of these credentials at one endpoint, complete in every kind but keys.
fn document(credentials: &[(Option<&str>, &str)]) -> Document {
    Document {
        endpoints: vec![endpoint()],
        credentials: credentials
            .iter()
            .enumerate()
            .map(|(n, (name, text))| credential(n, *name, text))
            .collect(),
        covers: Covers {
            endpoints: true,
            accounts: true,
            credentials: Some(Coverage::All),
            keys: false,
        },
        ..Document::default()
    }
}

fn imported(document: &Document, existing: &Contents, mode: Mode) -> Contents {
    planned(document, existing, mode).unwrap().contents()
}

fn by_secret<'a>(contents: &'a Contents, text: &str) -> &'a Credential {
    let found = contents
        .credentials
        .iter()
        .find(|c| c.secret.expose() == text);
    found.unwrap_or_else(|| panic!("no credential has the secret {text}"))
}

fn account<'a>(contents: &'a Contents, name: &str) -> &'a Account {
    contents.accounts.iter().find(|a| &*a.name == name).unwrap()
}

/// What the plan of the second document over the first does to the credentials, by name.
fn check(
    first: &[(Option<&str>, &str)],
    second: &[(Option<&str>, &str)],
    expect: &[(&str, ChangeKind)],
) {
    let before = imported(&document(first), &Contents::default(), Mode::Merge);
    let plan = planned(&document(second), &before, Mode::Sync).unwrap();
    let got: Vec<(&str, ChangeKind)> = plan
        .credentials
        .iter()
        .map(|c| (&*c.value.name, c.kind))
        .collect();
    assert_eq!(got, expect);
}

use ChangeKind::{Added, Changed, Drained, Rotated, Unchanged};

#[test]
fn a_given_name_with_a_new_secret_is_a_rotation() {
    check(
        &[(Some("a"), "s1"), (Some("b"), "s2")],
        &[(Some("a"), "s9"), (Some("b"), "s2")],
        &[("a", Rotated), ("b", Unchanged)],
    );
}

#[test]
fn a_name_is_no_rotation_while_its_secret_is_still_listed() {
    check(
        &[(Some("a"), "s1")],
        &[(Some("b"), "s1"), (Some("a"), "s9")],
        &[("b", Changed), ("a", Added)],
    );
}

#[test]
fn made_up_names_never_match() {
    check(
        &[(None, "s1"), (None, "s2")],
        &[(None, "s9"), (None, "s2")],
        &[
            ("openai-1", Drained),
            ("openai-2", Unchanged),
            ("openai-3", Added),
        ],
    );
    check(
        &[(None, "s1")],
        &[(Some("openai-1"), "s9")],
        &[("openai-1-2", Drained), ("openai-1", Added)],
    );
}

#[test]
fn names_that_move_up_the_list_leave_ids_with_their_secrets() {
    check(
        &[(Some("k1"), "s1"), (Some("k2"), "s2"), (Some("k3"), "s3")],
        &[(Some("k1"), "s2"), (Some("k2"), "s3")],
        &[("k1-2", Drained), ("k1", Changed), ("k2", Changed)],
    );
}

#[test]
fn what_drains_becomes_active_by_being_listed_again() {
    let both = document(&[(Some("a"), "s1"), (Some("b"), "s2")]);
    let one = document(&[(Some("a"), "s1")]);
    let before = imported(&both, &Contents::default(), Mode::Merge);
    let drained = imported(&one, &before, Mode::Sync);
    assert_eq!(by_secret(&drained, "s2").state, State::Draining);
    assert_eq!(account(&drained, "b").state, State::Draining);
    assert_eq!(account(&drained, "a").state, State::Active);
    let again = imported(&both, &drained, Mode::Sync);
    assert_eq!(again.credentials, before.credentials);
    assert_eq!(again.accounts, before.accounts);
    let merged = imported(&one, &before, Mode::Merge);
    assert_eq!(merged.credentials, before.credentials);
}

#[test]
fn what_is_disabled_stays_so_until_told_otherwise_or_rotated() {
    let mut before = imported(
        &document(&[(Some("a"), "s1")]),
        &Contents::default(),
        Mode::Merge,
    );
    before.credentials[0].state = State::Disabled(DisabledReason::Auth);
    let state = |document: &Document, mode| imported(document, &before, mode).credentials[0].state;
    let disabled = State::Disabled(DisabledReason::Auth);
    assert_eq!(state(&document(&[(Some("a"), "s1")]), Mode::Sync), disabled);
    assert_eq!(state(&document(&[]), Mode::Sync), disabled);
    assert_eq!(
        state(&document(&[(Some("a"), "s9")]), Mode::Sync),
        State::Active
    );
    let mut told = document(&[(Some("a"), "s1")]);
    told.credentials[0].state = Some(WantedState::Disabled);
    assert_eq!(state(&told, Mode::Merge), disabled);
    told.credentials[0].state = Some(WantedState::Active);
    assert_eq!(state(&told, Mode::Merge), State::Active);
}

#[test]
fn absent_keeps_and_null_clears() {
    let mut first = document(&[(Some("a"), "s1")]);
    first.accounts = vec![AccountEntry {
        name: "team".into(),
        stream_limit: Field::Value(3),
        weight: Field::Value(5),
        ..AccountEntry::default()
    }];
    first.credentials[0].accounts = Field::Value(vec!["team".into()]);
    let before = imported(&first, &Contents::default(), Mode::Merge);
    let check = |edit: &dyn Fn(&mut Document), expect: (Option<u32>, u32)| {
        let mut second = document(&[(Some("a"), "s1")]);
        second.accounts = vec![AccountEntry {
            name: "team".into(),
            ..AccountEntry::default()
        }];
        edit(&mut second);
        let after = imported(&second, &before, Mode::Merge);
        let team = account(&after, "team");
        assert_eq!((team.stream_limit, team.weight), expect);
    };
    check(&|_| {}, (Some(3), 5));
    check(&|d| d.accounts[0].stream_limit = Field::Null, (None, 5));
    check(&|d| d.accounts[0].weight = Field::Null, (Some(3), 1));
    check(
        &|d| d.accounts[0].stream_limit = Field::Value(0),
        (Some(0), 5),
    );
}

#[test]
fn a_credential_that_names_no_account_gets_one_of_its_own() {
    let mut first = document(&[(Some("a"), "s1")]);
    first.accounts = vec![AccountEntry {
        name: "a".into(),
        ..AccountEntry::default()
    }];
    let own = imported(&first, &Contents::default(), Mode::Merge);
    let id = by_secret(&own, "s1").id;
    assert_eq!(account(&own, "a").made_for, None);
    assert_eq!(account(&own, "a-2").made_for, Some(id));
    assert_eq!(by_secret(&own, "s1").accounts, [account(&own, "a-2").id]);
    // It turns to an account of others, and back again.
    let mut shared = first.clone();
    shared.credentials[0].accounts = Field::Value(vec!["a".into()]);
    let away = imported(&shared, &own, Mode::Merge);
    assert_eq!(by_secret(&away, "s1").accounts, [account(&own, "a").id]);
    assert_eq!(account(&away, "a-2").state, State::Draining);
    shared.credentials[0].accounts = Field::Null;
    let back = imported(&shared, &away, Mode::Merge);
    assert_eq!(back.accounts, own.accounts);
    assert_eq!(back.credentials, own.credentials);
}

#[test]
fn the_same_secret_twice_is_one_credential_with_a_warning() {
    let twice = document(&[(Some("a"), "s1"), (Some("b"), "s1"), (None, "s1")]);
    let plan = planned(&twice, &Contents::default(), Mode::Merge).unwrap();
    assert_eq!(plan.credentials.len(), 1);
    let warnings: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "credentials[1]: has the same secret as credentials[0] and was left out",
            "credentials[2]: has the same secret as credentials[0] and was left out",
        ]
    );
}

#[test]
fn every_mistake_is_named_with_its_path() {
    let mut bad = document(&[(Some("a"), "s1"), (Some("a"), "s2"), (Some("c"), "s3")]);
    bad.endpoints.push(EndpointEntry {
        path: "endpoints[1]".into(),
        name: "own".into(),
        ..EndpointEntry::default()
    });
    bad.credentials[0].accounts = Field::Value(vec!["nobody".into()]);
    bad.credentials[1].endpoints = Field::Value(vec!["own".into(), "nowhere".into()]);
    bad.credentials[2].secret = None;
    bad.credentials.push(CredentialEntry {
        path: "credentials[3]".into(),
        secret: Some(secret("s4")),
        ..CredentialEntry::default()
    });
    bad.keys = vec![
        KeyEntry {
            path: "keys[0]".into(),
            name: "k".into(),
            secret: Some(secret("short")),
            accounts: Field::Value(vec!["nobody".into()]),
            ..KeyEntry::default()
        };
        2
    ];
    let mistakes = planned(&bad, &Contents::default(), Mode::Merge).unwrap_err();
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_credential_can_be_meant_by_its_name_alone() {
    let before = imported(
        &document(&[(Some("a"), "s1"), (None, "s2")]),
        &Contents::default(),
        Mode::Merge,
    );
    let mut second = document(&[(Some("a"), "x"), (Some("openai-1"), "x")]);
    for entry in &mut second.credentials {
        entry.secret = None;
    }
    assert!(planned(&second, &before, Mode::Sync).unwrap().is_empty());
    second.credentials[1] = credential(1, Some("b"), "s1");
    let mistakes = planned(&second, &before, Mode::Sync).unwrap_err();
    assert_eq!(
        mistakes,
        [Mistake::new(
            "credentials[1]",
            "is the same credential as credentials[0]"
        )]
    );
}

fn key(name: &str, text: Option<&str>) -> KeyEntry {
    KeyEntry {
        path: format!("keys.{name}"),
        name: name.into(),
        secret: text.map(secret),
        ..KeyEntry::default()
    }
}

#[test]
fn keys_are_minted_once_and_removed_only_by_a_list_of_keys() {
    let keys = |keys: Vec<KeyEntry>, covered| Document {
        keys,
        covers: Covers {
            keys: covered,
            ..Covers::default()
        },
        ..Document::default()
    };
    let two = keys(
        vec![key("a", None), key("b", Some("fl-given-secret-0001"))],
        true,
    );
    let plan = planned(&two, &Contents::default(), Mode::Sync).unwrap();
    let [minted] = plan.minted.as_slice() else {
        panic!("{:?}", plan.minted)
    };
    assert_eq!(
        (&*minted.name, minted.secret.expose()),
        ("a", "fl-minted-secret-0001")
    );
    assert_eq!(plan.keys[0].value.hash, hash("fl-minted-secret-0001"));
    assert_eq!(&*plan.keys[1].value.secret_hint, "0001");
    let before = plan.contents();
    assert!(planned(&two, &before, Mode::Sync).unwrap().is_empty());
    let count = |document: &Document| imported(document, &before, Mode::Sync).keys.len();
    assert_eq!(count(&keys(vec![key("b", None)], true)), 1);
    assert_eq!(count(&keys(Vec::new(), false)), 2);
    assert_eq!(count(&keys(Vec::new(), true)), 0);
    let rotated = keys(vec![key("b", Some("fl-given-secret-0002"))], false);
    let plan = planned(&rotated, &before, Mode::Merge).unwrap();
    assert_eq!(plan.keys[1].kind, Rotated);
    let stolen = keys(vec![key("a", Some("fl-given-secret-0001"))], false);
    let mistakes = planned(&stolen, &before, Mode::Merge).unwrap_err();
    assert_eq!(
        mistakes[0].to_string(),
        "keys: the keys \"b\" and \"a\" would have the same secret"
    );
}

#[test]
fn a_sync_leaves_alone_what_the_document_does_not_list_completely() {
    let mut before = imported(
        &document(&[(Some("a"), "s1"), (Some("b"), "s2")]),
        &Contents::default(),
        Mode::Merge,
    );
    let mut other = before.endpoints[0].clone();
    other.id = crate::domain::ids::EndpointId::from_u128(900);
    other.name = "other".into();
    before.credentials[1].endpoints = vec![other.id];
    before.endpoints.push(other);
    let mut list = document(&[(None, "s3")]);
    list.covers = Covers {
        credentials: Some(Coverage::At("openai".into())),
        ..Covers::default()
    };
    let after = imported(&list, &before, Mode::Sync);
    assert_eq!(by_secret(&after, "s1").state, State::Draining);
    assert_eq!(by_secret(&after, "s2").state, State::Active);
    assert!(after.endpoints.iter().all(|e| e.state == State::Active));
    assert_eq!(account(&after, "a").state, State::Draining);
    assert_eq!(account(&after, "b").state, State::Active);
}
