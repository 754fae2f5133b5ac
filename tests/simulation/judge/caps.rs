//! What the judge reads from a plan: the caps on every credential, and what a 429 to it cools.
//!
//! Invariant: worked out from the plan alone, and anew whenever that changes.
use super::books::{Things, bit_of, one};
use crate::{machine::Thing, plan::Plan};

/// A cap on one thing; 0 = none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cap {
    pub(super) bit: usize,
    pub(super) ordinary: u32,
    pub(super) most: [u32; 3],
}

fn ordinary(most: u32, reserve: u32) -> u32 {
    if most == 0 {
        0
    } else {
        most.saturating_sub(reserve).max(1)
    }
}

/// The caps on a credential: its accounts', each on whatever it applies to, then its own.
pub(super) fn caps_of(plan: &Plan, place: usize) -> (Vec<Cap>, Things) {
    let (settings, row) = (&plan.caps, &plan.credentials[place]);
    let defaults = [settings.stream, settings.create, settings.job];
    let own = [row.stream, row.create, row.job];
    let mut shared: Things = 0;
    let mut caps = Vec::new();
    for n in &row.accounts {
        let account = &plan.accounts[*n];
        let stated = [account.stream, account.create, account.job];
        let mut most = [0; 3];
        for kind in 0..3 {
            let over = own[kind].filter(|_| account.is_by_credential);
            most[kind] = over.or(stated[kind]).unwrap_or(defaults[kind]);
        }
        let thing = if account.is_by_credential {
            Thing::Credential(place)
        } else {
            Thing::Account(*n)
        };
        shared |= one(thing);
        caps.push(Cap {
            bit: bit_of(thing),
            ordinary: ordinary(most[0], settings.reserve),
            most,
        });
    }
    // On a credential that is limited by itself these are the same caps once more.
    let is_itself = shared & one(Thing::Credential(place)) != 0;
    if !is_itself {
        caps.push(Cap {
            bit: bit_of(Thing::Credential(place)),
            ordinary: own[0].unwrap_or(0),
            most: own.map(|cap| cap.unwrap_or(0)),
        });
    }
    (caps, shared)
}

pub(super) fn limited_of(plan: &Plan, place: usize) -> Vec<(Thing, bool)> {
    let mut all: Vec<(Thing, bool)> = Vec::new();
    for n in &plan.credentials[place].accounts {
        let account = &plan.accounts[*n];
        let thing = if account.is_by_credential {
            Thing::Credential(place)
        } else {
            Thing::Account(*n)
        };
        if all.iter().all(|(known, _)| *known != thing) {
            all.push((thing, account.is_by_model));
        }
    }
    all
}
