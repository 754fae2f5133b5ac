//! Endpoints.
use super::{
    noun::{self, Noun, catalog, state_fields},
    routes::{Route, Schema},
    schema::{
        CATALOG, CATALOG_INPUT, DISABLED_REASON, Field, NULLABLE_TEXT, NULLABLE_TEXTS, STATE,
        TEXTS,
        Type::{Map, Nullable, Text},
    },
};
use crate::{
    domain::{ids::EndpointId, pool::Endpoint},
    store::{Store, StoreError},
};
use serde_json::{Value, json};

pub(super) fn routes() -> Vec<Route> {
    let mut routes = noun::routes::<Endpoint>();
    routes.insert(1, noun::adding::<Endpoint>());
    routes
}

pub(super) fn schemas() -> Vec<Schema> {
    noun::schemas::<Endpoint>()
}

impl Noun for Endpoint {
    const SCHEMA: &'static str = "Endpoint";
    #[rustfmt::skip]
    const FIELDS: &'static [Field] = &[
        Field::read("id", Text, "Minted once."),
        Field::both("name", (Text, Text), "Unique among endpoints.").required(),
        Field::write("preset", NULLABLE_TEXT, "A provider whose address and protocols stand in for those left out."),
        Field::both("base_url", (Text, NULLABLE_TEXT), "Where it is, with or without the version."),
        Field::both("protocols", (TEXTS, NULLABLE_TEXTS), "What it speaks."),
        Field::both("models", (CATALOG, CATALOG_INPUT), "What it serves; null means every model."),
        Field::both("headers", (Map(&Text), Nullable(&Map(&Text))), "Headers added to every request."),
        Field::both("state", (STATE, STATE), "Whether it takes new work."),
        Field::read("disabled_reason", DISABLED_REASON, "Who or what disabled it."),
    ];

    fn show(&self) -> Value {
        let (state, disabled_reason) = state_fields(self.state);
        let protocols: Vec<&str> = self.protocols.iter().map(|p| p.name()).collect();
        let headers = self.headers.iter();
        let headers: serde_json::Map<String, Value> = headers
            .map(|(name, value)| (name.to_string(), json!(&**value)))
            .collect();
        json!({
            "id": self.id.to_string(),
            "name": &*self.name,
            "base_url": self.base_url.to_string(),
            "protocols": protocols,
            "models": catalog(&self.models),
            "headers": headers,
            "state": state,
            "disabled_reason": disabled_reason,
        })
    }

    async fn read_all(store: &Store) -> Result<Vec<Self>, StoreError> {
        store.endpoints().await
    }

    async fn read(store: &Store, id: EndpointId) -> Result<Option<Self>, StoreError> {
        store.endpoint(id).await
    }

    async fn remove(store: &Store, id: EndpointId) -> Result<bool, StoreError> {
        store.remove_endpoint(id).await
    }
}
