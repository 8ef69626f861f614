//! Shares and the protocol services on them.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use base::limits::{CONNECTIONS_MAX, DESCRIPTORS_OTHER_PART};
use control::appliance::{Access, ActingAs, ShareStatus};
use control::state::{StateDir, effective_uid};
use control::tree::Document;
use probe::hub::Hub;
use probe::sample::{Sample, Sampler};
use serve::nfs3;
use serve::nfs4::Stateful;
use serve::nlm::Nlm;
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{RpcConfig, RpcService, StartError};
use serve::transport::budget::Limits;
use serve::transport::tls::Tls;
use serve::transport::{Budgets, Runtimes, raise_descriptor_limit};
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::Context;
use vfs::locks::LockTable;
use vfs::share::node::DEFAULT_PROJECT;
use vfs::share::rules::Rules;

use super::announce::{Version, mount_command, url};
use super::names::user_name;
use super::owners::Owners;
use super::plan::Plan;
use super::settings::NfsSettings;
use super::tls::Teller;
use super::{nfs4, nlm, portmap};
use crate::out::{Failure, chain};
use crate::services::NFS;
use crate::shares::room::{self, Offline};
use crate::shares::{Kit, Root, ShareConfig, Shares};

/// What is served, and by whom.
pub struct Storage {
    shares: Arc<Shares>,
    offline: Offline,
    /// The share of the command line.
    given: String,
    flush: Arc<FlushGroup>,
    nfs: SocketAddr,
    clients: Arc<Stateful>,
    nlm: Arc<Nlm>,
    /// Whether NFSv3 clients find NLM where they look for it.
    portmap: bool,
    tls: Arc<Tls>,
    budgets: Arc<Budgets>,
    /// Whether clients' certificates can be verified.
    knows_clients: AtomicBool,
    owners: Owners,
    service: Mutex<Option<RpcService>>,
}

/// What every share is opened with.
fn kit(settings: &NfsSettings, state: &StateDir, secret: [u8; 32], hub: &Arc<Hub>) -> Kit {
    Kit {
        state: (state.path().to_owned(), state.identity()),
        secret,
        locks: Arc::default(),
        delegations: settings.delegations,
        hub: hub.clone(),
    }
}

/// The share of the command line.
fn given(plan: &Plan) -> ShareConfig {
    ShareConfig {
        project: DEFAULT_PROJECT.to_owned(),
        name: plan.share.clone(),
        directory: plan.dir.clone(),
        read_only: plan.read_only,
        rules: plan.rules.clone(),
        root: Root::default(),
    }
}

/// Serves what is configured; says what cannot be.
fn start_configured(shares: &Shares, document: &Document) -> Offline {
    let offline = room::start(shares, document);
    for (name, problem) in &offline {
        base::tell!("nfs", "the share {name} is offline: {}", problem.sentence);
    }
    offline
}

/// What clients hold through a share ends with it, in both protocols that hold something.
fn release_by(shares: &Shares, nfs4: Arc<Stateful>, nlm: Arc<Nlm>) {
    shares.set_release(Box::new(move |tag| {
        nfs4.release_share(tag);
        nlm.release_share(tag);
    }));
}

