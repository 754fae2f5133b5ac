//! What one credential stored is unknown to every other.
use super::*;

const UPLOAD: &str = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
    --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n\
    {\"custom_id\":\"one\"}\n{\"custom_id\":\"two\"}\n\r\n--b--\r\n";

async fn upload(sim: &SimHandle, credential: &str) -> String {
    let sent = request("POST /v1/files", credential, UPLOAD)
        .replacen("Host", "Connection: close\r\nHost", 1)
        .replacen("application/json", "multipart/form-data; boundary=b", 1);
    let (got, _) = converse(sim, &sent).await;
    let (_, body) = got.split_once("\r\n\r\n").unwrap();
    let file: serde_json::Value = serde_json::from_str(body).unwrap();
    file["id"].as_str().unwrap().to_owned()
}

/// Expects `status` for the owner `a` and 404 for `b`.
async fn check(sim: &SimHandle, line: &str, body: &str, status: u16) {
    assert_eq!(ask(sim, line, "b", body).await.0, 404, "{line} by b");
    assert_eq!(ask(sim, line, "a", body).await.0, status, "{line} by a");
}

#[tokio::test]
async fn responses_belong_to_their_maker() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let wish = r#"{"model":"m","input":"hi there"}"#;
    let (_, object) = ask_json(&sim, "POST /v1/responses", "a", wish).await;
    let id = object["id"].as_str().unwrap();
    check(
        &sim,
        &format!("GET /v1/responses/{id}/input_items"),
        "",
        200,
    )
    .await;
    check(
        &sim,
        &format!("GET /v1/responses/{id}?stream=true"),
        "",
        200,
    )
    .await;
    let (_, read) = ask_json(&sim, &format!("GET /v1/responses/{id}"), "a", "").await;
    assert_eq!(read, object);
    let next = format!(r#"{{"model":"m","input":"go on","previous_response_id":"{id}"}}"#);
    let (status, error) = ask_json(&sim, "POST /v1/responses", "b", &next).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (400, &"previous_response_not_found".into())
    );
    assert_eq!(ask(&sim, "POST /v1/responses", "a", &next).await.0, 200);
    check(&sim, &format!("DELETE /v1/responses/{id}"), "", 200).await;
    assert_eq!(
        ask(&sim, &format!("GET /v1/responses/{id}"), "a", "")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_response_that_is_not_stored_cannot_be_read() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let wish = r#"{"model":"m","input":"hi","store":false}"#;
    let (_, object) = ask_json(&sim, "POST /v1/responses", "a", wish).await;
    let id = object["id"].as_str().unwrap();
    assert_eq!(
        ask(&sim, &format!("GET /v1/responses/{id}"), "a", "")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_reattached_stream_goes_on_where_it_was_left() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let wish = r#"{"model":"m","input":"one two","stream":true}"#;
    let (_, whole) = ask(&sim, "POST /v1/responses", "a", wish).await;
    let at = whole.find("\"resp_").unwrap() + 1;
    let id = whole[at..].split('"').next().unwrap();
    let line = format!("GET /v1/responses/{id}?stream=true");
    let again = ask(&sim, &line, "a", "").await.1;
    assert_eq!(again, whole);
    let rest = ask(&sim, &format!("{line}&starting_after=3"), "a", "")
        .await
        .1;
    let rest = rest.split_once("\r\n").unwrap().1.trim_end();
    assert!(whole.trim_end().ends_with(rest), "{rest}");
    assert!(
        rest.starts_with("event: response.output_text.delta"),
        "{rest}"
    );
}

#[tokio::test]
async fn files_belong_to_their_sender() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let id = upload(&sim, "a").await;
    check(&sim, &format!("GET /v1/files/{id}"), "", 200).await;
    check(&sim, &format!("GET /v1/files/{id}/content"), "", 200).await;
    let (_, list) = ask_json(&sim, "GET /v1/files", "b", "").await;
    assert_eq!(list["data"], serde_json::json!([]));
    let input = format!(
        r#"{{"model":"m","input":[{{"role":"user","content":[
            {{"type":"input_text","text":"see"}},{{"type":"input_file","file_id":"{id}"}}]}}]}}"#
    );
    check(&sim, "POST /v1/responses", &input, 200).await;
    check(&sim, &format!("DELETE /v1/files/{id}"), "", 200).await;
}

#[tokio::test]
async fn a_batch_answers_each_line_of_its_owners_file() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let id = upload(&sim, "a").await;
    let wish = format!(r#"{{"input_file_id":"{id}","endpoint":"/v1/chat/completions"}}"#);
    assert_eq!(ask(&sim, "POST /v1/batches", "b", &wish).await.0, 404);
    let (_, object) = ask_json(&sim, "POST /v1/batches", "a", &wish).await;
    let line = format!("GET /v1/batches/{}", object["id"].as_str().unwrap());
    check(&sim, &line, "", 200).await;
    let (_, done) = ask_json(&sim, &line, "a", "").await;
    assert_eq!(done["request_counts"]["completed"], 2);
    let output = done["output_file_id"].as_str().unwrap();
    let (_, text) = ask(&sim, &format!("GET /v1/files/{output}/content"), "a", "").await;
    assert!(text.contains("\"custom_id\":\"two\""), "{text}");
}

#[tokio::test]
async fn conversations_and_uploads_belong_to_their_maker() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let (_, object) = ask_json(&sim, "POST /v1/conversations", "a", "").await;
    let id = object["id"].as_str().unwrap();
    check(&sim, &format!("GET /v1/conversations/{id}"), "", 200).await;
    let items = r#"{"items":[{"type":"message"}]}"#;
    check(
        &sim,
        &format!("POST /v1/conversations/{id}/items"),
        items,
        200,
    )
    .await;
    let (_, list) = ask_json(&sim, &format!("GET /v1/conversations/{id}/items"), "a", "").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let talk = format!(r#"{{"model":"m","input":"hi","conversation":"{id}"}}"#);
    check(&sim, "POST /v1/responses", &talk, 200).await;
    let (_, object) = ask_json(&sim, "POST /v1/uploads", "a", r#"{"filename":"f"}"#).await;
    let id = object["id"].as_str().unwrap();
    check(&sim, &format!("POST /v1/uploads/{id}/complete"), "", 200).await;
}
