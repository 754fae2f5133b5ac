//! The pool as one wide bar, by key, and the same in words; and which key has which colour.
use super::view::View;
use crate::{
    dashboard::{
        chart::per_cent,
        names::{Named, Names},
    },
    domain::ids::KeyId,
    engine::picture::{Picture, Totals},
};
use std::{cmp::Reverse, collections::HashMap};

/// The colours, by rank: the six that hold most have one each.
const PAINTS: [&str; 6] = ["k1", "k2", "k3", "k4", "k5", "k6"];
/// Everybody else.
const REST: (usize, &str) = (PAINTS.len(), "rest");
/// The one that was chosen.
const CHOSEN: (usize, &str) = (0, "chosen");

/// Which key is drawn how.
#[derive(Default)]
pub(super) struct Paints {
    by_key: HashMap<Option<KeyId>, (usize, &'static str)>,
    /// Streams by key on the accounts that take work, most first.
    held: Vec<(Option<KeyId>, u64)>,
}

impl Paints {
    pub(super) fn new(picture: &Picture, chosen: Option<KeyId>) -> Self {
        let mut held: HashMap<Option<KeyId>, u64> = HashMap::new();
        let accounts = picture.pool.accounts().iter().zip(&picture.accounts);
        for (_, on) in accounts.filter(|(account, _)| account.state.takes_work()) {
            for (key, streams) in &on.by_key {
                *held.entry(*key).or_default() += streams;
            }
        }
        let mut held: Vec<_> = held.into_iter().collect();
        held.sort_unstable_by_key(|(key, streams)| (Reverse(*streams), *key));
        let by_key = if let Some(key) = chosen {
            HashMap::from([(Some(key), CHOSEN)])
        } else {
            let ranked = held.iter().zip(PAINTS).enumerate();
            ranked
                .map(|(rank, ((key, _), paint))| (*key, (rank, paint)))
                .collect()
        };
        Self { by_key, held }
    }

    /// The rank and the class of a key.
    pub(super) fn of(&self, key: Option<KeyId>) -> (usize, &'static str) {
        self.by_key.get(&key).copied().unwrap_or(REST)
    }
}

/// A part of the bar, in per cent of it.
pub(super) struct Part {
    pub(super) paint: &'static str,
    pub(super) x: String,
    pub(super) width: String,
}

/// One colour and whose it is.
pub(super) struct Legend {
    pub(super) paint: &'static str,
    pub(super) name: Named,
    pub(super) streams: u64,
    /// The view that draws this key alone.
    pub(super) address: Option<String>,
}

/// The pool as a whole.
pub(super) struct Strip {
    pub(super) totals: Totals,
    /// How long the one has waited that waits longest.
    pub(super) oldest_wait: Option<String>,
    pub(super) parts: Vec<Part>,
    /// Where it begins to be congested, in per cent of the bar.
    pub(super) congested_at: Option<String>,
    pub(super) legend: Vec<Legend>,
    /// Whether one key is drawn alone, and the view that draws all.
    pub(super) all: Option<String>,
}

impl Strip {
    pub(super) fn new(names: &Names<'_>, paints: &Paints, view: &View) -> Self {
        let totals = names.picture.totals;
        let all = totals.capacity.map_or(totals.in_flight, |capacity| {
            (capacity + totals.reserve).max(totals.in_flight)
        });
        let legend = legend(names, paints, view);
        let mut strip = Self {
            oldest_wait: totals.oldest_wait_ms.map(|ms| names.shell.span_ms(ms)),
            congested_at: totals.congested_from().map(|from| per_cent(from, all)),
            parts: Vec::new(),
            all: view.key.map(|_| view.with(|view| view.key = None)),
            legend,
            totals,
        };
        let mut at = 0;
        for n in 0..strip.legend.len() {
            let Some(entry) = strip.legend.get(n) else {
                continue;
            };
            let (paint, streams) = (entry.paint, entry.streams);
            strip.part(paint, (at, streams), all);
            at += streams;
        }
        let capacity = totals.capacity.unwrap_or(at);
        strip.part("free", (at, capacity.saturating_sub(at)), all);
        let reserved = at.max(capacity);
        strip.part("kept", (reserved, all.saturating_sub(reserved)), all);
        strip
    }

    fn part(&mut self, paint: &'static str, (from, count): (u64, u64), all: u64) {
        if count > 0 {
            self.parts.push(Part {
                paint,
                x: per_cent(from, all),
                width: per_cent(count, all),
            });
        }
    }
}

fn legend(names: &Names<'_>, paints: &Paints, view: &View) -> Vec<Legend> {
    let mut legend: Vec<(usize, Legend)> = Vec::new();
    let mut others = 0;
    for (key, streams) in &paints.held {
        let (rank, paint) = paints.of(*key);
        if (rank, paint) == REST {
            others += streams;
            continue;
        }
        legend.push((
            rank,
            Legend {
                paint,
                name: names.key(*key),
                streams: *streams,
                address: key.map(|key| view.with(|view| view.key = Some(key))),
            },
        ));
    }
    if let Some(key) = view.key.filter(|_| legend.is_empty()) {
        // The chosen key holds nothing: that is an answer too.
        let (rank, paint) = CHOSEN;
        let name = names.key(Some(key));
        legend.push((
            rank,
            Legend {
                paint,
                name,
                streams: 0,
                address: None,
            },
        ));
    }
    legend.sort_by_key(|(rank, _)| *rank);
    let mut legend: Vec<Legend> = legend.into_iter().map(|(_, entry)| entry).collect();
    if others > 0 {
        legend.push(Legend {
            paint: REST.1,
            name: Named {
                text: names.shell.t("conc-others").to_string(),
                is_name: false,
            },
            streams: others,
            address: None,
        });
    }
    legend
}
