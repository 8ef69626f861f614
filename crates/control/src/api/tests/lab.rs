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
    for path in ["runs/r2/result", "runs/r2/report", "compare?a=r1&b=r2"] {
        let (status, _) = refusal(server.get(&format!("/api/v1/lab/{path}")).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, _) = refusal(server.get("/api/v1/lab/compare?a=r1").await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
