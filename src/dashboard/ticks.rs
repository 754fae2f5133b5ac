//! One look and one drawing a tick, shared by everybody who watches.
//!
//! Invariant: what is kept is of one tick, and bounded: a drawing too many is not kept.
use super::State;
use crate::{
    clock,
    domain::{ids::KeyId, settings::Name},
    engine::{live::Progress, picture::Picture},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tokio::sync::OnceCell;

/// How long a look is shared. Pages ask as often.
const TICK_MS: i64 = 2_000;

/// Drawings that are kept at most: views times languages times zones.
const DRAWN: usize = 64;

/// How far back refusals are counted.
const REFUSED_MS: i64 = 60_000;

/// What was seen in one look.
pub(super) struct Seen {
    tick: i64,
    pub(super) picture: Picture,
    /// Requests in flight, in no order.
    pub(super) live: Vec<Arc<Progress>>,
    /// Requests of each key that were refused in the last minute; `None` where that is not known.
    pub(super) refused: Option<HashMap<Option<KeyId>, u64>>,
}

impl Seen {
    #[cfg(test)]
    pub(super) fn sample(picture: Picture, live: Vec<Arc<Progress>>) -> Self {
        Self {
            tick: 0,
            picture,
            live,
            refused: None,
        }
    }
}

/// A drawing; nothing if it failed.
type Drawing = OnceLock<Result<String, askama::Error>>;

#[derive(Default)]
struct Tick {
    number: i64,
    seen: Arc<OnceCell<Arc<Seen>>>,
    drawn: HashMap<String, Arc<Drawing>>,
}

/// What was seen and drawn in the tick that runs.
#[derive(Default)]
pub(super) struct Ticks(Mutex<Tick>);

impl Ticks {
    fn lock(&self) -> MutexGuard<'_, Tick> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks, unless somebody has in this tick.
    pub(super) async fn seen(&self, state: &State) -> Arc<Seen> {
        let now_ms = clock::unix_millis();
        let number = now_ms.div_euclid(TICK_MS);
        let cell = {
            let mut tick = self.lock();
            if tick.number != number {
                *tick = Tick {
                    number,
                    ..Tick::default()
                };
            }
            Arc::clone(&tick.seen)
        };
        let look = async || Arc::new(look(state, number, now_ms).await);
        Arc::clone(cell.get_or_init(look).await)
    }

    /// Looks now: somebody who opens a page is shown what was done just before, and whoever looks
    /// in the rest of the tick sees no older state.
    pub(super) async fn anew(&self, state: &State) -> Arc<Seen> {
        *self.lock() = Tick::default();
        self.seen(state).await
    }

    /// Draws, unless somebody has drawn the same of what was seen.
    pub(super) fn drawn(
        &self,
        seen: &Seen,
        name: String,
        draw: impl FnOnce() -> Result<String, askama::Error>,
    ) -> Arc<Drawing> {
        let drawing = {
            let mut tick = self.lock();
            let is_kept = tick.number == seen.tick
                && (tick.drawn.len() < DRAWN || tick.drawn.contains_key(&name));
            if is_kept {
                Arc::clone(tick.drawn.entry(name).or_default())
            } else {
                Arc::default()
            }
        };
        drawing.get_or_init(draw);
        drawing
    }
}

async fn look(state: &State, tick: i64, now_ms: i64) -> Seen {
    let configuration = state.reload().configuration();
    let settings = configuration.settings();
    let is_kept = settings.integer(Name::RequestLogRetentionDays) > 0;
    drop(settings);
    let refused = if is_kept {
        let counted = state.store().refused_since(now_ms - REFUSED_MS).await;
        // Slots are looked at even where the disk fails; what is not known is shown as such.
        counted
            .inspect_err(|error| tracing::warn!(%error, "refusals could not be counted"))
            .ok()
    } else {
        None
    };
    Seen {
        tick,
        picture: Picture::take(configuration, now_ms),
        live: state.live().snapshot(),
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_once_serves_everybody_in_the_same_tick() {
        let ticks = Ticks::default();
        let seen = Seen::sample(Picture::default(), Vec::new());
        let draw = |name: &str, text: &str| {
            let text = text.to_owned();
            let drawing = ticks.drawn(&seen, name.to_owned(), || Ok(text));
            drawing.get().unwrap().as_ref().unwrap().clone()
        };
        assert_eq!(draw("en", "first"), "first");
        assert_eq!(draw("en", "second"), "first");
        assert_eq!(draw("ko", "third"), "third");
        let later = Seen { tick: 1, ..seen };
        let drawing = ticks.drawn(&later, "en".to_owned(), || Ok("late".to_owned()));
        assert_eq!(drawing.get().unwrap().as_ref().unwrap(), "late");
    }
}
