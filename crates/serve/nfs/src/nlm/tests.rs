//! Tests of the tables: the requests that wait, their owners, and the limits on their number.

use base::limits::{
    NLM_BLOCKED_PER_ADDRESS_MAX, NLM_BLOCKED_PER_HOST_MAX, NLM_HOSTS_PER_ADDRESS_MAX,
};
use vfs::handle::Handle;
use vfs::locks::{FileKey, Kind, Range};

use super::blocks::{BlockedRequest, Blocks};
use super::hosts::{Host, Hosts, owner_parts, record, recorded, same_name};
use super::*;

mod sim;

const KEY: FileKey = FileKey { fsid: 1, fileid: 2, generation: 0 };

fn wanted(host: &Host, start: u64) -> BlockedRequest {
    let owner = host.owner(7, b"oh").unwrap();
    BlockedRequest { key: KEY, owner, range: Range::new(start, 1).unwrap(), kind: Kind::Write }
}

#[test]
fn one_host_does_not_take_all_places() {
    let (mut hosts, mut blocks) = (Hosts::default(), Blocks::default());
    let address = IpAddr::from([10, 0, 0, 1]);
    let one = hosts.find_or_add(address, b"one").unwrap();
    let two = hosts.find_or_add(address, b"two").unwrap();
    let handle = Handle::new(b"file").unwrap();
    for n in 0..NLM_BLOCKED_PER_HOST_MAX as u64 {
        assert!(blocks.enter(&wanted(&one, n), &one, handle).is_some());
    }
    let more = wanted(&one, 1 << 40);
    assert!(blocks.enter(&more, &one, handle).is_none());
    assert!(blocks.enter(&wanted(&one, 3), &one, handle).is_some(), "it already exists");
    assert!(blocks.enter(&wanted(&two, 0), &two, handle).is_some());
    assert!(blocks.remove(&wanted(&one, 3)));
    assert!(blocks.enter(&more, &one, handle).is_some());
    blocks.remove_host(one.key);
    assert_eq!(blocks.len(), 1);
}

#[test]
fn the_hosts_of_one_address_do_not_take_all_places() {
    let (mut hosts, mut blocks) = (Hosts::default(), Blocks::default());
    let [here, there] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let handle = Handle::new(b"file").unwrap();
    let mut taken = 0;
    for name in 0..NLM_HOSTS_PER_ADDRESS_MAX {
        let host = hosts.find_or_add(here, name.to_string().as_bytes()).unwrap();
        let more = (0..NLM_BLOCKED_PER_HOST_MAX as u64)
            .take_while(|n| blocks.enter(&wanted(&host, *n), &host, handle).is_some());
        match more.count() {
            0 => break,
            more => taken += more,
        }
    }
    assert_eq!(taken, NLM_BLOCKED_PER_ADDRESS_MAX);
    let other = hosts.find_or_add(there, b"other").unwrap();
    assert!(blocks.enter(&wanted(&other, 0), &other, handle).is_some());
    let first = hosts.find_or_add(here, b"0").unwrap();
    blocks.remove_host(first.key);
    assert!(blocks.enter(&wanted(&first, 0), &first, handle).is_some(), "it has room again");
}

#[test]
fn a_grant_is_for_a_waiting_owner_and_once() {
    let (mut hosts, mut blocks) = (Hosts::default(), Blocks::default());
    let host = hosts.find_or_add(IpAddr::from([10, 0, 0, 1]), b"one").unwrap();
    let (handle, want) = (Handle::new(b"file").unwrap(), wanted(&host, 0));
    let id = blocks.enter(&want, &host, handle).unwrap();
    assert!(blocks.granted(id).is_none());
    assert!(blocks.grant(id));
    assert!(!blocks.grant(id), "it is told once");
    assert!(blocks.is_granted(&want));
    // Requested again, it waits again.
    let again = blocks.enter(&want, &host, handle).unwrap();
    assert_ne!(again, id);
    assert!(blocks.granted(id).is_none() && !blocks.is_granted(&want));
    assert!(!blocks.grant(id));
    assert!(blocks.grant(again));
    blocks.unlocked(KEY, &want.owner, Range::new(5, 1).unwrap());
    assert_eq!(blocks.len(), 1, "other bytes");
    blocks.unlocked(KEY, &want.owner, Range::to_end(0));
    assert_eq!(blocks.len(), 0);
}

#[test]
fn hosts_are_distinguished_and_recorded() {
    let mut hosts = Hosts::default();
    let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]));
    let one = hosts.find_or_add(here, b"one").unwrap();
    assert_ne!(hosts.find_or_add(there, b"one").unwrap().key, one.key);
    assert_eq!(hosts.find_or_add(here, b"one").unwrap().key, one.key);
    assert!(hosts.find_or_add(here, b"").is_none());
    for n in 1..NLM_HOSTS_PER_ADDRESS_MAX {
        assert!(hosts.find_or_add(here, format!("h{n}").as_bytes()).is_some());
    }
    assert!(hosts.find_or_add(here, b"more").is_none(), "at one address");
    assert!(hosts.find_or_add(there, b"more").is_some());
    let site = |n: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]);
    for n in 0..NLM_HOSTS_PER_ADDRESS_MAX as u16 {
        assert!(hosts.find_or_add(site(n), b"one").is_some());
    }
    assert!(hosts.find_or_add(site(u16::MAX), b"one").is_none(), "in one /64");
    let host = hosts.find_or_add(site(0), b"one").unwrap();
    hosts.remove(&host);
    assert!(hosts.find_or_add(site(u16::MAX), b"one").is_some());
    hosts.remove(&one);
    hosts.remove(&one);
    assert!(hosts.find_or_add(here, b"more").is_some());
    assert!(hosts.find_or_add(here, b"and more").is_none());
    for (address, name) in [(here, &b"one"[..]), (there, b"a\xffb")] {
        assert_eq!(recorded(&record(address, name)), Some((address, name.to_vec())));
    }
    assert_eq!(owner_parts(&one.owner(u32::MAX, b"x").unwrap()), (u32::MAX, &b"x"[..]));
    assert!(same_name(b"One.example", b"one") && same_name(b"a.b", b"A.c"));
    assert!(!same_name(b"one", b"two") && !same_name(b"one", b"on"));
}
