//! Which objects on upstream a request names, and which ones its answer makes.
//!
//! Invariant: ids are taken as upstream wrote them and never interpreted. What cannot be told is left
//! out for answers, since a wrong owner is worse than none; for requests it is never left out, since
//! it might be another key's.
mod list;
mod made;
mod paging;
#[cfg(test)]
mod tests;
mod walk;

use super::{
    operation::{Effect, Operation},
    peek::{MAX_FIELD_BYTES, Peeked},
    route::Route,
};
use crate::{
    digest,
    domain::owners::{Object, ObjectKind, Reference, Role, affinity::AffinitySource},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Write as _;

pub use list::{Filtered, empty_list, filter_list, join_pages};
pub use made::{made, made_in_event};
pub use paging::{Paging, query_after};

/// In which Codex hands back what an earlier answer of the same turn gave it.
const X_CODEX_TURN_STATE: HeaderName = HeaderName::from_static("x-codex-turn-state");

/// How the ids that an answer makes must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Making {
    /// It makes none.
    Nothing,
    /// They are learned while the answer passes.
    InPassing,
    /// They are on disk before the client sees them, so that the answer is held back until then.
    BeforeAnswer,
}

/// How the ids that the answer to `operation` makes must be kept.
pub const fn making(operation: Operation) -> Making {
    use Operation as O;
    match operation {
        O::Responses | O::ResponsesCompact => Making::InPassing,
        // A batch names the files that it made once it is done, whoever asks.
        O::FileCreate
        | O::UploadCreate
        | O::UploadComplete
        | O::BatchCreate
        | O::BatchRetrieve
        | O::BatchCancel
        | O::BatchList
        | O::ConversationCreate
        | O::MessageBatchCreate => Making::BeforeAnswer,
        _ => Making::Nothing,
    }
}

/// The objects that a request names: in its path, in its body, in its headers.
pub fn references(
    route: &Route<'_>,
    peeked: Option<&Peeked>,
    headers: &HeaderMap,
) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut name = |object, role| {
        let reference = Reference { object, role };
        if !found.contains(&reference) {
            found.push(reference);
        }
    };
    if let Some(object) = named_in_path(route) {
        name(object, Role::Needed);
    }
    if let Some(peeked) = peeked {
        if let Some(id) = peeked.previous_response_id.as_deref() {
            name(Object::new(ObjectKind::Response, id), Role::Continued);
        }
        if let Some(id) = peeked.conversation.as_deref() {
            name(Object::new(ObjectKind::Conversation, id), Role::Needed);
        }
        for id in &peeked.file_ids {
            name(Object::new(ObjectKind::File, &**id), file_role(id));
        }
    }
    if let Some(object) = turn_state(headers) {
        name(object, Role::Needed);
    }
    found
}

/// The object in the path, whose owner alone can answer.
pub fn named_in_path(route: &Route<'_>) -> Option<Object> {
    Some(Object::new(path_kind(route.operation)?, route.owner_id?))
}

/// The object that is gone once upstream has agreed to the request.
pub fn ended(route: &Route<'_>) -> Option<Object> {
    let ends = route.operation.effect() == Effect::Ends;
    named_in_path(route).filter(|_| ends)
}

/// What a list shows.
pub const fn listed(operation: Operation) -> Option<ObjectKind> {
    match operation {
        Operation::FileList => Some(ObjectKind::File),
        Operation::BatchList => Some(ObjectKind::Batch),
        Operation::MessageBatchList => Some(ObjectKind::MessageBatch),
        _ => None,
    }
}

/// The turn state in the headers of a request or of an answer. It is known by its digest: it is
/// long, and nobody needs to see it again.
pub fn turn_state(headers: &HeaderMap) -> Option<Object> {
    let value = headers.get(X_CODEX_TURN_STATE)?.as_bytes();
    if value.is_empty() {
        return None;
    }
    let mut id = String::with_capacity(64);
    for byte in digest::sha256(value) {
        write!(id, "{byte:02x}").ok()?;
    }
    Some(Object::new(ObjectKind::TurnState, id))
}

/// What names the conversation of a request, where something does.
pub fn affinity<'a>(
    peeked: Option<&'a Peeked>,
    headers: &'a HeaderMap,
) -> Option<(AffinitySource, &'a [u8])> {
    let field = peeked
        .and_then(|p| p.prompt_cache_key.as_deref())
        .map(|key| (AffinitySource::PromptCacheKey, key.as_bytes()));
    let lines = AffinitySource::HEADERS
        .into_iter()
        .filter_map(|(source, name)| {
            let value = headers.get(name).map(HeaderValue::as_bytes)?;
            Some((source, value))
        });
    let mut all = field.into_iter().chain(lines);
    all.find(|(_, value)| !value.is_empty())
}

/// The kind of the object in an operation's path.
const fn path_kind(operation: Operation) -> Option<ObjectKind> {
    use Operation as O;
    match operation {
        O::ResponseRetrieve | O::ResponseDelete | O::ResponseCancel | O::ResponseInputItems => {
            Some(ObjectKind::Response)
        }
        O::FileRetrieve | O::FileDelete | O::FileContent => Some(ObjectKind::File),
        O::UploadPart | O::UploadComplete | O::UploadCancel => Some(ObjectKind::Upload),
        O::BatchRetrieve | O::BatchCancel => Some(ObjectKind::Batch),
        O::ConversationRetrieve
        | O::ConversationUpdate
        | O::ConversationDelete
        | O::ConversationItems
        | O::ConversationItemsChange => Some(ObjectKind::Conversation),
        O::MessageBatchRetrieve
        | O::MessageBatchDelete
        | O::MessageBatchCancel
        | O::MessageBatchResults => Some(ObjectKind::MessageBatch),
        _ => None,
    }
}

/// A client's own tools may have a `file_id` of their own in what they are called with. One that
/// does not look like a provider's is looked up, but not missed.
fn file_role(id: &str) -> Role {
    if id.starts_with("file") {
        Role::Needed
    } else {
        Role::Doubtful
    }
}

/// An object of that id; `None` for what is no id, as far as anybody could name it in a request.
fn object(kind: ObjectKind, id: &str) -> Option<Object> {
    (1..=MAX_FIELD_BYTES)
        .contains(&id.len())
        .then(|| Object::new(kind, id))
}
