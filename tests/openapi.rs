//! The OpenAPI document of a real server: every example in it can be sent as it is.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base::text::{UNRESERVED, percent};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use serde_json::Value;

/// Longest wait for the head of an answer.
const ANSWER: Duration = e2e::patience(30);

/// A value in a path or a query (RFC 3986 §2.1).
fn encode(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    percent(text.as_bytes(), UNRESERVED)
}

/// The path of an operation with its examples; none if a part of it has none.
fn address(path: &str, parameters: &[Value]) -> Option<String> {
    let mut address = path.to_owned();
    let mut query = Vec::new();
    for parameter in parameters {
        let name = parameter["name"].as_str()?;
        match (parameter["in"].as_str()?, parameter.get("example")) {
            ("path", Some(example)) => {
                address = address.replace(&format!("{{{name}}}"), &encode(example));
            }
            ("query", Some(example)) => query.push(format!("{name}={}", encode(example))),
            (_, None) if parameter["required"] == true => return None,
            _ => {}
        }
    }
    Some(match query.is_empty() {
        true => address,
        false => format!("{address}?{}", query.join("&")),
    })
}

/// Sends a request; the status, and the type of what comes.
fn send(socket: &Path, method: &str, path: &str, body: Option<(&str, String)>) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).expect("the local socket");
    stream.set_read_timeout(Some(ANSWER)).expect("a deadline");
    let (about, body) = match body {
        None => (String::new(), String::new()),
        Some((kind, body)) => {
            (format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()), body)
        }
    };
    let head = format!("{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    stream.write_all(format!("{head}{about}\r\n{body}").as_bytes()).expect("the request");
    // A stream does not end; only its head is needed.
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        answer.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    (status.expect("a status"), kind.unwrap_or_default().to_owned())
}

#[test]
fn every_example_can_be_sent_as_it_is() {
    let scratch = Scratch::new("openapi");
    let (dir, state) = (scratch.path().join("lab"), scratch.path().join("state"));
    fs::create_dir(&dir).expect("the share");
    let mut options = Options::new(&dir, &state);
    options.args.extend(["--no-portmap", "--user", "anna:correct horse battery"].map(Into::into));
    let server = Server::start(&options);
    let socket = state.join("plimsoll.sock");
    let api = e2e::api::Api::new(&state);
    let (code, document) = api.get("/api/v1/openapi.json");
    assert_eq!(code, 200, "{document}");
    let mut sent = 0;
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let what = format!("{method} {path}");
            let parameters = operation["parameters"].as_array().expect("parameters");
            let Some(at) = address(path, parameters) else {
                // What it names is not there on every server: a run of the lab, a client, a lock.
                let parts = ["/lab/", "/clients/", "/locks/"];
                assert!(parts.iter().any(|part| path.contains(part)), "{what}");
                continue;
            };
            let body = operation["requestBody"]["content"].as_object().map(|content| {
                let (kind, content) = content.iter().next().expect("a type");
                let example = &content["example"];
                let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
                (kind.as_str(), text)
            });
            let (status, kind) = send(&socket, &method.to_ascii_uppercase(), &at, body);
            assert!((200..300).contains(&status), "{what}: {status} to {at}");
            let answers = operation["responses"]["2XX"]["content"].as_object();
            let said = answers.and_then(|kinds| kinds.keys().next());
            let is_said = said.map_or(kind.is_empty(), |said| kind.starts_with(said.as_str()));
            assert!(is_said, "{what}: {kind:?} where {said:?} is said");
            sent += 1;
        }
    }
    assert!(sent > 20, "{sent}");
    drop(server);
}
