//! Endpoints of a document: matched by name.
use super::{
    EndpointEntry, Field, listed_state,
    plan::{Draft, Row, repeated_names},
};
use crate::domain::{
    ids::EndpointId,
    pool::{BaseUrl, Endpoint},
    protocol::Protocol,
};

pub(super) fn plan(draft: &mut Draft<'_, '_>) {
    let entries = &draft.document.endpoints;
    let named = entries.iter().map(|e| (e.path.as_str(), &*e.name));
    draft.mistakes.extend(repeated_names(named));
    for entry in entries {
        if entry.is_broken {
            draft.broken_endpoints.insert(entry.name.clone());
            continue;
        }
        let stored = draft
            .endpoints
            .iter()
            .position(|row| row.now.name == entry.name);
        if let Some(row) = stored.and_then(|n| draft.endpoints.get_mut(n)) {
            row.is_listed = true;
            if entry.only_if_missing {
                continue;
            }
        }
        let before = stored
            .and_then(|n| draft.endpoints.get(n))
            .map(|row| row.now.clone());
        let Some(now) = described(draft, entry, before.as_ref()) else {
            continue;
        };
        match stored.and_then(|n| draft.endpoints.get_mut(n)) {
            Some(row) => row.now = now,
            None => draft.endpoints.push(Row::fresh(now)),
        }
    }
}

/// The endpoint as the entry describes it. Nothing if address or protocols are missing, which is
/// noted as a mistake.
fn described(
    draft: &mut Draft<'_, '_>,
    entry: &EndpointEntry,
    before: Option<&Endpoint>,
) -> Option<Endpoint> {
    let kept_url = before.map(|b| b.base_url.clone());
    let kept_protocols = before.map(|b| b.protocols.clone());
    let base_url = stated(&entry.base_url, preset_url(entry), kept_url);
    let protocols = stated(&entry.protocols, preset_protocols(entry), kept_protocols);
    if base_url.is_none() || protocols.is_none() {
        draft.broken_endpoints.insert(entry.name.clone());
    }
    if base_url.is_none() {
        draft.mistake(
            format!("{}.base_url", entry.path),
            "is missing; give the address, or a preset that has one",
        );
    }
    if protocols.as_ref().is_none_or(Vec::is_empty) {
        draft.mistake(
            format!("{}.protocols", entry.path),
            format!("are missing; name at least one of {}", known_protocols()),
        );
    }
    let (models, headers, state) = match before {
        Some(b) => (b.models.clone(), b.headers.clone(), Some(b.state)),
        None => (None, Vec::new(), None),
    };
    Some(Endpoint {
        id: match before {
            Some(b) => b.id,
            None => EndpointId::from_u128((draft.tools.mint)()),
        },
        name: entry.name.clone(),
        base_url: base_url?,
        protocols: protocols?,
        models: entry.models.over_shared(models),
        headers: entry.headers.or(headers, Vec::new()),
        state: listed_state(state, entry.state),
    })
}

/// What the document says, else what its preset says, else what is stored. Null asks for the
/// preset's.
fn stated<T: Clone>(field: &Field<T>, preset: Option<T>, kept: Option<T>) -> Option<T> {
    match field {
        Field::Value(value) => Some(value.clone()),
        Field::Null => preset,
        Field::Absent => preset.or(kept),
    }
}

fn preset_url(entry: &EndpointEntry) -> Option<BaseUrl> {
    let url = entry.preset?.base_url?;
    BaseUrl::parse(url).ok()
}

fn preset_protocols(entry: &EndpointEntry) -> Option<Vec<Protocol>> {
    let protocols = entry.preset?.protocols;
    (!protocols.is_empty()).then(|| protocols.to_vec())
}

fn known_protocols() -> String {
    Protocol::ALL.map(Protocol::name).join(", ")
}
