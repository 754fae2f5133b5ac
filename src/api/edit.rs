//! One thing of the pool made or changed on its own: a pool document of one entry, planned like
//! any other, so that there is one validation and one set of rules.
//!
//! Invariant: ids are the caller's way to say which thing is meant, names the plan's. Here, inside
//! the transaction that writes, the one is turned into the other; a name or secret that belongs to
//! another thing is refused instead of matching that thing.
use super::{
    State,
    error::{ApiError, Code},
    noun::Noun,
};
use crate::{
    document,
    domain::{
        ids::{AccountId, EndpointId},
        pool::{
            self,
            document::{ChangeKind, Document, Mistake, Mode, Plan, Tools, Warning, plan},
            edges::Contents,
        },
    },
    store::StoreError,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Which thing a call is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which<Id> {
    /// One that does not exist yet.
    New,
    /// The one of that id.
    Stored(Id),
}

/// Makes or changes one thing as `said`, and brings that into force. Returns it as it is now,
/// with what was put right on the way.
pub(super) async fn edit<N: Noun>(
    state: &State,
    which: Which<N::Id>,
    said: Map<String, Value>,
) -> Result<(N, Vec<Warning>), ApiError> {
    let change = state
        .store()
        .change_pool(move |existing, tools| plan_one::<N>(existing, tools, which, said));
    let mut plan = change.await??;
    state.bring_into_force().await?;
    let warnings = plan.warnings.drain(..).map(shorten::<N>).collect();
    let is_it = |kind: ChangeKind, thing: &N| match which {
        Which::New => kind == ChangeKind::Added,
        Which::Stored(id) => thing.id() == id,
    };
    let changes = N::changes(&mut plan);
    match changes.iter().find(|c| is_it(c.kind, &c.value)) {
        Some(change) => Ok((change.value.clone(), warnings)),
        // A plan names every thing there will be, so this cannot happen.
        None => Err(StoreError::Panicked.into()),
    }
}

fn plan_one<N: Noun>(
    existing: &Contents,
    tools: &mut Tools<'_>,
    which: Which<N::Id>,
    mut said: Map<String, Value>,
) -> Result<Plan, ApiError> {
    let before = match which {
        Which::New => None,
        Which::Stored(id) => {
            let stored = N::all(existing).find(|thing| thing.id() == id).cloned();
            Some(stored.ok_or_else(|| ApiError::no_such(N::KIND))?)
        }
    };
    name_references(&mut said, existing);
    if let Some(before) = &before {
        said.entry("name")
            .or_insert_with(|| json!(&**before.name()));
        // What a document lists comes back from draining; a change of something else does not.
        if before.state() == Some(pool::State::Draining) {
            said.entry("state").or_insert_with(|| json!("draining"));
        }
    }
    let document = read::<N>(&said)?;
    check_free::<N>(&document, existing, tools, before.as_ref())?;

    let mut prepared = existing.clone();
    if let (Some(before), (Some(name), _)) = (&before, N::stated(&document))
        && let Some(thing) = N::find_mut(&mut prepared, before.id())
    {
        thing.call(name);
    }
    let mut plan = plan(&document, &prepared, tools, Mode::Merge).map_err(refused::<N>)?;
    if let Some(before) = before {
        settle(&mut plan, &before);
    }
    Ok(plan)
}

fn read<N: Noun>(said: &Map<String, Value>) -> Result<Document, ApiError> {
    let document = document::read_value(&json!({ N::LIST: [said] }));
    document.map_err(|mistake| refused::<N>(vec![mistake]))
}

/// Puts names in place of ids that exist, wherever a list refers to other things.
fn name_references(said: &mut Map<String, Value>, existing: &Contents) {
    let account = |text: &str| {
        let id: AccountId = text.parse().ok()?;
        let found = existing.accounts.iter().find(|a| a.id == id)?;
        Some(Arc::clone(&found.name))
    };
    let endpoint = |text: &str| {
        let id: EndpointId = text.parse().ok()?;
        let found = existing.endpoints.iter().find(|e| e.id == id)?;
        Some(Arc::clone(&found.name))
    };
    replace(said, "accounts", account);
    replace(said, "endpoints", endpoint);
}

fn replace(said: &mut Map<String, Value>, key: &str, name: impl Fn(&str) -> Option<Arc<str>>) {
    let Some(Value::Array(items)) = said.get_mut(key) else {
        return;
    };
    for item in items {
        if let Some(name) = item.as_str().and_then(&name) {
            *item = json!(&*name);
        }
    }
}

/// Refuses a name or a secret that another thing has. A document with mistakes is left to the
/// plan, which tells of all of them.
fn check_free<N: Noun>(
    document: &Document,
    existing: &Contents,
    tools: &Tools<'_>,
    before: Option<&N>,
) -> Result<(), ApiError> {
    if !document.mistakes.is_empty() {
        return Ok(());
    }
    let is_another = |thing: &&N| before.is_none_or(|b| b.id() != thing.id());
    let (name, secret) = N::stated(document);
    if let Some(name) = name
        && N::all(existing)
            .filter(is_another)
            .any(|t| *t.name() == name)
    {
        return Err(StoreError::NameTaken {
            kind: N::KIND,
            name: name.to_string(),
        }
        .into());
    }
    let holder = secret.and_then(|secret| N::holder(existing, tools, secret));
    match holder.filter(is_another) {
        None => Ok(()),
        Some(other) => Err(StoreError::SecretTaken {
            kind: N::KIND,
            name: other.name().to_string(),
        }
        .into()),
    }
}

/// Compares the thing with what is really stored: the plan knew it by its new name already.
fn settle<N: Noun>(plan: &mut Plan, before: &N) {
    let changes = N::changes(plan).iter_mut();
    for change in changes.filter(|c| c.value.id() == before.id()) {
        if change.value.name() == before.name() {
            change.value.settle(before);
        }
        if change.value == *before {
            change.kind = ChangeKind::Unchanged;
        } else if change.kind == ChangeKind::Unchanged {
            change.kind = ChangeKind::Changed;
        }
    }
}

fn refused<N: Noun>(mistakes: Vec<Mistake>) -> ApiError {
    let mistakes = mistakes.into_iter().map(shorten::<N>).collect();
    ApiError::mistakes(Code::InvalidField, mistakes)
}

/// The path within the one entry.
fn shorten<N: Noun>(mut note: Mistake) -> Mistake {
    let entry = format!("{}[0]", N::LIST);
    if let Some(rest) = note.path.strip_prefix(&entry) {
        let rest = rest.trim_start_matches('.').to_owned();
        note.path = rest;
    }
    note
}
