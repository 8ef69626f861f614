//! What the running server has to do with the tree: NFS's settings, the system, the status.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::node::{Path, Value};
use control::accounts::People;
use control::appliance::{Appliance, ShareStatus};
use control::state::keys::Identity;
use control::tree::{Apply, Branch, Document, Live, Override, Problem, Transition};
use serve::transport::tls::Tls;

use super::settings::{self, NfsSettings};
use super::status::{Running, machine_name};
use super::tls::TlsFiles;
use crate::lab;
use crate::out::Failure;
use crate::shares::room::{PREFIX, Room, Services};
use crate::tree::LOG_SHOWN;

/// All branches of the tree, each with who answers for it. The one list.
pub fn branches(
    running: &Arc<Running>,
    state: &std::path::Path,
    nfs: Arc<Nfs>,
    people: &Arc<People>,
    document: &Document,
) -> Vec<Branch> {
    let lab = lab::Room::new(running.lab.0.clone(), Box::new(OfLab(running.clone())), document);
    let system = System { running: running.clone(), state: state.to_owned() };
    let mut branches = people.branches();
    branches.extend([
        Branch::new(&["configuration", "services", "nfs"], nfs),
        Branch::new(lab::PREFIX, lab),
        Branch::live(&["maintenance", "logs"], Arc::new(Logs)),
        Branch::new(PREFIX, shares(running)),
        Branch::live(&["maintenance", "system"], Arc::new(system)),
        Branch::live(&["status"], Arc::new(Status { running: running.clone() })),
    ]);
    branches
}

/// NFS's settings. TLS can change while it runs; the rest takes a start.
pub struct Nfs {
    running: Arc<Running>,
    /// What is shown when there is no other certificate.
    own: Identity,
    /// What the options decide.
    given: Vec<Override>,
}

impl Nfs {
    /// With what the options decide.
    pub fn new(running: Arc<Running>, own: Identity, given: Vec<Override>) -> Self {
        Self { running, own, given }
    }

    /// TLS's files by this configuration.
    pub fn tls(&self, document: &Document) -> TlsFiles {
        NfsSettings::of(&self.given, document).tls
    }

    fn problem(failure: &Failure, property: &str) -> Problem {
        let hint = match failure.way_out() {
            "" => "name a file that the server can read",
            hint => hint,
        };
        Problem::new(&settings::nfs(), failure.why(), hint).property(property)
    }
}

impl Apply for Nfs {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let at = settings::nfs();
        if !transition.old.differs_in(transition.new, &at) {
            return Vec::new();
        }
        let given = |name: &str| {
            let decided = self.given.iter().any(|one| one.property == name);
            decided || transition.new.text(&at, name).is_some()
        };
        if given("tls_certificate") != given("tls_key") {
            let sentence = "tls_certificate and tls_key go together";
            let hint = "set both, or neither";
            return vec![Problem::new(&at, sentence, hint).property("tls_key")];
        }
        let files = self.tls(transition.new);
        let usable = files.read(&self.own).and_then(|credentials| {
            let made = Tls::new(&credentials).map(drop);
            made.map_err(|e| Failure::of("offer TLS to NFS clients", &e))
        });
        if let Err(failure) = usable {
            return vec![Self::problem(&failure, "tls_certificate")];
        }
        let table = self.running.storage.table().load();
        let wanting = table.iter().filter_map(|share| files.check(&share.rules.get()).err()).next();
        wanting.map(|failure| Self::problem(&failure, "tls_client_ca")).into_iter().collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let files = self.tls(transition.new);
        files
            .renew(self.running.storage.tls(), &self.own)
            .map_err(|failure| Self::problem(&failure, "tls_certificate"))?;
        self.running.storage.set_knows_clients(files.knows_clients());
        Ok(())
    }
}

impl Live for Nfs {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let storage = &self.running.storage;
        let state = if storage.is_draining() { "draining" } else { "online" };
        vec![
            ("state", Value::text(state)),
            ("uptime", Value::Integer(uptime(&self.running))),
            ("listen", Value::Text(storage.nfs().to_string())),
            ("connections", Value::Integer(storage.connections())),
        ]
    }

    fn overrides(&self, _path: &Path) -> Vec<Override> {
        self.given.clone()
    }
}

/// `/maintenance/logs`.
struct Logs;

impl Live for Logs {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let lines = base::log::since(0, None, LOG_SHOWN);
        let shown = lines.iter().map(|line| format!("{}: {}", line.service, line.text));
        vec![
            ("lines", Value::Integer(integer(base::log::newest()))),
            ("recent", Value::texts(shown)),
        ]
    }
}

/// `/maintenance/system`.
struct System {
    running: Arc<Running>,
    state: PathBuf,
}

impl Live for System {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let admin = self.running.admin.get().map(ToString::to_string).unwrap_or_default();
        vec![
            ("version", Value::text(env!("CARGO_PKG_VERSION"))),
            ("host", Value::Text(machine_name())),
            ("pid", Value::Integer(i64::from(std::process::id()))),
            ("started", Value::Integer(integer(self.running.started))),
            ("uptime", Value::Integer(uptime(&self.running))),
            ("state_directory", Value::Text(self.state.to_string_lossy().into_owned())),
            ("listen", Value::Text(admin)),
        ]
    }
}

/// `/status`.
struct Status {
    running: Arc<Running>,
}

impl Live for Status {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let status = self.running.status();
        vec![
            ("healthy", Value::Bool(status.healthy)),
            ("problems", Value::texts(&status.problems)),
            ("acting_as", Value::Text(status.acting_as.note)),
            ("shares", Value::texts(status.shares.iter().map(|share| &share.name))),
        ]
    }
}

fn uptime(running: &Running) -> i64 {
    integer((wall_ns() / NS_PER_S).saturating_sub(running.started))
}

fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// `/shares`, with what the services on them say.
pub fn shares(running: &Arc<Running>) -> Arc<Room> {
    let storage = &running.storage;
    let services = Box::new(OfShares(running.clone()));
    let (shares, offline) = storage.all_shares();
    Arc::new(Room::new(shares.clone(), offline.clone(), services, storage.given()))
}

struct OfLab(Arc<Running>);

impl lab::Serving for OfLab {
    fn shares(&self) -> Vec<ShareStatus> {
        self.0.storage.shares()
    }

    fn nfs(&self) -> SocketAddr {
        self.0.storage.nfs()
    }
}

struct OfShares(Arc<Running>);

impl Services for OfShares {
    fn mount(&self, share: &str) -> Vec<String> {
        self.0.storage.mount_commands(share)
    }

    fn holders(&self, tag: u32) -> Vec<String> {
        self.0.storage.holders(tag).iter().map(ToString::to_string).collect()
    }

    fn knows_clients(&self) -> bool {
        self.0.storage.knows_clients()
    }
}
