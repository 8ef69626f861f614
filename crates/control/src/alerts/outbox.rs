//! Pending messages: a bounded queue and a thread for mail, one for webhooks, one for syslog, so
//! that a mail server that hangs holds up mail only. Failed deliveries are retried with increasing
//! delays and finally abandoned; the state of the deliveries is kept for each alert.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use analytics::alert::Syslog;
use base::clock::monotonic_ns;
use base::limits::{ALERT_ATTEMPTS_MAX, ALERT_QUEUE_MAX};

use super::connect::DeliveryError;
use super::mail::Smtp;
use super::message::Message;
use super::{mail, syslog, webhook};

/// Each delay is this number of times as long as the one before.
const BACKOFF: u32 = 4;

/// Where a message goes.
#[derive(Clone)]
pub(super) enum Target {
    Mail { smtp: Arc<Smtp>, to: Vec<String>, trusted: Option<PathBuf> },
    Webhook { url: String, secret: Option<String>, trusted: Option<PathBuf> },
    Syslog(Syslog),
}

impl Target {
    /// Which lane it takes.
    fn lane(&self) -> usize {
        match self {
            Self::Mail { .. } => 0,
            Self::Webhook { .. } => 1,
            Self::Syslog(_) => 2,
        }
    }

    /// For people.
    pub fn name(&self) -> String {
        match self {
            Self::Mail { to, .. } => format!("mail to {}", to.join(", ")),
            Self::Webhook { .. } => "webhook".to_owned(),
            Self::Syslog(_) => "syslog".to_owned(),
        }
    }

    /// Delivers now. Blocks, for a minute at most.
    ///
    /// # Errors
    /// It did not arrive.
    pub fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        match self {
            Self::Mail { smtp, to, trusted } => mail::send(smtp, to, trusted.as_deref(), message),
            Self::Webhook { url, secret, trusted } => {
                webhook::send(url, secret.as_deref(), trusted.as_deref(), message)
            }
            Self::Syslog(to) => syslog::send(to, message),
        }
    }
}

/// A message to one target.
pub(super) struct Job {
    pub alert: String,
    pub target: Target,
    pub message: Arc<Message>,
    /// How often it was tried.
    pub tried: u32,
    /// Not before, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
}

/// Messages that wait, oldest first.
#[derive(Default)]
pub(super) struct Queue(VecDeque<Job>);

impl Queue {
    /// Adds one; the oldest that had to make room.
    pub fn push(&mut self, job: Job) -> Option<Job> {
        let lost = if self.0.len() >= ALERT_QUEUE_MAX { self.0.pop_front() } else { None };
        self.0.push_back(job);
        lost
    }

    /// The next that is due, or how long to wait for one.
    pub fn take(&mut self, now_ns: u64) -> Result<Job, Option<Duration>> {
        let due = self.0.iter().position(|job| job.due_ns <= now_ns);
        if let Some(job) = due.and_then(|at| self.0.remove(at)) {
            return Ok(job);
        }
        let next = self.0.iter().map(|job| job.due_ns).min();
        Err(next.map(|due| Duration::from_nanos(due - now_ns)))
    }
}

/// The delay before the next attempt after `tried` attempts; `None`: it is abandoned.
pub(super) fn retry(first: Duration, tried: u32) -> Option<Duration> {
    let again = tried > 0 && tried < ALERT_ATTEMPTS_MAX;
    again.then(|| first * BACKOFF.pow(tried - 1))
}

/// How the deliveries of an alert stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub delivered: u64,
    pub waiting: u64,
    /// Why the last did not arrive, by lane.
    errors: [String; LANES],
}

impl Standing {
    /// What did not arrive.
    pub fn error(&self) -> String {
        let some: Vec<&str> =
            self.errors.iter().filter(|e| !e.is_empty()).map(String::as_str).collect();
        some.join("; ")
    }
}

const LANES: usize = 3;
const NAMES: [&str; LANES] = ["alert-mail", "alert-webhook", "alert-syslog"];

