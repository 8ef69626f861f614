//! Alerts while the server runs: reads them from the configuration, evaluates each every second,
//! and sends notifications. Nothing on the request path waits for any of it.
//!
//! - `watch`: reads the statistics of a finished second, on a separate thread.
//! - `message`: the notification, in the format of each channel.
//! - `outbox`: bounded queues with retries, one thread for each channel.
//! - `mail`, `webhook`, `syslog`: the channels. `connect`: TCP and TLS under deadlines.
//! - `room`: alerts as a room of the tree.

mod connect;
mod mail;
mod message;
mod outbox;
mod room;
mod syslog;
mod watch;
mod webhook;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use analytics::alert::{Event, Happening, Machine, Rule};
use analytics::bus::Closer;
use analytics::query::Engine;
use base::clock::{NS_PER_S, wall_ns};
use base::limits::{ALERT_RECENT_MAX, ALERT_RETRY};
use base::node::Path;

use crate::analytics_room::Datasets;
use crate::tree::{Document, Secrets, Tree};
use mail::{Security, Smtp};
use message::{Kind, Message};
use outbox::{Outbox, Target};

/// What an alert knows of the server beyond its statistics.
pub trait Facts: Send + Sync {
    /// What is wrong, one sentence, if this happens now. Called every second while an alert waits
    /// for it; must not call alerts in turn.
    fn now(&self, event: Event) -> Option<String>;
}

/// Where the branch is.
fn prefix() -> Path {
    Path::of(&["configuration", "alerts"])
}

/// One alert and how it stands.
struct Watched {
    rule: Arc<Rule>,
    webhook_secret: Option<String>,
    machine: Machine,
    seen: SecondSample,
    last_fired: u64,
    fired: u64,
    /// Why what it keeps is not kept.
    unkept: Option<String>,
}

/// What was seen in a second.
#[derive(Debug, Clone, Default, PartialEq)]
struct SecondSample {
    value: Option<f64>,
    /// The element that it is of, or what is wrong.
    detail: Option<String>,
}

/// How messages leave.
#[derive(Default)]
struct Settings {
    smtp: Option<Arc<Smtp>>,
    /// CAs in addition to the machine's own.
    trusted: Option<PathBuf>,
}

#[derive(Default)]
struct Inner {
    watched: BTreeMap<String, Watched>,
    settings: Settings,
    /// The newest last.
    recent: VecDeque<String>,
}

/// All alerts of the running server.
pub struct Alerts {
    engine: Arc<Engine>,
    facts: Box<dyn Facts>,
    datasets: Arc<Datasets>,
    host: String,
    inner: Mutex<Inner>,
    outbox: Outbox,
    stop: AtomicBool,
    /// The thread that watches, and what ends the seconds that it waits for.
    thread: Mutex<Option<(JoinHandle<()>, Closer)>>,
}

impl Alerts {
    /// Takes what `tree` has now, and begins to watch.
    ///
    /// # Errors
    /// When there are too many subscribers of statistics already, or the system gives no thread.
    pub fn start(
        engine: Arc<Engine>,
        facts: Box<dyn Facts>,
        datasets: Arc<Datasets>,
        host: &str,
        tree: &Tree,
    ) -> std::io::Result<Arc<Self>> {
        let ticks = engine.ticks().map_err(std::io::Error::other)?;
        let outbox = Outbox::start(ALERT_RETRY)?;
        let alerts = Arc::new(Self::new(engine, facts, datasets, host, outbox));
        alerts.take(&tree.document(), tree.secrets(), &[]);
        let (watching, closer) = (alerts.clone(), ticks.closer());
        let thread = std::thread::Builder::new().name("alerts".into());
        let thread = thread.spawn(move || watching.watch(ticks))?;
        *alerts.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((thread, closer));
        Ok(alerts)
    }

    fn new(
        engine: Arc<Engine>,
        facts: Box<dyn Facts>,
        datasets: Arc<Datasets>,
        host: &str,
        outbox: Outbox,
    ) -> Self {
        Self {
            engine,
            facts,
            datasets,
            host: host.to_owned(),
            inner: Mutex::default(),
            outbox,
            stop: AtomicBool::new(false),
            thread: Mutex::default(),
        }
    }

    /// Stops watching. Messages in the queues are discarded.
    pub fn end(&self) {
        self.stop.store(true, Ordering::Release);
        self.outbox.end();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((thread, closer)) = thread {
            closer.close();
            thread.thread().unpark();
            // Its panic was reported by the hook.
            drop(thread.join());
        }
    }

