//! HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113): the shares as one origin, for browsers, programs and
//! WebDAV clients.
//!
//! - [`conn`]: connections of HTTP/1.1 over TCP and TLS; [`h2`]: those of HTTP/2.
//! - [`exchange`]: an authorised request.
//! - [`dispatch`]: authentication, the choice of the function that answers, measurement.
//! - [`request`], [`response`]: requests and responses of both versions.
//! - [`wire::http`]: the text formats of HTTP; [`date`], [`select`], [`kind`]: their use here.
//! - [`auth`]: sign-in. [`state`]: sessions and uploads in progress, pure.
//! - [`get`], [`put`], [`upload`]: files. [`listing`], [`archive`], [`page`]: directories.
//! - [`dav`]: WebDAV, and every change of names, for all methods; [`descent`]: walks over
//!   directory trees.
//! - [`status`]: errors of the file contract as statuses of HTTP.
//!
//! `/` lists the shares that the caller may use, `/SHARE/path` is a file or a directory of one.
//! Below `/.plimsoll/` is what belongs to the page itself.

// Failures of the file contract carry attributes by value: to box them would cost an allocation for
// each failed operation.
#![allow(clippy::result_large_err)]

pub mod archive;
mod attachment;
pub mod auth;
pub mod conn;
pub mod date;
pub mod dav;
pub(crate) mod descent;
pub mod dispatch;
mod ended;
pub mod exchange;
pub mod get;
pub mod h2;
pub mod kind;
pub mod listing;
pub mod node;
pub mod page;
pub mod put;
pub mod request;
pub mod response;
pub mod select;
pub mod state;
pub mod status;
pub mod upload;

pub use wire::http::{chunked, head};

use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base::clock::SystemClock;
use base::limits::HTTP_SESSION_IDLE;

use dav::locks::Locks;

use engine::transport::tls::Tls;
use engine::transport::{Runtimes, Tasks};
use files::{Files, core};

/// What the plain port does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// The same as the one with TLS.
    Serve,
    /// Redirects all requests to the port with TLS.
    Redirect,
}

/// Whether users must sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignIn {
    /// Sign-in is required.
    Required,
    /// Without sign-in a client is anonymous.
    Optional,
    /// There is no sign-in; all clients are anonymous.
    None,
}

/// What can be set while it runs; it holds for requests that begin from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the server on its pages.
    pub name: String,
    /// What the plain port does.
    pub plain: Plain,
    /// The port with TLS, for redirects; 0 if there is none.
    pub secure_port: u16,
    /// Whether users must sign in.
    pub sign_in: SignIn,
    /// Whether to accept passwords without TLS. They are then sent in clear text.
    pub basic_over_plain: bool,
    /// Whether directories are listed.
    pub listing: bool,
    /// Whether WebDAV is offered.
    pub webdav: bool,
    /// Whether browsers may upload in parts.
    pub uploads: bool,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// How long a browser stays signed in without requests.
    pub session_idle: Duration,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "Plimsoll".to_owned(),
            plain: Plain::Redirect,
            secure_port: 0,
            sign_in: SignIn::Required,
            basic_over_plain: false,
            listing: true,
            webdav: true,
            uploads: true,
            idle: Duration::from_secs(120),
            session_idle: HTTP_SESSION_IDLE,
            umask: 0o022,
        }
    }
}

/// Decides whether the host of a request is this one.
type OwnHost = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The service: the same over all its starts.
pub struct Http {
    /// What it serves.
    pub files: Arc<Files>,
    /// The certificate of the server; without it there is no TLS.
    pub tls: Option<Arc<Tls>>,
    settings: Mutex<Arc<Settings>>,
    /// Whether the host of a request is this one.
    own_host: OnceLock<OwnHost>,
    /// Users that have signed in.
    pub sessions: state::Sessions,
    /// Uploads in parts that are in progress.
    pub uploads: state::Uploads,
    /// The locks of WebDAV, and what else it keeps.
    pub dav: Arc<dav::Dav>,
}

impl Http {
    /// The service over these files; locks of WebDAV end with it.
    pub fn new(files: Arc<Files>, tls: Option<Arc<Tls>>, settings: Settings) -> Arc<Self> {
        let locks = Locks::transient(Arc::clone(&files.locks), Arc::new(SystemClock));
        Self::with_locks(files, tls, settings, locks)
    }

    /// The service over these files, with these locks of WebDAV.
    pub fn with_locks(
        files: Arc<Files>,
        tls: Option<Arc<Tls>>,
        settings: Settings,
        locks: Locks,
    ) -> Arc<Self> {
        let settings = Mutex::new(Arc::new(settings));
        let (sessions, uploads) = (state::Sessions::default(), state::Uploads::default());
        let dav = dav::Dav::new(locks);
        let own_host = OnceLock::new();
        Arc::new(Self { files, tls, settings, own_host, sessions, uploads, dav })
    }

    /// Has requests judged from now on by whether their host is this one. Once.
    pub fn judge_hosts(&self, is_own: impl Fn(&str) -> bool + Send + Sync + 'static) {
        let first = self.own_host.set(Box::new(is_own)).is_ok();
        debug_assert!(first, "one judges");
    }

    /// Whether the host of a request is this one, as far as known.
    pub(crate) fn is_own_host(&self, host: &str) -> bool {
        self.own_host.get().is_none_or(|is_own| is_own(host))
    }

    /// What is set now.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets it.
    pub fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }
}

/// The protocols of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// HTTP/1.1.
    Plain,
    /// HTTP/1.1 or HTTP/2, over TLS.
    Secure,
}

/// Serves what comes at `sockets`. `None` if the runtimes have ended.
pub fn serve(
    http: &Arc<Http>,
    runtimes: &Runtimes,
    sockets: Vec<(TcpListener, Port)>,
) -> Option<Tasks> {
    let shared = Arc::clone(http);
    let connection = move |core, accepted, port, ending| {
        conn::serve(Arc::clone(&shared), core, accepted, port, ending)
    };
    let mut tasks = core::serve(&http.files, runtimes, sockets, connection)?;
    let shared = Arc::clone(http);
    let swept = tasks.spawn(runtimes, 0, move |ending| async move {
        dav::sweep(&shared, ending).await;
        true
    });
    swept.then_some(tasks)
}
