//! The connection of the running server to the configuration tree: its services, the
//! administration, the system, the status, and the events for alerts.

use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Weak};

use analytics::alert::Event;
use base::clock::SystemClock;
use base::failure::{Failure, OrFailure};
use base::limits::STATE_SPACE_LOW;
use base::log::{self, LogQuery};
use base::node::service::LOG_SHOWN;
use base::node::{Path, Value};
use base::units;
use control::accounts::People;
use control::alerts::{Alerts, Facts};
use control::analytics_room::{AnalyticsRoom, Datasets};
use control::appliance::Appliance;
use control::listen::node::ADMINISTRATION;
use control::replication::Served;
use control::state::StateDir;
use control::tree::{self, Apply, Problem, Subtree, Transition, Tree};

use crate::cluster;
use crate::hardware::room::{HardwareRoom, NAME as HARDWARE_NAME, PREFIX as HARDWARE};
use crate::luns::config::SAN;
use crate::luns::live::SharesAndLuns;
use crate::node::{ServiceNode, log_of, seconds_since, set_log_levels};
use crate::pools::room::{NAME as POOLS_NAME, PREFIX as POOLS};
use crate::problems::{PREFIX as PROBLEMS, Problems};
use crate::reach::machine_name;
use crate::running::Running;
use crate::shares::PREFIX;
use crate::shares::node::SharesNode;
use crate::{fabric, lab, network};

/// Joins all branches to the tree; services are notified of changed certificates from now on.
///
/// # Errors
/// When the system gives no threads.
pub fn join(
    running: &Arc<Running>,
    state: &StateDir,
    people: &Arc<People>,
    tree: &Arc<Tree>,
) -> Result<(), Failure> {
    // Services show one of them, by its name or because they have nothing else.
    let known = (Arc::downgrade(&running.services), Arc::downgrade(&running.certificates));
    running.certificates.on_change(move || {
        let (Some(services), Some(shown)) = (known.0.upgrade(), known.1.upgrade()) else { return };
        services.renew_tls(&shown).iter().for_each(Failure::print);
    });
    let network = network(running, state);
    network.follow_partitions(&running.fabric);
    let mut branches = branches(running, state, people, tree);
    branches.push(Subtree::new(&network::wanted::PREFIX, network.clone()));
    let hardware = HardwareRoom::new(state.path());
    running.pools.with_bays(&hardware);
    let pools = Arc::downgrade(&running.pools);
    let members = move || pools.upgrade().map(|pools| pools.members()).unwrap_or_default();
    hardware.with_pools(Box::new(members));
    let problems = Problems::new(state.path());
    problems.feed(&running.pools);
    problems.feed(&hardware);
    problems.feed(&network);
    problems.feed(&running.fabric);
    problems.feed(&running.cluster);
    // Set once, here.
    let _ = running.machine_problems.set(Arc::downgrade(&problems));
    let live = Subtree::live;
    branches.push(live(&HARDWARE, hardware.clone()));
    branches.push(live(&PROBLEMS, problems));
    branches.push(live(&cluster::PREFIX, running.cluster.clone()));
    branches.extend(watch(running, state, tree, &network)?);
    tree.join(branches);
    hardware.start().or_failure("start the threads that look at the hardware")?;
    running.services.iscsi.give(tree)?;
    running.pools.start(tree).or_failure("start the thread of pools")?;
    network.start(tree).or_failure("start the thread that follows the network")?;
    let served = Arc::downgrade(running);
    let shares = move || served.upgrade().map(|on| on.share_statuses()).unwrap_or_default();
    let locks = Arc::clone(&running.parts.locks);
    let guard = move || crate::guard::connect(&locks);
    let served = Served { shares: Box::new(shares), guard: Box::new(guard) };
    let started = running.replication.start(tree, served);
    started.or_failure("look at the schedule of replication")
}

/// The network of the machine.
fn network(running: &Arc<Running>, state: &StateDir) -> Arc<network::room::Network> {
    let on = Arc::downgrade(running);
    let listens = move || {
        let (at, _) = on.upgrade()?.admin.get().cloned()?;
        (!at.ip().is_unspecified()).then(|| at.ip())
    };
    network::room::Network::new(state.path(), Box::new(listens))
}

/// The branches of the server, each with its handler.
fn branches(
    running: &Arc<Running>,
    state: &StateDir,
    people: &Arc<People>,
    tree: &Arc<Tree>,
) -> Vec<Subtree> {
    let (on, signed_in, socket) = (running.clone(), people.clone(), state.socket());
    let admin = Shown(move || administration(&on, &signed_in, &socket));
    let (on, folder) = (running.clone(), state.path().to_owned());
    let system = Shown(move || system(&on, &folder));
    let fabric = fabric::shown::Shown(running.fabric.clone());
    let on = running.clone();
    let status = Shown(move || status(&on));
    let mut branches = people.branches();
    branches.extend([
        running.certificates.branch(),
        running.parts.transfers.branch(),
        running.replication.branch(),
    ]);
    let services = running.services.all.iter();
    branches.extend(services.map(|one| ServiceNode::branch(one, &running.certificates, tree)));
    let luns = running.services.iscsi.join(tree);
    let lab = lab::LabNode::new(running.lab.0.clone(), Box::new(running.clone()), &tree.document());
    let (shares, offline) = (running.shares.clone(), running.offline.clone());
    let shares = SharesNode::new(shares, offline, Box::new(running.clone()), &running.given);
    let shares = Arc::new(shares);
    let (served, document) = (Arc::downgrade(&shares), Arc::downgrade(tree));
    let retry = move || {
        if let (Some(shares), Some(tree)) = (served.upgrade(), document.upgrade()) {
            shares.serve_offline(&|| tree.document());
        }
    };
    running.pools.join(tree, &running.shares, Box::new(retry));
    branches.extend([
        Subtree::live(&POOLS, running.pools.clone()),
        Subtree::new(lab::PREFIX, lab),
        Subtree::new(&["configuration", "services", ADMINISTRATION], Arc::new(admin)),
        Subtree::new(&["maintenance", "logs"], Arc::new(Shown(logs))),
        Subtree::new(PREFIX, Arc::new(SharesAndLuns { shares, luns: luns.clone() })),
        Subtree::new(SAN, luns),
        Subtree::live(&fabric::shown::PREFIX, Arc::new(fabric)),
        Subtree::live(&["maintenance", "system"], Arc::new(system)),
        Subtree::live(&["status"], Arc::new(status)),
    ]);
    branches
}

