//! What the kernel reports of a connection of this process's own.

use super::*;
use std::net::{TcpListener, TcpStream};

#[test]
fn a_connection_is_found_by_the_port_of_its_other_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let port = near.local_addr().unwrap().port();
    let seen = Diagnosis::open(&NetworkNamespace::Local).unwrap();
    let Some(info) = seen.of(port) else {
        println!("SKIP tcp-diagnosis: the kernel does not answer");
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
