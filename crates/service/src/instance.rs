//! The life cycle of a service: the one state machine for all of them.
//!
//! ```text
//!            start                 start fails
//!  Offline ────────► Online     ──────────────► Maintenance
//!     ▲                │ stop, restart              │ restart
//!     └────────────────┘◄───────────────────────────┘
//!  Disabled: stopped by the configuration; start leads out of it, restart does not.
//! ```
//!
//! A service starts and stops while the rest of the program continues. Stopping accepts no more
//! connections, replies to the requests that were received, and disconnects the remaining clients
//! after a timeout.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::{NS_PER_S, wall_ns};
use base::failure::{Failure, chain};
use base::limits::DRAIN_TIME_MAX;
use base::node::{Path, Value};
use base::protocol::Port;
use control::appliance::Access;
use control::certificates::Certificates;
use control::tree::{Document, Override, Problem};
use parking_lot::{Mutex, RwLock};
use probe::sample::Sample;
use serve::transport::tls::Tls;
use serve::transport::{Budgets, listener};

use crate::reach::AccessMethod;
use crate::tls::TlsChoice;
use crate::values::path;

/// Ends a service that was started: drains it, waiting for that. False if requests were left
/// unanswered because time was up.
pub type Drain = Box<dyn FnOnce() -> io::Result<bool> + Send>;

/// What a protocol brings to be a service: all that [`Instance`] cannot know.
pub trait Service: Send + Sync {
    /// Its row in the registry.
    fn id(&self) -> base::protocol::Service;

    /// Whether the server does not start without it.
    fn must_start(&self) -> bool {
        false
    }

    /// Why these settings cannot take effect, beyond what the declarations check.
    fn check(&self, _document: &Document, _certificates: &Certificates) -> Option<Problem> {
        None
    }

    /// Applies settings: those that can change at once take effect now, the rest at its next start.
    fn set(&self, document: &Document);

    /// Settings that the command line decides.
    fn overrides(&self) -> &[Override] {
        &[]
    }

    /// Where it listens by its settings.
    fn ports(&self) -> Vec<Port> {
        self.id().ports().to_vec()
    }

    /// Ways to shares while it serves; none if it serves no shares.
    fn ways(&self) -> Vec<AccessMethod> {
        Vec::new()
    }

    /// How a share is reached over it now.
    fn access(&self, instance: &Instance, share: &str) -> Vec<Access> {
        match instance.condition() {
            Condition::Online(..) => {
                self.ways().iter().map(|way| way.access(instance.address(way.at), share)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// TLS as it is offered, if it is.
    fn tls(&self) -> Option<&Arc<Tls>> {
        None
    }

    /// What TLS is to show by these settings.
    fn tls_choice(&self, document: &Document) -> TlsChoice {
        let at = path(self.id());
        TlsChoice { named: document.text(&at, "certificate"), ..TlsChoice::default() }
    }

    /// The property to name when that cannot be used.
    fn tls_problem(&self, failure: &Failure) -> Problem {
        let at = path(self.id());
        Problem::new(&at, failure.why(), failure.way_out()).property("certificate")
    }

    /// Connections and memory that it uses and may use.
    fn budgets(&self) -> &Arc<Budgets>;

    /// Serves what comes at these sockets, one for each of [`Self::ports`].
    ///
    /// # Errors
    /// It cannot; nothing is left running then.
    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure>;

    /// Notes after a commit of these settings, in addition to those of all services.
    fn notes(&self, _old: &Document, _new: &Document) -> Vec<String> {
        Vec::new()
    }

    /// State to show in addition to that of all services.
    fn state(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Carries out an action of its own; `None` if it has none of this name.
    fn act(
        &self,
        _path: &Path,
        _action: &str,
        _parameters: &BTreeMap<String, Value>,
    ) -> Option<Result<(), Problem>> {
        None
    }

    /// Sign-ins that succeeded and failed so far, if its users sign in.
    fn sign_ins(&self) -> Option<[u64; 2]> {
        None
    }

    /// Levels of its own, read once a second.
    fn samples(&self) -> Vec<Sample> {
        Vec::new()
    }
}

/// How a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It serves: since when (seconds since the epoch), and where.
    Online(u64, Vec<SocketAddr>),
    /// Disabled: by which user, and when.
    Disabled(String),
    /// It is starting or stopping.
    Offline,
    /// It should serve and cannot: why.
    Maintenance(String),
}

impl Condition {
    /// The name of its state.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Online(..) => "online",
            Self::Disabled(_) => "disabled",
            Self::Offline => "offline",
            Self::Maintenance(_) => "maintenance",
        }
    }

    /// Why it is not online, one sentence.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Online(..) => None,
            Self::Offline => Some("it is starting or stopping"),
            Self::Disabled(why) | Self::Maintenance(why) => Some(why),
        }
    }
}

/// The message when a service ends before all replies were sent.
pub fn cut_off() -> String {
    let seconds = DRAIN_TIME_MAX.as_secs();
    format!("requests were not completed within {seconds} s; their connections were closed")
}

/// A service with its state.
pub struct Instance {
    service: Arc<dyn Service>,
    /// The address, and what is added to ports.
    at: (IpAddr, u16),
    /// The certificate of TLS, and the CA of client certificates.
    choice: RwLock<TlsChoice>,
    /// Held while it starts or stops.
    running: Mutex<Option<Drain>>,
    condition: RwLock<Condition>,
    /// Whether requests were left unanswered when it stopped last.
    cut: AtomicBool,
}

