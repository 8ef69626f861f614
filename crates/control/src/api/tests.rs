//! Every endpoint through the router, with a small appliance of the test's own.

mod access;
pub mod appliance;
mod dav;
mod lab;
mod nfs;
mod sign_in;
mod tree;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use analytics::query::Query as Question;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Query;
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, SET_COOKIE,
};
use axum::http::{Request, Response, StatusCode, request};
use base::clock::ManualClock;
use base::limits::{API_BODY_MAX, LAB_SHOWN_BYTES_MAX};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::stream::event;
use super::{Control, Peer, router};
use crate::accounts::people::tests::ROOT;
use crate::accounts::{Accounts, Table, User, password};
use crate::appliance::Appliance as _;
use crate::state::tests::Scratch;
use crate::tree::Tree;
use crate::tree::audit::{AuditFilter, Record};
use crate::tree::store::{Disk, Folder};
use appliance::Fake;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const NOW: u64 = 1_800_000_000;

/// One administrator; its password hash is computed once for all tests.
fn users() -> Table {
    static HASH: LazyLock<String> = LazyLock::new(|| password::hash("right").unwrap());
    let admin = User::administrator(Some(HASH.clone()));
    Table { users: [("admin".to_owned(), admin)].into(), ..Table::default() }
}

struct Server {
    control: Arc<Control>,
    router: Router,
    accounts: Arc<Accounts>,
    tree: Arc<Tree>,
    clock: Arc<ManualClock>,
    fake: Arc<Fake>,
    _scratch: Option<Scratch>,
}

impl Server {
    fn new() -> Self {
        let scratch = Scratch::new();
        Self::on(Arc::new(Folder::new(scratch.path())), Some(scratch))
    }

    /// With its files on this disk.
    fn on(disk: Arc<dyn Disk>, scratch: Option<Scratch>) -> Self {
        let accounts = Arc::new(Accounts::new(users()).unwrap());
        let clock = Arc::new(ManualClock::at(NOW * 1_000_000_000));
        let fake = Arc::new(Fake::default());
        let tree = Arc::new(Tree::open(disk, &ROOT, clock.clone()).unwrap());
        let control =
            Control::new(fake.clone(), accounts.clone(), tree.clone(), TOKEN, clock.clone());
        let router = router(control.clone());
        Self { control, router, accounts, tree, clock, fake, _scratch: scratch }
    }

    async fn send(&self, request: request::Builder, body: impl Into<Body>) -> Response<Body> {
        let peer = Peer::Remote(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)));
        let request = request.extension(peer).body(body.into()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Response<Body> {
        let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {TOKEN}"));
        self.send(request, Body::empty()).await
    }

    /// The newest record of the audit log.
    fn last_recorded(&self) -> Record {
        let wanted = AuditFilter { limit: 1, ..AuditFilter::default() };
        self.tree.audit().read(&wanted).unwrap().remove(0)
    }

    async fn sign_in(&self, password: &str) -> Response<Body> {
        let body = json!({ "user": "admin", "password": password }).to_string();
        self.send(post("/api/v1/session"), body).await
    }
}

fn post(path: &str) -> request::Builder {
    Request::post(path).header(CONTENT_TYPE, "application/json")
}

