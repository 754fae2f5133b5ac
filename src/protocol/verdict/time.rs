//! The many ways to write a wait.
//!
//! Invariant: what comes out is at most [`MAX_WAIT_MS`], rounded up to a millisecond; the past and
//! what is below zero are 0, and what is not understood as a whole is nothing.
use std::time::{Duration, UNIX_EPOCH};

/// The longest wait believed: 400 days. Quotas are yearly at most; whatever is longer is a mistake
/// of units or a "never", and a sum with it must not overflow.
pub const MAX_WAIT_MS: u64 = 400 * 24 * 3600 * 1000;

/// From here on a bare number is a time in seconds since 1970 (September 2001); below it is a span
/// (up to 31 years).
const FIRST_TIMESTAMP: f64 = 1e9;

/// From here on a time since 1970 is in milliseconds: in seconds it would be in the year 5138.
const FIRST_TIMESTAMP_MS: f64 = 1e11;

/// Units as providers write them, in seconds.
const UNITS: &[(&[&str], f64)] = &[
    (&["ns"], 1e-9),
    (&["us", "µs", "μs"], 1e-6),
    (&["ms", "millisecond", "milliseconds"], 1e-3),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3600.0),
    (&["d", "day", "days"], 86_400.0),
    (&["w", "week", "weeks"], 604_800.0),
];

/// What a wait stands after, in a sentence.
const BEFORE_SPAN: &[&str] = &[
    "again in ",
    "retry in ",
    "retry after ",
    "resets in ",
    "reset in ",
    "resets after ",
    "reset after ",
    "please wait ",
];

/// A decimal number. Rust also reads `NaN` and `inf`, which no provider means.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_of_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let is_number = text.bytes().all(is_of_number);
    text.parse().ok().filter(|_| is_number)
}

/// Whether what remains is nothing.
pub(super) fn is_used_up(remaining: &str) -> bool {
    number(remaining).is_some_and(|left| left <= 0.0)
}

/// A number of seconds from now.
pub(super) fn seconds(text: &str) -> Option<u64> {
    number(text).map(wait_of)
}

/// A number of milliseconds from now.
pub(super) fn millis(text: &str) -> Option<u64> {
    number(text).map(|millis| wait_of(millis / 1000.0))
}

/// When a limit ends, in whatever form: seconds from now, a time since 1970, a span with units, or
/// a date.
pub(super) fn reset(text: &str, now_ms: i64) -> Option<u64> {
    match number(text) {
        Some(value) if value < FIRST_TIMESTAMP => Some(wait_of(value)),
        Some(_) => at(text, now_ms),
        None => whole_span(text).or_else(|| at(text, now_ms)),
    }
}

/// A time: since 1970, in RFC 3339, or as HTTP writes dates.
pub(super) fn at(text: &str, now_ms: i64) -> Option<u64> {
    let text = text.trim();
    let at_ms = match number(text) {
        Some(value) => timestamp_ms(value),
        None => match text.parse::<jiff::Timestamp>() {
            Ok(at) => i128::from(at.as_millisecond()),
            Err(_) => http_date_ms(text)?,
        },
    };
    let wait_ms = (at_ms - i128::from(now_ms)).clamp(0, i128::from(MAX_WAIT_MS));
    u64::try_from(wait_ms).ok()
}

/// The longest wait that a sentence states, such as `Please try again in 7m12s.`, `resets in 3
/// days` or `You will regain access on 2026-12-01 at 00:00 UTC`.
pub(super) fn in_sentence(text: &str, now_ms: i64) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let spans = BEFORE_SPAN.iter().flat_map(|phrase| after(&text, phrase));
    let spans = spans.filter_map(|rest| Some(wait_of(span(rest)?.0)));
    let dates = after(&text, "access on ").filter_map(|rest| access_date(rest, now_ms));
    spans.chain(dates).max()
}

/// What follows each place where a text has a phrase.
fn after<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = &'a str> {
    let found = text.match_indices(phrase);
    found.filter_map(|(at, phrase)| text.get(at + phrase.len()..))
}

/// `2026-12-01 at 00:00 utc`
fn access_date(text: &str, now_ms: i64) -> Option<u64> {
    let (day, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix(" at ")?.split_at_checked(5)?;
    rest.starts_with(" utc").then_some(())?;
    at(&format!("{day}T{time}:00Z"), now_ms)
}

fn wait_of(seconds: f64) -> u64 {
    if seconds <= 0.0 {
        return 0;
    }
    let nanos = Duration::try_from_secs_f64(seconds).map_or(u128::MAX, |wait| wait.as_nanos());
    u64::try_from(nanos.div_ceil(1_000_000)).map_or(MAX_WAIT_MS, |ms| ms.min(MAX_WAIT_MS))
}

fn timestamp_ms(value: f64) -> i128 {
    let seconds = if value < FIRST_TIMESTAMP_MS {
        value
    } else {
        value / 1000.0
    };
    // What lies before 1970 is past anyway, and what no duration holds lies far ahead.
    let since = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    i128::try_from(since.as_millis()).unwrap_or(i128::MAX / 2)
}

/// The three forms of RFC 9110, in any case of letters.
fn http_date_ms(text: &str) -> Option<i128> {
    let mut proper = String::with_capacity(text.len());
    for char in text.chars() {
        let goes_on = proper.ends_with(|before: char| before.is_ascii_alphabetic());
        proper.push(if goes_on {
            char.to_ascii_lowercase()
        } else {
            char.to_ascii_uppercase()
        });
    }
    let date = httpdate::parse_http_date(&proper.replace("Gmt", "GMT")).ok()?;
    let since = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_millis()).ok()
}

fn whole_span(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let (seconds, rest) = span(&text)?;
    rest.is_empty().then(|| wait_of(seconds))
}

/// The span in lower-case letters that a text begins with, in seconds, and what follows it:
/// `1h2m3.5s`, `850ms`, `3 days`, `2 hours and 5 minutes`.
fn span(text: &str) -> Option<(f64, &str)> {
    let mut total = None;
    let mut rest = text.strip_prefix("about ").unwrap_or(text);
    while let Some((seconds, after)) = part(rest) {
        total = Some(total.unwrap_or(0.0) + seconds);
        rest = after;
    }
    total.map(|seconds| (seconds, rest))
}

fn part(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start_matches([' ', ',']);
    let text = text.strip_prefix("and ").unwrap_or(text);
    let is_of_number = |char: char| char.is_ascii_digit() || char == '.';
    let (amount, rest) = text.split_at(text.find(|char| !is_of_number(char))?);
    let rest = rest.trim_start_matches(' ');
    let end = rest.find(|char: char| !char.is_alphabetic());
    let (unit, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let (_, scale) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
    Some((number(amount)? * scale, rest))
}
