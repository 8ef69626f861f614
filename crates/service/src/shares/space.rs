//! Free space of the file systems of shares. A file system that does not respond delays neither the
//! status of the server nor the values of the other shares, and has one thread at most.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::limits::STORAGE_LOOK_TIME_MAX;
use parking_lot::{Condvar, Mutex};
use vfs::fs::Space;

/// What a file system reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Volume {
    /// Its free space.
    pub space: Space,
    /// What identifies it.
    pub fsid: Option<u64>,
}

/// Queries one file system.
pub type Query = Box<dyn FnOnce() -> Volume + Send>;

/// The last values, by the name of the share.
pub struct Spaces {
    state: Arc<(Mutex<State>, Condvar)>,
    /// Time for one response.
    limit: Duration,
}

impl Default for Spaces {
    fn default() -> Self {
        Self { state: Arc::default(), limit: STORAGE_LOOK_TIME_MAX }
    }
}

#[derive(Default)]
struct State {
    shares: BTreeMap<String, Entry>,
    /// Queries that no thread has begun.
    queue: VecDeque<(String, Query)>,
}

#[derive(Default)]
struct Entry {
    /// The last value.
    volume: Volume,
    /// A thread waits for the next one.
    pending: bool,
    /// The time for it is over.
    late: bool,
}

impl Spaces {
    /// The values of these shares: those of now, or the last ones of file systems that do not
    /// respond in time.
    pub fn of(&self, queries: Vec<(String, Query)>) -> Vec<Space> {
        let names: Vec<_> = queries.iter().map(|(name, _)| name.clone()).collect();
        let (state, ended) = &*self.state;
        let mut state = state.lock();
        state.shares.retain(|name, entry| entry.pending || names.contains(name));
        for (name, query) in queries {
            let entry = state.shares.entry(name.clone()).or_default();
            if !entry.pending {
                entry.pending = true;
                state.queue.push_back((name, query));
            }
        }
        while !state.queue.is_empty() && self.begin() {
            // As long as values arrive, one thread is enough for all.
            while state.awaits(&names) && !ended.wait_for(&mut state, self.limit).timed_out() {}
            state.expire();
        }
        names
            .iter()
            .map(|name| state.shares.get(name).map_or(Space::default(), |e| e.volume.space))
            .collect()
    }

    /// What identifies the file system of this share, as far as it has responded.
    pub fn fsid(&self, share: &str) -> Option<u64> {
        self.state.0.lock().shares.get(share)?.volume.fsid
    }

    /// Shares on file systems that do not respond.
    pub fn late(&self) -> Vec<String> {
        let state = self.state.0.lock();
        let late = state.shares.iter().filter(|(_, entry)| entry.pending && entry.late);
        late.map(|(name, _)| name.clone()).collect()
    }

    /// Starts a thread for the queue; false without one.
    fn begin(&self) -> bool {
        let shared = Arc::clone(&self.state);
        let work = move || {
            let (state, ended) = &*shared;
            loop {
                let Some((name, query)) = state.lock().queue.pop_front() else { break };
                let volume = query();
                let mut state = state.lock();
                if let Some(entry) = state.shares.get_mut(&name) {
                    *entry = Entry { volume, ..Entry::default() };
                }
                drop(state);
                ended.notify_all();
            }
        };
        std::thread::Builder::new().name("share-space".to_owned()).spawn(work).is_ok()
    }
}

impl State {
    /// Of what a thread waits for, the time is over.
    fn expire(&mut self) {
        for (name, entry) in &mut self.shares {
            let queued = self.queue.iter().any(|(one, _)| one == name);
            entry.late |= entry.pending && !queued;
        }
    }

    /// Whether a value of one of these shares is still to come, for which the time is not over.
    fn awaits(&self, names: &[String]) -> bool {
        let shares = names.iter().filter_map(|name| self.shares.get(name));
        shares.into_iter().any(|entry| entry.pending && !entry.late)
    }
}

#[cfg(test)]
mod tests;
