//! The running server: shares, the services on them and what is measured, put together at start;
//! how the API shows it; and its end.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use ::lab::desk::RunQueue;
use analytics::collect::Collector;
use analytics::query::Engine;
use analytics::store::{Retention, Store};
use base::clock::{NS_PER_S, wall_ns};
use base::failure::{Failure, OrFailure};
use base::limits::{CONNECTIONS_MAX, DESCRIPTORS_OTHER_PART};
use base::protocol::Service;
use base::protocol::ports::ADMIN;
use base::random::SystemRandom;
use control::accounts::identity::Users;
use control::accounts::machine::Machine;
use control::alerts::Alerts;
use control::appliance::{Access, ActingAs, Appliance, ServiceStatus, ShareStatus, Status};
use control::certificates::Certificates;
use control::dav::DavState;
use control::lab::Lab;
use control::listen::places;
use control::nfs::NfsState;
use control::replication::Replication;
use control::state::{StateDir, effective_uid};
use control::transfers::Transfers;
use control::tree::store::Folder;
use control::tree::{Document, Override};
use host::bridges::BridgeSampler;
use host::connections::ConnectionSampler;
use host::sampler::HostSampler;
use host::segments::sampler::SegmentSampler;
use parking_lot::Mutex;
use probe::hub::Hub;
use probe::sample::{Sample, Sampler};
use serve::pool::{Pool, PoolLimits};
use serve::transport::budget::Limits;
use serve::transport::connections::ConnectionLimits;
use serve::transport::{Runtimes, raise_descriptor_limit};
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::{Context, Space};
use vfs::identity::Owners;
use vfs::locks::LockTable;

use crate::cluster::Cluster;
use crate::fabric::sampler::FabricSampler;
use crate::fabric::watch::Fabrics;
use crate::files::dav::DavLocks;
use crate::instance::Instance;
use crate::lab::Results;
use crate::luns::LunGiven;
use crate::names::ShareNames;
use crate::nfs::Nfs;
use crate::nfs::clients::{Levels, NfsClients};
use crate::nfs::settings::NfsSettings;
use crate::parts::ServiceParts;
use crate::pools::room::PoolRoom;
use crate::pools::room::capacity::PoolSampler;
use crate::problems::Problems;
use crate::reach::machine_name;
use crate::server_id::ServerId;
use crate::services::Services;
use crate::shares::node::{self, Offline};
use crate::shares::space::{Query, Spaces, Volume};
use crate::shares::{Resources, ShareConfig, Shares, Watch};

mod space;

/// What the server is started with.
pub struct Setup<'a> {
    /// The share of the command line.
    pub share: ShareConfig,
    /// The address of all services, and what is added to their ports.
    pub at: (IpAddr, u16),
    /// Logical units of the command line.
    pub luns: &'a [LunGiven],
    /// What the command line decides of NFS.
    pub nfs_given: &'a [Override],
    /// The current configuration.
    pub document: &'a Document,
    /// The state directory.
    pub state: &'a StateDir,
    /// Key of the handles.
    pub secret: [u8; 32],
    /// Where operations are recorded.
    pub hub: &'a Arc<Hub>,
    /// Bytes that each service may hold for its peers.
    pub buffered: usize,
    /// The users that sign in.
    pub users: Arc<Users>,
    /// What TLS shows.
    pub certificates: &'a Arc<Certificates>,
    /// Load jobs and their runs.
    pub lab: Arc<RunQueue>,
    /// Runs of dsync that are made here.
    pub replication: Arc<Replication>,
    /// Where emulated links have their control sockets.
    pub links: PathBuf,
    /// The local socket of the head that has started this server, if one has.
    pub head: Option<PathBuf>,
}

