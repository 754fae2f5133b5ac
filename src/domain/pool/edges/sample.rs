//! Small pools for tests: account `n`, credential `n` and endpoint `n` belong together.
use super::*;
use crate::domain::{
    ids::KeyId,
    pool::{BaseUrl, KeyLimits, QuotaScope, State},
    secret::Secret,
};

pub(crate) fn endpoint(n: u128, protocol: Protocol) -> Endpoint {
    Endpoint {
        id: EndpointId::from_u128(n),
        name: format!("endpoint-{n}").into(),
        base_url: BaseUrl::parse("http://127.0.0.1:9").unwrap(),
        protocols: vec![protocol],
        models: None,
        headers: Vec::new(),
        state: State::Active,
    }
}

pub(crate) fn account(n: u128) -> Account {
    Account {
        id: AccountId::from_u128(n),
        name: format!("account-{n}").into(),
        quota_scope: QuotaScope::Account,
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        priority: 0,
        weight: 1,
        cooldown_per_model: false,
        trust_reset: false,
        state: State::Active,
        made_for: None,
    }
}

pub(crate) fn credential(n: u128, account: u128, endpoint: u128) -> Credential {
    Credential {
        id: crate::domain::ids::CredentialId::from_u128(n),
        name: format!("credential-{n}").into(),
        is_named: true,
        secret: Secret::clean(&format!("sk-sample-secret-{n:04}"))
            .unwrap()
            .0,
        fingerprint: [u8::try_from(n).unwrap(); 32],
        origin: crate::domain::pool::Origin::Operator,
        accounts: vec![AccountId::from_u128(account)],
        endpoints: vec![EndpointId::from_u128(endpoint)],
        models: None,
        stream_limit: None,
        create_limit: None,
        job_limit: None,
        state: State::Active,
    }
}

pub(crate) fn key(n: u128) -> Arc<ClientKey> {
    Arc::new(ClientKey {
        id: KeyId::from_u128(n),
        name: format!("key-{n}").into(),
        hash: [u8::try_from(n).unwrap(); 32],
        secret_hint: "".into(),
        weight: 1,
        accounts: None,
        models: None,
        limits: KeyLimits::default(),
        expires_at: None,
    })
}

/// `count` accounts with a credential each, all at one endpoint that speaks `openai`.
pub(crate) fn contents(count: u128) -> Contents {
    Contents {
        endpoints: vec![endpoint(1, Protocol::OpenAi)],
        accounts: (1..=count).map(account).collect(),
        credentials: (1..=count).map(|n| credential(n, n, 1)).collect(),
        keys: vec![key(1)],
    }
}
