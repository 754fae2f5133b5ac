//! The turns that run on one socket, and which of them a message of upstream's is about.
//!
//! Invariant: every turn that was begun is taken out exactly once. A message names its turn by
//! conversation or response where it can; else it is the oldest that it can be about, since turns of
//! one socket begin and end in the order in which they were asked for.
use super::{Meaning, Told};

/// Turns in flight, oldest first, each with what goes along with it.
#[derive(Debug)]
pub struct Turns<T>(Vec<Turn<T>>);

#[derive(Debug)]
struct Turn<T> {
    stream: Option<String>,
    response: Option<String>,
    has_begun: bool,
    companion: T,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Turns<T> {
    /// A turn was sent.
    pub fn begin(&mut self, stream: Option<String>, companion: T) {
        self.0.push(Turn {
            stream,
            response: None,
            has_begun: false,
            companion,
        });
    }

    /// Whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The companions of all.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|turn| &mut turn.companion)
    }

    /// Takes all of them out.
    pub fn take_all(&mut self) -> Vec<T> {
        self.0.drain(..).map(|turn| turn.companion).collect()
    }

    /// The turn that `told` is about.
    pub fn about(&mut self, told: &Told) -> Option<&mut T> {
        let at = self.place(told)?;
        let turn = self.0.get_mut(at)?;
        if told.meaning == Meaning::Begun {
            turn.response.clone_from(&told.response);
        }
        turn.has_begun = true;
        Some(&mut turn.companion)
    }

    /// Takes out the turn that `told` is about.
    pub fn end(&mut self, told: &Told) -> Option<T> {
        let at = self.place(told)?;
        Some(self.0.remove(at).companion)
    }

    fn place(&self, told: &Told) -> Option<usize> {
        if told.meaning == Meaning::Aside {
            return None;
        }
        let by_response =
            |turn: &Turn<T>| told.response.is_some() && turn.response == told.response;
        if let Some(at) = self.0.iter().position(by_response) {
            return Some(at);
        }
        let is_its = |turn: &Turn<T>| told.stream.is_none() || turn.stream == told.stream;
        let oldest = |has_begun| {
            let fits = |turn: &Turn<T>| is_its(turn) && turn.has_begun == has_begun;
            self.0.iter().position(fits)
        };
        match told.meaning {
            // What has begun does not begin again, and is not refused while another is to begin.
            Meaning::Begun => oldest(false),
            Meaning::Refused(_) => oldest(false).or_else(|| oldest(true)),
            _ => oldest(true).or_else(|| oldest(false)),
        }
    }
}
