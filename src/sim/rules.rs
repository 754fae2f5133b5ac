//! Scripts: which requests are answered in an unusual way, and how.
//!
//! Invariant: rules are looked at in the order in which they were added; the first that matches,
//! has been skipped often enough and is not used up is used, once, and no other.
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use serde::{Deserialize, Serialize};

pub use super::{act::*, octets::Octets};

/// One scripted behaviour.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A name that the log shows on every request that met this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Which requests it is for.
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// What then happens.
    #[serde(default)]
    pub act: Act,
}

/// Which requests a rule is for; what is absent matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// The credential in whatever header or parameter it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The method, in capitals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The raw request target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,
    /// So many matching requests pass by first.
    pub skip: u32,
    /// So many requests are answered by this rule; absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

/// A condition on the raw request target, query included. In JSON a bare string is
/// [`Contains`](Self::Contains); the others are `{"prefix": "…"}`, `{"suffix": "…"}`,
/// `{"exact": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PathForm", rename_all = "snake_case")]
pub enum PathMatch {
    /// The text occurs anywhere in it.
    Contains(String),
    /// It begins with the text.
    Prefix(String),
    /// It ends with the text.
    Suffix(String),
    /// It is the text.
    Exact(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PathForm {
    Bare(String),
    Tagged(Tagged),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tagged {
    Contains(String),
    Prefix(String),
    Suffix(String),
    Exact(String),
}

impl From<PathForm> for PathMatch {
    fn from(form: PathForm) -> Self {
        match form {
            PathForm::Bare(text) | PathForm::Tagged(Tagged::Contains(text)) => Self::Contains(text),
            PathForm::Tagged(Tagged::Prefix(text)) => Self::Prefix(text),
            PathForm::Tagged(Tagged::Suffix(text)) => Self::Suffix(text),
            PathForm::Tagged(Tagged::Exact(text)) => Self::Exact(text),
        }
    }
}

impl PathMatch {
    fn matches(&self, target: &str) -> bool {
        match self {
            Self::Contains(text) => target.contains(&**text),
            Self::Prefix(text) => target.starts_with(&**text),
            Self::Suffix(text) => target.ends_with(&**text),
            Self::Exact(text) => target == text,
        }
    }
}

impl Rule {
    /// A rule for every request, for as long as it stands.
    pub fn new(act: Act) -> Self {
        Self {
            act,
            ..Self::default()
        }
    }

    /// Names it, for the log.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Only for requests that present this credential.
    #[must_use]
    pub fn credential(mut self, credential: &str) -> Self {
        self.matching.credential = Some(credential.to_owned());
        self
    }

    /// Only for this method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.matching.method = Some(method.to_owned());
        self
    }

    /// Only for targets that contain `text`.
    #[must_use]
    pub fn path(mut self, text: &str) -> Self {
        self.matching.path = Some(PathMatch::Contains(text.to_owned()));
        self
    }

    /// Lets so many matching requests pass by first.
    #[must_use]
    pub fn skip(mut self, requests: u32) -> Self {
        self.matching.skip = requests;
        self
    }

    /// Is used so many times, and then no more.
    #[must_use]
    pub fn times(mut self, requests: u32) -> Self {
        self.matching.times = Some(requests);
        self
    }
}

/// What of a request rules look at.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) credential: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
}

impl Match {
    fn matches(&self, asked: Asked<'_>) -> bool {
        self.credential
            .as_deref()
            .is_none_or(|c| asked.credential == Some(c))
            && self.method.as_deref().is_none_or(|m| m == asked.method)
            && self.path.as_ref().is_none_or(|p| p.matches(asked.target))
    }
}

/// The rules in force.
#[derive(Default)]
pub(super) struct RuleSet {
    /// Spares the unscripted request the lock.
    any: AtomicBool,
    rules: Mutex<Vec<Rule>>,
}

impl RuleSet {
    pub(super) fn add(&self, added: impl IntoIterator<Item = Rule>) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.extend(added);
        self.any.store(!rules.is_empty(), Ordering::Release);
    }