impl Storage {
    /// Opens the share and starts NFS on it.
    ///
    /// # Errors
    /// The directory cannot be opened for serving, or the port is taken.
    pub fn start(
        (plan, settings, document): (&Plan, &NfsSettings, &Document),
        state: &StateDir,
        secret: [u8; 32],
        hub: &Arc<Hub>,
        tls: Arc<Tls>,
    ) -> Result<Self, Failure> {
        let tried = format!("serve {}", plan.dir.display());
        let failure = |e: &dyn std::error::Error| Failure::of(&tried, e);
        // The table of files is sized by it.
        let limits = limits(raise_descriptor_limit().map_err(|e| failure(&e))?);
        hub.gauges().connections.set_limit(limits.connections as u64);
        let kit = kit(settings, state, secret, hub);
        let locks: Arc<LockTable> = kit.locks.clone();
        let shares = Arc::new(Shares::new(kit));
        shares
            .apply(&[], &[given(plan)])
            .map_err(|e| Failure::new(&tried, &e.sentence, &e.hint))?;
        let offline = start_configured(&shares, document);
        let table = shares.table();
        let flush = Arc::new(FlushGroup::start().map_err(|e| failure(&e))?);
        let runtimes = Arc::new(Runtimes::start(hub.cores()).map_err(|e| failure(&e))?);
        let mut programs = nfs3::programs(table.clone());
        let owners = Owners::start(settings.domain.as_deref());
        let of = (settings.lease, owners.map());
        let (program, clients) = nfs4::start(table.clone(), locks.clone(), of, state)?;
        if settings.delegations {
            clients.call_back(&runtimes);
        }
        programs.push(program);
        let nlm = nlm::start(table.clone(), locks, settings.lease, state, &clients, &runtimes)?;
        programs.extend(nlm.programs());
        release_by(&shares, clients.clone(), nlm.clone());
        let service = RpcService::start(RpcConfig {
            addr: plan.nfs,
            runtimes: runtimes.clone(),
            programs,
            hub: hub.clone(),
            flush: flush.clone(),
            pool: Pool::start(PoolLimits::default()).map_err(|e| failure(&e))?,
            limits,
            tls: Some(tls.clone()),
        })
        .map_err(|e| match &e {
            StartError::Listen { addr, source } => NFS.refused(*addr, source),
            StartError::NoRuntime => failure(&e),
        })?;
        let (nfs, budgets) = (service.local_addr(), service.budgets().clone());
        let service = Mutex::new(Some(service));
        let portmap = settings.portmap && portmap::start(plan, nfs, &nlm, &runtimes);
        let given = plan.share.clone();
        let knows_clients = AtomicBool::new(settings.tls.knows_clients());
        Ok(Self {
            shares,
            offline,
            given,
            flush,
            nfs,
            clients,
            nlm,
            portmap,
            tls,
            budgets,
            knows_clients,
            owners,
            service,
        })
    }

    /// The shares as protocols serve them, for names in statistics.
    pub fn table(&self) -> &Arc<vfs::share::Shares> {
        self.shares.table()
    }

    /// The keeper of NFSv4 clients' state.
    pub fn clients(&self) -> &Arc<Stateful> {
        &self.clients
    }

    /// Locks of NFSv3 clients.
    pub fn nlm(&self) -> &Arc<Nlm> {
        &self.nlm
    }

    /// All shares, with ways to reach them.
    pub fn shares(&self) -> Vec<ShareStatus> {
        let root = Cred::root();
        let context = Context { cred: &root, may_block: true };
        let one = |(share, config): (Arc<vfs::share::Share>, ShareConfig)| {
            let space = share.fs.space(context).ok();
            ShareStatus {
                name: share.name.clone(),
                dir: config.directory.display().to_string(),
                read_only: share.read_only,
                total_bytes: space.map_or(0, |s| s.total_bytes),
                available_bytes: space.map_or(0, |s| s.avail_bytes),
                exports: share.rules.get().iter().map(ToString::to_string).collect(),
                access: Version::ALL.map(|version| self.access(version, &share.name)).into(),
            }
        };
        self.shares.list().into_iter().map(one).collect()
    }

    fn access(&self, version: Version, share: &str) -> Access {
        let note = match version {
            Version::V3 if self.portmap => {
                "locks are the server's, if rpcbind and rpc.statd run on the client".to_owned()
            }
            Version::V3 => "nolock: locks stay on the client that takes them".to_owned(),
            Version::V4 => format!(
                "locks are the server's; older clients: vers=4.1 or 4.0; encrypted: {}",
                if self.knows_clients() { "xprtsec=tls or mtls" } else { "xprtsec=tls" }
            ),
        };
        Access {
            protocol: version.protocol().to_owned(),
            url: url(version, self.nfs, share.as_bytes()),
            mount: mount_command(version, self.nfs, share, self.portmap),
            note: Some(note),
        }
    }

