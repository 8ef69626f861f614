//! The node of a service in the tree: its settings as they change, its state, its restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::limits::AUDIT_ROWS_MAX;
use base::log::{self, Level, Line, LogQuery};
use base::node::service::LOG_SHOWN;
use base::node::{Path, Value};
use base::protocol;
use base::units::utc;
use control::certificates::node::OWN;
use control::certificates::{Certificates, wanted};
use control::listen::node::ADMINISTRATION;
use control::tree::audit::{self, Record};
use control::tree::{
    Actor, Apply, Document, Operational, Override, Problem, Subtree, Transition, Tree,
};
use serde_json::Value as Json;
use serve::transport::Budgets;

use crate::instance::{Condition, Instance, cut_off, joined};
pub use crate::values::path;

/// One service in the tree.
pub struct ServiceNode {
    instance: Arc<Instance>,
    certificates: Arc<Certificates>,
}

/// Whether a service is to serve by this configuration.
pub fn is_enabled(instance: &Instance, document: &Document) -> bool {
    document.bool(&path(instance.service().id()), "enabled")
}

/// Applies the log levels of this configuration: those of the services, each separately, and that
/// of the rest of the program.
pub fn set_log_levels(document: &Document) {
    let level = |at: &Path, property| {
        let name = document.value(at, property);
        name.and_then(|name| Level::named(name.as_text()?)).unwrap_or(Level::Info)
    };
    log::set_level(None, level(&Path::of(&["maintenance", "logs"]), "level"));
    let services = protocol::Service::ALL.map(protocol::Service::id);
    for service in services.into_iter().chain([ADMINISTRATION]) {
        let at = Path::of(&["configuration", "services", service]);
        log::set_level(Some(service), level(&at, "log_level"));
    }
}

impl ServiceNode {
    /// The branch of a service. The reason of a disabled service is taken from the audit log: the
    /// user and the time.
    pub fn branch(
        instance: &Arc<Instance>,
        certificates: &Arc<Certificates>,
        tree: &Tree,
    ) -> Subtree {
        if matches!(instance.condition(), Condition::Disabled(_))
            && let Some(why) = disabled_reason(tree, &path(instance.service().id()))
        {
            instance.stop(Condition::Disabled(why));
        }
        let node = Self { instance: instance.clone(), certificates: certificates.clone() };
        Subtree::new(&["configuration", "services", instance.name()], Arc::new(node))
    }

    fn at(&self) -> Path {
        path(self.instance.service().id())
    }

    /// Refuses to name a certificate that is not there.
    fn check_name(&self, new: &Document) -> Option<Problem> {
        let choice = self.instance.service().tls_choice(new);
        let name = choice.named?;
        if name == OWN || new.items(&wanted::certificates()).contains(&name) {
            return None;
        }
        let title = self.instance.title();
        let sentence = format!("unknown certificate {name:?} for {title}");
        let hint = format!("set certificate of {} to another one in the same commit", self.at());
        Some(Problem::conflict(&self.at(), &sentence, &hint).property("certificate"))
    }
}

