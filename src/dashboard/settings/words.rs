//! The messages that name and explain each setting.
//!
//! Invariant: every setting has a name and an explanation, since the match below names them all.
use crate::{
    dashboard::shell::Shell,
    domain::settings::{Declaration, Group, Kind, Name, Value},
};

/// The keys of a setting's name and of the sentence that explains it.
#[rustfmt::skip]
pub(super) const fn words(name: Name) -> (&'static str, &'static str) {
    match name {
        Name::AccountStreamLimit => ("setting-account-stream-limit", "setting-account-stream-limit-about"),
        Name::AccountCreateLimit => ("setting-account-create-limit", "setting-account-create-limit-about"),
        Name::AccountJobLimit => ("setting-account-job-limit", "setting-account-job-limit-about"),
        Name::AccountStreamReserve => ("setting-account-stream-reserve", "setting-account-stream-reserve-about"),
        Name::CapacityWaitSeconds => ("setting-capacity-wait-seconds", "setting-capacity-wait-seconds-about"),
        Name::WaitersPerKey => ("setting-waiters-per-key", "setting-waiters-per-key-about"),
        Name::ParkCommitSeconds => ("setting-park-commit-seconds", "setting-park-commit-seconds-about"),
        Name::FairShareCongestionThresholdPct => ("setting-fair-share-congestion-threshold-pct", "setting-fair-share-congestion-threshold-pct-about"),
        Name::MaxAttempts => ("setting-max-attempts", "setting-max-attempts-about"),
        Name::SelectionStrategy => ("setting-selection-strategy", "setting-selection-strategy-about"),
        Name::AffinityTtlSeconds => ("setting-affinity-ttl-seconds", "setting-affinity-ttl-seconds-about"),
        Name::RetryUpstream5xx => ("setting-retry-upstream-5xx", "setting-retry-upstream-5xx-about"),
        Name::BreakerFailureThreshold => ("setting-breaker-failure-threshold", "setting-breaker-failure-threshold-about"),
        Name::ConnectTimeoutSeconds => ("setting-connect-timeout-seconds", "setting-connect-timeout-seconds-about"),
        Name::HeaderTimeoutSeconds => ("setting-header-timeout-seconds", "setting-header-timeout-seconds-about"),
        Name::IdleTimeoutSeconds => ("setting-idle-timeout-seconds", "setting-idle-timeout-seconds-about"),
        Name::RequestBodyLimitMb => ("setting-request-body-limit-mb", "setting-request-body-limit-mb-about"),
        Name::RequireClientKey => ("setting-require-client-key", "setting-require-client-key-about"),
        Name::CorsAllowedOrigins => ("setting-cors-allowed-origins", "setting-cors-allowed-origins-about"),
        Name::RequestLogRetentionDays => ("setting-request-log-retention-days", "setting-request-log-retention-days-about"),
        Name::StageTrace => ("setting-stage-trace", "setting-stage-trace-about"),
        Name::ShutdownGraceSeconds => ("setting-shutdown-grace-seconds", "setting-shutdown-grace-seconds-about"),
        Name::SessionTtlHours => ("setting-session-ttl-hours", "setting-session-ttl-hours-about"),
    }
}

/// The key of a group's heading.
pub(super) const fn heading(group: Group) -> &'static str {
    match group {
        Group::Capacity => "settings-capacity",
        Group::Routing => "settings-routing",
        Group::Timeouts => "settings-timeouts",
        Group::Clients => "settings-clients",
        Group::Operation => "settings-operation",
    }
}

/// A value as people read it.
pub(super) fn value(shell: &Shell, value: &Value) -> String {
    match value {
        Value::Integer(n) => shell.t("number").num("value", *n).to_string(),
        Value::Switch(true) => shell.t("setting-on").to_string(),
        Value::Switch(false) => shell.t("setting-off").to_string(),
        Value::Text(text) if text.is_empty() => shell.t("setting-nothing").to_string(),
        Value::Text(text) => text.to_string(),
    }
}

/// What a setting accepts.
pub(super) fn accepted(shell: &Shell, declaration: &Declaration) -> String {
    match declaration.kind {
        Kind::Integer { min, max } => {
            let text = shell.t("setting-accepts-number").num("min", min);
            text.num("max", max).to_string()
        }
        Kind::Switch => shell.t("setting-accepts-switch").to_string(),
        Kind::Word { accepted } => {
            let words = shell
                .t("setting-accepts-words")
                .text("words", accepted.join(", "));
            words.to_string()
        }
        Kind::Origins => shell.t("setting-accepts-origins").to_string(),
    }
}

/// Which values would be accepted, for a stored one that is not.
pub(super) fn accepts(shell: &Shell, declaration: &Declaration) -> String {
    match declaration.kind {
        Kind::Integer { min, max } => {
            let text = shell.t("setting-takes-number").num("min", min);
            text.num("max", max).to_string()
        }
        Kind::Switch => shell.t("setting-takes-switch").to_string(),
        Kind::Word { accepted } => {
            let words = shell
                .t("setting-takes-words")
                .text("words", accepted.join(", "));
            words.to_string()
        }
        Kind::Origins => shell.t("setting-takes-origins").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dashboard::{
            i18n::{I18n, LANGUAGES, Sources},
            shell::Theme,
            time::Zone,
        },
        domain::settings::TABLE,
    };

    #[test]
    fn every_setting_has_its_own_name_and_explanation_in_every_language() {
        let mut keys = std::collections::BTreeSet::new();
        for declaration in TABLE {
            let (name, about) = words(declaration.name);
            assert_eq!(
                name,
                format!("setting-{}", declaration.key.replace('_', "-"))
            );
            assert!(keys.insert(name) && keys.insert(about), "{name}");
        }
        for (tag, _) in LANGUAGES {
            let file = Sources::get(&format!("{tag}/settings.ftl")).unwrap();
            let text = String::from_utf8(file.data.into_owned()).unwrap();
            let shell = Shell {
                locale: I18n::load().unwrap().locale(Some(tag), None),
                theme: Theme::System,
                zone: Zone::of(None),
                here: "/settings".into(),
            };
            for key in &keys {
                assert!(text.contains(&format!("\n{key} = ")), "{tag}: {key}");
                assert!(!shell.t(key).to_string().is_empty(), "{tag}: {key}");
            }
        }
    }
}
