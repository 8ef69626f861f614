//! NFS as a service. With it go NLM and NSM, which are on its port, and the port mapper.
//!
//! What clients hold is in memory as long as the service runs, and who holds something is on disk:
//! a service that starts again is to them a server that has restarted, with its grace period.

pub mod clients;
mod nfs4;
mod nlm;
mod owners;
mod portmap;
mod rdma;
pub mod settings;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::monotonic_ns;
use base::failure::{Failure, chain};
use base::limits::SMALL_CONNECTIONS_MAX;
use base::limits::TLS_TELL_EVERY;
use base::node::Value;
use base::protocol::{self, Port, Protocol, ports};
use control::appliance::Access;
use control::certificates::Certificates;
use control::tree::{Document, Override, Problem};
use parking_lot::{Mutex, RwLock};
use probe::sample::Sample;
use serve::exec::Engine;
use serve::nfs3;
use serve::nfs4::Stateful;
use serve::nlm::Nlm;
use serve::rpc::{RpcConfig, RpcService};
use serve::transport::budget::Limits;
use serve::transport::tls::Tls;
use serve::transport::{Budgets, Tasks};
use vfs::locks::LockTable;

use crate::instance::{Condition, Drain, Instance, Service};
use crate::node;
use crate::parts::Parts;
use crate::reach::{host, host_name, shell_quote, url_encode};
use crate::tls::TlsChoice;
use owners::Owners;
use rdma::Rdma;
use settings::NfsSettings;

/// Versions that shares are mounted by, in the order in which they are told: 3, and 4.2 or an older
/// 4.
const VERSIONS: [Protocol; 2] = [Protocol::Nfs3, Protocol::Nfs4];

/// What is there while it is online.
pub struct Online {
    /// The keeper of NFSv4 clients' state.
    pub clients: Arc<Stateful>,
    /// Locks of NFSv3 clients.
    pub nlm: Arc<Nlm>,
    /// Whether it has ended: nobody may end the grace period of those who come after.
    ended: Mutex<bool>,
}

impl Online {
    /// To be called every second, on a thread that may wait for the disk.
    fn sweep(&self) {
        let ended = self.ended.lock();
        if !*ended {
            self.clients.sweep();
            self.nlm.sweep();
        }
    }

    /// Lets go of what clients hold.
    fn end(&self) {
        let mut ended = self.ended.lock();
        *ended = true;
        self.nlm.end();
        self.clients.end();
    }
}

/// How the port mapper is.
#[derive(Default, Clone)]
struct Mapper {
    /// Whether NFSv3 clients find NLM where they look for it.
    is_found: bool,
    /// Why there is none, though there should be.
    problem: Option<String>,
}

/// What changes as it starts and stops.
#[derive(Default)]
struct Running {
    online: RwLock<Option<Arc<Online>>>,
    mapper: RwLock<Mapper>,
    /// The tasks of the port mapper; held while it begins or ends.
    mapping: Mutex<Option<Tasks>>,
}

impl Running {
    fn unmap(&self, mapping: &mut Option<Tasks>) {
        *self.mapper.write() = Mapper::default();
        if let Some(Err(e)) = mapping.take().map(Tasks::end_blocking) {
            base::error!("nfs", "cannot end the port mapper: {}", chain(&e));
        }
    }

    /// Answers what was taken, and lets go of all that clients hold.
    fn drain(&self, service: RpcService) -> std::io::Result<bool> {
        let mut mapping = self.mapping.lock();
        let online = self.online.write().take();
        self.unmap(&mut mapping);
        drop(mapping);
        let drained = service.drain_blocking();
        if let Some(online) = online {
            online.end();
        }
        drained
    }
}

