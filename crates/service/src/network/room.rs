//! Changes of the network through the tree.
//!
//! A transaction has the helper take the steps, and makes its revision. Unless the change is
//! confirmed, the helper goes back to the state before, and the branch gets the configuration of
//! an earlier revision again, in a revision with the comment "not confirmed".

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path as FilePath;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use base::node::{Path, Value};
use control::tree::{Actor, Apply, Document, Operational, Problem, Transition, Tree};
use host_helper::request::{Proposal, Reply, Request};
use host_network::configuration::Configuration;
use parking_lot::{Condvar, Mutex};

use super::carrier;
use super::link::{Link, unexpected};
use super::node::STEPS_SHOWN;
use super::partitions::Partitions;
use super::shown::{Leases, Observer, Shown, lease, lease_faults, without_lease};
use super::wanted::{PREFIX, path, problem, read};
use crate::fabric::watch::Fabrics;
use crate::problems::{Fault, Source};

/// Comment of the revision that takes an unconfirmed change back.
const NOT_CONFIRMED: &str = "not confirmed";
/// How often a change that waits is looked at: the guard reports no end.
const LOOK: Duration = Duration::from_millis(500);

/// A change that waits for its confirmation.
#[derive(Debug, Clone)]
struct Waiting {
    change: u64,
    /// When the last step was taken.
    applied: Instant,
    deadline: Instant,
    steps: Vec<String>,
}

/// `/configuration/network`.
pub struct Network {
    link: Mutex<Link>,
    waiting: Mutex<Option<Waiting>>,
    /// A change was made that the follower has not seen.
    changed: Condvar,
    problem: Mutex<Option<String>>,
    observer: Observer,
    partitions: Partitions,
    /// The address at which the administration listens, if it is one only.
    listens: Box<dyn Fn() -> Option<IpAddr> + Send + Sync>,
    /// For what is configured, once there is a tree.
    tree: OnceLock<Weak<Tree>>,
}

