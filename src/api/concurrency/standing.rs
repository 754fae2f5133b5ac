//! How each account, credential and endpoint stands: what is in flight on it, what cools, what rests.
use super::super::{
    routes::Schema,
    schema::{
        self, Field, NULLABLE_INTEGER, NULLABLE_TEXT, STATE,
        Type::{self, Flag, Integer, List, Nullable, Ref, Text, Time, Words},
    },
};
use crate::{
    document,
    domain::{
        admission::{Standing, Subject},
        breaker::Breaker,
        cooldown::{Cooldown, Stage},
        moment::Moment,
        pool::{Account, Credential, Endpoint},
        settings::{Name, Settings},
    },
    engine::{
        look::Look,
        picture::{OnAccount, Picture, Used},
    },
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const STAGE: Type = Words(&["open", "cooling", "due", "probing"]);
const UNTIL: Type = Nullable(&Time);

#[rustfmt::skip]
const ACCOUNT: &[Field] = &[
    Field::read("id", Text, "The account."),
    Field::read("name", Text, "Its name."),
    Field::read("stream_limit", Integer, "Streams that it may carry, the reserve included; 0 is unlimited. By credential where its quota_scope is credential."),
    Field::read("create_limit", Integer, "Requests that it may be starting; 0 is unlimited. Likewise."),
    Field::read("job_limit", Integer, "Jobs that it may run; 0 is unlimited. Likewise."),
    Field::read("quota_scope", Words(&["account", "credential"]), "Whether the limits apply to it as a whole or to each of its credentials."),
    Field::read("state", STATE, "Whether it takes work."),
    Field::read("stream_capacity", NULLABLE_INTEGER, "Streams that ordinary requests may hold on it, all its credentials together; null is unlimited."),
    Field::read("stream_reserve", Integer, "Streams beyond that for those who come back to a running response."),
    Field::read("streams", Integer, "Streams in flight on it."),
    Field::read("creates", Integer, "Requests being started on it."),
    Field::read("jobs", Integer, "Jobs that run on it."),
    Field::read("streams_by_key", List(&Ref("StreamsOfKey")), "Who holds its streams, most first."),
    Field::read("cooldown", Ref("Cooldown"), "Its cooldown."),
];

#[rustfmt::skip]
const OF_KEY: &[Field] = &[
    Field::read("key", NULLABLE_TEXT, "The client key; null stands for requests without one."),
    Field::read("streams", Integer, "Streams that it holds there."),
];

#[rustfmt::skip]
const CREDENTIAL: &[Field] = &[
    Field::read("id", Text, "The credential."),
    Field::read("name", Text, "Its name."),
    Field::read("stream_limit", NULLABLE_INTEGER, "Its own cap of streams; null if it has none."),
    Field::read("create_limit", NULLABLE_INTEGER, "Its own cap of requests being started; null if it has none."),
    Field::read("job_limit", NULLABLE_INTEGER, "Its own cap of jobs; null if it has none."),
    Field::read("state", STATE, "Whether it takes work."),
    Field::read("streams", Integer, "Streams in flight with it."),
    Field::read("creates", Integer, "Requests being started with it."),
    Field::read("jobs", Integer, "Jobs that run with it."),
    Field::read("cooldown", Ref("Cooldown"), "Its cooldown."),
];

#[rustfmt::skip]
const ENDPOINT: &[Field] = &[
    Field::read("id", Text, "The endpoint."),
    Field::read("name", Text, "Its name."),
    Field::read("in_flight", Integer, "Requests in flight at it."),
    Field::read("breaker", Ref("Breaker"), "Its circuit breaker."),
];

#[rustfmt::skip]
const COOLDOWN: &[Field] = &[
    Field::read("state", STAGE, "Whether it cools, and how far that is: due means that the next request goes alone, probing that it is out."),
    Field::read("until", UNTIL, "When the next request may go, or when the one that is out counts as not limited."),
    Field::read("told_until", UNTIL, "The end that upstream stated, where that is looked at earlier."),
    Field::read("is_quota", Flag, "Whether a quota is used up, rather than a rate exceeded."),
    Field::read("models", List(&Ref("ModelCooldown")), "Cooldowns of single models."),
];

#[rustfmt::skip]
const MODEL: &[Field] = &[
    Field::read("model", Text, "The model, as upstream calls it."),
    Field::read("state", STAGE, "As for the whole."),
    Field::read("until", UNTIL, "As for the whole."),
    Field::read("told_until", UNTIL, "As for the whole."),
    Field::read("is_quota", Flag, "As for the whole."),
];

#[rustfmt::skip]
const BREAKER: &[Field] = &[
    Field::read("state", Words(&["passing", "resting", "due", "probing"]), "Whether requests pass."),
    Field::read("failures", Integer, "Failures in a row."),
    Field::read("until", UNTIL, "When the next request may try, at the latest."),
];

pub(super) fn schemas() -> Vec<Schema> {
    let named = |(name, fields): (&str, &[Field])| (name.to_owned(), schema::answer(fields));
    let all: [(&str, &[Field]); 7] = [
        ("AccountStanding", ACCOUNT),
        ("StreamsOfKey", OF_KEY),
        ("CredentialStanding", CREDENTIAL),
        ("EndpointStanding", ENDPOINT),
        ("Cooldown", COOLDOWN),
        ("ModelCooldown", MODEL),
        ("Breaker", BREAKER),
    ];
    all.map(named).into()
}

/// How everything in the pool stands, at the moment of a picture.
pub(super) struct Standings<'a> {
    picture: &'a Picture,
    settings: &'a Settings,
}

