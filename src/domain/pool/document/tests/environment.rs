//! What the environment brought follows its variables; what operators did stays.
use super::*;
use crate::domain::{
    ids::EndpointId,
    pool::State::{Active, Disabled, Draining},
};

/// What these variables stand for: the preset of each, and its secrets.
fn variables(present: &[(&str, &[&str])]) -> Document {
    let names = present.iter().map(|(name, _)| (*name).into());
    let mut boot = Document {
        covers: Covers {
            credentials: Some(Coverage::Environment(names.collect())),
            ..Covers::default()
        },
        ..Document::default()
    };
    for (name, secrets) in present.iter().filter(|(_, secrets)| !secrets.is_empty()) {
        boot.endpoints.push(EndpointEntry {
            name: (*name).into(),
            preset: presets::by_name(name),
            only_if_missing: true,
            ..EndpointEntry::default()
        });
        for text in *secrets {
            boot.credentials.push(CredentialEntry {
                on_match: OnMatch::Keep,
                origin: Origin::Environment,
                endpoints: Field::Value(vec![(*name).into()]),
                ..credential(0, None, text)
            });
        }
    }
    boot
}

/// The pool after a start with these variables. Starting once more never changes anything.
fn started(existing: &Contents, present: &[(&str, &[&str])]) -> Contents {
    let boot = variables(present);
    let after = imported(&boot, existing, Mode::Sync);
    assert!(planned(&boot, &after, Mode::Sync).unwrap().is_empty());
    after
}

/// A pool that an operator never touched, as these variables made it.
fn brought(present: &[(&str, &[&str])]) -> Contents {
    started(&Contents::default(), present)
}

fn operators(credentials: &[(Option<&str>, &str)]) -> Contents {
    imported(&document(credentials), &Contents::default(), Mode::Merge)
}

fn stored<'a>(contents: &'a mut Contents, text: &str) -> &'a mut Credential {
    let mut all = contents.credentials.iter_mut();
    all.find(|c| c.secret.expose() == text).unwrap()
}

/// The state of that credential, and of the account that was made for it.
fn check(contents: &Contents, text: &str, expect: (State, State)) {
    let credential = by_secret(contents, text);
    let own = |a: &&Account| a.made_for == Some(credential.id);
    let account = contents.accounts.iter().find(own).unwrap();
    assert_eq!((credential.state, account.state), expect, "{text}");
}

const BY_OPERATOR: State = Disabled(DisabledReason::Operator);

#[test]
fn only_what_the_environment_brings_first_is_of_its_origin() {
    let before = operators(&[(Some("a"), "s1")]);
    let after = started(&before, &[("openai", &["s1", "s2"])]);
    assert_eq!(by_secret(&after, "s1"), by_secret(&before, "s1"));
    assert_eq!(by_secret(&after, "s1").origin, Origin::Operator);
    assert_eq!(by_secret(&after, "s2").origin, Origin::Environment);
    assert_eq!(&*by_secret(&after, "s2").name, "openai-1");
    // Listing it in a document does not make it the operator's.
    let listed = imported(&document(&[(None, "s2")]), &after, Mode::Merge);
    assert_eq!(by_secret(&listed, "s2").origin, Origin::Environment);
}

#[test]
fn what_a_variable_no_longer_lists_drains_and_comes_back_by_being_listed() {
    let before = brought(&[("openai", &["s1", "s2"])]);
    let plan = planned(&variables(&[("openai", &["s2"])]), &before, Mode::Sync).unwrap();
    let kinds: Vec<ChangeKind> = plan.credentials.iter().map(|c| c.kind).collect();
    assert_eq!(kinds, [Drained, Unchanged]);
    let after = started(&before, &[("openai", &["s2"])]);
    check(&after, "s1", (Draining, Draining));
    check(&after, "s2", (Active, Active));
    let again = started(&after, &[("openai", &["s2", "s1"])]);
    assert_eq!(again.credentials, before.credentials);
    assert_eq!(again.accounts, before.accounts);
}

#[test]
fn an_empty_variable_drains_all_that_it_brought() {
    let mine = operators(&[(Some("mine"), "s4")]);
    let before = started(&mine, &[("openai", &["s1", "s2"]), ("fal", &["s3"])]);
    let after = started(&before, &[("openai", &[]), ("fal", &["s3"])]);
    check(&after, "s1", (Draining, Draining));
    check(&after, "s2", (Draining, Draining));
    check(&after, "s3", (Active, Active));
    assert_eq!(by_secret(&after, "s4").state, Active);
    assert_eq!(after.endpoints, before.endpoints);
}

