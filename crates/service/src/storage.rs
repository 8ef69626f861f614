//! Shares and the services on them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use base::failure::Failure;
use base::limits::{CONNECTIONS_MAX, DESCRIPTORS_OTHER_PART};
use base::protocol::Service;
use control::accounts::identity::Users;
use control::accounts::machine::Machine;
use control::appliance::{Access, ActingAs, ServiceStatus, ShareStatus};
use control::certificates::Certificates;
use control::state::{StateDir, effective_uid};
use control::transfers::Transfers;
use control::tree::store::Folder;
use control::tree::{Document, Override};
use probe::hub::Hub;
use probe::sample::{Sample, Sampler};
use serve::pool::{Pool, PoolLimits};
use serve::transport::budget::Limits;
use serve::transport::connections::ConnectionLimits;
use serve::transport::{Runtimes, raise_descriptor_limit};
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::Context;
use vfs::identity::Owners;
use vfs::share::rules::Rules;

use crate::luns::LunGiven;
use crate::names::ShareNames;
use crate::nfs::Nfs;
use crate::nfs::settings::NfsSettings;
use crate::parts::Parts;
use crate::services::Services;
use crate::shares::node::{self, Offline};
use crate::shares::{Kit, ShareConfig, Shares, Watch};

/// What the server is started with.
pub struct Setup<'a> {
    /// The share of the command line.
    pub share: ShareConfig,
    /// The address of all services, and what is added to their ports.
    pub at: (IpAddr, u16),
    /// Logical units that the command line asks for.
    pub luns: &'a [LunGiven],
    /// What the command line decides of NFS.
    pub nfs_given: &'a [Override],
    /// The configuration in force.
    pub document: &'a Document,
    /// The state directory.
    pub state: &'a StateDir,
    /// Key of the handles.
    pub secret: [u8; 32],
    /// Where operations are written down.
    pub hub: &'a Arc<Hub>,
    /// Bytes that each service may hold for its peers.
    pub buffered: usize,
    /// Who signs in.
    pub users: Arc<Users>,
    /// What TLS shows.
    pub certificates: &'a Arc<Certificates>,
}

/// What is served, and by whom.
pub struct Storage {
    /// The shares, to be changed.
    pub shares: Arc<Shares>,
    /// Those that could not be started.
    pub offline: Offline,
    /// The name of the share of the command line.
    pub given: String,
    /// What the services are made of.
    pub parts: Arc<Parts>,
    /// The services.
    pub services: Arc<Services>,
    /// Looks at the directories of the shares.
    _watch: Watch,
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

impl Storage {
    /// Opens the shares and starts the services on them that are to serve.
    ///
    /// # Errors
    /// The directory of the command line cannot be opened for serving, or a service that must start
    /// cannot.
    pub fn start(setup: Setup<'_>) -> Result<Self, Failure> {
        let Setup { share, document, state, hub, certificates, .. } = &setup;
        let tls = NfsSettings::of(setup.nfs_given, document).tls;
        Service::EXPORTING.iter().try_for_each(|service| tls.check(share.rules_for(*service)))?;
        let tried = format!("serve {}", share.directory.display());
        let failure = |e: &dyn std::error::Error| Failure::of(&tried, e);
        // The table of files is sized by it.
        let limits = limits(raise_descriptor_limit().map_err(|e| failure(&e))?, setup.buffered);
        hub.gauges().connections.set_limit(limits.connections as u64);
        let kit = Kit {
            state: (state.path().to_owned(), state.identity()),
            secret: setup.secret,
            locks: Arc::default(),
            hub: (*hub).clone(),
        };
        let locks = kit.locks.clone();
        let shares = Arc::new(Shares::new(kit));
        shares
            .apply(&[], std::slice::from_ref(share))
            .map_err(|e| Failure::new(&tried, &e.sentence, &e.hint))?;
        let offline = node::start(&shares, document);
        let parts = Arc::new(Parts {
            at: setup.at,
            shares: shares.table().clone(),
            locks,
            flush: Arc::new(FlushGroup::start().map_err(|e| failure(&e))?),
            pool: Pool::start(PoolLimits::default()).map_err(|e| failure(&e))?,
            runtimes: Arc::new(Runtimes::start_held(hub.cores()).map_err(|e| failure(&e))?),
            users: setup.users.clone(),
            sign_ins: Arc::default(),
            hub: (*hub).clone(),
            transfers: log_of_transfers(state, hub, document)?,
            limits,
            places: Arc::new(ConnectionLimits::new(limits.connections, Service::ALL.len())),
            state: state.path().to_owned(),
            luns: setup.luns.to_vec(),
        });
        let nfs_given = setup.nfs_given.to_vec();
        let services = Services::new(&parts, nfs_given, document, certificates)?;
        let nfs = services.nfs.clone();
        // What clients hold through a share ends with it, in both protocols that hold something.
        shares.set_release(Box::new(move |tag| {
            if let Some(online) = nfs.online() {
                online.clients.release_share(tag);
                online.nlm.release_share(tag);
            }
        }));
        services.start(document)?;
        let watch = Watch::start(&shares).map_err(|e| failure(&e))?;
        let (given, services) = (share.name.clone(), Arc::new(services));
        Ok(Self { shares, offline, given, parts, services, _watch: watch })
    }

