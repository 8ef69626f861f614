//! A server's processes: those that listen, all that they have started, and what these have used
//! that have ended meanwhile.
//!
//! The CPU time of children that have ended is in their parent's `cutime` once it has waited for
//! them. A parent that ignores SIGCHLD, or that has ended before, leaves it nowhere: then the last
//! value that was seen counts. A server that has a control group without other processes in it is
//! counted by the group, which is exact.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::Root;
use crate::process::{self, TICK_NS};

/// `cutime` and `cstime` are each rounded down to a tick: less than this is not missing.
const ROUNDED_NS: u64 = 2 * TICK_NS;
/// Levels of control groups below a server's own that are read.
const GROUPS_DEEP: u32 = 8;

/// A process, as far as a family is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// When it started, in ticks since boot; with the number it names a process for good.
    pub started: u64,
    /// Whether it has ended and nothing has waited for it yet.
    pub zombie: bool,
    /// CPU time of its own threads, ns.
    pub own_ns: u64,
    /// CPU time of its children that it has waited for, ns.
    pub ended_ns: u64,
    /// Resident memory in pages.
    pub resident: u64,
}

impl Member {
    /// Parses `/proc/PID/stat` (proc(5)).
    pub fn parse(pid: u32, text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |n: usize| fields.get(n - 3).and_then(|w| w.parse::<u64>().ok());
        Some(Self {
            pid,
            parent: u32::try_from(field(4)?).ok()?,
            started: field(22)?,
            zombie: fields.first() == Some(&"Z"),
            own_ns: (field(14)? + field(15)?) * TICK_NS,
            ended_ns: (field(16)? + field(17)?) * TICK_NS,
            resident: field(24)?,
        })
    }

    fn all_ns(&self) -> u64 {
        self.own_ns + self.ended_ns
    }
}

/// A family at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FamilySample {
    /// The processes that live, those that listen first.
    pub processes: Vec<u32>,
    /// CPU time by its processes, ns.
    pub cpu_ns: u64,
    /// CPU time of its own control group, ns; `None` when other processes are in it, or when it has
    /// none.
    pub group_ns: Option<u64>,
    /// Resident memory in bytes; what processes share counts for each.
    pub resident: u64,
}

impl FamilySample {
    /// CPU time since `before`, ns: by the control group if that was the family's own both times.
    pub fn cpu_since(&self, before: &Self) -> u64 {
        match (before.group_ns, self.group_ns) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.cpu_ns.saturating_sub(before.cpu_ns),
        }
    }
}

/// A family that is followed.
#[derive(Debug, Default)]
pub struct Family {
    /// The processes that it began with, and when they started.
    roots: Vec<(u32, u64)>,
    members: HashMap<u32, Member>,
    /// The process that observes, which a server may have started: neither it nor what it starts,
    /// a load generator, belongs to the server.
    observer: Option<u32>,
    /// CPU time of processes that ended without their parent counting it.
    lost_ns: u64,
}

impl Family {
    /// The family of these processes; `None` when none of them lives.
    pub fn new(root: &Root, pids: &[u32]) -> Option<Self> {
        let started = |pid: &u32| Some((*pid, read(root, *pid)?.started));
        let roots: Vec<(u32, u64)> = pids.iter().filter_map(started).collect();
        let observer = root.is_real().then(std::process::id);
        (!roots.is_empty()).then_some(Self { roots, observer, ..Self::default() })
    }

    /// Its counters now; `None` when all processes that it began with have ended.
    pub fn sample(&mut self, root: &Root) -> Option<FamilySample> {
        let all = processes(root);
        if !self.advance(&all) {
            return None;
        }
        let first = self.roots.iter().map(|r| r.0).filter(|pid| self.members.contains_key(pid));
        let mut processes: Vec<u32> = first.collect();
        let mut others: Vec<u32> =
            self.members.keys().copied().filter(|pid| !processes.contains(pid)).collect();
        others.sort_unstable();
        processes.append(&mut others);
        let group = processes.first().and_then(|pid| Group::of(root, *pid));
        let pages: u64 = self.members.values().map(|m| m.resident).sum();
        Some(FamilySample {
            cpu_ns: self.cpu_ns(),
            group_ns: group.filter(|g| self.is_own(root, g)).and_then(|g| g.cpu_ns(root)),
            resident: pages * base::memory::page_size(),
            processes,
        })
    }

