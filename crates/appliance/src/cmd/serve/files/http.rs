//! HTTP and HTTPS with WebDAV: its settings, its ports.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::SystemClock;
use base::node::{Context, Value};
use base::protocol::ports::{HTTP, HTTPS};
use base::protocol::{Port, Service};
use control::certificates::Certificates;
use control::tree::{Document, Problem};
use serve::files::Files;
use serve::http::dav::locks::Locks;
use serve::http::{self, Plain, Settings, SignIn, node};
use serve::transport::tls::Tls;
use serve::transport::{Runtimes, Tasks};
use vfs::locks::LockTable;

use super::values::Values;
use super::ways::Way;
use super::{Protocol, ways};
use crate::cmd::serve::status::machine_name;
use crate::out::Failure;

/// HTTP in this program.
pub struct Http {
    http: Arc<http::Http>,
    tls: Arc<Tls>,
    /// What is added to ports.
    offset: u16,
    /// Whether there is a port without TLS.
    plain: AtomicBool,
}

impl Http {
    /// The service on these files, with TLS as it is offered and these locks of WebDAV, by a
    /// configuration, so many ports further on.
    pub fn new(
        files: Arc<Files>,
        tls: Arc<Tls>,
        locks: Locks,
        certificates: &Arc<Certificates>,
        (document, offset): (&Document, u16),
    ) -> Self {
        let settings = settings(document, offset);
        let http = http::Http::with_locks(files, Some(tls.clone()), settings, locks);
        let certificates = certificates.clone();
        http.judge_hosts(move |host| certificates.is_own_host(host));
        Self { http, tls, offset, plain: AtomicBool::new(has_plain(document)) }
    }
}

impl Protocol for Http {
    fn node(&self) -> &'static Context {
        &node::NODE
    }

    fn check(&self, document: &Document) -> Option<Problem> {
        Values::of(document, Service::Http).check_umask()
    }

    fn set(&self, document: &Document) {
        self.http.set(settings(document, self.offset));
        self.plain.store(has_plain(document), Relaxed);
    }

    fn ports(&self) -> Vec<Port> {
        if self.plain.load(Relaxed) { vec![HTTP, HTTPS] } else { vec![HTTPS] }
    }

    fn ways(&self) -> Vec<Way> {
        let settings = self.http.settings();
        let redirects = settings.plain == Plain::Redirect;
        let way = |at: Port| {
            let note = (redirects && at == HTTP).then_some("leads to HTTPS");
            Way { name: at.name, scheme: at.name, at, command: ways::curl, note }
        };
        let dav =
            Way { name: "webdav", scheme: "webdavs", at: HTTPS, command: ways::davfs, note: None };
        let mut ways: Vec<Way> = self.ports().into_iter().map(way).collect();
        ways.extend(settings.webdav.then_some(dav));
        ways
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        Some(&self.tls)
    }

    fn locks(&self) -> Option<&Locks> {
        Some(&self.http.dav.locks)
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        let locks = i64::try_from(self.http.dav.locks.all().len()).unwrap_or(i64::MAX);
        vec![("locks", Value::Integer(locks))]
    }

    fn serve(&self, runtimes: &Runtimes, sockets: Vec<(TcpListener, Port)>) -> Option<Tasks> {
        let port = |port| if port == HTTPS { http::Port::Secure } else { http::Port::Plain };
        let sockets = sockets.into_iter().map(|(socket, at)| (socket, port(at)));
        http::serve(&self.http, runtimes, sockets.collect())
    }
}

/// The locks of WebDAV, as a state directory has them. That no new ones can be kept is in the log.
///
/// # Errors
/// They cannot be read.
pub fn locks(state: &Path, opens: &Arc<LockTable>) -> Result<Locks, Failure> {
    let locks = Locks::open(&state.join(LOCKS), opens.clone(), Arc::new(SystemClock));
    let (locks, unwritten) =
        locks.map_err(|e| Failure::of("use the file of WebDAV's locks", &e))?;
    if let Some(e) = unwritten {
        base::error!("http", "WebDAV gives no locks until they can be recorded: {e}");
    }
    Ok(locks)
}

/// The file of WebDAV's locks in the state directory (`docs/formats/dav-locks.md`).
const LOCKS: &str = "dav-locks";

/// Whether there is to be a port without TLS.
fn has_plain(document: &Document) -> bool {
    !Values::of(document, Service::Http).is("plain", "off")
}

fn settings(document: &Document, offset: u16) -> Settings {
    let values = Values::of(document, Service::Http);
    Settings {
        name: machine_name(),
        plain: match values.text("plain").as_deref() {
            Some("serve") => Plain::Serve,
            _ => Plain::Redirect,
        },
        secure_port: HTTPS.number.saturating_add(offset),
        sign_in: match values.text("sign_in").as_deref() {
            Some("optional") => SignIn::Optional,
            Some("none") => SignIn::None,
            _ => SignIn::Required,
        },
        basic_over_plain: values.is_on("basic_over_plain"),
        listing: values.is_on("listing"),
        webdav: values.is_on("webdav"),
        uploads: values.is_on("uploads"),
        idle: values.time("idle"),
        session_idle: values.time("session_idle"),
        umask: values.umask().unwrap_or(0o022),
    }
}

#[cfg(test)]
mod tests;
