//! The node of a service that transfers files: its settings, its state, its restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::node::{Path, Value};
use control::certificates::node::OWN;
use control::certificates::{Certificates, wanted};
use control::tree::{Apply, Branch, Document, Live, Problem, Transition, Tree, Who};
use serde_json::Value as Json;

use super::{Condition, FileService};
use crate::cmd::serve::condition::cut_off;
use crate::cmd::serve::rooms::{cuts_off, disabled_by, restarted, serving, told, who_disabled};
use crate::cmd::serve::settings;
use crate::cmd::serve::tls::TlsChoice;

/// One service.
pub struct Room {
    service: Arc<FileService>,
    certificates: Arc<Certificates>,
}

/// Where a service is in the tree.
pub fn path(service: &FileService) -> Path {
    Path::of(&["configuration", "services", service.name()])
}

/// Whether a service is to serve by this configuration.
pub fn is_enabled(service: &FileService, document: &Document) -> bool {
    document.bool(&path(service), "enabled")
}

/// The certificate that a configuration names for a service.
pub fn choice(service: &FileService, document: &Document) -> TlsChoice {
    TlsChoice::new(document.text(&path(service), "certificate"), None, None)
}

impl Room {
    /// The branch of a service.
    pub fn branch(
        service: &Arc<FileService>,
        certificates: &Arc<Certificates>,
        tree: &Tree,
    ) -> Branch {
        if matches!(service.condition(), Condition::Disabled(_))
            && let Some(why) = who_disabled(tree, &path(service))
        {
            service.stop(Condition::Disabled(why));
        }
        let room = Self { service: service.clone(), certificates: certificates.clone() };
        Branch::new(&["configuration", "services", service.name()], Arc::new(room))
    }

    fn at(&self) -> Path {
        path(&self.service)
    }

    /// Refuses to name a certificate that is not there.
    fn check_name(&self, new: &Document) -> Option<Problem> {
        let name = new.text(&self.at(), "certificate")?;
        if name == OWN || new.items(&wanted::certificates()).contains(&name) {
            return None;
        }
        let title = self.service.title();
        let sentence = format!("there is no certificate {name:?} for {title} to show");
        let hint = format!("set certificate of {} to another one, in the same commit", self.at());
        Some(Problem::conflict(&self.at(), &sentence, &hint).property("certificate"))
    }
}

impl Apply for Room {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let Transition { old, new, .. } = transition;
        let differs = |at: &Path| old.differs_in(new, at);
        let own = differs(&self.at());
        let name = own || differs(&wanted::certificates());
        let problem = name.then(|| self.check_name(new)).flatten();
        let settings = || own.then(|| self.service.protocol.check(new)).flatten();
        problem.or_else(settings).into_iter().collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let Transition { old, new, who, .. } = transition;
        let (service, name) = (&*self.service, self.service.name());
        service.set_tls(choice(service, new), &self.certificates).map_err(|failure| {
            let problem = Problem::new(&self.at(), failure.why(), failure.way_out());
            problem.property("certificate")
        })?;
        settings::set_log_levels(new);
        service.protocol.set(new);
        match (is_enabled(service, old), is_enabled(service, new)) {
            (true, false) => {
                base::tell!(name, "{} disables {}", who.user, service.title());
                service.stop(Condition::Disabled(disabled_by(&who.user, wall_ns() / NS_PER_S)));
            }
            (false, true) => {
                base::tell!(name, "{} enables {}", who.user, service.title());
                if let Err(failure) = service.start() {
                    base::error!(name, "{}", failure.why());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn notes(&self, transition: &Transition<'_>, done: bool) -> Vec<String> {
        let (service, title) = (&*self.service, self.service.title());
        let enabled = |document| is_enabled(service, document);
        let ends = enabled(transition.old) && !enabled(transition.new);
        let mut notes = Vec::new();
        if ends && !done {
            notes.push(cuts_off(title, &service.files.budgets));
        }
        if !done {
            return notes;
        }
        if ends && service.was_cut() {
            notes.push(format!("{title}: {}", cut_off()));
        }
        if let Condition::Maintenance(why) = service.condition() {
            notes.push(format!("{title} is in maintenance: {why}"));
        }
        if choice(service, transition.old) != choice(service, transition.new) {
            notes.extend(service.certificate(&self.certificates).1);
        }
        notes
    }
}

impl Live for Room {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let (service, condition) = (&*self.service, self.service.condition());
        let tls = service.protocol.tls().is_some();
        let certificate = tls.then(|| service.certificate(&self.certificates));
        let mut state = told(service.name(), &condition, &service.files.budgets, certificate);
        if let Condition::Online(up) = &condition {
            let at: Vec<String> = up.at.iter().map(ToString::to_string).collect();
            state.extend(serving(up.since, at.join(", ")));
        }
        state.extend(service.protocol.state());
        state
    }

    fn act(
        &self,
        path: &Path,
        _action: &str,
        _parameters: &BTreeMap<String, Value>,
        who: &Who,
    ) -> Result<Json, Problem> {
        let service = &*self.service;
        restarted(path, (service.name(), service.title()), who, || service.restart())
    }
}
