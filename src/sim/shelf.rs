//! What credentials have stored: responses, files, uploads, batches, conversations.
//!
//! Invariant: an object is found only by the credential that put it there and under the kind it
//! was put as. Each credential keeps its newest [`KEPT`] of a kind.
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use serde_json::Value;

/// Enough for any test; a benchmark must not fill the memory.
const KEPT: usize = 1000;

/// A kind of stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Response,
    File,
    Upload,
    Batch,
    Conversation,
}

/// A stored object: what reads of it show, and bytes that go with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stored {
    pub(super) shown: Value,
    pub(super) bytes: Bytes,
}

#[derive(Default)]
struct Shelf {
    order: VecDeque<String>,
    by_id: HashMap<String, Stored>,
}

/// Every credential's objects.
#[derive(Default)]
pub(super) struct Shelves(Mutex<HashMap<(String, Kind), Shelf>>);

impl Shelves {
    /// Stores or replaces.
    pub(super) fn put(&self, owner: &str, kind: Kind, id: &str, stored: Stored) {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = shelves.entry((owner.to_owned(), kind)).or_default();
        if own.by_id.insert(id.to_owned(), stored).is_some() {
            return;
        }
        own.order.push_back(id.to_owned());
        if own.order.len() > KEPT
            && let Some(oldest) = own.order.pop_front()
        {
            own.by_id.remove(&oldest);
        }
    }

    pub(super) fn find(&self, owner: &str, kind: Kind, id: &str) -> Option<Stored> {
        let shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = shelves.get(&(owner.to_owned(), kind))?;
        own.by_id.get(id).cloned()
    }

    pub(super) fn remove(&self, owner: &str, kind: Kind, id: &str) -> Option<Stored> {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = shelves.get_mut(&(owner.to_owned(), kind))?;
        own.order.retain(|known| known != id);
        own.by_id.remove(id)
    }

    /// What reads show of all of a kind, the newest first.
    pub(super) fn list(&self, owner: &str, kind: Kind) -> Vec<Value> {
        let shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = shelves.get(&(owner.to_owned(), kind)) else {
            return Vec::new();
        };
        let newest = own.order.iter().rev();
        newest
            .filter_map(|id| Some(own.by_id.get(id)?.shown.clone()))
            .collect()
    }

    pub(super) fn clear(&self) {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_of_a_kind_are_kept() {
        let shelves = Shelves::default();
        for n in 0..=KEPT {
            shelves.put("a", Kind::File, &n.to_string(), Stored::default());
        }
        assert_eq!(shelves.find("a", Kind::File, "0"), None);
        assert!(shelves.find("a", Kind::File, "1").is_some());
        assert_eq!(shelves.list("a", Kind::File).len(), KEPT);
    }

    #[test]
    fn objects_are_apart_by_owner_and_kind() {
        let shelves = Shelves::default();
        shelves.put("a", Kind::File, "1", Stored::default());
        assert_eq!(shelves.find("b", Kind::File, "1"), None);
        assert_eq!(shelves.find("a", Kind::Batch, "1"), None);
        assert_eq!(shelves.remove("b", Kind::File, "1"), None);
        assert!(shelves.remove("a", Kind::File, "1").is_some());
        assert_eq!(shelves.find("a", Kind::File, "1"), None);
    }
}
