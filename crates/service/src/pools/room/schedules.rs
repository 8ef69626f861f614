//! Snapshots of shares by schedule, in the thread of pools: the helper makes and destroys them.
//! `host_pools::schedule` decides which ones. A share is looked at when a period of one of its
//! schedules begins, and again each minute as long as that has failed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::clock::{NS_PER_S, wall_ns};
use control::tree::Tree;
use host_pools::request::{PoolReply, PoolRequest};
use host_pools::schedule::{Every, Schedule, due, excess, is_scheduled};
use parking_lot::Mutex;

use super::PoolRoom;
use crate::problems::{Fault, Severity};
use crate::shares::node::scheduled;

/// How often the thread has a turn.
const TURN: Duration = Duration::from_secs(1);
/// The same of a server without pools, which is to rest.
const IDLE: Duration = Duration::from_secs(5);
/// Turns between two readings of the state of pools in which nothing runs.
const READ_TURNS: u64 = 5;
/// How long a share waits after its snapshot has failed.
const AGAIN_S: u64 = 60;

/// Periods of the schedules of a share.
type Periods = Vec<(Every, u32, i64)>;

/// What was done of a share, by pool and name.
#[derive(Default)]
pub(super) struct Made {
    shares: Mutex<BTreeMap<(String, String), Look>>,
}

/// The last look at a share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Look {
    periods: Periods,
    /// Seconds since 1970, and why it has failed.
    failed: Option<(u64, String)>,
}

impl Look {
    /// Whether a share is looked at again.
    fn is_due(&self, periods: &[(Every, u32, i64)], now_s: u64) -> bool {
        let waits = |at: u64| now_s >= at && now_s - at < AGAIN_S;
        self.periods.as_slice() != periods
            || self.failed.as_ref().is_some_and(|(at, _)| !waits(*at))
    }
}

fn periods(schedules: &[Schedule], now_s: u64) -> Periods {
    let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
    let one = |schedule: &Schedule| (schedule.every, schedule.keep, schedule.every.period(now_s));
    schedules.iter().map(one).collect()
}

/// Refuses the names that schedules use, for snapshots that a schedule would destroy.
///
/// # Errors
/// It is such a name.
pub(in crate::pools) fn check_name(name: &str) -> Result<(), String> {
    if is_scheduled(name) {
        return Err(format!("{name} is the name of a snapshot of a schedule: choose another one"));
    }
    Ok(())
}

impl Made {
    /// What has failed, as problems of the machine.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let shares = self.shares.lock();
        let one = |((pool, share), look): (&(String, String), &Look)| {
            let (_, why) = look.failed.as_ref()?;
            Some(Fault {
                id: format!("snapshot-{pool}-{share}"),
                severity: Severity::Minor,
                what: format!("A scheduled snapshot of the share {share} failed: {why}."),
                impact: "Changes of files since the last snapshot cannot be undone.".to_owned(),
                remedy: format!("Check the pool: storage pools {pool} show."),
            })
        };
        shares.iter().filter_map(one).collect()
    }
}