#[test]
fn an_absent_variable_leaves_everything_as_it_is() {
    let both = brought(&[("openai", &["s1", "s2"]), ("fal", &["s3"])]);
    let before = started(&both, &[("openai", &["s1"])]);
    check(&before, "s2", (Draining, Draining));
    check(&before, "s3", (Active, Active));
    let after = started(&before, &[("fal", &["s3"])]);
    assert_eq!(after.credentials, before.credentials);
    assert_eq!(after.accounts, before.accounts);
}

#[test]
fn what_an_operator_brought_is_neither_drained_nor_revived() {
    let mut before = operators(&[(Some("a"), "s1"), (Some("b"), "s2")]);
    before.endpoints[0].base_url = BaseUrl::parse("http://elsewhere").unwrap();
    stored(&mut before, "s2").state = Draining;
    for present in [&["s1", "s2"][..], &["s1"], &[]] {
        let after = started(&before, &[("openai", present)]);
        assert_eq!(after.credentials, before.credentials);
        assert_eq!(after.accounts, before.accounts);
        assert_eq!(after.endpoints, before.endpoints);
    }
}

#[test]
fn what_is_disabled_stays_so_whether_it_is_listed_or_not() {
    for reason in [DisabledReason::Operator, DisabledReason::Auth] {
        let mut before = brought(&[("openai", &["s1"])]);
        stored(&mut before, "s1").state = Disabled(reason);
        for present in [&["s1"][..], &[]] {
            let after = started(&before, &[("openai", present)]);
            check(&after, "s1", (Disabled(reason), Active));
        }
    }
}

#[test]
fn what_an_operator_did_to_it_outlives_draining_and_coming_back() {
    let mut before = brought(&[("openai", &["s1", "s2"])]);
    before.accounts[0].state = BY_OPERATOR;
    before.accounts[0].stream_limit = Some(3);
    let credential = stored(&mut before, "s1");
    credential.name = "mine".into();
    credential.is_named = true;
    credential.job_limit = Some(2);
    let after = started(&before, &[("openai", &[])]);
    check(&after, "s1", (Draining, BY_OPERATOR));
    let again = started(&after, &[("openai", &["s1", "s2"])]);
    assert_eq!(again.credentials, before.credentials);
    assert_eq!(again.accounts, before.accounts);
}

#[test]
fn a_secret_that_an_operator_put_in_its_place_is_the_operators() {
    let mut before = brought(&[("openai", &["s1"])]);
    stored(&mut before, "s1").is_named = true;
    let rotated = imported(&document(&[(Some("openai-1"), "s9")]), &before, Mode::Merge);
    let id = by_secret(&before, "s1").id;
    assert_eq!(by_secret(&rotated, "s9").id, id);
    let after = started(&rotated, &[("openai", &[])]);
    assert_eq!(by_secret(&after, "s9").origin, Origin::Operator);
    check(&after, "s9", (Active, Active));
}

#[test]
fn an_account_that_others_are_charged_to_does_not_drain_with_it() {
    let mut before = brought(&[("openai", &["s1", "s2"])]);
    let shared = by_secret(&before, "s1").accounts.clone();
    let other = stored(&mut before, "s2");
    other.origin = Origin::Operator;
    other.accounts = shared;
    let after = started(&before, &[("openai", &[])]);
    check(&after, "s1", (Draining, Active));
    assert_eq!(by_secret(&after, "s2").state, Active);
}

#[test]
fn its_first_endpoint_tells_which_variable_it_came_from() {
    let mut before = brought(&[("openai", &["s1"]), ("fal", &["s2"])]);
    let at =
        |contents: &Contents, text: &str| -> EndpointId { by_secret(contents, text).endpoints[0] };
    let fal = at(&before, "s2");
    stored(&mut before, "s1").endpoints.push(fal);
    let after = started(&before, &[("fal", &["s2"])]);
    check(&after, "s1", (Active, Active));
    let after = started(&before, &[("openai", &[])]);
    check(&after, "s1", (Draining, Draining));
}
