//! Requests are read from the wire as they are, whole or broken.
use super::*;

/// Feeds `wire` in pieces of every size and expects the same body from each.
fn check(framing: Framing, wire: &[u8], expect: Result<(&[u8], bool), Malformed>) {
    for size in 1..=wire.len() {
        let mut reader = BodyReader::new(framing, 1024, true);
        let mut buffer = BytesMut::new();
        let fed = wire.chunks(size).try_for_each(|piece| {
            buffer.extend_from_slice(piece);
            reader.feed(&mut buffer).map(|_| ())
        });
        let got = fed.map(|()| reader.finish());
        match (got, expect) {
            (Ok(got), Ok((body, complete))) => {
                assert_eq!((&*got.held, got.complete), (body, complete), "by {size}");
                assert_eq!(got.sha256, Some(crate::digest::sha256(body)));
                assert_eq!(got.length, body.len() as u64);
            }
            (got, expect) => assert_eq!(got.err(), expect.err(), "by {size}"),
        }
    }
}

#[test]
fn bodies_are_read_the_same_however_they_are_cut() {
    check(Framing::Fixed(5), b"hello", Ok((b"hello", true)));
    check(Framing::Fixed(6), b"hello", Ok((b"hello", false)));
    check(
        Framing::Chunked,
        b"5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\n\r\n",
        Ok((b"hello!", true)),
    );
    check(Framing::Chunked, b"A\r\n01234", Ok((b"01234", false)));
    check(
        Framing::Chunked,
        b"5\r\nhello\r\n0\r\n",
        Ok((b"hello", false)),
    );
}

#[test]
fn chunks_that_are_none_are_refused() {
    check(Framing::Chunked, b"zz\r\n", Err(Malformed));
    check(Framing::Chunked, b"1\r\nabc\r\n", Err(Malformed));
}

#[test]
fn what_follows_a_body_stays_in_the_buffer() {
    let mut buffer = BytesMut::from(&b"helloGET"[..]);
    let mut reader = BodyReader::new(Framing::Fixed(5), 1024, false);
    assert_eq!(reader.feed(&mut buffer), Ok(true));
    assert_eq!(&buffer[..], b"GET");
}

#[test]
fn a_long_body_is_hashed_without_being_held() {
    let mut reader = BodyReader::new(Framing::Fixed(1 << 20), 16, true);
    let mut buffer = BytesMut::new();
    for _ in 0..1024 {
        buffer.extend_from_slice(&[7; 1024]);
        reader.feed(&mut buffer).unwrap();
    }
    let got = reader.finish();
    assert_eq!(got.held.len(), 16);
    assert_eq!(got.length, 1 << 20);
    assert!(got.complete && !got.is_held());
    assert_eq!(got.sha256, Some(crate::digest::sha256(&vec![7; 1 << 20])));
}

#[test]
fn trailers_of_a_request_are_kept() {
    let mut buffer = BytesMut::from(&b"0\r\nX-Sum: 12\r\n\r\n"[..]);
    let mut reader = BodyReader::new(Framing::Chunked, 16, false);
    assert_eq!(reader.feed(&mut buffer), Ok(true));
    assert_eq!(reader.finish().trailers, [("X-Sum".into(), "12".into())]);
}

#[test]
fn a_head_keeps_order_case_and_bytes() {
    let raw = b"POST /v1/a%2Fb?x=%20&x= HTTP/1.1\r\nX-Dup: 1\r\nhOST: h\r\nX-Dup: \xff\r\n\
        Content-Length: 3\r\nExpect: 100-continue\r\n\r\nabc";
    let mut buffer = BytesMut::from(&raw[..]);
    let head = take_head(&mut buffer).unwrap().unwrap();
    assert_eq!(head.target, "/v1/a%2Fb?x=%20&x=");
    assert_eq!(head.query("x"), Some("%20"));
    assert_eq!(head.path(), "/v1/a%2Fb");
    let names: Vec<_> = head.headers.iter().map(|(n, _)| &n[..]).collect();
    assert_eq!(
        names,
        [
            &b"X-Dup"[..],
            b"hOST",
            b"X-Dup",
            b"Content-Length",
            b"Expect"
        ]
    );
    assert_eq!(&head.headers[2].1[..], b"\xff");
    assert_eq!(head.framing, Framing::Fixed(3));
    assert!(head.expects_continue && head.keep_alive);
    assert_eq!(&buffer[..], b"abc");
}

#[test]
fn a_head_is_awaited_or_refused() {
    let parse = |raw: &[u8]| take_head(&mut BytesMut::from(raw)).map(|h| h.is_some());
    assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: h\r\n"), Ok(false));
    assert_eq!(parse(b"\x16\x03\x01 hello\r\n\r\n"), Err(Malformed));
    assert_eq!(
        parse(b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        Err(Malformed)
    );
}

#[test]
fn the_connection_header_decides_over_the_version() {
    let keeps = |raw: &str| {
        let mut buffer = BytesMut::from(raw);
        take_head(&mut buffer).unwrap().unwrap().keep_alive
    };
    assert!(keeps("GET / HTTP/1.1\r\n\r\n"));
    assert!(!keeps("GET / HTTP/1.0\r\n\r\n"));
    assert!(!keeps("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"));
    assert!(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}
