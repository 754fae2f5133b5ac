//! One thing of the pool made or changed on its own: a pool document of one entry, planned like
//! any other, so that there is one validation and one set of rules.
//!
//! Invariant: ids are the caller's way to say which thing is meant, names the plan's. Here, inside
//! the transaction that writes, the one is turned into the other; a name or secret that belongs to
//! another thing is refused instead of matching that thing.
mod things;

use super::read_value;
use crate::domain::{
    ids::{AccountId, EndpointId},
    pool::{
        self,
        document::{Change, ChangeKind, Document, Mistake, Mode, Plan, Tools, plan},
        edges::Contents,
    },
    secret::Secret,
};
use serde_json::{Map, Value, json};
use std::{fmt::Display, str::FromStr, sync::Arc};

/// Which thing a call is about.
#[derive(Clone, Copy, Debug)]
pub enum Which<Id> {
    /// One that does not exist yet.
    New,
    /// The one of that id.
    Stored(Id),
}

/// Why one thing cannot be made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is none of that id.
    Missing,
    /// Another one has the name.
    NameTaken(Arc<str>),
    /// The secret is that of the one of this name.
    SecretTaken(Arc<str>),
    /// What was said has mistakes, whose paths begin within the one entry.
    Mistakes(Vec<Mistake>),
}

/// A kind of thing in the pool.
pub trait Thing: Clone + PartialEq + Send + Sync + 'static {
    /// Its id.
    type Id: Copy + Ord + Display + FromStr + Send + Sync + 'static;
    /// What one is called in messages.
    const KIND: &'static str;
    /// What many are called, in paths and in the pool document.
    const LIST: &'static str;

    /// Its id.
    fn id(&self) -> Self::Id;
    /// Its name.
    fn name(&self) -> &Arc<str>;
    /// Whether it takes work, for things that have a state.
    fn state(&self) -> Option<pool::State>;
    /// Every one of them.
    fn all(contents: &Contents) -> impl Iterator<Item = &Self>;
    /// The one of that id, to be prepared for a plan.
    fn find_mut(contents: &mut Contents, id: Self::Id) -> Option<&mut Self>;
    /// Gives it a name that a plan matches it by.
    fn call(&mut self, name: Arc<str>);
    /// Gives it a state that a plan begins with.
    fn stand(&mut self, _state: pool::State) {}
    /// Takes back what [`call`](Self::call) did beyond the name, where the name did not change.
    fn settle(&mut self, _before: &Self) {}
    /// What a plan does to each of them.
    fn changes(plan: &mut Plan) -> &mut [Change<Self>];
    /// Name and secret that the one entry of a document states.
    fn stated(document: &Document) -> (Option<Arc<str>>, Option<&Secret>);
    /// Whoever has that secret.
    fn holder<'a>(
        _contents: &'a Contents,
        _tools: &Tools<'_>,
        _secret: &Secret,
    ) -> Option<&'a Self> {
        None
    }
}

/// Plans to make or change one thing as `said`, in the words of a pool document.
pub fn plan_one<N: Thing>(
    existing: &Contents,
    tools: &mut Tools<'_>,
    which: Which<N::Id>,
    mut said: Map<String, Value>,
) -> Result<Plan, Refusal> {
    let before = match which {
        Which::New => None,
        Which::Stored(id) => {
            let stored = N::all(existing).find(|thing| thing.id() == id).cloned();
            Some(stored.ok_or(Refusal::Missing)?)
        }
    };
    // Whoever wants nothing but that decides anew, whatever had disabled it before.
    let is_decision = said.len() == 1 && said.get("state") == Some(&json!("disabled"));
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
        if is_decision {
            thing.stand(pool::State::Active);
        }
    }
    let mut plan = plan(&document, &prepared, tools, Mode::Merge).map_err(refused::<N>)?;
    if let Some(before) = before {
        settle(&mut plan, &before);
    }
    Ok(plan)
}

fn read<N: Thing>(said: &Map<String, Value>) -> Result<Document, Refusal> {
    let document = read_value(&json!({ N::LIST: [said] }));
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
fn check_free<N: Thing>(
    document: &Document,
    existing: &Contents,
    tools: &Tools<'_>,
    before: Option<&N>,
) -> Result<(), Refusal> {
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
        return Err(Refusal::NameTaken(name));
    }
    let holder = secret.and_then(|secret| N::holder(existing, tools, secret));
    match holder.filter(is_another) {
        None => Ok(()),
        Some(other) => Err(Refusal::SecretTaken(Arc::clone(other.name()))),
    }
}

/// Compares the thing with what is really stored: the plan knew it by its new name already.
fn settle<N: Thing>(plan: &mut Plan, before: &N) {
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

fn refused<N: Thing>(mistakes: Vec<Mistake>) -> Refusal {
    let mistakes = mistakes.into_iter().map(shorten::<N>).collect();
    Refusal::Mistakes(mistakes)
}

/// The path within the one entry.
pub fn shorten<N: Thing>(mut note: Mistake) -> Mistake {
    let entry = format!("{}[0]", N::LIST);
    if let Some(rest) = note.path.strip_prefix(&entry) {
        let rest = rest.trim_start_matches('.').to_owned();
        note.path = rest;
    }
    note
}
