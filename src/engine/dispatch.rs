//! Brings one request to upstream: admission, attempt, and what follows a failure.
//!
//! Invariants: a lease is released before anything else is tried; nothing is sent again unless the
//! plan of [`crate::domain::dispatch`] says so.
use super::{
    admission::{Admission, Denied, Lease},
    live::{Progress, Stage},
    refusal::judged,
};
use crate::{
    clock::Instant,
    domain::{
        admission::{Demand, Evidence, Owner},
        dispatch::{Cause, Mobility, Moved, Next, Place, Plan, Tie, meaning::Meaning},
        ids::AccountId,
        pool::EdgeRef,
        reason::Reason,
    },
    ports::{Answer, Attempt, PoolWatch, SendFailure, Upstream},
};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::timeout_at;

/// How a request is to be tried.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How often it may be tried.
    pub max_attempts: u32,
    /// Whether sending it twice does nothing twice.
    pub is_repeatable: bool,
    /// Whether it moves on after answers that may have cost something.
    pub retries_5xx: bool,
    /// How long it may wait for capacity, over all attempts.
    pub patience: Duration,
    /// When it must not wait any longer, whatever has happened by then.
    pub answer_by: Option<Instant>,
}

/// An answer, with the slots that it holds until it has ended.
pub struct Dispatched {
    /// What upstream says.
    pub answer: Answer,
    /// Who says it.
    pub edge: EdgeRef,
    /// To be kept until the body has ended; a refusal that is passed on for want of anybody else
    /// holds no slot any more.
    pub lease: Option<Lease>,
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

/// How attempts went, for metrics and log.
pub trait Observer: Sync {
    /// An attempt got no answer.
    fn attempt_failed(&self, edge: &EdgeRef, failure: &SendFailure);
    /// A request goes on to another edge.
    fn moved(&self, why: Moved);
}

/// A request that can be made ready for any edge.
pub trait Outgoing: Sync {
    /// What is sent to `edge`.
    fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e>;

    /// How long its client is left without a word while it waits; for as long as it waits where
    /// that is `None`.
    fn commits_after(&self) -> Option<Duration> {
        None
    }

    /// Tells its client that it waits, by what cannot be taken back.
    fn commit(&self) {}
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
    /// Who is told what answers say of the pool.
    pub watch: &'a dyn PoolWatch,
}

/// The last attempt that came to nothing.
enum Last {
    Failure(SendFailure),
    Refusal(Meaning, EdgeRef, Answer),
}

impl Last {
    fn why(&self) -> Moved {
        match self {
            Self::Failure(failure) => Moved::Failure(failure.cause),
            Self::Refusal(meaning, ..) => Moved::Refusal(*meaning),
        }
    }
}

/// Brings a request to upstream.
pub async fn dispatch(
    route: Route<'_>,
    demand: Demand,
    rules: Rules,
    progress: &Progress,
    outgoing: &dyn Outgoing,
) -> Result<Dispatched, Undelivered> {
    let mobility = Mobility {
        tie: match (demand.owner, demand.scope()) {
            (Owner::Nobody, Some([_])) => Tie::Account,
            (Owner::Nobody, _) => Tie::None,
            (Owner::Unknown | Owner::Bound(_), _) => Tie::Owner,
        },
        is_repeatable: rules.is_repeatable,
        retries_5xx: rules.retries_5xx,
        is_evidence: demand.is_evidence(),
    };
    let mut course = Course {
        route,
        progress,
        outgoing,
        plan: Plan::new(rules.max_attempts, mobility),
        patience: rules.patience,
        answer_by: rules.answer_by,
        commit_at: outgoing.commits_after().map(|after| Instant::now() + after),
        last: None,
        answered: None,
    };
    let mut demand = demand;
    loop {
        match course.attempt(demand).await? {
            Step::Done(dispatched) => return Ok(dispatched),
            Step::Again(next) => {
                demand = Demand {
                    is_moving: true,
                    ..next
                };
            }
        }
    }
}

/// Gets a lease for a request, which waits for at most `patience`, and not beyond `answer_by`. Where
/// it stands meanwhile is seen in its `progress`.
pub async fn admit(
    admission: &Admission,
    demand: &mut Demand,
    (patience, answer_by): (Duration, Option<Instant>),
    progress: &Progress,
) -> Result<Lease, Denied> {
    progress.reach(Stage::Selected);
    let left = answer_by.map(|by| by.duration_since(Instant::now()));
    let patience = left.map_or(patience, |left| left.min(patience));
    let ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    demand.until = admission.now().plus(ms);
    let shared = Arc::new(demand.clone());
    let park = || progress.reach(Stage::Parked);
    let lease = admission.admit(&shared, patience, park).await?;
    progress.reach(Stage::Admitted);
    Ok(lease)
}

/// One request's way through its attempts.
struct Course<'a> {
    route: Route<'a>,
    progress: &'a Progress,
    outgoing: &'a dyn Outgoing,
    plan: Plan,
    patience: Duration,
    answer_by: Option<Instant>,
    /// When the client is told that its request waits, if it waits then or later.
    commit_at: Option<Instant>,
    last: Option<Last>,
    /// The last real answer, which the client gets if nothing better comes.
    answered: Option<(EdgeRef, Answer)>,
}

