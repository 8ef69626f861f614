//! The addresses of this machine, as listed in `/proc/net`: the names of its certificate.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Root;

/// All addresses that others may reach it by: neither those of the loopback device nor link-local
/// ones. What cannot be read is none.
pub fn addresses(root: &Root) -> Vec<IpAddr> {
    let mut found = BTreeSet::new();
    let trie = root.read("proc/net/fib_trie").unwrap_or_default();
    found.extend(version_4(&trie).into_iter().map(IpAddr::V4));
    let six = root.read("proc/net/if_inet6").unwrap_or_default();
    found.extend(six.lines().filter_map(version_6).map(IpAddr::V6));
    found.into_iter().filter(|address| !address.is_loopback()).collect()
}

/// All addresses of the network namespace of process `pid`, those of its loopback device included.
pub fn of(root: &Root, pid: &str) -> BTreeSet<IpAddr> {
    let text = |file: &str| root.read(&format!("proc/{pid}/net/{file}")).unwrap_or_default();
    let four = version_4(&text("fib_trie")).into_iter().map(IpAddr::V4);
    let six = text("if_inet6");
    four.chain(six.lines().filter_map(version_6).map(IpAddr::V6)).collect()
}

/// In the trie of routes an address of the machine is a leaf with the type LOCAL below it.
fn version_4(trie: &str) -> Vec<Ipv4Addr> {
    let mut leaf = None;
    let mut found = Vec::new();
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(leaf.take().filter(|leaf: &Ipv4Addr| !leaf.is_link_local()));
        }
    }
    found
}

/// `fe80...01 02 40 20 80 eth0`: address, device, prefix, scope, flags, name. Scope 0 is global.
fn version_6(line: &str) -> Option<Ipv6Addr> {
    let mut words = line.split_whitespace();
    let address = u128::from_str_radix(words.next()?, 16).ok()?;
    let scope = words.nth(2)?;
    (scope == "00").then(|| Ipv6Addr::from_bits(address))
}

#[cfg(test)]
mod tests;