    /// CPU time of all that belong or belonged to it, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.lost_ns + self.members.values().map(Member::all_ns).sum::<u64>()
    }

    /// Takes in what lives now. Whether the family does.
    pub fn advance(&mut self, all: &[Member]) -> bool {
        let started: HashMap<u32, u64> = all.iter().map(|m| (m.pid, m.started)).collect();
        let lives = |pid: u32, at: u64| started.get(&pid) == Some(&at);
        let roots = self.roots.iter().copied();
        // A member that its parent has left behind is one still.
        let known = self.members.values().map(|m| (m.pid, m.started));
        let first: Vec<u32> =
            roots.chain(known).filter(|(pid, at)| lives(*pid, *at)).map(|p| p.0).collect();
        let now = descendants(all, &first, self.observer);
        let now: HashMap<u32, Member> = now.into_iter().map(|(pid, m)| (pid, m.clone())).collect();
        self.lost_ns += missing(&self.members, &now);
        self.members = now;
        self.roots.iter().any(|(pid, at)| lives(*pid, *at))
    }

    /// Whether a control group holds this family and nothing else.
    fn is_own(&self, root: &Root, group: &Group) -> bool {
        let inside = group.processes(root);
        let foreign = inside.iter().filter(|pid| !self.members.contains_key(pid));
        let just_started = |pid: &u32| {
            read(root, *pid).is_none_or(|member| self.members.contains_key(&member.parent))
        };
        let outside = self.members.values().filter(|m| !m.zombie && !inside.contains(&m.pid));
        foreign.into_iter().all(just_started)
            && outside.into_iter().all(|m| read(root, m.pid).is_none_or(|m| m.zombie))
    }
}

/// Of `all` processes those in `first` and what they have started, by their numbers; without one
/// that is left out and what only that has started.
pub fn descendants<'a>(
    all: &'a [Member],
    first: &[u32],
    left_out: Option<u32>,
) -> HashMap<u32, &'a Member> {
    let by_pid: HashMap<u32, &Member> = all.iter().map(|m| (m.pid, m)).collect();
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for member in all {
        children.entry(member.parent).or_default().push(member.pid);
    }
    let (mut found, mut waiting) = (HashMap::new(), first.to_vec());
    while let Some(pid) = waiting.pop() {
        let Some(member) = by_pid.get(&pid) else { continue };
        if found.insert(pid, *member).is_none() {
            let started = children.get(&pid).into_iter().flatten().copied();
            waiting.extend(started.filter(|child| Some(*child) != left_out));
        }
    }
    found
}

/// CPU time of members that have ended and that no surviving ancestor has counted.
fn missing(before: &HashMap<u32, Member>, now: &HashMap<u32, Member>) -> u64 {
    let same = |m: &Member| now.get(&m.pid).filter(|n| n.started == m.started);
    let mut expected: HashMap<u32, u64> = HashMap::new();
    let mut lost = 0;
    for gone in before.values().filter(|m| same(m).is_none()) {
        let mut at = gone;
        let heir = loop {
            match before.get(&at.parent).filter(|parent| parent.pid != at.pid) {
                None => break None,
                Some(parent) if same(parent).is_some() => break Some(parent.pid),
                Some(parent) => at = parent,
            }
        };
        match heir {
            Some(pid) => *expected.entry(pid).or_default() += gone.all_ns(),
            None => lost += gone.all_ns(),
        }
    }
    for (pid, expected) in expected {
        let ended = |of: &HashMap<u32, Member>| of.get(&pid).map_or(0, |m| m.ended_ns);
        let short = expected.saturating_sub(ended(now).saturating_sub(ended(before)));
        lost += if short > ROUNDED_NS { short } else { 0 };
    }
    lost
}

