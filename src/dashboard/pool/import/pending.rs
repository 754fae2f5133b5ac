//! Pasted texts between their preview and its confirmation.
//!
//! Invariants: a text is found by its own session alone; a session has one at most; none outlives
//! [`KEPT_FOR`]; there are never more than [`AT_MOST`]. What is let go of is overwritten first.
use crate::{
    clock::Instant,
    document::{read_json, read_list},
    domain::{
        ids::SessionId,
        pool::document::{Document, Mistake, Mode},
    },
    entropy, tasks,
};
use std::{
    hint,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep_until};

/// Long enough to read a preview; secrets lie about no longer than that.
pub(super) const KEPT_FOR: Duration = Duration::from_mins(10);

/// With the limit of a form this bounds what is held to 16 MiB.
pub(super) const AT_MOST: usize = 16;

/// What was pasted, and what is to be done with it.
pub(super) struct Paste {
    text: Vec<u8>,
    /// Where the secrets of a list work.
    pub(super) endpoint: String,
    /// What becomes of what is not listed.
    pub(super) mode: Mode,
}

impl Paste {
    pub(super) fn new(text: String, endpoint: String, mode: Mode) -> Self {
        Self {
            text: text.into_bytes(),
            endpoint,
            mode,
        }
    }

    /// No secret begins as JSON does, so that the text itself tells what it is.
    pub(super) fn is_document(&self) -> bool {
        self.text()
            .trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with(['{', '['])
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text()
            .trim_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
            .is_empty()
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// What it says. An error means that there is no document at all.
    pub(super) fn document(&self) -> Result<Document, Vec<Mistake>> {
        if self.is_document() {
            read_json(&self.text)
        } else {
            Ok(read_list(self.text(), &self.endpoint))
        }
    }
}

impl Drop for Paste {
    fn drop(&mut self) {
        self.text.fill(0);
        // Nobody reads it again, which must not be a reason to leave it.
        hint::black_box(&self.text);
    }
}

struct Held {
    session: SessionId,
    id: String,
    paste: Arc<Paste>,
    until: Instant,
    timer: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

/// The texts that wait for a confirmation, the oldest first; cheap to clone.
#[derive(Clone, Default)]
pub(in crate::dashboard) struct Pending(Arc<Mutex<Vec<Held>>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Vec<Held>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        held.retain(|one| now < one.until);
        held
    }

    /// Keeps a text in place of what that session had before, and names it.
    pub(super) fn hold(&self, session: SessionId, paste: Paste) -> String {
        let id = entropy::secret("");
        let until = Instant::now() + KEPT_FOR;
        let all = Arc::downgrade(&self.0);
        let timer = tasks::spawn("pasted import", async move {
            sleep_until(until).await;
            if let Some(all) = all.upgrade() {
                drop(Self(all).lock());
            }
        });
        let mut held = self.lock();
        held.retain(|one| one.session != session);
        if held.len() >= AT_MOST {
            held.remove(0);
        }
        held.push(Held {
            session,
            id: id.clone(),
            paste: Arc::new(paste),
            until,
            timer,
        });
        id
    }

    /// The text of that name, for whoever pasted it.
    pub(super) fn find(&self, session: SessionId, id: &str) -> Option<Arc<Paste>> {
        let held = self.lock();
        let found = held
            .iter()
            .find(|one| one.session == session && one.id == id);
        found.map(|one| Arc::clone(&one.paste))
    }

    /// Forgets what that session has.
    pub(super) fn forget(&self, session: SessionId) {
        self.lock().retain(|one| one.session != session);
    }

    #[cfg(test)]
    pub(in crate::dashboard) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paste() -> Paste {
        Paste::new("sk-1".to_owned(), "main".to_owned(), Mode::Merge)
    }

    fn session(n: usize) -> SessionId {
        SessionId::from_u128(n as u128)
    }

    #[tokio::test]
    async fn a_text_is_its_sessions_alone_and_the_newest_replaces_it() {
        let pending = Pending::default();
        let first = pending.hold(session(1), paste());
        assert_eq!(pending.find(session(1), &first).unwrap().text(), "sk-1");
        assert!(pending.find(session(2), &first).is_none());
        let second = pending.hold(session(1), paste());
        assert!(pending.find(session(1), &first).is_none());
        pending.forget(session(1));
        assert!(pending.find(session(1), &second).is_none());
    }

    #[tokio::test]
    async fn the_oldest_makes_room() {
        let pending = Pending::default();
        let ids: Vec<String> = (0..=AT_MOST)
            .map(|n| pending.hold(session(n), paste()))
            .collect();
        assert_eq!(pending.count(), AT_MOST);
        assert!(pending.find(session(0), &ids[0]).is_none());
        assert!(pending.find(session(1), &ids[1]).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn its_time_ends_without_anybody_looking() {
        let pending = Pending::default();
        let id = pending.hold(session(1), paste());
        let begun = Instant::now();
        tokio::time::sleep_until(begun + KEPT_FOR.mul_f32(0.99)).await;
        assert!(pending.find(session(1), &id).is_some());
        tokio::time::sleep_until(begun + KEPT_FOR.mul_f32(1.01)).await;
        assert_eq!(pending.count(), 0);
        assert!(pending.find(session(1), &id).is_none());
    }
}
