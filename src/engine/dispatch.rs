//! Brings one request to upstream: admission, attempt, and what follows a failure.
//!
//! Invariants: a lease is released before anything else is tried; nothing is sent again unless the
//! plan of [`crate::domain::dispatch`] says so.
use super::{
    admission::{Admission, Denied, Lease},
    live::{Progress, Stage},
};
use crate::{
    clock::Instant,
    domain::{
        admission::Demand,
        dispatch::{Cause, Next, Plan},
        pool::EdgeRef,
        reason::Reason,
    },
    ports::{Answer, Attempt, SendFailure, Upstream},
};
use std::{sync::Arc, time::Duration};

/// How a request is to be tried.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Accounts that it may be tried on.
    pub max_attempts: u32,
    /// Whether sending it twice does nothing twice.
    pub is_repeatable: bool,
    /// How long it may wait for capacity, over all attempts.
    pub patience: Duration,
}

/// An answer, with the slots that it holds until it has ended.
pub struct Dispatched {
    /// What upstream says.
    pub answer: Answer,
    /// To be kept until the body has ended.
    pub lease: Lease,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Undelivered {
    /// fairlane refused it.
    Denied(Denied),
    /// Upstream could not be reached or did not answer; `detail` is for the log.
    Failed {
        /// What the client is told.
        reason: Reason,
        /// What happened, for the log.
        detail: String,
    },
}

/// How often attempts failed, by what is proven of them; for the metrics.
pub trait Observer: Sync {
    /// An attempt got no answer.
    fn attempt_failed(&self, edge: &EdgeRef, failure: &SendFailure);
    /// A request goes on to another account.
    fn moved(&self, cause: Cause);
}

/// A request that can be made ready for any edge.
pub trait Outgoing: Sync {
    /// What is sent to `edge`.
    fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e>;
}

/// Where attempts go.
#[derive(Clone, Copy)]
pub struct Route<'a> {
    /// The one admission.
    pub admission: &'a Admission,
    /// The way to providers.
    pub upstream: &'a dyn Upstream,
    /// Who is told of failures.
    pub observer: &'a dyn Observer,
}

/// Brings a request to upstream.
pub async fn dispatch(
    route: Route<'_>,
    mut demand: Demand,
    rules: Rules,
    progress: &Progress,
    outgoing: &dyn Outgoing,
) -> Result<Dispatched, Undelivered> {
    let is_movable = !demand.needs_owner && demand.scope().is_none_or(|s| s.len() != 1);
    let mut plan = Plan::new(rules.max_attempts, is_movable, rules.is_repeatable);
    let mut patience = rules.patience;
    let mut last: Option<SendFailure> = None;
    loop {
        progress.reach(Stage::Selected);
        let shared = Arc::new(demand);
        let asked_at = Instant::now();
        let asked = route
            .admission
            .admit(&shared, patience, || progress.reach(Stage::Parked))
            .await;
        let mut lease = match asked {
            Ok(lease) => lease,
            Err(denied) => return Err(undelivered(&plan, denied, last)),
        };
        progress.reach(Stage::Admitted);
        // Only now is it known that there is somewhere to go on to.
        if let Some(failure) = last.take() {
            route.observer.moved(failure.cause);
        }
        patience = patience.saturating_sub(asked_at.elapsed());
        plan.begin();
        progress.attempt();
        let failure = match attempt(route.upstream, &mut lease, outgoing).await {
            Ok(answer) => {
                lease.release_create();
                return Ok(Dispatched { answer, lease });
            }
            Err(failure) => failure,
        };
        route.observer.attempt_failed(lease.edge(), &failure);
        demand = Arc::unwrap_or_clone(shared);
        let accounts = lease.edge().accounts().map(|a| a.id);
        let next = plan.after_failure(
            failure.provenance,
            failure.cause,
            accounts,
            &mut demand.tried,
        );
        drop(lease);
        match next {
            Next::Move => last = Some(failure),
            Next::GiveUp(reason) => {
                let detail = failure.detail;
                return Err(Undelivered::Failed { reason, detail });
            }
        }
    }
}