enum Step {
    Done(Dispatched),
    Again(Demand),
}

impl Course<'_> {
    async fn attempt(&mut self, mut demand: Demand) -> Result<Step, Undelivered> {
        let mut lease = match self.admit(&mut demand).await {
            Ok(lease) => lease,
            Err(denied) => return self.denied(denied).map(Step::Done),
        };
        self.plan.begin();
        self.progress.attempt();
        let edge = lease.edge().clone();
        let attempt = self.outgoing.attempt(&edge);
        let sent = {
            let mut started = || lease.release_create();
            self.route.upstream.send(attempt, &mut started).await
        };
        let protocol = demand.protocol;
        match sent {
            Ok(answer) => {
                let (meaning, answer) = judged(protocol, answer).await;
                lease.answered(evidence(meaning));
                Ok(self.after_answer(demand, (meaning, answer), edge, lease))
            }
            Err(failure) => {
                lease.answered(evidence_of(failure.cause));
                self.after_failure(demand, failure, &edge, lease)
            }
        }
    }

    async fn admit(&mut self, demand: &mut Demand) -> Result<Lease, Denied> {
        let asked_at = Instant::now();
        let patience = (self.patience, self.answer_by);
        let admitted = admit(self.route.admission, demand, patience, self.progress);
        let lease = self.committing(admitted).await?;
        self.patience = self.patience.saturating_sub(asked_at.elapsed());
        // Only now is it known that there is somewhere to go on to.
        if let Some(last) = self.last.take() {
            self.route.observer.moved(last.why());
            if let Last::Refusal(_, edge, answer) = last {
                self.answered = Some((edge, answer));
            }
        }
        Ok(lease)
    }

    /// Waits for `admitted`, and tells the client once that takes too long to say nothing.
    async fn committing<T>(&mut self, admitted: impl Future<Output = T>) -> T {
        let Some(at) = self.commit_at else {
            return admitted.await;
        };
        let mut admitted = pin!(admitted);
        if let Ok(admitted) = timeout_at(at, &mut admitted).await {
            return admitted;
        }
        self.commit_at = None;
        self.plan.commit();
        self.progress.commit();
        self.outgoing.commit();
        admitted.await
    }

    fn after_answer(
        &mut self,
        mut demand: Demand,
        (meaning, answer): (Meaning, Answer),
        edge: EdgeRef,
        lease: Lease,
    ) -> Step {
        // The ordinary answer goes on its way as it is.
        if meaning == Meaning::Accepted {
            return Step::Done(Dispatched {
                answer,
                edge,
                lease: Some(lease),
            });
        }
        let accounts: Vec<AccountId> = edge.accounts().map(|a| a.id).collect();
        tell(self.route.watch, meaning, &edge, demand.is_evidence());
        let place = Place {
            credential: edge.credential().id,
            accounts: &accounts,
            endpoint: edge.endpoint().id,
        };
        if self.plan.may_move_after(meaning, place, &mut demand.tried) {
            self.last = Some(Last::Refusal(meaning, edge, answer));
            return Step::Again(demand);
        }
        Step::Done(Dispatched {
            answer,
            edge,
            lease: Some(lease),
        })
    }

    fn after_failure(
        &mut self,
        mut demand: Demand,
        failure: SendFailure,
        edge: &EdgeRef,
        lease: Lease,
    ) -> Result<Step, Undelivered> {
        self.route.observer.attempt_failed(edge, &failure);
        let accounts: Vec<AccountId> = edge.accounts().map(|a| a.id).collect();
        let place = Place {
            credential: edge.credential().id,
            accounts: &accounts,
            endpoint: edge.endpoint().id,
        };
        let tried = &mut demand.tried;
        let next = self
            .plan
            .after_failure(failure.provenance, failure.cause, place, tried);
        drop(lease);
        match next {
            Next::Move => {
                self.last = Some(Last::Failure(failure));
                Ok(Step::Again(demand))
            }
            // What may have been carried out must be said, whatever was refused before.
            Next::GiveUp(reason) => match self.answered.take() {
                Some((edge, answer)) if was_unasked(reason) => {
                    Ok(Step::Done(passed_on(edge, answer)))
                }
                _ => Err(Undelivered::Failed {
                    reason,
                    detail: failure.detail,
                }),
            },
        }
    }

    /// Admission has nothing more: whatever upstream said last is the answer.
    fn denied(&mut self, denied: Denied) -> Result<Dispatched, Undelivered> {
        let is_about_key = !matches!(denied.refusal.reason.status(), 429 | 503 | 404)
            || denied.refusal.reason == Reason::ShuttingDown;
        if is_about_key {
            return Err(Undelivered::Denied(denied));
        }
        let detail = match self.last.take() {
            Some(Last::Refusal(_, edge, answer)) => return Ok(passed_on(edge, answer)),
            Some(Last::Failure(failure)) => failure.detail,
            None => return Err(Undelivered::Denied(denied)),
        };
        if let Some((edge, answer)) = self.answered.take() {
            return Ok(passed_on(edge, answer));
        }
        match self.plan.exhausted() {
            Some(reason) => Err(Undelivered::Failed { reason, detail }),
            None => Err(Undelivered::Denied(denied)),
        }
    }
}

