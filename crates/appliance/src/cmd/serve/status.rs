//! The running server as the API shows it.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};

use base::clock::{NS_PER_S, wall_ns};
use base::protocol::Service;
use base::protocol::ports::ADMIN;
use control::alerts::Alerts;
use control::appliance::{Appliance, Budget, Engine, ServiceStatus, ShareStatus, Status};
use control::certificates::Certificates;
use control::dav::DavState;
use control::lab::Lab;
use control::listen::places::Places;
use control::nfs::NfsState;
use control::replication::Replication;
use control::transfers::Transfers;
use probe::hub::Hub;

use super::clients::NfsClients;
use super::condition;
use super::engine::Statistics;
use super::files;
use super::files::dav::DavLocks;
use super::nfs::Condition;
use super::storage::Storage;
use crate::lab::Results;

/// Free space below this part of a file system is a problem worth telling.
const SPACE_LOW: f64 = 0.05;

/// Everything that runs.
pub struct Running {
    /// Where operations are written down.
    pub hub: std::sync::Arc<Hub>,
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
    pub admin_places: OnceLock<Arc<Places>>,
    /// What people are told of, once it is watched. It knows us in turn.
    pub alerts: OnceLock<Weak<Alerts>>,
}

impl Appliance for Running {
    fn is_own_host(&self, host: &str) -> bool {
        self.certificates.is_own_host(host)
    }

    fn status(&self) -> Status {
        let shares = self.storage.shares();
        let problems = self.problems(&shares);
        let nfs = self.storage.nfs();
        let mut services =
            vec![told(Service::Nfs.id(), &nfs.condition(), &nfs.parts().at.to_string())];
        services.extend(self.storage.files().iter().map(|one| {
            let at: Vec<String> = one.ports().iter().map(ToString::to_string).collect();
            told(one.name(), &one.condition(), &at.join(", "))
        }));
        services.extend(self.admin.get().map(|at| online(ADMIN.name, &at.to_string())));
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
            budgets: self.budgets(),
        }
    }

    fn engine(&self) -> &dyn Engine {
        &self.statistics
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
        self.storage.transfers()
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
        let failed = "requests or jobs have failed by a fault of the server";
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
        let lost = self.storage.all_shares().0.lost();
        problems.extend(
            lost.into_iter().map(|(name, problem)| {
                format!("the share {name} is offline: {}", problem.sentence)
            }),
        );
        if let Condition::Maintenance(why) = self.storage.nfs().condition() {
            problems.push(format!("NFS is in maintenance: {why}"));
        }
        let files = self.storage.files();
        problems.extend(files.iter().filter_map(|one| match one.condition() {
            files::Condition::Maintenance(why) => {
                Some(format!("{} is in maintenance: {why}", one.title()))
            }
            _ => None,
        }));
        problems.extend(files.iter().filter_map(|one| one.certificate(&self.certificates).1));
        problems.extend(self.faults());
        if self.storage.nfs().parts().places.is_full() {
            problems.push("the limit of connections is reached; new ones are refused".to_owned());
        }
        problems.extend(self.statistics.queries().problem());
        problems.extend(self.certificates.problem());
        problems.extend(self.storage.tls().told(&self.certificates, "NFS").1);
        problems.extend(self.alerts().iter().flat_map(|alerts| alerts.firing()));
        problems
    }

    fn budgets(&self) -> Vec<Budget> {
        let one = |b: analytics::query::Budget| Budget {
            id: b.id,
            sentence: b.sentence,
            used: b.used,
            limit: b.limit,
        };
        self.statistics.queries().budgets().into_iter().map(one).collect()
    }
}

fn told<Up>(service: &str, condition: &condition::Condition<Up>, at: &str) -> ServiceStatus {
    ServiceStatus {
        state: condition.name().to_owned(),
        reason: condition.reason().map(str::to_owned),
        ..online(service, at)
    }
}

fn online(service: &str, at: &str) -> ServiceStatus {
    ServiceStatus {
        name: service.to_owned(),
        state: "online".to_owned(),
        listen: at.to_owned(),
        reason: None,
    }
}

/// The host's name, which is the appliance's.
pub fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
