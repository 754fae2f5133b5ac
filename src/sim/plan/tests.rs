//! What is planned for the wire is what a rule asked for, byte by byte.
use super::*;
use crate::sim::{
    act::{Encoding, Informational},
    reply::Pace,
};

const KEPT: Asked = Asked {
    head_only: false,
    keep_alive: true,
};

fn stream() -> Reply {
    Reply {
        status: 200,
        headers: Vec::new(),
        body: Body::Pieces(vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cdef")]),
        pace: Pace::default(),
    }
}

fn whole() -> Reply {
    Reply {
        body: Body::Whole(Bytes::from_static(b"abcdef")),
        ..stream()
    }
}

/// Steps as text: writes as they are, with `|` between them, waits as `<ms>`.
fn shown(plan: &Plan) -> String {
    let steps = plan.steps.iter().map(|step| match step {
        Step::Write(bytes) => String::from_utf8_lossy(bytes).replace("\r\n", "~"),
        Step::Fill(bytes) => format!("<fill {bytes}>"),
        Step::Wait(time) => format!("<{}>", time.as_millis()),
        Step::Stall => "<stall>".to_owned(),
    });
    let steps = steps.collect::<Vec<_>>().join("|");
    let end = match (plan.end, plan.is_whole) {
        (End::KeepAlive, true) => "",
        (End::KeepAlive, false) => " broken",
        (End::Close, true) => " close",
        (End::Close, false) => " broken close",
        (End::Reset, true) => " reset",
        (End::Reset, false) => " broken reset",
    };
    format!("{steps}{end}")
}

fn check(reply: Reply, act: &str, expect: &str) {
    let act: Act = serde_json::from_str(act).unwrap();
    let reply = reply.scripted(&act);
    assert_eq!(shown(&scripted(&reply, &act, KEPT)), expect, "{act:?}");
}

const CHUNKED: &str = "HTTP/1.1 200 OK~transfer-encoding: chunked~~";
const SIX: &str = "HTTP/1.1 200 OK~content-length: 6~~";

#[test]
fn an_undisturbed_answer_goes_out_in_one_write() {
    let got = plain(whole(), KEPT);
    assert_eq!(shown(&got), format!("{SIX}abcdef"));
    let got = plain(stream(), KEPT);
    assert_eq!(shown(&got), format!("{CHUNKED}|2~ab~4~cdef~0~~"));
}

#[test]
fn a_paced_answer_waits_where_a_model_would() {
    let mut reply = stream();
    let ms = Duration::from_millis;
    reply.pace = Pace {
        before_head: ms(1),
        before_first: ms(2),
        between: ms(3),
    };
    let expect = format!("<1>|{CHUNKED}|<2>|2~ab~|<3>|4~cdef~|0~~");
    assert_eq!(shown(&plain(reply, KEPT)), expect);
}

#[test]
fn head_requests_and_bodiless_statuses_get_no_body() {
    let head_only = Asked {
        head_only: true,
        ..KEPT
    };
    assert_eq!(shown(&plain(whole(), head_only)), SIX);
    check(whole(), r#"{"status":204}"#, "HTTP/1.1 204 No Content~~");
}

#[test]
fn a_connection_that_ends_says_so() {
    let asked = Asked {
        keep_alive: false,
        ..KEPT
    };
    let expect = "HTTP/1.1 200 OK~content-length: 6~connection: close~~abcdef close";
    assert_eq!(shown(&plain(whole(), asked)), expect);
}

#[test]
fn scripted_chunks_are_one_write_each() {
    check(
        whole(),
        r#"{"chunks":["a\r","\nb"],"headers":[["content-type","x/y"]]}"#,
        "HTTP/1.1 200 OK~content-type: x/y~transfer-encoding: chunked~~|2~a\r~|2~\nb~|0~~",
    );
    check(
        stream(),
        r#"{"split_every":4}"#,
        &format!("{CHUNKED}|4~abcd~|2~ef~|0~~"),
    );
    check(whole(), r#"{"split_every":4}"#, &format!("{SIX}|abcd|ef"));
}

#[test]
fn framing_is_as_told() {
    check(
        whole(),
        r#"{"framing":"chunked"}"#,
        &format!("{CHUNKED}|6~abcdef~|0~~"),
    );
    check(
        stream(),
        r#"{"framing":"content_length"}"#,
        &format!("{SIX}|ab|cdef"),
    );
    check(
        whole(),
        r#"{"framing":"until_close"}"#,
        "HTTP/1.1 200 OK~connection: close~~|abcdef close",
    );
    check(
        whole(),
        r#"{"claim_bytes":9}"#,
        "HTTP/1.1 200 OK~content-length: 9~~|abcdef broken",
    );
    check(
        whole(),
        r#"{"trailers":[["x-sum","1"]]}"#,
        &format!("{CHUNKED}|6~abcdef~|0~x-sum: 1~~"),
    );
    check(
        whole(),
        r#"{"headers":[["Content-Length","06"]]}"#,
        "HTTP/1.1 200 OK~Content-Length: 06~~|abcdef",
    );
}

#[test]
fn connections_break_off_where_told() {
    check(stream(), r#"{"close":"before_headers"}"#, " broken close");
    check(
        stream(),
        r#"{"close":"mid_headers"}"#,
        "HTTP/1.1 200 OK~transf broken close",
    );
    check(
        stream(),
        r#"{"close":"after_headers"}"#,
        &format!("{CHUNKED} broken close"),
    );
    check(
        stream(),
        r#"{"close":"mid_body"}"#,
        &format!("{CHUNKED}|2~ab~ broken close"),
    );
    check(
        whole(),
        r#"{"close":"mid_body"}"#,
        &format!("{SIX}|abc broken close"),
    );
    check(
        stream(),
        r#"{"close":"mid_chunk"}"#,
        &format!("{CHUNKED}|2~ab~|4~cd broken close"),
    );
    check(
        whole(),
        r#"{"close":"mid_chunk"}"#,
        &format!("{CHUNKED}|6~abc broken close"),
    );
    check(
        stream(),
        r#"{"close":"no_terminator"}"#,
        &format!("{CHUNKED}|2~ab~|4~cdef~ broken close"),
    );
    check(
        stream(),
        r#"{"close":"after_body"}"#,
        &format!("{CHUNKED}|2~ab~|4~cdef~|0~~ close"),
    );
}

#[test]
fn a_break_can_be_moved_and_made_hard() {
    check(
        stream(),
        r#"{"close":"mid_body","close_after":2}"#,
        &format!("{CHUNKED}|2~ab~|4~cdef~ broken close"),
    );
    check(
        stream(),
        r#"{"close":"mid_body","close_after":1,"rst":true}"#,
        &format!("{CHUNKED}|2~ab~ broken reset"),
    );
    check(
        stream(),
        r#"{"close":"before_headers","rst":true}"#,
        " broken reset",
    );
    check(whole(), r#"{"rst":true}"#, &format!("{SIX}|abcdef reset"));
}

#[test]
fn heads_can_be_slow_and_preceded() {
    check(
        whole(),
        r#"{"delay_headers_ms":7,"head_slice_bytes":30,"head_slice_delay_ms":5}"#,
        "<7>|HTTP/1.1 200 OK~content-lengt|<5>|h: 6~~|abcdef",
    );
    let interim = Informational {
        status: 103,
        headers: vec![("link".into(), "</a>".into())],
        delay_ms: 4,
    };
    let act = Act {
        informational: vec![interim],
        ..Act::default()
    };
    let got = shown(&scripted(&whole(), &act, KEPT));
    let expect = format!("<4>|HTTP/1.1 103 Early Hints~link: </a>~~|{SIX}|abcdef");
    assert_eq!(got, expect);
}

#[test]
fn a_stall_lasts() {
    check(
        stream(),
        r#"{"stall_after":0}"#,
        &format!("{CHUNKED}|<stall> broken"),
    );
    check(
        stream(),
        r#"{"stall_after":1}"#,
        &format!("{CHUNKED}|2~ab~|<stall> broken"),
    );
}

#[test]
fn raw_bytes_are_all_there_is() {
    check(
        whole(),
        r#"{"raw":"HTTP/1.1 2xx\r\n"}"#,
        "HTTP/1.1 2xx~ close",
    );
    check(whole(), r#"{"raw":"abc","split_every":2}"#, "ab|c close");
}

#[test]
fn filling_is_framed_like_any_body() {
    check(
        whole(),
        r#"{"fill_bytes":255,"headers":[["content-type","x/y"]]}"#,
        "HTTP/1.1 200 OK~content-type: x/y~content-length: 255~~|<fill 255>",
    );
    check(
        whole(),
        r#"{"fill_bytes":255,"framing":"chunked","headers":[["content-type","x/y"]]}"#,
        "HTTP/1.1 200 OK~content-type: x/y~transfer-encoding: chunked~~|ff~|<fill 255>|~|0~~",
    );
    check(
        whole(),
        r#"{"fill_bytes":8,"close":"mid_body","headers":[["content-type","x/y"]]}"#,
        "HTTP/1.1 200 OK~content-type: x/y~content-length: 8~~|<fill 4> broken close",
    );
}

#[test]
fn compressed_pieces_can_each_be_decoded_at_once() {
    use std::io::{Read as _, Write as _};
    let Body::Pieces(pieces) = stream()
        .scripted(&Act {
            encoding: Some(Encoding::Gzip),
            ..Act::default()
        })
        .body
    else {
        panic!("still pieces");
    };
    let mut decoder = flate2::write::GzDecoder::new(Vec::new());
    decoder.write_all(&pieces[0]).unwrap();
    decoder.flush().unwrap();
    assert_eq!(decoder.get_ref(), b"ab");
    for (encoding, name) in [(Encoding::Zstd, "zstd"), (Encoding::Deflate, "deflate")] {
        let reply = whole().scripted(&Act {
            encoding: Some(encoding),
            ..Act::default()
        });
        assert!(
            reply
                .headers
                .iter()
                .any(|(n, v)| n == "content-encoding" && v == name)
        );
        let Body::Whole(bytes) = reply.body else {
            panic!("still whole");
        };
        let mut text = String::new();
        let read = match encoding {
            Encoding::Zstd => zstd::stream::read::Decoder::new(&bytes[..])
                .unwrap()
                .read_to_string(&mut text),
            _ => flate2::read::ZlibDecoder::new(&bytes[..]).read_to_string(&mut text),
        };
        read.unwrap();
        assert_eq!(text, "abcdef");
    }
}
