//! Pools that do not answer, and disks that fail while their pool is mounted.
//!
//! The kernel holds the locks of a file system while it writes to a disk, so that even a request
//! for its state waits for a disk that is silent. The state of a pool is therefore read in a thread
//! of its own, and what was read last is shown while that waits. A disk is silent when it has
//! requests in flight and completes none; the counters of the kernel show it without a lock.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use base::clock::{Clock, NS_PER_S, SystemClock};

use super::{Imported, Keeper, lock};
use crate::request::{FileSystem, PoolStatus};
use crate::state::{Member, State};

/// How often the counters of disks are read.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a disk may complete nothing: within 10 s the state is to show it, and a disk that works
/// needs below a second, or some with a queue.
const SILENT_NS: u64 = 6 * NS_PER_S;
/// How long a state is waited for. On a busy machine ZFS takes a second.
const LOOK_NS: u64 = 5 * NS_PER_S;
/// How often a request that waits for a state looks whether a disk has become silent meanwhile: the
/// two times together would be more than the 10 s.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What is watched.
#[derive(Default)]
pub(super) struct Watch {
    /// By device: requests that it has completed, and when that was first seen (monotonic).
    disks: Mutex<BTreeMap<String, (u64, u64)>>,
    /// By pool: the reading of its state.
    looks: Mutex<BTreeMap<String, Arc<Look>>>,
    /// By pool: failed commands of each disk that are dealt with.
    failures: Mutex<BTreeMap<String, BTreeMap<u64, u64>>>,
}

/// The reading of the state of a pool.
struct Look<T = PoolStatus> {
    inside: Mutex<Inside<T>>,
    done: Condvar,
}

struct Inside<T> {
    /// When the reading that runs began (monotonic).
    since: Option<u64>,
    /// How many have ended.
    number: u64,
    /// The number of the last one that is requested.
    requested: u64,
    last: Option<T>,
}

impl<T> Default for Look<T> {
    fn default() -> Self {
        let inside = Inside { since: None, number: 0, requested: 0, last: None };
        Self { inside: Mutex::new(inside), done: Condvar::new() }
    }
}

/// Failed commands of a disk. Wrong checksums are not: a scrub counts and corrects them.
fn failed(member: &Member) -> u64 {
    let errors = member.errors;
    errors.write.saturating_add(errors.read).saturating_add(errors.flush)
}

/// Requests in flight of a device, and completed ones, from its `stat` (Documentation/block/stat).
fn flights(stat: &str) -> Option<(u64, u64)> {
    let numbers: Vec<u64> = stat.split_whitespace().map_while(|one| one.parse().ok()).collect();
    let done = [0, 4, 11, 15].iter().filter_map(|at| numbers.get(*at)).sum();
    Some((*numbers.get(8)?, done))
}

