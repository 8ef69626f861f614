//! RPC with TLS (RFC 9289): the probe, the handshake, certificates, and calls over the session.

mod certificates;
mod peer;
mod probe;
mod refused;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serve::transport::Budgets;
use serve::transport::tls::Tls;

use self::certificates::{Authority, Shown};
use self::peer::Secured;
use crate::server::{Options, Server, directory, wait_for};

/// A server that offers TLS, and the CA of the server and its clients.
struct World {
    server: Server,
    tls: Arc<Tls>,
    authority: Authority,
}

impl World {
    fn new() -> Self {
        let authority = Authority::new("authority");
        let tls = authority.server();
        let options = Options { tls: Some(tls.clone()), ..Options::default() };
        Self { server: Server::start(directory(), options), tls, authority }
    }

    /// A client without a certificate, and the share's root.
    fn client(&self) -> (Secured, Vec<u8>) {
        let mut client = self.connect(&Shown::Nothing);
        let root = client.mount("/export/t");
        (client, root)
    }

    fn connect(&self, shown: &Shown) -> Secured {
        Secured::session(self.server.addr, self.authority.client(shown)).expect("a session")
    }

    fn budgets(&self) -> &Budgets {
        self.server.service().budgets()
    }

    /// Nothing that was tried so far has made a connection panic. A core learns of that when it
    /// takes the next connection, so each is given one first.
    fn has_no_panics(&self) {
        for _ in 0..2 {
            drop(self.connect(&Shown::Good));
        }
        assert_eq!(self.budgets().panics.load(Relaxed), 0);
    }

    /// Runs `peer` and waits until it is counted as a failure of TLS, for one of these reasons.
    fn fails(&self, reasons: &[&str], peer: impl FnOnce()) {
        let before = self.budgets().tls_failures.load(Relaxed);
        peer();
        counted(&self.budgets().tls_failures, before + 1);
        let (from, why) = self.tls.take_failure().expect("it is noted");
        assert!(from.is_loopback());
        assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
    }
}

fn counted(count: &AtomicU64, wanted: u64) {
    wait_for("it is counted", || (count.load(Relaxed) >= wanted).then_some(()));
    assert_eq!(count.load(Relaxed), wanted);
}
