//! `/cluster`: heads and resources, as the head of this machine sees them. A thread queries the
//! head on its local socket every second; nodes, alerts and problems show its last
//! response. A server that no head has started is in no cluster.

pub mod node;
mod shown;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::clock::{NS_PER_S, wall_ns};
use base::node::{Path, Value};
use control::tree::{self, Actor, Problem};
use head::local::{self, Command, ResourceStatus, Status};
use head::takeover::Takeover;
use parking_lot::Mutex;

use crate::problems::{Fault, Severity, Source};

/// Where it is in the tree.
pub const PREFIX: [&str; 1] = ["cluster"];
/// Name of the source of its problems, and of its lines in the log.
pub const NAME: &str = "cluster";
/// How often the head is queried: as often as alerts look.
const EVERY: Duration = Duration::from_secs(1);
/// How long a takeover is a reason for an alert, in seconds: longer than the default of `for`.
const RECENT_S: u64 = 300;
/// How a cluster is made.
const HINT: &str = "start `plimsoll head` on this machine; docs/howto/heads.md has the steps";

/// What the head has answered last, or why it does not.
type Answer = Result<Status, String>;

/// The cluster, if this server is of one.
pub struct Cluster {
    /// The local socket of the head.
    socket: Option<PathBuf>,
    last: Mutex<Option<Answer>>,
    /// When each resource was taken over last, as far as that is in the log.
    logged: Mutex<BTreeMap<String, u64>>,
}

impl Cluster {
    /// With the local socket of the head that has started this server, which is queried until this
    /// is dropped.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(socket: Option<PathBuf>) -> io::Result<Arc<Self>> {
        let cluster = Self::new(socket);
        if cluster.socket.is_some() {
            let weak = Arc::downgrade(&cluster);
            let follow = move || {
                while let Some(cluster) = weak.upgrade() {
                    cluster.poll();
                    drop(cluster);
                    std::thread::sleep(EVERY);
                }
            };
            std::thread::Builder::new().name(NAME.to_owned()).spawn(follow)?;
        }
        Ok(cluster)
    }

    fn new(socket: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self { socket, last: Mutex::default(), logged: Mutex::default() })
    }

    /// Queries the head for its state.
    fn poll(&self) {
        let Some(socket) = &self.socket else { return };
        let answer = local::request(socket, &Command::Status);
        self.take(answer.map(|answer| answer.status).map_err(|e| e.to_string()));
    }

    fn take(&self, answer: Answer) {
        if let Ok(status) = &answer {
            self.log(status);
        }
        *self.last.lock() = Some(answer);
    }

    /// Enters takeovers in the log, each once.
    fn log(&self, status: &Status) {
        let mut logged = self.logged.lock();
        for (name, last) in takeovers(status) {
            if logged.insert(name.to_owned(), last.at) != Some(last.at) {
                base::info!(NAME, "{name}: {last}");
            }
        }
    }

    /// The last answer; `None` in no cluster, or before the first.
    fn answer(&self) -> Option<Answer> {
        self.last.lock().clone()
    }

    fn status(&self) -> Option<Status> {
        self.answer()?.ok()
    }

    /// What is wrong, for alerts.
    pub fn warning(&self) -> Option<String> {
        let sentences: Vec<_> = self.faults().into_iter().map(|fault| fault.what).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Recent takeovers, for alerts.
    pub fn takeover(&self) -> Option<String> {
        let status = self.status()?;
        let sentences: Vec<_> =
            takeovers(&status).map(|(name, last)| format!("{name} was {last}")).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    fn request(&self, path: &Path, command: &Command) -> Result<(), Problem> {
        let Some(socket) = &self.socket else {
            return Err(Problem::conflict(path, "this server is in no cluster", HINT));
        };
        let answer = local::request(socket, command).map_err(|e| {
            Problem::conflict(path, &format!("the head of this machine does not answer: {e}"), HINT)
        })?;
        let refused = answer.error.map(|why| Problem::conflict(path, &why, ""));
        self.take(Ok(answer.status));
        refused.map_or(Ok(()), Err)
    }
}

/// Takeovers that were done recently; the first start of a resource is none.
fn takeovers(status: &Status) -> impl Iterator<Item = (&str, &Takeover)> {
    let since = (wall_ns() / NS_PER_S).saturating_sub(RECENT_S);
    status.resources.iter().filter_map(move |one| {
        let last = one.last.as_ref()?;
        (!last.from.is_empty() && last.at >= since).then_some((one.name.as_str(), last))
    })
}

impl Source for Cluster {
    fn name(&self) -> &'static str {
        NAME
    }

    fn faults(&self) -> Vec<Fault> {
        match self.answer() {
            None => Vec::new(),
            Some(Err(why)) => vec![Fault {
                id: "cluster-head".to_owned(),
                severity: Severity::Major,
                what: format!("The head of this machine does not answer: {why}."),
                impact: "This server ends with its lease.".to_owned(),
                remedy: "Start `plimsoll head` on this machine.".to_owned(),
            }],
            Some(Ok(status)) => faults(&status),
        }
    }
}

