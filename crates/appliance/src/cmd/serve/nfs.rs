//! NFS as a service: it begins and ends while the rest of the program goes on. With it go NLM and
//! NSM, which are on its port, and the port mapper.
//!
//! What clients hold is in memory as long as the service runs, and who holds something is on disk:
//! a service that begins again is to them a server that has restarted, with its grace period.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use base::clock::{NS_PER_S, wall_ns};
use base::protocol::ports::NFS;
use probe::hub::Hub;
use serve::nfs3;
use serve::nfs4::Stateful;
use serve::nlm::Nlm;
use serve::pool::Pool;
use serve::rpc::{self, RpcConfig, RpcService, StartError};
use serve::transport::places::Places;
use serve::transport::tls::Tls;
use serve::transport::{Budgets, Runtimes, Tasks};
use vfs::flush::FlushGroup;
use vfs::locks::LockTable;

use super::condition::cut_off;
use super::owners::Owners;
use super::settings::NfsSettings;
use super::{nfs4, nlm, portmap};
use crate::out::{Failure, chain};
use crate::services::Listens;

/// What the service is made of: the same over all its starts.
pub struct Parts {
    /// Where NFS listens.
    pub at: SocketAddr,
    /// Where the port mapper listens, if there is to be one.
    pub portmap: SocketAddr,
    /// What is served.
    pub table: Arc<vfs::share::Shares>,
    /// The table of all protocols.
    pub locks: Arc<LockTable>,
    /// Flushes that replies wait for.
    pub flush: Arc<FlushGroup>,
    /// The cores.
    pub runtimes: Arc<Runtimes>,
    /// Threads for operations that block.
    pub pool: Arc<Pool>,
    /// Budgets.
    pub budgets: Arc<Budgets>,
    /// Places for connections of all services.
    pub places: Arc<Places>,
    /// Where operations are written down.
    pub hub: Arc<Hub>,
    /// TLS as it is offered.
    pub tls: Arc<Tls>,
    /// Names of owners.
    pub owners: Owners,
    /// Where clients of NFSv4 and hosts of NLM are on record.
    pub records: (PathBuf, PathBuf),
}

/// What is there while it is online.
pub struct Up {
    /// The keeper of NFSv4 clients' state.
    pub clients: Arc<Stateful>,
    /// Locks of NFSv3 clients.
    pub nlm: Arc<Nlm>,
    /// Since when, in seconds since the epoch.
    pub since: u64,
    /// Whether it has ended: nobody may end the grace period of those who come after.
    ended: Mutex<bool>,
}

impl Up {
    /// To be called every second, on a thread that may wait for the disk.
    pub fn sweep(&self) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if !*ended {
            self.clients.sweep();
            self.nlm.sweep();
        }
    }

    /// Lets go of what clients hold.
    fn end(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended = true;
        self.nlm.end();
        self.clients.end();
    }
}

/// How it is.
pub type Condition = super::condition::Condition<Up>;

/// What changes as it begins and ends.
struct Changing {
    settings: NfsSettings,
    service: Option<RpcService>,
    mapper: Option<Tasks>,
}

/// The service.
pub struct NfsService {
    parts: Parts,
    /// Held while it begins or ends.
    changing: Mutex<Changing>,
    condition: RwLock<Condition>,
    mapper: RwLock<Mapper>,
    /// Whether requests were left unanswered when it ended last.
    cut: AtomicBool,
}

/// How the port mapper is.
#[derive(Default, Clone)]
struct Mapper {
    /// Whether NFSv3 clients find NLM where they look for it.
    is_found: bool,
    /// Why there is none, though there should be.
    problem: Option<String>,
}

impl NfsService {
    /// Not begun yet.
    pub fn new(parts: Parts, settings: NfsSettings) -> Self {
        Self {
            parts,
            changing: Mutex::new(Changing { settings, service: None, mapper: None }),
            condition: RwLock::new(Condition::Offline),
            mapper: RwLock::default(),
            cut: AtomicBool::new(false),
        }
    }

    /// What it is made of.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// How it is.
    pub fn condition(&self) -> Condition {
        self.condition.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is there if it is online.
    pub fn up(&self) -> Option<Arc<Up>> {
        match self.condition() {
            Condition::Online(up) => Some(up),
            _ => None,
        }
    }

    /// Whether NFSv3 clients find NLM where they look for it.
    pub fn is_mapped(&self) -> bool {
        self.mapper.read().unwrap_or_else(PoisonError::into_inner).is_found
    }

    /// Why there is no port mapper, though there should be one.
    pub fn mapper_problem(&self) -> Option<String> {
        self.mapper.read().unwrap_or_else(PoisonError::into_inner).problem.clone()
    }

    /// Whether requests were left unanswered when it ended last, because time was up.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn begin(&self, changing: &mut Changing) -> Result<(), Failure> {
        if changing.service.is_some() {
            return Ok(());
        }
        self.set(Condition::Offline);
        match self.bring_up(&changing.settings) {
            Ok((service, up)) => {
                changing.service = Some(service);
                if changing.settings.portmap {
                    self.map(changing, &up);
                }
                self.set(Condition::Online(Arc::new(up)));
                Ok(())
            }
            Err(failure) => {
                self.set(Condition::Maintenance(failure.why().to_owned()));
                Err(failure)
            }
        }
    }

