//! The guide, the search and the reasons of missing rights: in a browser, on the command line and
//! over the API alike.

use std::fs;
use std::process::Command;

use e2e::api::Api;
use e2e::browser::{self, Browser, PASSWORD};
use e2e::server::{Server, binary};
use e2e::{process, skip};
use serde_json::{Value, json};

use super::{Scene, lines::SECRET};

/// The command line on a server, with a token or as a local user.
fn cli(scene: &Scene, server: &Server, token: Option<&str>, line: &str) -> (i32, String) {
    let mut command = Command::new(binary());
    command.args(["cli", "-c", line]).current_dir(scene.path("people"));
    match token {
        None => command.arg("--state").arg(scene.path("people").join("first")),
        Some(token) => {
            let file = scene.path("people").join("token");
            fs::write(&file, token).expect("a token file");
            let url = server.announced["admin"].as_str().expect("a URL").trim_end_matches('/');
            let ca = scene.path("people").join("first/certificate.pem");
            command.args(["--server", url, "--token-file"]).arg(file).arg("--ca").arg(ca)
        }
    };
    let output = process::run(&mut command, process::DEADLINE);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

/// A server with a share, a single administrator, and an operator with a token.
fn set_up(scene: &Scene) -> (Server, Api, String) {
    let server = scene.serve("people", "first");
    let api = Api::new(&scene.path("people").join("first"));
    let user = |name: &str, role: &str| {
        json!({"create": "/configuration/users", "name": name, "properties": {
            "kind": "administrator", "roles": [role], "password": SECRET, "full_name": "Bea Berg"}})
    };
    let token = json!({"create": "/configuration/tokens", "name": "looks",
        "properties": {"role": "operator"}});
    let changes =
        json!({"changes": [user("bea", "administrator"), user("otto", "operator"), token]});
    let (code, answer) = api.post("/api/v1/changes", &changes);
    assert_eq!(code, 200, "{answer}");
    let path = "/api/v1/nodes/configuration/tokens/looks/actions/issue";
    let (code, answer) = api.post(path, &json!({"parameters": {}}));
    assert_eq!(code, 200, "{answer}");
    (server, api, answer["result"]["token"].as_str().expect("a token").to_owned())
}

/// One sentence, and that nothing was done.
fn refused((code, said): (i32, String), why: &str) {
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(why), "{said}");
    assert!(said.starts_with("plimsoll: cannot run command 1: "), "{said}");
}

#[test]
fn each_protocol_reports_why_access_is_denied() {
    if let Some(what) = browser::missing() {
        skip!("story-people", "{what}");
    }
    let scene = Scene::new("story-people");
    let (server, api, token) = set_up(&scene);
    let bea = "/configuration/users/bea";
    let last = "bea is the last one";
    let role = "has no role with shares:change";

    let lines = [
        format!("{bea} destroy --yes"),
        format!("{bea} set roles=operator"),
        format!("{bea} set enabled=off"),
        format!("{bea} unset password"),
    ];
    for line in lines {
        refused(cli(&scene, &server, None, &line), last);
    }
    let (code, answer) =
        api.post("/api/v1/changes", &json!({"changes": [{"destroy": bea, "confirm": true}]}));
    assert_eq!(code, 409, "{answer}");
    assert!(answer["error"]["failed"].as_str().is_some_and(|said| said.contains(last)), "{answer}");
    refused(cli(&scene, &server, Some(&token), "/shares create office"), role);

    let mut browser = Browser::start();
    browser.open(&server, "bea", SECRET);
    let why = browser.ask(&json!({"do": "destroy", "path": bea})).expect_err("she is the last");
    assert!(why.contains(last), "{why}");
    let demoted = json!({"do": "set", "path": bea, "properties": [
        {"name": "kind", "title": "Kind", "kind": {"type": "choice"}, "role": "setting",
        "value": "data"}]});
    let why = browser.ask(&demoted).expect_err("she is the last");
    assert!(why.contains(last), "{why}");

    browser.open(&server, "otto", SECRET);
    let places = [
        ("/shares", "New project"),
        ("/shares/default", "New share"),
        ("/shares/default/lab", "Rename"),
        ("/configuration/services/nfs", "Lease"),
        ("/configuration/users", "New user"),
        ("/configuration/tokens/looks", "Issue"),
    ];
    for (path, name) in places {
        let why = browser.ask(&json!({"do": "why", "path": path, "name": name}));
        let why = why.unwrap_or_else(|why| panic!("{path} {name}: {why}"));
        let said = why.as_str().unwrap_or_default();
        assert!(said.contains("has no role with"), "{path} {name} says {why}");
    }
}

#[test]
fn the_first_sign_in_leads_through_and_the_search_finds_each() {
    if let Some(what) = browser::missing() {
        skip!("story-guide", "{what}");
    }
    let scene = Scene::new("story-guide");
    let (server, api, _) = set_up(&scene);
    let mut browser = Browser::start();
    let guide = |browser: &mut Browser, user: &str, password: &str| -> Value {
        browser.open(&server, user, password);
        browser.ask(&json!({"do": "guide"})).unwrap_or_else(|why| panic!("{user}: {why}"))
    };
    let first = guide(&mut browser, "admin", PASSWORD);
    let text = first["text"].as_str().expect("the first steps");
    for part in ["Shares", "lab", "Mount", "mount -t nfs", "Monitoring"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(first["links"].as_array().is_some_and(|links| links.len() >= 3), "{first}");
    // Closed for good, in whatever window, but only for the user that has closed it.
    let (_, node) = api.get("/api/v1/nodes/configuration/preferences");
    assert!(node.to_string().contains("[\"admin\"]"), "{node}");
    assert!(guide(&mut browser, "bea", SECRET).is_object(), "her first sign-in is another one");

    let found = |browser: &mut Browser, text: &str, kind: &str, name: &str| {
        let ask = json!({"do": "search", "text": text, "kind": kind, "name": name});
        browser.ask(&ask).unwrap_or_else(|why| panic!("searching {text}: {why}"))
    };
    assert_eq!(found(&mut browser, "otto", "User", "otto"), "/configuration/users/otto");
    assert_eq!(found(&mut browser, "bea berg", "User", "bea"), "/configuration/users/bea");
    assert_eq!(found(&mut browser, "lab", "Share", "lab"), "/shares/default/lab");
}