fn faults(status: &Status) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(why) = &status.etcd {
        faults.push(Fault {
            id: "cluster-etcd".to_owned(),
            severity: Severity::Critical,
            what: format!("The head {} has no answer from etcd: {why}.", status.head),
            impact: "Its servers end 2 seconds after the last renewal of its lease.".to_owned(),
            remedy: "Start the members of etcd, and check the network to them.".to_owned(),
        });
        // What is known of the cluster is out of date.
        return faults;
    }
    faults.extend(status.resources.iter().filter_map(|one| unserved(status, one)));
    faults.extend(status.resources.iter().filter_map(|one| unreached(status, one)));
    faults.extend(status.resources.iter().filter_map(|one| kept(status, one)));
    if status.members.len() < 2 {
        faults.push(Fault {
            id: "cluster-members".to_owned(),
            severity: Severity::Major,
            what: format!("{} is the only head of the cluster.", status.head),
            impact: "If it fails, no head takes its resources over.".to_owned(),
            remedy: "Start `plimsoll head` on another machine.".to_owned(),
        });
    }
    faults
}

/// A resource without an owner, or one that this head starts after a failure: between two attempts
/// it is still the same problem.
fn unserved(status: &Status, one: &ResourceStatus) -> Option<Fault> {
    let name = &one.name;
    let what = match (&one.owner, &one.why) {
        (None, None) => format!("No head owns the resource {name}."),
        (None, Some(why)) => format!("No head owns the resource {name}: {why}."),
        (Some(head), Some(why)) if *head == status.head && one.state == "starting" => {
            format!("The head {head} does not serve the resource {name} yet: {why}.")
        }
        _ => return None,
    };
    Some(Fault {
        id: format!("cluster-resource-{name}"),
        severity: Severity::Critical,
        what,
        impact: "Its shares are not served.".to_owned(),
        remedy: "Start a head that can serve it; its log has the reason of a failure.".to_owned(),
    })
}

/// A resource that clients would not reach at this head.
fn unreached(status: &Status, one: &ResourceStatus) -> Option<Fault> {
    let (head, name, why) = (&status.head, &one.name, one.cut.as_ref()?);
    Some(Fault {
        id: format!("cluster-link-{name}"),
        severity: Severity::Major,
        what: format!("Clients do not reach the resource {name} at the head {head}: {why}."),
        impact: "This head owns it only if no other one can.".to_owned(),
        remedy: "Check the link, and the network between it and the probes.".to_owned(),
    })
}

/// A resource that this head is to hand over and cannot.
fn kept(status: &Status, one: &ResourceStatus) -> Option<Fault> {
    let (head, name, why) = (&status.head, &one.name, one.why.as_ref()?);
    let here = one.owner.as_ref() == Some(head) && one.state == "owner";
    here.then(|| Fault {
        id: format!("cluster-kept-{name}"),
        severity: Severity::Major,
        what: format!("The head {head} keeps the resource {name}: {why}."),
        impact: "The resource is served, and ends when this head is stopped.".to_owned(),
        remedy: "Start another head, or end its drain.".to_owned(),
    })
}

impl tree::Operational for Cluster {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
        match (segments.as_slice(), self.answer()) {
            (["cluster"], answer) => shown::cluster(self.socket.is_some(), answer),
            (["cluster", "heads", name], Some(Ok(status))) => shown::head(&status, name),
            (["cluster", "resources", name], Some(Ok(status))) => {
                let found = status.resources.iter().find(|one| one.name == *name);
                found.map_or_else(Vec::new, |one| shown::resource(&status, one))
            }
            _ => Vec::new(),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        let Some(status) = self.status() else { return Vec::new() };
        match path.segments().get(1).map(String::as_str) {
            Some("heads") => shown::heads(&status),
            Some("resources") => status.resources.into_iter().map(|one| one.name).collect(),
            _ => Vec::new(),
        }
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        let segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
        let to = parameters.get("to").and_then(Value::as_text).filter(|to| !to.is_empty());
        let (command, done) = match (segments.as_slice(), action) {
            (["cluster", "heads", name], "drain" | "end_drain") => {
                self.check_local(path, name)?;
                let on = action == "drain";
                let done = match on {
                    true => "This head hands over its resources.",
                    false => "This head takes resources over again.",
                };
                (Command::Drain { on }, done)
            }
            (["cluster", "resources", name], "takeover") => {
                let command = Command::Takeover {
                    resource: (*name).to_owned(),
                    to: to.map(str::to_owned),
                    unfenced: false,
                };
                (command, "The takeover is requested.")
            }
            (["cluster", "resources", name], "failback") => {
                let command = Command::Failback { resource: (*name).to_owned() };
                (command, "The failback is requested.")
            }
            _ => return Err(Problem::unknown(path, &format!("unknown action {action}"), "")),
        };
        self.request(path, &command)?;
        Ok(serde_json::Value::from(done))
    }
}

impl Cluster {
    /// Only the head of this machine can be drained: it is reached on its local socket.
    fn check_local(&self, path: &Path, name: &str) -> Result<(), Problem> {
        match self.status() {
            Some(status) if status.head != name => {
                let why =
                    format!("{name} is not the head of this machine, which is {}", status.head);
                let hint = "run `plimsoll head drain` there, or use a resource that it owns";
                Err(Problem::conflict(path, &why, hint))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
