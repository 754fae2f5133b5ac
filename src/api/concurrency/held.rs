//! Keys, those who wait, leases and live requests, as they are shown.
use super::super::{
    routes::Schema,
    schema::{
        self, Field, NULLABLE_INTEGER, NULLABLE_TEXT, TEXTS,
        Type::{self, Flag, Integer, List, Nullable, Ref, Text, Time, Words},
    },
};
use crate::{
    document,
    domain::{
        admission::{HeldLease, Kinds},
        ids::RequestId,
    },
    engine::{
        live::{Progress, Stage},
        picture::{Frees, OfKey, Picture, Waits},
    },
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};

const KINDS: Type = List(&Words(&["stream", "create", "job"]));

const FREES: Type = Words(&{
    let mut words = [""; Frees::ALL.len()];
    let mut n = 0;
    while n < words.len() {
        words[n] = Frees::ALL[n].name();
        n += 1;
    }
    words
});

#[rustfmt::skip]
const KEY: &[Field] = &[
    Field::read("id", NULLABLE_TEXT, "The client key; null stands for requests without one."),
    Field::read("name", NULLABLE_TEXT, "Its name; null if it was removed."),
    Field::read("weight", NULLABLE_INTEGER, "Its weight; null if it was removed."),
    Field::read("streams", Integer, "Streams that it holds."),
    Field::read("creates", Integer, "Requests of it that are being started."),
    Field::read("jobs", Integer, "Jobs of it that run."),
    Field::read("share", NULLABLE_INTEGER, "Streams that it may hold while the pool is congested; null where keys are not held to shares."),
    Field::read("over_share", Flag, "Whether it holds more than that."),
    Field::read("waiting", Integer, "Requests of it that wait."),
    Field::read("oldest_wait_ms", NULLABLE_INTEGER, "How long the one has waited that waits longest."),
];

#[rustfmt::skip]
const WAITERS: &[Field] = &[
    Field::read("key", NULLABLE_TEXT, "Whose; null stands for requests without a key."),
    Field::read("reason", Text, "What keeps them, as the header x-fairlane-reason would say."),
    Field::read("count", Integer, "How many."),
    Field::read("oldest_ms", Integer, "How long the one has waited that waits longest."),
    Field::read("freed_by", FREES, "What lets one of them go."),
    Field::read("free_at", Nullable(&Time), "When the first of them may go, where that is known."),
    Field::read("requests", List(&Ref("Waiter")), "Who, oldest first."),
];

#[rustfmt::skip]
const WAITER: &[Field] = &[
    Field::read("request", Text, "The request."),
    Field::read("waited_ms", Integer, "How long it has waited."),
    Field::read("until", Time, "Until when it waits at most."),
];

#[rustfmt::skip]
const LEASE: &[Field] = &[
    Field::read("id", Text, "The lease."),
    Field::read("request", Text, "The request that holds it."),
    Field::read("key", NULLABLE_TEXT, "Whose; null for a request without a key."),
    Field::read("kinds", KINDS, "What it still holds."),
    Field::read("accounts", TEXTS, "The accounts that it is held on."),
    Field::read("credential", Text, "The credential."),
    Field::read("endpoint", Text, "The endpoint."),
    Field::read("age_ms", Integer, "How long it has been held."),
    Field::read("stage", NULLABLE_TEXT, "The stage that its request reached last; null where that is not in flight itself."),
    Field::read("last_progress_ms", NULLABLE_INTEGER, "How long ago its request moved on, by a stage or by bytes from upstream."),
];

#[rustfmt::skip]
const LIVE: &[Field] = &[
    Field::read("id", Text, "The request."),
    Field::read("received_at", Time, "When it arrived."),
    Field::read("key", NULLABLE_TEXT, "Whose; null while that is not known, and without a key."),
    Field::read("stage", Text, "The stage that it reached last: it waits for the one after."),
    Field::read("stage_ms", Integer, "How long ago it reached that."),
    Field::read("age_ms", Integer, "How long ago it arrived."),
    Field::read("last_progress_ms", Integer, "How long ago it moved on, by a stage or by bytes from upstream."),
    Field::read("accounts", TEXTS, "The accounts that it holds slots on."),
    Field::read("credential", NULLABLE_TEXT, "The credential that it uses."),
    Field::read("lease", NULLABLE_TEXT, "The lease that it holds."),
];

