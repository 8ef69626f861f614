//! Runs a test runner and ends tests that hang. A test hangs if its processes make no progress, or
//! if they use more processor time than any test needs: never by wall time alone, which on a busy
//! machine is no evidence.
//!
//! Progress is processor time and time spent waiting for a processor, of a test's process and of
//! all below it. A test that waits for something that never happens has little of either, however
//! busy the machine is; one that only gets few turns on a processor has much of the second.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use processes::{Processes, Sample};

mod processes;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(2);
/// Progress below this part of an interval does not count: idle
/// servers use some hundredths of a processor.
const PROGRESS_PART: u32 = 10;
/// Time without progress after which a test is ended. Tests wait at most two minutes for timers.
const IDLE_MAX: Duration = Duration::from_secs(300);
/// Processor time after which a test is ended: ten times that of the longest one.
const BUSY_MAX: Duration = Duration::from_secs(1200);

/// What a test may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    idle: Duration,
    busy: Duration,
}

/// Why a test is ended.
#[derive(Debug, PartialEq, Eq)]
enum Hang {
    /// No progress for this long.
    Idle(Duration),
    /// This much processor time.
    Busy(Duration),
}

/// One test as it runs.
#[derive(Debug, Default)]
struct Test {
    last: Sample,
    idle: Duration,
    busy: Duration,
}

impl Test {
    /// Takes a sample `after` the one before.
    fn observe(&mut self, sample: Sample, after: Duration, limits: Limits) -> Option<Hang> {
        let (used, waited) = sample.since(&self.last);
        self.last = sample;
        self.busy += used;
        self.idle = match used + waited < after / PROGRESS_PART {
            true => self.idle + after,
            false => Duration::ZERO,
        };
        if self.busy > limits.busy {
            return Some(Hang::Busy(self.busy));
        }
        (self.idle >= limits.idle).then_some(Hang::Idle(self.idle))
    }
}

/// Runs `xtask watch [--idle SECONDS] [--busy SECONDS] COMMAND…`; the exit code is the command's.
///
/// # Errors
/// The command cannot be started, or the arguments are wrong.
pub fn run(args: &[&str]) -> Result<i32, String> {
    let mut limits = Limits { idle: IDLE_MAX, busy: BUSY_MAX };
    let mut args = args;
    while let [option @ ("--idle" | "--busy"), seconds, rest @ ..] = args {
        let value: u64 =
            seconds.parse().map_err(|_| format!("{option} {seconds}: not a number of seconds"))?;
        let limit = if *option == "--idle" { &mut limits.idle } else { &mut limits.busy };
        (*limit, args) = (Duration::from_secs(value), rest);
    }
    let [program, rest @ ..] = args else { return Err("watch: the command is missing".into()) };
    let mut command = Command::new(program);
    command.args(rest);
    let mut child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    let runner = child.id();
    let (ended, wait) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let status = child.wait();
        // Nothing is lost if the watch has ended before.
        ended.send(()).ok();
        status
    });
    let interval = INTERVAL.min(limits.idle / 4);
    let mut tests = BTreeMap::new();
    while wait.recv_timeout(interval).is_err() && !waiting.is_finished() {
        look(Path::new("/proc"), runner, interval, limits, &mut tests);
    }
    let status = waiting.join().map_err(|_| "the watch failed")?.map_err(|e| e.to_string())?;
    use std::os::unix::process::ExitStatusExt;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// Samples the tests below `runner`, and ends those that hang.
fn look(
    proc: &Path,
    runner: u32,
    after: Duration,
    limits: Limits,
    tests: &mut BTreeMap<u32, Test>,
) {
    let processes = Processes::read(proc);
    let running = processes.tests(runner);
    tests.retain(|pid, _| running.contains_key(pid));
    for (pid, name) in running {
        let sample = processes.sample(proc, pid);
        let Some(hang) = tests.entry(pid).or_default().observe(sample, after, limits) else {
            continue;
        };
        let why = match hang {
            Hang::Idle(time) => format!("no progress for {} s", time.as_secs()),
            Hang::Busy(time) => format!("{} s of processor time", time.as_secs()),
        };
        eprintln!("watch: {name} is ended: {why}");
        end(&processes, pid);
    }
}

/// A test and everything below it, in the order in which they are ended: a parent comes before its
/// children. Otherwise a test could continue after the end of its child, and pass.
fn in_order(processes: &Processes, pid: u32) -> Vec<u32> {
    [pid].into_iter().chain(processes.below(pid)).collect()
}

/// Ends a test and everything below it.
fn end(processes: &Processes, pid: u32) {
    let all = in_order(processes, pid);
    let all: Vec<String> = all.into_iter().map(|pid| pid.to_string()).collect();
    // The runner reports the test; a process that is gone meanwhile is no failure.
    Command::new("kill").arg("-KILL").args(all).process_group(0).status().ok();
}

#[cfg(test)]
mod tests;
