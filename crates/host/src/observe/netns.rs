//! Which process listens at an address, in any network namespace of this machine.
//!
//! An address of another namespace is as reachable as one of another machine, but its processes are
//! visible here. `/proc/PID/net` shows the namespace of that process, so that none is entered.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Root, addresses};

use super::family;

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Address; the unspecified one stands for all.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
    /// Inode of the socket; 0 for one that the kernel opened itself.
    pub inode: u64,
}

/// The processes behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The processes that have the socket, without those that these have started.
    pub pids: Vec<u32>,
    /// A process of its network namespace.
    pub network_of: u32,
    /// The namespace, as `net:[N]` names it.
    pub namespace: u64,
    /// Whether that is the namespace of this process.
    pub own_namespace: bool,
}

/// Why a server is not seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerNotFound {
    /// No namespace of this machine has the address, or none listens there.
    #[error("no process of this machine listens at this address")]
    Elsewhere,
    /// Two namespaces have the address and listen.
    #[error("several network namespaces of this machine have this address and a listener there")]
    Ambiguous,
    /// The kernel serves it.
    #[error("the socket belongs to no process: the server is in the kernel")]
    Kernel,
    /// The owner cannot be read.
    #[error("the processes of the server belong to another user: run as root to see them")]
    Denied,
}

/// Sockets that listen, from `/proc/PID/net/tcp` or `tcp6`.
pub fn parse_listening(text: &str) -> Vec<Listening> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (address, port) = words.get(1)?.split_once(':')?;
        if *words.get(3)? != "0A" {
            return None;
        }
        let port = u16::from_str_radix(port, 16).ok()?;
        let inode = words.get(9)?.parse().ok()?;
        Some(Listening { address: parse_address(address)?, port, inode })
    };
    text.lines().filter_map(row).collect()
}

