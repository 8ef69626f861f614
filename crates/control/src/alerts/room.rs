//! Alerts as a room of the tree.

use std::collections::BTreeMap;

use analytics::alert::rule::figure;
use analytics::alert::{Rule, Subject};
use base::clock::{NS_PER_S, wall_ns};
use base::node::{Path, Value};
use serde_json::{Value as Json, json};

use super::message::Kind;
use super::{Alerts, Inner, Watched, prefix};
use crate::tree::{Actor, Apply, Document, Operational, Problem, Transition};

impl Apply for Alerts {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let mut problems = check(transition.new);
        problems.extend(transition.other_recipient(&prefix(), "smtp_password", mail_server));
        problems
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        self.take(transition.new, transition.secrets, transition.renamed);
        Ok(())
    }
}

/// The properties that decide where the password for mail is sent.
fn mail_server(document: &Document, at: &Path) -> [Option<Value>; 4] {
    ["smtp_host", "smtp_port", "smtp_security", "trusted_certificates"]
        .map(|property| document.value(at, property))
}

/// Checks beyond those of the declarations.
fn check(document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut mails = None;
    for name in document.items(&prefix()) {
        let at = prefix().join(&name);
        match Rule::read(&|property| document.value(&at, property)) {
            Ok(rule) if !rule.mail.is_empty() => mails = Some(name),
            Ok(_) => {}
            Err(wrong) => {
                let problem = Problem::new(&at, &wrong.why, &wrong.hint);
                problems.push(problem.property(wrong.property));
            }
        }
    }
    let at = prefix();
    let lacks = |property| document.text(&at, property).is_none();
    if let (Some(alert), true) = (mails, lacks("smtp_host") || lacks("mail_from")) {
        let property = if lacks("smtp_host") { "smtp_host" } else { "mail_from" };
        let sentence =
            format!("alert {alert} sends mail, but no mail server or sender is configured");
        let hint = "set smtp_host and mail_from in configuration/alerts";
        problems.push(Problem::new(&at, &sentence, hint).property(property));
    }
    let open = document.text(&at, "smtp_security").as_deref() == Some("none");
    if open && !lacks("smtp_user") {
        let sentence = "passwords are not sent without TLS";
        let hint = "set smtp_security to starttls or tls, or unset smtp_user";
        problems.push(Problem::new(&at, sentence, hint).property("smtp_security"));
    }
    problems
}

impl Operational for Alerts {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        let inner = self.inner();
        if *path == prefix() {
            let recent = inner.recent.iter().rev();
            let recent = Value::texts(recent);
            drop(inner);
            return vec![("firing", Value::texts(self.firing())), ("recent", recent)];
        }
        let Some((name, watched)) = named(&inner, path) else { return Vec::new() };
        let standing = self.outbox.standing(name);
        let count = |n: u64| Value::Integer(n.cast_signed());
        vec![
            ("sentence", Value::Text(watched.rule.sentence())),
            ("state", Value::text(stand(watched))),
            ("last_fired", count(watched.last_fired)),
            ("value", Value::Text(shown(watched))),
            ("since", count(watched.machine.firing_since().unwrap_or(0))),
            ("fired", count(watched.fired)),
            ("delivered", count(standing.delivered)),
            ("waiting", count(standing.waiting)),
            ("delivery_error", Value::Text(standing.error())),
            ("keep_error", Value::Text(watched.unkept.clone().unwrap_or_default())),
        ]
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        _parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<Json, Problem> {
        if action != "test" {
            return Err(Problem::unknown(path, &format!("unknown action {action}"), ""));
        }
        let gone =
            || Problem::unknown(path, "this alert does not exist any more", "list the alerts");
        let (targets, message) = {
            let inner = self.inner();
            let (name, watched) = named(&inner, path).ok_or_else(gone)?;
            let message = self.message(name, watched, Kind::Test, wall_ns() / NS_PER_S);
            (Self::targets(&inner, watched), message)
        };
        if targets.is_empty() {
            let hint = "set mail, webhook or syslog";
            return Err(Problem::conflict(path, "it has no recipient except the log", hint));
        }
        // All are tried before any failure is reported.
        let (mut delivered, mut failed) = (Vec::new(), Vec::new());
        for target in targets {
            match target.deliver(&message) {
                Ok(()) => delivered.push(target.name()),
                Err(error) => failed.push(format!("{}: {error}", target.name())),
            }
        }
        if failed.is_empty() {
            return Ok(json!({ "delivered": delivered }));
        }
        let hint = match delivered.as_slice() {
            [] => "nothing arrived".to_owned(),
            arrived => format!("{} arrived", arrived.join(", ")),
        };
        Err(Problem::conflict(path, &failed.join("; "), &hint))
    }
}

fn named<'a>(inner: &'a Inner, path: &'a Path) -> Option<(&'a str, &'a Watched)> {
    let name = path.name().filter(|_| path.parent() == Some(prefix()))?;
    inner.watched.get(name).map(|watched| (name, watched))
}

fn stand(watched: &Watched) -> &'static str {
    let machine = &watched.machine;
    match (watched.rule.enabled, machine.firing_since(), machine.waiting_since()) {
        (false, ..) => "disabled",
        (_, Some(_), _) => "firing",
        (_, _, Some(_)) => "waiting",
        _ => "quiet",
    }
}

fn shown(watched: &Watched) -> String {
    match (&watched.rule.subject, watched.seen.value) {
        (Subject::Event(_), _) => watched.seen.detail.clone().unwrap_or_default(),
        (_, None) => String::new(),
        (_, Some(value)) => {
            let of = watched.seen.detail.as_ref().map_or_else(String::new, |d| format!(" ({d})"));
            format!("{}{of}", figure(value, watched.rule.unit()))
        }
    }
}