impl Network {
    /// For a server with this state directory and an administration that `listens` at an address.
    pub fn new(
        state: &FilePath,
        listens: Box<dyn Fn() -> Option<IpAddr> + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            link: Mutex::new(Link::new(state)),
            waiting: Mutex::new(None),
            changed: Condvar::new(),
            problem: Mutex::new(None),
            observer: Observer::default(),
            partitions: Partitions::default(),
            listens,
            tree: OnceLock::new(),
        })
    }

    /// Shows also partitions of the ports that these fabrics have.
    pub fn follow_partitions(&self, fabrics: &Arc<Fabrics>) {
        self.partitions.follow(fabrics);
    }

    /// Begins to follow changes; the tree must have its branches. What the helper has taken back
    /// while no server ran is taken back in the document, too.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(self: &Arc<Self>, tree: &Arc<Tree>) -> std::io::Result<()> {
        let (room, tree) = (Arc::downgrade(self), Arc::downgrade(tree));
        // Once, here.
        let _ = self.tree.set(tree.clone());
        let used = self.link.lock().is_used();
        let follow = move || {
            if used {
                reconcile(&room, &tree);
            }
            while wait_for_change(&room) {
                reconcile(&room, &tree);
            }
        };
        std::thread::Builder::new().name("network".to_owned()).spawn(follow).map(drop)
    }

    fn send(&self, request: &Request) -> Result<Reply, Problem> {
        let reply = self.link.lock().ask(request);
        let hint = "see the log of the helper (journalctl -u plimsoll-host)";
        reply.map_err(|why| Problem::conflict(&Path::of(&PREFIX), &why, hint))
    }

    /// The request of a transition to the helper; none if the network stays as it is.
    fn request(&self, transition: &Transition<'_>) -> Result<Option<Proposal>, Vec<Problem>> {
        let configuration = read(transition.new)?;
        if read(transition.old).is_ok_and(|old| old == configuration) {
            return Ok(None);
        }
        let connection = transition.who.connection.local;
        let administration = (self.listens)().into_iter().chain(connection);
        // The machine's own addresses always lead here.
        let administration = administration.filter(|a| !a.is_loopback()).collect();
        let successor = transition.new.text(&Path::of(&PREFIX), "administration");
        let successor = successor.and_then(|text| text.parse().ok());
        Ok(Some(Proposal { configuration, administration, successor }))
    }

    fn plan(&self, transition: &Transition<'_>) -> Result<Vec<String>, Vec<Problem>> {
        let one = |problem| vec![problem];
        let Some(wanted) = self.request(transition)? else { return Ok(Vec::new()) };
        let status = self.link.lock().status();
        let prefix = Path::of(&PREFIX);
        let status = status.map_err(|why| one(Problem::conflict(&prefix, &why, "")))?;
        if status.configuration == wanted.configuration {
            // The way back, or what is there already.
            return Ok(Vec::new());
        }
        match self.send(&Request::NetworkPlan(wanted)).map_err(one)? {
            Reply::Planned { steps } => Ok(steps),
            Reply::Wrong(list) => {
                Err(list.iter().map(|wrong| problem(wrong, transition.new)).collect())
            }
            other => Err(one(Problem::server(&prefix, &unexpected(&other)))),
        }
    }

    fn act_now(&self, action: &str, who: &Actor) -> Result<serde_json::Value, Problem> {
        let prefix = Path::of(&PREFIX);
        let Some(waiting) = self.waiting.lock().clone() else {
            let why = "no change waits for a confirmation";
            return Err(Problem::conflict(&prefix, why, ""));
        };
        let change = waiting.change;
        let request = match action {
            "confirm" => {
                if who.connection.accepted.is_none_or(|accepted| accepted <= waiting.applied) {
                    let why = "this connection is older than the change, and proves nothing";
                    return Err(Problem::conflict(&prefix, why, "repeat it over a new connection"));
                }
                Request::NetworkConfirm { change }
            }
            "revert" => Request::NetworkTakeBack { change },
            _ => return Err(Problem::unknown(&prefix, &format!("unknown action {action}"), "")),
        };
        match self.send(&request)? {
            Reply::Done => {
                self.observer.forget();
                Ok(serde_json::Value::from(match action {
                    "confirm" => "The change is confirmed.",
                    _ => "The state before the change is restored.",
                }))
            }
            other => Err(Problem::conflict(&prefix, &unexpected(&other), "")),
        }
    }
}

/// Waits for the end of a change: it is confirmed, or taken back. `false`: the room is gone.
fn wait_for_change(room: &Weak<Network>) -> bool {
    loop {
        let Some(room) = room.upgrade() else { return false };
        let mut waiting = room.waiting.lock();
        if waiting.is_none() {
            // Nothing to follow: woken by the next change, or to see whether the room is gone.
            room.changed.wait_for(&mut waiting, Duration::from_secs(60));
            continue;
        }
        drop(waiting);
        std::thread::sleep(LOOK);
        let status = room.link.lock().status();
        if !status.is_ok_and(|status| status.waiting.is_some()) {
            return true;
        }
    }
}

/// Brings the document to the configuration that the helper has confirmed.
fn reconcile(room: &Weak<Network>, tree: &Weak<Tree>) {
    let (Some(room), Some(tree)) = (room.upgrade(), tree.upgrade()) else { return };
    // Before the status: a change that is made meanwhile waits then.
    let document = tree.document();
    let status = room.link.lock().status();
    room.observer.forget();
    let waits = |change| room.waiting.lock().as_ref().is_some_and(|own| own.change == change);
    if status.as_ref().is_ok_and(|one| one.waiting.is_some_and(|other| waits(other.change))) {
        return;
    }
    // Also when the helper has died with the change: it is taken back then.
    let done = status.and_then(|status| {
        *room.problem.lock() = status.problem.clone();
        room.take_back_in((&tree, &document), &status.configuration)
    });
    *room.waiting.lock() = None;
    if let Err(why) = done {
        base::error!("network", "{why}");
        *room.problem.lock() = Some(why);
    }
}

