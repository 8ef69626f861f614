//! The side that answers: a port where streams for data are waited for, as long as the run lasts.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::limits::{DSYNC_STREAMS_MAX, DSYNC_STREAMS_PENDING};
use wire::dsync::{Bytes, Offer, StreamRequest};

use super::tls::Shown;
use super::{Hooks, Streams};
use crate::error::SyncError;
use crate::link::spawn;
use crate::stop::Stop;

/// Where the side that answers lets streams come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reachable {
    /// The address by which the other side has reached this machine, if that is known.
    pub address: Option<IpAddr>,
    /// Ports, the first and the last, that take precedence over the requested ones: for a side with
    /// more privileges than the one that connects. Without them the requested ports are used.
    pub ports: Option<(u16, u16)>,
}

/// A port that is open.
pub struct Answerer {
    listener: Arc<TcpListener>,
    shown: Shown,
    most: usize,
}

impl Answerer {
    /// Opens a port as it is wanted, at the address by which this machine was reached, or at all.
    ///
    /// # Errors
    /// As [`Self::open_at`].
    pub fn open(
        wanted: &StreamRequest,
        reached: Option<IpAddr>,
    ) -> Result<(Self, Offer), SyncError> {
        Self::open_at(wanted, Reachable { address: reached, ports: None })
    }

    /// Opens a port as requested, or of `at`, at the address by which this machine was reached, or
    /// at all.
    ///
    /// # Errors
    /// [`SyncError::Broken`] for what cannot be meant, [`SyncError::Machine`] if there is none.
    pub fn open_at(wanted: &StreamRequest, at: Reachable) -> Result<(Self, Offer), SyncError> {
        let reached = at.address;
        let port = |number| u16::try_from(number).ok();
        let (Some(low), Some(high)) = (port(wanted.low), port(wanted.high)) else {
            return Err(SyncError::Broken("an invalid port"));
        };
        let (low, high) = at.ports.unwrap_or((low, high));
        let most = (wanted.most as usize).min(DSYNC_STREAMS_MAX);
        if low > high || most == 0 {
            return Err(SyncError::Broken("a request for zero streams"));
        }
        let addresses = match reached {
            Some(address) => vec![address],
            // The first takes IPv4, too, where the system does not forbid it.
            None => vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()],
        };
        let listener = bind(&addresses, low, high).map_err(SyncError::Machine)?;
        let port = listener.local_addr().map_err(SyncError::Machine)?.port();
        let shown = Shown::new()?;
        let offer = Offer {
            address: reached.map(|address| Bytes(address.to_string().into_bytes())),
            port: u32::from(port),
            fingerprint: shown.fingerprint,
            token: shown.token,
            most: most as u32,
        };
        Ok((Self { listener: Arc::new(listener), shown, most }, offer))
    }

    /// Takes what comes with the token.
    pub(super) fn start(
        self,
        streams: &Arc<Streams>,
        hooks: Arc<Hooks>,
        stop: &Arc<Stop>,
    ) -> Result<(), SyncError> {
        streams.wakes(Some(Arc::clone(&self.listener)), None);
        let (all, stop) = (Arc::clone(streams), Arc::clone(stop));
        streams.keep(spawn("accept", move || {
            // What a machine without descriptors cannot take does not end those that it has.
            let _closed = self.accept(&all, &hooks, &stop);
        })?);
        Ok(())
    }

    fn accept(
        &self,
        streams: &Arc<Streams>,
        hooks: &Arc<Hooks>,
        stop: &Arc<Stop>,
    ) -> io::Result<()> {
        let pending = Arc::new(AtomicUsize::new(0));
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => Arc::new(socket),
                Err(e) if passes(&e) => continue,
                Err(e) => return Err(e),
            };
            if streams.closed() {
                return Ok(());
            }
            if pending.fetch_add(1, Ordering::AcqRel) >= DSYNC_STREAMS_PENDING {
                pending.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            streams.watch(&socket);
            let (all, hooks, stop) = (Arc::clone(streams), Arc::clone(hooks), Arc::clone(stop));
            let (shown, most, waits) = (self.shown.clone(), self.most, Arc::clone(&pending));
            let served = spawn("stream", move || {
                let taken = shown.take(&socket);
                waits.fetch_sub(1, Ordering::AcqRel);
                // Strangers come to every port, and go without a word.
                let Ok(stream) = taken else { return };
                if all.came_up() > most {
                    stop.fail(SyncError::Broken("more streams than were agreed"));
                    return;
                }
                (hooks.stream)(stream, &all);
            });
            streams.keep(served.map_err(io::Error::other)?);
        }
    }
}

/// Whether an error is of one connection only.
fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

/// The first port that is free, at the first address that there is.
fn bind(addresses: &[IpAddr], low: u16, high: u16) -> io::Result<TcpListener> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for port in low..=high {
        for address in addresses {
            match TcpListener::bind(SocketAddr::new(*address, port)) {
                Ok(listener) => return Ok(listener),
                Err(e) => failed = e,
            }
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests;
