//! Data connections: how one is to come about, and how it does.
//!
//! Only the client's own address is let in or called (RFC 2577 §3): nobody has data sent to a third
//! party, and nobody else gets at the data of a client by guessing his port.

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
    /// Nothing was said.
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

/// The ports from which the kernel gives one to who asks for none. It gives the first that nobody
/// has, and looks for it past all connections that have ended a minute ago or less, which behind
/// ten thousand small files took it 2 ms; one taken by chance takes 10 µs, and is harder to guess.
fn kernel_ports() -> Option<&'static RangeInclusive<u16>> {
    static PORTS: OnceLock<Option<RangeInclusive<u16>>> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
        let (first, last) = text.trim().split_once(char::is_whitespace)?;
        Some(first.parse().ok()?..=last.trim_start().parse().ok()?)
    };
    PORTS.get_or_init(read).as_ref()
}

/// At a port by chance, or the next of the range that nobody has.
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

/// TLS for a connection over which the client only sends. He reads nothing of it, so there must be
/// nothing to be read: what lies there unread when he closes it resets the connection, and takes
/// along what is still on its way. The sessions of the control connection are there to be resumed.
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
    /// Whether nothing was said of how it comes about.
    pub(crate) fn is_unplanned(&self) -> bool {
        matches!(self.plan, Plan::None)
    }

    /// Makes it, with its place among connections.
    ///
    /// # Errors
    /// With what is said to the client then.
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

/// Puts TLS on it, if that was asked for.
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

/// Said where there is no place for another connection.
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
    // The client may let in only what comes from the address that he has called.
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
