//! HTTP and HTTPS with WebDAV: its settings, its ports.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::SystemClock;
use base::failure::{Failure, OrFailure};
use base::node::Value;
use base::protocol::ports::{HTTP, HTTPS};
use base::protocol::{self, Port};
use control::certificates::Certificates;
use control::tree::{Document, Problem};
use probe::sample::Sample;
use serve::http::dav::locks::Locks;
use serve::http::{self, Plain, Settings, SignIn};
use serve::transport::Budgets;
use serve::transport::tls::Tls;

use super::lock_counts;
use crate::instance::{Drain, Service};
use crate::parts::ServiceParts;
use crate::reach::{self, AccessMethod, machine_name};
use crate::sign_in::SignInCounter;
use crate::values::Values;

const ID: protocol::Service = protocol::Service::Http;

/// HTTP in this program.
pub struct Http {
    parts: Arc<ServiceParts>,
    budgets: Arc<Budgets>,
    sign_ins: Arc<SignInCounter>,
    http: Arc<http::Http>,
    tls: Arc<Tls>,
    /// Whether there is a port without TLS.
    plain: AtomicBool,
}

impl Http {
    /// The service, with TLS as it is offered and the WebDAV locks of the state directory.
    ///
    /// # Errors
    /// The locks cannot be read.
    pub fn new(
        parts: &Arc<ServiceParts>,
        tls: Arc<Tls>,
        certificates: &Arc<Certificates>,
        document: &Document,
    ) -> Result<Arc<Self>, Failure> {
        let path = parts.state.join(LOCKS);
        let locks = Locks::open(&path, parts.locks.clone(), Arc::new(SystemClock));
        let (locks, unwritten) = locks.or_failure("open the file of WebDAV locks")?;
        if let Some(e) = unwritten {
            base::error!("http", "WebDAV locks are refused until they can be recorded: {e}");
        }
        let (files, sign_ins) = parts.files(ID);
        let budgets = files.engine.budgets.clone();
        let settings = settings(document, parts.at.1);
        let http = http::Http::with_locks(files, Some(tls.clone()), settings, locks);
        let certificates = certificates.clone();
        http.judge_hosts(move |host| certificates.is_own_host(host));
        let (parts, plain) = (parts.clone(), AtomicBool::new(has_plain(document)));
        Ok(Arc::new(Self { parts, budgets, sign_ins, http, tls, plain }))
    }

    /// The WebDAV locks that it keeps.
    pub fn locks(&self) -> &Locks {
        &self.http.dav.locks
    }
}

impl Service for Http {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn check(&self, document: &Document, _certificates: &Certificates) -> Option<Problem> {
        Values::of(document, ID).check_umask()
    }

    fn set(&self, document: &Document) {
        self.http.set(settings(document, self.parts.at.1));
        self.plain.store(has_plain(document), Relaxed);
    }

    fn ports(&self) -> Vec<Port> {
        if self.plain.load(Relaxed) { vec![HTTP, HTTPS] } else { vec![HTTPS] }
    }

    fn ways(&self) -> Vec<AccessMethod> {
        let settings = self.http.settings();
        let redirects = settings.plain == Plain::Redirect;
        let note = |at| (redirects && at == HTTP).then_some("leads to HTTPS");
        let way = |at| AccessMethod { note: note(at), ..AccessMethod::to(at, reach::curl) };
        let mut ways: Vec<AccessMethod> = self.ports().into_iter().map(way).collect();
        let dav = AccessMethod {
            name: "webdav",
            scheme: "webdavs",
            ..AccessMethod::to(HTTPS, reach::davfs)
        };
        ways.extend(settings.webdav.then_some(dav));
        ways
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        Some(&self.tls)
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.budgets
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        vec![("locks", Value::number(self.locks().all().len()))]
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        let port = |port| if port == HTTPS { http::Port::Secure } else { http::Port::Plain };
        let sockets = sockets.into_iter().map(|(socket, at)| (socket, port(at))).collect();
        super::drain_of(ID, http::serve(&self.http, &self.parts.runtimes, sockets))
    }

    fn sign_ins(&self) -> Option<[u64; 2]> {
        Some(self.sign_ins.counts())
    }

    fn samples(&self) -> Vec<Sample> {
        vec![lock_counts::level(self.locks())]
    }
}

/// The file of WebDAV's locks in the state directory (`docs/formats/dav-locks.md`).
const LOCKS: &str = "dav-locks";

/// Whether there is to be a port without TLS.
fn has_plain(document: &Document) -> bool {
    !Values::of(document, ID).is("plain", "off")
}

fn settings(document: &Document, offset: u16) -> Settings {
    let values = Values::of(document, ID);
    Settings {
        name: machine_name(),
        plain: if values.is("plain", "serve") { Plain::Serve } else { Plain::Redirect },
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
