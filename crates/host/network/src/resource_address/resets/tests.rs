//! The packet, and a connection that ends by it although nothing is sent on it.

use std::io::Read;
use std::net::{TcpListener, TcpStream};

use e2e::netns::Namespace;
use e2e::{is_root, patience, skip};

use super::*;

#[test]
fn an_acknowledgement_has_ports_and_a_checksum() {
    let at = |text: &str| text.parse().expect("an address");
    let packet = acknowledgement(at("192.0.2.9:2049"), at("192.0.2.1:700")).expect("one family");
    assert_eq!(packet[..4], [8, 1, 2, 188]);
    assert_eq!(packet[4..12], [0; 8]);
    assert_eq!(packet[12..14], [0x50, 0x10]);
    // A receiver's sum over everything is 0xffff.
    let mut sum = 6 + 20;
    add(&mut sum, &[192, 0, 2, 9, 192, 0, 2, 1]);
    add(&mut sum, &packet);
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    let v6 = acknowledgement(at("[2001:db8::1]:2049"), at("[2001:db8::2]:700"));
    assert!(v6.is_ok_and(|packet| packet[16..18] != [0, 0]));
    assert!(acknowledgement(at("192.0.2.9:1"), at("[2001:db8::2]:700")).is_err());
}

/// The server vanishes with its address, as a machine does, and another one has the address.
#[test]
fn a_connection_of_a_former_owner_is_reset() {
    if !is_root() {
        skip!("resets", "network namespaces need root");
    }
    for (server, client) in [("10.9.0.1", "10.9.0.2"), ("fd09::1", "fd09::2")] {
        let bits = if server.contains(':') { "64 nodad" } else { "24" };
        let setup = |address: &str| {
            format!(
                "ip link set lo up\nip addr add {address}/{bits} dev eth0\nip link set eth0 up\n"
            )
        };
        let bridge = Namespace::with("ip link add br0 type bridge\nip link set br0 up\n");
        let bridge = bridge.expect("a namespace");
        let head = |name: &str, address: &str| {
            let link =
                format!("ip link add eth0 type veth peer name {name} netns {}\n", bridge.pid());
            let made = Namespace::with(&(link + &setup(address))).expect("a namespace");
            let mut up = std::process::Command::new("ip");
            up.args(["link", "set", name, "master", "br0", "up"]);
            bridge.enter(&mut up);
            assert!(up.status().expect("ip").success());
            made
        };
        let (former, peer) = (head("former", server), head("peer", client));
        let at = SocketAddr::new(server.parse().expect("an address"), 0);
        let listener = former.spawn(move || TcpListener::bind(at).expect("a port")).join();
        let listener = listener.expect("a listener");
        let at = listener.local_addr().expect("an address");
        let stream = peer.spawn(move || TcpStream::connect(at).expect("a connection")).join();
        let mut stream = stream.expect("a connection");
        let own = stream.local_addr().expect("an address");
        // It does not even say that it ends.
        let mut down = std::process::Command::new("ip");
        down.args(["link", "set", "former", "down"]);
        bridge.enter(&mut down);
        assert!(down.status().expect("ip").success());
        let next = head("next", server);
        next.spawn(move || Resets::open(at.ip()).and_then(|resets| resets.send(at.port(), own)))
            .join()
            .expect("no panic")
            .expect("sent");
        stream.set_read_timeout(Some(patience(20))).expect("a limit");
        let ended = stream.read(&mut [0]).map_err(|e| e.kind());
        assert_eq!(ended, Err(io::ErrorKind::ConnectionReset), "{server}");
    }
}
