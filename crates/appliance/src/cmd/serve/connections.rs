//! Records the connections of a resource for its next owner, in a thread, until the
//! process ends with the lease of its head.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;

use head::connections::{self, Connection};
use head::limits::{HEAD_CONNECTIONS_EVERY, HEAD_CONNECTIONS_MAX};
use host::socket_diagnosis::{ESTABLISHED, SocketDiagnosis};

/// Starts the thread, for connections to this address.
///
/// # Errors
/// There is no thread.
pub fn start(state: &Path, address: IpAddr) -> io::Result<()> {
    let state = state.to_owned();
    let work = move || follow(&state, address);
    std::thread::Builder::new().name("connections".to_owned()).spawn(work).map(drop)
}

fn follow(state: &Path, address: IpAddr) {
    let mut written = None;
    let mut failed = false;
    loop {
        let done = established(address).and_then(|all| {
            if written.as_ref() != Some(&all) {
                let list: Vec<_> = all.iter().copied().collect();
                connections::write(state, &list)?;
                written = Some(all);
            }
            Ok(())
        });
        match done {
            Err(e) if !failed => {
                base::warning!("head", "connections are not recorded for a takeover: {e}");
                failed = true;
            }
            done => failed = done.is_err(),
        }
        std::thread::sleep(HEAD_CONNECTIONS_EVERY);
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
