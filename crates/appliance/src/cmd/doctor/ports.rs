//! The ports that would be listened on: free, or taken, and by whom.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};

use super::finding::Finding;
use crate::out::Failure;
use crate::services::{ADMIN, NFS, PORTMAP};

/// A process that has a port: its name and id.
struct Holder {
    name: String,
    pid: u32,
}

/// One for each service.
pub fn findings(address: IpAddr, offset: u16) -> Result<Vec<Finding>, Failure> {
    let other = "end what has it, or --port-offset N";
    let wanted = [
        (
            NFS,
            Finding::new(
                "NFS port",
                "clients find NFS where they look for it",
                "nothing: serving refuses to start",
                other,
            ),
        ),
        (
            ADMIN,
            Finding::new(
                "admin port",
                "the browser interface and the API answer",
                "nothing: serving refuses to start",
                other,
            ),
        ),
        (
            PORTMAP,
            Finding::new(
                "port mapper",
                "NFSv3 clients find the service for locks",
                "NFSv3 clients mount with nolock",
                other,
            ),
        ),
    ];
    wanted
        .into_iter()
        .map(|(service, finding)| Ok(tried(finding, service.address(address, offset)?)))
        .collect()
}

fn tried(finding: Finding, at: SocketAddr) -> Finding {
    let Err(e) = TcpListener::bind(at) else { return finding.is(true, format!("{at} is free")) };
    match e.kind() {
        ErrorKind::AddrInUse => match holder(at.port()) {
            Some(holder) if holder.name == "plimsoll" => {
                finding.is(true, format!("{at}: plimsoll, pid {}, serves there", holder.pid))
            }
            Some(holder) => {
                finding.is(false, format!("{at} is taken by {}, pid {}", holder.name, holder.pid))
            }
            None => finding.is(false, format!("{at} is taken by another user's process")),
        },
        ErrorKind::PermissionDenied => Finding {
            advice: "root, CAP_NET_BIND_SERVICE, or --port-offset 10000",
            ..finding.is(false, format!("{at}: this user may not take ports below 1024"))
        },
        _ => finding.is(false, format!("{at}: {e}")),
    }
}

/// Who listens on a TCP port, as far as this user may know.
fn holder(port: u16) -> Option<Holder> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| listeners(&text, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        links.any(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str()))
    };
    let pid = pids.find(has)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned();
    Some(Holder { name, pid })
}

/// Inodes of the sockets that listen on a port, of a table as `/proc/net/tcp` (proc(5)).
pub fn listeners(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        (local.ends_with(&suffix) && *state == LISTEN).then(|| inode.parse().ok())?
    };
    table.lines().filter_map(inode).collect()
}
