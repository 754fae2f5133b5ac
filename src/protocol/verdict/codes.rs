//! The words by which providers tell an empty purse and a bad key from a client's mistake.
//!
//! Invariant: a code that may also mean a mere pace, or that a client can provoke, is not here.
//! Taking an account out for nothing costs more than passing one error on.
use crate::domain::protocol::Protocol;

/// What an answer gives as its grounds, the weightiest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grounds {
    /// The credential is not accepted.
    Key,
    /// What is left to spend is reserved by requests that still run.
    Reserved,
    /// A day's quota is used up; it comes back by itself.
    Daily,
    /// A quota is used up, or nothing is left to spend.
    Quota,
}

/// Codes and types that say that a quota is used up.
///
/// `OpenAI`: help article 6614457 (the four spend and usage codes, whose type may still be
/// `insufficient_quota`), openai error guide; `billing_hard_limit_reached` comes with 400 from
/// images. `usage_limit_reached` and `usage_not_included` are those of `ChatGPT` plans.
/// Anthropic: rate limits page, `error.details.error_code`; errors page, `billing_error`.
/// Moonshot: error page (sent with 429). Alibaba: Model Studio's error page, `Arrearage` (sent with
/// 400). xAI: `personal-team-blocked:spending-limit`, sent with 403 and known from users' reports.
/// Google: `BILLING_DISABLED` of `google.api.ErrorReason`.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "project_spend_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "usage_limit_reached",
    "usage_not_included",
    "enforced_spend_limit_reached",
    "billing_error",
    "exceeded_current_quota_error",
    "Arrearage",
    "personal-team-blocked:spending-limit",
    "BILLING_DISABLED",
];

/// Codes, types and reasons that say that the credential is not accepted.
///
/// `OpenAI`: error guide. Groq: `organization_restricted`, sent with 400. Anthropic:
/// `authentication_error`. Google: `google.api.ErrorReason`. Gemini answers a bad key with 400
/// `INVALID_ARGUMENT` and the reason `API_KEY_INVALID`: that is its way to say 401. A key that its
/// owner bound to other addresses, referrers or services is as useless from here as a wrong one.
const KEY: &[&str] = &[
    "invalid_api_key",
    "account_deactivated",
    "organization_restricted",
    "authentication_error",
    "API_KEY_INVALID",
    "API_KEY_SERVICE_BLOCKED",
    "API_KEY_HTTP_REFERRER_BLOCKED",
    "API_KEY_IP_ADDRESS_BLOCKED",
    "API_KEY_ANDROID_APP_BLOCKED",
    "API_KEY_IOS_APP_BLOCKED",
    "SERVICE_DISABLED",
    "CONSUMER_INVALID",
    "CONSUMER_SUSPENDED",
    "ACCESS_TOKEN_EXPIRED",
    "ACCOUNT_STATE_INVALID",
    "CREDENTIALS_MISSING",
];

/// `OpenRouter`'s `limit_source` for money that running requests hold (limits page). It comes with
/// 402, and is over as soon as they have settled.
const RESERVED: &str = "openrouter_in_flight_budget";

/// What a code, a type, a reason or a source of a limit says.
pub(super) fn of_code(code: &str) -> Option<Grounds> {
    let is_in = |list: &[&str]| list.contains(&code);
    if is_in(QUOTA) {
        Some(Grounds::Quota)
    } else if is_in(KEY) {
        Some(Grounds::Key)
    } else {
        (code == RESERVED).then_some(Grounds::Reserved)
    }
}

/// What the name of a quota of Google's says, such as
/// `GenerateRequestsPerDayPerProjectPerModel-FreeTier`.
pub(super) fn of_quota_id(id: &str) -> Option<Grounds> {
    id.contains("PerDay").then_some(Grounds::Daily)
}

/// A sentence that stands for a code where a provider has none.
struct Sentence {
    protocol: Protocol,
    status: &'static [u16],
    /// `message` of the error object, or a text right under the outermost object.
    key: &'static str,
    start: &'static str,
    /// What must follow somewhere.
    part: &'static str,
    grounds: Grounds,
}

impl Sentence {
    const fn new(protocol: Protocol, status: &'static [u16], start: &'static str) -> Self {
        Self {
            protocol,
            status,
            key: "message",
            start,
            part: "",
            grounds: Grounds::Key,
        }
    }

    const fn quota(self) -> Self {
        let grounds = Grounds::Quota;
        Self { grounds, ..self }
    }

    const fn under(self, key: &'static str) -> Self {
        Self { key, ..self }
    }

    const fn with(self, part: &'static str) -> Self {
        Self { part, ..self }
    }
}

/// Sentences known from providers' pages and from their users' reports.
///
/// Anthropic says "balance too low" and "your own spend limit" by 400 `invalid_request_error`, with
/// no code; a revoked token by 403 `permission_error`. Gemini says of a leaked key no more than
/// `PERMISSION_DENIED`, of an empty balance `RESOURCE_EXHAUSTED`. FAL locks a whole account, by
/// 403: for an empty balance or by its own hand; either way only its owner can help, so that both
/// count as billing. xAI's error is a text beside a code that says nothing. `OpenRouter` says 403
/// where one key's own cap is used up: its neighbours may still serve, so the key goes, not the
/// account.
const SENTENCES: &[Sentence] = &[
    Sentence::new(
        Protocol::Anthropic,
        &[400, 403],
        "Your credit balance is too low",
    )
    .quota(),
    Sentence::new(
        Protocol::Anthropic,
        &[400],
        "You have reached your specified API usage limits",
    )
    .quota(),
    Sentence::new(
        Protocol::Anthropic,
        &[400],
        "You have reached your specified workspace API usage limits",
    )
    .quota(),
    Sentence::new(
        Protocol::Anthropic,
        &[400, 403],
        "This organization has been disabled",
    ),
    Sentence::new(Protocol::Anthropic, &[403], "OAuth token has been revoked"),
    Sentence::new(
        Protocol::Anthropic,
        &[403],
        "OAuth authentication is currently not allowed",
    ),
    Sentence::new(
        Protocol::Gemini,
        &[403],
        "Your API key was reported as leaked",
    ),
    Sentence::new(
        Protocol::Gemini,
        &[429],
        "Your prepayment credits are depleted",
    )
    .quota(),
    Sentence::new(Protocol::FalQueue, &[403], "User is locked.")
        .under("detail")
        .quota(),
    Sentence::new(Protocol::OpenAi, &[403, 429], "Your team ")
        .under("error")
        .with("used all available credits")
        .quota(),
    Sentence::new(Protocol::OpenAi, &[400], "Incorrect API key provided").under("error"),
    Sentence::new(Protocol::OpenAi, &[403], "Key limit exceeded (").with(" limit)"),
];

/// What a text says that stands under `key` of the error object, or of the outermost one.
pub(super) fn of_sentence(
    protocol: Protocol,
    status: u16,
    key: &str,
    text: &str,
) -> Option<Grounds> {
    let says = |sentence: &&Sentence| {
        sentence.protocol == protocol
            && sentence.status.contains(&status)
            && sentence.key == key
            && text.starts_with(sentence.start)
            && text.contains(sentence.part)
    };
    SENTENCES.iter().find(says).map(|found| found.grounds)
}
