//! By what an account is chosen among those of the best priority that can take a request.

/// The choice among equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The lowest share of its cap in use; among equals whoever had its turn longest ago in
    /// relation to its weight.
    #[default]
    LeastLoaded,
    /// Whoever had its turn longest ago in relation to its weight.
    RoundRobin,
    /// The first in the pool's order, until it is full.
    FillFirst,
}

impl Strategy {
    /// Every strategy's word in settings, the default first.
    pub const WORDS: [&'static str; 3] = ["least_loaded", "round_robin", "fill_first"];

    /// The strategy of that word; the default for a word that is none.
    pub fn from_word(word: &str) -> Self {
        match word {
            "round_robin" => Self::RoundRobin,
            "fill_first" => Self::FillFirst,
            _ => Self::LeastLoaded,
        }
    }
}
