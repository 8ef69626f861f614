//! Both ends of a connection agree on what identifies it, and messages pass in both directions.

use super::*;
use base::limits::{LAB_AGENT_HELLO_MAX, LAB_MESSAGE_MAX};
use std::net::TcpListener;

const WAIT: Duration = Duration::from_secs(60);

fn bound(left: usize) -> Bound {
    Bound { deadline: Deadline::after(WAIT), left }
}

type Opened = (Channel, Binding, Fingerprint);

fn pair() -> (Opened, Opened) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let caller = std::thread::spawn(move || {
        let socket = TcpStream::connect(at).unwrap();
        let identity = Identity::new().unwrap();
        Channel::open(socket, &identity, false, &mut bound(LAB_AGENT_HELLO_MAX)).unwrap()
    });
    let (socket, _) = listener.accept().unwrap();
    let identity = Identity::new().unwrap();
    let listens = Channel::open(socket, &identity, true, &mut bound(LAB_AGENT_HELLO_MAX)).unwrap();
    (caller.join().unwrap(), listens)
}

#[test]
fn both_sides_see_the_same_connection() {
    let ((_, a, theirs_a), (_, b, theirs_b)) = pair();
    assert_eq!((a.exporter, a.listener, a.caller), (b.exporter, b.listener, b.caller));
    assert_eq!((theirs_a, theirs_b), (a.listener, a.caller));
    assert_ne!(a.listener, a.caller);
    let ((_, other, _), _) = pair();
    assert_ne!(a.exporter, other.exporter);
}

#[test]
fn both_directions_carry_large_messages_at_the_same_time() {
    let ((a, ..), (b, ..)) = pair();
    let send = |to: &Channel, fill: u8| {
        let mut to = to;
        to.write_all(&vec![fill; LAB_MESSAGE_MAX]).unwrap();
    };
    let take = |from: &Channel, fill: u8| {
        let (mut from, mut bytes) = (from, vec![0; LAB_MESSAGE_MAX]);
        from.read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == fill));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| send(&a, 1));
        scope.spawn(|| send(&b, 2));
        scope.spawn(|| take(&a, 2));
        scope.spawn(|| take(&b, 1));
    });
    a.shutdown();
    assert_eq!((&b).read(&mut [0; 8]).unwrap_or(0), 0);
}

#[test]
fn a_peer_without_tls_1_3_or_without_a_certificate_is_refused() {
    let identity = Identity::new().unwrap();
    let provider = Arc::new(crypto::default_provider());
    let any = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
    let client = |versions: &[&'static rustls::SupportedProtocolVersion]| {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&any) as Arc<dyn ServerCertVerifier>);
        Arc::new(builder.with_no_client_auth())
    };
    for config in [client(&[&version::TLS12]), client(&[&version::TLS13])] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let peer = std::thread::spawn(move || {
            let name = ServerName::try_from(NAME).unwrap();
            let mut tls = ClientConnection::new(config, name).unwrap();
            let mut socket = TcpStream::connect(at).unwrap();
            let _refused = tls.complete_io(&mut socket).and_then(|_| tls.complete_io(&mut socket));
        });
        let (socket, _) = listener.accept().unwrap();
        let opened = Channel::open(socket, &identity, true, &mut bound(LAB_AGENT_HELLO_MAX));
        assert!(opened.is_err());
        peer.join().unwrap();
    }
}

#[test]
fn a_handshake_has_a_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let mut socket = TcpStream::connect(at).unwrap();
    // A record that promises 16 KiB of handshake, which never is complete.
    let _sent = socket.write_all(&[22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff]);
    let filler = std::thread::spawn(move || while socket.write_all(&[0; 4096]).is_ok() {});
    let (socket, _) = listener.accept().unwrap();
    let identity = Identity::new().unwrap();
    let mut bound = bound(LAB_AGENT_HELLO_MAX);
    assert!(Channel::open(socket, &identity, true, &mut bound).is_err());
    filler.join().unwrap();
}