/// NFS in this program.
pub struct Nfs {
    parts: Arc<Parts>,
    budgets: Arc<Budgets>,
    tls: Arc<Tls>,
    owners: Owners,
    /// Where clients of NFSv4 and hosts of NLM are on record.
    records: (PathBuf, PathBuf),
    /// Settings that the command line decides.
    given: Vec<Override>,
    settings: RwLock<NfsSettings>,
    /// Handshakes that had failed when it was reported last, and when that was.
    reported: Mutex<(u64, Option<u64>)>,
    rdma: Rdma,
    running: Arc<Running>,
}

impl Nfs {
    /// The service, with TLS as it is offered by these settings.
    ///
    /// # Errors
    /// TLS cannot be offered.
    pub fn new(
        parts: &Arc<Parts>,
        given: Vec<Override>,
        document: &Document,
        certificates: &Certificates,
    ) -> Result<Arc<Self>, Failure> {
        let settings = NfsSettings::of(&given, document);
        Ok(Arc::new(Self {
            budgets: parts.budgets(protocol::Service::Nfs),
            tls: settings.tls.offer(certificates)?,
            owners: Owners::start(settings.domain.as_deref()),
            records: (parts.state.join(nfs4::RECORDS), parts.state.join(nlm::RECORDS)),
            given,
            settings: RwLock::new(settings),
            reported: Mutex::default(),
            rdma: Rdma::default(),
            running: Arc::default(),
            parts: parts.clone(),
        }))
    }

    /// What is there if it is online.
    pub fn online(&self) -> Option<Arc<Online>> {
        self.running.online.read().clone()
    }

    /// The table of opens and locks of all protocols.
    pub fn locks(&self) -> &LockTable {
        &self.parts.locks
    }

    /// Where it listens.
    pub fn at(&self) -> SocketAddr {
        self.parts.address(ports::NFS)
    }

    /// Looks after its clients, and what it reads of this machine. To be called every second, on a
    /// thread that may wait for the disk.
    pub fn sweep(&self) {
        if let Some(online) = self.online() {
            online.sweep();
        }
        self.owners.look();
        self.report_handshakes();
    }

    /// Reports TLS handshakes that fail, seldom: a client that tries all day is one line a minute.
    fn report_handshakes(&self) {
        let mut reported = self.reported.lock();
        let (now, pause) = (monotonic_ns(), TLS_TELL_EVERY.as_nanos() as u64);
        if reported.1.is_some_and(|at| now.saturating_sub(at) < pause) {
            return;
        }
        let Some((peer, why)) = self.tls.take_failure() else { return };
        let count = self.budgets.tls_failures.load(Relaxed);
        let new = count.saturating_sub(reported.0).max(1);
        *reported = (count, Some(now));
        base::warning!("nfs", "{new} TLS connections to NFS failed, the last from {peer}: {why}");
    }

    /// What executes what is asked of the port mapper and of NSM by datagram: they share the
    /// permits of NFS, but have few connections of their own.
    fn mapper_engine(&self) -> Arc<Engine> {
        let parts = &self.parts;
        let limits = Limits { connections: SMALL_CONNECTIONS_MAX, ..parts.limits };
        let budgets = Budgets::sharing(limits, &parts.places, protocol::Service::Nfs.index());
        Engine::new(parts.pool.clone(), parts.flush.clone(), budgets.into(), parts.hub.clone())
    }

    fn map(&self, mapping: &mut Option<Tasks>, online: &Online) {
        let mut tasks = Tasks::default();
        let at = (self.parts.address(ports::PORTMAP), self.at());
        let parts = (&online.nlm, &self.mapper_engine());
        let started = portmap::start(at, parts, &self.parts.runtimes, &mut tasks);
        *mapping = Some(tasks);
        *self.running.mapper.write() = match started {
            Ok(is_found) => Mapper { is_found, problem: None },
            Err(why) => {
                base::warning!("nfs", "{why}");
                Mapper { is_found: false, problem: Some(why) }
            }
        };
    }

