//! What the samples show.
use super::*;
use crate::domain::{
    ids::{AccountId, CredentialId, EndpointId},
    pool::{BaseUrl, DisabledReason, Origin, QuotaScope, State as Standing},
    protocol::Protocol,
    secret::Secret,
};

/// One of everything, and every state.
pub(super) fn contents() -> Contents {
    let account = Account {
        id: AccountId::from_u128(1),
        name: "a-1".into(),
        quota_scope: QuotaScope::Account,
        stream_limit: None,
        create_limit: Some(0),
        job_limit: None,
        priority: 0,
        weight: 1,
        cooldown_per_model: false,
        trust_reset: false,
        state: Standing::Active,
        made_for: None,
    };
    let endpoint = Endpoint {
        id: EndpointId::from_u128(2),
        name: "e-1".into(),
        base_url: BaseUrl::parse("https://api.example.com").unwrap(),
        protocols: vec![Protocol::OpenAi],
        models: None,
        headers: Vec::new(),
        state: Standing::Draining,
    };
    let credential = |n: u128, reason| Credential {
        id: CredentialId::from_u128(n),
        name: format!("c-{n}").into(),
        is_named: true,
        secret: Secret::clean("sk-0123456789abcdef").unwrap().0,
        fingerprint: [0; 32],
        origin: Origin::Operator,
        accounts: vec![account.id],
        endpoints: vec![endpoint.id],
        models: None,
        stream_limit: Some(3),
        create_limit: None,
        job_limit: None,
        state: Standing::Disabled(reason),
    };
    let credentials = vec![
        credential(3, DisabledReason::Operator),
        credential(4, DisabledReason::Auth),
        credential(5, DisabledReason::Billing),
    ];
    Contents {
        endpoints: vec![endpoint],
        accounts: vec![account],
        credentials,
        keys: Vec::new(),
    }
}

/// Accounts, credentials and endpoints enough for every state that each can be in.
pub(super) fn every_state() -> Contents {
    let mut all = contents();
    let (account, endpoint) = (all.accounts[0].clone(), all.endpoints[0].clone());
    let states = [
        Standing::Active,
        Standing::Active,
        Standing::Active,
        Standing::Active,
        Standing::Active,
        Standing::Draining,
        Standing::Disabled(DisabledReason::Operator),
        Standing::Disabled(DisabledReason::Auth),
        Standing::Disabled(DisabledReason::Billing),
    ];
    let accounts = states.iter().zip(11u128..).map(|(state, n)| Account {
        id: AccountId::from_u128(n),
        name: format!("a-{n}").into(),
        state: *state,
        quota_scope: if n == 12 {
            QuotaScope::Credential
        } else {
            QuotaScope::Account
        },
        stream_limit: Some(8),
        ..account.clone()
    });
    all.accounts = accounts.collect();
    let endpoints = (21..24u128).map(|n| Endpoint {
        id: EndpointId::from_u128(n),
        name: format!("e-{n}").into(),
        state: Standing::Active,
        ..endpoint.clone()
    });
    all.endpoints.extend(endpoints);
    for credential in &mut all.credentials {
        credential.accounts = vec![AccountId::from_u128(12)];
    }
    all.credentials[0].state = Standing::Active;
    all
}
