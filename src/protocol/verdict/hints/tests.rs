//! Every form in which headers state a wait.
use super::super::{
    MAX_WAIT_MS,
    tests::{HOUR_MS, check_body, check_headers, check_retry_after, wait},
};

#[test]
fn retry_after_is_read_in_every_form() {
    for (value, expect) in [
        ("20", 20_000),
        (" 20 ", 20_000),
        ("1.5", 1500),
        ("0.0001", 1),
        (".25", 250),
        ("1e2", 100_000),
        ("20s", 20_000),
        ("Mon, 30 Nov 2026 00:00:20 GMT", 20_000),
        ("mon, 30 nov 2026 00:00:20 gmt", 20_000),
        ("Monday, 30-Nov-26 00:00:20 GMT", 20_000),
        ("monday, 30-nov-26 00:00:20 gmt", 20_000),
        ("Mon Nov 30 00:00:20 2026", 20_000),
        ("mon nov 30 00:00:20 2026", 20_000),
        ("2026-11-30T00:00:20Z", 20_000),
        ("1795996820", 20_000),
        ("1, 30", 30_000),
    ] {
        check_retry_after(value, Some(expect));
    }
}

#[test]
fn what_is_past_is_a_wait_of_nothing() {
    for value in [
        "0",
        "-5",
        "-0.0",
        "0s",
        "Sun, 29 Nov 2026 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "1700000000",
    ] {
        check_retry_after(value, Some(0));
    }
    check_body(r#"{"error":{"resets_at":-7}}"#, Some(0));
    check_body(r#"{"error":{"resets_in_seconds":0}}"#, Some(0));
    check_body(r#"{"error":{"resets_in_seconds":-3}}"#, Some(0));
}

#[test]
fn what_cannot_be_read_is_as_if_it_were_not_there() {
    for value in [
        "",
        "soon",
        "NaN",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "1.2.3",
        "0x10",
        "-",
        ".",
        "e",
        "5 x",
        "Mon, 30 Foo 2026 00:00:20 GMT",
        "20 seconds ago",
        "12:00",
    ] {
        check_retry_after(value, None);
        check_headers(&[("retry-after", value), ("retry-after-ms", "5")], Some(5));
    }
}

#[test]
fn no_wait_is_longer_than_the_longest_believed() {
    let longest = Some(MAX_WAIT_MS);
    for value in [
        "1e30",
        "1000000000000000000000000000000",
        "1e999",
        "999999999",
        "9999999w",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "9998-12-31T23:59:59Z",
    ] {
        check_retry_after(value, longest);
    }
    check_body(r#"{"error":{"resets_at":1e300}}"#, longest);
    check_body(r#"{"error":{"resets_in_seconds":1e30}}"#, longest);
    check_body("try again in 99999999999999999999 days", longest);
}

#[test]
fn the_longest_of_all_hints_wins() {
    check_headers(
        &[("retry-after", "1"), ("retry-after-ms", "2500")],
        Some(2500),
    );
    check_headers(&[("retry-after", "1"), ("retry-after", "30")], Some(30_000));
    let body =
        r#"{"error":{"message":"try again in 20s, resets in 1 minute","resets_in_seconds":5}}"#;
    assert_eq!(wait(&[("retry-after", "40")], body), Some(60_000));
    assert_eq!(wait(&[("retry-after", "90")], body), Some(90_000));
}

#[test]
fn a_window_counts_where_nothing_remains_in_it() {
    let of = |left, reset| {
        [
            ("x-ratelimit-remaining-tokens", left),
            ("x-ratelimit-reset-tokens", reset),
            ("x-ratelimit-remaining-requests", "7"),
            ("x-ratelimit-reset-requests", "1h"),
        ]
    };
    for (reset, expect) in [
        ("1s", 1000),
        ("850ms", 850),
        ("6m0s", 360_000),
        ("1h2m3.5s", 3_723_500),
        ("1d2h", 26 * HOUR_MS),
        ("7.66s", 7660),
        ("12", 12_000),
        ("12.25", 12_250),
        ("1795996830", 30_000),
        ("1795996830500", 30_500),
        ("2026-11-30T00:00:30.5Z", 30_500),
    ] {
        check_headers(&of("0", reset), Some(expect));
        check_headers(&of("0.0", reset), Some(expect));
        check_headers(&of("-1", reset), Some(expect));
        check_headers(&of("1", reset), None);
        check_headers(&of("", reset), None);
        check_headers(&of("none", reset), None);
    }
    check_headers(&[("x-ratelimit-reset-tokens", "9s")], None);
}

#[test]
fn windows_of_every_family_are_known() {
    for (left, reset) in [
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("x-rate-limit-remaining", "x-rate-limit-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
        ("ratelimitbysize-remaining", "ratelimitbysize-reset"),
        (
            "x-ratelimit-remaining-requests-day",
            "x-ratelimit-reset-requests-day",
        ),
        (
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ),
        (
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ),
        (
            "anthropic-ratelimit-input-tokens-remaining",
            "anthropic-ratelimit-input-tokens-reset",
        ),
        (
            "anthropic-ratelimit-output-tokens-remaining",
            "anthropic-ratelimit-output-tokens-reset",
        ),
    ] {
        for value in ["15", "2026-11-30T00:00:15Z"] {
            check_headers(&[(left, "0"), (reset, value)], Some(15_000));
            check_headers(&[(left, "3"), (reset, value)], None);
        }
    }
}

#[test]
fn subscription_windows_count_where_they_refused() {
    let unified = |window: &str, status: &str| {
        let name = |what| format!("anthropic-ratelimit-unified-{window}{what}");
        let (status_name, reset_name) = (name("status"), name("reset"));
        wait(&[(&status_name, status), (&reset_name, "1796000400")], "")
    };
    for window in ["", "5h-", "7d-", "7d_opus-"] {
        assert_eq!(unified(window, "rejected"), Some(HOUR_MS), "{window}");
        assert_eq!(unified(window, "allowed_warning"), None, "{window}");
    }
    assert_eq!(unified("overage-", "rejected"), None);
    let codex = |used| {
        [
            ("x-codex-secondary-used-percent", used),
            ("x-codex-secondary-reset-after-seconds", "60"),
        ]
    };
    check_headers(&codex("100"), Some(60_000));
    check_headers(&codex("99.5"), None);
}

#[test]
fn the_drafts_combined_field_is_read() {
    for (value, expect) in [
        (r#""default";r=0;t=30"#, Some(30_000)),
        (r#""minute";r=0;t=30, "day";r=0;t=3600"#, Some(HOUR_MS)),
        (r#""minute";r=0;t=30, "day";r=5;t=3600"#, Some(30_000)),
        (r#""default";r=1;t=30"#, None),
        (r#""default";t=30"#, None),
        ("limit=10, remaining=0, reset=50", Some(50_000)),
        ("limit=10, remaining=4, reset=50", None),
        ("nonsense", None),
    ] {
        check_headers(&[("ratelimit", value)], expect);
    }
}
