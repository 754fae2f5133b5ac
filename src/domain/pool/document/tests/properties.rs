//! Whatever is done to a list, ids stay with their secrets, and a second import does nothing.
use super::{by_secret, document, imported, planned};
use crate::domain::{
    ids::CredentialId,
    pool::{
        State,
        document::{Document, Mode},
        edges::Contents,
    },
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// What people do to a list of secrets.
#[derive(Clone, Debug)]
enum Edit {
    Reverse,
    Swap(usize, usize),
    InsertAtHead,
    Delete(usize),
    Repeat(usize),
    Rotate(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        Just(Edit::Reverse),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Edit::Swap(a, b)),
        Just(Edit::InsertAtHead),
        any::<usize>().prop_map(Edit::Delete),
        any::<usize>().prop_map(Edit::Repeat),
        any::<usize>().prop_map(Edit::Rotate),
    ]
}

/// How the entries of a list are named.
#[derive(Clone, Copy, Debug)]
enum Naming {
    /// By whose secret it is; a rotation keeps the name.
    Own,
    /// By the place in the list, as generated files do.
    ByPlace,
    /// Not at all, as plain lists do.
    None,
}

/// A line of the list: whose it is, and which secret that one has now.
type Line = (usize, String);

fn apply(list: &mut Vec<Line>, edit: &Edit, fresh: &mut usize) {
    let len = list.len();
    match *edit {
        Edit::Reverse => list.reverse(),
        Edit::InsertAtHead => {
            *fresh += 1;
            list.insert(0, (*fresh, format!("secret-{fresh}")));
        }
        _ if len == 0 => {}
        Edit::Swap(a, b) => list.swap(a % len, b % len),
        Edit::Delete(n) => drop(list.remove(n % len)),
        Edit::Repeat(n) => list.push(list[n % len].clone()),
        Edit::Rotate(n) => {
            *fresh += 1;
            let whose = list[n % len].0;
            for line in list.iter_mut().filter(|line| line.0 == whose) {
                line.1 = format!("secret-{fresh}");
            }
        }
    }
}

fn written(list: &[Line], naming: Naming) -> Document {
    let mut lines: Vec<(Option<String>, &str)> = Vec::new();
    for (n, (whose, text)) in list.iter().enumerate() {
        let name = match naming {
            Naming::Own => Some(format!("own-{whose}")),
            Naming::ByPlace => Some(format!("place-{n}")),
            Naming::None => None,
        };
        lines.push((name, text));
    }
    let lines: Vec<(Option<&str>, &str)> = lines.iter().map(|(n, t)| (n.as_deref(), *t)).collect();
    document(&lines)
}

/// Names, secrets and accounts are unique and whole.
fn check_whole(contents: &Contents) {
    let names: HashSet<_> = contents.credentials.iter().map(|c| &c.name).collect();
    assert_eq!(names.len(), contents.credentials.len());
    let names: HashSet<_> = contents.accounts.iter().map(|a| &a.name).collect();
    assert_eq!(names.len(), contents.accounts.len());
    for credential in &contents.credentials {
        assert!(!credential.accounts.is_empty() && !credential.endpoints.is_empty());
        for id in &credential.accounts {
            assert!(contents.accounts.iter().any(|a| a.id == *id));
        }
    }
}

proptest! {
    #[test]
    fn ids_stay_with_their_secrets_whatever_is_done_to_the_list(
        edits in proptest::collection::vec(proptest::collection::vec(edit(), 1..4), 1..8),
        naming in prop_oneof![Just(Naming::Own), Just(Naming::ByPlace), Just(Naming::None)],
        mode in prop_oneof![Just(Mode::Merge), Just(Mode::Sync)],
    ) {
        let mut fresh = 3;
        let mut list: Vec<Line> = (1..=3).map(|n| (n, format!("secret-{n}"))).collect();
        let mut now = imported(&written(&list, naming), &Contents::default(), mode);
        let mut ids: HashMap<String, CredentialId> = HashMap::new();
        for step in edits {
            for c in &now.credentials {
                ids.insert(c.secret.expose().to_owned(), c.id);
            }
            let before: Vec<Line> = list.clone();
            for edit in &step {
                apply(&mut list, edit, &mut fresh);
            }
            let document = written(&list, naming);
            now = imported(&document, &now, mode);
            check_whole(&now);
            prop_assert!(planned(&document, &now, mode).unwrap().is_empty());
            for (whose, text) in &list {
                let id = by_secret(&now, text).id;
                if let Some(former) = ids.get(text) {
                    prop_assert_eq!(id, *former, "{} lost its id", text);
                } else if let (Naming::Own, Some((_, old))) =
                    (naming, before.iter().find(|line| line.0 == *whose))
                {
                    prop_assert_eq!(Some(&id), ids.get(old), "a rotation lost the id");
                }
                prop_assert_eq!(by_secret(&now, text).state, State::Active);
            }
        }
    }
}
