//! Data connections: how the next one is established, and its establishment.
//!
//! Connections are accepted from and made to the client's own address only (RFC 2577 §3): a client
//! cannot have data sent to a third party, and another host cannot take over its data by guessing
//! the port.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use base::limits::{FTP_DATA_WAIT, FTP_PORTS_TRIED, FTP_STRANGERS_MAX};
use base::random::{Random, SystemRandom};
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::super::answer::Answer;
use engine::transport::acks::OpenAcks;
use engine::transport::connections::ConnectionPermit;
use engine::transport::link::Link;
use engine::transport::listener;
use files::Core;

/// Ports below this are those of services, to which no client has us connect (RFC 2577 §3).
pub(crate) const PORT_MIN: u16 = 1024;

/// How the next data connection comes about.
#[derive(Debug, Default)]
pub(crate) enum Plan {
    /// No PORT, EPRT, PASV or EPSV was received.
    #[default]
    None,
    /// The client calls here. The socket has a place among connections, which goes over to the one
    /// that comes.
    Passive(TcpListener, ConnectionPermit),
    /// The client waits there.
    Active(SocketAddr),
}

/// Waits for the client at a port of `local`.
///
/// # Errors
/// All ports of the range are in use, or the kernel has none.
pub(crate) fn wait_at(
    local: IpAddr,
    ports: Option<&RangeInclusive<u16>>,
) -> io::Result<(TcpListener, u16)> {
    match (ports, kernel_ports()) {
        (Some(range), _) => wait_within(local, range),
        (None, Some(range)) => wait_within(local, range).or_else(|_| wait_on(local, 0)),
        (None, None) => wait_on(local, 0),
    }
}

fn wait_on(local: IpAddr, port: u16) -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::from_std(listener::listen(SocketAddr::new(local, port))?)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// The range from which the kernel assigns a port to a socket bound to port 0. The kernel takes the
/// first free one and searches past all connections that have ended a minute ago or less: 2 ms
/// behind ten thousand small files. A random port takes 10 µs, and is harder to guess.
fn kernel_ports() -> Option<&'static RangeInclusive<u16>> {
    static PORTS: OnceLock<Option<RangeInclusive<u16>>> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
        let (first, last) = text.trim().split_once(char::is_whitespace)?;
        Some(first.parse().ok()?..=last.trim_start().parse().ok()?)
    };
    PORTS.get_or_init(read).as_ref()
}

/// Listens at a random port of the range, or the next one that is free.
fn wait_within(local: IpAddr, range: &RangeInclusive<u16>) -> io::Result<(TcpListener, u16)> {
    let (first, last) = (*range.start(), *range.end());
    let count = u64::from(last.saturating_sub(first)) + 1;
    let begin = SystemRandom.below(count);
    let mut error = io::Error::from(io::ErrorKind::AddrInUse);
    for step in 0..count.min(FTP_PORTS_TRIED as u64) {
        // Within the range, so within 16 bits.
        match wait_on(local, first + ((begin + step) % count) as u16) {
            Ok(opened) => return Ok(opened),
            Err(e) => error = e,
        }
    }
    Err(error)
}

/// The address for the reply to PASV; `None` if this is not an address that it can show.
pub(crate) fn v4(local: IpAddr, port: u16) -> Option<SocketAddrV4> {
    match local {
        IpAddr::V4(ip) => Some(SocketAddrV4::new(ip, port)),
        IpAddr::V6(_) => None,
    }
}

/// TLS for a connection over which only the client sends. The client never reads from it, so the
/// server must send no session tickets: unread data at close resets the connection, and with it the
/// data in flight. Clients resume the sessions of the control connection.
pub(crate) fn silent(tls: Arc<ServerConfig>) -> Arc<ServerConfig> {
    let mut silent = Arc::unwrap_or_clone(tls);
    silent.send_tls13_tickets = 0;
    Arc::new(silent)
}

