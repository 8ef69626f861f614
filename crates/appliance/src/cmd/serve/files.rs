//! FTP, SFTP and HTTP as services: each begins and ends while the rest of the program goes on.
//!
//! What they have in common is here and in [`room`]; what a protocol adds is a [`Protocol`] in a
//! file of its own.

pub mod dav;
pub mod door;
mod ftp;
mod http;
pub mod levels;
pub mod room;
mod sftp;
mod values;
mod ways;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base::clock::{NS_PER_S, wall_ns};
use base::node::{Context, Value};
use base::protocol::{Port, Service};
use control::accounts::identity::Users;
use control::certificates::Certificates;
use control::transfers::Transfers;
use control::tree::{Document, Problem};
use probe::hub::Hub;
use serve::files::{Files, SignIns, serving};
use serve::http::dav::locks::Locks;
use serve::pool::Pool;
use serve::transport::budget::Limits;
use serve::transport::buffers::LargeBuffers;
use serve::transport::places::Places;
use serve::transport::tls::{Offer, Tls};
use serve::transport::{Budgets, Runtimes, Tasks};
use vfs::flush::FlushGroup;
use vfs::locks::LockTable;
use vfs::share::Shares;

use super::condition::{self, cut_off};
use super::tls::TlsChoice;
use crate::out::{Failure, chain};
use crate::services::Listens;
use door::Door;
use ways::Way;
pub use ways::ways;

/// What a protocol is in this program.
pub trait Protocol: Send + Sync {
    /// Its node.
    fn node(&self) -> &'static Context;

    /// What is wrong with its settings, beyond what the declarations say.
    fn check(&self, _document: &Document) -> Option<Problem> {
        None
    }

    /// Takes its settings, which hold from now on.
    fn set(&self, document: &Document);

    /// Where it listens by its settings.
    fn ports(&self) -> Vec<Port>;

    /// How shares are reached.
    fn ways(&self) -> Vec<Way>;

    /// TLS as it is offered, if it is.
    fn tls(&self) -> Option<&Arc<Tls>>;

    /// Serves what comes at these sockets. `None` if the runtimes have ended.
    fn serve(&self, runtimes: &Runtimes, sockets: Vec<(TcpListener, Port)>) -> Option<Tasks>;

    /// The locks that it keeps, if it keeps any of its own.
    fn locks(&self) -> Option<&Locks> {
        None
    }