/// Everything that runs.
pub struct Running {
    /// The shares, to be changed.
    pub shares: Arc<Shares>,
    /// Those that could not be started.
    pub offline: Offline,
    /// Pools of disks.
    pub pools: Arc<PoolRoom>,
    /// The name of the share of the command line.
    pub given: String,
    /// What the services are made of.
    pub parts: Arc<ServiceParts>,
    /// The services.
    pub services: Arc<Services>,
    /// Statistics.
    pub queries: Arc<Engine>,
    /// The InfiniBand fabric.
    pub fabric: Arc<Fabrics>,
    /// The cluster, if this server is of one.
    pub cluster: Arc<Cluster>,
    collector: Mutex<Option<Collector>>,
    /// The NFS clients of the shares.
    nfs: NfsClients,
    /// What clients have locked over WebDAV.
    dav: DavLocks,
    /// What TLS shows.
    pub certificates: Arc<Certificates>,
    /// Load jobs and their runs.
    pub lab: Results,
    /// Runs of dsync that are made here.
    pub replication: Arc<Replication>,
    /// When the server started, seconds since the epoch.
    pub started: u64,
    /// Where the admin interface listens, and its limits on connections, once it does.
    pub admin: OnceLock<(SocketAddr, Arc<places::ConnectionLimits>)>,
    /// Alerts, once they are watched, which refer to this in turn.
    pub alerts: OnceLock<Weak<Alerts>>,
    /// Problems of the machine, once the tree has them.
    pub machine_problems: OnceLock<Weak<Problems>>,
    /// Free space of the shares.
    spaces: Spaces,
    /// Looks at the directories of the shares.
    _watch: Watch,
}