    /// The port comes first: a client that is told of a restart must be able to come back.
    fn bring_up(&self, settings: &NfsSettings) -> Result<(RpcService, Up), Failure> {
        let Parts { at, table, locks, runtimes, owners, records, .. } = &self.parts;
        let failure = |e: StartError| match &e {
            StartError::Listen { addr, source } => NFS.refused(*addr, source),
            other => Failure::of("start NFS", other),
        };
        let socket = rpc::listen(*at).map_err(failure)?;
        let of = (settings.lease, owners.map());
        let (program, clients) = nfs4::start(table.clone(), locks.clone(), of, &records.0)?;
        if settings.delegations {
            clients.call_back(runtimes);
        }
        let shared = (table.clone(), locks.clone());
        let nlm = nlm::start(shared, settings.lease, &records.1, &clients, runtimes)
            .inspect_err(|_| clients.end())?;
        let mut programs = nfs3::programs(table.clone());
        programs.push(program);
        programs.extend(nlm.programs());
        let config = RpcConfig {
            socket,
            runtimes: runtimes.clone(),
            programs,
            hub: self.parts.hub.clone(),
            flush: self.parts.flush.clone(),
            pool: self.parts.pool.clone(),
            budgets: self.parts.budgets.clone(),
            tls: Some(self.parts.tls.clone()),
        };
        let up = Up { clients, nlm, since: wall_ns() / NS_PER_S, ended: Mutex::default() };
        let service = RpcService::start(config).map_err(failure).inspect_err(|_| up.end())?;
        Ok((service, up))
    }

    fn map(&self, changing: &mut Changing, up: &Up) {
        let mut tasks = Tasks::default();
        let at = (self.parts.portmap, self.parts.at);
        let parts = (&up.nlm, &self.parts.budgets);
        let started = portmap::start(at, parts, &self.parts.runtimes, &mut tasks);
        changing.mapper = Some(tasks);
        self.set_mapper(match started {
            Ok(is_found) => Mapper { is_found, problem: None },
            Err(why) => {
                base::warning!("nfs", "{why}");
                Mapper { is_found: false, problem: Some(why) }
            }
        });
    }

    fn set_mapper(&self, mapper: Mapper) {
        *self.mapper.write().unwrap_or_else(PoisonError::into_inner) = mapper;
    }

    fn unmap(&self, changing: &mut Changing) {
        self.set_mapper(Mapper::default());
        if let Some(Err(e)) = changing.mapper.take().map(Tasks::end_blocking) {
            base::error!("nfs", "cannot end the port mapper: {}", chain(&e));
        }
    }

    /// Stops taking requests, answers those that were taken, and lets go of all that clients hold.
    /// Waits for it.
    pub fn stop(&self, then: Condition) {
        let mut changing = self.lock();
        self.end(&mut changing);
        // Still locked: who waits for the lock must not begin in between.
        self.set(then);
    }

    fn end(&self, changing: &mut Changing) {
        let up = self.up();
        self.set(Condition::Offline);
        self.unmap(changing);
        let drained = changing.service.take().map(RpcService::drain_blocking);
        self.cut.store(matches!(drained, Some(Ok(false))), Relaxed);
        match drained {
            Some(Ok(false)) => base::warning!("nfs", "{}", cut_off()),
            Some(Err(e)) => base::error!("nfs", "cannot drain NFS: {}", chain(&e)),
            Some(Ok(true)) | None => {}
        }
        if let Some(up) = up {
            up.end();
        }
    }

    /// Ends it and begins it again, with the settings as they are now.
    ///
    /// # Errors
    /// It cannot begin again, and is in maintenance then; or it is disabled, and stays so.
    pub fn restart(&self) -> Result<(), Failure> {
        let mut changing = self.lock();
        // Asked under the lock: somebody may just have disabled it.
        if let Condition::Disabled(why) = self.condition() {
            let hint = "set enabled to on, and commit";
            return Err(Failure::new("restart NFS", &format!("it is {why}"), hint));
        }
        self.end(&mut changing);
        self.begin(&mut changing)
    }

    /// Takes new settings: what can is in force at once, the rest from its next start on.
    pub fn set_settings(&self, settings: NfsSettings) {
        let mut changing = self.lock();
        let before = std::mem::replace(&mut changing.settings, settings);
        let now = changing.settings.clone();
        if now.domain != before.domain {
            self.parts.owners.set_domain(now.domain.as_deref());
        }
        if let Some(up) = self.up().filter(|_| now.portmap != before.portmap) {
            match now.portmap {
                true => self.map(&mut changing, &up),
                false => self.unmap(&mut changing),
            }
        }
    }
}
