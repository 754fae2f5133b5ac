//! What each kind of thing in the pool has of its own when one of it is changed.
//!
//! Invariant: nothing is read or written here; this only says where a thing stands.
use super::Thing;
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId, KeyId},
    pool::{
        self, Account, ClientKey, Credential, Endpoint,
        document::{Change, Document, Plan, Tools},
        edges::Contents,
    },
    secret::Secret,
};
use std::sync::Arc;

impl Thing for Account {
    type Id = AccountId;
    const KIND: &'static str = "account";
    const LIST: &'static str = "accounts";

    fn id(&self) -> AccountId {
        self.id
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn state(&self) -> Option<pool::State> {
        Some(self.state)
    }

    fn stand(&mut self, state: pool::State) {
        self.state = state;
    }

    fn all(contents: &Contents) -> impl Iterator<Item = &Self> {
        contents.accounts.iter()
    }

    fn find_mut(contents: &mut Contents, id: AccountId) -> Option<&mut Self> {
        contents.accounts.iter_mut().find(|a| a.id == id)
    }

    fn call(&mut self, name: Arc<str>) {
        self.name = name;
    }

    fn changes(plan: &mut Plan) -> &mut [Change<Self>] {
        &mut plan.accounts
    }

    fn stated(document: &Document) -> (Option<Arc<str>>, Option<&Secret>) {
        let entry = document.accounts.first();
        (entry.map(|e| Arc::clone(&e.name)), None)
    }
}

impl Thing for Credential {
    type Id = CredentialId;
    const KIND: &'static str = "credential";
    const LIST: &'static str = "credentials";

    fn id(&self) -> CredentialId {
        self.id
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn state(&self) -> Option<pool::State> {
        Some(self.state)
    }

    fn stand(&mut self, state: pool::State) {
        self.state = state;
    }

    fn all(contents: &Contents) -> impl Iterator<Item = &Self> {
        contents.credentials.iter()
    }

    fn find_mut(contents: &mut Contents, id: CredentialId) -> Option<&mut Self> {
        contents.credentials.iter_mut().find(|c| c.id == id)
    }

    fn call(&mut self, name: Arc<str>) {
        self.name = name;
        // Only names that a person gave match an entry with another secret.
        self.is_named = true;
    }

    fn settle(&mut self, before: &Self) {
        self.is_named = before.is_named;
    }

    fn changes(plan: &mut Plan) -> &mut [Change<Self>] {
        &mut plan.credentials
    }

    fn stated(document: &Document) -> (Option<Arc<str>>, Option<&Secret>) {
        let entry = document.credentials.first();
        (
            entry.and_then(|e| e.name.clone()),
            entry.and_then(|e| e.secret.as_ref()),
        )
    }

    fn holder<'a>(contents: &'a Contents, tools: &Tools<'_>, secret: &Secret) -> Option<&'a Self> {
        let print = (tools.fingerprint)(secret.expose());
        contents.credentials.iter().find(|c| c.fingerprint == print)
    }
}

impl Thing for Endpoint {
    type Id = EndpointId;
    const KIND: &'static str = "endpoint";
    const LIST: &'static str = "endpoints";

    fn id(&self) -> EndpointId {
        self.id
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn state(&self) -> Option<pool::State> {
        Some(self.state)
    }

    fn stand(&mut self, state: pool::State) {
        self.state = state;
    }

    fn all(contents: &Contents) -> impl Iterator<Item = &Self> {
        contents.endpoints.iter()
    }

    fn find_mut(contents: &mut Contents, id: EndpointId) -> Option<&mut Self> {
        contents.endpoints.iter_mut().find(|e| e.id == id)
    }

    fn call(&mut self, name: Arc<str>) {
        self.name = name;
    }

    fn changes(plan: &mut Plan) -> &mut [Change<Self>] {
        &mut plan.endpoints
    }

    fn stated(document: &Document) -> (Option<Arc<str>>, Option<&Secret>) {
        let entry = document.endpoints.first();
        (entry.map(|e| Arc::clone(&e.name)), None)
    }
}

impl Thing for ClientKey {
    type Id = KeyId;
    const KIND: &'static str = "key";
    const LIST: &'static str = "keys";

    fn id(&self) -> KeyId {
        self.id
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn state(&self) -> Option<pool::State> {
        None
    }

    fn all(contents: &Contents) -> impl Iterator<Item = &Self> {
        contents.keys.iter().map(|key| &**key)
    }

    fn find_mut(contents: &mut Contents, id: KeyId) -> Option<&mut Self> {
        let key = contents.keys.iter_mut().find(|k| k.id == id);
        key.map(Arc::make_mut)
    }

    fn call(&mut self, name: Arc<str>) {
        self.name = name;
    }

    fn changes(plan: &mut Plan) -> &mut [Change<Self>] {
        &mut plan.keys
    }

    fn stated(document: &Document) -> (Option<Arc<str>>, Option<&Secret>) {
        let entry = document.keys.first();
        (
            entry.map(|e| Arc::clone(&e.name)),
            entry.and_then(|e| e.secret.as_ref()),
        )
    }

    fn holder<'a>(contents: &'a Contents, tools: &Tools<'_>, secret: &Secret) -> Option<&'a Self> {
        let hash = (tools.hash_key)(secret.expose());
        Self::all(contents).find(|key| key.hash == hash)
    }
}
