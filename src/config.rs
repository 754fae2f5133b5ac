//! Boot configuration: what the environment says before anything is opened.
//!
//! Invariant: every mistake is reported, not only the first, each on one line that names the
//! variable, the fault and what is accepted; no line ever shows a secret.
use crate::{
    access,
    document::from_environment,
    domain::{
        pool::{BaseUrl, document::Document},
        settings::{Layer, TABLE},
    },
    peer::TrustedProxies,
    telemetry::log::Format,
};
use std::{
    collections::BTreeMap, ffi::OsString, fmt, net::SocketAddr, path::PathBuf, str::FromStr,
};
use tracing_subscriber::EnvFilter;

/// What the environment says, checked.
#[derive(Debug)]
pub struct Boot {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where dashboard, admin API and metrics move to, if anywhere.
    pub admin_listen: Option<SocketAddr>,
    /// The database file.
    pub db: PathBuf,
    /// What is logged.
    pub log: EnvFilter,
    /// How it is logged.
    pub log_format: Format,
    /// Certificate chain and private key of the main listener, PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The settings that the environment states.
    pub settings: Layer,
    /// What the upstream secrets of the environment stand for, if there are any.
    pub upstream_keys: Option<Document>,
    /// The operator's first password; ignored once one is set.
    pub admin_password: Option<Password>,
    /// Proxies whose word on addresses and TLS is taken.
    pub trusted_proxies: TrustedProxies,
    /// Where people and clients reach this instance.
    pub public_url: Option<BaseUrl>,
}

/// A password that may be taken; shows itself to nobody who formats it.
pub struct Password(Box<str>);

impl Password {
    /// The password itself, for hashing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// The default of `FAIRLANE_LISTEN`.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// The default of `FAIRLANE_DB`.
pub const DEFAULT_DB: &str = "fairlane.db";

/// Requests are metrics and ledger rows, not log lines; what matters beyond is.
const DEFAULT_LOG: &str = "info";

const PREFIX: &str = "FAIRLANE_";

/// Variables with the preset whose keys they hold.
const KEY_VARIABLES: [(&str, &str); 4] = [
    ("FAIRLANE_KEYS_ANTHROPIC", "anthropic"),
    ("FAIRLANE_KEYS_FAL", "fal"),
    ("FAIRLANE_KEYS_GEMINI", "gemini"),
    ("FAIRLANE_KEYS_OPENAI", "openai"),
];

/// Every variable that is not a setting.
const OTHER_VARIABLES: [&str; 10] = [
    "FAIRLANE_ADMIN_PASSWORD",
    "FAIRLANE_TRUSTED_PROXIES",
    "FAIRLANE_PUBLIC_URL",
    "FAIRLANE_LISTEN",
    "FAIRLANE_ADMIN_LISTEN",
    "FAIRLANE_DB",
    "FAIRLANE_LOG",
    "FAIRLANE_LOG_FORMAT",
    "FAIRLANE_TLS_CERT",
    "FAIRLANE_TLS_KEY",
];

/// Every line that must be mended before the start.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Mistakes(pub Vec<String>);

impl Boot {
    /// Reads the variables of the process.
    pub fn from_env() -> Result<Self, Mistakes> {
        Self::from_vars(std::env::vars_os())
    }

    /// Reads the given variables; those without the prefix do not matter.
    pub fn from_vars(vars: impl Iterator<Item = (OsString, OsString)>) -> Result<Self, Mistakes> {
        let mut reader = Reader::new(vars);
        let boot = Self {
            listen: reader
                .parsed("FAIRLANE_LISTEN", ADDRESS)
                .unwrap_or_else(|| ([127, 0, 0, 1], 8080).into()),
            admin_listen: reader.parsed("FAIRLANE_ADMIN_LISTEN", ADDRESS),
            db: reader
                .parsed("FAIRLANE_DB", "the path of a file")
                .unwrap_or_else(|| DEFAULT_DB.into()),
            log: reader.log_filter(),
            log_format: reader.log_format(),
            tls: reader.tls(),
            settings: reader.settings(),
            upstream_keys: reader.upstream_keys(),
            admin_password: reader.admin_password(),
            trusted_proxies: reader.trusted_proxies(),
            public_url: reader.public_url(),
        };
        reader.unknown();
        if reader.mistakes.is_empty() {
            Ok(boot)
        } else {
            Err(Mistakes(reader.mistakes))
        }
    }
}

const ADDRESS: &str = "an address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080";

struct Reader {
    vars: BTreeMap<String, String>,
    mistakes: Vec<String>,
}

impl Reader {
    fn new(vars: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let mut reader = Self {
            vars: BTreeMap::new(),
            mistakes: Vec::new(),
        };
        for (name, value) in vars {
            let name = name.to_string_lossy().into_owned();
            if !name.starts_with(PREFIX) {
                continue;
            }
            match value.into_string() {
                Ok(value) => {
                    reader.vars.insert(name, value);
                }
                Err(_) => reader.mistakes.push(format!(
                    "{name}: is not valid UTF-8; accepted: text in UTF-8"
                )),
            }
        }
        reader
    }

