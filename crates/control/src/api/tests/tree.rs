//! The tree over HTTP: nodes, changes, files, history, the audit log, streams, and OpenAPI.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use axum::http::{Method, Request, Response, StatusCode};
use futures_core::Stream;
use serde_json::{Value, json};

use super::{Server, TOKEN, cookie, text, value};
use crate::accounts::Table;
use crate::api::route::Needs;
use crate::api::routes::table;
use crate::api::{Control, router};
use crate::tree::Tree;
use crate::tree::tests::{commit, create, set, tree};

/// A server with the tree of the tree's own tests.
fn server() -> (Server, Arc<Tree>) {
    let server = Server::new();
    let tree = Arc::new(tree());
    let control = Control::new(
        server.fake.clone(),
        server.accounts.clone(),
        tree.clone(),
        TOKEN,
        server.clock.clone(),
    );
    (Server { router: router(control.clone()), control, ..server }, tree)
}

async fn send(server: &Server, method: Method, path: &str, body: String) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = request.header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    let response = server.send(request, body).await;
    (response.status(), value(response).await)
}

async fn get(server: &Server, path: &str) -> (StatusCode, Value) {
    send(server, Method::GET, path, String::new()).await
}

async fn change(server: &Server, changes: Value) -> (StatusCode, Value) {
    send(server, Method::POST, "/changes", json!({ "changes": changes }).to_string()).await
}

/// A property of a node, as the API shows it.
fn property<'a>(node: &'a Value, name: &str) -> &'a Value {
    let properties = node["properties"].as_array().unwrap();
    properties.iter().find(|property| property["name"] == name).unwrap()
}

#[tokio::test]
async fn declarations_are_complete() {
    let (server, _) = server();
    let (status, tree) = get(&server, "/tree").await;
    assert_eq!(status, StatusCode::OK);
    let nfs = &tree["children"][0]["children"][0];
    assert_eq!((&nfs["name"], &nfs["scope"]), (&json!("nfs"), &json!("services")));
    let lease = property(nfs, "lease");
    assert_eq!(lease["kind"]["type"], "seconds");
    assert_eq!((&lease["kind"]["min"], &lease["kind"]["max"]), (&json!(1), &json!(3600)));
    assert_eq!((&lease["default"], &lease["effect"]), (&json!(90), &json!("restart")));
    let shares = &tree["children"][1];
    assert_eq!(shares["items"]["noun"], "project");
    assert_eq!(shares["items"]["fixed"], json!(["default"]));
    let share = &shares["items"]["context"]["items"]["context"];
    assert_eq!(property(share, "rules")["inherited"], true);
    assert_eq!(property(share, "rules")["kind"]["of"]["shape"], "export-rule");
    assert_eq!(property(share, "directory")["required"], true);
}

#[tokio::test]
async fn a_node_shows_the_current_values_and_their_origin() {
    let (server, tree) = server();
    commit(
        &tree,
        json!([
            set("/shares/default", "rules", "*(ro)"),
            create("/shares/default", "s", json!({ "directory": "/srv" })),
            create("/users", "anna", json!({ "password": "long enough" })),
        ]),
    )
    .unwrap();
    let (_, nfs) = get(&server, "/nodes/services/nfs").await;
    assert_eq!((&nfs["path"], &nfs["revision"]), (&json!("/services/nfs"), &json!(1)));
    assert_eq!(property(&nfs, "state")["value"], "online");
    assert_eq!(property(&nfs, "lease")["source"], "default");
    let given = property(&nfs, "delegations");
    assert_eq!((&given["value"], &given["source"]), (&json!(false), &json!("command line")));
    assert!(given["why"].as_str().unwrap().contains("command line"));
    assert_eq!(nfs["actions"], json!(["greet"]));
    assert_eq!(nfs["may"], json!({ "change": true, "why": null }));

    let (_, share) = get(&server, "/nodes/shares/default/s").await;
    let rules = property(&share, "rules");
    assert_eq!(
        (&rules["source"], &rules["from"]),
        (&json!("inherited"), &json!("/shares/default"))
    );
    assert_eq!(rules["value"], json!(["*(ro)"]));
    let (_, anna) = get(&server, "/nodes/users/anna").await;
    let password = property(&anna, "password");
    assert_eq!((&password["value"], &password["set"]), (&json!(null), &json!(true)));
    let (_, given) = get(&server, "/nodes/shares/default/given").await;
    assert_eq!(given["may"]["change"], false);
    let (_, session) = get(&server, "/nodes/sessions/s1").await;
    assert_eq!(property(&session, "user")["value"], "anna");

    let (_, flat) = get(&server, "/nodes/shares").await;
    assert_eq!(flat["items"], json!(["default"]));
    let (_, deep) = get(&server, "/nodes/shares?depth=9").await;
    let below = &deep["items"][0]["items"];
    let names: Vec<&Value> = below.as_array().unwrap().iter().map(|node| &node["name"]).collect();
    assert_eq!(names, [&json!("s"), &json!("given")]);
    let (_, root) = get(&server, "/nodes").await;
    assert_eq!(root["children"], json!(["services", "shares", "users", "sessions"]));
}

