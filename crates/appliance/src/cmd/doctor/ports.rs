//! The ports that the server would listen on: free, or in use, and by which process.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};

use base::protocol::Port;

use super::Target;
use super::finding::{Outcome, State};

/// Whether it could be listened there. An offset that leads beyond the last port was refused.
pub fn port(place: &Target<'_>, port: Port) -> Outcome {
    let at = match port.address(place.address, place.port_offset) {
        Ok(at) => at,
        Err(failure) => return Outcome::unknown(failure.why()),
    };
    let Err(e) = TcpListener::bind(at) else { return Outcome::is(true, format!("{at} is free")) };
    match e.kind() {
        ErrorKind::AddrInUse => match holder(at) {
            Some((name, pid)) => {
                Outcome::is(name == "plimsoll", format!("{at} is in use by {name}, pid {pid}"))
            }
            None => Outcome::is(false, format!("{at} is in use by a process of another user")),
        },
        ErrorKind::PermissionDenied => Outcome(
            State::No,
            format!("{at}: this user may not bind ports below 1024"),
            Some("root, CAP_NET_BIND_SERVICE, or --port-offset 10000"),
        ),
        _ => Outcome::is(false, format!("{at}: {e}")),
    }
}

/// The name and id of the process that listens on this address and port, or on one that conflicts
/// with it, as far as this user may see it.
fn holder(at: SocketAddr) -> Option<(String, u32)> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|text| listeners(&text, at))
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
    Some((fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned(), pid))
}

/// Inodes of the listening sockets that conflict with `at`, from a table in the format of
/// `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)).
pub fn listeners(table: &str, at: SocketAddr) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let is_in_the_way = |local: &str| {
        let (address, port) = local.split_once(':')?;
        let address = address_of(address)?;
        let everywhere = address.is_unspecified() || at.ip().is_unspecified();
        let is_same = everywhere || address.to_canonical() == at.ip().to_canonical();
        Some(is_same && u16::from_str_radix(port, 16).ok()? == at.port())
    };
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        (is_in_the_way(local)? && *state == LISTEN).then(|| inode.parse().ok())?
    };
    table.lines().filter_map(inode).collect()
}

/// An address as such a table has it: words of 32 bits in the order of this machine's bytes.
fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let words: Vec<[u8; 4]> = (0..text.len()).step_by(8).map(word).collect::<Option<_>>()?;
    match words[..] {
        [v4] => Some(IpAddr::from(v4)),
        [a, b, c, d] => Some(IpAddr::from(<[u8; 16]>::try_from([a, b, c, d].concat()).ok()?)),
        _ => None,
    }
}
