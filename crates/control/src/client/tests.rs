//! URLs, HTTP framing, and both ways to a real listener.

use std::io::{BufReader, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base::clock::SystemClock;

use super::{Answer, Client, ClientError, host_and_port};
use crate::accounts::{Accounts, Table};
use crate::api::Control;
use crate::api::tests::appliance::Fake;
use crate::listen::{self, ListenConfig, Listening};
use crate::state::StateDir;
use crate::state::keys::Keys;
use crate::state::tests::Scratch;
use crate::tree::tests::tree;

#[test]
fn urls() {
    let case = |url: &str| host_and_port(url).ok();
    assert_eq!(case("https://nas"), Some(("nas".into(), 215)));
    assert_eq!(case("https://nas:10215/"), Some(("nas".into(), 10215)));
    assert_eq!(case("https://[::1]:1"), Some(("::1".into(), 1)));
    assert_eq!(case("https://[::1]"), Some(("::1".into(), 215)));
    for bad in ["http://nas", "nas", "https://", "https://nas:x", "https://nas/x", "https://[::1"] {
        assert_eq!(case(bad), None, "{bad}");
    }
}

fn read(answer: &str) -> std::io::Result<(u16, String)> {
    // A small buffer, so that pieces end everywhere.
    let mut stream = BufReader::with_capacity(3, answer.as_bytes());
    let head = Answer::read_head(&mut stream)?;
    let body = head.read_body(&mut stream)?;
    Ok((head.status, String::from_utf8_lossy(&body).into_owned()))
}

#[test]
fn answers_of_all_three_lengths() {
    let known = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!!").unwrap();
    assert_eq!(known, (200, "hello".into()));
    let chunks = "HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n\
                  5;x=y\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    assert_eq!(read(chunks).unwrap(), (404, "hello!".into()));
    assert_eq!(read("HTTP/1.1 200 OK\r\n\r\nto the end").unwrap().1, "to the end");
}

#[test]
fn broken_answers_are_errors() {
    let cases = [
        ("", ErrorKind::UnexpectedEof),
        ("SSH-2.0-x\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel", ErrorKind::UnexpectedEof),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
            ErrorKind::InvalidData,
        ),
    ];
    for (answer, kind) in cases {
        assert_eq!(read(answer).unwrap_err().kind(), kind, "{answer:?}");
    }
}

struct Server {
    scratch: Scratch,
    listening: Listening,
    state: StateDir,
}

fn serve() -> Server {
    let scratch = Scratch::new();
    // Longer than a socket address may be.
    let path = scratch.path().join("deep".repeat(30));
    let state = StateDir::open(&path).unwrap();
    let keys = Keys::open(&state, Ipv4Addr::LOCALHOST.into()).unwrap();
    let accounts = Arc::new(Accounts::new(Table::default()).unwrap());
    let fake = Arc::new(Fake::default());
    let control =
        Control::new(fake, accounts, Arc::new(tree()), &keys.api_token, Arc::new(SystemClock));
    let config = ListenConfig {
        admin: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        identity: keys.identity,
        socket: state.socket(),
    };
    let listening = listen::start(control, config).unwrap();
    Server { scratch, listening, state }
}

#[test]
fn the_local_socket_and_https_answer_alike() {
    let server = serve();
    let local = Client::local(&server.state.socket());
    let url = format!("https://{}", server.listening.admin());
    let (token, certificate) =
        (server.state.file("api-token"), server.state.file("certificate.pem"));
    let remote = Client::remote(&url, &token, &certificate).unwrap();
    let paths = ["/api/v1/status", "/api/v1/analytics/statistics"];
    for path in paths {
        assert_eq!(local.get(path).unwrap(), remote.get(path).unwrap(), "{path}");
    }
    for client in [&local, &remote] {
        match client.get("/api/v1/analytics/data?stat=no.such") {
            Err(ClientError::Refused { status: 400, failed, .. }) => {
                assert!(failed.contains("no.such"));
            }
            other => panic!("{other:?}"),
        }
        client.post("/api/v1/analytics/collect", r#"{"on": true}"#).unwrap();
        let mut events = Vec::new();
        let path = "/api/v1/analytics/stream?stat=a.b";
        client
            .follow(path, |data| {
                events.push(data.to_owned());
                true
            })
            .unwrap();
        let one = r#"{"stat":"a.b"}"#;
        assert_eq!(events, [one, r#"{"seconds": 3}"#, one]);
    }
    server.listening.end();
    assert!(!server.state.socket().exists());
    assert!(matches!(local.get("/"), Err(ClientError::Unreachable { .. })));
    assert!(matches!(remote.get("/"), Err(ClientError::Unreachable { .. })));
}

#[test]
fn another_certificate_or_token_is_refused() {
    let (server, other) = (serve(), serve());
    // By its name the other server's certificate would do.
    let url = format!("https://localhost:{}", server.listening.admin().port());
    let (token, certificate) =
        (server.state.file("api-token"), server.state.file("certificate.pem"));
    let wrong = Client::remote(&url, &token, &other.state.file("certificate.pem")).unwrap();
    assert!(matches!(wrong.get("/api/v1/status"), Err(ClientError::Broken { .. })));

    let false_token = server.scratch.path().join("token");
    std::fs::write(&false_token, "0".repeat(64)).unwrap();
    let wrong = Client::remote(&url, &false_token, &certificate).unwrap();
    let answer = wrong.get("/api/v1/status");
    assert!(matches!(answer, Err(ClientError::Refused { status: 401, .. })), "{answer:?}");
}

#[test]
fn a_taken_port_is_an_error_that_names_it() {
    let server = serve();
    let admin = server.listening.admin();
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    let keys = Keys::open(&state, admin.ip()).unwrap();
    let accounts = Arc::new(Accounts::new(Table::default()).unwrap());
    let control = Control::new(
        Arc::new(Fake::default()),
        accounts,
        Arc::new(tree()),
        &keys.api_token,
        Arc::new(SystemClock),
    );
    let config = ListenConfig { admin, identity: keys.identity, socket: state.socket() };
    let error = listen::start(control, config).unwrap_err();
    assert!(error.to_string().contains(&admin.to_string()), "{error}");
}
