//! A client that probes, shakes hands, and calls over the session; and its steps one by one.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use wire::nfs3::{NFS_PROGRAM, NFS_V3};
use wire::rpc::{AUTH_TLS, Accepted, Auth, CallHeader, ReplyBody, STARTTLS};

use crate::client::{Client, Reply, record};

/// A client over TLS.
pub type Secured = Client<StreamOwned<ClientConnection, TcpStream>>;

pub const PROBE: Auth<'static> = Auth::Raw { flavor: AUTH_TLS, body: &[] };

/// A call of NFSv3 with these credentials.
pub fn call(xid: u32, proc: u32, cred: Auth<'_>, verf: Auth<'_>) -> Vec<u8> {
    record(CallHeader { xid, prog: NFS_PROGRAM, vers: NFS_V3, proc, cred, verf }, &())
}

/// The probe.
pub fn probe(xid: u32) -> Vec<u8> {
    call(xid, 0, PROBE, Auth::None)
}

/// Whether a reply offers STARTTLS.
pub fn offers_starttls(reply: &Reply) -> bool {
    let (body, rest) = reply.open();
    assert!(rest.rest().is_empty(), "NULL has no results");
    match body {
        ReplyBody::Accepted { verf, stat: Accepted::Success } => {
            verf == Auth::Raw { flavor: 0, body: STARTTLS }
        }
        other => panic!("{other:?}"),
    }
}

/// A connection with a successful probe.
pub fn probed(addr: SocketAddr) -> Client {
    let mut client = Client::connect(addr);
    client.send(&probe(77));
    let reply = client.receive();
    assert_eq!(reply.xid, 77);
    assert!(offers_starttls(&reply));
    client
}

impl Secured {
    /// Connects, probes, shakes hands.
    pub fn session(addr: SocketAddr, config: ClientConfig) -> io::Result<Self> {
        Self::over(probed(addr), config)
    }

    /// Performs the handshake on a connection with a successful probe.
    pub fn over(plain: Client, config: ClientConfig) -> io::Result<Self> {
        let mut stream = plain.stream.tcp();
        let name = "localhost".try_into().expect("a name");
        let mut tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        let stream = StreamOwned::new(tls, stream);
        // Calls of its own, not repeats of another's.
        Ok(Self { stream, xid: 1_000_000, uid: plain.uid, gid: plain.gid })
    }

    /// Whether the server has ended the session: with an alert, a close, or nothing.
    pub fn is_over(&mut self) -> bool {
        match self.try_receive() {
            Ok(reply) => panic!("a reply: {reply:?}"),
            Err(e) => !matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }
}