#[derive(Default)]
struct Lane {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

struct Shared {
    lanes: [Lane; LANES],
    standings: Mutex<BTreeMap<String, Standing>>,
    retry: Duration,
    stop: AtomicBool,
}

/// All messages on their way.
pub(super) struct Outbox(Arc<Shared>);

impl Outbox {
    /// Starts the threads; the first retry comes after `retry`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(retry: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            lanes: Default::default(),
            standings: Mutex::default(),
            retry,
            stop: AtomicBool::new(false),
        });
        for (lane, name) in NAMES.into_iter().enumerate() {
            let shared = shared.clone();
            std::thread::Builder::new().name(name.into()).spawn(move || shared.run(lane))?;
        }
        Ok(Self(shared))
    }

    /// Lets the threads end once they have finished their current message; does not wait for that.
    pub fn end(&self) {
        self.0.stop.store(true, Ordering::Release);
        for lane in &self.0.lanes {
            // With the lock: a thread that has looked and does not wait yet would miss it.
            let _queue = lane.queue.lock().unwrap_or_else(PoisonError::into_inner);
            lane.arrived.notify_all();
        }
    }

    /// Has a message delivered.
    pub fn post(&self, alert: &str, target: Target, message: Arc<Message>) {
        self.0.standings().entry(alert.to_owned()).or_default().waiting += 1;
        let lane = target.lane();
        self.0.push(lane, Job { alert: alert.to_owned(), target, message, tried: 0, due_ns: 0 });
    }

    /// How the deliveries of an alert stand.
    pub fn standing(&self, alert: &str) -> Standing {
        self.0.standings().get(alert).cloned().unwrap_or_default()
    }

    /// Renames an alert.
    pub fn renamed(&self, from: &str, to: &str) {
        let mut standings = self.0.standings();
        if let Some(standing) = standings.remove(from) {
            standings.insert(to.to_owned(), standing);
        }
    }

    /// Removes an alert. Its pending messages are delivered nevertheless.
    pub fn forget(&self, alert: &str) {
        self.0.standings().remove(alert);
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn standings(&self) -> MutexGuard<'_, BTreeMap<String, Standing>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that was removed since has none, and gets none.
    fn standing(&self, alert: &str, change: impl FnOnce(&mut Standing)) {
        if let Some(standing) = self.standings().get_mut(alert) {
            change(standing);
        }
    }

    fn push(&self, lane: usize, job: Job) {
        let place = &self.lanes[lane];
        let lost = place.queue.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        place.arrived.notify_one();
        if let Some(lost) = lost {
            let why = "too many queued messages; the oldest was dropped".to_owned();
            self.failed(lane, &lost, why, true);
        }
    }

    fn next(&self, lane: usize) -> Option<Job> {
        let place = &self.lanes[lane];
        let mut queue = place.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stop.load(Ordering::Acquire) {
            let wait = match queue.take(monotonic_ns()) {
                Ok(job) => return Some(job),
                Err(wait) => wait,
            };
            // Both a message and the end are notified.
            let wait = wait.unwrap_or(Duration::MAX);
            queue = match place.arrived.wait_timeout(queue, wait) {
                Ok((queue, _)) => queue,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        None
    }

    fn run(&self, lane: usize) {
        while let Some(mut job) = self.next(lane) {
            job.tried += 1;
            let Err(error) = job.target.deliver(&job.message) else {
                self.standing(&job.alert, |standing| {
                    standing.delivered += 1;
                    standing.waiting = standing.waiting.saturating_sub(1);
                    standing.errors[lane].clear();
                });
                continue;
            };
            let wait = retry(self.retry, job.tried).filter(|_| error.again());
            let why = format!("{}: {error}", job.target.name());
            self.failed(lane, &job, why, wait.is_none());
            if let Some(wait) = wait {
                job.due_ns = monotonic_ns().saturating_add(wait.as_nanos() as u64);
                self.push(lane, job);
            }
        }
    }

    fn failed(&self, lane: usize, job: &Job, why: String, given_up: bool) {
        if given_up {
            base::info!("alerts", "a message of alert {} was dropped: {why}", job.alert);
        }
        self.standing(&job.alert, |standing| {
            standing.errors[lane] = why;
            standing.waiting = standing.waiting.saturating_sub(u64::from(given_up));
        });
    }
}
