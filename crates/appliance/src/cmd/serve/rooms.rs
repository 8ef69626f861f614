//! What the running server has to do with the tree: NFS's settings, the system, the status.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::limits::AUDIT_ROWS_MAX;
use base::log::{self, Line, Wanted};
use base::node::service::LOG_SHOWN;
use base::node::{Path, Value};
use base::protocol::Service;
use base::units::utc;
use control::accounts::People;
use control::appliance::{Appliance, ShareStatus};
use control::certificates::node::OWN;
use control::certificates::wanted;
use control::listen::node::ADMINISTRATION;
use control::state::StateDir;
use control::tree::audit::{self, Record};
use control::tree::{Apply, Branch, Document, Live, Override, Problem, Transition, Tree, Who};
use serde_json::Value as Json;
use serve::transport::Budgets;
use serve::transport::tls::Tls;

use super::condition::{self, cut_off};
use super::nfs::{Condition, NfsService, Parts};
use super::plan::Plan;
use super::settings::{self, NfsSettings};
use super::status::{Running, machine_name};
use super::tls::TlsChoice;
use super::{certificates, files, watch};
use crate::lab;
use crate::out::Failure;
use crate::shares::room::{PREFIX, Room, Services};

/// Joins all rooms to the tree; NFS hears of other certificates from now on.
///
/// # Errors
/// When the system gives no threads.
pub fn join(
    running: &Arc<Running>,
    state: &StateDir,
    plan: &Plan,
    people: &Arc<People>,
    tree: &Arc<Tree>,
) -> Result<(), Failure> {
    let nfs = Arc::new(Nfs::new(running.clone(), plan.nfs_given.clone()));
    nfs.tell_who_disabled(tree);
    certificates::follow(running);
    let mut branches = branches(running, state, nfs, people, &tree.document());
    let files = running.storage.files().iter();
    branches.extend(files.map(|one| files::room::Room::branch(one, &running.certificates, tree)));
    tree.join(watch::with(branches, running, state, tree)?);
    let served = Arc::downgrade(running);
    let shares = move || served.upgrade().map(|on| on.storage.shares()).unwrap_or_default();
    let started = running.replication.start(tree, Box::new(shares));
    started.map_err(|e| Failure::of("look at the schedule of replication", &e))
}

/// All branches of the tree, each with who answers for it. The one list.
fn branches(
    running: &Arc<Running>,
    state: &StateDir,
    nfs: Arc<Nfs>,
    people: &Arc<People>,
    document: &Document,
) -> Vec<Branch> {
    let lab = lab::Room::new(running.lab.0.clone(), Box::new(OfLab(running.clone())), document);
    let system = System { running: running.clone(), state: state.path().to_owned() };
    let socket = state.socket();
    let admin = Administration { running: running.clone(), people: people.clone(), socket };
    let mut branches = people.branches();
    branches.extend([
        running.certificates.branch(),
        running.storage.transfers().branch(),
        running.replication.branch(),
        Branch::new(&["configuration", "services", Service::Nfs.id()], nfs),
        Branch::new(&["configuration", "services", ADMINISTRATION], Arc::new(admin)),
        Branch::new(lab::PREFIX, lab),
        Branch::new(&["maintenance", "logs"], Arc::new(Logs)),
        Branch::new(PREFIX, shares(running)),
        Branch::live(&["maintenance", "system"], Arc::new(system)),
        Branch::live(&["status"], Arc::new(Status { running: running.clone() })),
    ]);
    branches
}

/// NFS: its settings, of which some wait for its next start, and its state.
pub struct Nfs {
    running: Arc<Running>,
    /// What the options decide.
    given: Vec<Override>,
}

impl Nfs {
    /// With what the options decide.
    pub fn new(running: Arc<Running>, given: Vec<Override>) -> Self {
        Self { running, given }
    }

    /// TLS by this configuration.
    fn tls(&self, document: &Document) -> TlsChoice {
        NfsSettings::of(&self.given, document).tls
    }

