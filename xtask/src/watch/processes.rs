//! Processes of this machine, as far as the watch over tests needs them: their parents, and the
//! time that they have used and waited for a processor.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Clock ticks in a second, in `/proc/PID/stat`: the same on all Linux systems.
const TICKS: u64 = 100;

/// A process.
#[derive(Debug)]
struct Process {
    parent: u32,
    name: String,
    /// Ticks of its own and of its children that it has waited for.
    ticks: u64,
}

/// All processes.
#[derive(Debug, Default)]
pub struct Processes {
    all: BTreeMap<u32, Process>,
}

/// Times of a test's processes at one moment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Ticks of each process.
    pub used: BTreeMap<u32, u64>,
    /// Nanoseconds that each thread has waited for a processor.
    pub waited: BTreeMap<u32, u64>,
}

impl Sample {
    /// What was used and waited since an earlier sample. Processes that have ended since are left
    /// out; so is what a parent takes over from a child that was counted before.
    pub fn since(&self, earlier: &Self) -> (Duration, Duration) {
        let more = |now: &BTreeMap<u32, u64>, then: &BTreeMap<u32, u64>| -> u64 {
            let mut each = now.iter();
            each.by_ref()
                .map(|(id, value)| value.saturating_sub(then.get(id).copied().unwrap_or(0)))
                .sum()
        };
        let ticks = more(&self.used, &earlier.used);
        let nanos = more(&self.waited, &earlier.waited);
        (Duration::from_millis(ticks * 1000 / TICKS), Duration::from_nanos(nanos))
    }
}

impl Processes {
    /// Reads `/proc`; processes that end meanwhile are left out.
    pub fn read(proc: &Path) -> Self {
        let numbers = fs::read_dir(proc).into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let all = numbers.filter_map(|pid| {
            let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
            Some((pid, parse(&stat)?))
        });
        Self { all: all.collect() }
    }

    /// The tests that run below `runner`, with their names: the processes that a cargo-nextest
    /// started with `--exact`.
    pub fn tests(&self, runner: u32) -> BTreeMap<u32, String> {
        let below = self.below(runner);
        let is_nextest = |pid: &u32| self.all.get(pid).is_some_and(|p| p.name == "cargo-nextest");
        let started = below.iter().filter(|pid| {
            let parent = self.all.get(pid).map(|process| process.parent);
            parent.is_some_and(|parent| is_nextest(&parent))
        });
        started.filter_map(|pid| Some((*pid, test_name(*pid)?))).collect()
    }

    /// All processes below one, each after its parent.
    pub fn below(&self, pid: u32) -> Vec<u32> {
        let mut family = vec![pid];
        let mut at = 0;
        while let Some(&parent) = family.get(at) {
            let children = self.all.iter().filter(|(_, process)| process.parent == parent);
            for (child, _) in children {
                // The entries of `/proc` are of different moments: they could form a circle.
                if !family.contains(child) {
                    family.push(*child);
                }
            }
            at += 1;
        }
        family.split_off(1)
    }

    /// The times of a process and of all below it.
    pub fn sample(&self, proc: &Path, pid: u32) -> Sample {
        let mut sample = Sample::default();
        for pid in self.below(pid).into_iter().chain([pid]) {
            let ticks = self.all.get(&pid).map_or(0, |process| process.ticks);
            sample.used.insert(pid, ticks);
            let threads = fs::read_dir(proc.join(pid.to_string()).join("task"));
            for thread in threads.into_iter().flatten().flatten() {
                let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
                let waited = text.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                let id = thread.file_name().to_str().and_then(|n| n.parse().ok()).unwrap_or(pid);
                sample.waited.insert(id, waited);
            }
        }
        sample
    }
}

/// The name of the test that a process runs: what follows `--exact`.
fn test_name(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = words.next()?.into_owned();
    let mut words: Vec<_> = words.collect();
    let at = words.iter().position(|word| word == "--exact")?;
    // nextest writes `PROGRAM NAME --exact` or `PROGRAM --exact NAME`, as libtest takes both.
    let near = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
    let name = near.filter(|i| *i < words.len()).find(|i| !words[*i].starts_with('-'));
    Some(name.map_or(program, |i| words.swap_remove(i).into_owned()))
}

/// Parses `/proc/PID/stat`.
fn parse(stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    let fields: Vec<&str> = after.split(' ').collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    // Fields 14 to 17 of proc(5): utime, stime, cutime, cstime; field 3 is the first here.
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    Some(Process { parent: number(1)?.try_into().ok()?, name: name.to_owned(), ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_children_are_parsed() {
        let line = "7 (a (b) c) S 3 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7 8\n";
        let process = parse(line).unwrap();
        assert_eq!((process.parent, process.name.as_str(), process.ticks), (3, "a (b) c", 100));
        assert!(parse("7 (a) S").is_none());
    }
}
