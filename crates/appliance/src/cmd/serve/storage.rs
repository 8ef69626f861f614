//! Shares and the protocol services on them.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use base::limits::{CONNECTIONS_MAX, DESCRIPTORS_OTHER_PART};
use base::protocol::Service;
use control::accounts::identity::Users;
use control::accounts::machine::Machine;
use control::appliance::{Access, ActingAs, ShareStatus};
use control::certificates::Certificates;
use control::state::{StateDir, effective_uid};
use control::transfers::Transfers;
use control::tree::Document;
use control::tree::store::Folder;
use probe::hub::Hub;
use probe::sample::{Sample, Sampler};
use serve::pool::{Pool, PoolLimits};
use serve::transport::budget::Limits;
use serve::transport::places::Places;
use serve::transport::tls::Tls;
use serve::transport::{Budgets, Runtimes, raise_descriptor_limit};
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::Context;
use vfs::locks::LockTable;
use vfs::share::node::DEFAULT_PROJECT;
use vfs::share::rules::Rules;

use super::announce::{Version, mount_command, url};
use super::files::{self, FileService};
use super::nfs::{Condition, NfsService, Parts};
use super::owners::Owners;
use super::plan::Plan;
use super::settings::NfsSettings;
use super::tls::{Teller, TlsChoice};
use super::{nfs4, nlm};
use crate::out::Failure;
use crate::shares::room::{self, Offline};
use crate::shares::{Kit, Root, ShareConfig, Shares, Watch};

/// What is served, and by whom.
pub struct Storage {
    shares: Arc<Shares>,
    offline: Offline,
    /// The share of the command line.
    given: String,
    flush: Arc<FlushGroup>,
    nfs: Arc<NfsService>,
    /// What TLS shows, and whom it believes.
    choice: RwLock<TlsChoice>,
    /// Who signs in.
    users: Arc<Users>,
    /// FTP, SFTP, HTTP.
    files: Vec<Arc<FileService>>,
    /// Where they tell what they have transferred.
    transfers: Arc<Transfers>,
    /// Looks at the directories of the shares.
    _watch: Watch,
}

/// What every share is opened with.
fn kit(state: &StateDir, secret: [u8; 32], hub: &Arc<Hub>) -> Kit {
    Kit {
        state: (state.path().to_owned(), state.identity()),
        secret,
        locks: Arc::default(),
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
        rules: Default::default(),
        root: Root::default(),
    }
    .with_rules(&plan.rules)
}

/// Serves what is configured; says what cannot be.
fn start_configured(shares: &Shares, document: &Document) -> Offline {
    let offline = room::start(shares, document);
    for (name, problem) in &offline {
        base::error!("nfs", "the share {name} is offline: {}", problem.sentence);
    }
    offline
}

/// The log of transfers, which writes from now on.
fn log_of_transfers(
    state: &StateDir,
    hub: &Arc<Hub>,
    document: &Document,
) -> Result<Arc<Transfers>, Failure> {
    let failed = |e| Failure::of("keep the log of transfers", &e);
    let disk = Arc::new(Folder::new(state.path()));
    let transfers = Transfers::open(disk, hub.clone()).map_err(failed)?;
    transfers.take(document);
    transfers.start().map_err(failed)?;
    Ok(transfers)
}

/// What clients hold through a share ends with it, in both protocols that hold something.
fn release_by(shares: &Shares, nfs: Arc<NfsService>) {
    shares.set_release(Box::new(move |tag| {
        if let Some(up) = nfs.up() {
            up.clients.release_share(tag);
            up.nlm.release_share(tag);
        }
    }));
}

