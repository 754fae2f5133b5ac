//! A small seeded source of numbers, so that a run is repeated exactly by its seed on any machine.
//!
//! Invariant: integers only; nothing here depends on a platform's arithmetic.

/// One stream of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, but without, `end`.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `first` to `last`, both included.
    pub(crate) const fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// A place in a list of that length.
    pub(crate) const fn place(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Whether something happens that happens in so many of a thousand cases.
    pub(crate) const fn chance(&mut self, per_thousand: u64) -> bool {
        self.below(1000) < per_thousand
    }

    /// A length of that mean, as waiting times are spread (geometric, in steps of a sixteenth),
    /// and at most four times as long.
    pub(crate) fn length(&mut self, mean: u64) -> u64 {
        let step = (mean / 16).max(1);
        let mut length = self.below(step);
        while length < mean * 4 && !self.chance(1000 / 16) {
            length += step;
        }
        length.min(mean * 4)
    }

    pub(crate) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.place(list.len())]
    }
}