    /// Refuses to name a certificate that is not there.
    fn check_name(&self, new: &Document) -> Option<Problem> {
        let choice = self.tls(new);
        let name = choice.name()?;
        if name == OWN || new.items(&wanted::certificates()).iter().any(|one| one == name) {
            return None;
        }
        let sentence = format!("there is no certificate {name:?} for NFS to show");
        let hint = "set certificate of /configuration/services/nfs to another one, in the same \
                    commit if need be";
        let problem = Problem::conflict(&settings::nfs(), &sentence, hint);
        Some(problem.property("certificate"))
    }

    fn problem(failure: &Failure, property: &str) -> Problem {
        let hint = match failure.way_out() {
            "" => "name a file that the server can read",
            hint => hint,
        };
        Problem::new(&settings::nfs(), failure.why(), hint).property(property)
    }

    fn tell_who_disabled(&self, tree: &Tree) {
        let nfs = self.running.storage.nfs();
        if matches!(nfs.condition(), Condition::Disabled(_))
            && let Some(why) = who_disabled(tree, &settings::nfs())
        {
            nfs.stop(Condition::Disabled(why));
        }
    }

    fn service(&self) -> &NfsService {
        self.running.storage.nfs()
    }
}

/// `1 client`, `3 clients`.
fn counted(n: i64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Restarts the service at this node, of this name and title, because somebody wants it.
///
/// # Errors
/// It could not be restarted.
pub fn restarted(
    path: &Path,
    (name, title): (&'static str, &str),
    who: &Who,
    restart: impl FnOnce() -> Result<(), Failure>,
) -> Result<Json, Problem> {
    base::tell!(name, "{} restarts {title}", who.user);
    restart().map_err(|failure| {
        base::error!(name, "{}", failure.why());
        Problem::conflict(path, failure.why(), failure.way_out())
    })?;
    Ok(Json::Null)
}

/// Who has disabled the service at this node, and when, by the audit log.
pub fn who_disabled(tree: &Tree, at: &Path) -> Option<String> {
    let (path, limit) = (Some(at.to_string()), AUDIT_ROWS_MAX);
    let wanted = audit::Wanted { path, limit, ..audit::Wanted::default() };
    // Without the log it is disabled all the same.
    let records = tree.audit().read(&wanted).unwrap_or_default();
    let of = |record: &&Record| record.property.as_deref() == Some("enabled");
    records.iter().find(of).map(|record| disabled_by(&record.who, record.when))
}

/// What is said of a service that somebody has disabled.
pub fn disabled_by(who: &str, when: u64) -> String {
    format!("disabled by {who} at {} UTC", utc(integer(when)))
}

impl Apply for Nfs {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let at = settings::nfs();
        let differs = |at: &Path| transition.old.differs_in(transition.new, at);
        if (differs(&at) || differs(&wanted::certificates()))
            && let Some(problem) = self.check_name(transition.new)
        {
            return vec![problem];
        }
        if !differs(&at) {
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
        let choice = self.tls(transition.new);
        let usable = choice.read(&self.running.certificates).and_then(|credentials| {
            let made = Tls::new(&credentials).map(drop);
            made.map_err(|e| Failure::of("offer TLS to NFS clients", &e))
        });
        if let Err(failure) = usable {
            return vec![Self::problem(&failure, "tls_certificate")];
        }
        let table = self.running.storage.table().load();
        let wanting = table
            .iter()
            .filter_map(|share| choice.check(&share.rules_for(Service::Nfs).get()).err())
            .next();
        wanting.map(|failure| Self::problem(&failure, "tls_client_ca")).into_iter().collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let choice = self.tls(transition.new);
        self.running
            .storage
            .set_tls(choice, &self.running.certificates)
            .map_err(|failure| Self::problem(&failure, "tls_certificate"))?;
        settings::set_log_levels(transition.new);
        let (before, now) = [transition.old, transition.new]
            .map(|document| NfsSettings::of(&self.given, document).enabled)
            .into();
        self.service().set_settings(NfsSettings::of(&self.given, transition.new));
        match (before, now) {
            (true, false) => {
                base::tell!("nfs", "{} disables NFS", transition.who.user);
                let by = disabled_by(&transition.who.user, wall_ns() / NS_PER_S);
                self.service().stop(Condition::Disabled(by));
            }
            (false, true) => {
                base::tell!("nfs", "{} enables NFS", transition.who.user);
                if let Err(failure) = self.service().start() {
                    base::error!("nfs", "{}", failure.why());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn notes(&self, transition: &Transition<'_>, done: bool) -> Vec<String> {
        let enabled = |document| NfsSettings::of(&self.given, document).enabled;
        let (before, now) = (enabled(transition.old), enabled(transition.new));
        let mut notes = Vec::new();
        if before && !now && !done {
            notes.push(cuts_off("NFS", &self.service().parts().budgets));
        }
        if !done {
            return notes;
        }
        if before && !now && self.service().was_cut() {
            notes.push(format!("NFS: {}", cut_off()));
        }
        if let Condition::Maintenance(why) = self.service().condition() {
            notes.push(format!("NFS is in maintenance: {why}"));
        }
        let value = |document: &Document, name| document.value(&settings::nfs(), name);
        let changes = |name| value(transition.old, name) != value(transition.new, name);
        if changes("enabled") || changes("portmap") {
            notes.extend(self.service().mapper_problem());
        }
        if changes("certificate") {
            notes.extend(self.running.storage.tls().told(&self.running.certificates, "NFS").1);
        }
        notes
    }
}

impl Live for Nfs {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let condition = self.service().condition();
        let Parts { budgets, at, .. } = self.service().parts();
        let certificate = self.running.storage.tls().told(&self.running.certificates, "NFS");
        let mut state = told(Service::Nfs.id(), &condition, budgets, Some(certificate));
        if let Condition::Online(up) = &condition {
            state.extend(serving(up.since, at.to_string()));
        }
        state
    }

    fn act(
        &self,
        path: &Path,
        _action: &str,
        _parameters: &BTreeMap<String, Value>,
        who: &Who,
    ) -> Result<Json, Problem> {
        restarted(path, (Service::Nfs.id(), "NFS"), who, || self.service().restart())
    }

    fn overrides(&self, _path: &Path) -> Vec<Override> {
        self.given.clone()
    }
}

/// Whom it cuts off to disable a service.
pub fn cuts_off(title: &str, budgets: &Budgets) -> String {
    let clients = counted(budgets.clients() as i64, "client");
    let connections = counted(budgets.connections(), "connection");
    format!("{title} is disabled; cut off: {clients} with {connections}")
}

/// What every service tells of itself, online or not; `certificate` is what it shows, and what is
/// the matter with that.
pub fn told<Up>(
    service: &str,
    condition: &condition::Condition<Up>,
    budgets: &Budgets,
    certificate: Option<(String, Option<String>)>,
) -> Vec<(&'static str, Value)> {
    let mut state = vec![
        ("state", Value::text(condition.name())),
        ("connections", Value::Integer(budgets.connections())),
        ("clients", Value::Integer(integer(budgets.clients() as u64))),
        ("log", log_of(service)),
    ];
    if let Some((shown, problem)) = certificate {
        state.push(("certificate_shown", Value::Text(shown)));
        state.extend(problem.map(|why| ("certificate_problem", Value::Text(why))));
    }
    state.extend(condition.reason().map(|why| ("reason", Value::text(why))));
    state
}

/// What a service that is online adds to [`told`]: for how long it has been, and where.
pub fn serving(began: u64, listen: String) -> [(&'static str, Value); 2] {
    [("uptime", Value::Integer(since(began))), ("listen", Value::Text(listen))]
}

/// The newest lines of a service's log.
fn log_of(service: &str) -> Value {
    let wanted = Wanted { service: Some(service), ..Wanted::newest(LOG_SHOWN) };
    let shown = |line: &Line| {
        let when = utc(integer(line.when_ns / NS_PER_S));
        format!("{when} {}: {}", line.level.name(), line.text)
    };
    Value::texts(log::lines(&wanted).iter().map(shown))
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
        settings::set_log_levels(transition.new);
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
        settings::set_log_levels(transition.new);
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
    since(running.started)
}

/// Seconds from a time on.
fn since(second: u64) -> i64 {
    integer((wall_ns() / NS_PER_S).saturating_sub(second))
}

/// A number as the tree has it.
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
        self.0.storage.nfs().parts().at
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
