//! What real answers mean, and the waits that bodies state.
use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use std::{fs, path::PathBuf};

/// Monday, 30 November 2026, 00:00 UTC.
pub(super) const NOW_MS: i64 = 1_795_996_800_000;

pub(super) const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

pub(super) fn wait(lines: &[(&str, &str)], body: &str) -> Option<u64> {
    let headers = headers(lines);
    match judge(Protocol::OpenAi, 429, &headers, body.as_bytes(), NOW_MS) {
        Meaning::Limited(limited) => limited.wait_ms,
        other => panic!("a bare 429 is a limit, not {other:?}"),
    }
}

pub(super) fn check_headers(lines: &[(&str, &str)], expect: Option<u64>) {
    assert_eq!(wait(lines, ""), expect, "{lines:?}");
}

pub(super) fn check_retry_after(value: &str, expect: Option<u64>) {
    check_headers(&[("retry-after", value)], expect);
}

pub(super) fn check_body(body: &str, expect: Option<u64>) {
    assert_eq!(wait(&[], body), expect, "{body}");
}

fn check(protocol: Protocol, status: u16, body: &str, expect: Meaning) {
    let found = judge(protocol, status, &HeaderMap::new(), body.as_bytes(), NOW_MS);
    assert_eq!(found, expect, "{protocol} {status} {body}");
}

/// The raw answers below `tests/golden/verdict`, each with its protocol and name.
fn golden() -> Vec<(Protocol, String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/verdict");
    let mut found = Vec::new();
    for protocol in Protocol::ALL {
        for file in fs::read_dir(root.join(protocol.name())).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.push((protocol, name, fs::read_to_string(path).unwrap()));
        }
    }
    found.sort();
    found
}

fn parsed(answer: &str) -> (u16, HeaderMap, &[u8]) {
    let (head, body) = answer.split_once("\n\n").unwrap();
    let (status, lines) = head.split_once('\n').unwrap();
    let status = status.split(' ').nth(1).unwrap().parse().unwrap();
    let lines: Vec<_> = lines.lines().map(|l| l.split_once(": ").unwrap()).collect();
    (status, headers(&lines), body.trim_end().as_bytes())
}

