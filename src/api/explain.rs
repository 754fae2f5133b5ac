//! What would become of a request, and why: nothing is sent and nothing is taken.
use super::{
    State,
    error::ApiError,
    input::Object,
    routes::{Route, Schema},
    schema::{
        self, Field, NULLABLE_INTEGER, NULLABLE_TEXT,
        Type::{self, Flag, Integer, List, Nullable, Ref, Text, Time, Words},
    },
};
use crate::{
    clock, document,
    domain::{
        admission::{Explained, Foreseen, Refusal},
        pool::Account,
        protocol::Protocol,
    },
    engine::explain::{self, Explanation, Obstacle, Question},
};
use axum::{Json, extract};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Edges that are listed at most: whoever looks for one narrows the question.
const LISTED: usize = 500;

const PROTOCOL: Type = Words(&[
    Protocol::OpenAi.name(),
    Protocol::OpenAiVideos.name(),
    Protocol::Anthropic.name(),
    Protocol::Gemini.name(),
    Protocol::FalQueue.name(),
]);

#[rustfmt::skip]
const QUESTION: &[Field] = &[
    Field::write("key", NULLABLE_TEXT, "The client key, by id or name; without one nothing is out of scope."),
    Field::write("protocol", PROTOCOL, "What the request speaks.").required(),
    Field::write("model", NULLABLE_TEXT, "The model that it asks for; null means any."),
    Field::write("reattach", Type::Flag, "Whether it comes back to a running response, and so may use the reserve."),
];

#[rustfmt::skip]
const ANSWER: &[Field] = &[
    Field::read("then", Ref("Foreseen"), "What would become of it now."),
    Field::read("edges", List(&Ref("ExplainedEdge")), "Every edge that serves it: first those that could take it, in the order in which they would be tried."),
    Field::read("left_out", Integer, "How many more edges there are."),
];

#[rustfmt::skip]
const FORESEEN: &[Field] = &[
    Field::read("outcome", Words(&["goes", "waits", "refused"]), "Whether it would go at once, wait, or be refused at once."),
    Field::read("reason", NULLABLE_TEXT, "Why it would not go."),
    Field::read("status", NULLABLE_INTEGER, "The status that its client would get, at the latest when its patience ends."),
    Field::read("limit", NULLABLE_INTEGER, "The limit that it meets."),
    Field::read("used", NULLABLE_INTEGER, "How much of that is used."),
    Field::read("until", Nullable(&Time), "When an edge is expected to be free, where that is known."),
];

#[rustfmt::skip]
const EDGE: &[Field] = &[
    Field::read("accounts", List(&Ref("Named")), "Whom it would be charged to."),
    Field::read("credential", Ref("Named"), "With which secret."),
    Field::read("endpoint", Ref("Named"), "Where."),
    Field::read("upstream_model", NULLABLE_TEXT, "What upstream would be asked for."),
    Field::read("would_take", Flag, "Whether it could take the request now."),
    Field::read("why_not", Nullable(&Ref("WhyNot")), "What keeps it from that."),
];

#[rustfmt::skip]
const WHY_NOT: &[Field] = &[
    Field::read("code", Text, "out_of_scope, draining, disabled, endpoint_resting, or the reason that clients are told."),
    Field::read("disabled_reason", NULLABLE_TEXT, "Who or what disabled it."),
    Field::read("until", Nullable(&Time), "When it is expected to be free."),
    Field::read("limit", NULLABLE_INTEGER, "The cap."),
    Field::read("used", NULLABLE_INTEGER, "How much of it is in use."),
];

const NAMED: &[Field] = &[
    Field::read("id", Text, "Its id."),
    Field::read("name", Text, "Its name."),
];

pub(super) fn routes() -> Vec<Route> {
    let about =
        "Which edges a request would be tried on, in which order, and why not on the others.";
    vec![
        Route::post("/explain", about, answer)
            .takes("Question")
            .gives("Explanation"),
    ]
}

pub(super) fn schemas() -> Vec<Schema> {
    let named = |name: &str, schema: Value| (name.to_owned(), schema);
    vec![
        named("Question", schema::new(QUESTION)),
        named("Explanation", schema::answer(ANSWER)),
        named("Foreseen", schema::answer(FORESEEN)),
        named("ExplainedEdge", schema::answer(EDGE)),
        named("WhyNot", schema::answer(WHY_NOT)),
        named("Named", schema::answer(NAMED)),
    ]
}