    /// Names of its shares, files and users.
    pub fn names(&self) -> ShareNames {
        ShareNames::new(self.parts.shares.clone(), self.parts.users.clone())
    }

    /// All services but the administration, as the API shows them.
    pub fn statuses(&self) -> Vec<ServiceStatus> {
        let one = |instance: &Arc<crate::instance::Instance>| {
            let condition = instance.condition();
            ServiceStatus {
                name: instance.name().to_owned(),
                state: condition.name().to_owned(),
                listen: instance.listens(),
                reason: condition.reason().map(str::to_owned),
            }
        };
        self.services.all.iter().map(one).collect()
    }

    /// All shares, with ways to reach them.
    pub fn share_statuses(&self) -> Vec<ShareStatus> {
        let root = Cred::root();
        let context = Context { cred: &root, may_block: true };
        let one = |(share, config): (Arc<vfs::share::Share>, ShareConfig)| {
            let space = share.fs.space(context).ok();
            let rules = Service::EXPORTING.map(|service| share.rules_for(service).get());
            ShareStatus {
                name: share.name.clone(),
                dir: config.directory.display().to_string(),
                read_only: share.read_only,
                total_bytes: space.map_or(0, |s| s.total_bytes),
                available_bytes: space.map_or(0, |s| s.avail_bytes),
                exports: rules.iter().flat_map(|all| all.iter()).map(ToString::to_string).collect(),
                access: self.access(&share.name),
            }
        };
        self.shares.list().into_iter().map(one).collect()
    }

    /// All ways to a share.
    pub fn access(&self, share: &str) -> Vec<Access> {
        let all = self.services.all.iter();
        all.flat_map(|instance| instance.service().access(instance, share)).collect()
    }

    /// Whether clients' certificates can be verified.
    pub fn knows_clients(&self) -> bool {
        self.services.all.iter().any(|instance| instance.tls().knows_clients())
    }

    /// Answers at all ports from now on: until then connections wait, so that nobody finds one
    /// service before another.
    pub fn answer(&self) {
        self.parts.runtimes.release();
    }

    /// Addresses of clients that hold something through the share with this tag, each once.
    pub fn holders(&self, tag: u32) -> BTreeSet<IpAddr> {
        let Some(online) = self.services.nfs.online() else { return BTreeSet::new() };
        online.clients.holders(tag).into_iter().chain(online.nlm.holders(tag)).collect()
    }

    /// Exchanges the export rules of the share of the command line.
    pub fn set_rules(&self, rules: &Rules) {
        self.shares.set_rules(&self.given, rules);
    }

    /// Identity used for file access.
    pub fn acting_as(&self) -> ActingAs {
        let uid = effective_uid();
        let (privileged, note) = self.shares.acting_as();
        let user = Machine::default().user(uid).unwrap_or_else(|| uid.to_string());
        ActingAs { privileged, user, note }
    }

    /// Looks after the shares once a second, on the collector's thread.
    pub fn keeper(&self) -> Box<dyn Sampler> {
        Box::new(Keeper {
            shares: self.shares.clone(),
            parts: self.parts.clone(),
            nfs: self.services.nfs.clone(),
            trim: base::memory::Trim::default(),
        })
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

/// Has no samples of its own: it moves levels to the gauges, which the collector reads.
struct Keeper {
    shares: Arc<Shares>,
    parts: Arc<Parts>,
    nfs: Arc<Nfs>,
    /// What many clients made the server hold goes back to the system when they have gone.
    trim: base::memory::Trim,
}

impl Sampler for Keeper {
    fn sample(&mut self, _now_ns: u64) -> Vec<Sample> {
        self.nfs.sweep();
        self.shares.sweep();
        let (files, flushes) = (self.shares.counts(), self.parts.flush.counts());
        let gauges = self.parts.hub.gauges();
        gauges.connections.set(self.parts.places.taken() as u64);
        gauges.open_files.set(files.open_files);
        gauges.open_files.set_limit(files.open_files_max);
        gauges.retained_files.set(files.retained);
        gauges.known_files.set(files.names);
        gauges.known_handles.set(files.handles);
        gauges.stale_handles.set(files.cold_stale);
        if let Some(bytes) = base::memory::allocated() {
            gauges.heap_bytes.set(bytes);
            self.trim.observe(bytes);
        }
        gauges.flushes.set(flushes.flushes);
        gauges.flush_waiters.set(flushes.waiting);
        Vec::new()
    }
}