/// Whether nothing of the request has left.
const fn was_unasked(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::UpstreamUnreachable | Reason::UpgradeRequired
    )
}

fn passed_on(edge: EdgeRef, answer: Answer) -> Dispatched {
    Dispatched {
        answer,
        edge,
        lease: None,
    }
}

/// Tells `watch` what an answer of `edge` says of the pool; `is_evidence` is whether the request held
/// a slot of the kind that a limit is about.
pub fn tell(watch: &dyn PoolWatch, meaning: Meaning, edge: &EdgeRef, is_evidence: bool) {
    let refused = edge.credential();
    match meaning {
        Meaning::Limited(_) if is_evidence => watch.limit_met(refused.id),
        Meaning::AuthRefused => watch.credential_refused(refused.id, refused.fingerprint),
        Meaning::BillingRefused => {
            let accounts: Vec<AccountId> = edge.accounts().map(|a| a.id).collect();
            watch.billing_refused(&accounts);
        }
        _ => (),
    }
}

/// What a failure says of the pool.
const fn evidence_of(cause: Cause) -> Evidence {
    match cause {
        Cause::Connection | Cause::HeaderTimeout => Evidence::Failed,
        // It is there and has answered.
        Cause::NotSpoken => Evidence::Answered,
    }
}

/// What an answer says of the pool. Refusals of the credential or of billing say nothing of a limit:
/// they are kept in the pool's own states.
pub fn evidence(meaning: Meaning) -> Evidence {
    match meaning {
        Meaning::Accepted => Evidence::Success,
        Meaning::Limited(limited) => Evidence::Limited {
            wait_ms: limited.wait_ms,
            is_quota: limited.is_quota,
        },
        _ if meaning.trips_breaker() => Evidence::Failed,
        _ => Evidence::Answered,
    }
}

#[cfg(test)]
mod tests;
