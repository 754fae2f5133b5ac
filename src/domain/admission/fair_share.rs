//! The share of a congested pool that a client key may hold, and whether one more stream is within it.
//!
//! The rule: a pool is congested from a stated percentage of its ordinary capacity on. Then a key
//! may hold the capacity's part that its weight has among the weights of all keys that hold or wait
//! for a stream there, itself included, as a whole number rounded down, but never less than
//! [`LEAST`]. What is in flight without a key counts as in use and is not held back itself.
//!
//! Invariant: a key that holds fewer than [`LEAST`] streams is never held back.

/// The streams that every key may hold, whatever the others do.
pub const LEAST: u64 = 2;

/// The numbers of one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Ordinary stream slots of the candidate accounts that can serve now.
    pub capacity: u64,
    /// Streams held there, by anyone.
    pub in_flight: u64,
    /// Streams held there by this key.
    pub mine: u64,
    /// This key's weight.
    pub weight: u64,
    /// The weights of all keys that hold or wait for a stream there, this one included once.
    pub weights: u64,
    /// From how many percent of the capacity on it is congested; 0 = never.
    pub threshold_pct: u32,
}

impl Share {
    /// Whether so much is in use that keys are held to their shares.
    pub const fn is_congested(&self) -> bool {
        self.threshold_pct > 0 && self.in_flight * 100 >= self.capacity * self.threshold_pct as u64
    }

    /// How many streams the key may hold while it is congested.
    pub fn streams(&self) -> u64 {
        let part = (self.capacity * self.weight).checked_div(self.weights);
        part.unwrap_or(0).max(LEAST)
    }

    /// Whether the key may take one more stream.
    pub fn admits(&self) -> bool {
        !self.is_congested() || self.mine < self.streams()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 14 accounts of 8 slots, one of them reserved: 98 ordinary slots.
    const POOL: Share = Share {
        capacity: 98,
        in_flight: 98,
        mine: 0,
        weight: 1,
        weights: 1,
        threshold_pct: 80,
    };

    fn check(share: Share, streams: u64, admits: bool) {
        assert_eq!(
            (share.streams(), share.admits()),
            (streams, admits),
            "{share:?}"
        );
    }

    #[test]
    fn congestion_begins_exactly_at_the_threshold() {
        for (in_flight, threshold_pct, expected) in [
            (98, 0, false),
            (0, 1, false),
            (1, 1, true),
            (78, 80, false),
            (79, 80, true),
            (97, 100, false),
            (98, 100, true),
            (99, 100, true),
        ] {
            let share = Share {
                in_flight,
                threshold_pct,
                ..POOL
            };
            assert_eq!(share.is_congested(), expected, "{share:?}");
        }
        let even = Share {
            capacity: 10,
            in_flight: 8,
            ..POOL
        };
        assert!(even.is_congested());
        assert!(
            !Share {
                in_flight: 7,
                ..even
            }
            .is_congested()
        );
    }

    #[test]
    fn shares_are_whole_numbers_rounded_down() {
        for (weight, weights, streams) in [
            (1, 1, 98),
            (1, 3, 32),
            (2, 3, 65),
            (1, 14, 7),
            (3, 14, 21),
            (1, 33, 2),
        ] {
            let share = Share {
                weight,
                weights,
                ..POOL
            };
            check(
                Share {
                    mine: streams - 1,
                    ..share
                },
                streams,
                true,
            );
            check(
                Share {
                    mine: streams,
                    ..share
                },
                streams,
                false,
            );
        }
    }

    #[test]
    fn two_streams_are_everybodys_however_many_there_are() {
        let crowd = Share {
            weights: 10_000,
            ..POOL
        };
        check(crowd, LEAST, true);
        check(Share { mine: 1, ..crowd }, LEAST, true);
        check(Share { mine: 2, ..crowd }, LEAST, false);
    }

    #[test]
    fn a_loose_pool_holds_nobody_back() {
        let loose = Share {
            in_flight: 50,
            mine: 50,
            weights: 50,
            ..POOL
        };
        check(loose, LEAST, true);
        check(
            Share {
                threshold_pct: 0,
                in_flight: 98,
                ..loose
            },
            LEAST,
            true,
        );
    }

    proptest! {
        #[test]
        fn who_holds_fewer_than_two_is_never_held_back(
            capacity in 0u64..100_000, in_flight in 0u64..100_000, mine in 0u64..LEAST,
            weight in 1u64..1000, others in 0u64..1_000_000, threshold_pct in 0u32..=100,
        ) {
            let weights = weight + others;
            let share = Share { capacity, in_flight, mine, weight, weights, threshold_pct };
            prop_assert!(share.admits());
        }

        #[test]
        fn shares_never_exceed_the_capacity_together_but_for_the_least(
            capacity in 0u64..10_000, weights in prop::collection::vec(1u64..50, 1..40),
        ) {
            let sum = weights.iter().sum();
            let of = |weight| Share { capacity, weight, weights: sum, ..POOL }.streams();
            let beyond: u64 = weights.iter().map(|w| of(*w)).filter(|s| *s > LEAST).sum();
            prop_assert!(beyond <= capacity);
        }
    }
}
