//! What the server tells people while it runs: on standard error, and kept for the API's log page.
//!
//! Not for the request path: nothing is told per operation. What is kept is bounded; a line that
//! was pushed out is counted by the gap in the numbers.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::wall_ns;
use crate::limits::{LOG_LINE_MAX, LOG_LINES_MAX};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counts from 1.
    pub number: u64,
    /// Nanoseconds since the epoch.
    pub when_ns: u64,
    /// Who tells it: `nfs`, `admin`, `server`, …
    pub service: &'static str,
    /// What it tells.
    pub text: String,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<Line>,
    told: u64,
}

/// As standard error: there is one for the process.
static KEPT: Mutex<Kept> = Mutex::new(Kept { lines: VecDeque::new(), told: 0 });

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells something: on standard error after `plimsoll: `, and to who reads the log.
pub fn tell(service: &'static str, text: &str) {
    // Without a standard error there is still the log.
    let _ = writeln!(std::io::stderr().lock(), "plimsoll: {text}");
    keep(service, text);
}

/// Keeps a line that standard error has already.
pub fn keep(service: &'static str, text: &str) {
    let text = text.chars().take(LOG_LINE_MAX).collect();
    let mut kept = kept();
    kept.told += 1;
    let line = Line { number: kept.told, when_ns: wall_ns(), service, text };
    kept.lines.push_back(line);
    if kept.lines.len() > LOG_LINES_MAX {
        kept.lines.pop_front();
    }
}

/// The newest `limit` lines after this number, of one service or of all; the oldest first.
pub fn since(number: u64, service: Option<&str>, limit: usize) -> Vec<Line> {
    let kept = kept();
    let fits = |line: &&Line| {
        line.number > number && service.is_none_or(|service| line.service == service)
    };
    let mut lines: Vec<Line> = kept.lines.iter().rev().filter(fits).take(limit).cloned().collect();
    lines.reverse();
    lines
}

/// The number of the newest line; 0 before the first.
pub fn newest() -> u64 {
    kept().told
}

/// Tells something in the form of `format!`: `tell!("nfs", "{peer} has gone")`.
#[macro_export]
macro_rules! tell {
    ($service:expr, $($text:tt)*) => {
        $crate::log::tell($service, &::std::format!($($text)*))
    };
}

#[cfg(test)]
mod tests;