impl<'a> Standings<'a> {
    pub(super) const fn new(picture: &'a Picture, settings: &'a Settings) -> Self {
        Self { picture, settings }
    }

    pub(super) fn accounts(&self) -> Vec<Value> {
        let all = self.picture.pool.accounts().iter();
        let all = all.zip(&self.picture.accounts);
        all.map(|(account, on)| self.account(account, on)).collect()
    }

    pub(super) fn credentials(&self) -> Vec<Value> {
        let all = self.picture.pool.credentials().iter();
        let all = all.zip(&self.picture.credentials);
        all.map(|(credential, used)| self.credential(credential, *used))
            .collect()
    }

    pub(super) fn endpoints(&self) -> Vec<Value> {
        let shown = |endpoint: &Endpoint| self.endpoint(endpoint);
        self.picture.pool.endpoints().iter().map(shown).collect()
    }

    fn account(&self, account: &Account, on: &OnAccount) -> Value {
        let standing = self.look().standing(Subject::Account(account.id));
        let limit = |own: Option<u32>, name| own.map_or(self.settings.integer(name), u64::from);
        let by_key = on.by_key.iter();
        let by_key = by_key.map(
            |(key, streams)| json!({ "key": key.map(|id| id.to_string()), "streams": streams }),
        );
        json!({
            "id": account.id.to_string(),
            "name": &*account.name,
            "stream_limit": limit(account.stream_limit, Name::AccountStreamLimit),
            "create_limit": limit(account.create_limit, Name::AccountCreateLimit),
            "job_limit": limit(account.job_limit, Name::AccountJobLimit),
            "quota_scope": account.quota_scope.name(),
            "state": account.state.name(),
            "stream_capacity": on.caps.ordinary(),
            "stream_reserve": on.caps.reserve,
            "streams": on.used.streams,
            "creates": on.used.creates,
            "jobs": on.used.jobs,
            "streams_by_key": by_key.collect::<Vec<_>>(),
            "cooldown": self.cooldown(&standing),
        })
    }

    fn credential(&self, credential: &Credential, used: Used) -> Value {
        let standing = self.look().standing(Subject::Credential(credential.id));
        let own = |limit: Option<u32>| limit.filter(|limit| *limit > 0);
        json!({
            "id": credential.id.to_string(),
            "name": &*credential.name,
            "stream_limit": own(credential.stream_limit),
            "create_limit": own(credential.create_limit),
            "job_limit": own(credential.job_limit),
            "state": credential.state.name(),
            "streams": used.streams,
            "creates": used.creates,
            "jobs": used.jobs,
            "cooldown": self.cooldown(&standing),
        })
    }

    const fn look(&self) -> &Look {
        &self.picture.look
    }

    fn endpoint(&self, endpoint: &Endpoint) -> Value {
        let breaker = self.look().breaker(endpoint.id);
        let (state, failures) = match breaker {
            Breaker::Passing { failures } => ("passing", failures),
            Breaker::Resting { .. } => ("resting", 0),
            Breaker::Due => ("due", 0),
            Breaker::Probing { .. } => ("probing", 0),
        };
        json!({
            "id": endpoint.id.to_string(),
            "name": &*endpoint.name,
            "in_flight": self.look().at_endpoint(endpoint.id),
            "breaker": {
                "state": state,
                "failures": failures,
                "until": self.time(breaker.free_at()),
            },
        })
    }

    fn cooldown(&self, standing: &Standing) -> Value {
        let model = |(model, cooldown): &(Arc<str>, Cooldown)| {
            let mut shown = self.one(cooldown);
            shown.insert("model".to_owned(), json!(&**model));
            Value::Object(shown)
        };
        let mut shown = self.one(&standing.cooldown);
        let models = standing.models.iter().map(model).collect();
        shown.insert("models".to_owned(), models);
        Value::Object(shown)
    }

    fn one(&self, cooldown: &Cooldown) -> Map<String, Value> {
        let (state, until) = match cooldown.stage() {
            Stage::Open => ("open", None),
            Stage::Cooling(until) => ("cooling", Some(until)),
            Stage::Due => ("due", None),
            Stage::Probing(until) => ("probing", Some(until)),
        };
        let fields = [
            ("state", json!(state)),
            ("until", json!(self.time(until))),
            ("told_until", json!(self.time(cooldown.told_until()))),
            ("is_quota", json!(cooldown.is_quota())),
        ];
        fields
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect()
    }

    fn time(&self, at: Option<Moment>) -> Option<String> {
        at.map(|at| document::format_millis(self.look().unix_ms(at)))
    }
}