    /// What there is to see of it beside what all services show.
    fn state(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// What all these services are made of.
pub struct Parts {
    /// What is served.
    pub shares: Arc<Shares>,
    /// The table of all protocols.
    pub locks: Arc<LockTable>,
    /// Flushes that answers wait for.
    pub flush: Arc<FlushGroup>,
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// The cores.
    pub runtimes: Arc<Runtimes>,
    /// Who may sign in.
    pub users: Arc<Users>,
    /// Threads that judge passwords.
    pub sign_ins: Arc<SignIns>,
    /// Where operations are written down.
    pub hub: Arc<Hub>,
    /// Where transfers that have ended are told.
    pub transfers: Arc<Transfers>,
    /// How much of everything each of them may use.
    pub limits: Limits,
    /// Places for connections, which they share with NFS.
    pub places: Arc<Places>,
    /// The state directory.
    pub state: PathBuf,
}

impl Parts {
    /// What one of the services is made of, and who counts its sign-ins.
    pub fn for_one(&self, service: Service) -> (Arc<Files>, Arc<Door>) {
        let door = Arc::new(Door::new(service.id(), self.users.clone()));
        let files = Files {
            service,
            shares: self.shares.clone(),
            locks: self.locks.clone(),
            flush: self.flush.clone(),
            pool: self.pool.clone(),
            identity: door.clone(),
            sign_ins: self.sign_ins.clone(),
            hub: self.hub.clone(),
            transfers: self.transfers.clone(),
            budgets: Arc::new(Budgets::sharing(self.limits, &self.places, service.index())),
            large: LargeBuffers::default(),
        };
        (Arc::new(files), door)
    }
}

/// All of the services, not begun yet, so many ports further on. The one list.
///
/// # Errors
/// TLS cannot be offered.
pub fn all(
    parts: &Parts,
    document: &Document,
    certificates: &Arc<Certificates>,
    at: (IpAddr, u16),
) -> Result<Vec<Arc<FileService>>, Failure> {
    let shown = TlsChoice::default().read(certificates)?;
    let offer =
        |offer| Tls::offering(&shown, offer).map_err(|e| Failure::of("offer TLS to clients", &e));
    let service = |made, protocol| {
        let service = FileService::new(made, protocol, parts.runtimes.clone(), at);
        let choice = room::choice(&service, document);
        service.set_tls(choice, certificates).map(|()| Arc::new(service))
    };
    let made = parts.for_one(Service::Ftp);
    let ftp = ftp::Ftp::new(made.0.clone(), offer(Offer::FTP)?, document);
    let ftp = service(made, Box::new(ftp) as Box<dyn Protocol>)?;
    let made = parts.for_one(Service::Sftp);
    let sftp = sftp::Sftp::new(made.0.clone(), parts.users.clone(), &parts.state, document)?;
    let sftp = service(made, Box::new(sftp))?;
    let made = parts.for_one(Service::Http);
    let locks = http::locks(&parts.state, &parts.locks)?;
    let tls = offer(Offer::HTTP)?;
    let http = http::Http::new(made.0.clone(), tls, locks, certificates, (document, at.1));
    let http = service(made, Box::new(http))?;
    Ok(vec![ftp, sftp, http])
}

/// While it is online.
pub struct Up {
    /// Since when, in seconds since the epoch.
    pub since: u64,
    /// Where it listens.
    pub at: Vec<SocketAddr>,
}

/// How it is.
pub type Condition = condition::Condition<Up>;

/// One of the services.
pub struct FileService {
    /// What it is made of.
    pub files: Arc<Files>,
    /// Who comes in.
    pub door: Arc<Door>,
    /// What it speaks.
    pub protocol: Box<dyn Protocol>,
    /// The address, and what is added to ports.
    at: (IpAddr, u16),
    runtimes: Arc<Runtimes>,
    /// What TLS shows.
    choice: RwLock<TlsChoice>,
    /// Held while it begins or ends.
    running: Mutex<Option<Tasks>>,
    condition: RwLock<Condition>,
    /// Whether requests were left unanswered when it ended last.
    cut: AtomicBool,
}

impl FileService {
    /// Not begun yet; it will listen at this address, so many ports further on.
    pub fn new(
        (files, door): (Arc<Files>, Arc<Door>),
        protocol: Box<dyn Protocol>,
        runtimes: Arc<Runtimes>,
        at: (IpAddr, u16),
    ) -> Self {
        Self {
            files,
            door,
            protocol,
            at,
            runtimes,
            choice: RwLock::default(),
            running: Mutex::default(),
            condition: RwLock::new(Condition::Offline),
            cut: AtomicBool::new(false),
        }
    }

    /// Its name, everywhere.
    pub fn name(&self) -> &'static str {
        self.protocol.node().name
    }

    /// Its name for people.
    pub fn title(&self) -> &'static str {
        self.protocol.node().title
    }

