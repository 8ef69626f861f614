//! Sessions that the connections of one client may resume: the data connections of FTP resume that
//! of their control connection (RFC 4217 §15.1), which costs less and shows that they are of the
//! same client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::FTP_SESSIONS_KEPT;
use rustls::server::StoresServerSessions;

type Pair = (Vec<u8>, Vec<u8>);

/// Those of the first connection, for as long as it lives, and the latest of others.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    kept: Mutex<(Vec<Pair>, VecDeque<Pair>)>,
}

/// Sessions of the first connection: one, or a ticket for each of two.
const FIRST: usize = super::TICKETS;

impl Sessions {
    fn kept(&self) -> MutexGuard<'_, (Vec<Pair>, VecDeque<Pair>)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let (first, latest) = &mut *self.kept();
        if first.len() < FIRST {
            first.push((key, value));
            return true;
        }
        if latest.len() >= FTP_SESSIONS_KEPT {
            latest.pop_front();
        }
        latest.push_back((key, value));
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (first, latest) = &*self.kept();
        let mut all = first.iter().chain(latest);
        all.find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    /// It stays: clients take the ticket of the control connection for all data connections. What
    /// could be repeated with it, early data, is not offered.
    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}
