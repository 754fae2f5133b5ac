//! Streams by all that they count on: one that takes slots on several accounts is still one stream of its
//! key.
//!
//! Invariant: who is not in here holds no stream.
use crate::domain::ids::KeyId;
use rustc_hash::FxHashMap;

/// Who holds streams on several subjects at once.
#[derive(Debug, Default)]
pub(super) struct Together {
    places: FxHashMap<Box<[u32]>, usize>,
    rows: Vec<Row>,
    /// By subject: the rows that it is in.
    by_subject: FxHashMap<u32, Vec<usize>>,
}

/// Leases that count on the same subjects.
#[derive(Debug)]
struct Row {
    subjects: Box<[u32]>,
    held: FxHashMap<KeyId, u32>,
}

impl Together {
    /// A stream of a key is held on these subjects from now on, or not any more.
    pub(super) fn hold(&mut self, subjects: &[u32], key: KeyId, sign: i64) {
        let place = match self.places.get(subjects) {
            Some(place) => *place,
            None => self.add(subjects),
        };
        let Some(row) = self.rows.get_mut(place) else {
            return;
        };
        let held = row.held.entry(key).or_default();
        *held = held.saturating_add_signed(if sign > 0 { 1 } else { -1 });
        if *held == 0 {
            row.held.remove(&key);
        }
    }

    fn add(&mut self, subjects: &[u32]) -> usize {
        let place = self.rows.len();
        self.places.insert(subjects.into(), place);
        self.rows.push(Row {
            subjects: subjects.into(),
            held: FxHashMap::default(),
        });
        for subject in subjects {
            self.by_subject.entry(*subject).or_default().push(place);
        }
        place
    }

    /// The streams that every key holds on a subject and on others, of which `is_meant` says whether
    /// they are meant.
    pub(super) fn held_on(
        &self,
        subject: u32,
        is_meant: impl Fn(&[u32]) -> bool,
    ) -> FxHashMap<KeyId, u32> {
        let places = self.by_subject.get(&subject).into_iter().flatten();
        let rows = places.filter_map(|place| self.rows.get(*place));
        let mut sums = FxHashMap::default();
        for row in rows.filter(|row| is_meant(&row.subjects)) {
            for (key, held) in &row.held {
                *sums.entry(*key).or_default() += held;
            }
        }
        sums
    }
}
