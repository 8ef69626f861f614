//! Answers made here, damaged ones, and this machine's.

use super::*;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// An answer with one message: the other end's address, the cookie, the attributes.
pub fn answer(family: i32, peer: [u8; 16], cookie: u64, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![0; MESSAGE];
    body[0] = family as u8;
    body[PORTS[0]..][..2].copy_from_slice(&2049u16.to_be_bytes());
    body[PORTS[1]..][..2].copy_from_slice(&(cookie as u16).to_be_bytes());
    body[PEER..][..16].copy_from_slice(&peer);
    body[COOKIE..][..8].copy_from_slice(&cookie.to_ne_bytes());
    for (kind, content) in attributes {
        body.extend(((4 + content.len()) as u16).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(*content);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    [header(BY_FAMILY.into(), body.len()), body].concat()
}

/// The answer that is the last of a dump.
pub fn done() -> Vec<u8> {
    header(libc::NLMSG_DONE, 0)
}

fn header(kind: i32, body: usize) -> Vec<u8> {
    let mut out = ((HEADER + body) as u32).to_ne_bytes().to_vec();
    out.extend((kind as u16).to_ne_bytes());
    out.resize(HEADER, 0);
    out
}

/// Ports, and the first byte of `struct tcp_info`.
type SocketEntry = ((u16, u16), Option<u8>);

/// What an answer has; whether it is the last.
fn all(answer: &[u8]) -> (Vec<SocketEntry>, bool) {
    let mut seen = Vec::new();
    let end = messages(answer, &mut |message| {
        let ports = message.ports();
        let _both = (message.peer(), message.cookie());
        let info = message.info();
        seen.extend(ports.zip(info).map(|(ports, info)| (ports, info.u8_at(0))));
        ControlFlow::Continue(())
    });
    (seen, end.is_break())
}

#[test]
fn other_attributes_are_passed_over() {
    let first = answer(libc::AF_INET, [0; 16], 7, &[(INFO, &[1; 8])]);
    let second = answer(libc::AF_INET, [0; 16], 9, &[(8, &[3; 5]), (INFO, &[2; 8])]);
    let third = answer(libc::AF_INET, [0; 16], 11, &[(8, &[3; 5])]);
    let (seen, last) = all(&[first, second, third].concat());
    assert_eq!(seen, [((2049, 7), Some(1)), ((2049, 9), Some(2))]);
    assert!(!last, "more may follow");
    assert_eq!(all(&done()), (Vec::new(), true));
}

#[test]
fn addresses_and_cookies_are_read() {
    let six: Ipv6Addr = "2001:db8::1".parse().expect("an address");
    let mut four = [0; 16];
    four[..4].copy_from_slice(&[10, 0, 0, 7]);
    let both = [answer(libc::AF_INET, four, 5, &[]), answer(libc::AF_INET6, six.octets(), 6, &[])];
    let mut seen = Vec::new();
    let end = messages(&both.concat(), &mut |message| {
        let peer = message.peer().map(|peer| peer.to_canonical().to_string());
        seen.push((message.cookie(), peer));
        ControlFlow::Continue(())
    });
    assert!(end.is_continue());
    assert_eq!(seen, [(Some(5), Some("10.0.0.7".into())), (Some(6), Some("2001:db8::1".into()))]);
}

#[test]
fn an_answer_that_is_cut_or_has_wrong_lengths_is_survived() {
    let whole = answer(libc::AF_INET, [0; 16], 9, &[(INFO, &[2; 232])]);
    for length in 0..whole.len() {
        assert!(all(&whole[..length]).0.is_empty(), "{length}");
        let mut bytes = whole.clone();
        for value in [0, 1, 0x7f, 0xff] {
            bytes[length] = value;
            all(&bytes);
        }
    }
    // A message without a length would never end.
    assert_eq!(all(&[0; 64]), (Vec::new(), true));
}

#[test]
fn a_break_ends_an_answer() {
    let one = answer(libc::AF_INET, [0; 16], 9, &[(INFO, &[2; 8])]);
    let mut count = 0;
    let end = messages(&[one.clone(), one].concat(), &mut |_| {
        count += 1;
        ControlFlow::Break(())
    });
    assert_eq!((count, end), (1, ControlFlow::Break(())));
}

#[test]
fn both_ends_of_a_connection_of_this_machine_are_seen_repeatedly() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("one").port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    let (_peer, _) = listener.accept().expect("accepts");
    stream.write_all(&[1; 100]).expect("sent");
    let mut diagnosis = SocketDiagnosis::open().expect("netlink");
    for states in [ESTABLISHED, TRANSFERRING] {
        let mut ends = 0;
        let dumped = diagnosis.dump(libc::AF_INET, states, &mut |message| {
            let (own, peer) = message.ports().expect("ports");
            ends += u32::from(message.info().is_some() && (own == port || peer == port));
            ControlFlow::Continue(())
        });
        if dumped.is_err() {
            println!("SKIP tcp-diagnosis: the kernel does not answer");
            return;
        }
        assert_eq!(ends, 2);
    }
}