async fn answer(
    extract::State(state): extract::State<State>,
    Object(said): Object,
) -> Result<Json<Value>, ApiError> {
    let configuration = state.reload().configuration();
    let question = question(&state, &said)?;
    let model = question.model.clone();
    let answer = explain::explain(configuration, question, clock::unix_millis());
    let edges = answer.edges.iter().take(LISTED);
    let edges: Vec<Value> = edges
        .map(|edge| show(&answer, edge, model.as_deref()))
        .collect();
    Ok(Json(json!({
        "then": then(&answer),
        "left_out": answer.edges.len() - edges.len(),
        "edges": edges,
    })))
}

fn question(state: &State, said: &Map<String, Value>) -> Result<Question, ApiError> {
    let known = ["key", "protocol", "model", "reattach"];
    if let Some(other) = said.keys().find(|key| !known.contains(&key.as_str())) {
        let what = format!("there is no such field; known are {}", known.join(", "));
        return Err(ApiError::field(other, what));
    }
    let text = |key: &str| match said.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.as_str())),
        Some(_) => Err(ApiError::field(key, "must be a text in quotes")),
    };
    let pool = state.reload().configuration().pool();
    let key = text("key")?.map(|named| {
        let found = explain::key(&pool, named);
        found.ok_or_else(|| ApiError::field("key", "there is no client key of that id or name"))
    });
    let protocol = text("protocol")?.ok_or_else(|| ApiError::field("protocol", "is missing"))?;
    let is_reattach = match said.get("reattach") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is)) => *is,
        Some(_) => return Err(ApiError::field("reattach", "must be true or false")),
    };
    Ok(Question {
        key: key.transpose()?,
        protocol: Protocol::from_name(protocol).ok_or_else(unknown_protocol)?,
        model: text("model")?.map(Arc::from),
        is_reattach,
    })
}

fn unknown_protocol() -> ApiError {
    let names: Vec<&str> = Protocol::ALL.iter().map(|p| p.name()).collect();
    ApiError::field("protocol", format!("must be one of {}", names.join(", ")))
}

fn then(answer: &Explanation) -> Value {
    let (outcome, refusal) = match answer.then {
        Foreseen::Goes => ("goes", None),
        Foreseen::Waits(refusal) => ("waits", Some(refusal)),
        Foreseen::Refused(refusal) => ("refused", Some(refusal)),
    };
    let limit = refusal.and_then(|r: Refusal| r.limit);
    let until = refusal.and_then(|r| r.free_at);
    json!({
        "outcome": outcome,
        "reason": refusal.map(|r| r.reason.code()),
        "status": refusal.map(|r| r.reason.status()),
        "limit": limit.map(|(limit, _)| limit),
        "used": limit.map(|(_, used)| used),
        "until": until.map(|at| document::format_millis(answer.unix_ms(at))),
    })
}

fn show(answer: &Explanation, explained: &Explained, model: Option<&str>) -> Value {
    let edge = &explained.edge;
    let (credential, endpoint) = (edge.credential(), edge.endpoint());
    let named = |id: String, name: &str| json!({ "id": id, "name": name });
    let account = |account: &Account| named(account.id.to_string(), &account.name);
    let obstacle = answer.obstacle(explained);
    json!({
        "accounts": edge.accounts().map(account).collect::<Vec<_>>(),
        "credential": named(credential.id.to_string(), &credential.name),
        "endpoint": named(endpoint.id.to_string(), &endpoint.name),
        "upstream_model": model.map(|model| edge.upstream_model(model)),
        "would_take": obstacle.is_none(),
        "why_not": obstacle.map(why_not),
    })
}

fn why_not(obstacle: Obstacle) -> Value {
    let (disabled_reason, until, cap) = match obstacle {
        Obstacle::OutOfScope | Obstacle::Tried | Obstacle::Draining => (None, None, None),
        Obstacle::Disabled(by) => (Some(by.name()), None, None),
        Obstacle::Cooling { until_ms, .. } | Obstacle::Resting(until_ms) => {
            (None, Some(document::format_millis(until_ms)), None)
        }
        Obstacle::Full { limit, used, .. } => (None, None, Some((limit, used))),
    };
    json!({
        "code": obstacle.code(),
        "disabled_reason": disabled_reason,
        "until": until,
        "limit": cap.map(|(limit, _)| limit),
        "used": cap.map(|(_, used)| used),
    })
}