impl Running {
    /// Opens the shares, starts the services on them that are to serve, and measures them.
    ///
    /// # Errors
    /// The directory of the command line cannot be opened for serving, a service that must start
    /// cannot, or statistics cannot be kept.
    pub fn start(setup: Setup<'_>) -> Result<Arc<Self>, Failure> {
        let Setup { share, document, state, hub, certificates, .. } = &setup;
        let tls = NfsSettings::of(setup.nfs_given, document).tls;
        Service::EXPORTING.iter().try_for_each(|service| tls.check(share.rules_for(*service)))?;
        let tried = format!("serve {}", share.directory.display());
        // The table of files is sized by it.
        let descriptors = raise_descriptor_limit().or_failure(&tried)?;
        // Before the shares: their directories may be on pools.
        let pools = PoolRoom::new(state.path());
        let kit = Resources {
            pools: pools.clone(),
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
        let parts = Arc::new(parts(&setup, &shares, locks, descriptors)?);
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
        let watch = Watch::start(&shares).or_failure(&tried)?;
        let names = || ShareNames { shares: parts.shares.clone(), users: parts.users.clone() };
        let nfs = NfsClients::new(&services.nfs, names(), hub);
        let dav = DavLocks::new(&services.http, hub);
        let fabric = Fabrics::start().or_failure("start the thread that reads the fabric")?;
        let asked = Cluster::start(setup.head.clone());
        let cluster = asked.or_failure("start the thread that asks the head")?;
        let (queries, collector) =
            collect(&setup, names(), (&shares, &parts), (&services, &fabric, &pools))?;
        Ok(Arc::new(Self {
            shares,
            offline,
            pools,
            given: share.name.clone(),
            parts,
            services: Arc::new(services),
            queries,
            fabric,
            cluster,
            collector: Mutex::new(Some(collector)),
            nfs,
            dav,
            certificates: (*certificates).clone(),
            lab: Results(setup.lab),
            replication: setup.replication,
            started: wall_ns() / NS_PER_S,
            admin: OnceLock::new(),
            alerts: OnceLock::new(),
            machine_problems: OnceLock::new(),
            spaces: Spaces::default(),
            _watch: watch,
        }))
    }

    /// Ends what looks at statistics, and writes the last seconds down.
    pub fn end(&self) {
        self.alerts().iter().for_each(|alerts| alerts.end());
        self.collector.lock().take().into_iter().for_each(Collector::stop);
        self.queries.close();
    }

    /// All shares, with ways to reach them.
    pub fn share_statuses(&self) -> Vec<ShareStatus> {
        let list = self.shares.list();
        let query = |(share, _): &(Arc<vfs::share::Share>, ShareConfig)| {
            let fs = Arc::clone(&share.fs);
            let query: Query = Box::new(move || {
                let context = Context { cred: &Cred::root(), may_block: true };
                Volume {
                    space: fs.space(context).unwrap_or_default(),
                    fsid: fs.getattr(context, &fs.root()).ok().map(|attr| attr.fsid),
                }
            });
            (share.name.clone(), query)
        };
        let spaces = self.spaces.of(list.iter().map(query).collect());
        let one = |((share, config), space): ((Arc<vfs::share::Share>, ShareConfig), Space)| {
            let rules = Service::EXPORTING.map(|service| share.rules_for(service).get());
            ShareStatus {
                name: share.name.clone(),
                dir: config.directory.display().to_string(),
                read_only: share.read_only,
                total_bytes: space.total_bytes,
                available_bytes: space.avail_bytes,
                exports: rules.iter().flat_map(|all| all.iter()).map(ToString::to_string).collect(),
                access: self.access(&share.name),
            }
        };
        list.into_iter().zip(spaces).map(one).collect()
    }

    fn access(&self, share: &str) -> Vec<Access> {
        let all = self.services.all.iter();
        all.flat_map(|instance| instance.service().access(instance, share)).collect()
    }

    /// Problems of the machine, once the tree has them.
    pub fn machine_problems(&self) -> Option<Arc<Problems>> {
        self.machine_problems.get().and_then(Weak::upgrade)
    }

    /// Alerts.
    pub fn alerts(&self) -> Option<Arc<Alerts>> {
        self.alerts.get().and_then(Weak::upgrade)
    }

    /// How many requests have failed by a fault of the server since its start. It stays until the
    /// next start: what such a fault has left in memory is not known.
    pub fn faults(&self) -> Option<String> {
        let panics = self.parts.hub.gauges().panics.get();
        let failed = "requests or jobs have failed because of a server defect";
        (panics > 0).then(|| format!("{panics} {failed}"))
    }

    fn problems(&self, shares: &[ShareStatus]) -> Vec<String> {
        let mut problems = space::problems(shares, |name| self.spaces.fsid(name));
        for name in self.spaces.late() {
            problems.push(format!("the file system of {name} does not respond"));
        }
        for (name, problem) in self.shares.lost() {
            problems.push(format!("the share {name} is offline: {}", problem.sentence));
        }
        problems.extend(self.services.problems(&self.certificates));
        problems.extend(self.faults());
        if self.parts.places.is_full() {
            let full = "the connection limit is reached; new connections are refused";
            problems.push(full.to_owned());
        }
        problems.extend(self.queries.problem());
        problems.extend(self.certificates.problem());
        problems.extend(self.alerts().iter().flat_map(|alerts| alerts.firing()));
        problems
    }

    /// Identity used for file access.
    fn acting_as(&self) -> ActingAs {
        let uid = effective_uid();
        let (privileged, note) = self.shares.acting_as();
        let user = Machine::default().user(uid).unwrap_or_else(|| uid.to_string());
        ActingAs { privileged, user, note }
    }
}

/// The parts of the services, for these shares and this number of descriptors.
fn parts(
    setup: &Setup<'_>,
    shares: &Shares,
    locks: Arc<LockTable>,
    descriptors: u64,
) -> Result<ServiceParts, Failure> {
    let (tried, hub) = (format!("serve {}", setup.share.directory.display()), setup.hub);
    let limits = limits(descriptors, setup.buffered);
    hub.gauges().connections.set_limit(limits.connections as u64);
    let unkept = "keep the log of transfers";
    let disk = Arc::new(Folder::new(setup.state.path()));
    let transfers = Transfers::open(disk, hub.clone()).or_failure(unkept)?;
    transfers.take(setup.document);
    transfers.start().or_failure(unkept)?;
    Ok(ServiceParts {
        at: setup.at,
        shares: shares.table().clone(),
        locks,
        flush: Arc::new(FlushGroup::start().or_failure(&tried)?),
        pool: Pool::start(PoolLimits::default()).or_failure(&tried)?,
        runtimes: Arc::new(Runtimes::start_held(hub.cores()).or_failure(&tried)?),
        users: setup.users.clone(),
        sign_ins: Arc::default(),
        hub: hub.clone(),
        transfers,
        limits,
        places: Arc::new(ConnectionLimits::new(limits.connections, Service::ALL.len())),
        server_id: ServerId::open(
            setup.state.path(),
            || crate::nfs::nfs4::owner_before(setup.state.path()),
            &mut SystemRandom,
        )
        .or_failure("read the identity of the server")?,
        state: setup.state.path().to_owned(),
        luns: setup.luns.to_vec(),
    })
}

/// Statistics, collected each second from now on.
fn collect(
    setup: &Setup<'_>,
    names: ShareNames,
    (shares, parts): (&Arc<Shares>, &Arc<ServiceParts>),
    (services, fabric, pools): (&Services, &Arc<Fabrics>, &Arc<PoolRoom>),
) -> Result<(Arc<Engine>, Collector), Failure> {
    let tried = "keep statistics";
    let store = Store::open(&setup.state.file("stats"), Retention::default()).or_failure(tried)?;
    let queries = Engine::new(setup.hub.clone(), Arc::new(names), Some(store));
    let (shares, parts, nfs) = (shares.clone(), parts.clone(), services.nfs.clone());
    let keeper = Keeper { shares, parts, nfs, trim: base::memory::Trim::default() };
    let samplers: Vec<Box<dyn Sampler>> = vec![
        Box::new(HostSampler::new(host::Root::default())),
        Box::new(FabricSampler(fabric.clone())),
        Box::new(PoolSampler(pools.clone())),
        Box::new(SegmentSampler::new(host::Root::default())),
        Box::new(ConnectionSampler::new(host::Root::default())),
        Box::new(BridgeSampler::new(setup.links.clone(), effective_uid())),
        Box::new(keeper),
        Box::new(Levels::new(&services.nfs)),
        Box::new(services.levels()),
    ];
    let collector = Collector::start(queries.clone(), samplers).or_failure(tried)?;
    Ok((queries, collector))
}

/// Limits with `bytes` for requests and replies of each service, and with `descriptors`
/// descriptors: half of them are for open files, a part is reserved for everything else,
/// connections get the rest.
fn limits(descriptors: u64, bytes: usize) -> Limits {
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let rest = descriptors / 2 - descriptors / DESCRIPTORS_OTHER_PART;
    Limits { connections: rest.min(CONNECTIONS_MAX), bytes, ..Limits::default() }
}

impl Appliance for Running {
    fn is_own_host(&self, host: &str) -> bool {
        self.certificates.is_own_host(host)
    }

