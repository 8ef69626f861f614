//! Connections of an address end without a word, and those of another one as usual.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use e2e::netns::Namespace;
use e2e::{is_root, skip};
use host::silent_end::SilentEnd;
use socket2::{Domain, Socket, Type};

#[test]
fn peers_see_no_end_of_connections_of_the_address() {
    if !is_root() {
        skip!("silent-end", "TCP_REPAIR needs root");
    }
    let namespace = match Namespace::with("ip link set lo up\n") {
        Ok(namespace) => namespace,
        Err(why) => skip!("silent-end", "{why}"),
    };
    let test = namespace.spawn(|| {
        let open = |at: &str| {
            let listener = TcpListener::bind((at, 0)).expect("a listener");
            // Clients are of this process too, and of neither address.
            let client = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            client.bind(&SocketAddr::from(([127, 0, 0, 3], 0)).into()).expect("bound");
            let address = listener.local_addr().expect("an address");
            client.connect(&address.into()).expect("connected");
            client.set_nonblocking(true).expect("set");
            let server = listener.accept().expect("a connection").0;
            (listener, TcpStream::from(client), server)
        };
        let (_listener, mut client, mut server) = open("127.0.0.1");
        let (_other, mut of_other, other_server) = open("127.0.0.2");
        let silent = SilentEnd::of("127.0.0.1".parse().expect("an address")).expect("listed");
        assert_eq!(silent.count(), 1);
        server.write_all(b"x").expect("written");
        drop((server, other_server));
        silent.end().expect("ended");

        client.read_exact(&mut [0; 1]).expect("what was sent before has arrived");
        let nothing = client.read(&mut [0; 1]).expect_err("nothing");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock, "it saw the end");
        let end = of_other.read(&mut [0; 1]).expect("the other one");
        assert_eq!(end, 0, "the other one saw its end");
        // The next thing that it sends meets no connection.
        client.write_all(b"x").expect("sent");
        client.set_nonblocking(false).expect("set");
        let reset = client.read(&mut [0; 1]).expect_err("no connection");
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    });
    test.join().expect("done");
}
