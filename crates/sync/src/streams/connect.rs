//! The side that calls: finds a way to the port of the other side, and has as many streams come up
//! as bring something.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{DSYNC_CONNECT_TIMEOUT, DSYNC_STREAMS_MAX};
use wire::dsync::Offer;

use super::grow::Growth;
use super::tls::{PeerIdentity, Stream};
use super::{Hooks, Streams};
use crate::error::SyncError;
use crate::events::{Carried, Event, Report};
use crate::link::spawn;
use crate::stop::Stop;

/// How many streams are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamCount {
    /// As many as bring something.
    #[default]
    Auto,
    /// This number; none for 0.
    Fixed(usize),
}

/// What a side that starts a run wants of streams.
#[derive(Debug, Clone, Default)]
pub struct Calling {
    /// How many.
    pub wish: StreamCount,
    /// The ports that the other side may use, the lowest and the highest; any for 0.
    pub ports: (u16, u16),
    /// Names or addresses by which the other side may be reached, in addition to the one it offers.
    pub hosts: Vec<String>,
}

impl Calling {
    /// Nothing but the control stream.
    pub fn none() -> Self {
        Self { wish: StreamCount::Fixed(0), ..Self::default() }
    }

    /// Most streams that there may be.
    pub fn most(&self) -> usize {
        match self.wish {
            StreamCount::Auto => DSYNC_STREAMS_MAX,
            StreamCount::Fixed(streams) => streams.min(DSYNC_STREAMS_MAX),
        }
    }
}

/// What is known of the port that is offered.
pub struct Caller {
    known: PeerIdentity,
    hosts: Vec<String>,
    port: u16,
    most: usize,
    /// Whether all are wanted, and not as many as bring something.
    fixed: bool,
    report: Report,
    /// Numbers of streams that were used.
    numbers: AtomicU32,
}

/// A way that was found.
struct PeerPath {
    address: SocketAddr,
    rtt_ns: u64,
}

/// A connection and its way, or why there is none to a host.
type Connected = Result<(TcpStream, PeerPath), String>;

impl Caller {
    /// Takes an offer.
    ///
    /// # Errors
    /// [`SyncError::Broken`] for what cannot be meant.
    pub fn new(offer: &Offer, calling: &Calling, report: &Report) -> Result<Self, SyncError> {
        let port = u16::try_from(offer.port).ok().filter(|port| *port > 0);
        let Some(port) = port else { return Err(SyncError::Broken("an invalid port")) };
        let mut hosts = calling.hosts.clone();
        let offered = offer.address.iter().map(|a| String::from_utf8_lossy(&a.0).into_owned());
        // Mostly it is the one by which it was reached.
        hosts.extend(offered.filter(|address| !calling.hosts.contains(address)));
        Ok(Self {
            known: PeerIdentity::new(offer.fingerprint, offer.token)?,
            hosts,
            port,
            most: calling.most().min(offer.most as usize),
            fixed: calling.wish != StreamCount::Auto,
            report: Arc::clone(report),
            numbers: AtomicU32::new(0),
        })
    }

    /// Connects.
    pub(super) fn start(
        self,
        streams: &Arc<Streams>,
        hooks: Arc<Hooks>,
        stop: &Arc<Stop>,
    ) -> Result<(), SyncError> {
        let (end, ended) = channel();
        streams.wakes(None, Some(end));
        let (all, stop) = (Arc::clone(streams), Arc::clone(stop));
        // Not joined: it may be trying an address that is not needed any more.
        spawn("streams", move || {
            if let Err(e) = Arc::new(self).call(&all, &hooks, &ended) {
                stop.fail(e);
            }
        })?;
        Ok(())
    }