impl Storage {
    /// Opens the share and starts NFS on it, if it is to serve.
    ///
    /// # Errors
    /// The directory cannot be opened for serving, or the port is taken.
    pub fn start(
        (plan, settings, document): (&Plan, &NfsSettings, &Document),
        state: &StateDir,
        secret: [u8; 32],
        (hub, buffered): (&Arc<Hub>, usize),
        (tls, users): (Arc<Tls>, Arc<Users>),
    ) -> Result<Self, Failure> {
        let tried = format!("serve {}", plan.dir.display());
        let failure = |e: &dyn std::error::Error| Failure::of(&tried, e);
        // The table of files is sized by it.
        let limits = limits(raise_descriptor_limit().map_err(|e| failure(&e))?, buffered);
        hub.gauges().connections.set_limit(limits.connections as u64);
        let kit = kit(state, secret, hub);
        let locks: Arc<LockTable> = kit.locks.clone();
        let shares = Arc::new(Shares::new(kit));
        shares
            .apply(&[], &[given(plan)])
            .map_err(|e| Failure::new(&tried, &e.sentence, &e.hint))?;
        let offline = start_configured(&shares, document);
        let flush = Arc::new(FlushGroup::start().map_err(|e| failure(&e))?);
        let places = Arc::new(Places::new(limits.connections, Service::ALL.len()));
        let parts = Parts {
            at: plan.nfs,
            portmap: plan.portmap,
            table: shares.table().clone(),
            locks,
            flush: flush.clone(),
            runtimes: Arc::new(Runtimes::start(hub.cores()).map_err(|e| failure(&e))?),
            pool: Pool::start(PoolLimits::default()).map_err(|e| failure(&e))?,
            budgets: Arc::new(Budgets::sharing(limits, &places, Service::Nfs.index())),
            places,
            hub: hub.clone(),
            tls,
            owners: Owners::start(settings.domain.as_deref()),
            records: (state.file(nfs4::RECORDS), state.file(nlm::RECORDS)),
        };
        let nfs = Arc::new(NfsService::new(parts, settings.clone()));
        release_by(&shares, nfs.clone());
        match settings.enabled {
            true => nfs.start()?,
            false => nfs.stop(Condition::Disabled("disabled in the configuration".to_owned())),
        }
        let given = plan.share.clone();
        let choice = RwLock::new(settings.tls.clone());
        let transfers = log_of_transfers(state, hub, document)?;
        let files = Vec::new();
        let watch = Watch::start(&shares).map_err(|e| failure(&e))?;
        Ok(Self {
            shares,
            offline,
            given,
            flush,
            nfs,
            choice,
            users,
            files,
            transfers,
            _watch: watch,
        })
    }

    /// The shares as protocols serve them, for names in statistics.
    pub fn table(&self) -> &Arc<vfs::share::Shares> {
        self.shares.table()
    }

    /// Starts the services whose users sign in. One that cannot serve is in maintenance, and keeps
    /// nobody from the others.
    ///
    /// # Errors
    /// TLS cannot be offered.
    pub fn start_files(
        &mut self,
        plan: &Plan,
        document: &Document,
        certificates: &Arc<Certificates>,
        state: &StateDir,
    ) -> Result<(), Failure> {
        let Parts { table, locks, flush, runtimes, pool, budgets, places, hub, .. } =
            self.nfs.parts();
        let limits = budgets.limits();
        let parts = files::Parts {
            shares: table.clone(),
            locks: locks.clone(),
            flush: flush.clone(),
            pool: pool.clone(),
            runtimes: runtimes.clone(),
            users: self.users.clone(),
            sign_ins: Arc::default(),
            hub: hub.clone(),
            transfers: self.transfers.clone(),
            limits,
            places: places.clone(),
            state: state.path().to_owned(),
        };
        let at = (plan.address, plan.port_offset);
        self.files = files::all(&parts, document, certificates, at)?;
        for service in &self.files {
            if !files::room::is_enabled(service, document) {
                service
                    .stop(files::Condition::Disabled("disabled in the configuration".to_owned()));
            } else if let Err(failure) = service.start() {
                base::error!(service.name(), "{}", failure.why());
            }
        }
        Ok(())
    }

    /// FTP, SFTP, HTTP.
    pub fn files(&self) -> &[Arc<FileService>] {
        &self.files
    }

    /// The log of transfers.
    pub fn transfers(&self) -> &Arc<Transfers> {
        &self.transfers
    }

    /// Who signs in.
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// NFS.
    pub fn nfs(&self) -> &Arc<NfsService> {
        &self.nfs
    }

