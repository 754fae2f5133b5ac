//! The waits that an answer's headers state.
//!
//! Invariant: a window's reset counts only if nothing remains in that window; a full window's reset
//! says nothing about why this request was refused.
use super::time;
use http::HeaderMap;

/// The longest wait that the headers state, in milliseconds.
///
/// `Retry-After` (RFC 9110, with fractions and some providers' timestamps besides), the
/// `retry-after-ms` of `OpenAI` and Azure, windows with a `-reset` and a `-remaining` whatever
/// family they belong to, the `RateLimit` field of the IETF's draft, and the subscription windows
/// of Anthropic and `ChatGPT`.
pub(super) fn wait_ms(headers: &HeaderMap, now_ms: i64) -> Option<u64> {
    let hint = |name: &str, value: &str| match name {
        "retry-after" => retry_after(value, now_ms),
        "retry-after-ms" | "x-ms-retry-after-ms" => time::millis(value),
        "ratelimit" => draft(value),
        _ if is_used_up(headers, name) => time::reset(value, now_ms),
        _ => None,
    };
    headers
        .iter()
        .filter_map(|(name, value)| hint(name.as_str(), value.to_str().ok()?.trim()))
        .max()
}

/// Proxies may have joined several into one, by commas; a date has one too.
fn retry_after(value: &str, now_ms: i64) -> Option<u64> {
    let each = value.split(',').filter_map(|one| time::reset(one, now_ms));
    time::reset(value, now_ms).max(each.max())
}

/// Whether a header is the reset of a window in which nothing remains.
fn is_used_up(headers: &HeaderMap, name: &str) -> bool {
    const UNIFIED: &str = "anthropic-ratelimit-unified-";
    let any = |name: String, says: fn(&str) -> bool| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| value.to_str().is_ok_and(says))
    };
    if let Some(window) = name.strip_prefix(UNIFIED) {
        // Windows that are extras: being out of them is no reason to refuse what the plan covers.
        let is_extra = window.starts_with("overage") || window.starts_with("slow-budget");
        let status = window.strip_suffix("reset").filter(|_| !is_extra);
        return status.is_some_and(|window| {
            any(format!("{UNIFIED}{window}status"), |value| {
                value.trim().eq_ignore_ascii_case("rejected")
            })
        });
    }
    if name.starts_with("x-codex-") {
        let window = name
            .strip_suffix("-reset-after-seconds")
            .or_else(|| name.strip_suffix("-reset-at"));
        return window.is_some_and(|window| {
            any(format!("{window}-used-percent"), |value| {
                time::number(value).is_some_and(|percent| percent >= 100.0)
            })
        });
    }
    let Some((before, after)) = name.split_once("-reset") else {
        return false;
    };
    let is_limit = before.contains("ratelimit") || before.contains("rate-limit");
    let is_segment = after.is_empty() || after.starts_with('-');
    is_limit && is_segment && any(format!("{before}-remaining{after}"), time::is_used_up)
}

/// The combined field of the IETF's draft: `"name";r=0;t=30`, several of them split by commas, or,
/// as older versions had it, `limit=10, remaining=0, reset=30`. Its times are seconds from now.
fn draft(value: &str) -> Option<u64> {
    if value.contains(';') {
        value.split(',').filter_map(|one| window(one, ';')).max()
    } else {
        window(value, ',')
    }
}

fn window(text: &str, separator: char) -> Option<u64> {
    let parameter = |names: [&str; 2]| {
        let pairs = text.split(separator).filter_map(|one| one.split_once('='));
        let mut pairs = pairs.map(|(name, value)| (name.trim(), value.trim()));
        pairs.find_map(|(name, value)| names.contains(&name).then_some(value))
    };
    parameter(["r", "remaining"]).filter(|left| time::is_used_up(left))?;
    time::seconds(parameter(["t", "reset"])?)
}

#[cfg(test)]
mod tests;