/// What a data connection is made with.
pub(crate) struct Maker {
    pub(crate) plan: Plan,
    pub(crate) client: IpAddr,
    pub(crate) local: IpAddr,
    /// With TLS, and whether it must resume the session of the control connection.
    pub(crate) tls: Option<(Arc<ServerConfig>, bool)>,
}

impl Maker {
    /// Whether no command has stated how it is established.
    pub(crate) fn is_unplanned(&self) -> bool {
        matches!(self.plan, Plan::None)
    }

    /// Makes it, with its place among connections.
    ///
    /// # Errors
    /// With the reply for the client.
    pub(crate) async fn open(self, core: &Core) -> Result<(Link, ConnectionPermit), Answer> {
        let Self { plan, client, local, tls } = self;
        let connect = async {
            let none = || io::Error::from(io::ErrorKind::NotConnected);
            Ok(match plan {
                Plan::None => return Err(none()),
                Plan::Passive(listener, place) => (accept(&listener, client).await?, place),
                Plan::Active(to) => {
                    let place = core.engine.budgets.take_data_permit(client);
                    let place = place.ok_or_else(|| io::Error::other(CROWDED))?;
                    (call(local, to).await?, place)
                }
            })
        };
        let (stream, place) = match tokio::time::timeout(FTP_DATA_WAIT, connect).await {
            Ok(Ok(made)) => made,
            Ok(Err(e)) => return Err(Answer::with(425, format!("No data connection: {e}."))),
            Err(_) => return Err(Answer::of(425, "Timeout waiting for the data connection.")),
        };
        // As those that come to a service: one that cannot be prepared is broken already.
        let _prepared = listener::prepare(SockRef::from(&stream));
        let link = Link::new(stream, core.engine.budgets.limits().pace);
        Ok((secure(core, link, tls).await?, place))
    }
}

/// Starts TLS on it, if required.
async fn secure(
    core: &Core,
    mut link: Link,
    tls: Option<(Arc<ServerConfig>, bool)>,
) -> Result<Link, Answer> {
    let Some((config, must_resume)) = tls else { return Ok(link) };
    let secure = link.secure_as(config, (&core.buffers, &*core.budget));
    match tokio::time::timeout(FTP_DATA_WAIT, secure).await {
        Ok(Ok(())) if must_resume && !link.has_resumed() => {
            close(link, core);
            Err(Answer::of(522, "The data connection must resume the session of this one."))
        }
        Ok(Ok(())) => Ok(link),
        Ok(Err(e)) => {
            close(link, core);
            Err(Answer::with(425, format!("No TLS on the data connection: {e}.")))
        }
        Err(_) => {
            close(link, core);
            Err(Answer::of(425, "Timeout during the TLS handshake of the data connection."))
        }
    }
}

/// Text of the reply when the connection limit is reached.
const CROWDED: &str = "too many connections";

/// A place for another connection of a client.
///
/// # Errors
/// There is none.
pub(crate) fn place(core: &Core, client: IpAddr) -> Result<ConnectionPermit, Answer> {
    let crowded = || Answer::with(425, format!("No data connection: {CROWDED}."));
    core.engine.budgets.take_data_permit(client).ok_or_else(crowded)
}

/// The client's call; others are sent away.
async fn accept(listener: &TcpListener, client: IpAddr) -> io::Result<TcpStream> {
    for _ in 0..FTP_STRANGERS_MAX {
        let (stream, from) = listener.accept().await?;
        if from.ip().to_canonical() == client {
            return Ok(stream);
        }
    }
    Err(io::Error::other("connections from other hosts"))
}

async fn call(local: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The client may accept connections only from the address that it has connected to.
    if local.is_ipv4() == to.is_ipv4() {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    socket.connect(to).await
}

/// A data connection of which the sending side is closed.
pub(crate) struct Sent {
    pub(crate) stream: TcpStream,
    pub(crate) acks: OpenAcks,
    pub(crate) permit: ConnectionPermit,
}

/// Ends a data connection: what was sent still arrives.
pub(crate) fn close(mut link: Link, core: &Core) {
    link.close((&core.buffers, &*core.budget));
}

#[cfg(test)]
mod tests;