#[tokio::test]
async fn faults_have_their_status_and_place() {
    let (server, tree) = server();
    commit(&tree, json!([set("/services/nfs", "lease", 5)])).unwrap();
    commit(&tree, json!([set("/services/nfs", "lease", 6)])).unwrap();
    let cases = [
        (set("/services/nfs", "lease", 0), StatusCode::BAD_REQUEST),
        (set("/services/nfs", "leese", 1), StatusCode::NOT_FOUND),
        (set("/services/nfs", "delegations", true), StatusCode::CONFLICT),
    ];
    for (one, status) in cases {
        let (found, error) = change(&server, json!([one])).await;
        assert_eq!(found, status, "{error}");
        assert_eq!(error["error"]["path"], "/services/nfs");
        assert!(error["error"]["property"].is_string() && error["error"]["hint"] != "");
    }
    let (status, error) = get(&server, "/nodes/services/smb").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(error["error"]["failed"], "/services has no \"smb\"");
    assert_eq!(error["error"]["hint"], "it has nfs");
    let late = json!({ "revision": 1, "changes": [set("/services/nfs", "lease", 7)] });
    let (status, _) = send(&server, Method::POST, "/changes", late.to_string()).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let bodies = ["", "[]", "{}", r#"{"changes":[{"sett":"/a"}]}"#, r#"{"changes":[],"x":1}"#];
    for body in bodies {
        let (status, error) = send(&server, Method::POST, "/changes", body.to_owned()).await;
        assert!(status.is_client_error(), "{body}: {error}");
    }
    let (status, _) = send(&server, Method::POST, "/nodes/services/nfs", "{}".to_owned()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "no action is named");
    assert_eq!(tree.current().revision.number, 2);
}

#[tokio::test]
async fn changes_and_actions_are_done_and_recorded() {
    let (server, _) = server();
    let (status, done) = change(&server, json!([set("/services/nfs", "lease", "2m")])).await;
    assert_eq!((status, &done["revision"]), (StatusCode::OK, &json!(1)));
    assert_eq!(done["changes"][0]["after"], 120);
    let path = "/nodes/services/nfs/actions/greet";
    let body = json!({ "parameters": { "name": "bob" } }).to_string();
    let (_, greeted) = send(&server, Method::POST, path, body).await;
    assert_eq!(greeted, json!({ "result": "greet bob from api-token" }));
    let (_, audit) = get(&server, "/audit?limit=1").await;
    assert_eq!((&audit["rows"][0]["action"], &audit["more"]), (&json!("greet"), &json!(true)));
    assert_eq!(audit["rows"][0]["from"], "10.0.0.7");
}

#[tokio::test]
async fn the_whole_configuration_goes_out_and_in() {
    let (server, _) = server();
    change(&server, json!([set("/services/nfs", "lease", 5)])).await;
    change(&server, json!([set("/services/nfs", "lease", 6)])).await;
    let export = text(server.get("/api/v1/configuration").await).await;
    assert!(export.contains("[\"/services/nfs\"]\nlease = 6\n"), "{export}");
    let first = text(server.get("/api/v1/configuration/history/1").await).await;
    assert!(first.contains("lease = 5"), "{first}");
    let (_, history) = get(&server, "/configuration/history?limit=1").await;
    assert_eq!((&history[0]["revision"], &history[0]["who"]), (&json!(2), &json!("api-token")));
    let (_, compared) = get(&server, "/configuration/compare?from=1&to=2").await;
    assert_eq!(compared["changes"][0]["before"], 5);
    let put = |query: &str, body: &str| {
        let path = format!("/configuration{query}");
        let body = body.to_owned();
        let server = &server;
        async move { send(server, Method::PUT, &path, body).await }
    };
    let (status, dry) = put("?dry_run=1", &first).await;
    assert_eq!((status, &dry["revision"]), (StatusCode::OK, &json!(2)));
    assert_eq!(put("", &first).await.1["revision"], 3);
    assert_eq!(put("?dry_run=maybe", &first).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(put("?revision=2", &first).await.0, StatusCode::CONFLICT);
    let (status, error) = put("", "format = 1\n[\"/services/nfs\"]\nlease = 0\n").await;
    assert_eq!((status, &error["error"]["property"]), (StatusCode::BAD_REQUEST, &json!("lease")));
    let body = json!({ "revision": 2, "seen": 2 }).to_string();
    let (status, _) = send(&server, Method::POST, "/configuration/restore", body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let body = json!({ "revision": 2, "seen": 3 }).to_string();
    let (_, restored) = send(&server, Method::POST, "/configuration/restore", body).await;
    assert_eq!(restored["revision"], 4);
    let (status, _) = get(&server, "/configuration/history/77").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// Reads events until one holds `text`; the server ends the stream otherwise.
async fn event(response: Response<Body>, text: &str) -> String {
    let mut body = response.into_body().into_data_stream();
    let mut heard = String::new();
    while !heard.contains(text) {
        let next = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await;
        heard += &String::from_utf8_lossy(&next.expect("the stream has ended").unwrap());
    }
    heard
}

#[tokio::test]
async fn changes_and_the_log_are_streamed() {
    let (server, tree) = server();
    let stream = server.get("/api/v1/changes/stream").await;
    assert_eq!(stream.headers()[CONTENT_TYPE], "text/event-stream");
    commit(&tree, json!([set("/services/nfs", "lease", 5)])).unwrap();
    let heard = event(stream, "\n\n").await;
    assert!(heard.starts_with("event: change\ndata: {\"revision\":1,\"who\":\"anna\""), "{heard}");

    let stream = server.get("/api/v1/logs/stream?service=streamed").await;
    base::log::keep("streamed", base::log::Level::Info, "a line");
    let heard = event(stream, "a line").await;
    assert!(heard.contains("\"service\":\"streamed\""), "{heard}");
    let (_, log) = get(&server, "/logs?service=streamed&limit=1").await;
    assert_eq!((&log["rows"][0]["text"], &log["more"]), (&json!("a line"), &json!(false)));
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_may_not_have_it_any_more() {
    for how in ["signed out", "without rights"] {
        let (server, tree) = server();
        let cookie = cookie(&server.sign_in("right").await);
        let ask = Request::get("/api/v1/changes/stream").header(COOKIE, &cookie);
        let mut stream = server.send(ask, "").await.into_body().into_data_stream();
        let mut next = async |lease: i64| {
            server.clock.advance(Duration::from_secs(2));
            commit(&tree, json!([set("/services/nfs", "lease", lease)])).unwrap();
            poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await
        };
        assert!(next(5).await.is_some(), "{how}");
        assert!(next(6).await.is_some(), "{how}");
        match how {
            "signed out" => {
                let end = Request::delete("/api/v1/session").header(COOKIE, &cookie);
                assert_eq!(server.send(end, "").await.status(), StatusCode::NO_CONTENT);
            }
            _ => server.accounts.replace(Table::default()),
        }
        assert!(next(7).await.is_none(), "{how}");
    }
}

#[tokio::test]
async fn a_parameter_that_a_path_does_not_have_is_not_passed_over() {
    let (server, _) = server();
    let (status, error) = get(&server, "/logs?limit=1&levle=error").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["failed"], "unknown parameter \"levle\"");
    assert_eq!(error["error"]["hint"], "parameters of this path: service, level, from, limit");
    let (status, error) = get(&server, "/status?x=1").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["hint"], "this path has no parameters");
    assert_eq!(get(&server, "/logs?level=error&&service=").await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_number_in_an_address_has_no_plus_sign() {
    let (server, _) = server();
    let paths = ["/logs?limit=1", "/audit?from=1", "/transfers?since=1&limit=1", "/nodes?depth=1"];
    let more = ["/configuration/history?limit=1", "/analytics/data?stat=nfs3.ops&from=-5&top=1"];
    for path in paths.iter().chain(&more) {
        assert_eq!(get(&server, path).await.0, StatusCode::OK, "{path}");
        let signed = path.replace("=1", "=%2B1");
        let (status, error) = get(&server, &signed).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{signed}");
        let failed = error["error"]["failed"].as_str().unwrap();
        assert!(failed.contains("no plus sign"), "{failed}");
    }
    // A text may have one.
    assert_eq!(get(&server, "/transfers?user=a%2Bb").await.0, StatusCode::OK);
    let (status, error) = get(&server, "/configuration/history/%2B1").await;
    assert_eq!(
        (status, &error["error"]["failed"]),
        (StatusCode::BAD_REQUEST, &json!("a revision is a number"))
    );
}

#[tokio::test]
async fn openapi_has_every_route_and_every_route_answers() {
    let (server, _) = server();
    let (status, document) = get(&server, "/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (StatusCode::OK, &json!("3.1.0")));
    let mut ids = BTreeSet::new();
    let mut count = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            count += 1;
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}: twice");
            let asked = path.replace("{path}", "services/nfs").replace("{revision}", "1");
            let asked = asked.replace("{action}", "greet").replace("{id}", "x");
            let method: Method = method.to_ascii_uppercase().parse().unwrap();
            let request = Request::builder().method(&method).uri(format!("/api/v1{asked}"));
            let request = request.header(CONTENT_TYPE, "application/json");
            let request = request.header(AUTHORIZATION, format!("Bearer {TOKEN}"));
            let status = server.send(request, "").await.status();
            assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {asked}");
            assert!(!status.is_server_error(), "{method} {asked}: {status}");
        }
    }
    assert_eq!(count, table().len(), "every route is in the document");
    let session = &document["paths"]["/session"]["post"]["security"];
    assert_eq!(session, &json!([]), "the way in needs nothing");
    assert!(table().iter().any(|route| route.needs == Needs::Nodes));
}