impl Keeper {
    /// Reads the counters of disks in use until the keeper is gone.
    pub(super) fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let own = Arc::downgrade(self);
        let watch = move || {
            while let Some(keeper) = own.upgrade() {
                keeper.count_flights();
                drop(keeper);
                std::thread::sleep(PERIOD);
            }
        };
        std::thread::Builder::new().name("pool-watch".to_owned()).spawn(watch).map(drop)
    }

    fn count_flights(&self) {
        let devices: Vec<String> = {
            let inner = self.inner();
            let disks = inner.known.values().flat_map(|known| &known.disks);
            disks.map(|disk| disk.device.clone()).filter(|device| !device.is_empty()).collect()
        };
        let now = SystemClock.monotonic_ns();
        let mut disks = lock(&self.watch.disks);
        disks.retain(|device, _| devices.contains(device));
        for device in devices {
            let stat = fs::read_to_string(format!("/sys/class/block/{device}/stat"));
            match flights(&stat.unwrap_or_default()) {
                Some((in_flight, done)) if in_flight > 0 => {
                    let seen = disks.entry(device).or_insert((done, now));
                    if seen.0 != done {
                        *seen = (done, now);
                    }
                }
                _ => drop(disks.remove(&device)),
            }
        }
    }

    /// The disk of a pool that is silent: what people find it by, and for how many seconds.
    fn silent(&self, known: &Imported) -> Option<(String, u64)> {
        let disks = lock(&self.watch.disks);
        let now = SystemClock.monotonic_ns();
        known.disks.iter().find_map(|disk| {
            let (_, since) = disks.get(&disk.device)?;
            let silent = now.saturating_sub(*since);
            (silent >= SILENT_NS).then(|| (disk.title(), silent / NS_PER_S))
        })
    }

    /// Why a pool can be asked for nothing now.
    pub(super) fn stuck(&self, name: &str) -> Option<String> {
        let known = self.known(name).ok()?;
        let silent = self.silent(&known);
        let waits = {
            let look = lock(&self.watch.looks).get(name).cloned();
            look.is_some_and(|look| {
                let since = lock(&look.inside).since;
                since.is_some_and(|since| {
                    SystemClock.monotonic_ns().saturating_sub(since) >= LOOK_NS
                })
            })
        };
        match silent {
            Some((title, seconds)) if waits || known.file_system == FileSystem::Btrfs => {
                Some(format!("the disk {title} has not answered for {seconds} s"))
            }
            _ if waits => Some("its file system does not answer".to_owned()),
            _ => None,
        }
    }

    /// The states of these pools, each read in a thread of its own, after this call.
    pub(super) fn look_at(&self, pools: &[(String, Imported)]) -> Vec<PoolStatus> {
        let begun: Vec<_> = pools.iter().map(|(name, _)| self.begin_look(name)).collect();
        let deadline = SystemClock.monotonic_ns() + LOOK_NS;
        let all = pools.iter().zip(begun);
        all.map(|((name, known), (look, number))| {
            let status = look.wait(number, deadline, || self.silent(known).is_some());
            let status = status.unwrap_or_else(|| self.basic(name, known));
            self.judged(name, known, status)
        })
        .collect()
    }

    /// Requests the reading of a state: the number that it will have.
    fn begin_look(&self, name: &str) -> (Arc<Look>, u64) {
        let look = lock(&self.watch.looks).entry(name.to_owned()).or_default().clone();
        let (number, begins) = look.request(SystemClock.monotonic_ns());
        if !begins {
            return (look, number);
        }
        let (own, to, name) = (self.own.clone(), look.clone(), name.to_owned());
        let read = move || {
            loop {
                let status = own.upgrade().and_then(|keeper| {
                    // What is remembered may have changed since the last reading.
                    let known = keeper.known(&name).ok()?;
                    Some(keeper.look(&name, &known))
                });
                if !to.end(status, SystemClock.monotonic_ns()) {
                    return;
                }
            }
        };
        if std::thread::Builder::new().name("pool-look".to_owned()).spawn(read).is_err() {
            while look.end(None, SystemClock.monotonic_ns()) {}
        }
        (look, number)
    }

    /// Enters what a state does not show: a disk that is silent, and commands that fail.
    fn judged(&self, name: &str, known: &Imported, mut status: PoolStatus) -> PoolStatus {
        let was_healthy = status.state == State::Healthy;
        if let Some(why) = self.stuck(name) {
            if was_healthy || status.state == State::Repairing {
                status.state = State::Degraded;
            }
            status.reason = Some(why);
        } else if was_healthy && known.file_system == FileSystem::Btrfs {
            let members = status.members.iter().map(|one| &one.member);
            if let Some((devid, count)) = self.failing(name, members) {
                let one = status.members.iter().find(|one| one.member.devid == devid);
                let title = one.map(|one| one.identity.title()).unwrap_or_default();
                status.state = State::Degraded;
                status.reason = Some(format!("{count} commands to the disk {title} have failed"));
            }
        }
        status
    }

    /// A disk of which commands have failed since the last repair, and how many. Those from before
    /// this process are not counted: what they have left to do is in the record of the pool.
    pub(super) fn failing<'a>(
        &self,
        name: &str,
        members: impl Iterator<Item = &'a Member>,
    ) -> Option<(u64, u64)> {
        let mut failures = lock(&self.watch.failures);
        let seen = failures.entry(name.to_owned()).or_default();
        let mut first = None;
        for member in members.filter(|member| !member.missing) {
            let (now, before) =
                (failed(member), seen.entry(member.devid).or_insert(failed(member)));
            *before = now.min(*before);
            first = first.or((now > *before).then(|| (member.devid, now - *before)));
        }
        first
    }

    /// The failures of a pool are dealt with.
    pub(super) fn settle(&self, name: &str, members: &[Member]) {
        let now = members.iter().map(|member| (member.devid, failed(member))).collect();
        lock(&self.watch.failures).insert(name.to_owned(), now);
    }

    /// A pool is gone.
    pub(super) fn unwatch(&self, name: &str) {
        lock(&self.watch.failures).remove(name);
        lock(&self.watch.looks).remove(name);
    }
}

impl<T: Clone> Look<T> {
    /// Requests a reading that begins from now on: its number, and whether the caller begins it.
    /// One that runs began before, and may show what was before a change; one more follows it, for
    /// all requests that are made meanwhile.
    fn request(&self, now: u64) -> (u64, bool) {
        let mut inside = lock(&self.inside);
        let begins = inside.since.is_none();
        let number = inside.number + if begins { 1 } else { 2 };
        inside.requested = number;
        inside.since.get_or_insert(now);
        (number, begins)
    }

    /// A reading has ended. Whether the next one begins.
    fn end(&self, status: Option<T>, now: u64) -> bool {
        let mut inside = lock(&self.inside);
        inside.number += 1;
        inside.last = status.or(inside.last.take());
        let goes_on = inside.requested > inside.number;
        inside.since = goes_on.then_some(now);
        self.done.notify_all();
        goes_on
    }

    /// The state of this reading, or what was read last: after the deadline, or once a disk of the
    /// pool is silent.
    fn wait(&self, number: u64, deadline: u64, is_silent: impl Fn() -> bool) -> Option<T> {
        let mut inside = lock(&self.inside);
        while inside.number < number {
            let since = inside.since.unwrap_or_default();
            let end = deadline.min(since + LOOK_NS);
            let left = Duration::from_nanos(end.saturating_sub(SystemClock.monotonic_ns()));
            if left.is_zero() {
                break;
            }
            let waited = self.done.wait_timeout(inside, left.min(LOOK_AGAIN));
            let (now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            inside = now;
            if waited.timed_out() && is_silent() {
                break;
            }
        }
        inside.last.clone()
    }
}

#[cfg(test)]
mod tests;
