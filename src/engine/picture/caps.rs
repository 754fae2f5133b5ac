//! What may be held on an account, all its credentials together.
use crate::domain::{
    admission::Limits,
    pool::{Account, Pool, QuotaScope},
};

/// Caps; `None` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Streams, the reserve included.
    pub streams: Option<u64>,
    /// Of these, streams that only those may hold who come back to a running response.
    pub reserve: u64,
    /// Requests being started.
    pub creates: Option<u64>,
    /// Jobs.
    pub jobs: Option<u64>,
}

impl Caps {
    /// Where the caps apply to each credential, they count once for each that is charged to it.
    pub(super) fn of(account: &Account, pool: &Pool, limits: Limits) -> Self {
        let quotas = match account.quota_scope {
            QuotaScope::Account => 1,
            QuotaScope::Credential => {
                let all = pool.credentials().iter();
                all.filter(|c| c.accounts.contains(&account.id)).count() as u64
            }
        };
        let stream = account.stream_limit.unwrap_or(limits.stream);
        let ordinary = stream.saturating_sub(limits.reserve).max(1);
        let cap = |limit: u32| (limit > 0).then(|| u64::from(limit) * quotas);
        Self {
            streams: cap(stream),
            reserve: u64::from(stream.saturating_sub(ordinary)) * quotas,
            creates: cap(account.create_limit.unwrap_or(limits.create)),
            jobs: cap(account.job_limit.unwrap_or(limits.job)),
        }
    }

    /// Streams that ordinary requests may hold.
    pub fn ordinary(&self) -> Option<u64> {
        self.streams.map(|all| all - self.reserve)
    }
}