    /// What is firing, one sentence each: problems of the status page.
    pub fn firing(&self) -> Vec<String> {
        let inner = self.inner();
        let firing = inner.watched.iter().filter(|(_, w)| w.machine.firing_since().is_some());
        firing
            .map(|(name, w)| format!("alert {name}: {}", message::state(&w.rule, &w.seen)))
            .collect()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a configuration that was checked. Alerts with an unchanged condition retain their
    /// state; the recipients of others that were firing receive that they have cleared: no later
    /// message would end what they have open.
    fn take(&self, document: &Document, secrets: &Secrets, renamed: &[(Path, Path)]) {
        let mut inner = self.inner();
        for (from, to) in renamed.iter().filter(|(from, _)| from.parent() == Some(prefix())) {
            let (Some(from), Some(to)) = (from.name(), to.name()) else { continue };
            if let Some(watched) = inner.watched.remove(from) {
                inner.watched.insert(to.to_owned(), watched);
            }
            self.outbox.renamed(from, to);
        }
        let mut before = std::mem::take(&mut inner.watched);
        let second = wall_ns() / NS_PER_S;
        for name in document.items(&prefix()) {
            let at = prefix().join(&name);
            let Ok(rule) = Rule::read(&|property| document.value(&at, property)) else { continue };
            let webhook_secret = secrets.get(document, &at, "webhook_secret");
            let old = before.remove(&name);
            let same = old.as_ref().is_some_and(|old| old.rule.watches_as(&rule));
            let (last_fired, fired) = old.as_ref().map_or((0, 0), |w| (w.last_fired, w.fired));
            let keeps_as = |old: &&Watched| old.rule.keep == rule.keep;
            let unkept = old.as_ref().filter(keeps_as).and_then(|old| old.unkept.clone());
            let (machine, seen) = match old {
                Some(old) if same => (old.machine, old.seen),
                Some(old) => {
                    let disabled = !rule.enabled;
                    let why = if disabled { "it was disabled" } else { "it was changed" };
                    self.ended(&mut inner, &name, &old, why, second);
                    Default::default()
                }
                None => Default::default(),
            };
            let rule = Arc::new(rule);
            let watched =
                Watched { rule, webhook_secret, machine, seen, last_fired, fired, unkept };
            inner.watched.insert(name, watched);
        }
        for (gone, old) in &before {
            self.ended(&mut inner, gone, old, "it was removed", second);
            self.outbox.forget(gone);
        }
        inner.settings = settings(document, secrets);
    }

    /// All recipients of an alert.
    fn targets(inner: &Inner, watched: &Watched) -> Vec<Target> {
        let rule = &watched.rule;
        let trusted = &inner.settings.trusted;
        let mut targets = Vec::new();
        if let Some(smtp) = inner.settings.smtp.as_ref().filter(|_| !rule.mail.is_empty()) {
            let to = rule.mail.clone();
            targets.push(Target::Mail { smtp: smtp.clone(), to, trusted: trusted.clone() });
        }
        if let Some(url) = rule.webhook.clone() {
            let (secret, trusted) = (watched.webhook_secret.clone(), trusted.clone());
            targets.push(Target::Webhook { url, secret, trusted });
        }
        targets.extend(rule.syslog.clone().map(Target::Syslog));
        targets
    }

    fn message(&self, name: &str, watched: &Watched, kind: Kind, second: u64) -> Message {
        Message {
            appliance: self.host.clone(),
            alert: name.to_owned(),
            kind,
            rule: watched.rule.clone(),
            seen: watched.seen.clone(),
            second,
        }
    }

    /// Starts the dataset of an alert, or extends it. Writes a file: not under the lock.
    fn keep(&self, name: &str, rule: &Rule, second: u64) {
        let Some((stat, seconds)) = &rule.keep else { return };
        let by = format!("alert {name}");
        let unkept = match self.datasets.keep(stat, &by, second, *seconds) {
            Ok(dataset) => {
                let until = base::units::utc(dataset.until.cast_signed());
                base::info!("alerts", "{by} started recording {stat} until {until} UTC");
                None
            }
            Err(why) => {
                base::info!("alerts", "{by} could not start recording {stat}: {why}");
                Some(why.to_string())
            }
        };
        if let Some(watched) = self.inner().watched.get_mut(name) {
            watched.unkept = unkept;
        }
    }

    /// Reports what has happened: in the log at once, to other recipients through the outbox.
    fn notify(&self, inner: &mut Inner, name: &str, happening: Happening, second: u64) {
        let kind = match happening {
            Happening::Fired => Kind::Fired,
            Happening::Again => Kind::Again,
            Happening::Cleared => Kind::Cleared,
        };
        let Some(watched) = inner.watched.get_mut(name) else { return };
        if kind == Kind::Fired {
            watched.last_fired = second;
            watched.fired += 1;
        }
        let Some(watched) = inner.watched.get(name) else { return };
        let message = self.message(name, watched, kind, second);
        let targets = Self::targets(inner, watched);
        self.post(inner, targets, message);
    }

    /// Reports the end of an alert that is firing, to its recipients so far.
    fn ended(&self, inner: &mut Inner, name: &str, old: &Watched, why: &'static str, second: u64) {
        if old.machine.firing_since().is_some() {
            let message = self.message(name, old, Kind::Ended(why), second);
            let targets = Self::targets(inner, old);
            self.post(inner, targets, message);
        }
    }

    fn post(&self, inner: &mut Inner, targets: Vec<Target>, message: Message) {
        let message = Arc::new(message);
        for target in targets {
            self.outbox.post(&message.alert, target, message.clone());
        }
        base::info!("alerts", "{}", message.line());
        if inner.recent.len() >= ALERT_RECENT_MAX {
            inner.recent.pop_front();
        }
        let at = base::units::utc(message.second.cast_signed());
        inner.recent.push_back(format!("{at} {}", message.line()));
    }
}

fn settings(document: &Document, secrets: &Secrets) -> Settings {
    let at = prefix();
    let text = |name| document.text(&at, name);
    let smtp = text("smtp_host").zip(text("mail_from")).map(|(host, from)| {
        Arc::new(Smtp {
            host,
            port: document
                .integer(&at, "smtp_port")
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(mail::SUBMISSION),
            security: match text("smtp_security").as_deref() {
                Some("tls") => Security::Tls,
                Some("none") => Security::None,
                _ => Security::StartTls,
            },
            user: text("smtp_user").map(|user| {
                (user, secrets.get(document, &at, "smtp_password").unwrap_or_default())
            }),
            from,
        })
    });
    Settings { smtp, trusted: text("trusted_certificates").map(PathBuf::from) }
}

#[cfg(test)]
mod tests;