    fn call(
        self: Arc<Self>,
        streams: &Arc<Streams>,
        hooks: &Arc<Hooks>,
        ended: &Receiver<()>,
    ) -> Result<(), SyncError> {
        let mut asked = 1;
        let way = match self.first(streams, hooks, &mut asked) {
            _ if streams.closed() => return Ok(()),
            Ok((way, stream)) => {
                self.comes_up(&way, &stream, streams);
                let (all, hooks) = (Arc::clone(streams), Arc::clone(hooks));
                streams.keep(spawn("stream", move || (hooks.stream)(stream, &all))?);
                way
            }
            Err(why) => {
                (self.report)(Event::Carried(Carried { why, ..Carried::default() }));
                (hooks.alone)();
                return Ok(());
            }
        };
        let mut growth = Growth::new(self.most, way.rtt_ns);
        loop {
            let (arrived, queued) = streams.seen();
            let grown = growth.tick(monotonic_ns(), arrived, queued);
            let wanted = if self.fixed { self.most } else { grown };
            for _ in asked..wanted {
                self.more(&way, streams, hooks)?;
            }
            asked = wanted.max(asked);
            if asked >= self.most {
                return Ok(());
            }
            match ended.recv_timeout(Duration::from_nanos(growth.period_ns())) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return Ok(()),
            }
        }
    }

    /// The first stream, over whichever address answers first; why there is none. The other streams
    /// with which the run begins are connected as soon as an address answers, and counted in
    /// `asked`.
    fn first(
        self: &Arc<Self>,
        streams: &Arc<Streams>,
        hooks: &Arc<Hooks>,
        asked: &mut usize,
    ) -> Result<(Arc<PeerPath>, Stream), String> {
        let mut why = "no address of the other side is known".to_owned();
        let until = monotonic_ns() + DSYNC_CONNECT_TIMEOUT.as_nanos() as u64;
        let ways = self.ways(until).map_err(|e| e.to_string())?;
        loop {
            let left = Duration::from_nanos(until.saturating_sub(monotonic_ns()));
            let (socket, way) = match ways.recv_timeout(left) {
                Ok(Ok(found)) => found,
                Ok(Err(e)) => {
                    why = e;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => return Err("no reply in time".to_owned()),
                Err(RecvTimeoutError::Disconnected) => return Err(why),
            };
            let (socket, way) = (Arc::new(socket), Arc::new(way));
            streams.watch(&socket);
            let begins = Growth::new(self.most, way.rtt_ns).streams();
            for _ in *asked..begins {
                self.more(&way, streams, hooks).map_err(|e| e.to_string())?;
            }
            *asked = begins.max(*asked);
            match self.known.open(&socket, self.number()) {
                Ok(stream) => return Ok((way, stream)),
                Err(e) => why = format!("{}: {e}", way.address),
            }
        }
    }

    /// Tries all addresses at once.
    fn ways(&self, until: u64) -> Result<Receiver<Connected>, SyncError> {
        let (found, ways) = channel();
        for host in &self.hosts {
            let (host, port, found) = (host.clone(), self.port, found.clone());
            // Not joined: it ends at its timeout.
            spawn("connect", move || {
                let tried = connect(&host, port, until).map_err(|e| format!("{host}: {e}"));
                // Another way may have been found already.
                let _late = found.send(tried);
            })?;
        }
        Ok(ways)
    }

    /// One more stream. What does not come up is no loss.
    fn more(
        self: &Arc<Self>,
        way: &Arc<PeerPath>,
        streams: &Arc<Streams>,
        hooks: &Arc<Hooks>,
    ) -> Result<(), SyncError> {
        let (caller, way) = (Arc::clone(self), Arc::clone(way));
        let (all, hooks) = (Arc::clone(streams), Arc::clone(hooks));
        // Not joined: the run may have ended before the other side has answered.
        spawn("connect", move || {
            let connected = TcpStream::connect_timeout(&way.address, DSYNC_CONNECT_TIMEOUT);
            let Ok(socket) = connected.map(Arc::new) else { return };
            let streams = Arc::clone(&all);
            let served = spawn("stream", move || {
                all.watch(&socket);
                if let Ok(stream) = caller.known.open(&socket, caller.number()) {
                    caller.comes_up(&way, &stream, &all);
                    (hooks.stream)(stream, &all);
                }
            });
            // Where no thread can be had there is a stream less.
            served.into_iter().for_each(|thread| streams.keep(thread));
        })?;
        Ok(())
    }

    /// One for the next stream.
    fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn comes_up(&self, way: &PeerPath, stream: &Stream, streams: &Streams) {
        (self.report)(Event::Carried(Carried {
            streams: streams.came_up(),
            rtt_ns: way.rtt_ns,
            congestion: stream.congestion.clone(),
            why: String::new(),
        }));
    }
}

/// Connects to the first address of a host that answers.
fn connect(host: &str, port: u16, until_ns: u64) -> std::io::Result<(TcpStream, PeerPath)> {
    let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        let began = monotonic_ns();
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(socket) => {
                return Ok((socket, PeerPath { address, rtt_ns: monotonic_ns() - began }));
            }
            Err(e) => failed = e,
        }
    }
    Err(failed)
}
