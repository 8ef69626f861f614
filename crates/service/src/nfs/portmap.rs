//! The port mapper and NSM over UDP: what NFSv3 clients need in addition to NFS for locks.

use std::net::SocketAddr;
use std::sync::Arc;

use base::protocol::ports::PORTMAP;
use serve::exec::Engine;
use serve::nlm::Nlm;
use serve::portmap::{self, Entry, PortMap};
use serve::transport::{Runtimes, Tasks, small};
use wire::mount3::{MOUNT_PROGRAM, MOUNT_V3};
use wire::nfs3::{NFS_PROGRAM, NFS_V3};
use wire::nfs4::NFS_V4;
use wire::nlm4::{NLM_PROGRAM, NLM_V4};
use wire::nsm::{NSM_PROGRAM, NSM_V1};

/// All programs on NFS's port.
const PROGRAMS: [(u32, u32); 5] = [
    (NFS_PROGRAM, NFS_V3),
    (NFS_PROGRAM, NFS_V4),
    (MOUNT_PROGRAM, MOUNT_V3),
    (NLM_PROGRAM, NLM_V4),
    (NSM_PROGRAM, NSM_V1),
];

/// Serves both, for NFS at `nfs`, as `tasks`. True if clients find NLM: the port mapper is on the
/// port that they query. If UDP is not available, a warning is logged and everything else
/// continues.
///
/// # Errors
/// There is no port mapper: why, one sentence.
pub fn start(
    (at, nfs): (SocketAddr, SocketAddr),
    (nlm, engine): (&Arc<Nlm>, &Arc<Engine>),
    runtimes: &Runtimes,
    tasks: &mut Tasks,
) -> Result<bool, String> {
    let tcp = PROGRAMS.map(|(prog, vers)| Entry { prog, vers, udp: false, port: nfs.port() });
    let mut programs = tcp.to_vec();
    match small::bind(nfs) {
        Ok(socket) => {
            let (service, engine) = (nlm.datagrams(), Arc::clone(engine));
            // That the runtimes end ends it, too.
            tasks.spawn_endless(runtimes, 0, move || small::datagrams(socket, service, engine));
            let port = nfs.port();
            programs.push(Entry { prog: NSM_PROGRAM, vers: NSM_V1, udp: true, port });
        }
        Err(e) => base::warning!(
            "nfs",
            "cannot bind UDP port {} ({e}): locks of a restarted NFSv3 client are not released",
            nfs.port()
        ),
    }
    let map = PortMap::new(nfs.ip(), at.port(), programs);
    let started = portmap::start(at, (map, engine), runtimes, tasks);
    started
        .map(|()| at.port() == PORTMAP.number)
        .map_err(|e| format!("no port mapper at {at} ({e}): NFSv3 clients must mount with nolock"))
}
