//! Connections of this machine as they end.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::SockAddr;

use super::*;

/// An address that no other test connects from.
const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 93, 4, 17);

fn connect(listener: &TcpListener) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SockAddr::from(std::net::SocketAddr::from((CLIENT, 0)))).expect("an address");
    let at = listener.local_addr().expect("an address");
    socket.connect(&SockAddr::from(at)).expect("connects");
    socket.into()
}

#[test]
fn a_connection_that_ends_is_reported_with_its_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let Ok(ends) = Ends::open() else {
        println!("SKIP tcp-diagnosis: the kernel does not report ends");
        return;
    };
    let client = connect(&listener);
    let (server, _) = listener.accept().expect("accepts");
    let mut ended = HashMap::new();
    let of_client = |ended: &HashMap<u64, Connection>| {
        let is = |c: &&Connection| c.peer.to_canonical() == std::net::IpAddr::from(CLIENT);
        ended.values().find(is).copied()
    };
    ends.drain(&mut ended);
    assert_eq!(of_client(&ended), None, "it is open");
    drop((server, client));
    let end = Instant::now() + Duration::from_secs(60);
    let seen = loop {
        ends.drain(&mut ended);
        if let Some(seen) = of_client(&ended) {
            break seen;
        }
        assert!(Instant::now() < end, "its end is not reported");
        std::thread::yield_now();
    };
    assert!(seen.rtt_us > 0, "the structure is in the message: {seen:?}");
}