    /// A way to a share by one version.
    fn way(&self, version: Protocol, instance: &Instance, share: &str) -> Access {
        let is_mapped = self.running.mapper.read().is_found;
        let note = match version {
            _ if matches!(instance.condition(), Condition::Disabled(_)) => {
                "NFS is disabled; configuration/services/nfs enables it".to_owned()
            }
            Protocol::Nfs3 if is_mapped => {
                "locks are held by the server if rpcbind and rpc.statd run on the client".to_owned()
            }
            Protocol::Nfs3 => "nolock: locks are local to the client".to_owned(),
            _ => format!(
                "locks are held by the server; older clients: vers=4.1 or 4.0; encrypted: {}",
                match instance.tls().knows_clients() {
                    true => "xprtsec=tls or mtls",
                    false => "xprtsec=tls",
                }
            ),
        };
        Access {
            protocol: version.id().to_owned(),
            url: url(version, self.at(), share.as_bytes()),
            mount: mount_command(version, self.at(), share, is_mapped),
            note: Some(note),
        }
    }
}

impl Nfs {
    /// The way to a share by RDMA.
    fn way_by_rdma(&self, share: &str) -> Access {
        let at = self.parts.address(ports::NFS_RDMA);
        Access {
            protocol: Protocol::Nfs4.id().to_owned(),
            url: url(Protocol::Nfs4, self.at(), share.as_bytes()),
            mount: rdma_mount_command(at, share),
            note: Some(
                "over RDMA, if the client has an RDMA device on the same network".to_owned(),
            ),
        }
    }
}

impl Service for Nfs {
    fn id(&self) -> protocol::Service {
        protocol::Service::Nfs
    }

    fn must_start(&self) -> bool {
        true
    }

    fn check(&self, document: &Document, certificates: &Certificates) -> Option<Problem> {
        let at = node::path(self.id());
        let given = |name: &str| {
            let decided = self.given.iter().any(|one| one.property == name);
            decided || document.text(&at, name).is_some()
        };
        if given("tls_certificate") != given("tls_key") {
            let sentence = "tls_certificate and tls_key must be set together";
            return Some(Problem::new(&at, sentence, "set both, or neither").property("tls_key"));
        }
        let choice = self.tls_choice(document);
        let usable = choice.read(certificates).and_then(|credentials| {
            let made = Tls::new(&credentials).map(drop);
            made.map_err(|e| Failure::of("offer TLS to NFS clients", &e))
        });
        if let Err(failure) = usable {
            return Some(self.tls_problem(&failure));
        }
        let table = self.parts.shares.load();
        let rules = |share: &Arc<vfs::share::Share>| share.rules_for(self.id()).get();
        let wanting = table.iter().find_map(|share| choice.check(&rules(share)).err());
        wanting.map(|failure| self.tls_problem(&failure).property("tls_client_ca"))
    }

    fn set(&self, document: &Document) {
        let now = NfsSettings::of(&self.given, document);
        let mut mapping = self.running.mapping.lock();
        let before = std::mem::replace(&mut *self.settings.write(), now.clone());
        if now.domain != before.domain {
            self.owners.set_domain(now.domain.as_deref());
        }
        if let Some(online) = self.online().filter(|_| now.portmap != before.portmap) {
            match now.portmap {
                true => self.map(&mut mapping, &online),
                false => self.running.unmap(&mut mapping),
            }
        }
    }

    fn overrides(&self) -> &[Override] {
        &self.given
    }

    fn ports(&self) -> Vec<Port> {
        vec![ports::NFS]
    }

    fn access(&self, instance: &Instance, share: &str) -> Vec<Access> {
        let mut ways: Vec<_> = VERSIONS.map(|version| self.way(version, instance, share)).into();
        if self.rdma.is_there() {
            ways.push(self.way_by_rdma(share));
        }
        ways
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        Some(&self.tls)
    }

    fn tls_choice(&self, document: &Document) -> TlsChoice {
        NfsSettings::of(&self.given, document).tls
    }

