//! Rules, limits and the control API, end to end.
use super::*;

#[tokio::test]
async fn rules_apply_to_their_credential_and_are_used_up() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let rule = Rule::new(Act::status(429))
        .id("once")
        .credential("a")
        .times(1);
    sim.script([rule]);
    let mut statuses = Vec::new();
    for credential in ["b", "a", "a"] {
        statuses.push(
            ask(&sim, "POST /v1/chat/completions", credential, CHAT)
                .await
                .0,
        );
    }
    assert_eq!(statuses, [200, 429, 200]);
    let rules: Vec<_> = sim.log().into_iter().map(|r| r.rule).collect();
    assert_eq!(rules, [None, Some("once".to_owned()), None]);
}

#[tokio::test]
async fn an_in_flight_limit_refuses_with_numbers_and_uses_up_no_rule() {
    let sim = Sim::start(Config::recording()).await.unwrap();
    let limit = Limit {
        credentials: vec!["a".into()],
        max_in_flight: Some(1),
        retry_after: 3,
    };
    sim.limit(&limit);
    let stall = Act {
        stall_after: Some(0),
        ..Act::chunks(["1"])
    };
    sim.script([
        Rule::new(stall).times(1),
        Rule::new(Act::status(500)).times(1),
    ]);
    let mut busy = TcpStream::connect(sim.addr).await.unwrap();
    busy.write_all(chat("a").as_bytes()).await.unwrap();
    sim.wait_for_stats("a", |s| s.in_flight == 1).await.unwrap();
    let sent = chat("a").replacen("Host", "Connection: close\r\nHost", 1);
    let (got, _) = converse(&sim, &sent).await;
    assert!(got.starts_with("HTTP/1.1 429 "), "{got}");
    assert!(got.contains("\r\nretry-after: 3\r\n"), "{got}");
    assert!(
        got.contains("\r\nx-ratelimit-remaining-requests: 0\r\n"),
        "{got}"
    );
    drop(busy);
    sim.wait_for_stats("a", |s| s.in_flight == 0).await.unwrap();
    assert_eq!(
        ask(&sim, "POST /v1/chat/completions", "a", CHAT).await.0,
        500
    );
    let stats = sim.wait_for_stats("a", |s| s.served == 2).await.unwrap();
    assert_eq!((stats.peak, stats.refused), (1, 1));
    assert_eq!(sim.log().iter().filter(|r| r.is_limited).count(), 1);
}

#[tokio::test]
async fn only_allowed_credentials_are_served() {
    let sim = Sim::start(Config::default()).await.unwrap();
    assert_eq!(ask(&sim, "GET /v1/models", "a", "").await.0, 200);
    assert_eq!(ask(&sim, "GET /v1/models", "", "").await.0, 401);
    sim.allow(Some(vec!["b".into()]));
    let (status, error) = ask_json(&sim, "GET /v1/models", "a", "").await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (401, &"invalid_api_key".into())
    );
    assert_eq!(ask(&sim, "GET /v1/models", "b", "").await.0, 200);
}

#[tokio::test]
async fn the_control_api_does_what_the_handle_does() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let ok = serde_json::json!({"ok": true});
    let rules = r#"[{"id":"x","match":{"path":{"suffix":"/models"}},"act":{"status":418}}]"#;
    for (line, body) in [
        ("POST /_sim/record", r#"{"level":"bodies"}"#),
        ("POST /_sim/script", rules),
        (
            "POST /_sim/limits",
            r#"{"credentials":["full"],"max_in_flight":0}"#,
        ),
        ("POST /_sim/allow", r#"{"credentials":["a"]}"#),
    ] {
        assert_eq!(
            ask_json(&sim, line, "", body).await,
            (200, ok.clone()),
            "{line}"
        );
    }
    assert_eq!(ask(&sim, "GET /v1/models", "a", "").await.0, 418);
    assert_eq!(ask(&sim, "GET /v1/files", "b", "").await.0, 401);
    assert_eq!(ask(&sim, "GET /v1/files", "full", "").await.0, 429);
    let (_, log) = ask_json(&sim, "GET /_sim/log?credential=a", "", "").await;
    assert_eq!(log.as_array().unwrap().len(), 1);
    assert_eq!(
        (&log[0]["status"], &log[0]["rule"]),
        (&418.into(), &"x".into())
    );
    let (_, log) = ask_json(&sim, "GET /_sim/log?since=2", "", "").await;
    assert_eq!(log[0]["is_limited"], true);
    let (_, stats) = ask_json(&sim, "GET /_sim/stats", "", "").await;
    assert_eq!(stats["full"]["refused"], 1);
    let (_, rules) = ask_json(&sim, "GET /_sim/script", "", "").await;
    assert_eq!(rules[0]["match"]["path"]["suffix"], "/models");
    ask(&sim, "POST /_sim/reset", "", "").await;
    assert_eq!(ask(&sim, "GET /v1/models", "full", "").await.0, 200);
    assert_eq!(sim.log().len(), 1);
}

#[tokio::test]
async fn a_wrong_script_is_refused_with_its_fault() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let (status, error) = ask_json(&sim, "POST /_sim/script", "", r#"{"act":{"statsu":1}}"#).await;
    assert_eq!(status, 400);
    assert!(
        error["error"].as_str().unwrap().contains("statsu"),
        "{error}"
    );
    assert_eq!(ask(&sim, "GET /_sim/nothing", "", "").await.0, 404);
}

#[tokio::test]
async fn an_act_without_a_body_only_bends_the_usual_answer() {
    let sim = Sim::start(Config::default()).await.unwrap();
    let act: Act =
        serde_json::from_str(r#"{"framing":"chunked","headers":[["x-a","1"]]}"#).unwrap();
    sim.script([Rule::new(act)]);
    let sent = chat("a").replacen("Host", "Connection: close\r\nHost", 1);
    let (got, _) = converse(&sim, &sent).await;
    assert!(
        got.contains("\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n"),
        "{got}"
    );
    assert!(got.contains("\"content\":\"a b\""), "{got}");
}
