//! What tests of the gateway put where the outside would be.
//!
//! Invariant: nothing is kept, and nobody is known.
use crate::{
    domain::{
        admission::Note,
        ids::{AccountId, CredentialId, KeyId},
        ledger::Entry,
        owners::{Object, ObjectKind, OwnerRow, Sighting},
        pool::Fingerprint,
    },
    ports::{Ledger, OwnerStore, PoolWatch, Stored},
};

/// Keeps nothing and tells nobody.
#[derive(Debug)]
pub(super) struct Nothing;

impl Ledger for Nothing {
    fn keep(&self, _: Box<Entry>) {}
}

impl PoolWatch for Nothing {
    fn noted(&self, _: &Note) {}

    fn limit_met(&self, _: CredentialId) {}

    fn credential_refused(&self, _: CredentialId, _: Fingerprint) {}

    fn billing_refused(&self, _: &[AccountId]) {}
}

impl OwnerStore for Nothing {
    fn bind(&self, _: Vec<OwnerRow>) -> Stored<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn try_bind(&self, _: OwnerRow) -> bool {
        true
    }

    fn sightings(&self, objects: Vec<Object>, _: Option<KeyId>) -> Stored<'_, Vec<Sighting>> {
        Box::pin(async move { Ok(objects.iter().map(|_| Sighting::Never).collect()) })
    }

    fn own_objects(&self, _: ObjectKind, _: Option<KeyId>) -> Stored<'_, Vec<OwnerRow>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn forget(&self, _: Object, _: Option<KeyId>) -> Stored<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
