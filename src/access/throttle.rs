//! How often a password may be tried: per address, and over all addresses together.
//!
//! Rule: after [`FREE`] failures in a row an address waits, twice as long each time. All addresses
//! together have [`ALL_FREE`] failures, of which one comes back every [`ALL_REFILL`]. So that a
//! flood from elsewhere cannot lock the owner out, the second rule is waived for the machine itself
//! and for addresses that a session was opened from.
use crate::clock::Instant;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Failures of one address that cost it nothing: people mistype.
const FREE: u32 = 5;

/// The first wait, doubled by every further failure.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// An address is forgotten after so long without a failure.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);

/// Addresses that are remembered at most; a flood must not fill the memory.
const REMEMBERED: usize = 10_000;

/// Failures of all addresses together that cost nothing.
const ALL_FREE: u32 = 60;

/// One of those comes back after so long.
const ALL_REFILL: Duration = Duration::from_secs(1);

/// The tries so far.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<Tries>);

#[derive(Debug, Default)]
struct Tries {
    by_address: HashMap<IpAddr, Failures>,
    /// When every failure will have come back.
    all_back_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last_at: Instant,
}

impl Failures {
    fn wait_until(self) -> Instant {
        let Some(doublings) = self.count.checked_sub(FREE) else {
            return self.last_at;
        };
        let wait = FIRST_WAIT.saturating_mul(2u32.saturating_pow(doublings.min(16)));
        self.last_at + wait.min(LONGEST_WAIT)
    }
}

impl Throttle {
    /// Whether `address` may try now; if not, after how long. `is_known` waives the common rule.
    pub(super) fn admit(&self, address: IpAddr, is_known: bool) -> Result<(), Duration> {
        let now = Instant::now();
        let tries = self.lock();
        let own = tries.by_address.get(&network(address));
        let mut until = own.map_or(now, |failures| failures.wait_until());
        if let Some(all_back_at) = tries.all_back_at.filter(|_| !is_known) {
            until = until.max(all_back_at - ALL_REFILL * (ALL_FREE - 1));
        }
        match until.checked_duration_since(now) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// `address` tried and failed.
    pub(super) fn failed(&self, address: IpAddr) {
        let now = Instant::now();
        let mut tries = self.lock();
        let base = tries.all_back_at.map_or(now, |at| at.max(now));
        tries.all_back_at = Some(base + ALL_REFILL);
        if tries.by_address.len() >= REMEMBERED {
            tries.forget(now);
        }
        let failures = tries.by_address.entry(network(address));
        let failures = failures.or_insert(Failures {
            count: 0,
            last_at: now,
        });
        failures.count += 1;
        failures.last_at = now;
    }

    /// `address` got in.
    pub(super) fn succeeded(&self, address: IpAddr) {
        self.lock().by_address.remove(&network(address));
    }

    fn lock(&self) -> MutexGuard<'_, Tries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tries {
    /// Makes room: what is old goes, and if nothing is, everything but those who wait longest.
    fn forget(&mut self, now: Instant) {
        self.by_address
            .retain(|_, f| now.duration_since(f.last_at) < FORGOTTEN_AFTER);
        if self.by_address.len() >= REMEMBERED {
            self.by_address.retain(|_, f| f.wait_until() > now);
        }
        if self.by_address.len() >= REMEMBERED {
            self.by_address.clear();
        }
    }
}

/// Whoever has an IPv6 address has the whole /64 to choose from.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_waits_twice_as_long_each_time_and_others_do_not() {
        let throttle = Throttle::default();
        for _ in 0..FREE {
            assert_eq!(throttle.admit(address(1), false), Ok(()));
            throttle.failed(address(1));
        }
        assert_eq!(throttle.admit(address(1), true), Err(FIRST_WAIT));
        assert_eq!(throttle.admit(address(2), false), Ok(()));
        advance(FIRST_WAIT).await;
        assert_eq!(throttle.admit(address(1), false), Ok(()));
        throttle.failed(address(1));
        assert_eq!(throttle.admit(address(1), false), Err(FIRST_WAIT * 2));
        throttle.succeeded(address(1));
        assert_eq!(throttle.admit(address(1), false), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_from_many_addresses_slows_strangers_but_never_the_owner() {
        let throttle = Throttle::default();
        for n in 0..ALL_FREE {
            assert_eq!(throttle.admit(address(n), false), Ok(()), "{n}");
            throttle.failed(address(n));
        }
        assert_eq!(throttle.admit(address(999), false), Err(ALL_REFILL));
        assert_eq!(throttle.admit(address(999), true), Ok(()));
        advance(ALL_REFILL).await;
        assert_eq!(throttle.admit(address(999), false), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_ipv6_network_counts_as_one_and_memory_is_bounded() {
        let throttle = Throttle::default();
        for n in 0..u128::from(FREE) {
            let host = Ipv6Addr::from_bits((0x2001_0db8 << 96) | n);
            throttle.failed(host.into());
        }
        let neighbour = Ipv6Addr::from_bits((0x2001_0db8 << 96) | 0x4d);
        assert!(throttle.admit(neighbour.into(), true).is_err());
        for n in 0..20_000 {
            throttle.failed(address(n));
        }
        assert!(throttle.lock().by_address.len() <= REMEMBERED);
    }
}
