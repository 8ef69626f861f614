//! The listeners under connections without requests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

use crate::client::Client;
use crate::client::tests::{Server, serve_at};

/// A loopback address of these tests' own.
const SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 44, 1);
/// The client that opens connections and leaves them idle.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 44, 2);
/// The source address that the kernel uses for connections to loopback addresses.
const OURS: Ipv4Addr = Ipv4Addr::LOCALHOST;

async fn idle(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

fn status_is_answered(server: &Server) {
    let local = Client::local(&server.state.socket());
    local.get("/api/v1/status").expect("an answer at the local socket");
    let url = format!("https://{}", server.listening.admin());
    let (token, certificate) =
        (server.state.file("api-token"), server.state.file("certificate.pem"));
    let remote = Client::remote(&url, &token, &certificate).unwrap();
    remote.get("/api/v1/status").expect("an answer over HTTPS");
}

fn answers_with_idle_connections_from(stranger: Ipv4Addr) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = serve_at(SERVER);
    let at = server.listening.admin();
    let idle = runtime.block_on(async {
        let mut idle = Vec::new();
        for _ in 0..300 {
            idle.push(self::idle(stranger, at).await);
        }
        idle
    });
    status_is_answered(&server);
    drop(idle);
}

#[test]
fn idle_connections_of_a_stranger_do_not_lock_others_out() {
    answers_with_idle_connections_from(STRANGER);
}

#[test]
fn idle_connections_from_the_own_address_do_not_lock_others_out() {
    answers_with_idle_connections_from(OURS);
}

/// How long an end may take: the server ends idle connections later.
const SOON: Duration = Duration::from_secs(5);

/// Sends a request that leaves the connection open; whether it is answered.
fn is_answered(stream: &mut UnixStream) -> bool {
    let request = b"GET /api/v1/session HTTP/1.1\r\nHost: plimsoll\r\n\r\n";
    let mut answer = [0; 12];
    let sent = stream.write_all(request).is_ok();
    sent && stream.read_exact(&mut answer).is_ok() && answer == *b"HTTP/1.1 200"
}

/// What is left of the answer is read, then the end comes, or nothing for a moment.
fn has_ended(stream: &mut UnixStream) -> bool {
    let mut rest = [0; 4_096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

#[test]
fn connections_that_were_accepted_before_a_renewal_end_and_later_ones_stay() {
    let server = serve_at(SERVER);
    let connect = || {
        let stream = super::local::connect(&server.state.socket()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    };
    let mut before = connect();
    assert!(is_answered(&mut before));
    server.tree.renew_connections();
    assert!(has_ended(&mut before), "an idle connection ends");
    let mut after = connect();
    assert!(is_answered(&mut after));
    after.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(!has_ended(&mut after), "one that is made after it stays");
    after.set_read_timeout(Some(SOON)).unwrap();
    assert!(is_answered(&mut after));
}
