//! Calls to clients: GRANTED until there is a reply, the replies to `*_MSG`, and the notification
//! of a restart. The only file of this folder that does I/O.
//!
//! Each message is a task on one of the service's runtimes. Calls are limited in total and for each
//! host; a task that waits for a permit or between two calls holds no locks.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket as StdUdpSocket};
use std::sync::Arc;
use std::time::Duration;

use base::clock::Deadline;
use base::limits::{
    NLM_CALL_TIME_MAX, NLM_CALLS_MAX, NLM_CALLS_PER_HOST_MAX, NLM_RETRY_FIRST, NLM_RETRY_MAX,
    NSM_NOTIFY_TIME_MAX, SMALL_RECORD_MAX,
};
use base::random::{Random, SystemRandom};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, UdpSocket};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wire::nlm4::{HostName, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, Nlm4Res, Nlm4Stat, TestArgs};
use wire::portmap::{
    IPPROTO_TCP, IPPROTO_UDP, Mapping, PMAP_PROGRAM, PMAP_V2, RPCB_V4, Rpcb, RpcbString, rpcb,
    uaddr, uaddr_parts,
};
use wire::rpc::{Accepted, Auth, AuthSys, CallHeader, Framer, Gids, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader, Writer, decode_all};
use wire::{nlm4, nsm, portmap};

use super::Nlm;
use super::blocks::{Block, BlockedRequest};
use super::hosts::{Port, owner_parts};
use engine::transport::address_places::AddressPlaces;
use engine::transport::small::{framed, read_record};
use engine::transport::tally::AddressPermit;
use engine::transport::tasks::Ending;

/// How long a datagram is waited for before it is sent again.
const DATAGRAM_AGAIN: Duration = Duration::from_secs(1);

/// A message to a client.
pub(super) enum Message {
    /// It has the lock that it waited for.
    Granted {
        /// Which.
        id: u64,
    },
    /// What its `*_MSG` came to; once.
    Answer {
        /// Where it is.
        address: IpAddr,
        /// The address of this server that it uses.
        local: Option<IpAddr>,
        /// The call that carries it.
        proc: nlm4::Proc,
        /// The results.
        results: Vec<u8>,
        /// Its place among such, of all and of its address.
        place: AddressPermit,
    },
    /// We have restarted.
    Restarted {
        /// Where it is.
        address: IpAddr,
    },
}

/// A program at a client.
#[derive(Clone, Copy)]
struct Peer {
    address: IpAddr,
    /// The address of this server that calls must come from, if that matters.
    local: Option<IpAddr>,
    prog: u32,
    vers: u32,
}

/// Sends messages until the service ends; calls in flight are then dropped.
pub(super) async fn run(
    nlm: Arc<Nlm>,
    mut messages: UnboundedReceiver<Message>,
    mut ending: Ending,
) -> bool {
    let places = Arc::new(Semaphore::new(NLM_CALLS_MAX));
    let turns = Arc::new(AddressPlaces::new(NLM_CALLS_PER_HOST_MAX));
    let mut under_way = JoinSet::new();
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            Some(_) = under_way.join_next() => continue,
            _ = ending.wait_for(|end| *end) => return true,
        };
        let Some(message) = message else { return true };
        let (places, turns) = (Arc::clone(&places), Arc::clone(&turns));
        let calls = Calls { nlm: Arc::clone(&nlm), places, turns };
        under_way.spawn_local(async move {
            match message {
                Message::Granted { id } => calls.granted(id).await,
                Message::Answer { address, local, proc, results, place } => {
                    let peer = Peer { address, local, prog: NLM_PROGRAM, vers: NLM_V4 };
                    // A client that does not receive it repeats its call.
                    drop(calls.find_and_ask(peer, proc.0, &results).await);
                    drop(place);
                }
                Message::Restarted { address } => calls.restarted(address).await,
            }
        });
    }
}

/// A growing pause, up to a deadline.
struct Backoff {
    pause: Duration,
    until: Deadline,
}

impl Backoff {
    fn new(most: Duration) -> Self {
        Self { pause: NLM_RETRY_FIRST, until: Deadline::after(most) }
    }

    /// Waits; false if it has been long enough.
    async fn wait(&mut self) -> bool {
        if self.until.passed() {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(NLM_RETRY_MAX);
        true
    }
}

struct Calls {
    nlm: Arc<Nlm>,
    /// Places for calls to all hosts, and to each.
    places: Arc<Semaphore>,
    turns: Arc<AddressPlaces>,
}

impl Calls {
    /// Waits for the permits for calls to an address: its own first, so that tasks that wait for an
    /// unreachable address hold no permits of the total.
    async fn place(&self, address: IpAddr) -> io::Result<[OwnedSemaphorePermit; 2]> {
        let closed = |_| io::Error::from(io::ErrorKind::NotConnected);
        // They are never closed.
        let turn = self.turns.of(address).acquire_owned().await.map_err(closed)?;
        Ok([turn, Arc::clone(&self.places).acquire_owned().await.map_err(closed)?])
    }