    fn mistake(&mut self, name: &str, fault: &str, accepted: &str) {
        self.mistakes
            .push(format!("{name}: {fault}; accepted: {accepted}"));
    }

    fn parsed<T: FromStr>(&mut self, name: &str, accepted: &str) -> Option<T> {
        let text = self.vars.remove(name)?;
        match text.trim().parse() {
            Ok(value) if !text.trim().is_empty() => Some(value),
            _ => {
                self.mistake(name, &format!("\"{text}\" is not accepted"), accepted);
                None
            }
        }
    }

    fn log_filter(&mut self) -> EnvFilter {
        let text = self.vars.remove("FAIRLANE_LOG");
        let filter = EnvFilter::builder().parse(text.as_deref().unwrap_or(DEFAULT_LOG));
        filter.unwrap_or_else(|_| {
            let accepted =
                "error, warn, info, debug or trace, also per module: info,fairlane=debug";
            let fault = format!("\"{}\" is not a filter", text.unwrap_or_default());
            self.mistake("FAIRLANE_LOG", &fault, accepted);
            EnvFilter::new(DEFAULT_LOG)
        })
    }

    fn log_format(&mut self) -> Format {
        match self.vars.remove("FAIRLANE_LOG_FORMAT").as_deref() {
            None | Some("text") => Format::Text,
            Some("json") => Format::Json,
            Some(other) => {
                let fault = format!("\"{other}\" is not a format");
                self.mistake("FAIRLANE_LOG_FORMAT", &fault, "text or json");
                Format::Text
            }
        }
    }

    fn tls(&mut self) -> Option<(PathBuf, PathBuf)> {
        let cert = self.vars.remove("FAIRLANE_TLS_CERT");
        let key = self.vars.remove("FAIRLANE_TLS_KEY");
        match (cert, key) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            (Some(_), None) => {
                let fault = "is not set, but FAIRLANE_TLS_CERT is";
                self.mistake("FAIRLANE_TLS_KEY", fault, "both or neither");
                None
            }
            (None, Some(_)) => {
                let fault = "is not set, but FAIRLANE_TLS_KEY is";
                self.mistake("FAIRLANE_TLS_CERT", fault, "both or neither");
                None
            }
        }
    }

    fn settings(&mut self) -> Layer {
        let mut layer = Layer::default();
        for row in TABLE {
            let Some(text) = self.vars.remove(&row.env()) else {
                continue;
            };
            match row.parse(&text) {
                Ok(value) => layer.put(row.name, Some(value)),
                Err(error) => self.mistakes.push(format!("{}: {error}", row.env())),
            }
        }
        layer
    }

    fn upstream_keys(&mut self) -> Option<Document> {
        let given: Vec<(&str, String)> = KEY_VARIABLES
            .into_iter()
            .filter_map(|(variable, preset)| Some((preset, self.vars.remove(variable)?)))
            .collect();
        if given.is_empty() {
            return None;
        }
        let pairs: Vec<(&str, &str)> = given.iter().map(|(p, s)| (*p, &**s)).collect();
        let document = from_environment(&pairs);
        let lines = document.mistakes.iter().map(ToString::to_string);
        self.mistakes.extend(lines);
        Some(document)
    }

    fn admin_password(&mut self) -> Option<Password> {
        const NAME: &str = "FAIRLANE_ADMIN_PASSWORD";
        let text = self.vars.remove(NAME)?;
        match access::check_password(&text) {
            Ok(()) => Some(Password(text.into())),
            Err(error) => {
                let accepted = format!(
                    "{} characters or more, at most {} bytes",
                    access::MIN_CHARACTERS,
                    access::MAX_BYTES
                );
                self.mistake(NAME, &error.to_string(), &accepted);
                None
            }
        }
    }

