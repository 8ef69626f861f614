//! URLs, HTTP framing, and both ways to a real listener.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::FromRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use analytics::model::Frame;
use analytics::query::Engine;
use base::clock::SystemClock;
use serde_json::Value;

use super::{Answer, Client, ClientError, host_and_port};
use crate::accounts::people::tests::ROOT;
use crate::accounts::{Accounts, Table};
use crate::api::Control;
use crate::api::tests::appliance::Fake;
use crate::appliance::Appliance as _;
use crate::certificates::own::Own;
use crate::certificates::shown::Shown;
use crate::listen::{self, ListenConfig, Listening};
use crate::state::StateDir;
use crate::state::keys::Keys;
use crate::state::tests::Scratch;
use crate::tree::Tree;
use crate::tree::store::Folder;

#[test]
fn urls() {
    let case = |url: &str| host_and_port(url).ok();
    assert_eq!(case("https://nas"), Some(("nas".into(), 215)));
    assert_eq!(case("https://nas:10215/"), Some(("nas".into(), 10215)));
    assert_eq!(case("https://[::1]:1"), Some(("::1".into(), 1)));
    assert_eq!(case("https://[::1]"), Some(("::1".into(), 215)));
    let bad = [
        "http://nas",
        "nas",
        "https://",
        "https://nas:x",
        "https://nas:+1",
        "https://nas/x",
        "https://[::1",
    ];
    for bad in bad {
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

pub(crate) struct Server {
    scratch: Scratch,
    pub(crate) listening: Listening,
    pub(crate) state: StateDir,
    pub(crate) tree: Arc<Tree>,
    engine: Arc<Engine>,
}

fn tree(state: &StateDir) -> Arc<Tree> {
    let disk = Arc::new(Folder::new(state.path()));
    Arc::new(Tree::open(disk, &ROOT, Arc::new(SystemClock)).unwrap())
}

fn shown(state: &StateDir) -> Arc<Shown> {
    let names = ["localhost", "127.0.0.1"].map(str::to_owned);
    let now = base::clock::wall_ns() / base::clock::NS_PER_S;
    Shown::new(&Own::open(state.path(), &names, now, false).unwrap().identity).unwrap()
}

fn serve() -> Server {
    serve_at(Ipv4Addr::LOCALHOST)
}

pub(crate) fn serve_at(address: Ipv4Addr) -> Server {
    let scratch = Scratch::new();
    // Longer than a socket address may be.
    let path = scratch.path().join("deep".repeat(30));
    let state = StateDir::open(&path).unwrap();
    let keys = Keys::open(&state).unwrap();
    let accounts = Arc::new(Accounts::new(Table::default()).unwrap());
    let fake = Arc::new(Fake::default());
    let engine = fake.engine().clone();
    let tree = tree(&state);
    let control =
        Control::new(fake, accounts, tree.clone(), &keys.api_token, Arc::new(SystemClock));
    let config = ListenConfig {
        admin: SocketAddr::from((address, 0)),
        shown: shown(&state),
        socket: state.socket(),
    };
    let listening = listen::start(control, config).unwrap();
    Server { scratch, listening, state, tree, engine }
}

/// A loopback address of one test's own: other tests, which run at the same time, listen on the
/// usual one, and the kernel may give them a port as soon as it is free.
const NOBODY_ELSES: Ipv4Addr = Ipv4Addr::new(127, 0, 43, 1);

#[test]
fn the_local_socket_and_https_answer_alike() {
    let server = serve_at(NOBODY_ELSES);
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
        let second = first_second(client, &server.engine);
        assert_eq!(second["stat"], "cpu.utilization");
    }
    server.listening.end();
    assert!(!server.state.socket().exists());
    assert!(matches!(local.get("/"), Err(ClientError::Unreachable { .. })));
    let gone = remote.get("/");
    assert!(matches!(gone, Err(ClientError::Unreachable { .. })), "{gone:?}");
}

/// The first second that a live stream brings, of seconds that come until it is there.
fn first_second(client: &Client, engine: &Engine) -> Value {
    let (mut first, heard) = (None, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for time in 1.. {
                if heard.load(Ordering::SeqCst) {
                    return;
                }
                engine.push(Frame { time, span: 1, covered: 1, ..Frame::default() });
                std::thread::yield_now();
            }
        });
        let done = client.follow("/api/v1/analytics/stream?stat=cpu.utilization", |data| {
            // Another event has the number of lost seconds.
            first = serde_json::from_str(data).ok().filter(|one: &Value| one["stat"].is_string());
            first.is_none()
        });
        heard.store(true, Ordering::SeqCst);
        done.unwrap();
    });
    first.unwrap()
}