/// Begins to watch for alerts: their branch, and that of Analytics, which has the statistics that
/// they are about.
fn watch(
    running: &Arc<Running>,
    state: &StateDir,
    tree: &Arc<Tree>,
    network: &Arc<network::room::Network>,
) -> Result<[Subtree; 2], Failure> {
    let queries = &running.queries;
    let datasets = Datasets::open(queries.clone(), state.path(), Arc::new(SystemClock));
    let network = Arc::downgrade(network);
    let facts = ServerFacts(Arc::downgrade(running), state.path().to_owned(), network);
    let facts = Box::new(facts);
    let alerts = Alerts::start(queries.clone(), facts, datasets.clone(), &machine_name(), tree)
        .or_failure("watch for alerts")?;
    // Set once, here.
    let _ = running.alerts.set(Arc::downgrade(&alerts));
    let analytics = AnalyticsRoom::start(queries.clone(), datasets, tree);
    Ok([
        Subtree::new(&["configuration", "alerts"], alerts),
        Subtree::new(&["analytics"], analytics),
    ])
}

/// The events of a running server with this state directory, for alerts.
struct ServerFacts(Weak<Running>, PathBuf, Weak<network::room::Network>);

impl Facts for ServerFacts {
    fn now(&self, event: Event) -> Option<String> {
        let Self(running, state, network) = self;
        let running = running.upgrade()?;
        match event {
            Event::Service => {
                let services = running.status().services;
                let service = services.into_iter().find(|service| service.state != "online")?;
                let why = service.reason.map_or_else(String::new, |why| format!(": {why}"));
                Some(format!("{} is {}{why}", service.name, service.state))
            }
            Event::Store => running.queries.problem(),
            Event::Space => {
                let free = vfs::host::sys::bytes_free(state).ok()?;
                let left = units::bytes(free as f64);
                (free < STATE_SPACE_LOW)
                    .then(|| format!("the file system of {} has {left} left", state.display()))
            }
            Event::Certificate { days } => running.certificates.warning(days),
            Event::Replication => running.replication.problem(),
            Event::Network => network.upgrade()?.warning(),
            Event::Hardware => {
                let problems = running.machine_problems()?;
                let of = [HARDWARE_NAME, POOLS_NAME, fabric::watch::NAME].into_iter();
                let sentences: Vec<_> = of.filter_map(|source| problems.sentence(source)).collect();
                (!sentences.is_empty()).then(|| sentences.join(" "))
            }
            Event::Takeover => running.cluster.takeover(),
            Event::Cluster => running.cluster.warning(),
            Event::Fault => running.faults(),
            // The frames contain them.
            Event::Dropped => None,
        }
    }
}

type State = Vec<(&'static str, Value)>;

/// A node that shows its state, and has at most one setting: the level of the log.
struct Shown<F>(F);

impl<F: Fn() -> State + Send + Sync> Apply for Shown<F> {
    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        set_log_levels(transition.new);
        Ok(())
    }
}

impl<F: Fn() -> State + Send + Sync> tree::Operational for Shown<F> {
    fn state(&self, _path: &Path) -> State {
        (self.0)()
    }
}

/// `/configuration/services/administration`.
fn administration(running: &Running, people: &People, socket: &FilePath) -> State {
    let (at, places) = running.admin.get().map(|(at, places)| (at.to_string(), places)).unzip();
    vec![
        ("state", Value::text("online")),
        ("uptime", seconds_since(running.started)),
        ("listen", Value::Text(at.unwrap_or_default())),
        ("socket", Value::Text(socket.to_string_lossy().into_owned())),
        ("connections", Value::number(places.map_or(0, |places| places.taken()))),
        ("connections_ended", Value::number(places.map_or(0, |places| places.ended()))),
        ("sessions", Value::number(people.signed_in())),
        ("log", log_of(ADMINISTRATION)),
    ]
}

/// `/maintenance/logs`.
fn logs() -> State {
    let lines = log::lines(&LogQuery::newest(LOG_SHOWN));
    let shown = lines.iter().map(|line| format!("{}: {}", line.service, line.text));
    vec![("lines", Value::number(log::newest())), ("recent", Value::texts(shown))]
}

/// `/maintenance/system`.
fn system(running: &Running, state: &FilePath) -> State {
    let admin = running.admin.get().map(|(at, _)| at.to_string()).unwrap_or_default();
    vec![
        ("version", Value::text(env!("CARGO_PKG_VERSION"))),
        ("host", Value::Text(machine_name())),
        ("pid", Value::number(std::process::id())),
        ("started", Value::number(running.started)),
        ("uptime", seconds_since(running.started)),
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
        ("machine_problems", Value::number(status.machine_problems)),
        ("acting_as", Value::Text(status.acting_as.note)),
        ("shares", Value::texts(status.shares.iter().map(|share| &share.name))),
    ]
}
