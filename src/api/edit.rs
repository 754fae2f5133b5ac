//! One thing of the pool made or changed on its own, and brought into force.
//!
//! Invariant: what is planned for it is planned inside the transaction that writes.
use super::{
    State,
    error::{ApiError, Code},
    noun::Noun,
};
use crate::{
    document::single::{self, Refusal, shorten},
    domain::pool::document::{ChangeKind, Warning},
    store::StoreError,
};
use serde_json::{Map, Value};

pub(super) use single::Which;

/// Makes or changes one thing as `said`, and brings that into force. Returns it as it is now,
/// with what was put right on the way.
pub(super) async fn edit<N: Noun>(
    state: &State,
    which: Which<N::Id>,
    said: Map<String, Value>,
) -> Result<(N, Vec<Warning>), ApiError> {
    let change = state
        .store()
        .change_pool(move |existing, tools| single::plan_one::<N>(existing, tools, which, said));
    let mut plan = change.await?.map_err(refused::<N>)?;
    state.bring_into_force().await?;
    let warnings = plan.warnings.drain(..).map(shorten::<N>).collect();
    let is_it = |kind: ChangeKind, thing: &N| match which {
        Which::New => kind == ChangeKind::Added,
        Which::Stored(id) => thing.id() == id,
    };
    let changes = N::changes(&mut plan);
    match changes.iter().find(|c| is_it(c.kind, &c.value)) {
        Some(change) => Ok((change.value.clone(), warnings)),
        // A plan names every thing there will be, so this cannot happen.
        None => Err(StoreError::Panicked.into()),
    }
}

fn refused<N: Noun>(refusal: Refusal) -> ApiError {
    let kind = N::KIND;
    match refusal {
        Refusal::Missing => ApiError::no_such(kind),
        Refusal::NameTaken(name) => {
            let name = name.to_string();
            StoreError::NameTaken { kind, name }.into()
        }
        Refusal::SecretTaken(name) => {
            let name = name.to_string();
            StoreError::SecretTaken { kind, name }.into()
        }
        Refusal::Mistakes(mistakes) => ApiError::mistakes(Code::InvalidField, mistakes),
    }
}
