//! What is read of an answer reaches whoever gets it.
use super::*;
use crate::ports::{AnswerBody, BrokenOff};
use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use http_body_util::{Full, StreamBody};

fn answer(status: u16, body: AnswerBody) -> Answer {
    let (head, ()) = Response::builder()
        .status(status)
        .body(())
        .unwrap()
        .into_parts();
    Answer { head, body }
}

async fn check(status: u16, parts: &[&'static str], expect: Meaning) {
    let frames = parts
        .iter()
        .map(|p| Ok(Frame::data(Bytes::from_static(p.as_bytes()))));
    let body = StreamBody::new(futures_util::stream::iter(frames.collect::<Vec<_>>()));
    let (meaning, judged) = judged(Protocol::OpenAi, answer(status, Box::pin(body))).await;
    assert_eq!(meaning, expect);
    let got = judged.body.collect().await.unwrap().to_bytes();
    assert_eq!(got, parts.concat());
}

#[tokio::test(start_paused = true)]
async fn an_error_is_judged_whole_and_passed_on_whole() {
    check(200, &["a", "b"], Meaning::Accepted).await;
    check(402, &["pay"], Meaning::BillingRefused).await;
    check(404, &[], Meaning::ClientsFault).await;
    let parts = [r#"{"error":{"code":"insuffi"#, r#"cient_quota"}}"#];
    check(429, &parts, Meaning::BillingRefused).await;
}

#[tokio::test(start_paused = true)]
async fn the_length_stays_known_whatever_was_read() {
    let body = Full::new(Bytes::from_static(b"12345")).map_err(|e| BrokenOff(e.to_string()));
    let (_, judged) = judged(Protocol::OpenAi, answer(500, Box::pin(body))).await;
    assert_eq!(judged.body.size_hint().exact(), Some(5));
    assert!(!judged.body.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn an_error_that_never_ends_is_judged_by_what_there_is() {
    use futures_util::StreamExt as _;
    let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"busy")))]);
    let body = StreamBody::new(first.chain(futures_util::stream::pending()));
    let (meaning, mut judged) = judged(Protocol::OpenAi, answer(529, Box::pin(body))).await;
    let expect = Meaning::Refused {
        has_provider_shape: false,
    };
    assert_eq!(meaning, expect);
    let frame = judged.body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "busy");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_breaks_off_breaks_off_for_the_client_too() {
    let parts = [
        Ok(Frame::data(Bytes::from_static(b"half"))),
        Err(BrokenOff("reset".to_owned())),
    ];
    let body = StreamBody::new(futures_util::stream::iter(parts));
    let (_, mut judged) = judged(Protocol::OpenAi, answer(429, Box::pin(body))).await;
    assert!(judged.body.frame().await.unwrap().is_ok());
    assert!(judged.body.frame().await.unwrap().is_err());
}
