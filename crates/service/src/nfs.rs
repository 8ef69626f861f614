//! NFS as a service, with NLM and NSM on its port, and the port mapper.
//!
//! The state of clients is in memory as long as the service runs; the list of clients with state is
//! on disk. To clients, a restart of the service is a restart of the server, with its grace period.

pub mod clients;
pub(crate) mod nfs4;
mod nlm;
mod owners;
mod portmap;
mod rdma;
pub mod settings;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::monotonic_ns;
use base::failure::{Failure, OrFailure, chain};
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
use serve::transport::tls::Tls;
use serve::transport::{Budgets, Tasks};
use vfs::locks::LockTable;

use crate::instance::{Condition, Drain, Instance, Service};
use crate::node;
use crate::parts::ServiceParts;
use crate::reach::{host, host_name, shell_quote, url_encode};
use crate::tls::TlsChoice;
use crate::values::Values;
use owners::Owners;
use rdma::Rdma;
use settings::NfsSettings;

/// The first minor version of which clients are granted delegations for writing. In 4.0 requests
/// without a stateid (GETATTR, REMOVE, RENAME) do not identify their client: Linux would have its
/// own delegations recalled, with a delay each time.
const WRITE_DELEGATIONS_FROM: u32 = 1;

/// What is there while it is online.
pub struct Online {
    /// The keeper of NFSv4 clients' state.
    pub clients: Arc<Stateful>,
    /// Locks of NFSv3 clients.
    pub nlm: Arc<Nlm>,
    /// Whether it has ended: it cannot end the grace period of a later start.
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

/// What changes as it starts and stops.
#[derive(Default)]
struct Running {
    online: RwLock<Option<Arc<Online>>>,
    /// While there is to be a port mapper: whether NFSv3 clients find NLM where they look for it,
    /// or why there is none.
    mapper: RwLock<Option<Result<bool, String>>>,
    /// The tasks of the port mapper; held while it begins or ends.
    mapping: Mutex<Option<Tasks>>,
}

impl Running {
    fn unmap(&self, mapping: &mut Option<Tasks>) {
        *self.mapper.write() = None;
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
    parts: Arc<ServiceParts>,
    budgets: Arc<Budgets>,
    tls: Arc<Tls>,
    owners: Owners,
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
        parts: &Arc<ServiceParts>,
        given: Vec<Override>,
        document: &Document,
        certificates: &Certificates,
    ) -> Result<Arc<Self>, Failure> {
        let settings = NfsSettings::of(&given, document);
        Ok(Arc::new(Self {
            budgets: parts.budgets(protocol::Service::Nfs),
            tls: Tls::new(&settings.tls.read(certificates)?).or_failure("offer TLS to clients")?,
            owners: Owners::start(settings.domain.as_deref()),
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

    fn map(&self, mapping: &mut Option<Tasks>, online: &Online) {
        let mut tasks = Tasks::default();
        let at = (self.parts.address(ports::PORTMAP), self.at());
        let parts = &self.parts;
        // The port mapper, and NSM by datagram, share the permits of NFS.
        let budgets = Budgets::sharing(parts.limits, &parts.places, self.id().index()).into();
        let (pool, flush) = (parts.pool.clone(), parts.flush.clone());
        let engine = Engine::new(pool, flush, budgets, parts.hub.clone());
        let started = portmap::start(at, (&online.nlm, &engine), &parts.runtimes, &mut tasks)
            .inspect_err(|why| base::warning!("nfs", "{why}"));
        *mapping = Some(tasks);
        *self.running.mapper.write() = Some(started);
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
        let values = Values::of(document, self.id()).given(&self.given);
        if values.text("tls_certificate").is_some() != values.text("tls_key").is_some() {
            let sentence = "tls_certificate and tls_key must be set together";
            let problem = Problem::new(&node::path(self.id()), sentence, "set both, or neither");
            return Some(problem.property("tls_key"));
        }
        let choice = self.tls_choice(document);
        let offer = |credentials| Tls::new(&credentials).or_failure("offer TLS to NFS clients");
        if let Err(failure) = choice.read(certificates).and_then(offer) {
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
        let (at, is_mapped) = (self.at(), *self.running.mapper.read() == Some(Ok(true)));
        let disabled = matches!(instance.condition(), Condition::Disabled(_))
            .then_some("NFS is disabled; configuration/services/nfs enables it");
        let way = |version: Protocol, mount, note: &str| Access {
            protocol: version.id().to_owned(),
            url: url(version, at, share.as_bytes()),
            mount,
            note: Some(note.to_owned()),
            unc: None,
        };
        let v3 = match is_mapped {
            true => "locks are held by the server if rpcbind and rpc.statd run on the client",
            false => "nolock: locks are local to the client",
        };
        let tls = if instance.tls().knows_clients() { "tls or mtls" } else { "tls" };
        let v4 = format!(
            "locks are held by the server; older clients: vers=4.1 or 4.0; encrypted: xprtsec={tls}"
        );
        let mut ways: Vec<_> = [(Protocol::Nfs3, v3), (Protocol::Nfs4, &v4)]
            .map(|(version, note)| {
                let mount = mount_command(version, at, share, is_mapped);
                way(version, mount, disabled.unwrap_or(note))
            })
            .into();
        if self.rdma.is_there() {
            let port = self.parts.address(ports::NFS_RDMA).port();
            let mount = mount(at, share, &format!("vers=4.2,proto=rdma,port={port}"));
            let note = "over RDMA, if the client has an RDMA device on the same network";
            let at = self.parts.address(ports::NFS_RDMA);
            let url = format!("{}+rdma://{}", Protocol::Nfs3.id(), place(at, share.as_bytes()));
            ways.push(Access { url, ..way(Protocol::Nfs4, mount, note) });
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
        let (program, clients) = nfs4::start(parts, settings.lease, self.owners.map.clone())?;
        if settings.delegations {
            clients.call_back(&parts.runtimes);
        }
        if settings.write_delegations {
            clients.delegate_for_writing(WRITE_DELEGATIONS_FROM);
        }
        let nlm = nlm::start(parts, settings.lease, &clients).inspect_err(|_| clients.end())?;
        let mut programs = nfs3::programs(parts.shares.clone());
        programs.push(program);
        programs.extend(nlm.programs());
        let config = RpcConfig {
            socket,
            runtimes: parts.runtimes.clone(),
            programs,
            hub: parts.hub.clone(),
            flush: parts.flush.clone(),
            pool: parts.pool.clone(),
            budgets: self.budgets.clone(),
            tls: Some(self.tls.clone()),
            rdma: settings.rdma.then(|| self.rdma.config(parts.address(ports::NFS_RDMA))),
        };
        let online = Arc::new(Online { clients, nlm, ended: Mutex::default() });
        let service =
            RpcService::start(config).or_failure("start NFS").inspect_err(|_| online.end())?;
        let mut mapping = self.running.mapping.lock();
        // Read again: it may have been set meanwhile.
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
        let problem = || self.running.mapper.read().clone()?.err();
        (changes("enabled") || changes("portmap")).then(problem).flatten().into_iter().collect()
    }
}

/// The mount command of DESIGN's form, ready for a shell. With `locks` an NFSv3 client finds NLM by
/// the port mapper; without, locks would fail, so that they must stay on the client.
pub fn mount_command(version: Protocol, at: SocketAddr, share: &str, locks: bool) -> String {
    let port = at.port();
    let options = match version {
        Protocol::Nfs3 => {
            let nolock = if locks { "" } else { ",nolock" };
            format!("vers=3,proto=tcp,port={port},mountport={port},mountproto=tcp{nolock}")
        }
        _ => format!("vers=4.2,proto=tcp,port={port}"),
    };
    mount(at, share, &options)
}

fn mount(at: SocketAddr, share: &str, options: &str) -> String {
    let what = shell_quote(&format!("{}:/export/{share}", host_name(at.ip())));
    format!("mount -t nfs -o {options} {what} /mnt")
}

/// The share as URLs of our own tools have it.
pub fn url(version: Protocol, at: SocketAddr, share: &[u8]) -> String {
    format!("{}://{}", version.id(), place(at, share))
}

fn place(at: SocketAddr, share: &[u8]) -> String {
    format!("{}/export/{}", host(at), url_encode(share))
}

#[cfg(test)]
mod tests;