impl Network {
    fn take_back_in(
        &self,
        (tree, document): (&Tree, &Document),
        confirmed: &Configuration,
    ) -> Result<(), String> {
        let is_it = |document: &Document| read(document).is_ok_and(|one| one == *confirmed);
        if is_it(document) {
            return Ok(());
        }
        let who = Actor::new("plimsoll", "host");
        let restored = tree.restore_branch(&Path::of(&PREFIX), &is_it, NOT_CONFIRMED, &who);
        match restored {
            Ok(true) => {
                base::warning!("network", "a change was not confirmed, and is taken back");
                Ok(())
            }
            Ok(false) => {
                Err("the network has a configuration that no revision has: change it again"
                    .to_owned())
            }
            Err(problems) => {
                let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Err(all.join("; "))
            }
        }
    }
}

impl Network {
    /// What of the configured links is missing or has no carrier or lease.
    pub fn warning(&self) -> Option<String> {
        let (configuration, carriers) = self.carriers()?;
        let carrier = carrier::problem(&configuration, &carriers);
        let lease = without_lease(&configuration, &self.leases(&configuration));
        let found: Vec<String> = carrier.into_iter().chain(lease).collect();
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// What is configured, and which links have a carrier; none without interfaces.
    fn carriers(&self) -> Option<(Configuration, carrier::Carriers)> {
        let document = self.tree.get().and_then(Weak::upgrade)?.document();
        let configuration = read(&document).ok()?;
        if configuration.interfaces.is_empty() {
            return None;
        }
        Some((configuration, self.observer.carriers().ok()?))
    }

    /// Leases by DHCP. The helper is queried only if an interface uses it.
    fn leases(&self, configuration: &Configuration) -> Leases {
        if !configuration.interfaces.values().any(|one| one.enabled && one.dhcp) {
            return Leases::default();
        }
        self.observer.leases(|| {
            // A transaction holds it while steps are taken: the leases known then are shown.
            let mut link = self.link.try_lock().filter(|link| link.is_used())?;
            link.status().ok().map(|status| status.dhcp)
        })
    }

    /// Enters a change that waits. It may continue one: then their steps are confirmed together,
    /// and if it has none, the time stays.
    fn enter(&self, change: u64, (began, seconds): (Instant, u32), steps: Vec<String>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.take();
        let deadline = began + Duration::from_secs(seconds.into());
        let deadline =
            before.as_ref().filter(|_| steps.is_empty()).map_or(deadline, |b| b.deadline);
        let mut steps: Vec<String> =
            before.into_iter().flat_map(|before| before.steps).chain(steps).collect();
        steps.drain(..steps.len().saturating_sub(STEPS_SHOWN));
        *waiting = Some(Waiting { change, applied: Instant::now(), deadline, steps });
    }

    fn overview(&self, failed: Option<String>) -> Shown {
        let waiting = self.waiting.lock().clone();
        let reason = self.locked();
        let name = match (&reason, &waiting) {
            (Some(_), _) => "read-only",
            (None, Some(_)) => "unconfirmed",
            (None, None) => "changeable",
        };
        let problem = self.problem.lock().clone().or(failed).or_else(|| self.warning());
        let mut shown = vec![
            ("state", Value::text(name)),
            ("reason", Value::Text(reason.unwrap_or_default())),
            ("problem", Value::Text(problem.unwrap_or_default())),
        ];
        if let Some(waiting) = waiting {
            let left = waiting.deadline.saturating_duration_since(Instant::now());
            shown.push(("time_left", Value::number(left.as_secs_f64().ceil() as u64)));
            shown.push(("steps", Value::texts(&waiting.steps)));
        }
        shown
    }
}

impl Source for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn faults(&self) -> Vec<Fault> {
        let document = self.tree.get().and_then(Weak::upgrade).map(|tree| tree.document());
        let configuration = document.and_then(|document| read(&document).ok()).unwrap_or_default();
        let mut faults = self.partitions.faults(&configuration);
        let Some((configuration, carriers)) = self.carriers() else { return faults };
        let dark = carrier::dark(&configuration, &carriers);
        let leases = lease_faults(&configuration, &self.leases(&configuration));
        faults.extend(dark.iter().map(carrier::CarrierLoss::fault).chain(leases));
        faults
    }
}