impl Apply for ServiceNode {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let Transition { old, new, .. } = transition;
        let differs = |at: &Path| old.differs_in(new, at);
        let own = differs(&self.at());
        let name = own || differs(&wanted::certificates());
        let problem = name.then(|| self.check_name(new)).flatten();
        let service = self.instance.service();
        let settings = || own.then(|| service.check(new, &self.certificates)).flatten();
        problem.or_else(settings).into_iter().collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let Transition { old, new, who, when, .. } = transition;
        let (instance, name, title) =
            (&*self.instance, self.instance.name(), self.instance.title());
        let service = instance.service();
        instance
            .set_tls(service.tls_choice(new), &self.certificates)
            .map_err(|failure| service.tls_problem(&failure))?;
        set_log_levels(new);
        service.set(new);
        match (is_enabled(instance, old), is_enabled(instance, new)) {
            (true, false) => {
                base::info!(name, "{} disables {title}", who.user);
                instance.stop(Condition::Disabled(disabled_by(&who.user, *when)));
            }
            (false, true) => {
                base::info!(name, "{} enables {title}", who.user);
                if let Err(failure) = instance.start() {
                    base::error!(name, "{}", failure.why());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn notes(&self, transition: &Transition<'_>, done: bool) -> Vec<String> {
        let Transition { old, new, .. } = transition;
        let (instance, title) = (&*self.instance, self.instance.title());
        let ends = is_enabled(instance, old) && !is_enabled(instance, new);
        let service = instance.service();
        if !done {
            return ends.then(|| disconnected(title, service.budgets())).into_iter().collect();
        }
        let mut notes = Vec::new();
        if ends && instance.was_cut() {
            notes.push(format!("{title}: {}", cut_off()));
        }
        if let Condition::Maintenance(why) = instance.condition() {
            notes.push(format!("{title} is in maintenance: {why}"));
        }
        notes.extend(service.notes(old, new));
        let certificate = |document: &Document| document.value(&self.at(), "certificate");
        if certificate(old) != certificate(new) {
            notes.extend(instance.certificate(&self.certificates).and_then(|(_, problem)| problem));
        }
        notes
    }
}

impl Operational for ServiceNode {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let (instance, condition) = (&*self.instance, self.instance.condition());
        let budgets = instance.service().budgets();
        let mut state = vec![
            ("state", Value::text(condition.name())),
            ("connections", Value::Integer(budgets.connections())),
            ("clients", Value::number(budgets.clients())),
            ("log", log_of(instance.name())),
        ];
        if let Some((shown, problem)) = instance.certificate(&self.certificates) {
            state.push(("certificate_shown", Value::Text(shown)));
            state.extend(problem.map(|why| ("certificate_problem", Value::Text(why))));
        }
        state.extend(condition.reason().map(|why| ("reason", Value::text(why))));
        if let Condition::Online(began, at) = &condition {
            state.push(("uptime", seconds_since(*began)));
            state.push(("listen", Value::Text(joined(at))));
        }
        state.extend(instance.service().state());
        state
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<Json, Problem> {
        let instance = &*self.instance;
        if let Some(done) = instance.service().act(path, action, parameters) {
            return done.map(|()| Json::Null);
        }
        base::info!(instance.name(), "{} restarts {}", who.user, instance.title());
        instance.restart().map_err(|failure| {
            base::error!(instance.name(), "{}", failure.why());
            Problem::conflict(path, failure.why(), failure.way_out())
        })?;
        Ok(Json::Null)
    }

    fn overrides(&self, _path: &Path) -> Vec<Override> {
        self.instance.service().overrides().to_vec()
    }
}

/// The user that has disabled the service at this node, and the time, by the audit log.
fn disabled_reason(tree: &Tree, at: &Path) -> Option<String> {
    let (path, limit) = (Some(at.to_string()), AUDIT_ROWS_MAX);
    let wanted = audit::AuditFilter { path, limit, ..audit::AuditFilter::default() };
    // Without the log it is disabled nevertheless.
    let records = tree.audit().read(&wanted).unwrap_or_default();
    let of = |record: &&Record| record.property.as_deref() == Some("enabled");
    records.iter().find(of).map(|record| disabled_by(&record.who, record.when))
}

/// The reason that a disabled service shows.
fn disabled_by(who: &str, when: u64) -> String {
    format!("disabled by {who} at {} UTC", utc(when.cast_signed()))
}

/// The message about the clients that are disconnected when a service is disabled.
fn disconnected(title: &str, budgets: &Budgets) -> String {
    let clients = counted(budgets.clients() as i64, "client");
    let connections = counted(budgets.connections(), "connection");
    format!("{title} is disabled; disconnected: {clients} with {connections}")
}

/// `1 client`, `3 clients`.
fn counted(n: i64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The newest lines of a service's log.
pub fn log_of(service: &str) -> Value {
    let wanted = LogQuery { service: Some(service), ..LogQuery::newest(LOG_SHOWN) };
    let shown = |line: &Line| {
        let when = utc((line.when_ns / NS_PER_S).cast_signed());
        format!("{when} {}: {}", line.level.name(), line.text)
    };
    Value::texts(log::lines(&wanted).iter().map(shown))
}

/// Seconds from a time on.
pub fn seconds_since(second: u64) -> Value {
    Value::number((wall_ns() / NS_PER_S).saturating_sub(second))
}