/// One process; its CPU time to the nanosecond where this machine's clocks can be read.
pub fn read(root: &Root, pid: u32) -> Option<Member> {
    let mut member = Member::parse(pid, &root.read(&format!("proc/{pid}/stat")).ok()?)?;
    if root.is_real()
        && let Some(ns) = i32::try_from(pid).ok().and_then(|pid| process::cpu_ns(pid).ok())
    {
        member.own_ns = ns;
    }
    Some(member)
}

/// All processes of the machine.
pub fn processes(root: &Root) -> Vec<Member> {
    pids(root).into_iter().filter_map(|pid| read(root, pid)).collect()
}

/// The numbers of all processes.
pub fn pids(root: &Root) -> Vec<u32> {
    root.list("proc").iter().filter_map(|name| name.parse().ok()).collect()
}

/// Of processes that hold the same socket those that started the others. The first process of the
/// machine, which opens sockets for services, is not a server if there is another one.
pub fn eldest(root: &Root, holders: &[u32]) -> Vec<u32> {
    let others: Vec<u32> = holders.iter().copied().filter(|pid| *pid != 1).collect();
    let holders = if others.is_empty() { holders.to_vec() } else { others };
    let parents: HashMap<u32, u32> =
        processes(root).into_iter().map(|m| (m.pid, m.parent)).collect();
    let set: HashSet<u32> = holders.iter().copied().collect();
    let below_another = |pid: u32| {
        let mut at = pid;
        while let Some(parent) = parents.get(&at).filter(|parent| **parent != at) {
            if set.contains(parent) {
                return true;
            }
            at = *parent;
        }
        false
    };
    holders.iter().copied().filter(|pid| !below_another(*pid)).collect()
}

/// A control group that counts CPU time.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    dir: String,
    /// Whether it is of version 2.
    unified: bool,
}

impl Group {
    /// That of a process; `None` when it is in the root group.
    fn of(root: &Root, pid: u32) -> Option<Self> {
        let groups = root.read(&format!("proc/{pid}/cgroup")).ok()?;
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (kinds, path) = (parts.next()?, parts.next()?);
            let counts = kinds.split(',').any(|kind| kind == "cpuacct");
            if path == "/" || !(kinds.is_empty() || counts) {
                return None;
            }
            let (roots, file): (&[&str], _) = match kinds.is_empty() {
                true => (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "cpu.stat"),
                false => (&["sys/fs/cgroup/cpuacct", "sys/fs/cgroup/cpu,cpuacct"], "cpuacct.usage"),
            };
            let dirs = roots.iter().map(|at| format!("{at}{path}"));
            let dir = dirs.into_iter().find(|dir| root.read(&format!("{dir}/{file}")).is_ok())?;
            Some(Self { dir, unified: kinds.is_empty() })
        })
    }

    fn cpu_ns(&self, root: &Root) -> Option<u64> {
        if self.unified {
            let text = root.read(&format!("{}/cpu.stat", self.dir)).ok()?;
            let value = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
            return Some(value.trim().parse::<u64>().ok()? * 1000);
        }
        root.read(&format!("{}/cpuacct.usage", self.dir)).ok()?.trim().parse().ok()
    }

    /// Its processes and those of the groups below it.
    fn processes(&self, root: &Root) -> HashSet<u32> {
        let mut found = HashSet::new();
        let mut dirs = vec![(self.dir.clone(), 0)];
        while let Some((dir, depth)) = dirs.pop() {
            let list = root.read(&format!("{dir}/cgroup.procs")).unwrap_or_default();
            found.extend(list.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
            if depth < GROUPS_DEEP {
                let below = root.folders(&dir).into_iter();
                dirs.extend(below.map(|name| (format!("{dir}/{name}"), depth + 1)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