    /// Sends GRANTED to a client until it replies or no longer wants the lock. Once the client may
    /// have received the call, only its reply removes the lock: it may be working under it.
    async fn granted(&self, id: u64) {
        let mut patience = Backoff::new(self.nlm.grant_time);
        let may_know = Cell::new(false);
        loop {
            let knew = may_know.get();
            let Some((want, block)) = self.nlm.blocks.lock().granted(id) else { return };
            match self.send_granted(id, &want, &block, &may_know).await {
                Ok(Nlm4Stat::DENIED_GRACE_PERIOD) => {}
                // It waits no more, perhaps because it has heard before. If it gave up waiting, it
                // will cancel.
                Ok(stat) if knew && stat != Nlm4Stat::GRANTED => return,
                Ok(stat) => return self.nlm.answered(id, stat),
                // It may have restarted, and be somewhere else.
                Err(_) => block.host.line.lock().port = None,
            }
            if !patience.wait().await {
                if !may_know.get() {
                    return self.nlm.answered(id, Nlm4Stat::DENIED);
                }
                sleep(NLM_RETRY_MAX).await;
            }
        }
    }

    async fn send_granted(
        &self,
        id: u64,
        want: &BlockedRequest,
        block: &Block,
        may_know: &Cell<bool>,
    ) -> io::Result<Nlm4Stat> {
        let host = &block.host;
        let _place = self.place(host.address).await?;
        let line = *host.line.lock();
        let (prog, vers) = (NLM_PROGRAM, NLM_V4);
        let peer = Peer { address: host.address, local: line.local, prog, vers };
        let port = match line.port {
            Some(port) => port,
            None => self.port(peer).await?,
        };
        host.line.lock().port = Some(port);
        let (svid, oh) = owner_parts(&want.owner);
        let args = TestArgs {
            cookie: Netobj(&id.to_be_bytes()),
            exclusive: want.kind == vfs::locks::Kind::Write,
            alock: Nlm4Lock {
                caller_name: HostName(&host.name),
                fh: Netobj(block.handle.as_bytes()),
                oh: Netobj(oh),
                svid,
                l_offset: want.range.start,
                l_len: want.range.nlm_len(),
            },
        };
        let reply =
            self.ask_noting(peer, port, nlm4::Proc::GRANTED.0, &encoded(&args), may_know).await?;
        decode_all::<Nlm4Res<'_>>(&reply).map(|res| res.stat).map_err(invalid)
    }

    /// Notifies a client of our restart, by our address as it sees it and by our name: it knows us
    /// by one of them. The notification comes from the address of the service: a resource of a
    /// cluster has another one than its machine.
    async fn restarted(&self, address: IpAddr) {
        let mut patience = Backoff::new(NSM_NOTIFY_TIME_MAX);
        while self.send_restarted(address).await.is_err() {
            if !patience.wait().await {
                return;
            }
        }
    }

    async fn send_restarted(&self, address: IpAddr) -> io::Result<()> {
        let (prog, vers) = (nsm::NSM_PROGRAM, nsm::NSM_V1);
        let local = self.nlm.address.filter(|ours| ours.is_ipv4() == address.is_ipv4());
        let peer = Peer { address, local, prog, vers };
        let _place = self.place(address).await?;
        let port = self.port(peer).await?;
        let ours = match local {
            Some(local) => local,
            None => local_address(SocketAddr::new(address, port.number))?,
        };
        let ours = ours.to_string();
        for name in [&ours, &self.nlm.name] {
            let mon_name = nsm::SmName(name.as_bytes());
            let args = nsm::NotifyArgs { mon_name, state: self.nlm.state() };
            self.ask(peer, port, nsm::Proc::NOTIFY.0, &encoded(&args)).await?;
        }
        Ok(())
    }

    async fn find_and_ask(&self, peer: Peer, proc: u32, args: &[u8]) -> io::Result<Vec<u8>> {
        let _place = self.place(peer.address).await?;
        let port = self.port(peer).await?;
        self.ask(peer, port, proc, args).await
    }