    fn tls_problem(&self, failure: &Failure) -> Problem {
        let hint = match failure.way_out() {
            "" => "use a file that the server can read",
            hint => hint,
        };
        Problem::new(&node::path(self.id()), failure.why(), hint).property("tls_certificate")
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.budgets
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        let (parts, settings) = (&self.parts, self.settings.read().clone());
        let failed = |why: &str| Failure::new("start NFS", why, "");
        let Some((socket, _)) = sockets.into_iter().next() else {
            return Err(failed("it has no port"));
        };
        let of = (settings.lease, self.owners.map());
        let (shares, locks, runtimes) = (&parts.shares, &parts.locks, &parts.runtimes);
        let (program, clients) = nfs4::start(shares.clone(), locks.clone(), of, &self.records.0)?;
        if settings.delegations {
            clients.call_back(runtimes);
        }
        let shared = (shares.clone(), locks.clone());
        let nlm = nlm::start(shared, settings.lease, &self.records.1, &clients, runtimes)
            .inspect_err(|_| clients.end())?;
        let mut programs = nfs3::programs(shares.clone());
        programs.push(program);
        programs.extend(nlm.programs());
        let config = RpcConfig {
            socket,
            runtimes: runtimes.clone(),
            programs,
            hub: parts.hub.clone(),
            flush: parts.flush.clone(),
            pool: parts.pool.clone(),
            budgets: self.budgets.clone(),
            tls: Some(self.tls.clone()),
            rdma: settings.rdma.then(|| self.rdma.config(parts.address(ports::NFS_RDMA))),
        };
        let online = Arc::new(Online { clients, nlm, ended: Mutex::default() });
        let service = RpcService::start(config)
            .map_err(|e| Failure::of("start NFS", &e))
            .inspect_err(|_| online.end())?;
        let mut mapping = self.running.mapping.lock();
        // Asked again: it may have been set meanwhile.
        if self.settings.read().portmap {
            self.map(&mut mapping, &online);
        }
        *self.running.online.write() = Some(online);
        let running = self.running.clone();
        Ok(Box::new(move || running.drain(service)))
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        self.rdma.state()
    }

    fn samples(&self) -> Vec<Sample> {
        self.rdma.samples()
    }

    fn notes(&self, old: &Document, new: &Document) -> Vec<String> {
        let at = node::path(self.id());
        let changes = |name| old.value(&at, name) != new.value(&at, name);
        let problem = || self.running.mapper.read().problem.clone();
        (changes("enabled") || changes("portmap")).then(problem).flatten().into_iter().collect()
    }
}

/// The mount command of DESIGN's form, ready for a shell. With `locks` an NFSv3 client finds NLM by
/// the port mapper; without, locks would fail, so that they must stay on the client.
pub fn mount_command(version: Protocol, at: SocketAddr, share: &str, locks: bool) -> String {
    let port = at.port();
    let what = shell_quote(&format!("{}:/export/{share}", host_name(at.ip())));
    let options = match version {
        Protocol::Nfs3 => {
            let nolock = if locks { "" } else { ",nolock" };
            format!("vers=3,proto=tcp,port={port},mountport={port},mountproto=tcp{nolock}")
        }
        _ => format!("vers=4.2,proto=tcp,port={port}"),
    };
    format!("mount -t nfs -o {options} {what} /mnt")
}

/// The same by RDMA, for version 4.2.
fn rdma_mount_command(at: SocketAddr, share: &str) -> String {
    let what = shell_quote(&format!("{}:/export/{share}", host_name(at.ip())));
    format!("mount -t nfs -o vers=4.2,proto=rdma,port={} {what} /mnt", at.port())
}

/// The share as URLs of our own tools have it.
pub fn url(version: Protocol, at: SocketAddr, share: &[u8]) -> String {
    format!("{}://{}/export/{}", version.id(), host(at), url_encode(share))
}

#[cfg(test)]
mod tests;
