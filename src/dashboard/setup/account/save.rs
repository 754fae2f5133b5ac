//! Adding an account: a plan of a document with one account, its credential and, where none fits,
//! an endpoint.
//!
//! Invariant: all of it is written, or nothing.
use super::typed::{CUSTOM, Checked};
use crate::{
    dashboard::{State, form::Faults, setup::bring_into_force, shell::Shell},
    domain::pool::{
        document::{
            AccountEntry, CredentialEntry, Document, EndpointEntry, Field, Mistake, Mode, Plan,
            Tools, plan,
        },
        edges::Contents,
    },
    store::StoreError,
};
use std::sync::Arc;

/// The inner error is the person's to mend.
pub(super) async fn save(
    state: &State,
    shell: &Shell,
    checked: Checked,
) -> Result<Result<(), Faults>, StoreError> {
    let planned = state
        .store()
        .change_pool(move |existing, tools| additions(existing, tools, &checked));
    match planned.await? {
        Ok(_) => {
            bring_into_force(state).await?;
            Ok(Ok(()))
        }
        Err(fault) => {
            let mut faults = Faults::default();
            match fault {
                Taken::Name => faults.add("name", shell.t("account-name-taken")),
                Taken::Secret(by) => faults.add("secret", shell.t("secret-taken").text("name", by)),
                Taken::Other(mistake) => faults.add("name", mistake),
            }
            Ok(Err(faults))
        }
    }
}

/// Why an account cannot be added to what there is.
enum Taken {
    Name,
    Secret(Arc<str>),
    Other(Mistake),
}

fn additions(existing: &Contents, tools: &mut Tools<'_>, new: &Checked) -> Result<Plan, Taken> {
    if existing.accounts.iter().any(|a| a.name == new.name) {
        return Err(Taken::Name);
    }
    let fingerprint = (tools.fingerprint)(new.secret.expose());
    let holder = existing
        .credentials
        .iter()
        .find(|c| c.fingerprint == fingerprint);
    if let Some(holder) = holder {
        return Err(Taken::Secret(Arc::clone(&holder.name)));
    }
    let (endpoint, entry) = endpoint(existing, new);
    let document = Document {
        endpoints: Vec::from_iter(entry),
        accounts: vec![AccountEntry {
            name: Arc::clone(&new.name),
            stream_limit: new.limit.map_or(Field::Absent, Field::Value),
            ..AccountEntry::default()
        }],
        credentials: vec![CredentialEntry {
            secret: Some(new.secret.clone()),
            accounts: Field::Value(vec![Arc::clone(&new.name)]),
            endpoints: Field::Value(vec![endpoint]),
            ..CredentialEntry::default()
        }],
        ..Document::default()
    };
    plan(&document, existing, tools, Mode::Merge).map_err(|mistakes| {
        let first = mistakes.into_iter().next();
        Taken::Other(first.unwrap_or_else(|| Mistake::new("", "")))
    })
}

/// The endpoint to use: one that is there already, or a new one under a name that is free.
fn endpoint(existing: &Contents, new: &Checked) -> (Arc<str>, Option<EndpointEntry>) {
    let same = existing
        .endpoints
        .iter()
        .find(|e| e.base_url == new.base_url && e.protocols == new.protocols);
    if let Some(same) = same {
        return (Arc::clone(&same.name), None);
    }
    let wanted: Arc<str> = if new.preset.name == CUSTOM {
        Arc::clone(&new.name)
    } else {
        new.preset.name.into()
    };
    let is_taken = |name: &str| existing.endpoints.iter().any(|e| &*e.name == name);
    let numbered = (2..).map(|n| Arc::from(format!("{wanted}-{n}")));
    let mut names = std::iter::once(Arc::clone(&wanted)).chain(numbered);
    let name = names
        .find(|name: &Arc<str>| !is_taken(name))
        .unwrap_or(wanted);
    let entry = EndpointEntry {
        name: Arc::clone(&name),
        base_url: Field::Value(new.base_url.clone()),
        protocols: Field::Value(new.protocols.clone()),
        ..EndpointEntry::default()
    };
    (name, Some(entry))
}
