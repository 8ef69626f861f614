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
#[derive(Default)]
struct Look {
    inside: Mutex<Inside>,
    done: Condvar,
}

#[derive(Default)]
struct Inside {
    /// When the reading that runs began (monotonic).
    since: Option<u64>,
    /// How many have ended.
    number: u64,
    last: Option<PoolStatus>,
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

    /// The states of these pools, each read in a thread of its own.
    pub(super) fn look_at(&self, pools: &[(String, Imported)]) -> Vec<PoolStatus> {
        let begun: Vec<_> =
            pools.iter().map(|(name, known)| self.begin_look(name, known)).collect();
        let deadline = SystemClock.monotonic_ns() + LOOK_NS;
        let all = pools.iter().zip(begun);
        all.map(|((name, known), (look, number))| {
            let status = look.wait(number, deadline);
            let status = status.unwrap_or_else(|| self.basic(name, known));
            self.judged(name, known, status)
        })
        .collect()
    }

    /// The reading of a state, and the number that it will have.
    fn begin_look(&self, name: &str, known: &Imported) -> (Arc<Look>, u64) {
        let look = lock(&self.watch.looks).entry(name.to_owned()).or_default().clone();
        let mut inside = lock(&look.inside);
        let number = inside.number + 1;
        if inside.since.is_some() {
            // What it reads may be from before this request: it is good only while it waits.
            drop(inside);
            return (look, number);
        }
        inside.since = Some(SystemClock.monotonic_ns());
        drop(inside);
        let (own, to) = (self.own.clone(), look.clone());
        let (name, known) = (name.to_owned(), known.clone());
        let read = move || {
            let status = own.upgrade().map(|keeper| keeper.look(&name, &known));
            to.end(status);
        };
        if std::thread::Builder::new().name("pool-look".to_owned()).spawn(read).is_err() {
            look.end(None);
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

impl Look {
    fn end(&self, status: Option<PoolStatus>) {
        let mut inside = lock(&self.inside);
        inside.since = None;
        inside.number += 1;
        inside.last = status.or(inside.last.take());
        self.done.notify_all();
    }

    /// The state of this reading, or what was read last.
    fn wait(&self, number: u64, deadline: u64) -> Option<PoolStatus> {
        let mut inside = lock(&self.inside);
        while inside.number < number {
            let since = inside.since.unwrap_or_default();
            let end = deadline.min(since + LOOK_NS);
            let left = end.saturating_sub(SystemClock.monotonic_ns());
            if left == 0 {
                break;
            }
            let waited = self.done.wait_timeout(inside, Duration::from_nanos(left));
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inside.last.clone()
    }
}

#[cfg(test)]
mod tests;