/// A copy of the descriptor of a listener, as a child has it that another thread has forked and
/// that has not started its program yet.
fn copy_of_listener(at: SocketAddr) -> TcpListener {
    let copies = std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|entry| {
        let fd: i32 = entry.file_name().to_str()?.parse().ok()?;
        // SAFETY: it is not closed here. Another thread may close it, which is an error then.
        let listener = ManuallyDrop::new(unsafe { TcpListener::from_raw_fd(fd) });
        let is_it = listener.local_addr().ok()? == at && is_listening(fd);
        if is_it { listener.try_clone().ok() } else { None }
    });
    copies.last().unwrap()
}

fn is_listening(fd: i32) -> bool {
    let (mut value, mut size) = (0i32, size_of::<i32>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ACCEPTCONN);
    // SAFETY: `value` and `size` live as long as the call, and `size` is that of `value`.
    let done =
        unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut size) };
    done == 0 && value != 0
}

#[test]
fn it_does_not_listen_any_more_although_a_copy_of_the_descriptor_is_open() {
    let server = serve_at(Ipv4Addr::new(127, 0, 43, 2));
    let admin = server.listening.admin();
    let copy = copy_of_listener(admin);
    server.listening.end();
    let refused = TcpStream::connect(admin).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    TcpListener::bind(admin).expect("it is free for the next server");
    drop(copy);
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
    let keys = Keys::open(&state).unwrap();
    let accounts = Arc::new(Accounts::new(Table::default()).unwrap());
    let control = Control::new(
        Arc::new(Fake::default()),
        accounts,
        tree(&state),
        &keys.api_token,
        Arc::new(SystemClock),
    );
    let config = ListenConfig { admin, shown: shown(&state), socket: state.socket() };
    let error = listen::start(control, config).unwrap_err();
    assert!(error.to_string().contains(&admin.to_string()), "{error}");
}

/// A ClientHello (RFC 5246 §7.4.1.2) of this version with these cipher suites and nothing else
/// but the curves that its ECDHE suites need.
fn hello(version: [u8; 2], suites: &[u16]) -> Vec<u8> {
    let suites: Vec<u8> = suites.iter().flat_map(|suite| suite.to_be_bytes()).collect();
    // supported_groups with P-256 (RFC 8422 §5.1.1), then signature_algorithms with
    // ecdsa_secp256r1_sha256 (RFC 5246 §7.4.1.4.1).
    let extensions = [0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3];
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend((suites.len() as u16).to_be_bytes());
    body.extend(suites);
    body.extend([1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut handshake = vec![1, 0];
    handshake.extend((body.len() as u16).to_be_bytes());
    handshake.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend((handshake.len() as u16).to_be_bytes());
    record.extend(handshake);
    record
}

/// The first record that the server sends: its type and its first bytes.
fn first_record(server: &Server, hello: &[u8]) -> (u8, Vec<u8>) {
    let mut stream = TcpStream::connect(server.listening.admin()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(hello).unwrap();
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    stream.read_exact(&mut body).unwrap();
    (head[0], body)
}

#[test]
fn tls_below_1_2_and_suites_without_authenticated_encryption_are_refused() {
    const ALERT: u8 = 21;
    const HANDSHAKE: u8 = 22;
    let server = serve();
    // ECDHE_ECDSA with AES-256-GCM, AES-128-GCM, ChaCha20-Poly1305.
    let good = [0xc02c, 0xc02b, 0xcca9];
    let (kind, body) = first_record(&server, &hello([3, 3], &[0xc02b, 0xc02c]));
    assert_eq!(kind, HANDSHAKE, "{body:?}");
    // ServerHello: its suite stands behind type, length, version, random and an empty session id
    // or one of 32 bytes.
    let at = 39 + usize::from(body[38]);
    assert_eq!(body[at..at + 2], [0xc0, 0x2c], "the server's order, not the client's");
    for version in [[3, 0], [3, 1], [3, 2]] {
        let (kind, body) = first_record(&server, &hello(version, &good));
        assert_eq!((kind, body[0]), (ALERT, 2), "version {version:?}: {body:?}");
    }
    // CBC with SHA-1, CBC with SHA-256, RSA key transport, 3DES, RC4, NULL, export, anonymous.
    let bad = [0xc00a, 0xc009, 0xc023, 0x009c, 0x000a, 0xc012, 0x0005, 0xc006, 0x0003, 0x0034];
    for suite in bad {
        let (kind, body) = first_record(&server, &hello([3, 3], &[suite]));
        assert_eq!((kind, body[0]), (ALERT, 2), "suite {suite:04x}: {body:?}");
    }
    server.listening.end();
}
