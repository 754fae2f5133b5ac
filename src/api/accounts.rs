//! Accounts.
use super::{
    noun::{self, Noun, state_fields},
    routes::{Route, Schema},
    schema::{
        DISABLED_REASON, Field, NULLABLE_INTEGER, NULLABLE_TEXT, STATE,
        Type::{self, Flag, Integer, Nullable, Text},
    },
};
use crate::{
    domain::{ids::AccountId, pool::Account},
    store::{Store, StoreError},
};
use serde_json::{Value, json};

const SCOPE: Type = Type::Words(&["account", "credential"]);
const LIMIT: (Type, Type) = (NULLABLE_INTEGER, NULLABLE_INTEGER);

pub(super) fn routes() -> Vec<Route> {
    let mut routes = noun::routes::<Account>();
    routes.insert(1, noun::adding::<Account>());
    routes
}

pub(super) fn schemas() -> Vec<Schema> {
    noun::schemas::<Account>()
}

impl Noun for Account {
    const SCHEMA: &'static str = "Account";
    #[rustfmt::skip]
    const FIELDS: &'static [Field] = &[
        Field::read("id", Text, "Minted once."),
        Field::both("name", (Text, Text), "Unique among accounts.").required(),
        Field::both("quota_scope", (SCOPE, Nullable(&SCOPE)), "Whether caps and cooldowns apply to the account or to each of its credentials."),
        Field::both("stream_limit", LIMIT, "Streams at once; null inherits the setting, 0 is unlimited."),
        Field::both("create_limit", LIMIT, "Requests being started at once; null inherits the setting, 0 is unlimited."),
        Field::both("job_limit", LIMIT, "Jobs at once; null inherits the setting, 0 is unlimited."),
        Field::both("priority", (Integer, NULLABLE_INTEGER), "Lower numbers are chosen first."),
        Field::both("weight", (Integer, NULLABLE_INTEGER), "Share among equals."),
        Field::both("cooldown_per_model", (Flag, Nullable(&Flag)), "Whether a 429 cools only the model that was asked for."),
        Field::both("trust_reset", (Flag, Nullable(&Flag)), "Whether resets more than an hour away are believed without a look every hour."),
        Field::both("state", (STATE, STATE), "Whether it takes new work."),
        Field::read("disabled_reason", DISABLED_REASON, "Who or what disabled it."),
        Field::read("made_for", NULLABLE_TEXT, "The credential that it was made for, where that one named no account."),
    ];

    fn show(&self) -> Value {
        let (state, disabled_reason) = state_fields(self.state);
        json!({
            "id": self.id.to_string(),
            "name": &*self.name,
            "quota_scope": self.quota_scope.name(),
            "stream_limit": self.stream_limit,
            "create_limit": self.create_limit,
            "job_limit": self.job_limit,
            "priority": self.priority,
            "weight": self.weight,
            "cooldown_per_model": self.cooldown_per_model,
            "trust_reset": self.trust_reset,
            "state": state,
            "disabled_reason": disabled_reason,
            "made_for": self.made_for.map(|id| id.to_string()),
        })
    }

    async fn read_all(store: &Store) -> Result<Vec<Self>, StoreError> {
        store.accounts().await
    }

    async fn read(store: &Store, id: AccountId) -> Result<Option<Self>, StoreError> {
        store.account(id).await
    }

    async fn remove(store: &Store, id: AccountId) -> Result<bool, StoreError> {
        store.remove_account(id).await
    }
}
