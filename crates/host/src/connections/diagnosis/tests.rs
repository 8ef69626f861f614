//! Answers made here, damaged ones, and this machine's.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use super::*;

/// A message of a connection with this cookie.
fn message(family: i32, peer: [u8; 16], cookie: u64, info: &[u8]) -> Vec<u8> {
    let mut body = vec![0; MESSAGE];
    body[0] = family as u8;
    body[PEER..PEER + 16].copy_from_slice(&peer);
    body[COOKIE..COOKIE + 8].copy_from_slice(&cookie.to_ne_bytes());
    body.extend((info.len() as u16 + 4).to_ne_bytes());
    body.extend(INFO.to_ne_bytes());
    body.extend(info);
    let mut out = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    out.extend(BY_FAMILY.to_ne_bytes());
    out.extend([0; 10]);
    out.extend(body);
    out
}

fn info() -> Vec<u8> {
    let mut info = vec![0; 232];
    info[RTT..RTT + 4].copy_from_slice(&250u32.to_ne_bytes());
    info[EVENTS[0]..EVENTS[0] + 4].copy_from_slice(&7u32.to_ne_bytes());
    info[EVENTS[1]..EVENTS[1] + 4].copy_from_slice(&3u32.to_ne_bytes());
    info[LIMITED[1]..LIMITED[1] + 8].copy_from_slice(&900u64.to_ne_bytes());
    info
}

fn four() -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[10, 0, 0, 7]);
    address
}

#[test]
fn connections_are_read_with_their_clients() {
    let six: Ipv6Addr = "2001:db8::1".parse().expect("an address");
    let mut answer = message(libc::AF_INET, four(), 5, &info());
    answer.extend(message(libc::AF_INET6, six.octets(), 6, &info()));
    let mut seen = HashMap::new();
    assert!(!collect(&answer, &mut seen), "more may follow");
    assert_eq!(seen[&5].peer.to_canonical().to_string(), "10.0.0.7");
    assert_eq!(seen[&6].peer, six);
    let expected = Connection { peer: six, events: [7, 3], limited_us: [0, 900, 0], rtt_us: 250 };
    assert_eq!(seen[&6], expected);
    let mut done = 16u32.to_ne_bytes().to_vec();
    done.extend((libc::NLMSG_DONE as u16).to_ne_bytes());
    done.extend([0; 10]);
    assert!(collect(&done, &mut seen));
}

/// An older kernel has a shorter structure: what it lacks is 0.
#[test]
fn a_shorter_structure_is_read_as_far_as_it_goes() {
    let answer = message(libc::AF_INET, four(), 5, &info()[..104]);
    let mut seen = HashMap::new();
    collect(&answer, &mut seen);
    assert_eq!((seen[&5].events, seen[&5].limited_us), ([7, 0], [0; 3]));
}

#[test]
fn what_is_cut_or_has_wrong_lengths_is_survived() {
    let whole = message(libc::AF_INET, four(), 5, &info());
    for length in 0..whole.len() {
        collect(&whole[..length], &mut HashMap::new());
        let mut bytes = whole.clone();
        for value in [0, 1, 0x7f, 0xff] {
            bytes[length] = value;
            collect(&bytes, &mut HashMap::new());
        }
    }
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