impl PoolRoom {
    /// Begins to make snapshots by schedule, and to read the state for statistics, until this is
    /// dropped.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(self: &Arc<Self>, tree: &Arc<Tree>) -> io::Result<()> {
        let (room, tree): (Weak<Self>, Weak<Tree>) = (Arc::downgrade(self), Arc::downgrade(tree));
        let follow = move || {
            let mut left = 0;
            while let (Some(room), Some(tree)) = (room.upgrade(), tree.upgrade()) {
                let all = scheduled(&tree.document());
                drop(tree);
                room.make_due(&all, wall_ns() / NS_PER_S);
                if left == 0 {
                    left = if room.read_pools() { 1 } else { READ_TURNS };
                }
                left -= 1;
                let pause = if all.is_empty() && !room.is_used() { IDLE } else { TURN };
                drop(room);
                std::thread::sleep(pause);
            }
        };
        std::thread::Builder::new().name("pools".to_owned()).spawn(follow).map(drop)
    }

    /// Reads the state for statistics, and serves the shares of a pool that is mounted now, which
    /// happens without a request when its disks are there. Whether a task runs.
    fn read_pools(&self) -> bool {
        let pools = self.pools_if_used();
        let runs = pools.iter().any(|pool| pool.task.is_some());
        if self.read.enter(pools) {
            self.serve_offline();
        }
        runs
    }

    /// Makes and destroys what is due of these shares.
    fn make_due(&self, all: &[(String, String, Vec<Schedule>)], now_s: u64) {
        let is_there = |(pool, share): &(String, String)| {
            all.iter().any(|(of, name, _)| of == pool && name == share)
        };
        self.made.shares.lock().retain(|key, _| is_there(key));
        for (pool, share, schedules) in all {
            let key = (pool.clone(), share.clone());
            let periods = periods(schedules, now_s);
            let before = self.made.shares.lock().get(&key).cloned().unwrap_or_default();
            if !before.is_due(&periods, now_s) {
                continue;
            }
            let of = OfShare { room: self, pool, share };
            let failed = renew(&of, schedules, now_s).err();
            if let Some(why) = failed.as_ref().filter(|_| before.failed.is_none()) {
                base::error!("pools", "a scheduled snapshot of the share {share} failed: {why}");
            }
            let look = Look { periods, failed: failed.map(|why| (now_s, why)) };
            self.made.shares.lock().insert(key, look);
        }
    }
}

/// The snapshots of a share, as the helper has them.
struct OfShare<'a> {
    room: &'a PoolRoom,
    pool: &'a str,
    share: &'a str,
}

/// What schedules need of the snapshots of a share.
trait Snapshots {
    /// Their names, in the order in which they were made.
    fn names(&self) -> Result<Vec<String>, String>;

    fn create(&self, snapshot: &str) -> Result<(), String>;

    fn destroy(&self, snapshot: &str) -> Result<(), String>;
}

impl OfShare<'_> {
    fn of(&self, snapshot: &str) -> [String; 3] {
        [self.pool, self.share, snapshot].map(str::to_owned)
    }
}

impl Snapshots for OfShare<'_> {
    fn names(&self) -> Result<Vec<String>, String> {
        let [pool, share, _] = self.of("");
        match self.room.request(PoolRequest::Snapshots { pool, share })? {
            PoolReply::Snapshots(all) => Ok(all.into_iter().map(|one| one.name).collect()),
            _ => Err("the helper is of another version: restart both".to_owned()),
        }
    }

    fn create(&self, snapshot: &str) -> Result<(), String> {
        let [pool, share, snapshot] = self.of(snapshot);
        self.room.done(PoolRequest::Snapshot { pool, share, snapshot }).map(drop)
    }

    fn destroy(&self, snapshot: &str) -> Result<(), String> {
        let [pool, share, snapshot] = self.of(snapshot);
        self.room.done(PoolRequest::DestroySnapshot { pool, share, snapshot }).map(drop)
    }
}

/// Makes what is due of a share, and destroys what is kept no more. One that fails does not prevent
/// the others: only what is destroyed gives a full pool room again.
///
/// # Errors
/// The first failure.
fn renew(of: &dyn Snapshots, schedules: &[Schedule], now_s: u64) -> Result<(), String> {
    let before = of.names()?;
    let created = due(schedules, &texts(&before), now_s);
    let created: Vec<_> = created.iter().map(|name| of.create(name)).collect();
    // Afterwards, so that never fewer snapshots exist than configured.
    let after = of.names()?;
    let destroyed = excess(schedules, &texts(&after));
    let destroyed = destroyed.iter().map(|name| of.destroy(name)).collect::<Vec<_>>();
    created.into_iter().chain(destroyed).collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