    fn status(&self) -> Status {
        let shares = self.share_statuses();
        let problems = self.problems(&shares);
        let one = |instance: &Arc<Instance>| {
            let condition = instance.condition();
            ServiceStatus {
                name: instance.name().to_owned(),
                state: condition.name().to_owned(),
                listen: instance.listens(),
                reason: condition.reason().map(str::to_owned),
            }
        };
        let mut services: Vec<_> = self.services.all.iter().map(one).collect();
        services.extend(self.admin.get().map(|(at, _)| ServiceStatus {
            name: ADMIN.name.to_owned(),
            state: "online".to_owned(),
            listen: at.to_string(),
            reason: None,
        }));
        Status {
            name: machine_name(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            now: wall_ns() / NS_PER_S,
            pid: std::process::id(),
            healthy: problems.is_empty(),
            problems,
            machine_problems: self.machine_problems().map_or(0, |list| list.list().len()),
            acting_as: self.acting_as(),
            shares,
            services,
            budgets: self.queries.budgets(),
        }
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.queries
    }

    fn nfs(&self) -> &dyn NfsState {
        &self.nfs
    }

    fn dav(&self) -> &dyn DavState {
        &self.dav
    }

    fn lab(&self) -> &dyn Lab {
        &self.lab
    }

    fn transfers(&self) -> &Transfers {
        &self.parts.transfers
    }
}

/// What the laboratory needs of the server.
impl crate::lab::Serving for Arc<Running> {
    fn shares(&self) -> Vec<ShareStatus> {
        self.share_statuses()
    }

    fn nfs(&self) -> SocketAddr {
        self.services.nfs.at()
    }
}

/// What the branch of shares needs of the services.
impl node::Services for Arc<Running> {
    fn mount(&self, share: &str) -> Vec<String> {
        self.access(share).into_iter().map(|way| way.mount).collect()
    }

    fn holders(&self, tag: u32) -> Vec<String> {
        let Some(online) = self.services.nfs.online() else { return Vec::new() };
        let both = online.clients.holders(tag).into_iter().chain(online.nlm.holders(tag));
        both.collect::<BTreeSet<IpAddr>>().iter().map(ToString::to_string).collect()
    }

    fn knows_clients(&self) -> bool {
        self.services.all.iter().any(|instance| instance.tls().knows_clients())
    }
}

/// Looks after shares and clients once a second, on the collector's thread. Has no samples of its
/// own: it moves levels to the gauges, which the collector reads.
struct Keeper {
    shares: Arc<Shares>,
    parts: Arc<ServiceParts>,
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
