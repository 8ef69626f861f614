//! The listeners under connections that ask for nothing.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

use crate::client::Client;
use crate::client::tests::{Server, serve_at};

/// A loopback address of these tests' own.
const SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 44, 1);
/// Who opens connections and leaves them idle.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 44, 2);
/// Where the kernel has connections to loopback addresses come from.
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
fn idle_connections_of_a_stranger_lock_nobody_out() {
    answers_with_idle_connections_from(STRANGER);
}

#[test]
fn idle_connections_from_the_own_address_lock_nobody_out() {
    answers_with_idle_connections_from(OURS);
}
