//! Alerts and the branch of Analytics: what they need of the running server.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use analytics::alert::Event;
use base::clock::SystemClock;
use base::failure::Failure;
use base::limits::STATE_SPACE_LOW;
use base::units;
use control::alerts::{Alerts, Facts};
use control::analytics_room::{AnalyticsRoom, Datasets};
use control::appliance::Appliance;
use control::state::StateDir;
use control::tree::{Branch, Tree};

use crate::reach::machine_name;
use crate::running::Running;

/// Begins to watch, and adds the branches that answer for it.
///
/// # Errors
/// When the system gives no threads.
pub fn with(
    mut branches: Vec<Branch>,
    running: &Arc<Running>,
    state: &StateDir,
    tree: &Arc<Tree>,
) -> Result<Vec<Branch>, Failure> {
    let queries = running.statistics.queries();
    let facts = OfServer { running: Arc::downgrade(running), state: state.path().to_owned() };
    let datasets = Datasets::open(queries.clone(), state.path(), Arc::new(SystemClock));
    let (facts, host) = (Box::new(facts), machine_name());
    let alerts = Alerts::start(queries.clone(), facts, datasets.clone(), &host, tree)
        .map_err(|e| Failure::of("watch for alerts", &e))?;
    // Set once, here.
    let _ = running.alerts.set(Arc::downgrade(&alerts));
    let analytics = AnalyticsRoom::start(queries.clone(), datasets, tree);
    branches.push(Branch::new(&["configuration", "alerts"], alerts));
    branches.push(Branch::new(&["analytics"], analytics));
    Ok(branches)
}

struct OfServer {
    running: Weak<Running>,
    state: PathBuf,
}

impl Facts for OfServer {
    fn now(&self, event: Event) -> Option<String> {
        let running = self.running.upgrade()?;
        match event {
            Event::Service => {
                let services = running.status().services;
                let service = services.into_iter().find(|service| service.state != "online")?;
                let why = service.reason.map_or_else(String::new, |why| format!(": {why}"));
                Some(format!("{} is {}{why}", service.name, service.state))
            }
            Event::Store => running.statistics.queries().problem(),
            Event::Space => {
                let free = vfs::host::sys::bytes_free(&self.state).ok()?;
                let left = units::bytes(free as f64);
                (free < STATE_SPACE_LOW)
                    .then(|| format!("the file system of {} has {left} left", self.state.display()))
            }
            Event::Certificate { days } => running.certificates.warning(days),
            Event::Replication => running.replication.problem(),
            Event::Fault => running.faults(),
            // The frames tell.
            Event::Dropped => None,
        }
    }
}
