//! When requests have arrived, as their latencies have it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::api::wait_for;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::stand::{Stand, open};

/// How long the record of an operation may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_request_in_the_last_segment_of_the_handshake_has_its_latency() {
    let stand = Stand::new(open());
    let begun = Instant::now();
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::new(stand.believes()), name).unwrap();
    // It leaves with Finished: nothing can before.
    let request = b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    session.writer().write_all(request).unwrap();
    let stream = TcpStream::connect(stand.secure).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reply = [0; 12];
    StreamOwned::new(session, stream).read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 200");
    let hub = &stand.scene.files.engine.hub;
    let latency = wait_for("the record of the request", PATIENCE, || {
        let mut latency = None;
        hub.scan(0, u64::MAX, |record| latency = Some(record.latency_ns));
        latency
    });
    assert!(Duration::from_nanos(latency) <= begun.elapsed(), "{latency} ns");
}
