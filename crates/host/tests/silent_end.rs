//! Connections of an address end without a word, its ports answer nothing, and those of another one
//! are as usual.

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
    // Clients are of this process too, and of neither address.
    let client = || {
        let client = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        client.bind(&SocketAddr::from(([127, 0, 0, 3], 0)).into()).expect("bound");
        client
    };
    let test = namespace.spawn(move || {
        let open = |at: &str| {
            let listener = TcpListener::bind((at, 0)).expect("a listener");
            let (client, address) = (client(), listener.local_addr().expect("an address"));
            client.connect(&address.into()).expect("connected");
            client.set_nonblocking(true).expect("set");
            let server = listener.accept().expect("a connection").0;
            (listener, TcpStream::from(client), server)
        };
        let (listener, mut served, mut server) = open("127.0.0.1");
        let (_other, mut of_other, other_server) = open("127.0.0.2");
        let mut silent = SilentEnd::of("127.0.0.1".parse().expect("an address")).expect("listed");
        assert_eq!(silent.count(), 1);
        server.write_all(b"x").expect("written");
        drop((server, other_server));
        silent.end().expect("ended");

        served.read_exact(&mut [0; 1]).expect("what was sent before has arrived");
        let nothing = served.read(&mut [0; 1]).expect_err("nothing");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock, "it saw the end");
        let end = of_other.read(&mut [0; 1]).expect("the other one");
        assert_eq!(end, 0, "the other one saw its end");
        // What comes to the address while it is here is not answered.
        served.write_all(b"x").expect("sent");
        let late = client();
        late.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("an address");
        let begun = late.connect(&address.into()).expect_err("no answer");
        assert_eq!(begun.raw_os_error(), Some(libc::EINPROGRESS));
        // They have arrived: what was sent after them is answered.
        open("127.0.0.2");
        let nothing = served.read(&mut [0; 1]).expect_err("nothing");
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock, "it was reset");
        assert!(late.peer_addr().is_err(), "a new client was accepted");
        assert!(late.take_error().expect("asked").is_none(), "a new client was refused");

        // Sent again, it meets no connection, as at the next owner.
        drop((listener, silent));
        served.set_nonblocking(false).expect("set");
        let reset = served.read(&mut [0; 1]).expect_err("no connection");
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    });
    test.join().expect("done");
}
