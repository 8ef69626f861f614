//! What the running server has to do with the tree: its services, the administration, the system,
//! the status.

use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::Arc;

use base::failure::Failure;
use base::log::{self, Wanted};
use base::node::service::LOG_SHOWN;
use base::node::{Path, Value};
use control::accounts::People;
use control::appliance::{Appliance, ShareStatus};
use control::listen::node::ADMINISTRATION;
use control::state::StateDir;
use control::tree::{Apply, Branch, Live, Problem, Transition, Tree};

use crate::certificates;
use crate::lab;
use crate::luns::config::SAN;
use crate::luns::live::Beside;
use crate::node::{ServiceNode, integer, log_of, seconds_since, set_log_levels};
use crate::reach::machine_name;
use crate::running::Running;
use crate::shares::PREFIX;
use crate::shares::node::{Room, Services};
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
    running.storage.services.iscsi.give(tree)?;
    let served = Arc::downgrade(running);
    let shares = move || served.upgrade().map(|on| on.storage.share_statuses()).unwrap_or_default();
    let started = running.replication.start(tree, Box::new(shares));
    started.map_err(|e| Failure::of("look at the schedule of replication", &e))
}

/// The branches of the server, each with who answers for it.
fn branches(
    running: &Arc<Running>,
    state: &StateDir,
    people: &Arc<People>,
    tree: &Arc<Tree>,
) -> Vec<Branch> {
    let (on, signed_in, socket) = (running.clone(), people.clone(), state.socket());
    let admin = Shown(move || administration(&on, &signed_in, &socket));
    let (on, folder) = (running.clone(), state.path().to_owned());
    let system = Shown(move || system(&on, &folder));
    let on = running.clone();
    let status = Shown(move || status(&on));
    let mut branches = people.branches();
    branches.extend([
        running.certificates.branch(),
        running.storage.parts.transfers.branch(),
        running.replication.branch(),
    ]);
    let services = running.storage.services.all.iter();
    branches.extend(services.map(|one| ServiceNode::branch(one, &running.certificates, tree)));
    let serving = Box::new(running.clone());
    let luns = running.storage.services.iscsi.join(tree);
    let lab = lab::Room::new(running.lab.0.clone(), serving, &tree.document());
    branches.extend([
        Branch::new(lab::PREFIX, lab),
        Branch::new(&["configuration", "services", ADMINISTRATION], Arc::new(admin)),
        Branch::new(&["maintenance", "logs"], Arc::new(Shown(logs))),
        Branch::new(PREFIX, Arc::new(Beside { shares: shares(running), luns: luns.clone() })),
        Branch::new(SAN, luns),
        Branch::live(&["maintenance", "system"], Arc::new(system)),
        Branch::live(&["status"], Arc::new(status)),
    ]);
    branches
}

type State = Vec<(&'static str, Value)>;

/// A node that shows its state, and has at most one setting: how much the log tells.
struct Shown<F>(F);

impl<F: Fn() -> State + Send + Sync> Apply for Shown<F> {
    fn check(&self, _transition: &Transition<'_>) -> Vec<Problem> {
        Vec::new()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        set_log_levels(transition.new);
        Ok(())
    }
}

impl<F: Fn() -> State + Send + Sync> Live for Shown<F> {
    fn state(&self, _path: &Path) -> State {
        (self.0)()
    }
}

/// `/configuration/services/administration`.
fn administration(running: &Running, people: &People, socket: &FilePath) -> State {
    let at = running.admin.get().map(ToString::to_string).unwrap_or_default();
    let places = running.admin_places.get();
    let taken = places.map_or(0, |places| places.taken() as u64);
    let ended = places.map_or(0, |places| places.ended());
    vec![
        ("state", Value::text("online")),
        ("uptime", Value::Integer(uptime(running))),
        ("listen", Value::Text(at)),
        ("socket", Value::Text(socket.to_string_lossy().into_owned())),
        ("connections", Value::Integer(integer(taken))),
        ("connections_ended", Value::Integer(integer(ended))),
        ("sessions", Value::Integer(integer(people.signed_in() as u64))),
        ("log", log_of(ADMINISTRATION)),
    ]
}

/// `/maintenance/logs`.
fn logs() -> State {
    let lines = log::lines(&Wanted::newest(LOG_SHOWN));
    let shown = lines.iter().map(|line| format!("{}: {}", line.service, line.text));
    vec![("lines", Value::Integer(integer(log::newest()))), ("recent", Value::texts(shown))]
}

/// `/maintenance/system`.
fn system(running: &Running, state: &FilePath) -> State {
    let admin = running.admin.get().map(ToString::to_string).unwrap_or_default();
    vec![
        ("version", Value::text(env!("CARGO_PKG_VERSION"))),
        ("host", Value::Text(machine_name())),
        ("pid", Value::Integer(i64::from(std::process::id()))),
        ("started", Value::Integer(integer(running.started))),
        ("uptime", Value::Integer(uptime(running))),
        ("state_directory", Value::Text(state.to_string_lossy().into_owned())),
        ("listen", Value::Text(admin)),
    ]
}

/// `/status`.
fn status(running: &Running) -> State {
    let status = running.status();
    vec![
        ("healthy", Value::Bool(status.healthy)),
        ("problems", Value::texts(&status.problems)),
        ("acting_as", Value::Text(status.acting_as.note)),
        ("shares", Value::texts(status.shares.iter().map(|share| &share.name))),
    ]
}

fn uptime(running: &Running) -> i64 {
    seconds_since(running.started)
}

/// `/shares`, with what the services on them say.
pub fn shares(running: &Arc<Running>) -> Arc<Room> {
    let storage = &running.storage;
    let (shares, offline) = (storage.shares.clone(), storage.offline.clone());
    Arc::new(Room::new(shares, offline, Box::new(running.clone()), &storage.given))
}

/// What the laboratory asks of the server.
impl lab::Serving for Arc<Running> {
    fn shares(&self) -> Vec<ShareStatus> {
        self.storage.share_statuses()
    }

    fn nfs(&self) -> SocketAddr {
        self.storage.services.nfs.at()
    }
}

impl Services for Arc<Running> {
    fn mount(&self, share: &str) -> Vec<String> {
        self.storage.access(share).into_iter().map(|way| way.mount).collect()
    }

    fn holders(&self, tag: u32) -> Vec<String> {
        self.storage.holders(tag).iter().map(ToString::to_string).collect()
    }

    fn knows_clients(&self) -> bool {
        self.storage.knows_clients()
    }
}
