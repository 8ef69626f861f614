//! Answers made here, and this machine's.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::socket_diagnosis::tests::answer;

/// The attribute with `struct tcp_info`.
const INFO: u16 = 2;

fn info() -> Vec<u8> {
    let mut info = vec![0; 232];
    info[RTT..RTT + 4].copy_from_slice(&250u32.to_ne_bytes());
    info[EVENTS[0]..EVENTS[0] + 4].copy_from_slice(&7u32.to_ne_bytes());
    info[EVENTS[1]..EVENTS[1] + 4].copy_from_slice(&3u32.to_ne_bytes());
    info[LIMITED[1]..LIMITED[1] + 8].copy_from_slice(&900u64.to_ne_bytes());
    info
}

#[test]
fn connections_are_read_with_their_clients() {
    let six: Ipv6Addr = "2001:db8::1".parse().expect("an address");
    let mut seen = HashMap::new();
    collect(&answer(libc::AF_INET6, six.octets(), 6, &[(INFO, &info())]), &mut seen);
    let expected = Connection { peer: six, events: [7, 3], limited_us: [0, 900, 0], rtt_us: 250 };
    assert_eq!(seen, HashMap::from([(6, expected)]));
}

/// An older kernel has a shorter structure: what it lacks is 0.
#[test]
fn a_shorter_structure_is_read_as_far_as_it_goes() {
    let mut seen = HashMap::new();
    collect(&answer(libc::AF_INET, [0; 16], 5, &[(INFO, &info()[..104])]), &mut seen);
    assert_eq!((seen[&5].events, seen[&5].limited_us), ([7, 0], [0; 3]));
}

#[test]
fn a_connection_of_this_machine_is_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut stream = TcpStream::connect(listener.local_addr().expect("one")).expect("connects");
    let (_peer, _) = listener.accept().expect("accepts");
    stream.write_all(&[1; 100]).expect("sent");
    let Ok(seen) = connections() else {
        println!("SKIP tcp-diagnosis: the kernel does not answer");
        return;
    };
    assert!(seen.len() >= 2, "both ends of it: {}", seen.len());
    let loopback = |c: &&Connection| c.peer.to_canonical().is_loopback();
    assert!(seen.values().filter(loopback).count() >= 2);
}