pub(super) fn schemas() -> Vec<Schema> {
    let named = |(name, fields): (&str, &[Field])| (name.to_owned(), schema::answer(fields));
    let all: [(&str, &[Field]); 5] = [
        ("KeyStanding", KEY),
        ("WaiterGroup", WAITERS),
        ("Waiter", WAITER),
        ("Lease", LEASE),
        ("LiveRequest", LIVE),
    ];
    all.map(named).into()
}

pub(super) fn keys(picture: &Picture) -> Vec<Value> {
    let names = picture.pool.keys().iter().map(|key| (key.id, &*key.name));
    let names: HashMap<_, &str> = names.collect();
    let shown = |key: &OfKey| {
        json!({
            "id": key.key.map(|id| id.to_string()),
            "name": key.key.and_then(|id| names.get(&id)),
            "weight": key.weight,
            "streams": key.used.streams,
            "creates": key.used.creates,
            "jobs": key.used.jobs,
            "share": key.share,
            "over_share": key.is_over(),
            "waiting": key.waiting,
            "oldest_wait_ms": key.oldest_wait_ms,
        })
    };
    picture.keys.iter().map(shown).collect()
}

pub(super) fn waiters(picture: &Picture) -> Vec<Value> {
    let time = |at| document::format_millis(picture.unix_ms(at));
    let shown = |group: &Waits| {
        let members = group.members.iter().map(|one| {
            json!({
                "request": one.holder.to_string(),
                "waited_ms": picture.now.since(one.parked_at),
                "until": time(one.until),
            })
        });
        json!({
            "key": group.key.map(|id| id.to_string()),
            "reason": group.reason.code(),
            "count": group.members.len(),
            "oldest_ms": group.oldest_ms,
            "freed_by": Frees::of(group.reason).name(),
            "free_at": group.free_at.map(time),
            "requests": members.collect::<Vec<_>>(),
        })
    };
    picture.waits.iter().map(shown).collect()
}

/// Requests in flight, each with its lease.
type Live<'a> = [(Arc<Progress>, Option<&'a HeldLease>)];

pub(super) fn leases(picture: &Picture, live: &Live<'_>) -> Vec<Value> {
    let holders = live.iter().map(|(request, _)| (request.id, &**request));
    let holders: HashMap<RequestId, &Progress> = holders.collect();
    let shown = |held: &HeldLease| {
        let holder = holders.get(&held.holder);
        json!({
            "id": held.lease.to_string(),
            "request": held.holder.to_string(),
            "key": held.key.map(|id| id.to_string()),
            "kinds": kinds(held.held),
            "accounts": accounts(held),
            "credential": held.edge.credential().id.to_string(),
            "endpoint": held.edge.endpoint().id.to_string(),
            "age_ms": picture.now.since(held.granted_at),
            "stage": holder.map(|request| request.stage().name()),
            "last_progress_ms": holder.map(|request| Ages::of(request).progress_ms),
        })
    };
    picture.leases.iter().map(shown).collect()
}

pub(super) fn requests(live: &Live<'_>) -> Vec<Value> {
    let shown = |(request, held): &(Arc<Progress>, Option<&HeldLease>)| {
        let ages = Ages::of(request);
        json!({
            "id": request.id.to_string(),
            "received_at": document::format_millis(request.received_unix_ms),
            "key": request.key().map(|id| id.to_string()),
            "stage": ages.stage.name(),
            "stage_ms": ages.stage_ms,
            "age_ms": ages.ms,
            "last_progress_ms": ages.progress_ms,
            "accounts": held.map(accounts).unwrap_or_default(),
            "credential": held.map(|held| held.edge.credential().id.to_string()),
            "lease": held.map(|held| held.lease.to_string()),
        })
    };
    live.iter().map(shown).collect()
}

/// How old a request is, in milliseconds.
struct Ages {
    stage: Stage,
    ms: u64,
    stage_ms: u64,
    progress_ms: u64,
}

impl Ages {
    fn of(request: &Progress) -> Self {
        let stage = request.stage();
        let age = u64::try_from(request.received_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        let since = |micros: u64| age.saturating_sub(micros) / 1000;
        Self {
            stage,
            ms: age / 1000,
            stage_ms: since(request.micros(stage).unwrap_or(0)),
            progress_ms: since(request.last_progress_micros()),
        }
    }
}

fn kinds(held: Kinds) -> Vec<&'static str> {
    let all = [
        ("stream", held.stream),
        ("create", held.create),
        ("job", held.job),
    ];
    let held = all.into_iter().filter(|(_, is_held)| *is_held);
    held.map(|(name, _)| name).collect()
}

fn accounts(held: &HeldLease) -> Vec<String> {
    held.edge.accounts().map(|a| a.id.to_string()).collect()
}