impl Apply for Network {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        if !transition.old.differs_in(transition.new, &Path::of(&PREFIX)) {
            return Vec::new();
        }
        self.plan(transition).err().unwrap_or_default()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let prefix = Path::of(&PREFIX);
        let first = |mut problems: Vec<Problem>| problems.remove(0);
        let Some(wanted) = self.request(transition).map_err(first)? else { return Ok(()) };
        let status = self.link.lock().status();
        let status = status.map_err(|why| Problem::conflict(&prefix, &why, ""))?;
        if status.configuration == wanted.configuration {
            // A later branch has refused, or the helper has gone back.
            let Some(waiting) = status.waiting else { return Ok(()) };
            let reply = self.send(&Request::NetworkTakeBack { change: waiting.change })?;
            *self.waiting.lock() = None;
            return match reply {
                Reply::Done => Ok(()),
                other => Err(Problem::server(&prefix, &unexpected(&other))),
            };
        }
        let within = transition.new.integer(&prefix, "confirm_within").unwrap_or_default();
        let seconds = u32::try_from(within).unwrap_or(u32::MAX);
        let began = Instant::now();
        let reply = self.send(&Request::NetworkApply { wanted, seconds })?;
        self.observer.forget();
        match reply {
            Reply::Applied { change: None, .. } => Ok(()),
            Reply::Applied { change: Some(change), steps } => {
                self.enter(change, (began, seconds), steps);
                *self.problem.lock() = None;
                self.changed.notify_all();
                if let Some(tree) = self.tree.get().and_then(Weak::upgrade) {
                    // A browser keeps connections: the next request must have a new one, so that
                    // its confirmation proves that the administration can be reached.
                    tree.renew_connections();
                }
                Ok(())
            }
            Reply::Wrong(list) => {
                let wrong = list.first().map(|wrong| problem(wrong, transition.new));
                Err(wrong.unwrap_or_else(|| Problem::server(&prefix, "refused without a reason")))
            }
            other => Err(Problem::conflict(&prefix, &unexpected(&other), "")),
        }
    }

    fn notes(&self, transition: &Transition<'_>, done: bool) -> Vec<String> {
        if !done {
            return self.plan(transition).unwrap_or_default();
        }
        let waiting = self.waiting.lock();
        let note = waiting.as_ref().map(|waiting| {
            let left = waiting.deadline.saturating_duration_since(Instant::now()).as_secs();
            format!(
                "the change is reverted in {left} s unless it is confirmed: /configuration/network \
                 confirm"
            )
        });
        note.into_iter().collect()
    }
}

impl Operational for Network {
    fn state(&self, at: &Path) -> Vec<(&'static str, Value)> {
        let document = self.tree.get().and_then(Weak::upgrade).map(|tree| tree.document());
        let configuration = document.and_then(|document| read(&document).ok()).unwrap_or_default();
        let shown = self.observer.shown(at, &configuration);
        if *at == Path::of(&PREFIX) {
            return self.overview(shown.err());
        }
        let mut shown = shown.unwrap_or_default();
        let interface =
            configuration.interfaces.iter().find(|(name, _)| *at == path("interfaces").join(name));
        if let Some((name, interface)) = interface {
            shown.extend(lease(interface, name, &self.leases(&configuration)));
        }
        match at.segments().get(PREFIX.len()..).unwrap_or_default() {
            [list] if list == "datalinks" => shown.extend(self.partitions.offers(&configuration)),
            [list, name] if list == "datalinks" => {
                self.partitions.mark(name, &configuration, &mut shown);
            }
            _ => {}
        }
        shown
    }

    fn locked(&self) -> Option<String> {
        // A transaction holds it while steps are taken: a page must not wait for them.
        self.link.try_lock().and_then(|link| link.lacks())
    }

    fn items(&self, at: &Path) -> Vec<String> {
        if *at == path("devices") { self.observer.devices() } else { Vec::new() }
    }

    fn act(
        &self,
        _path: &Path,
        action: &str,
        _parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        self.act_now(action, who)
    }
}
