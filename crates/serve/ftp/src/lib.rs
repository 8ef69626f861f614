//! FTP and FTPS (RFC 959, RFC 2228, RFC 2389, RFC 2428, RFC 2640, RFC 3659, RFC 4217):
//! `docs/protocols/ftp.md` documents what is supported.
//!
//! - `conn`: the control connection: commands in, replies out. `data`: data connections.
//! - `dispatch`: command → function. `state`: what a session remembers. `status`: the table of
//!   errors.
//! - `auth`: signing in, and TLS. `about`: options, and what is asked about the server.
//! - `flow`: a transfer while its data flows. `next`: what follows from a command.
//! - `names`: directories, names, attributes. `list`: listings. `transfer`: the data of files.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

mod about;
mod answer;
mod auth;
mod conn;
mod dispatch;
mod flow;
mod glob;
mod list;
mod names;
mod next;
pub mod node;
mod session;
pub mod settings;
mod state;
mod status;
mod transfer;

use conn::data;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use base::permits::PermitAccount;

pub use settings::{LoginRoot, Settings, TlsUse, Uploads};

use engine::transport::Runtimes;
use engine::transport::tasks::Tasks;
use engine::transport::tls::Tls;
use files::{Files, core};

/// At which port a client has called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A connection starts unencrypted.
    Explicit,
    /// A connection starts with TLS.
    Implicit,
}

/// The service, over all its starts.
pub struct Server {
    settings: Mutex<Arc<Settings>>,
    tls: Option<Arc<Tls>>,
    permits: Arc<PermitAccount>,
}

impl Server {
    /// A service with these settings; without `tls` ([`Tls::for_ftp`]) it is not offered.
    pub fn new(settings: Settings, tls: Option<Arc<Tls>>) -> Arc<Self> {
        let settings = Mutex::new(Arc::new(settings));
        Arc::new(Self { settings, tls, permits: Arc::default() })
    }

    /// Exchanges the settings; they hold for connections that begin from now on.
    pub fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// The settings.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Control connections there are now.
    pub fn connections(&self) -> usize {
        self.permits.taken()
    }

    /// Serves what comes at `sockets`. `None` if the runtimes have ended.
    pub fn start(
        self: &Arc<Self>,
        files: &Arc<Files>,
        runtimes: &Runtimes,
        sockets: Vec<(TcpListener, Entry)>,
    ) -> Option<Tasks> {
        let server = Arc::clone(self);
        core::serve(files, runtimes, sockets, move |core, accepted, entry, ending| {
            conn::serve(core, accepted, (Arc::clone(&server), entry), ending)
        })
    }
}