    pub(super) fn clear(&self) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.clear();
        self.any.store(false, Ordering::Release);
    }

    /// What is left of the rules: `skip` and `times` as they stand now.
    pub(super) fn list(&self) -> Vec<Rule> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    /// The rule for this request, used up by one.
    pub(super) fn select(&self, asked: Asked<'_>) -> Option<(Option<String>, Act)> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in rules.iter_mut() {
            if rule.matching.times == Some(0) || !rule.matching.matches(asked) {
                continue;
            }
            if rule.matching.skip > 0 {
                rule.matching.skip -= 1;
                continue;
            }
            if let Some(times) = &mut rule.matching.times {
                *times -= 1;
            }
            return Some((rule.id.clone(), rule.act.clone()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks with each (credential, target) in turn and expects the ids of the rules that answer.
    fn check(rules: &str, asks: &[(&str, &str)], expect: &[&str]) {
        let set = RuleSet::default();
        set.add(serde_json::from_str::<Vec<Rule>>(rules).unwrap());
        let got: Vec<_> = asks
            .iter()
            .map(|(credential, target)| {
                let asked = Asked {
                    credential: Some(credential),
                    method: "POST",
                    target,
                };
                let rule = set.select(asked);
                rule.map_or_else(|| "-".to_owned(), |(id, _)| id.unwrap_or_default())
            })
            .collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn the_first_matching_rule_wins_until_it_is_used_up() {
        check(
            r#"[{"id":"a","match":{"times":2}},{"id":"b","match":{"times":1}}]"#,
            &[("k", "/"), ("k", "/"), ("k", "/"), ("k", "/")],
            &["a", "a", "b", "-"],
        );
    }

    #[test]
    fn a_skipped_request_goes_to_the_next_rule() {
        check(
            r#"[{"id":"a","match":{"skip":1}},{"id":"b"}]"#,
            &[("k", "/"), ("k", "/"), ("k", "/")],
            &["b", "a", "a"],
        );
    }

    #[test]
    fn a_rule_counts_only_requests_that_match() {
        check(
            r#"[{"id":"a","match":{"credential":"one","times":1}}]"#,
            &[("two", "/"), ("one", "/"), ("one", "/")],
            &["-", "a", "-"],
        );
        check(
            r#"[{"id":"a","match":{"method":"GET"}}]"#,
            &[("k", "/")],
            &["-"],
        );
    }

    #[test]
    fn paths_match_by_part_start_end_or_whole() {
        let asks = &[("k", "/v1/files?x=1")];
        check(r#"[{"id":"a","match":{"path":"files"}}]"#, asks, &["a"]);
        check(
            r#"[{"id":"a","match":{"path":{"prefix":"/v1/"}}}]"#,
            asks,
            &["a"],
        );
        check(
            r#"[{"id":"a","match":{"path":{"prefix":"files"}}}]"#,
            asks,
            &["-"],
        );
        check(
            r#"[{"id":"a","match":{"path":{"suffix":"?x=1"}}}]"#,
            asks,
            &["a"],
        );
        check(
            r#"[{"id":"a","match":{"path":{"exact":"/v1/files"}}}]"#,
            asks,
            &["-"],
        );
        check(
            r#"[{"id":"a","match":{"path":{"contains":"chat"}}}]"#,
            asks,
            &["-"],
        );
    }

    #[test]
    fn a_misspelt_script_is_refused() {
        assert!(serde_json::from_str::<Rule>(r#"{"match":{"pth":"/"}}"#).is_err());
        assert!(serde_json::from_str::<Rule>(r#"{"act":{"close":"sometime"}}"#).is_err());
    }

    #[test]
    fn cleared_rules_answer_nothing() {
        let set = RuleSet::default();
        set.add([Rule::new(Act::default())]);
        set.clear();
        let asked = Asked {
            credential: None,
            method: "GET",
            target: "/",
        };
        assert!(set.select(asked).is_none());
    }
}
