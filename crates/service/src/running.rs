//! The running server as the API shows it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use analytics::query::Engine;
use base::clock::{NS_PER_S, wall_ns};
use base::failure::Failure;
use base::protocol::ports::ADMIN;
use control::alerts::Alerts;
use control::appliance::{Appliance, ServiceStatus, ShareStatus, Status};
use control::certificates::Certificates;
use control::dav::DavState;
use control::lab::Lab;
use control::listen::places::ConnectionLimits;
use control::nfs::NfsState;
use control::replication::Replication;
use control::transfers::Transfers;
use probe::hub::Hub;

use crate::files::dav::DavLocks;
use crate::lab::Results;
use crate::nfs::clients::NfsClients;
use crate::reach::machine_name;
use crate::statistics::Statistics;
use crate::storage::{Setup, Storage};

/// Free space below this part of a file system is a problem worth telling.
const SPACE_LOW: f64 = 0.05;

/// Everything that runs.
pub struct Running {
    /// Where operations are written down.
    pub hub: Arc<Hub>,
    /// What is made of them.
    pub statistics: Statistics,
    /// Shares and the services on them.
    pub storage: Storage,
    /// Who uses them over NFS.
    pub nfs: NfsClients,
    /// What its clients have locked over WebDAV.
    pub dav: DavLocks,
    /// What TLS shows.
    pub certificates: Arc<Certificates>,
    /// Load jobs and their runs.
    pub lab: Results,
    /// Runs of dsync that are made here.
    pub replication: Arc<Replication>,
    /// When the server started, seconds since the epoch.
    pub started: u64,
    /// Where the admin interface listens, once it does.
    pub admin: OnceLock<SocketAddr>,
    /// The places of its connections, from then on.
    pub admin_places: OnceLock<Arc<ConnectionLimits>>,
    /// What people are told of, once it is watched. It knows us in turn.
    pub alerts: OnceLock<Weak<Alerts>>,
}

impl Running {
    /// Starts the services and what is measured of them; emulated links have their control sockets
    /// in `links`.
    ///
    /// # Errors
    /// What keeps the server from serving all that was asked for.
    pub fn start(
        setup: Setup<'_>,
        lab: Results,
        replication: Arc<Replication>,
        links: PathBuf,
    ) -> Result<Arc<Self>, Failure> {
        let (state, hub) = (setup.state, setup.hub.clone());
        let certificates = setup.certificates.clone();
        let storage = Storage::start(setup)?;
        let statistics = Statistics::start(state, &hub, &storage, links)?;
        Ok(Arc::new(Self {
            nfs: NfsClients::new(&storage.services.nfs, storage.names(), &hub),
            dav: DavLocks::new(&storage.services.http, &hub),
            hub,
            statistics,
            storage,
            certificates,
            lab,
            replication,
            started: wall_ns() / NS_PER_S,
            admin: OnceLock::new(),
            admin_places: OnceLock::new(),
            alerts: OnceLock::new(),
        }))
    }
}

impl Appliance for Running {
    fn is_own_host(&self, host: &str) -> bool {
        self.certificates.is_own_host(host)
    }

    fn status(&self) -> Status {
        let shares = self.storage.share_statuses();
        let problems = self.problems(&shares);
        let mut services = self.storage.statuses();
        services.extend(self.admin.get().map(|at| ServiceStatus {
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
            acting_as: self.storage.acting_as(),
            shares,
            services,
            budgets: self.statistics.queries().budgets(),
        }
    }

    fn engine(&self) -> &Arc<Engine> {
        self.statistics.queries()
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
        &self.storage.parts.transfers
    }
}

impl Running {
    /// What people are told of.
    pub fn alerts(&self) -> Option<Arc<Alerts>> {
        self.alerts.get().and_then(Weak::upgrade)
    }

    /// How many requests have failed by a fault of the server since its start. It stays until the
    /// next start: what such a fault has left in memory is not known.
    pub fn faults(&self) -> Option<String> {
        let panics = self.hub.gauges().panics.get();
        let failed = "requests or jobs have failed because of a server defect";
        (panics > 0).then(|| format!("{panics} {failed}"))
    }

    fn problems(&self, shares: &[ShareStatus]) -> Vec<String> {
        let mut problems = Vec::new();
        for share in shares {
            let (left, of) = (share.available_bytes as f64, share.total_bytes as f64);
            if of > 0.0 && left / of < SPACE_LOW {
                let left = base::units::bytes(left);
                problems.push(format!("the file system of {} has {left} left", share.name));
            }
        }
        let lost = self.storage.shares.lost();
        problems.extend(
            lost.into_iter().map(|(name, problem)| {
                format!("the share {name} is offline: {}", problem.sentence)
            }),
        );
        problems.extend(self.storage.services.problems(&self.certificates));
        problems.extend(self.faults());
        if self.storage.parts.places.is_full() {
            problems.push(
                "the connection limit is reached; new connections are \
                refused"
                    .to_owned(),
            );
        }
        problems.extend(self.statistics.queries().problem());
        problems.extend(self.certificates.problem());
        problems.extend(self.alerts().iter().flat_map(|alerts| alerts.firing()));
        problems
    }
}
