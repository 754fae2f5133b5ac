//! What the operator and the upstreams' own troubles change at run time.
use super::{Due, Step, World};
use crate::{
    judge::Event,
    machine::{Machine, Thing},
};

impl<M: Machine> World<M> {
    /// One change, and the next one is planned as long as requests come.
    pub(super) fn operate(&mut self) -> Step {
        if self.totals.requests < self.wanted {
            let next = 1 + self.rng.length(6_000);
            self.schedule(next, Due::Operator);
        } else {
            return Ok(());
        }
        self.totals.changes += 1;
        let (account, endpoint) = (
            self.rng.place(self.plan.accounts.len()),
            self.rng.place(self.plan.endpoints.len()),
        );
        match self.rng.below(10) {
            0 | 1 => {
                self.sick_accounts[account] = self.now + self.rng.length(10_000);
                Ok(())
            }
            2 => {
                self.sick_endpoints[endpoint] = self.now + self.rng.length(5_000);
                Ok(())
            }
            3 => self.clear(Thing::Account(account)),
            _ => self.edit(account),
        }
    }

    fn edit(&mut self, account: usize) -> Step {
        let rng = &mut self.rng;
        let plan = &mut self.plan;
        let credential = rng.place(plan.credentials.len());
        let key = rng.place(plan.keys.len());
        match rng.below(10) {
            0 => {
                plan.accounts[account].stream = rng.of(&[None, Some(1), Some(3), Some(6), Some(0)]);
            }
            1 => plan.accounts[account].create = rng.of(&[None, Some(1), Some(4), Some(0)]),
            2 => plan.caps.stream = rng.within(1, 6) as u32,
            3 => plan.caps.threshold_pct = rng.of(&[0, 1, 50, 80, 80, 100]),
            4 => plan.keys[key].weight = rng.of(&[1, 1, 2, 5]),
            5 => plan.accounts[account].is_active ^= true,
            6 => plan.credentials[credential].is_active ^= true,
            7 => plan.caps.reserve = rng.below(3) as u32,
            8 => {
                let scope = (0..plan.accounts.len())
                    .filter(|_| rng.chance(600))
                    .collect();
                plan.keys[key].accounts = rng.chance(400).then_some(scope);
            }
            _ => {
                // Whatever was taken out of service or lifted comes back after a while.
                for row in &mut plan.accounts {
                    row.is_active = true;
                    row.stream = row.stream.filter(|cap| *cap > 0);
                }
                for row in &mut plan.credentials {
                    row.is_active = true;
                }
                plan.caps.waiters_per_key = rng.of(&[5, 20, 20, 40]);
            }
        }
        let plan = self.plan.clone();
        let outcome = self.machine.reconfigure(self.now, &plan);
        self.hear(&Event::Reconfigured(Box::new(plan)), outcome)
    }
}
