//! RPC with TLS (RFC 9289): the probe, the handshake, certificates, and calls over the session.

mod certificates;
mod peer;
mod probe;
mod refused;
mod traffic;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serve::transport::Budgets;

use self::certificates::{Authority, Shown};
use self::peer::Secured;
use crate::server::{Options, Server, directory, wait_for};

/// A server that offers TLS, and who signs for it and for its clients.
struct World {
    server: Server,
    authority: Authority,
}

impl World {
    fn new() -> Self {
        let authority = Authority::new("authority");
        let tls = Some(authority.server());
        let server = Server::start(directory(), Options { tls, ..Options::default() });
        Self { server, authority }
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

    /// Runs `peer` and waits until it is counted as a failure of TLS.
    fn fails(&self, peer: impl FnOnce()) {
        let before = self.budgets().tls_failures.load(Relaxed);
        peer();
        counted(&self.budgets().tls_failures, before + 1);
    }
}

fn counted(count: &AtomicU64, wanted: u64) {
    wait_for("it is counted", || (count.load(Relaxed) >= wanted).then_some(()));
    assert_eq!(count.load(Relaxed), wanted);
}
