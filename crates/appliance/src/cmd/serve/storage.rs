//! Shares and the protocol services on them.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use base::limits::{CONNECTIONS_MAX, DESCRIPTORS_OTHER_PART};
use control::appliance::{Access, ActingAs, ShareStatus};
use control::state::{StateDir, effective_uid};
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
use vfs::host::{HostFs, HostOptions};
use vfs::locks::LockTable;
use vfs::share::rules::Rules;
use vfs::share::{ShareError, ShareTable, tag};

use super::announce::{mount_command, mount_command_v4, nfs3_url, nfs4_url};
use super::names::user_name;
use super::owners::Owners;
use super::plan::Plan;
use super::settings::NfsSettings;
use super::tls::Teller;
use super::{nfs4, nlm, portmap};
use crate::out::{Failure, chain};
use crate::services::NFS;

/// What is served, and by whom.
pub struct Storage {
    files: Arc<HostFs>,
    flush: Arc<FlushGroup>,
    table: Arc<ShareTable>,
    dir: String,
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

/// The table with the one share, under its rules.
fn shares(
    plan: &Plan,
    settings: &NfsSettings,
    files: &Arc<HostFs>,
    locks: &Arc<LockTable>,
) -> Result<Arc<ShareTable>, ShareError> {
    // Without delegations there is nothing that a change would have to recall.
    let mut table = ShareTable::default();
    if settings.delegations {
        table = ShareTable::with_locks(locks.clone());
        // Whoever trusts what it has read must hear of programs that change the file here.
        let locks = locks.clone();
        files.tell_changes(Box::new(move |file| {
            locks.may_change(file, None);
        }));
    }
    let share = table.add(&plan.share, files.clone(), plan.read_only)?;
    share.rules.set(plan.rules.clone());
    Ok(Arc::new(table))
}

impl Storage {
    /// Opens the share and starts NFS on it.
    ///
    /// # Errors
    /// The directory cannot be opened for serving, or the port is taken.
    pub fn start(
        (plan, settings): (&Plan, &NfsSettings),
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
        let options = HostOptions {
            state_dir: Some(state.path().to_owned()),
            hide: vec![state.identity()],
            ..HostOptions::new(tag(&plan.share), secret)
        };
        let files = HostFs::open(&plan.dir, options).map_err(|e| failure(&e))?;
        let locks = Arc::<LockTable>::default();
        let table = shares(plan, settings, &files, &locks).map_err(|e| failure(&e))?;
        // The same numbers in the same order as in the table of shares.
        hub.shares().intern(&plan.share);
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
        let dir = plan.dir.display().to_string();
        let knows_clients = AtomicBool::new(settings.tls.knows_clients());
        Ok(Self {
            files,
            flush,
            table,
            dir,
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

    /// The shares, for names in statistics.
    pub fn table(&self) -> &Arc<ShareTable> {
        &self.table
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
        let one = |share: &Arc<vfs::share::Share>| {
            let space = share.fs.space(context).ok();
            ShareStatus {
                name: share.name.clone(),
                dir: self.dir.clone(),
                read_only: share.read_only,
                total_bytes: space.map_or(0, |s| s.total_bytes),
                available_bytes: space.map_or(0, |s| s.avail_bytes),
                exports: share.rules.get().iter().map(ToString::to_string).collect(),
                access: vec![self.nfs3(&share.name), self.nfs4(&share.name)],
            }
        };
        self.table.iter().map(one).collect()
    }

    fn nfs3(&self, share: &str) -> Access {
        Access {
            protocol: "nfs3".to_owned(),
            url: nfs3_url(self.nfs, share.as_bytes()),
            mount: mount_command(self.nfs, share, self.portmap),
            note: Some(match self.portmap {
                true => "locks are the server's, if rpcbind and rpc.statd run on the client".into(),
                false => "nolock: locks stay on the client that takes them".into(),
            }),
        }
    }

    fn nfs4(&self, share: &str) -> Access {
        Access {
            protocol: "nfs4".to_owned(),
            url: nfs4_url(self.nfs, share.as_bytes()),
            mount: mount_command_v4(self.nfs, share),
            note: Some(format!(
                "locks are the server's; older clients: vers=4.1 or 4.0; encrypted: {}",
                if self.knows_clients.load(Relaxed) {
                    "xprtsec=tls or mtls"
                } else {
                    "xprtsec=tls"
                }
            )),
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

    /// Exchanges the export rules of all shares.
    pub fn set_rules(&self, rules: &Rules) {
        self.table.iter().for_each(|share| share.rules.set(rules.clone()));
    }

    /// Where NFS listens.
    pub fn nfs(&self) -> SocketAddr {
        self.nfs
    }

    /// With whose rights files are opened.
    pub fn acting_as(&self) -> ActingAs {
        let uid = effective_uid();
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        ActingAs {
            privileged: self.files.privileged(),
            user: user_name(&passwd, uid).unwrap_or_else(|| uid.to_string()),
            note: self.files.acting_as(),
        }
    }

    /// Looks after the shares once a second, on the collector's thread.
    pub fn keeper(&self, hub: &Arc<Hub>) -> Box<dyn Sampler> {
        Box::new(Keeper {
            files: self.files.clone(),
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
    files: Arc<HostFs>,
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
        self.owners.look();
        self.teller.look();
        let (files, flushes, gauges) =
            (self.files.counts(), self.flush.counts(), self.hub.gauges());
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