fn cookie(response: &Response<Body>) -> String {
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

async fn text(response: Response<Body>) -> String {
    let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn value(response: Response<Body>) -> Value {
    serde_json::from_str(&text(response).await).unwrap()
}

/// The error must have its three parts, each a sentence.
async fn refusal(response: Response<Body>) -> (StatusCode, String) {
    let status = response.status();
    let error = value(response).await;
    for part in ["tried", "failed", "hint"] {
        assert!(error["error"][part].as_str().is_some_and(|s| !s.is_empty()), "{part}: {error}");
    }
    (status, error["error"]["failed"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn status_is_the_appliances() {
    let server = Server::new();
    let response = server.get("/api/v1/status").await;
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.headers()["x-frame-options"], "DENY");
    let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'self';"), "{policy}");
    let status = value(response).await;
    assert_eq!(status["name"], "test");
    assert_eq!(status["acting_as"]["privileged"], json!(true));
}

#[tokio::test]
async fn data_has_its_interval() {
    let cases = [
        ("", None, None, 1, 20),
        ("&from=-3600", Some(-3600), None, 1, 20),
        ("&from=-120&to=-60&top=5", Some(-120), Some(-60), 1, 5),
        ("&from=1000&to=2000.9&step=10", Some(1000), Some(2000), 10, 20),
        ("&from=-86400", Some(-86_400), None, 30, 20),
    ];
    for (query, from, to, step, top) in cases {
        let uri = format!("/data?stat=nfs3.ops%5Bop%5D{query}").parse().unwrap();
        let Query(asked) = Query::<super::analytics::DataQuery>::try_from_uri(&uri).unwrap();
        let (stat, question) = super::analytics::question(asked, 1_000_000).unwrap();
        let expected = Question { from, to, step, top, source: None };
        assert_eq!((stat.as_str(), question), ("nfs3.ops[op]", expected), "{query}");
    }
    let server = Server::new();
    let path = "/api/v1/analytics/data?stat=nfs3.ops%5Bop%5D&from=1000&to=2000.9&step=10";
    let data = value(server.get(path).await).await;
    assert_eq!((&data["stat"], &data["step"]), (&json!("nfs3.ops[op]"), &json!(10)));
    assert_eq!((&data["from"], &data["to"]), (&json!(1000), &json!(2000)));
}

#[tokio::test]
async fn wrong_queries_are_refused_with_the_reason() {
    let server = Server::new();
    let cases = [
        ("stat=no.such", "unknown statistic"),
        ("stat=nfs3.ops&from=10&to=10", "empty"),
        ("stat=nfs3.ops&step=0", "step"),
        ("stat=nfs3.ops&from=1&step=1", "points"),
        ("stat=nfs3.ops&from=yesterday", "from"),
        ("from=1", "stat"),
    ];
    for (query, says) in cases {
        let path = format!("/api/v1/analytics/data?{query}");
        let (status, failed) = refusal(server.get(&path).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        assert!(failed.contains(says), "{query}: {failed}");
    }
}

#[tokio::test]
async fn lists_recorder_and_switch() {
    let server = Server::new();
    let list = value(server.get("/api/v1/analytics/statistics").await).await;
    let ids = list.as_array().unwrap().iter().map(|one| &one["id"]);
    assert!(ids.into_iter().any(|id| id == "nfs3.ops"), "{list}");
    let recorder = value(server.get("/api/v1/analytics/recorder").await).await;
    assert_eq!(recorder["bytes"], 1 << 16);
    let counts = value(server.get("/api/v1/analytics/counts?group=nfs3&from=0&to=1.5").await).await;
    assert_eq!(counts["rows"], json!([]));
    for query in ["group=cpu&from=0&to=1", "group=nfs3&from=0", "group=nfs3&from=x&to=1"] {
        let path = format!("/api/v1/analytics/counts?{query}");
        let (status, failed) = refusal(server.get(&path).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {failed}");
    }
    let switch = post("/api/v1/analytics/collect").header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    let answer = server.send(switch, r#"{"on": false}"#).await;
    assert_eq!(value(answer).await, json!({ "on": false }));
    assert!(server.fake.switched_off());
    let last = server.last_recorded();
    assert_eq!((&*last.path, &*last.action, last.after), ("/analytics", "collect", json!(false)));
}

#[tokio::test]
async fn the_stream_sends_seconds_and_reports_what_was_lost() {
    let server = Server::new();
    let path = "/api/v1/analytics/stream?stat=nfs3.ops%5Bop%5D&stat=cpu.utilization";
    let response = server.get(path).await;
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let engine = server.fake.engine();
    let stats = ["nfs3.ops[op]", "cpu.utilization"].map(|stat| stat.parse().unwrap());
    let data = stats.map(|stat| engine.data(&stat, &Question::default()).unwrap());
    let texts = data.each_ref().map(|one| serde_json::to_string(one).unwrap());
    let second = format!("data: {}\n\ndata: {}\n\n", texts[0], texts[1]);
    assert_eq!(event(&data, 0), second);
    assert_eq!(event(&data, 3), format!("event: lost\ndata: {{\"seconds\": 3}}\n\n{second}"));
    for query in ["", "?stat=", "?stat=no.such"] {
        let path = format!("/api/v1/analytics/stream{query}");
        let (status, _) = refusal(server.get(&path).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn unknown_paths_methods_and_bodies() {
    let server = Server::new();
    for path in ["/api", "/api/v2/status", "/api/v1/nothing", "/api/v1"] {
        let (status, _) = refusal(server.get(path).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let wrong = server.send(post("/api/v1/status"), "{}").await;
    assert_eq!(refusal(wrong).await.0, StatusCode::METHOD_NOT_ALLOWED);
    let wrong = server.send(post("/api/v1/session"), "{").await;
    assert_eq!(refusal(wrong).await.0, StatusCode::BAD_REQUEST);
    let large = "x".repeat(API_BODY_MAX + 1);
    let wrong = server.send(post("/api/v1/session"), large).await;
    assert_eq!(refusal(wrong).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn pages_fall_back_to_the_interface_and_assets_do_not() {
    let server = Server::new();
    for path in ["/", "/analytics?w=x", "/login", "/status/deep"] {
        let response = server.send(Request::get(path), "").await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let kind = response.headers()[CONTENT_TYPE].to_str().unwrap();
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        assert!(response.headers().contains_key(CONTENT_SECURITY_POLICY));
    }
    let missing = server.send(Request::get("/assets/gone-1234.js"), "").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert_eq!(super::ui::media_type("assets/a.b.js"), "text/javascript; charset=utf-8");
}

#[test]
fn stream_queries_are_decoded() {
    let stats = super::stream::stats("stat=a.b%5Bc%3Dd+e%5D&x=1&stat=%e2%82%ac&stat=50%&stat=%4");
    assert_eq!(stats, ["a.b[c=d e]", "€", "50%", "%4"]);
}