/// One attempt; the slot for starting is given back after a while even if no answer has come.
async fn attempt(
    upstream: &dyn Upstream,
    lease: &mut Lease,
    outgoing: &dyn Outgoing,
) -> Result<Answer, SendFailure> {
    let edge = lease.edge().clone();
    let mut started = || lease.release_create();
    upstream.send(outgoing.attempt(&edge), &mut started).await
}

fn undelivered(plan: &Plan, denied: Denied, last: Option<SendFailure>) -> Undelivered {
    match plan.exhausted() {
        // Something was tried and nothing else is left: what happened there is the answer.
        Some(reason) if denied.refusal.reason == Reason::NoServiceableAccount => {
            Undelivered::Failed {
                reason,
                detail: last.map_or_else(String::new, |failure| failure.detail),
            }
        }
        _ => Undelivered::Denied(denied),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::{
            admission::{Kinds, Limits},
            dispatch::Provenance,
            ids::RequestId,
            pool::{Pool, edges::sample},
            protocol::Protocol,
        },
        engine::live::Registry,
        ports::{Sending, Started, Timeouts},
    };
    use http::{HeaderMap, Method};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Nobody can be reached.
    struct Unreachable;

    impl Upstream for Unreachable {
        fn send<'a>(&'a self, _: Attempt<'a>, _: &'a mut Started<'_>) -> Sending<'a> {
            Box::pin(async {
                Err(SendFailure {
                    provenance: Provenance::NotDispatched,
                    cause: Cause::Connection,
                    detail: "refused".to_owned(),
                })
            })
        }
    }

    struct Plain(HeaderMap);

    impl Outgoing for Plain {
        fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e> {
            Attempt {
                base_url: &edge.endpoint().base_url,
                method: Method::POST,
                target: "/".to_owned(),
                headers: &self.0,
                edge_headers: Vec::new(),
                payload: None,
                timeouts: Timeouts {
                    connect: Duration::ZERO,
                    header: Duration::ZERO,
                },
            }
        }
    }

    #[derive(Default)]
    struct Counts {
        failed: AtomicU32,
        moved: AtomicU32,
    }

    impl Observer for Counts {
        fn attempt_failed(&self, _: &EdgeRef, _: &SendFailure) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }

        fn moved(&self, _: Cause) {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn check(accounts: u128, expect: (u32, u32)) {
        let limits = Limits {
            stream: 1,
            create: 1,
            reserve: 0,
            waiters_per_key: 1,
            may_park: true,
        };
        let pool = Arc::new(Pool::new(sample::contents(accounts)));
        let (admission, counts) = (Admission::new(pool, limits), Counts::default());
        let demand = Demand {
            key: None,
            protocol: Protocol::OpenAi,
            model: Some("m".into()),
            kinds: Kinds::NONE,
            reattach: false,
            needs_owner: false,
            tried: Vec::new(),
        };
        let route = Route {
            admission: &admission,
            upstream: &Unreachable,
            observer: &counts,
        };
        let rules = Rules {
            max_attempts: 3,
            is_repeatable: false,
            patience: Duration::from_secs(1),
        };
        let live = Registry::default()
            .desk()
            .enter(RequestId::from_u128(1), false);
        let sent = dispatch(route, demand, rules, &live, &Plain(HeaderMap::new())).await;
        let Err(Undelivered::Failed { reason, detail }) = sent else {
            panic!("delivered");
        };
        assert_eq!(reason, Reason::UpstreamUnreachable);
        assert_eq!(detail, "refused");
        let load = |count: &AtomicU32| count.load(Ordering::Relaxed);
        assert_eq!((load(&counts.failed), load(&counts.moved)), expect);
        assert_eq!(admission.counts(), (0, 0));
    }

    #[tokio::test]
    async fn going_on_counts_only_where_there_is_somewhere_to_go() {
        check(1, (1, 0)).await;
        check(2, (2, 1)).await;
        check(5, (3, 2)).await;
    }
}