impl Instance {
    /// Not started yet; it will listen at this address, with this offset added to its ports.
    ///
    /// # Errors
    /// The certificate of these settings cannot be used.
    pub fn new(
        service: Arc<dyn Service>,
        at: (IpAddr, u16),
        document: &Document,
        certificates: &Certificates,
    ) -> Result<Arc<Self>, Failure> {
        let choice = service.tls_choice(document);
        let new = Self::offline(service, at);
        new.set_tls(choice, certificates)?;
        Ok(Arc::new(new))
    }

    fn offline(service: Arc<dyn Service>, at: (IpAddr, u16)) -> Self {
        Self {
            service,
            at,
            choice: RwLock::default(),
            running: Mutex::default(),
            condition: RwLock::new(Condition::Offline),
            cut: AtomicBool::new(false),
        }
    }

    /// What its protocol brings.
    pub fn service(&self) -> &dyn Service {
        &*self.service
    }

    /// Its name, everywhere.
    pub fn name(&self) -> &'static str {
        self.service.id().id()
    }

    /// Its name for people.
    pub fn title(&self) -> &'static str {
        self.service.id().title()
    }

    /// How it is.
    pub fn condition(&self) -> Condition {
        self.condition.read().clone()
    }

    /// Whether requests were left unanswered when it stopped last, because time was up.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// Where one of its ports is.
    pub fn address(&self, port: Port) -> SocketAddr {
        SocketAddr::new(self.at.0, port.number.saturating_add(self.at.1))
    }

    /// Where it listens by its settings.
    pub fn listens(&self) -> String {
        let ports = self.service.ports().into_iter();
        joined(&ports.map(|port| self.address(port)).collect::<Vec<_>>())
    }

    /// What TLS shows, for people, and why it is not what is named; `None` without TLS.
    pub fn certificate(&self, certificates: &Certificates) -> Option<(String, Option<String>)> {
        self.service.tls().map(|_| self.tls().certificate_in_use(certificates, self.title()))
    }

    /// The certificate of TLS, and the CA of client certificates.
    pub fn tls(&self) -> TlsChoice {
        self.choice.read().clone()
    }

    /// Uses this certificate and CA for TLS from now on.
    ///
    /// # Errors
    /// It cannot be used; all stays as it was.
    pub fn set_tls(&self, choice: TlsChoice, certificates: &Certificates) -> Result<(), Failure> {
        // Locked during the change, so that `choice` always matches the certificate in use.
        let mut now = self.choice.write();
        if let Some(tls) = self.service.tls() {
            choice.renew(tls, certificates)?;
        }
        *now = choice;
        Ok(())
    }

    /// Certificates or files may be others: reads them again.
    ///
    /// # Errors
    /// They cannot be used; the current ones stay in use.
    pub fn renew_tls(&self, certificates: &Certificates) -> Result<(), Failure> {
        let now = self.choice.write();
        self.service.tls().map_or(Ok(()), |tls| now.renew(tls, certificates))
    }

    /// Starts it, if it does not run yet.
    ///
    /// # Errors
    /// It cannot; it is in maintenance then.
    pub fn start(&self) -> Result<(), Failure> {
        self.begin(&mut self.running.lock())
    }

    fn begin(&self, running: &mut Option<Drain>) -> Result<(), Failure> {
        if running.is_some() {
            return Ok(());
        }
        *self.condition.write() = Condition::Offline;
        match self.bring_up() {
            Ok((drain, at)) => {
                *running = Some(drain);
                *self.condition.write() = Condition::Online(wall_ns() / NS_PER_S, at);
                Ok(())
            }
            Err(failure) => {
                *self.condition.write() = Condition::Maintenance(failure.why().to_owned());
                Err(failure)
            }
        }
    }

    /// All of its ports, or none. They come first: a client that is notified of a restart must be
    /// able to reconnect.
    fn bring_up(&self) -> Result<(Drain, Vec<SocketAddr>), Failure> {
        let (mut sockets, mut at) = (Vec::new(), Vec::new());
        for port in self.service.ports() {
            let address = port.address(self.at.0, self.at.1)?;
            let socket = listener::listen(address).map_err(|e| port.refused(address, &e))?;
            at.push(address);
            sockets.push((socket, port));
        }
        Ok((self.service.start(sockets)?, at))
    }

    /// Accepts no more connections, replies to the requests that were received, and disconnects the
    /// remaining clients. Waits for it.
    pub fn stop(&self, then: Condition) {
        let mut running = self.running.lock();
        self.end(&mut running);
        // Still locked: a thread that waits for the lock must not start it in between.
        *self.condition.write() = then;
    }

    fn end(&self, running: &mut Option<Drain>) {
        *self.condition.write() = Condition::Offline;
        let drained = running.take().map(|drain| drain());
        self.cut.store(matches!(drained, Some(Ok(false))), Relaxed);
        match drained {
            Some(Ok(false)) => base::warning!(self.name(), "{}", cut_off()),
            Some(Err(e)) => {
                base::error!(self.name(), "cannot drain {}: {}", self.title(), chain(&e));
            }
            Some(Ok(true)) | None => {}
        }
    }

    /// Stops it and starts it again, with the settings as they are now.
    ///
    /// # Errors
    /// It cannot start again, and is in maintenance then; or it is disabled, and stays so.
    pub fn restart(&self) -> Result<(), Failure> {
        let mut running = self.running.lock();
        // Checked under the lock: it may just have been disabled.
        if let Condition::Disabled(why) = self.condition() {
            let hint = "set enabled to on, and commit";
            let tried = format!("restart {}", self.title());
            return Err(Failure::new(&tried, &format!("it is {why}"), hint));
        }
        self.end(&mut running);
        self.begin(&mut running)
    }
}

/// Addresses as people read them.
pub fn joined(at: &[SocketAddr]) -> String {
    at.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