    fn trusted_proxies(&mut self) -> TrustedProxies {
        const NAME: &str = "FAIRLANE_TRUSTED_PROXIES";
        let text = self.vars.remove(NAME).unwrap_or_default();
        TrustedProxies::parse(&text).unwrap_or_else(|part| {
            let accepted = "networks or addresses separated by commas, such as 10.0.0.0/8, ::1";
            let fault = format!("\"{part}\" is neither a network nor an address");
            self.mistake(NAME, &fault, accepted);
            TrustedProxies::default()
        })
    }

    fn public_url(&mut self) -> Option<BaseUrl> {
        const NAME: &str = "FAIRLANE_PUBLIC_URL";
        let text = self.vars.remove(NAME)?;
        match BaseUrl::parse(&text) {
            Ok(url) => Some(url),
            Err(error) => {
                let accepted = "an address such as https://fairlane.example.com";
                self.mistake(NAME, &format!("\"{text}\" {error}"), accepted);
                None
            }
        }
    }

    /// Whatever is left is not known; a slip of the pen must not silently change nothing.
    fn unknown(&mut self) {
        let known = || {
            let settings = TABLE.iter().map(crate::domain::settings::Declaration::env);
            let keys = KEY_VARIABLES.iter().map(|(name, _)| (*name).to_owned());
            let others = OTHER_VARIABLES.iter().map(|name| (*name).to_owned());
            settings.chain(keys).chain(others).collect::<Vec<_>>()
        };
        for name in std::mem::take(&mut self.vars).into_keys() {
            let names = known();
            let close = crate::protocol::models::close_names(&name, names.iter().map(|n| &**n));
            let hint = match close.first() {
                Some(close) => format!("did you mean {close}?"),
                None => "run `fairlane settings` for the names".to_owned(),
            };
            self.mistakes
                .push(format!("{name}: is not a variable of fairlane; {hint}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(vars: &[(&str, &str)], expect: &[&str]) {
        let vars = vars.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        let got = Boot::from_vars(vars).map_or_else(|m| m.0, |_| Vec::new());
        assert_eq!(got, expect);
    }

    #[test]
    fn nothing_said_is_fine_and_other_programs_variables_do_not_matter() {
        check(&[("PATH", "/bin"), ("OTHER_FAIRLANE_X", "1")], &[]);
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        check(
            &[
                ("FAIRLANE_LISTEN", "8080"),
                ("FAIRLANE_ACCOUNT_STREAM_LIMIT", "many"),
                ("FAIRLANE_LOG_FORMAT", "xml"),
                ("FAIRLANE_TLS_CERT", "a.pem"),
                ("FAIRLANE_ACCOUNT_STREAM_LIMITS", "3"),
            ],
            &[
                "FAIRLANE_LISTEN: \"8080\" is not accepted; accepted: an address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080",
                "FAIRLANE_LOG_FORMAT: \"xml\" is not a format; accepted: text or json",
                "FAIRLANE_TLS_KEY: is not set, but FAIRLANE_TLS_CERT is; accepted: both or neither",
                "FAIRLANE_ACCOUNT_STREAM_LIMIT: \"many\" is not accepted; accepted: a whole number from 0 to 100000",
                "FAIRLANE_ACCOUNT_STREAM_LIMITS: is not a variable of fairlane; did you mean FAIRLANE_ACCOUNT_STREAM_LIMIT?",
            ],
        );
    }

    #[test]
    fn what_concerns_the_dashboard_is_checked() {
        check(
            &[
                ("FAIRLANE_ADMIN_PASSWORD", "geheim"),
                ("FAIRLANE_TRUSTED_PROXIES", "10.0.0.0/8, proxy"),
                ("FAIRLANE_PUBLIC_URL", "lane.example.com"),
            ],
            &[
                "FAIRLANE_ADMIN_PASSWORD: is too short; at least 10 characters are needed; accepted: 10 characters or more, at most 1024 bytes",
                "FAIRLANE_TRUSTED_PROXIES: \"proxy\" is neither a network nor an address; accepted: networks or addresses separated by commas, such as 10.0.0.0/8, ::1",
                "FAIRLANE_PUBLIC_URL: \"lane.example.com\" must begin with https:// or http://; accepted: an address such as https://fairlane.example.com",
            ],
        );
    }

    #[test]
    fn no_line_shows_a_secret() {
        check(
            &[("FAIRLANE_KEYS_OPENAI", "sk-good-one, sk-bad secret,")],
            &[
                "FAIRLANE_KEYS_OPENAI, entry 2: the secret holds ' ' at character 7, which cannot be sent in a header; accepted are printable ASCII characters without spaces",
            ],
        );
    }
}
