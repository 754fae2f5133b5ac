//! Fluent messages, built once and shared by every request.
//!
//! Invariant: English is the reference; the other languages have the same messages with the same
//! arguments, which a test holds the files to. A message is asked for by a literal key, so that
//! tests can find every key that is used.
use fluent_bundle::{
    FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle, types::FluentNumber,
};
use fluent_langneg::{NegotiationStrategy, accepted_languages, negotiate_languages};
use std::{fmt, sync::Arc};
use unic_langid::{LanguageIdentifier, langid};

/// The languages, the reference first: tag, and the name in its own words.
pub(super) const LANGUAGES: [(&str, &str); 3] =
    [("en", "English"), ("ko", "한국어"), ("zh-CN", "简体中文")];

const REFERENCE: LanguageIdentifier = langid!("en");

#[derive(rust_embed::Embed)]
#[folder = "locales/"]
pub(super) struct Sources;

/// A message file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocaleError {
    /// There is no directory for a language.
    #[error("`{0}` has no message files")]
    Missing(&'static str),
    /// Not UTF-8, or not Fluent.
    #[error("`{0}` does not parse")]
    Syntax(String),
    /// A message stands in two files.
    #[error("`{0}` defines a message that another file defines")]
    Duplicate(String),
}

struct Catalog {
    tag: &'static str,
    language: LanguageIdentifier,
    bundle: FluentBundle<FluentResource>,
}

/// Every language's messages; cheap to clone.
#[derive(Clone)]
pub(super) struct I18n(Arc<[Catalog]>);

impl I18n {
    pub(super) fn load() -> Result<Self, LocaleError> {
        let catalogs = LANGUAGES.iter().map(|(tag, _)| Catalog::load(tag));
        Ok(Self(catalogs.collect::<Result<_, _>>()?))
    }

    /// The language for a request: what the person chose, else what the browser asks for.
    pub(super) fn locale(&self, chosen: Option<&str>, accept_language: Option<&str>) -> Locale {
        Locale {
            i18n: self.clone(),
            index: self.negotiate(chosen, accept_language),
            is_pseudo: false,
        }
    }

    fn negotiate(&self, chosen: Option<&str>, accept_language: Option<&str>) -> usize {
        if let Some(index) = chosen.and_then(|c| self.0.iter().position(|k| k.tag == c)) {
            return index;
        }
        let requested = accepted_languages::parse(accept_language.unwrap_or_default());
        // Whatever Chinese somebody reads is closer to ours than English is.
        let requested: Vec<LanguageIdentifier> = requested
            .into_iter()
            .map(|l| {
                if l.language == "zh" {
                    langid!("zh-CN")
                } else {
                    l
                }
            })
            .collect();
        let available: Vec<&LanguageIdentifier> = self.0.iter().map(|k| &k.language).collect();
        let reference = &REFERENCE;
        let first = negotiate_languages(
            &requested,
            &available,
            Some(&reference),
            NegotiationStrategy::Lookup,
        );
        first
            .first()
            .and_then(|found| self.0.iter().position(|k| k.language == ***found))
            .unwrap_or(0)
    }
}

impl Catalog {
    fn load(tag: &'static str) -> Result<Self, LocaleError> {
        let language: LanguageIdentifier = tag.parse().map_err(|_| LocaleError::Missing(tag))?;
        let mut bundle = FluentBundle::new_concurrent(vec![language.clone()]);
        // Isolation marks would stand in the page; every language here is written left to right.
        bundle.set_use_isolating(false);
        bundle.set_formatter(Some(grouped));
        let mut files = Sources::iter()
            .filter(|path| path.starts_with(&format!("{tag}/")))
            .peekable();
        if files.peek().is_none() {
            return Err(LocaleError::Missing(tag));
        }
        for path in files {
            let syntax = || LocaleError::Syntax(path.to_string());
            let file = Sources::get(&path).ok_or_else(syntax)?;
            let text = String::from_utf8(file.data.into_owned()).map_err(|_| syntax())?;
            let resource = FluentResource::try_new(text).map_err(|_| syntax())?;
            bundle
                .add_resource(resource)
                .map_err(|_| LocaleError::Duplicate(path.to_string()))?;
        }
        Ok(Self {
            tag,
            language,
            bundle,
        })
    }
}

