//! What is sent upstream: the client's request, less what must not travel, with the edge's own
//! credential, and the edge's name for the model where that differs.
use super::{
    call::Call,
    intake::{Intake, IntakeError},
    waiting::Prospect,
};
use crate::{
    domain::pool::EdgeRef,
    engine::{dispatch, payload::Payload},
    ports::{Attempt, Timeouts},
    protocol::{
        auth::credential_header,
        headers,
        owned::{self, Making},
        peek::{Peeked, decode_body, model_literal},
        route::{ModelSource, model_name, replace_model_in_path, strip_key},
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::time::Duration;

/// A request that is ready for any edge.
pub(super) struct Outgoing<'a> {
    call: &'a Call<'a>,
    headers: HeaderMap,
    intake: Option<Intake>,
    timeouts: Timeouts,
    /// The query, where it is another one than the client's.
    pub(super) query: Option<String>,
    /// How the client is answered ahead, where it may be.
    pub(super) prospect: Option<Prospect<'a>>,
}

impl<'a> Outgoing<'a> {
    pub(super) async fn prepare(
        call: &'a Call<'a>,
        intake: Option<Intake>,
        timeouts: Timeouts,
    ) -> Result<Self, IntakeError> {
        let mut headers = call.parts.headers.clone();
        headers::strip_request(&mut headers);
        if owned::making(call.route.operation) != Making::Nothing {
            headers::offer_without(&mut headers, "br");
        }
        if owned::listed(call.route.operation).is_some() {
            let identity = HeaderValue::from_static("identity");
            headers.insert(header::ACCEPT_ENCODING, identity);
        }
        let mut outgoing = Self {
            call,
            headers,
            intake,
            timeouts,
            query: None,
            prospect: None,
        };
        if outgoing.may_be_renamed() {
            outgoing.decode().await?;
        }
        Ok(outgoing)
    }

    /// Whether the body is packed, and some edge has another name for the model in it.
    fn may_be_renamed(&self) -> bool {
        let is_packed = self.headers.contains_key(header::CONTENT_ENCODING);
        let route = &self.call.route;
        let model = self.intake.as_ref().and_then(|i| i.peeked.model.as_deref());
        let (true, true, Some(model)) = (is_packed, self.is_named_in_body(), model) else {
            return false;
        };
        let pool = self.call.door.gateway.configuration.pool();
        pool.candidates(route.protocol, Some(model))
            .any(|e| pool.upstream_model(pool.edge(e), model) != model)
    }

    /// Whether the body is where the model is named; a `model` in any other body is upstream's affair.
    fn is_named_in_body(&self) -> bool {
        matches!(
            self.call.route.model,
            ModelSource::Body | ModelSource::OptionalBody
        )
    }

    /// Unpacks the body, so that a stretch of it can be replaced.
    async fn decode(&mut self) -> Result<(), IntakeError> {
        let Some(intake) = &mut self.intake else {
            return Ok(());
        };
        let packed = intake.payload.bytes().await.map_err(IntakeError::Disk)?;
        let encodings = self.headers.get_all(header::CONTENT_ENCODING);
        let plain = decode_body(
            encodings.iter().map(HeaderValue::as_bytes),
            &packed,
            intake.peeked.decoded_bytes,
        )
        .map_err(IntakeError::Unreadable)?;
        intake.payload = Payload::from_bytes(Bytes::from(plain));
        self.headers.remove(header::CONTENT_ENCODING);
        Ok(())
    }
}

impl dispatch::Outgoing for Outgoing<'_> {
    fn attempt<'e>(&'e self, edge: &'e EdgeRef) -> Attempt<'e> {
        let base_url = &edge.endpoint().base_url;
        let protocol = self.call.route.protocol;
        let mut edge_headers: Vec<(HeaderName, HeaderValue)> = Vec::with_capacity(1);
        for (name, value) in &edge.endpoint().headers {
            let name = HeaderName::try_from(&**name);
            let value = HeaderValue::try_from(&**value);
            if let (Ok(name), Ok(value)) = (name, value) {
                edge_headers.push((name, value));
            }
        }
        edge_headers.extend(credential_header(
            protocol,
            base_url.host(),
            &edge.credential().secret,
        ));
        Attempt {
            base_url,
            method: self.call.parts.method.clone(),
            target: base_url.target(&self.path_and_query(edge)),
            headers: self.headers(),
            edge_headers,
            payload: self.payload(edge),
            timeouts: self.timeouts,
        }
    }

    fn commits_after(&self) -> Option<Duration> {
        self.prospect.as_ref().map(Prospect::after)
    }

    fn commit(&self) {
        if let Some(prospect) = &self.prospect {
            prospect.commit(&self.headers);
        }
    }
}

impl Outgoing<'_> {
    fn headers(&self) -> &HeaderMap {
        let unpacked = self.prospect.as_ref().and_then(Prospect::unpacked);
        unpacked.unwrap_or(&self.headers)
    }

    fn path_and_query(&self, edge: &EdgeRef) -> String {
        let uri = &self.call.parts.uri;
        let mut path = uri.path().to_owned();
        if let ModelSource::Path(raw) = self.call.route.model {
            let model = model_name(raw);
            let asked = edge.upstream_model(&model);
            if asked != model {
                path = replace_model_in_path(&path, raw, asked);
            }
        }
        // Another query is none where nothing is left of the client's.
        let other = self
            .query
            .as_deref()
            .map(|q| Some(q).filter(|q| !q.is_empty()));
        if let Some(query) = other.unwrap_or(uri.query()) {
            let kept = strip_key(query);
            if !kept.is_empty() || query.is_empty() {
                path.push('?');
                path.push_str(&kept);
            }
        }
        path
    }

    fn payload(&self, edge: &EdgeRef) -> Option<Payload> {
        let intake = self.intake.as_ref();
        // A method that usually brings a body says so even where it is empty.
        let Some(Intake { payload, peeked }) = intake else {
            let is_due = matches!(self.call.parts.method, Method::POST | Method::PUT);
            return is_due.then(|| Payload::from_bytes(Bytes::new()));
        };
        let renamed = self
            .is_named_in_body()
            .then(|| renamed(payload, peeked, edge));
        Some(renamed.flatten().unwrap_or_else(|| payload.clone()))
    }
}

/// The body with the edge's name for the model, where that differs.
fn renamed(payload: &Payload, peeked: &Peeked, edge: &EdgeRef) -> Option<Payload> {
    let model = peeked.model.as_deref()?;
    let asked = edge.upstream_model(model);
    if asked == model {
        return None;
    }
    let literal = model_literal(peeked.kind, asked);
    Some(payload.with_replaced(peeked.model_span.clone()?, Bytes::from(literal)))
}
