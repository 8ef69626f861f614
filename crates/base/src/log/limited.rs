//! Lines that a peer causes by what it sends: at most one for each client, place and interval, with
//! the number of those that were left out before it. A peer that repeats a refused request a
//! thousand times a second is one line, and the lines of others stay.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::{Level, wants, write_line};
use crate::clock::monotonic_ns;
use crate::limits::{LOG_CLIENT_INTERVAL, LOG_CLIENTS_MAX, LOG_NAME_MAX};
use crate::peer;
use crate::text::visible;

/// One place in the code that logs such lines; a `static` of that place.
#[derive(Debug, Default)]
pub struct ClientLines {
    clients: Mutex<Option<HashMap<Option<IpAddr>, Client>>>,
}

/// When the last line of a client was logged, and how many were left out since.
#[derive(Debug, Clone, Copy)]
struct Client {
    logged_ns: u64,
    left_out: u64,
}

impl ClientLines {
    /// No lines yet.
    pub const fn new() -> Self {
        Self { clients: Mutex::new(None) }
    }

    /// Logs a line about `client` unless there was one within [`LOG_CLIENT_INTERVAL`]; `text` is
    /// made only then.
    pub fn log(
        &self,
        (service, level): (&'static str, Level),
        client: IpAddr,
        text: impl FnOnce() -> String,
    ) {
        if !wants(service, level) {
            return;
        }
        match self.take(client, monotonic_ns()) {
            None => {}
            Some(0) => write_line(service, level, &text()),
            Some(more) => {
                let text = text();
                write_line(service, level, &format!("{text} ({more} more since the last line)"));
            }
        }
    }

    /// Whether a line may be logged now: how many were left out before it.
    fn take(&self, client: IpAddr, now_ns: u64) -> Option<u64> {
        let interval_ns = LOG_CLIENT_INTERVAL.as_nanos() as u64;
        let is_over = |one: &Client| now_ns.saturating_sub(one.logged_ns) >= interval_ns;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = clients.get_or_insert_default();
        let mut key = Some(peer::network(client));
        if !clients.contains_key(&key) && clients.len() >= LOG_CLIENTS_MAX {
            clients.retain(|_, one| !is_over(one));
            if clients.len() >= LOG_CLIENTS_MAX {
                key = None;
            }
        }
        let Some(known) = clients.get_mut(&key) else {
            clients.insert(key, Client { logged_ns: now_ns, left_out: 0 });
            return Some(0);
        };
        if !is_over(known) {
            known.left_out += 1;
            return None;
        }
        known.logged_ns = now_ns;
        Some(std::mem::take(&mut known.left_out))
    }
}

/// A name that a peer has chosen, as a line of the log has it: without control characters, and cut
/// after [`LOG_NAME_MAX`] characters.
pub fn name(name: &str) -> String {
    let mut chars = name.chars();
    let mut cut: String = chars.by_ref().take(LOG_NAME_MAX).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    visible(&cut).into_owned()
}

#[cfg(test)]
mod tests;
