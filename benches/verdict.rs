//! What it costs to judge an answer: nothing where it is a success, little where it is not.
use divan::{Bencher, black_box};
use fairlane::{
    domain::{dispatch::meaning::Meaning, protocol::Protocol},
    protocol::verdict::{MAX_BODY_BYTES, judge},
};
use http::{HeaderMap, HeaderValue};

fn main() {
    divan::main();
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-request-id", "req_0123456789abcdef"),
        ("x-ratelimit-limit-requests", "500"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1m12.5s"),
        ("x-ratelimit-limit-tokens", "30000"),
        ("x-ratelimit-remaining-tokens", "29000"),
        ("x-ratelimit-reset-tokens", "850ms"),
        ("retry-after", "72"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

fn bench(bencher: Bencher<'_, '_>, status: u16, body: &[u8]) {
    let headers = headers();
    let meaning = judge(Protocol::OpenAi, status, &headers, body, 0);
    let is_taken = meaning == Meaning::Accepted;
    assert_eq!(is_taken, status < 400, "the sample is not read");
    bencher.bench_local(|| judge(Protocol::OpenAi, status, &headers, black_box(body), 0));
}

#[divan::bench]
fn success(bencher: Bencher<'_, '_>) {
    bench(bencher, 200, b"{}");
}

#[divan::bench]
fn limit(bencher: Bencher<'_, '_>) {
    let body = br#"{"error":{"message":"Rate limit reached. Please try again in 1m12.5s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;
    bench(bencher, 429, body);
}

#[divan::bench]
fn longest_body(bencher: Bencher<'_, '_>) {
    bench(
        bencher,
        429,
        "try again in 5s ".repeat(MAX_BODY_BYTES / 16).as_bytes(),
    );
}