/// Whole numbers in groups of three, as all our languages write them.
fn grouped<M>(value: &FluentValue<'_>, _: &M) -> Option<String> {
    let FluentValue::Number(number) = value else {
        return None;
    };
    (number.value.fract() == 0.0).then(|| group(&number.as_string()))
}

/// `1234567` as `1,234,567`.
pub(super) fn group(digits: &str) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let first = digits.len() % 3;
    let mut text = sign.to_owned();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && n % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The language of one request: what pages speak with.
#[derive(Clone)]
pub(super) struct Locale {
    i18n: I18n,
    index: usize,
    /// Marks every message, so that a test sees what is none.
    is_pseudo: bool,
}

impl Locale {
    /// The language's tag.
    pub(super) fn tag(&self) -> &'static str {
        self.i18n.0.get(self.index).map_or("en", |k| k.tag)
    }

    /// The message of that key; arguments are added to it.
    pub(super) fn t(&self, key: &'static str) -> Message<'_> {
        Message {
            locale: self,
            key,
            args: FluentArgs::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn pseudo(mut self) -> Self {
        self.is_pseudo = true;
        self
    }

    fn format(&self, key: &str, args: &FluentArgs<'_>) -> Result<String, String> {
        let chosen = self.i18n.0.get(self.index);
        for catalog in chosen.into_iter().chain(self.i18n.0.first()) {
            let message = catalog.bundle.get_message(key);
            let Some(pattern) = message
                .as_ref()
                .and_then(fluent_bundle::FluentMessage::value)
            else {
                continue;
            };
            let mut errors = Vec::new();
            let text = catalog
                .bundle
                .format_pattern(pattern, Some(args), &mut errors);
            return match errors.first() {
                None => Ok(text.into_owned()),
                Some(error) => Err(error.to_string()),
            };
        }
        Err("there is no such message".to_owned())
    }
}

/// A message with its arguments; its `Display` is the text, which templates escape.
pub(super) struct Message<'a> {
    locale: &'a Locale,
    key: &'static str,
    args: FluentArgs<'a>,
}

impl Message<'_> {
    /// With a number, which also chooses the plural.
    pub(super) fn num(mut self, name: &'static str, number: impl Count) -> Self {
        self.args.set(name, FluentNumber::from(number.count()));
        self
    }

    /// With a text.
    pub(super) fn text(mut self, name: &'static str, text: impl fmt::Display) -> Self {
        self.args.set(name, text.to_string());
        self
    }
}

impl fmt::Display for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.locale.format(self.key, &self.args) {
            Ok(text) if self.locale.is_pseudo => write!(f, "⟦{text}⟧"),
            Ok(text) => f.write_str(&text),
            Err(error) => {
                tracing::error!(key = self.key, error, "a message cannot be shown");
                // In tests it is a mistake in the page.
                #[cfg(test)]
                panic!("{}: {error}", self.key);
                #[cfg(not(test))]
                f.write_str(self.key)
            }
        }
    }
}

/// A number that can stand in a message.
pub(super) trait Count {
    /// As Fluent counts: exact up to 2^53.
    fn count(&self) -> f64;
}

macro_rules! counts {
    ($($kind:ty),*) => {
        $(impl Count for $kind {
            fn count(&self) -> f64 {
                // Fluent's numbers are floats; nothing that is shown here reaches 2^53.
                u32::try_from(*self).map_or_else(|_| self.to_string().parse().unwrap_or(f64::MAX), f64::from)
            }
        })*
    };
}

counts!(u16, u32, u64, usize, i64);

impl<T: Count + ?Sized> Count for &T {
    fn count(&self) -> f64 {
        (**self).count()
    }
}

#[cfg(test)]
mod tests;
