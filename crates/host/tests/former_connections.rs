//! Connections of an address are ended, and those of another one and listeners are not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use e2e::netns::Namespace;
use e2e::{is_root, skip};
use host::socket_diagnosis::SocketDiagnosis;
use socket2::{Domain, Socket, Type};

#[test]
fn connections_of_the_address_end_and_no_others() {
    if !is_root() {
        skip!("stale", "network namespaces need root");
    }
    let namespace = match Namespace::with("ip link set lo up\n") {
        Ok(namespace) => namespace,
        Err(why) => skip!("stale", "{why}"),
    };
    let test = namespace.spawn(|| {
        let end = |address: &str| {
            let address = address.parse().expect("an address");
            let mut sockets = SocketDiagnosis::open().expect("netlink");
            sockets.end_connections(address).expect("ended")
        };
        let open = |from: &str, to: &str| {
            let listener = TcpListener::bind((to, 0)).expect("a listener");
            let client = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            let at = |ip: &str, port| SocketAddr::new(ip.parse().expect("an address"), port);
            client.bind(&at(from, 0).into()).expect("bound");
            let to = listener.local_addr().expect("an address");
            client.connect(&to.into()).expect("connected");
            let server = listener.accept().expect("a connection").0;
            (listener, TcpStream::from(client), server)
        };
        let (listener, mut ended, _server) = open("127.0.0.3", "127.0.0.1");
        let (_other, mut stays, mut server) = open("127.0.0.3", "127.0.0.2");
        assert_eq!(end("127.0.0.1"), 1);
        assert!(ended.read(&mut [0; 1]).is_err(), "it goes on");
        server.write_all(b"x").expect("written");
        stays.read_exact(&mut [0; 1]).expect("another address is as it was");
        assert!(TcpStream::connect(listener.local_addr().expect("an address")).is_ok());
        assert_eq!(end("::1"), 0);
    });
    test.join().expect("done");
}
