//! Results of the lab over HTTP.

use super::*;

#[tokio::test]
async fn a_report_is_in_an_origin_of_its_own() {
    let server = Server::new();
    let response = server.get("/api/v1/lab/runs/r1/report").await;
    assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.starts_with("sandbox allow-scripts"), "{policy}");
    assert!(!policy.contains("allow-same-origin") && policy.contains("default-src 'none'"));
    assert!(text(response).await.starts_with("<!doctype html>"));
}

#[tokio::test]
async fn results_are_read_and_compared() {
    let server = Server::new();
    assert_eq!(value(server.get("/api/v1/lab/runs").await).await[0]["id"], "r1");
    assert_eq!(value(server.get("/api/v1/lab/runs/r1/result").await).await, json!({}));
    assert_eq!(value(server.get("/api/v1/lab/compare?a=r1&b=r1").await).await, json!({}));
    let shown = json!({ "sections": [] });
    assert_eq!(value(server.get("/api/v1/lab/runs/r1/figures").await).await, shown);
    for path in ["runs/r2/result", "runs/r2/report", "runs/r2/figures", "compare?a=r1&b=r2"] {
        let (status, _) = refusal(server.get(&format!("/api/v1/lab/{path}")).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, _) = refusal(server.get("/api/v1/lab/compare?a=r1").await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_result_that_is_sent_is_shown() {
    let server = Server::new();
    let path = "/api/v1/lab/figures";
    let sent = |result: Value| {
        let request = post(path).header(AUTHORIZATION, format!("Bearer {TOKEN}"));
        server.send(request, result.to_string())
    };
    let larger = json!({ "format": 2, "command": ["x".repeat(API_BODY_MAX + 1)] });
    for result in [json!({ "format": 2 }), larger] {
        assert_eq!(value(sent(result).await).await, json!({ "sections": [] }));
    }
    let (status, _) = refusal(sent(json!({})).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let many = json!({ "format": 2, "command": ["x".repeat(LAB_SHOWN_BYTES_MAX + 1)] });
    let (status, _) = refusal(sent(many).await).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}
