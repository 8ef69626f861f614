//! What the running server has to do with the tree: its services, the administration, the system,
//! the status.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base::log::{self, Wanted};
use base::node::service::LOG_SHOWN;
use base::node::{Path, Value};
use control::accounts::People;
use control::appliance::{Appliance, ShareStatus};
use control::listen::node::ADMINISTRATION;
use control::state::StateDir;
use control::tree::{Apply, Branch, Live, Problem, Transition, Tree};

use crate::certificates;
use crate::failure::Failure;
use crate::lab;
use crate::node::{ServiceNode, integer, log_of, seconds_since, set_log_levels};
use crate::reach::machine_name;
use crate::running::Running;
use crate::shares::node::{PREFIX, Room, Services};
use crate::watch;

/// Joins all branches to the tree; services hear of other certificates from now on.
///
/// # Errors
/// When the system gives no threads.
pub fn join(
    running: &Arc<Running>,
    state: &StateDir,
    people: &Arc<People>,
    tree: &Arc<Tree>,
) -> Result<(), Failure> {
    certificates::follow(&running.certificates, &running.storage);
    let branches = branches(running, state, people, tree);
    tree.join(watch::with(branches, running, state, tree)?);
    let served = Arc::downgrade(running);
    let shares = move || served.upgrade().map(|on| on.storage.shares()).unwrap_or_default();
    let started = running.replication.start(tree, Box::new(shares));
    started.map_err(|e| Failure::of("look at the schedule of replication", &e))
}

/// The branches of the server, each with who answers for it.
fn branches(
    running: &Arc<Running>,
    state: &StateDir,
    people: &Arc<People>,
    tree: &Tree,
) -> Vec<Branch> {
    let system = System { running: running.clone(), state: state.path().to_owned() };
    let socket = state.socket();
    let admin = Administration { running: running.clone(), people: people.clone(), socket };
    let mut branches = people.branches();
    branches.extend([
        running.certificates.branch(),
        running.storage.transfers().branch(),
        running.replication.branch(),
    ]);
    let services = running.storage.services().all.iter();
    branches.extend(services.map(|one| ServiceNode::branch(one, &running.certificates, tree)));
    let serving = Box::new(OfLab(running.clone()));
    let lab = lab::Room::new(running.lab.0.clone(), serving, &tree.document());
    branches.extend([
        Branch::new(lab::PREFIX, lab),
        Branch::new(&["configuration", "services", ADMINISTRATION], Arc::new(admin)),
        Branch::new(&["maintenance", "logs"], Arc::new(Logs)),
        Branch::new(PREFIX, shares(running)),
        Branch::live(&["maintenance", "system"], Arc::new(system)),
        Branch::live(&["status"], Arc::new(Status { running: running.clone() })),
    ]);
    branches
}

/// `/configuration/services/administration`.
struct Administration {
    running: Arc<Running>,
    people: Arc<People>,
    socket: PathBuf,
}

impl Apply for Administration {
    fn check(&self, _transition: &Transition<'_>) -> Vec<Problem> {
        Vec::new()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        set_log_levels(transition.new);
        Ok(())
    }
}

impl Live for Administration {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let at = self.running.admin.get().map(ToString::to_string).unwrap_or_default();
        let places = self.running.admin_places.get();
        let taken = places.map_or(0, |places| places.taken() as u64);
        let ended = places.map_or(0, |places| places.ended());
        vec![
            ("state", Value::text("online")),
            ("uptime", Value::Integer(uptime(&self.running))),
            ("listen", Value::Text(at)),
            ("socket", Value::Text(self.socket.to_string_lossy().into_owned())),
            ("connections", Value::Integer(integer(taken))),
            ("connections_ended", Value::Integer(integer(ended))),
            ("sessions", Value::Integer(integer(self.people.signed_in() as u64))),
            ("log", log_of(ADMINISTRATION)),
        ]
    }
}

/// `/maintenance/logs`.
struct Logs;

impl Apply for Logs {
    fn check(&self, _transition: &Transition<'_>) -> Vec<Problem> {
        Vec::new()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        set_log_levels(transition.new);
        Ok(())
    }
}

impl Live for Logs {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let lines = log::lines(&Wanted::newest(LOG_SHOWN));
        let shown = lines.iter().map(|line| format!("{}: {}", line.service, line.text));
        vec![("lines", Value::Integer(integer(log::newest()))), ("recent", Value::texts(shown))]
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
    seconds_since(running.started)
}

/// `/shares`, with what the services on them say.
pub fn shares(running: &Arc<Running>) -> Arc<Room> {
    let storage = &running.storage;
    let services = Box::new(OfShares(running.clone()));
    let (shares, offline) = storage.all_shares();
    Arc::new(Room::new(shares.clone(), offline.clone(), services, storage.given()))
}

/// What the laboratory asks of the server.
struct OfLab(Arc<Running>);

impl lab::Serving for OfLab {
    fn shares(&self) -> Vec<ShareStatus> {
        self.0.storage.shares()
    }

    fn nfs(&self) -> SocketAddr {
        self.0.storage.nfs_at()
    }
}

struct OfShares(Arc<Running>);

impl Services for OfShares {
    fn mount(&self, share: &str) -> Vec<String> {
        self.0.storage.access(share).into_iter().map(|way| way.mount).collect()
    }

    fn holders(&self, tag: u32) -> Vec<String> {
        self.0.storage.holders(tag).iter().map(ToString::to_string).collect()
    }

    fn knows_clients(&self) -> bool {
        self.0.storage.knows_clients()
    }
}
