//! Records the connections of a resource for its next owner, in a thread, until the process ends
//! with the lease of its head or hands over: then its connections end without a word to clients.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock::Deadline;
use head::connections::{self, Connection};
use head::limits::{
    HEAD_ADDRESS_EVERY, HEAD_ADDRESS_TIMEOUT, HEAD_CONNECTIONS_EVERY, HEAD_CONNECTIONS_MAX,
};
use host::silent_end::SilentEnd;
use host::socket_diagnosis::{ESTABLISHED, SocketDiagnosis};
use host::{Root, addresses};
use serve::transport::silence;

use crate::sys;

/// The record of a resource.
pub struct Recorder {
    state: PathBuf,
    address: IpAddr,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    last: Option<BTreeSet<Connection>>,
    /// What was recorded last is for the next owner: connections end now.
    ended: bool,
}

impl Recorder {
    /// Starts the thread, for connections to this address; nothing without one.
    pub fn start(state: &Path, address: IpAddr) -> Option<Arc<Self>> {
        let this = Arc::new(Self { state: state.to_owned(), address, written: Mutex::default() });
        let follower = this.clone();
        let thread = std::thread::Builder::new().name("connections".to_owned());
        match thread.spawn(move || follower.follow()) {
            Ok(_) => Some(this),
            Err(e) => {
                unrecorded(&e);
                None
            }
        }
    }

    fn follow(&self) {
        let mut failed = false;
        while !self.written().ended {
            match self.record(false) {
                Err(e) if !failed => {
                    unrecorded(&e);
                    failed = true;
                }
                done => failed = done.is_err(),
            }
            std::thread::sleep(HEAD_CONNECTIONS_EVERY);
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        // What it guards is whole between any two steps.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, ends: bool) -> io::Result<()> {
        let mut written = self.written();
        if written.ended {
            return Ok(());
        }
        written.ended = ends;
        let all = established(self.address)?;
        if written.last.as_ref() != Some(&all) {
            let list: Vec<_> = all.iter().copied().collect();
            connections::write(&self.state, &list)?;
            written.last = Some(all);
        }
        Ok(())
    }

    /// Records the connections for the last time. From now on their clients do not notice their
    /// end, as long as the returned value is not ended.
    pub fn hand_over(&self) -> SilentEnd {
        // Before the record, which has all connections then: no port takes another one.
        let connections = SilentEnd::of(self.address).unwrap_or_else(|e| {
            base::warning!("head", "clients see the end of their connections: {e}");
            SilentEnd::default()
        });
        if let Err(e) = self.record(true) {
            unrecorded(&e);
            // The next owner does not know what to reset: clients must notice the end now.
            return SilentEnd::default();
        }
        silence::begin();
        connections
    }
}

fn unrecorded(error: &io::Error) {
    base::warning!("head", "connections are not recorded for a takeover: {error}");
}

/// Ends the connections of a resource that has been handed over. Its head removes the address as it
/// sees the end of the output; the ports answer nothing before.
pub fn vanish(connections: Option<SilentEnd>, address: IpAddr) {
    let Some(mut connections) = connections else { return };
    if let Err(e) = connections.end() {
        base::warning!("head", "clients see the end of their connections: {e}");
    }
    if let Err(e) = sys::end_output() {
        base::warning!("head", "the head does not see the end of the services: {e}");
        return;
    }
    let deadline = Deadline::after(HEAD_ADDRESS_TIMEOUT);
    let (root, own) = (Root::default(), "self");
    while addresses::of(&root, own).contains(&address) && !deadline.passed() {
        std::thread::sleep(HEAD_ADDRESS_EVERY);
    }
}

/// The established connections with this address of the resource.
fn established(address: IpAddr) -> io::Result<BTreeSet<Connection>> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let own = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut all = BTreeSet::new();
    SocketDiagnosis::open()?.dump(family, ESTABLISHED, &mut |message| {
        if message.own() == Some(own)
            && let (Some((port, other)), Some(peer)) = (message.ports(), message.peer())
        {
            all.insert((port, SocketAddr::new(peer.to_canonical(), other)));
        }
        match all.len() < HEAD_CONNECTIONS_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(all)
}
