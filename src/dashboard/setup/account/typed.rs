//! What was typed about an account, and what of it is right.
//!
//! Invariant: a [`Checked`] holds what may be saved; whatever else was typed is said at its field.
use crate::{
    dashboard::{form::Faults, shell::Shell},
    document::checked_name,
    domain::{
        pool::{
            BaseUrl,
            presets::{self, ProviderPreset},
        },
        protocol::Protocol,
        secret::{Secret, SecretError},
        settings::{Kind, Name},
    },
};
use serde::Deserialize;
use std::sync::Arc;

/// What clients can be served with so far; presets that speak nothing of it are not offered.
const SERVED: [Protocol; 3] = [Protocol::OpenAi, Protocol::Anthropic, Protocol::Gemini];

/// The preset whose address and protocols are typed.
pub(super) const CUSTOM: &str = "custom";

#[derive(Clone, Default, Deserialize)]
pub(in crate::dashboard) struct Typed {
    #[serde(default)]
    pub(super) preset: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) base_url: String,
    #[serde(default)]
    pub(super) protocol: String,
    #[serde(default)]
    pub(super) secret: String,
    #[serde(default)]
    pub(super) limit: String,
    #[serde(default)]
    pub(super) own_limit: String,
    #[serde(default)]
    pub(super) action: String,
}

impl Typed {
    pub(super) fn preset(&self) -> Option<&'static ProviderPreset> {
        presets::by_name(&self.preset).filter(|preset| is_offered(preset))
    }

    /// What the form begins with.
    pub(super) fn beginning(preset: &'static ProviderPreset) -> Self {
        Self {
            preset: preset.name.to_owned(),
            name: if preset.name == CUSTOM {
                String::new()
            } else {
                preset.name.to_owned()
            },
            base_url: preset.base_url.unwrap_or_default().to_owned(),
            protocol: "openai".to_owned(),
            limit: "inherit".to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn has_own_limit(&self) -> bool {
        self.limit == "own"
    }

    pub(super) fn protocols(&self, preset: &ProviderPreset) -> Vec<Protocol> {
        if preset.protocols.is_empty() {
            Vec::from_iter(Protocol::from_name(&self.protocol).filter(|p| SERVED.contains(p)))
        } else {
            preset.protocols.to_vec()
        }
    }
}

pub(super) fn is_offered(preset: &ProviderPreset) -> bool {
    preset.name == CUSTOM || preset.protocols.iter().any(|p| SERVED.contains(p))
}

/// What was typed, once it is right.
pub(super) struct Checked {
    pub(super) name: Arc<str>,
    pub(super) preset: &'static ProviderPreset,
    pub(super) base_url: BaseUrl,
    pub(super) protocols: Vec<Protocol>,
    pub(super) secret: Secret,
    pub(super) limit: Option<u32>,
}

pub(super) fn check(
    shell: &Shell,
    typed: &Typed,
    preset: &'static ProviderPreset,
) -> Result<Checked, Faults> {
    let mut faults = Faults::default();
    let name = checked_name(&typed.name);
    if name.is_err() {
        faults.add("name", shell.t("account-name-fault"));
    }
    let base_url = BaseUrl::parse(&typed.base_url);
    if base_url.is_err() {
        faults.add("base_url", shell.t("account-base-url-fault"));
    }
    let secret = Secret::clean(&typed.secret);
    if let Err(error) = &secret {
        faults.add("secret", secret_fault(shell, *error));
    }
    let limit = limit(typed);
    if limit.is_err() {
        let fault = shell.t("account-limit-fault").num("max", max_limit());
        faults.add("own_limit", fault);
    }
    let protocols = typed.protocols(preset);
    if protocols.is_empty() {
        faults.add("protocol", shell.t("account-protocol-fault"));
    }
    match (name, base_url, secret, limit) {
        (Ok(name), Ok(base_url), Ok((secret, _)), Ok(limit)) if faults.is_empty() => Ok(Checked {
            name,
            preset,
            base_url,
            protocols,
            secret,
            limit,
        }),
        _ => Err(faults),
    }
}

pub(in crate::dashboard) fn secret_fault(shell: &Shell, error: SecretError) -> String {
    match error {
        SecretError::Empty => shell.t("secret-empty"),
        SecretError::Unsendable { position, .. } => {
            shell.t("secret-unsendable").num("position", position)
        }
        SecretError::TooLong { .. } => shell.t("secret-too-long"),
    }
    .to_string()
}

/// What was typed as a limit is none.
struct NoLimit;

/// `None` if it is inherited.
fn limit(typed: &Typed) -> Result<Option<u32>, NoLimit> {
    if !typed.has_own_limit() {
        return Ok(None);
    }
    let number: u32 = typed.own_limit.trim().parse().map_err(|_| NoLimit)?;
    if i64::from(number) > max_limit() {
        return Err(NoLimit);
    }
    Ok(Some(number))
}

fn max_limit() -> i64 {
    match Name::AccountStreamLimit.declaration().kind {
        Kind::Integer { max, .. } => max,
        _ => i64::from(u32::MAX),
    }
}
