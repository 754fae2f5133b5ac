//! Who owns what lives on upstream: a response, a file, a batch belongs to the credential that it
//! was made with, and to the client key that asked for it.
//!
//! Invariant: what another key made can never be reached by naming it, however few accounts there
//! are; what nobody is known to have made is a different matter, and is told apart.
//!
//! Owners are hard: a request that names such an object goes to its owner or nowhere. [`affinity`]
//! has the soft ones, which are a mere preference.
pub mod affinity;
mod recent;
#[cfg(test)]
mod tests;

use super::ids::{CredentialId, EndpointId, KeyId};
use std::sync::Arc;

pub use recent::Recent;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal;)*) => {
        /// What kind of thing lives on upstream.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ObjectKind { $($(#[$doc])* $kind,)* }

        impl ObjectKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The word in columns and logs.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// What a generation said, kept to be continued or read again.
    Response = "response";
    /// A conversation that responses are added to.
    Conversation = "conversation";
    /// A file, sent by a client or made by a batch.
    File = "file";
    /// A file that is sent in parts.
    Upload = "upload";
    /// A batch of `OpenAI`'s.
    Batch = "batch";
    /// A batch of Anthropic's.
    MessageBatch = "message_batch";
    /// What ties the requests of one turn of Codex together; its id is a digest.
    TurnState = "turn_state";
}

/// How long responses are remembered. Upstream keeps them for 30 days, and an error may then still
/// come from whoever had them.
const RESPONSE_DAYS: u16 = 60;
/// How long turn states are remembered: a turn takes minutes, or hours.
const TURN_STATE_DAYS: u16 = 7;

impl ObjectKind {
    /// The kind of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|k| k.name() == name)
    }

    /// For how many days an object of this kind is remembered; `None` is until it is deleted.
    pub const fn kept_days(self) -> Option<u16> {
        match self {
            Self::Response => Some(RESPONSE_DAYS),
            Self::TurnState => Some(TURN_STATE_DAYS),
            Self::Conversation | Self::File | Self::Upload | Self::Batch | Self::MessageBatch => {
                None
            }
        }
    }
}

/// A thing that lives on upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Its id as upstream wrote it.
    pub id: Arc<str>,
}

impl Object {
    /// An object of that kind and id.
    pub fn new(kind: ObjectKind, id: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            id: id.into(),
        }
    }
}

/// Where an object lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// With whose secret it was made.
    pub credential: CredentialId,
    /// Where it was made, if that is known.
    pub endpoint: Option<EndpointId>,
}

/// What is known of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerRow {
    /// The object.
    pub object: Object,
    /// Where it lives.
    pub owner: Owner,
    /// Which client key made it; `None` is a keyless request.
    pub key: Option<KeyId>,
    /// When it was made, in milliseconds since 1970.
    pub made_at: i64,
}

/// What looking for an object on behalf of a client key came to. Keyless requests have among
/// themselves what keyless requests made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// This key made it.
    Own(Owner),
    /// Another key made it.
    Foreign,
    /// Nobody is known to have made it.
    Never,
}

impl Sighting {
    /// What `row` is to `caller`.
    pub fn of(row: Option<&OwnerRow>, caller: Option<KeyId>) -> Self {
        match row {
            Some(row) if row.key == caller => Self::Own(row.owner),
            Some(_) => Self::Foreign,
            None => Self::Never,
        }
    }
}

/// As what a request names an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// As what it is about, or needs.
    Needed,
    /// As the response that it continues: a client that is told of its loss sends everything again.
    Continued,
    /// Perhaps not at all: the key is that of an object, but the value looks like something else.
    Doubtful,
}

/// An object that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The object.
    pub object: Object,
    /// As what.
    pub role: Role,
}

/// Where a request must go, as far as the objects that it names tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Anywhere.
    None,
    /// There alone. The endpoint is given if all that is known agrees on it.
    Bound(Owner),
    /// It names something of which nobody is known to be the owner, and nothing else: it may go to
    /// the only account in scope, if there is just one.
    Unknown {
        /// Whether the response that it continues is unknown.
        is_continued: bool,
    },
    /// It names something that another key made: nowhere, in the words of what does not exist.
    Foreign {
        /// Whether the response that it continues is another key's.
        is_continued: bool,
    },
    /// Two owners, and it can go to one only.
    Conflict,
}

/// Where a request must go that names these objects.
///
/// What is another key's bars the way whatever else is named. Where one object has an owner and
/// another was never seen, the owner decides: there is nowhere else to go, what was never seen is
/// no key's as far as anybody knows, and upstream refuses what it does not have.
pub fn resolve(named: impl IntoIterator<Item = (Role, Sighting)>) -> Binding {
    let mut owner: Option<Owner> = None;
    let mut is_conflict = false;
    let (mut foreign, mut unknown) = (None, None);
    for (role, sighting) in named {
        let is_continued = role == Role::Continued;
        match sighting {
            Sighting::Foreign => foreign = Some(is_continued || foreign == Some(true)),
            Sighting::Never if role == Role::Doubtful => {}
            Sighting::Never => unknown = Some(is_continued || unknown == Some(true)),
            Sighting::Own(next) => match &mut owner {
                None => owner = Some(next),
                Some(owner) if owner.credential != next.credential => is_conflict = true,
                Some(owner) if owner.endpoint != next.endpoint => owner.endpoint = None,
                Some(_) => {}
            },
        }
    }
    match (foreign, owner, unknown) {
        (Some(is_continued), _, _) => Binding::Foreign { is_continued },
        (None, Some(_), _) if is_conflict => Binding::Conflict,
        (None, Some(owner), _) => Binding::Bound(owner),
        (None, None, Some(is_continued)) => Binding::Unknown { is_continued },
        (None, None, None) => Binding::None,
    }
}