    fn at(&self) -> SocketAddr {
        self.nfs.parts().at
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
                exports: share
                    .rules_for(Service::Nfs)
                    .get()
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                access: self.ways(&share.name),
            }
        };
        self.shares.list().into_iter().map(one).collect()
    }

    /// All ways to a share.
    fn ways(&self, share: &str) -> Vec<Access> {
        let nfs = Version::ALL.map(|version| self.access(version, share));
        let others = self.files.iter().flat_map(|service| files::ways(service, share));
        nfs.into_iter().chain(others).collect()
    }

    fn access(&self, version: Version, share: &str) -> Access {
        let note = match version {
            _ if matches!(self.nfs.condition(), Condition::Disabled(_)) => {
                "NFS is disabled; configuration/services/nfs enables it".to_owned()
            }
            Version::V3 if self.nfs.is_mapped() => {
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
            url: url(version, self.at(), share.as_bytes()),
            mount: mount_command(version, self.at(), share, self.nfs.is_mapped()),
            note: Some(note),
        }
    }

    /// What TLS shows to NFS clients, and whom it believes.
    pub fn tls(&self) -> TlsChoice {
        self.choice.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Offers TLS so from now on.
    ///
    /// # Errors
    /// It cannot; all stays as it was.
    pub fn set_tls(&self, choice: TlsChoice, certificates: &Certificates) -> Result<(), Failure> {
        // Held, so that what is shown and what is said to be shown are the same.
        let mut now = self.choice.write().unwrap_or_else(PoisonError::into_inner);
        choice.renew(&self.nfs.parts().tls, certificates)?;
        *now = choice;
        Ok(())
    }

    /// Certificates or files may be others: reads them again.
    ///
    /// # Errors
    /// They cannot be used; what was shown before goes on.
    pub fn renew_tls(&self, certificates: &Certificates) -> Result<(), Failure> {
        let now = self.choice.write().unwrap_or_else(PoisonError::into_inner);
        now.renew(&self.nfs.parts().tls, certificates)
    }

    /// Whether clients' certificates can be verified.
    pub fn knows_clients(&self) -> bool {
        self.choice.read().unwrap_or_else(PoisonError::into_inner).knows_clients()
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
        let Some(up) = self.nfs.up() else { return BTreeSet::new() };
        up.clients.holders(tag).into_iter().chain(up.nlm.holders(tag)).collect()
    }

    /// Commands that mount a share.
    pub fn mount_commands(&self, share: &str) -> Vec<String> {
        self.ways(share).into_iter().map(|way| way.mount).collect()
    }

    /// Exchanges the export rules of the share of the command line.
    pub fn set_rules(&self, rules: &Rules) {
        self.shares.set_rules(&self.given, rules);
    }

    /// With whose rights files are opened.
    pub fn acting_as(&self) -> ActingAs {
        let uid = effective_uid();
        let (privileged, note) = self.shares.acting_as();
        let account = Machine::default().by_uid(uid);
        let user = account.map_or_else(|| uid.to_string(), |account| account.name);
        ActingAs { privileged, user, note }
    }

    /// Looks after the shares once a second, on the collector's thread.
    pub fn keeper(&self, hub: &Arc<Hub>) -> Box<dyn Sampler> {
        let parts = self.nfs.parts();
        Box::new(Keeper {
            shares: self.shares.clone(),
            flush: self.flush.clone(),
            nfs: self.nfs.clone(),
            teller: Teller::new(parts.tls.clone(), parts.budgets.clone()),
            hub: hub.clone(),
        })
    }

    /// Stops taking requests, and answers those that were taken.
    pub fn drain(&self) {
        std::thread::scope(|scope| {
            for service in &self.files {
                scope.spawn(|| service.stop(files::Condition::Offline));
            }
            self.nfs.stop(Condition::Offline);
        });
    }
}

/// Limits with so many bytes for requests and replies of each service, and with this many
/// descriptors: half of them are the open files', a part stays for everything else, connections get
/// the rest.
fn limits(descriptors: u64, bytes: usize) -> Limits {
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let rest = descriptors / 2 - descriptors / DESCRIPTORS_OTHER_PART;
    Limits { connections: rest.min(CONNECTIONS_MAX), bytes, ..Limits::default() }
}

/// Has few samples of its own: it moves levels to the gauges, which the collector reads.
struct Keeper {
    shares: Arc<Shares>,
    flush: Arc<FlushGroup>,
    nfs: Arc<NfsService>,
    teller: Teller,
    hub: Arc<Hub>,
}

impl Sampler for Keeper {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        if let Some(up) = self.nfs.up() {
            up.sweep();
        }
        self.shares.sweep();
        self.nfs.parts().owners.look();
        self.teller.look();
        let (files, flushes, gauges) =
            (self.shares.counts(), self.flush.counts(), self.hub.gauges());
        let Parts { budgets, places, .. } = self.nfs.parts();
        gauges.connections.set(places.taken() as u64);
        gauges.open_files.set(files.open_files);
        gauges.open_files.set_limit(files.open_files_max);
        gauges.retained_files.set(files.retained);
        gauges.known_files.set(files.names);
        gauges.known_handles.set(files.handles);
        gauges.stale_handles.set(files.cold_stale);
        if let Some(bytes) = base::memory::allocated() {
            gauges.heap_bytes.set(bytes);
        }
        gauges.flushes.set(flushes.flushes);
        gauges.flush_waiters.set(flushes.waiting);
        vec![Sample::raw(Service::Nfs.connections(), budgets.connections().max(0) as f64)]
    }
}
