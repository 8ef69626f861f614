//! What the kernel says of a connection of this process's own, and answers that are none.

use super::*;
use std::net::{TcpListener, TcpStream};

#[test]
fn a_connection_is_found_by_the_port_of_its_other_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let port = near.local_addr().unwrap().port();
    let seen = Diagnosis::open(&NetworkNamespace::Here).unwrap();
    let Some(info) = seen.of(port) else {
        println!("SKIP tcp-diagnosis: the kernel does not tell");
        return;
    };
    let own = TcpInfo::of(&far).unwrap();
    for at in [16, 80] {
        assert_eq!(info.u32_at(at), own.u32_at(at), "the same connection's at {at}");
    }
    let other = listener.local_addr().unwrap().port();
    assert!(seen.of(other).is_some(), "the other end of it");
    drop((near, far));
    assert!(seen.of(port).is_none(), "it is gone");
}

/// An answer with one message, whose attributes are `attributes`.
fn answer(kind: i32, peer: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = vec![0; MESSAGE];
    message[PORTS[0]..][..2].copy_from_slice(&2049u16.to_be_bytes());
    message[PORTS[1]..][..2].copy_from_slice(&peer.to_be_bytes());
    for (kind, content) in attributes {
        message.extend(((4 + content.len()) as u16).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(*content);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    let mut out = ((HEADER + message.len()) as u32).to_ne_bytes().to_vec();
    out.extend((kind as u16).to_ne_bytes());
    out.resize(HEADER, 0);
    [out, message].concat()
}

#[test]
fn other_attributes_are_passed_over() {
    let first = answer(20, 7, &[(INFO, &[1; 8])]);
    let second = answer(20, 9, &[(8, &[3; 5]), (INFO, &[2; 8])]);
    let third = answer(20, 11, &[(8, &[3; 5])]);
    let mut seen = TcpInfoByPorts::new();
    assert!(!look(&[first, second, third].concat(), &mut seen));
    let seen: Vec<_> = seen.iter().map(|(ports, info)| (*ports, info.u8_at(0))).collect();
    assert_eq!(seen, [((2049, 7), Some(1)), ((2049, 9), Some(2))]);
    assert!(look(&answer(libc::NLMSG_DONE, 9, &[]), &mut TcpInfoByPorts::new()));
}

#[test]
fn an_answer_that_is_cut_off_has_nothing() {
    let whole = answer(20, 9, &[(INFO, &[2; 8])]);
    let mut seen = TcpInfoByPorts::new();
    for cut in 0..whole.len() {
        let _last = look(&whole[..cut], &mut seen);
        assert!(seen.is_empty(), "{cut}");
    }
    // A message without a length would never end.
    assert!(look(&[0; 64], &mut seen) && seen.is_empty());
}
