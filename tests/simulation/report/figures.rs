//! What a run comes to in figures.
//!
//! *Share*: the weighted max-min allocation of the slots to what keys want at a moment: nobody gets more
//! than it wants, and what is left over is split by weight. *Max-min error*: the part of it that did
//! not reach those whom it belongs to. *Jain's index*: over what keys held in a second divided by their
//! share; 1 is perfect. *Idle while wanted*: free ordinary slots, while somebody has wanted one
//! for more than a tenth of a second.
use super::incident::KEYS;

/// The pool at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) wanted: [u64; KEYS],
    pub(super) held: [u64; KEYS],
    pub(super) weights: [u64; KEYS],
    pub(super) capacity: u64,
    pub(super) free: u64,
    pub(super) is_wanted: bool,
}

/// Sums over a run, and by class of key (bursty, steady, interactive).
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) waits: [Vec<u64>; 3],
    pub(crate) refused: [u64; 3],
    /// How often somebody with two streams or more was let in before one with fewer.
    pub(crate) overtaken: u64,
    errors: Vec<f64>,
    idle: Vec<f64>,
    jain: Vec<f64>,
    second: Vec<(Sample, [f64; KEYS])>,
}

/// So many samples make a second.
const PER_SECOND: usize = 10;

fn real(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

fn mean(all: &[f64]) -> f64 {
    let count = u32::try_from(all.len().max(1)).unwrap();
    all.iter().sum::<f64>() / f64::from(count)
}

/// What everybody would have.
fn shares(sample: &Sample) -> [f64; KEYS] {
    let mut shares = [0.0; KEYS];
    let mut left = real(sample.capacity);
    let mut open: Vec<usize> = (0..KEYS).filter(|k| sample.wanted[*k] > 0).collect();
    while !open.is_empty() {
        let weights: u64 = open.iter().map(|k| sample.weights[*k]).sum();
        let part = |k: usize| left * real(sample.weights[k]) / real(weights);
        let content = |k: &usize| real(sample.wanted[*k]) <= part(*k);
        let (small, rest): (Vec<usize>, Vec<usize>) = open.iter().partition(|k| content(k));
        if small.is_empty() {
            for k in rest {
                shares[k] = part(k);
            }
            return shares;
        }
        for k in small {
            shares[k] = real(sample.wanted[k]);
            left -= shares[k];
        }
        open = rest;
    }
    shares
}

impl Figures {
    pub(super) fn add(&mut self, sample: &Sample) {
        let shares = shares(sample);
        let all: f64 = shares.iter().sum();
        if all > 0.0 {
            let held = shares.iter().zip(sample.held);
            let missed = held.map(|(share, held)| (share - real(held)).max(0.0));
            self.errors.push(missed.sum::<f64>() / all);
        }
        if sample.is_wanted {
            self.idle.push(real(sample.free) / real(sample.capacity));
        }
        self.second.push((sample.clone(), shares));
        if self.second.len() == PER_SECOND {
            self.jain.extend(jain_of(&self.second));
            self.second.clear();
        }
    }

    /// Jain's index of held / share, of 1.
    pub(crate) fn jain(&self) -> f64 {
        mean(&self.jain)
    }

    /// Of 1.
    pub(crate) fn max_min_error(&self) -> f64 {
        mean(&self.errors)
    }

    /// Of 1.
    pub(crate) fn idle(&self) -> f64 {
        mean(&self.idle)
    }

    /// The wait in milliseconds that so many of a hundred requests of a class did not exceed.
    pub(crate) fn wait(&self, class: usize, percent: usize) -> u64 {
        let mut waits = self.waits[class].clone();
        waits.sort_unstable();
        let place = (waits.len() * percent).div_ceil(100).max(1) - 1;
        waits.get(place).copied().unwrap_or(0)
    }
}

fn jain_of(second: &[(Sample, [f64; KEYS])]) -> Option<f64> {
    let sums = (0..KEYS).map(|k| {
        let held: f64 = second.iter().map(|(sample, _)| real(sample.held[k])).sum();
        let share: f64 = second.iter().map(|(_, shares)| shares[k]).sum();
        (held, share)
    });
    let parts = sums.filter(|(_, share)| *share >= 1.0);
    let parts: Vec<f64> = parts.map(|(held, share)| held / share).collect();
    let (sum, squares) = parts
        .iter()
        .fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let count = f64::from(u32::try_from(parts.len()).unwrap());
    (squares > 0.0).then(|| sum * sum / (count * squares))
}