#[test]
fn providers_answers_mean_what_they_say() {
    let mut lines = Vec::new();
    for (protocol, name, answer) in golden() {
        let (status, headers, body) = parsed(&answer);
        let meaning = judge(protocol, status, &headers, body, NOW_MS);
        lines.push(format!("{protocol} {name}: {meaning:?}"));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_cut_body_never_means_more_than_the_whole() {
    for (protocol, name, answer) in golden() {
        let (status, headers, body) = parsed(&answer);
        let whole = judge(protocol, status, &headers, body, NOW_MS);
        let bare = judge(protocol, status, &headers, b"", NOW_MS);
        let kind = std::mem::discriminant::<Meaning>;
        for cut in 0..body.len() {
            let found = judge(protocol, status, &headers, &body[..cut], NOW_MS);
            let is_between = kind(&found) == kind(&whole) || kind(&found) == kind(&bare);
            // The code may come before the cut, and the time that softens it after.
            let is_unsoftened = found == Meaning::BillingRefused;
            assert!(is_between || is_unsoftened, "{name} at {cut}: {found:?}");
        }
    }
}

#[test]
fn every_status_has_its_meaning() {
    let refused = Meaning::Refused {
        has_provider_shape: false,
    };
    for status in 0..=999 {
        let expect = match status {
            0..400 => Meaning::Accepted,
            401 => Meaning::AuthRefused,
            402 => Meaning::BillingRefused,
            429 => Meaning::Limited(Limited {
                wait_ms: None,
                is_quota: false,
            }),
            400..500 => Meaning::ClientsFault,
            503 | 529 => refused,
            521 | 522 | 523 | 525 | 526 | 530 => Meaning::OriginUnreached,
            _ => Meaning::Failed,
        };
        for protocol in Protocol::ALL {
            check(protocol, status, "", expect);
            check(protocol, status, "<html>busy</html>", expect);
            check(protocol, status, r#"{"message":"no"}"#, expect);
        }
    }
}

#[test]
fn a_limit_needs_neither_code_nor_json() {
    for body in [
        r#"{"error":{"message":"Rate limit exceeded"}}"#,
        "",
        "<html><body>429 Too Many Requests</body></html>",
        "slow down",
        "{\"error\":",
        "\u{feff}[]",
    ] {
        check_body(body, None);
    }
}

#[test]
fn a_client_cannot_sentence_an_account() {
    let fault = Meaning::ClientsFault;
    // Quoted requests, names of models, and sentences that only contain the provider's own.
    for body in [
        r#"{"detail":[{"type":"missing","input":{"code":"insufficient_quota","type":"API_KEY_INVALID"}}]}"#,
        r#"{"error":{"message":"Your credit balance is too low is not a valid model ID","code":400}}"#,
        r#"{"error":{"message":"Incorrect API key provided is not a valid model ID","code":400}}"#,
        r#"{"error":{"message":"no model insufficient_quota","param":{"code":"invalid_api_key"}}}"#,
        r#"{"error":{"metadata":{"raw":"{\"code\":\"insufficient_quota\"}"}}}"#,
        r#"{"input":{"error":{"code":"insufficient_quota"}}}"#,
    ] {
        check(Protocol::OpenAi, 400, body, fault);
        check(Protocol::FalQueue, 400, body, fault);
        check(Protocol::Gemini, 403, body, fault);
    }
    let body = r#"{"error":{"message":"model: Your credit balance is too low"}}"#;
    check(Protocol::Anthropic, 400, body, fault);
    let code = r#"{"error":{"code":"insufficient_quota"}}"#;
    for status in [404, 409, 413, 422] {
        check(Protocol::OpenAi, status, code, fault);
    }
}

#[test]
fn a_code_of_the_quota_with_a_time_cools_and_without_one_refuses() {
    let quota = |wait_ms| {
        Meaning::Limited(Limited {
            wait_ms: Some(wait_ms),
            is_quota: true,
        })
    };
    let code = r#"{"error":{"code":"insufficient_quota"}}"#;
    check(Protocol::OpenAi, 429, code, Meaning::BillingRefused);
    check(Protocol::OpenAi, 403, code, Meaning::BillingRefused);
    let timed = r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":5}}"#;
    check(Protocol::OpenAi, 429, timed, quota(5000));
    let past = r#"{"error":{"type":"usage_limit_reached","resets_at":1700000000}}"#;
    check(Protocol::OpenAi, 429, past, quota(0));
    let unclear = r#"{"error":{"type":"usage_limit_reached","resets_at":"soon"}}"#;
    check(Protocol::OpenAi, 429, unclear, Meaning::BillingRefused);
    let by_header = judge(
        Protocol::OpenAi,
        429,
        &headers(&[("retry-after", "7")]),
        code.as_bytes(),
        NOW_MS,
    );
    assert_eq!(by_header, quota(7000));
}

#[test]
fn only_the_providers_own_error_proves_who_refused() {
    let shaped = |is| Meaning::Refused {
        has_provider_shape: is,
    };
    let openai = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
    let anthropic = r#"{"type":"error","error":{"type":"overloaded_error"}}"#;
    let gemini = r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#;
    let fal = r#"{"detail":"no runner"}"#;
    let own = [
        (Protocol::OpenAi, openai),
        (Protocol::OpenAiVideos, openai),
        (Protocol::Anthropic, anthropic),
        (Protocol::Gemini, gemini),
        (Protocol::FalQueue, fal),
    ];
    for (protocol, body) in own {
        check(protocol, 503, body, shaped(true));
        check(protocol, 529, body, shaped(true));
        for foreign in [
            "",
            "upstream connect error",
            r#"{"message":"no healthy upstream"}"#,
            r#"{"status":503,"error":"Service Unavailable","path":"/v1"}"#,
            r#"{"title":"busy","status":503,"detail":"origin"}"#,
        ] {
            check(protocol, 503, foreign, shaped(false));
        }
    }
    check(Protocol::FalQueue, 503, openai, shaped(false));
    check(Protocol::Anthropic, 503, openai, shaped(false));
}

#[test]
fn sentences_state_waits() {
    for (text, expect) in [
        ("Please try again in 7m12s.", Some(432_000)),
        ("Please try again in 850ms. Visit", Some(850)),
        ("try again in 20s", Some(20_000)),
        ("Please TRY AGAIN in 50.597142857s.", Some(50_598)),
        ("Please retry in 40.812s.", Some(40_812)),
        ("Please retry after 45 seconds. Please go", Some(45_000)),
        ("Your limit resets in 3 days", Some(3 * DAY_MS)),
        ("quota will reset after 2h15m10s.", Some(8_110_000)),
        ("try again in 2 hours and 5 minutes", Some(7_500_000)),
        ("try again in 1 day, 2 hours", Some(26 * HOUR_MS)),
        ("try again in about 2 hours", Some(2 * HOUR_MS)),
        ("Please wait 5 minutes", Some(300_000)),
        (
            "You will regain access on 2026-12-01 at 00:00 UTC.",
            Some(DAY_MS),
        ),
        (
            "You will regain access on 2026-11-01 at 00:00 UTC.",
            Some(0),
        ),
        ("You will regain access on 2026-13-01 at 00:00 UTC.", None),
        ("try again in 20", None),
        ("try again in a moment", None),
        ("try again in 5 models", None),
        ("Limit 20s, used 30s", None),
        ("try again in ", None),
    ] {
        check_body(text, expect);
        let json = serde_json::json!({ "error": { "message": text } });
        check_body(&json.to_string(), expect);
        check_body(&serde_json::json!({ "detail": text }).to_string(), expect);
    }
}

#[test]
fn fields_state_waits() {
    for (body, expect) in [
        (r#"{"error":{"resets_at":1796000400}}"#, Some(HOUR_MS)),
        (
            r#"{"error":{"resets_at":1796000400.5}}"#,
            Some(HOUR_MS + 500),
        ),
        (r#"{"error":{"resets_at":"1796000400"}}"#, Some(HOUR_MS)),
        (
            r#"{"error":{"resets_at":"2026-11-30T01:00:00Z"}}"#,
            Some(HOUR_MS),
        ),
        (r#"{"error":{"resets_at":null}}"#, None),
        (r#"{"error":{"resets_in_seconds":90}}"#, Some(90_000)),
        (r#"{"resets_in_seconds":1.5}"#, Some(1500)),
        (r#"{"error":{"resets_in_seconds":90,"#, Some(90_000)),
        (r#"{"error":{"resets_in_seconds":90"#, None),
        (
            r#"{"error":{"metadata":{"retry_after_seconds":30}}}"#,
            Some(30_000),
        ),
        (r#"{"error":{"retry_after":2.5}}"#, Some(2500)),
        (r#"{"error":{"retry_after_ms":250}}"#, Some(250)),
        (
            r#"{"error":{"details":[{"retryDelay":"41s"}]}}"#,
            Some(41_000),
        ),
        (
            r#"{"error":{"details":[{"a":1},{"retryDelay":"41.5s"}]}}"#,
            Some(41_500),
        ),
        (r#"[{"error":{"details":[{"retryDelay":"41s"#, None),
        (r#"[{"error":{"details":[{"retryDelay":"41s""#, Some(41_000)),
        (r#"{"echo":{"resets_in_seconds":90}}"#, None),
        (
            r#"{"error":{"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1796000400000"}}}}"#,
            Some(HOUR_MS),
        ),
        (
            r#"{"error":{"metadata":{"headers":{"X-RateLimit-Remaining":"1","X-RateLimit-Reset":"1796000400000"}}}}"#,
            None,
        ),
    ] {
        check_body(body, expect);
    }
}

#[test]
fn what_stands_beyond_the_first_64_kib_is_not_read() {
    let body = |filling: usize| {
        let text = "x".repeat(filling);
        format!(r#"{{"text":"{text}","resets_in_seconds":9}}"#)
    };
    check_body(&body(MAX_BODY_BYTES / 2), Some(9000));
    check_body(&body(MAX_BODY_BYTES), None);
}

fn limited_wait(meaning: Meaning) -> Option<u64> {
    match meaning {
        Meaning::Limited(limited) => limited.wait_ms,
        _ => None,
    }
}

fn any_protocol() -> impl Strategy<Value = Protocol> {
    proptest::sample::select(Protocol::ALL.as_slice())
}

/// Headers and values that are hints, nearly hints, or noise.
fn any_header() -> impl Strategy<Value = (&'static str, String)> {
    let names = proptest::sample::select(vec![
        "retry-after",
        "retry-after-ms",
        "ratelimit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
        "anthropic-ratelimit-unified-status",
        "anthropic-ratelimit-unified-reset",
        "x-codex-primary-used-percent",
        "x-codex-primary-reset-at",
    ]);
    let values = prop_oneof![
        Just("0".to_owned()),
        Just("rejected".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        "[0-9]{1,4}(ms|s|m|h|d)",
        "[ -~]{0,30}",
    ];
    (names, values)
}

/// Texts made of the pieces that bodies are made of, so that more than noise is met.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "\\",
            "\"error\":{",
            "\"details\":[{",
            "\"message\":\"",
            "\"resets_at\":",
            "\"retryDelay\":\"",
            "try again in ",
            "access on ",
            "2026-12-01 at 00:00 UTC",
            "1e309",
            "insufficient_quota",
            "\"code\":\"",
            "7m12s",
            "é",
            "\u{feff}",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_answer_causes_a_panic_or_an_endless_wait(
        protocol in any_protocol(),
        status in 0_u16..1000,
        lines in proptest::collection::vec(any_header(), 0..8),
        body in any_body(),
        now_ms in any::<i64>(),
    ) {
        let lines: Vec<_> = lines.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let meaning = judge(protocol, status, &headers(&lines), &body, now_ms);
        prop_assert!(limited_wait(meaning).unwrap_or(0) <= MAX_WAIT_MS);
        prop_assert_eq!(meaning == Meaning::Accepted, status < 400);
    }

    #[test]
    fn one_more_header_never_shortens_the_wait(
        protocol in any_protocol(),
        mut lines in proptest::collection::vec(any_header(), 0..8),
        more in any_header(),
        body in any_body(),
    ) {
        let judged = |lines: &[(&str, String)]| {
            let lines: Vec<_> = lines.iter().map(|(n, v)| (*n, v.as_str())).collect();
            limited_wait(judge(protocol, 429, &headers(&lines), &body, NOW_MS))
        };
        let before = judged(&lines);
        lines.push(more);
        prop_assert!(judged(&lines) >= before);
    }

    #[test]
    fn a_stated_number_of_seconds_is_the_wait(seconds in 0_u32..34_000_000) {
        check_retry_after(&seconds.to_string(), Some(u64::from(seconds) * 1000));
        let body = format!(r#"{{"error":{{"resets_in_seconds":{seconds}}}}}"#);
        check_body(&body, Some(u64::from(seconds) * 1000));
    }
}
