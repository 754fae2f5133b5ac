//! Tells those who wait for something to come true that it may have.
//!
//! Invariant: whoever changed something rings afterwards, and no ring between a waiter's look and
//! its sleep is lost. Ringing costs one atomic load while nobody waits.
use std::{
    fmt, pin,
    sync::atomic::{AtomicUsize, Ordering, fence},
    time::Duration,
};

use tokio::sync::Notify;

/// A waiter that has seen nothing for so long is waiting in vain.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was waited for did not come true.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("waited in vain; at the end there was {last}")]
pub struct WaitedInVain {
    /// The last state that was looked at.
    pub last: String,
}

impl fmt::Debug for WaitedInVain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Default)]
pub(super) struct Bell {
    waiting: AtomicUsize,
    notify: Notify,
}

impl Bell {
    pub(super) fn ring(&self) {
        // Orders the change before the look at `waiting`: a waiter counts itself, then looks.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.notify.notify_waiters();
        }
    }

    /// Waits until `look` finds something; `describe` says what there was if it never does.
    pub(super) async fn wait<T>(
        &self,
        mut look: impl FnMut() -> Option<T>,
        describe: impl FnOnce() -> String,
    ) -> Result<T, WaitedInVain> {
        let _counted = Counted::new(&self.waiting);
        let patience = tokio::time::sleep(PATIENCE);
        let mut patience = pin::pin!(patience);
        loop {
            let rung = self.notify.notified();
            let mut rung = pin::pin!(rung);
            rung.as_mut().enable();
            fence(Ordering::SeqCst);
            if let Some(found) = look() {
                return Ok(found);
            }
            tokio::select! {
                () = rung => {}
                () = &mut patience => return Err(WaitedInVain { last: describe() }),
            }
        }
    }
}

struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, atomic::AtomicU32};

    #[tokio::test]
    async fn a_waiter_wakes_when_its_wish_comes_true() {
        let bell = Arc::new(Bell::default());
        let value = Arc::new(AtomicU32::new(0));
        let (ringer, changed) = (Arc::clone(&bell), Arc::clone(&value));
        let task = crate::tasks::spawn("ring", async move {
            for _ in 0..3 {
                changed.fetch_add(1, Ordering::Relaxed);
                ringer.ring();
                tokio::task::yield_now().await;
            }
        });
        let look = || (value.load(Ordering::Relaxed) == 3).then_some("three");
        assert_eq!(bell.wait(look, String::new).await, Ok("three"));
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_in_vain_says_what_there_was() {
        let got = Bell::default()
            .wait(|| None::<()>, || "nothing".into())
            .await;
        assert_eq!(
            got.unwrap_err().to_string(),
            "waited in vain; at the end there was nothing"
        );
    }
}