    /// Queries the client's port mapper: for TCP, then for UDP; for NSM for UDP first, as it is
    /// mostly served by that.
    async fn port(&self, peer: Peer) -> io::Result<Port> {
        let first = peer.prog == nsm::NSM_PROGRAM;
        for udp in [first, !first] {
            let number = self.port_by(peer, udp).await?;
            if number != 0 {
                return Ok(Port { udp, number });
            }
        }
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    async fn port_by(&self, peer: Peer, udp: bool) -> io::Result<u16> {
        let vers = if peer.address.is_ipv6() { RPCB_V4 } else { PMAP_V2 };
        let mapper = Peer { prog: PMAP_PROGRAM, vers, ..peer };
        let (proc, args) = portmap_query(peer, udp);
        let number = self.nlm.portmap_port;
        let mut reply = Err(io::ErrorKind::NotConnected.into());
        for udp in [false, true] {
            reply = self.ask(mapper, Port { udp, number }, proc, &args).await;
            if reply.is_ok() {
                break;
            }
        }
        let reply = reply?;
        if vers == PMAP_V2 {
            let port = Reader::new(&reply).u32("port").map_err(invalid)?;
            return u16::try_from(port).map_err(|_| io::ErrorKind::InvalidData.into());
        }
        let text: RpcbString<'_> = decode_all(&reply).map_err(invalid)?;
        Ok(uaddr_parts(text.0).map_or(0, |(_, port)| port))
    }

    /// Calls a program, and waits for its reply.
    async fn ask(&self, peer: Peer, port: Port, proc: u32, args: &[u8]) -> io::Result<Vec<u8>> {
        self.ask_noting(peer, port, proc, args, &Cell::new(false)).await
    }

    /// The same; `sent` turns true when the call may have arrived.
    async fn ask_noting(
        &self,
        peer: Peer,
        port: Port,
        proc: u32,
        args: &[u8],
        sent: &Cell<bool>,
    ) -> io::Result<Vec<u8>> {
        let xid = SystemRandom.next_u64() as u32;
        let machine = self.nlm.name.as_bytes();
        let machine = machine.get(..machine.len().min(255)).unwrap_or_default();
        let sys = AuthSys { stamp: 0, machine, uid: 0, gid: 0, gids: Gids::default() };
        let (prog, vers) = (peer.prog, peer.vers);
        let cred = Auth::Sys(sys);
        let mut call = encoded(&CallHeader { xid, prog, vers, proc, cred, verf: Auth::None });
        call.extend_from_slice(args);
        let at = SocketAddr::new(peer.address, port.number);
        let exchange = async {
            match port.udp {
                true => by_datagram(at, peer.local, xid, &call, sent).await,
                false => by_connection(at, peer.local, xid, &call, sent).await,
            }
        };
        timeout(NLM_CALL_TIME_MAX, exchange).await?
    }
}

/// The query to a port mapper: version 2 for IPv4, 4 for IPv6.
fn portmap_query(peer: Peer, udp: bool) -> (u32, Vec<u8>) {
    let Peer { prog, vers, address, .. } = peer;
    if address.is_ipv4() {
        let prot = if udp { IPPROTO_UDP } else { IPPROTO_TCP };
        let args = Mapping { prog, vers, prot, port: 0 };
        return (portmap::Proc::GETPORT.0, encoded(&args));
    }
    let addr = uaddr(&address.to_string(), super::PORTMAP_PORT);
    let netid = RpcbString(if udp { b"udp6" } else { b"tcp6" });
    let (addr, owner) = (RpcbString(addr.as_bytes()), RpcbString(b""));
    (rpcb::GETADDR, encoded(&Rpcb { prog, vers, netid, addr, owner }))
}

async fn by_connection(
    at: SocketAddr,
    local: Option<IpAddr>,
    xid: u32,
    call: &[u8],
    sent: &Cell<bool>,
) -> io::Result<Vec<u8>> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(local) = local {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    let mut stream = socket.connect(at).await?;
    sent.set(true);
    stream.write_all(&framed(call)).await?;
    let (mut framer, mut input) = (Framer::new(), Vec::new());
    loop {
        let record = read_record(&mut stream, &mut framer, &mut input).await?;
        let record = record.ok_or(io::ErrorKind::UnexpectedEof)?;
        if let Some(results) = results(&record, xid)? {
            return Ok(results);
        }
    }
}

async fn by_datagram(
    at: SocketAddr,
    local: Option<IpAddr>,
    xid: u32,
    call: &[u8],
    sent: &Cell<bool>,
) -> io::Result<Vec<u8>> {
    let any = local.unwrap_or_else(|| any(at));
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(at).await?;
    let mut message = vec![0; SMALL_RECORD_MAX];
    loop {
        sent.set(true);
        socket.send(call).await?;
        let Ok(received) = timeout(DATAGRAM_AGAIN, socket.recv(&mut message)).await else {
            continue;
        };
        let message = message.get(..received?).unwrap_or_default();
        if let Some(results) = results(message, xid)? {
            return Ok(results);
        }
    }
}

/// The address of all interfaces, of the family that `at` is of.
fn any(at: SocketAddr) -> IpAddr {
    match at {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The address of this server that the host at `at` sees.
fn local_address(at: SocketAddr) -> io::Result<IpAddr> {
    let socket = StdUdpSocket::bind(SocketAddr::new(any(at), 0))?;
    // Nothing is sent by this.
    socket.connect(at)?;
    Ok(socket.local_addr()?.ip())
}

/// The results in a reply; `None` if it is one to another call.
fn results(message: &[u8], xid: u32) -> io::Result<Option<Vec<u8>>> {
    let mut r = Reader::new(message);
    let header = ReplyHeader::decode(&mut r).map_err(invalid)?;
    if header.xid != xid {
        return Ok(None);
    }
    match header.body {
        ReplyBody::Accepted { stat: Accepted::Success, .. } => Ok(Some(r.rest().to_vec())),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

fn invalid(error: wire::xdr::DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
