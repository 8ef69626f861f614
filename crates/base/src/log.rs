//! The log of the running server: on standard error, and retained for the API's log page.
//!
//! Not for the request path: nothing is logged per operation. What is retained is bounded; a line
//! that was pushed out is counted by the gap in the numbers. The log level of each service can be
//! set while it runs.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::wall_ns;
use crate::limits::{LOG_LINE_MAX, LOG_LINES_MAX};
use crate::text::visible;

pub mod limited;

pub use limited::ClientLines;

/// How much a line matters; the names are those of syslog (RFC 5424 §6.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something works in part, or soon will not.
    Warning,
    /// What people want to know afterwards.
    Info,
    /// What helps to find a fault: each connection that comes and goes.
    Debug,
}

impl Level {
    /// From the least to the most verbose.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warning, Self::Info, Self::Debug];

    /// As values of a property: what is logged at each.
    pub const CHOICES: &'static [(&'static str, &'static str)] = &[
        ("error", "failures only"),
        ("warning", "failures and degraded conditions"),
        ("info", "also normal events such as sign-ins"),
        ("debug", "also details for troubleshooting, such as each connection"),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        Self::CHOICES[self as usize].0
    }

    /// The level of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counts from 1.
    pub number: u64,
    /// Nanoseconds since the epoch.
    pub when_ns: u64,
    /// The service that logs it: `nfs`, `administration`, `server`, …
    pub service: &'static str,
    /// Its level.
    pub level: Level,
    /// The message.
    pub text: String,
}

/// The lines that a reader requests.
#[derive(Debug, Clone, Copy)]
pub struct LogQuery<'a> {
    /// Those after this number.
    pub after: u64,
    /// Of this service, or of all.
    pub service: Option<&'a str>,
    /// Those of at least this level.
    pub level: Level,
    /// At most this many, the newest.
    pub limit: usize,
}

impl LogQuery<'_> {
    /// The newest `limit` lines of all services.
    pub const fn newest(limit: usize) -> Self {
        Self { after: 0, service: None, level: Level::Debug, limit }
    }
}

struct Retained {
    lines: VecDeque<Line>,
    newest: u64,
    /// Of services that have one of their own.
    levels: Vec<(&'static str, Level)>,
    /// Of all others.
    level: Level,
}

/// As standard error: there is one for the process.
static RETAINED: Mutex<Retained> = Mutex::new(Retained {
    lines: VecDeque::new(),
    newest: 0,
    levels: Vec::new(),
    level: Level::Info,
});

/// The most verbose level of all services, so that a discarded line costs no lock.
static MOST: AtomicU8 = AtomicU8::new(Level::Info as u8);

fn retained() -> MutexGuard<'static, Retained> {
    RETAINED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Retained {
    fn level_of(&self, service: &str) -> Level {
        let own = self.levels.iter().find(|(name, _)| *name == service);
        own.map_or(self.level, |(_, level)| *level)
    }
}

/// Sets the log level of a service; without a name, of all that have no level of their own.
pub fn set_level(service: Option<&'static str>, level: Level) {
    let mut retained = retained();
    match service {
        None => retained.level = level,
        Some(service) => {
            retained.levels.retain(|(name, _)| *name != service);
            retained.levels.push((service, level));
        }
    }
    let most = retained.levels.iter().map(|(_, level)| *level).max();
    MOST.store(most.unwrap_or(level).max(retained.level) as u8, Ordering::Relaxed);
}

/// Whether a service logs lines of this level.
pub fn wants(service: &str, level: Level) -> bool {
    level as u8 <= MOST.load(Ordering::Relaxed) && level <= retained().level_of(service)
}

/// Logs a line: on standard error after `plimsoll: `, and for readers of the log.
pub fn write_line(service: &'static str, level: Level, text: &str) {
    if wants(service, level) {
        let text = line(text);
        // Without a standard error there is still the log.
        let _ = writeln!(std::io::stderr().lock(), "plimsoll: {text}");
        keep(service, level, &text);
    }
}

/// One line of at most [`LOG_LINE_MAX`] characters: names in it come from others.
fn line(text: &str) -> String {
    let cut: String = text.chars().take(LOG_LINE_MAX).collect();
    visible(&cut).chars().take(LOG_LINE_MAX).collect()
}

/// Keeps a line that standard error has already.
pub fn keep(service: &'static str, level: Level, text: &str) {
    let text = text.chars().take(LOG_LINE_MAX).collect();
    let mut retained = retained();
    retained.newest += 1;
    let line = Line { number: retained.newest, when_ns: wall_ns(), service, level, text };
    retained.lines.push_back(line);
    if retained.lines.len() > LOG_LINES_MAX {
        retained.lines.pop_front();
    }
}

/// The lines that are wanted, the oldest first.
pub fn lines(query: &LogQuery<'_>) -> Vec<Line> {
    let retained = retained();
    let fits = |line: &&Line| {
        line.number > query.after
            && line.level <= query.level
            && query.service.is_none_or(|service| line.service == service)
    };
    let newest = retained.lines.iter().rev().filter(fits).take(query.limit);
    let mut lines: Vec<Line> = newest.cloned().collect();
    lines.reverse();
    lines
}

/// The number of the newest line; 0 before the first.
pub fn newest() -> u64 {
    retained().newest
}

/// Logs a normal event, in the form of `format!`: `info!("nfs", "{peer} has gone")`.
#[macro_export]
macro_rules! info {
    ($service:expr, $($text:tt)*) => {
        $crate::log_at!(Info, $service, $($text)*)
    };
}

/// Logs a failure.
#[macro_export]
macro_rules! error {
    ($service:expr, $($text:tt)*) => {
        $crate::log_at!(Error, $service, $($text)*)
    };
}

/// Logs a degraded condition, or one that is imminent.
#[macro_export]
macro_rules! warning {
    ($service:expr, $($text:tt)*) => {
        $crate::log_at!(Warning, $service, $($text)*)
    };
}

/// Logs details for troubleshooting. Costs next to nothing where that level is off.
#[macro_export]
macro_rules! debug {
    ($service:expr, $($text:tt)*) => {
        $crate::log_at!(Debug, $service, $($text)*)
    };
}

/// What the others are made of.
#[doc(hidden)]
#[macro_export]
macro_rules! log_at {
    ($level:ident, $service:expr, $($text:tt)*) => {
        if $crate::log::wants($service, $crate::log::Level::$level) {
            let text = ::std::format!($($text)*);
            $crate::log::write_line($service, $crate::log::Level::$level, &text);
        }
    };
}

#[cfg(test)]
mod tests;