    /// How it is.
    pub fn condition(&self) -> Condition {
        self.condition.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether requests were left unanswered when it ended last, because time was up.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// Where one of its ports is.
    pub fn address(&self, port: Port) -> SocketAddr {
        SocketAddr::new(self.at.0, port.number.saturating_add(self.at.1))
    }

    /// Where it listens by its settings.
    pub fn ports(&self) -> Vec<SocketAddr> {
        self.protocol.ports().into_iter().map(|port| self.address(port)).collect()
    }

    /// What TLS shows, for people, and why it is not what is named.
    pub fn certificate(&self, certificates: &Certificates) -> (String, Option<String>) {
        match self.protocol.tls() {
            Some(_) => self.tls().told(certificates, self.title()),
            None => (String::new(), None),
        }
    }

    /// What TLS shows.
    pub fn tls(&self) -> TlsChoice {
        self.choice.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows this to those who want TLS, from now on.
    ///
    /// # Errors
    /// It cannot be used; all stays as it was.
    pub fn set_tls(&self, choice: TlsChoice, certificates: &Certificates) -> Result<(), Failure> {
        // Held, so that what is shown and what is said to be shown are the same.
        let mut now = self.choice.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = self.protocol.tls() {
            choice.renew(tls, certificates)?;
        }
        *now = choice;
        Ok(())
    }

    /// There may be other certificates.
    ///
    /// # Errors
    /// They cannot be used; what was shown before goes on.
    pub fn renew_tls(&self, certificates: &Certificates) -> Result<(), Failure> {
        self.set_tls(self.tls(), certificates)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tasks>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, condition: Condition) {
        *self.condition.write().unwrap_or_else(PoisonError::into_inner) = condition;
    }

    /// Begins to serve, if it does not yet.
    ///
    /// # Errors
    /// It cannot; it is in maintenance then.
    pub fn start(&self) -> Result<(), Failure> {
        self.begin(&mut self.lock())
    }

    fn begin(&self, running: &mut Option<Tasks>) -> Result<(), Failure> {
        if running.is_some() {
            return Ok(());
        }
        match self.bring_up() {
            Ok((tasks, up)) => {
                *running = Some(tasks);
                self.set(Condition::Online(Arc::new(up)));
                Ok(())
            }
            Err(failure) => {
                self.set(Condition::Maintenance(failure.why().to_owned()));
                Err(failure)
            }
        }
    }

    /// All of its ports, or none.
    fn bring_up(&self) -> Result<(Tasks, Up), Failure> {
        let mut sockets = Vec::new();
        let mut at = Vec::new();
        for service in self.protocol.ports() {
            let address = service.address(self.at.0, self.at.1)?;
            let socket = serving::listen(address).map_err(|e| service.refused(address, &e))?;
            at.push(address);
            sockets.push((socket, service));
        }
        let tasks = self.protocol.serve(&self.runtimes, sockets).ok_or_else(|| {
            Failure::new(&format!("start {}", self.title()), "the server ends", "")
        })?;
        Ok((tasks, Up { since: wall_ns() / NS_PER_S, at }))
    }

    /// Takes no more, answers what was taken, and cuts off who is still there. Waits for it.
    pub fn stop(&self, then: Condition) {
        let mut running = self.lock();
        self.end(&mut running);
        // Still locked: who waits for the lock must not begin in between.
        self.set(then);
    }

    fn end(&self, running: &mut Option<Tasks>) {
        self.set(Condition::Offline);
        let drained = running.take().map(Tasks::end_blocking);
        self.cut.store(matches!(drained, Some(Ok(false))), Relaxed);
        match drained {
            Some(Ok(false)) => base::warning!(self.name(), "{}", cut_off()),
            Some(Err(e)) => {
                base::error!(self.name(), "cannot drain {}: {}", self.title(), chain(&e));
            }
            Some(Ok(true)) | None => {}
        }
    }

    /// Ends it and begins it again, with the settings as they are now.
    ///
    /// # Errors
    /// It cannot begin again, and is in maintenance then; or it is disabled, and stays so.
    pub fn restart(&self) -> Result<(), Failure> {
        let mut running = self.lock();
        // Asked under the lock: somebody may just have disabled it.
        if let Condition::Disabled(why) = self.condition() {
            let hint = "set enabled to on, and commit";
            let tried = format!("restart {}", self.title());
            return Err(Failure::new(&tried, &format!("it is {why}"), hint));
        }
        self.end(&mut running);
        self.begin(&mut running)
    }
}