    /// TLS as it is offered.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Whether clients' certificates can be verified from now on.
    pub fn set_knows_clients(&self, knows: bool) {
        self.knows_clients.store(knows, Relaxed);
    }

    /// Connections of clients now.
    pub fn connections(&self) -> i64 {
        self.budgets.connections()
    }

    /// Whether nothing new is taken any more.
    pub fn is_draining(&self) -> bool {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Whether clients' certificates can be verified.
    pub fn knows_clients(&self) -> bool {
        self.knows_clients.load(Relaxed)
    }

    /// The shares, to be changed, and those that could not be started.
    pub fn all_shares(&self) -> (&Arc<Shares>, &Offline) {
        (&self.shares, &self.offline)
    }

    /// The name of the share of the command line.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Addresses of clients that hold something through the share with this tag, each once.
    pub fn holders(&self, tag: u32) -> BTreeSet<IpAddr> {
        self.clients.holders(tag).into_iter().chain(self.nlm.holders(tag)).collect()
    }

    /// Commands that mount a share.
    pub fn mount_commands(&self, share: &str) -> Vec<String> {
        let one = |version| mount_command(version, self.nfs, share, self.portmap);
        Version::ALL.map(one).into()
    }

    /// Exchanges the export rules of the share of the command line.
    pub fn set_rules(&self, rules: &Rules) {
        self.shares.set_rules(&self.given, rules);
    }

    /// Where NFS listens.
    pub fn nfs(&self) -> SocketAddr {
        self.nfs
    }

    /// With whose rights files are opened.
    pub fn acting_as(&self) -> ActingAs {
        let uid = effective_uid();
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let (privileged, note) = self.shares.acting_as();
        let user = user_name(&passwd, uid).unwrap_or_else(|| uid.to_string());
        ActingAs { privileged, user, note }
    }

    /// Looks after the shares once a second, on the collector's thread.
    pub fn keeper(&self, hub: &Arc<Hub>) -> Box<dyn Sampler> {
        Box::new(Keeper {
            shares: self.shares.clone(),
            flush: self.flush.clone(),
            clients: self.clients.clone(),
            nlm: self.nlm.clone(),
            owners: self.owners.clone(),
            teller: Teller::new(self.tls.clone(), self.budgets.clone()),
            hub: hub.clone(),
        })
    }

    /// Stops taking requests, and answers those that were taken.
    pub fn drain(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        match service.map(RpcService::drain_blocking) {
            Some(Ok(false)) => base::tell!("nfs", "some requests were not answered in time"),
            Some(Err(e)) => base::tell!("nfs", "cannot drain NFS: {}", chain(&e)),
            Some(Ok(true)) | None => {}
        }
    }
}

/// Limits with this many descriptors: half of them are the open files', a part stays for everything
/// else, connections get the rest.
fn limits(descriptors: u64) -> Limits {
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let rest = descriptors / 2 - descriptors / DESCRIPTORS_OTHER_PART;
    Limits { connections: rest.min(CONNECTIONS_MAX), ..Limits::default() }
}

/// Has no samples of its own: it moves levels to the gauges, which the collector reads.
struct Keeper {
    shares: Arc<Shares>,
    flush: Arc<FlushGroup>,
    clients: Arc<Stateful>,
    nlm: Arc<Nlm>,
    owners: Owners,
    teller: Teller,
    hub: Arc<Hub>,
}

impl Sampler for Keeper {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        self.clients.sweep();
        self.nlm.sweep();
        self.shares.sweep();
        self.owners.look();
        self.teller.look();
        let (files, flushes, gauges) =
            (self.shares.counts(), self.flush.counts(), self.hub.gauges());
        gauges.open_files.set(files.open_files);
        gauges.open_files.set_limit(files.open_files_max);
        gauges.known_files.set(files.names);
        gauges.known_handles.set(files.handles);
        gauges.stale_handles.set(files.cold_stale);
        gauges.flushes.set(flushes.flushes);
        gauges.flush_waiters.set(flushes.waiting);
        Vec::new()
    }
}
