//! What it costs to peek into a request's body, from the first byte to the answer.
use divan::{Bencher, black_box, counter::BytesCount};
use fairlane::protocol::peek::{BodyPeek, PeekError, Peeked};

/// How much of a body a connection reads at a time.
const PIECE_BYTES: usize = 64 * 1024;

fn main() {
    divan::main();
}

fn peek(body: &[u8], encoding: Option<&[u8]>) -> Result<Peeked, PeekError> {
    let mut peek = BodyPeek::new(Some(b"application/json"), encoding, u64::MAX)?;
    for piece in body.chunks(PIECE_BYTES) {
        peek.feed(piece)?;
    }
    peek.finish()
}

fn bench(bencher: Bencher<'_, '_>, body: &[u8], encoding: Option<&[u8]>) {
    let found = peek(body, encoding).ok().and_then(|peeked| peeked.model);
    assert_eq!(found.as_deref(), Some("gpt-4o"), "the sample is not read");
    bencher
        .counter(BytesCount::of_slice(body))
        .bench_local(|| peek(black_box(body), encoding));
}

/// A conversation of so many bytes, in messages of some 100 bytes with line breaks and quotes.
fn conversation(bytes: usize) -> Vec<u8> {
    let mut text = String::from(r#"{"stream":true,"messages":["#);
    while text.len() < bytes {
        text.push_str(
            r#"{"role":"user","content":"fn main() {\n    println!(\"hello\");\n}\nWhat does this do?"},"#,
        );
    }
    text.push_str(r#"{}],"model":"gpt-4o"}"#);
    text.into_bytes()
}

fn one_string(bytes: usize) -> Vec<u8> {
    let text = "QUJD".repeat(bytes / 4);
    format!(r#"{{"input":"{text}","model":"gpt-4o"}}"#).into_bytes()
}

#[divan::bench]
fn chat_4_kib(bencher: Bencher<'_, '_>) {
    bench(bencher, &conversation(4 << 10), None);
}

#[divan::bench]
fn many_strings_200_kib(bencher: Bencher<'_, '_>) {
    bench(bencher, &conversation(200 << 10), None);
}

#[divan::bench]
fn one_string_256_kib(bencher: Bencher<'_, '_>) {
    bench(bencher, &one_string(256 << 10), None);
}

#[divan::bench]
fn image_5_mib(bencher: Bencher<'_, '_>) {
    bench(bencher, &one_string(5 << 20), None);
}

#[divan::bench]
fn zstd_of_40_kib(bencher: Bencher<'_, '_>) {
    match zstd::encode_all(&*conversation(40 << 10), 3) {
        Ok(body) => bench(bencher, &body, Some(b"zstd")),
        Err(error) => panic!("the sample cannot be made: {error}"),
    }
}