/// An address as the kernel prints it: words of 32 bits in the byte order of the machine.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |n: usize| {
        let digits = text.get(8 * n..8 * n + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for n in 0..4 {
                bytes[4 * n..4 * n + 4].copy_from_slice(&word(n)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Number of a namespace from its link, `net:[4026531840]`.
pub fn parse_namespace(link: &str) -> Option<u64> {
    link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// The namespaces that processes of this machine are in, each with one of these.
fn namespaces(root: &Root) -> BTreeMap<u64, u32> {
    let mut found = BTreeMap::new();
    for pid in family::pids(root) {
        let link = root.link(&format!("proc/{pid}/ns/net"));
        if let Some(number) = link.and_then(|link| parse_namespace(link.to_str()?)) {
            found.entry(number).or_insert(pid);
        }
    }
    found
}

/// Whether the namespace of a process has one of these addresses.
fn has_address(root: &Root, pid: u32, wanted: &[IpAddr]) -> bool {
    let own = addresses::of(root, &pid.to_string());
    wanted.iter().any(|address| own.contains(address))
}

/// The sockets of a process's namespace that accept connections to one of these addresses.
fn listening(root: &Root, pid: u32, wanted: &[IpAddr], port: u16) -> Vec<Listening> {
    let files = ["tcp", "tcp6"].map(|name| format!("proc/{pid}/net/{name}"));
    let all = files.iter().flat_map(|file| parse_listening(&root.read(file).unwrap_or_default()));
    let fits = |l: &Listening| l.address.is_unspecified() || wanted.contains(&l.address);
    all.filter(|l| l.port == port && fits(l)).collect()
}

/// The server at one of these addresses (those of one host).
///
/// # Errors
/// Why it is not seen.
pub fn find(root: &Root, wanted: &[IpAddr], port: u16) -> Result<Server, ServerNotFound> {
    let own = root.link("proc/self/ns/net").and_then(|link| parse_namespace(link.to_str()?));
    let wanted: Vec<IpAddr> = wanted.iter().map(IpAddr::to_canonical).collect();
    let local = wanted.iter().any(IpAddr::is_loopback);
    let mut found = Vec::new();
    for (namespace, pid) in namespaces(root) {
        let is_own = Some(namespace) == own;
        // Loopback is this namespace, for each process.
        if local && !is_own || !local && !has_address(root, pid, &wanted) {
            continue;
        }
        let sockets = listening(root, pid, &wanted, port);
        if !sockets.is_empty() {
            found.push((namespace, pid, is_own, sockets));
        }
    }
    if found.iter().any(|f| f.2) {
        found.retain(|f| f.2);
    }
    let (namespace, pid, own_namespace, sockets) = match found.len() {
        0 => return Err(ServerNotFound::Elsewhere),
        1 => found.remove(0),
        _ => return Err(ServerNotFound::Ambiguous),
    };
    let inodes: Vec<u64> = sockets.iter().map(|s| s.inode).filter(|inode| *inode != 0).collect();
    if inodes.is_empty() {
        return Err(ServerNotFound::Kernel);
    }
    let holders = holders(root, &inodes);
    let pids = family::eldest(root, &holders);
    let network_of = *pids.first().ok_or(ServerNotFound::Denied)?;
    let of_namespace = |pid: u32| {
        let link = root.link(&format!("proc/{pid}/ns/net"));
        link.and_then(|link| parse_namespace(link.to_str()?)) == Some(namespace)
    };
    // A process may hold a socket of a namespace that it has left.
    let network_of = if of_namespace(network_of) { network_of } else { pid };
    Ok(Server { pids, network_of, namespace, own_namespace })
}

/// The processes that have one of these sockets open.
fn holders(root: &Root, inodes: &[u64]) -> Vec<u32> {
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let has = |pid: &u32| {
        let dir = format!("proc/{pid}/fd");
        let links = root.list(&dir).into_iter().filter_map(|fd| root.link(&format!("{dir}/{fd}")));
        links.into_iter().any(|link| wanted.iter().any(|w| link.as_os_str() == w.as_str()))
    };
    family::pids(root).into_iter().filter(has).collect()
}

/// The interface of this namespace that has the address, or else the one that has its network.
pub fn interface_of(address: IpAddr) -> Option<String> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call makes a list and stores its head in a local variable.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return None;
    }
    let (mut exact, mut network) = (None, None);
    let mut at = list;
    while !at.is_null() {
        // SAFETY: an entry of the list, which is released only after the loop.
        let entry = unsafe { &*at };
        at = entry.ifa_next;
        // SAFETY: both are null or point to an address that the list holds.
        let (own, mask) = unsafe { (address_of(entry.ifa_addr), address_of(entry.ifa_netmask)) };
        let Some(own) = own else { continue };
        // SAFETY: a name that ends with 0, held by the list.
        let name = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) };
        let name = name.to_string_lossy().into_owned();
        if own == address {
            exact.get_or_insert(name);
        } else if mask.is_some_and(|mask| same_network(own, address, mask)) {
            network.get_or_insert(name);
        }
    }
    // SAFETY: the list that the call above made, once.
    unsafe { libc::freeifaddrs(list) };
    exact.or(network)
}

/// # Safety
/// `address` is null or points to a socket address of the length that its family has.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: by the caller, of every address the family can be read.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: by the caller, one of this family is this long.
            let four = unsafe { &*address.cast::<libc::sockaddr_in>() };
            Some(IpAddr::V4(Ipv4Addr::from(four.sin_addr.s_addr.to_ne_bytes())))
        }
        libc::AF_INET6 => {
            // SAFETY: by the caller, one of this family is this long.
            let six = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            Some(IpAddr::V6(Ipv6Addr::from(six.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}

/// Whether two addresses of one family have the same network.
fn same_network(a: IpAddr, b: IpAddr, mask: IpAddr) -> bool {
    match (a, b, mask) {
        (IpAddr::V4(a), IpAddr::V4(b), IpAddr::V4(mask)) => {
            (a.to_bits() ^ b.to_bits()) & mask.to_bits() == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b), IpAddr::V6(mask)) => {
            (a.to_bits() ^ b.to_bits()) & mask.to_bits() == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
