//! A synthetic system: clients, a link, a server with cores and threads, a disk and a delay behind
//! it, simulated operation by operation in virtual time.

use crate::verdict::stats::uniform;
use base::random::SeededRandom;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is planted. Times are microseconds per operation; what is 0 takes none.
#[derive(Debug, Clone, Default)]
pub struct System {
    pub seed: u64,
    /// Clients, threads of each.
    pub schedule: Vec<(u32, u32)>,
    pub generator_us: f64,
    /// Operations per second of the link.
    pub link_ops: f64,
    pub cores: usize,
    /// Threads of the server; fewer than cores leave some idle.
    pub threads: usize,
    pub cpu_us: f64,
    /// Cores that the server may use in each 100 ms.
    pub quota: Option<f64>,
    pub disk_us: f64,
    /// Operations per second that are let through to the disk.
    pub cap_ops: Option<f64>,
    /// Operations after which everything is in memory.
    pub warm_after: Option<u64>,
    /// A delay in which nothing is busy.
    pub delay_us: f64,
    /// From this time of the run on, s, the delay is another.
    pub step_at_s: Option<(f64, f64)>,
    /// γ, α, β: the delay grows with what is in flight.
    pub usl: Option<(f64, f64, f64)>,
    /// Clients use the cores of the server.
    pub same_host: bool,
    /// Nothing of the server is observed.
    pub unseen: bool,
    /// The device below the share is observed, not only its busy time.
    pub observed_device: bool,
    /// Of the server only one of its processes is observed.
    pub listener_only: bool,
}

/// Where an operation goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Generate,
    Link,
    Serve,
    Disk,
    Delay,
    Done,
}

/// Some equal servers with one queue.
#[derive(Debug, Clone, Default)]
pub struct Station {
    free_us: Vec<f64>,
    /// Busy time of each in the counted time, µs.
    pub busy_us: Vec<f64>,
}

impl Station {
    fn new(servers: usize) -> Self {
        Self { free_us: vec![0.0; servers], busy_us: vec![0.0; servers] }
    }

    fn serve(&mut self, now: f64, takes: f64, counted: (f64, f64)) -> f64 {
        let first = self.free_us.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        let (i, free) = first.map_or((0, 0.0), |(i, free)| (i, *free));
        let (begin, end) = (now.max(free), now.max(free) + takes);
        self.free_us[i] = end;
        self.busy_us[i] += (end.min(counted.1) - begin.max(counted.0)).max(0.0);
        end
    }

    /// Busy servers on average.
    pub fn used(&self, counted_us: f64) -> f64 {
        self.busy_us.iter().sum::<f64>() / counted_us
    }
}

/// One step as it was simulated.
#[derive(Debug, Clone, Default)]
pub struct Simulated {
    pub load: (u32, u32),
    /// Operations in each window that counts.
    pub windows: Vec<u64>,
    pub counted_us: f64,
    pub latency_sum_us: f64,
    pub generators: Vec<Station>,
    pub server_us: f64,
    pub generator_us: f64,
    pub threads: Station,
    pub host: Station,
    pub disk: Station,
    pub link: Station,
    pub disk_ops: u64,
    pub throttled_us: f64,
}

/// Operations so far and the time of the run continue from step to step.
#[derive(Debug, Clone)]
pub struct Run {
    pub now_us: f64,
    pub done: u64,
    random: SeededRandom,
}

pub const WINDOW_US: f64 = 100_000.0;
pub const WINDOWS: usize = 5;
const WARMUP_US: f64 = 100_000.0;
const PERIOD_US: f64 = 100_000.0;

impl Run {
    pub fn new(seed: u64) -> Self {
        Self { now_us: 0.0, done: 0, random: SeededRandom::new(seed) }
    }

    /// A number from 1 − `by` to 1 + `by`.
    pub fn vary(&mut self, by: f64) -> f64 {
        1.0 + by * (2.0 * uniform(&mut self.random) - 1.0)
    }
}

/// An operation between two stages.
type Event = Reverse<(u64, u32, Stage)>;

/// Simulates one step.
pub fn step(system: &System, load: (u32, u32), run: &mut Run) -> Simulated {
    let begin = run.now_us + WARMUP_US;
    let counted = (begin, begin + WINDOWS as f64 * WINDOW_US);
    let all = load.0 * load.1;
    let mut now = Simulated {
        load,
        windows: vec![0; WINDOWS],
        counted_us: counted.1 - counted.0,
        generators: vec![Station::new(1); load.0 as usize],
        threads: Station::new(system.threads),
        host: Station::new(system.cores),
        disk: Station::new(1),
        link: Station::new(1),
        ..Simulated::default()
    };
    let mut shaped = Shaped::default();
    let mut started = vec![0.0; all as usize];
    let mut events: BinaryHeap<Event> = BinaryHeap::new();
    for n in 0..all {
        events.push(Reverse((to_ns(run.now_us), n, Stage::Generate)));
    }
    while let Some(Reverse((at_ns, n, stage))) = events.pop() {
        let at = at_ns as f64 / 1e3;
        if at >= counted.1 {
            break;
        }
        let (ends, next) = match stage {
            Stage::Done => {
                run.done += 1;
                if at >= counted.0 {
                    now.windows[(((at - counted.0) / WINDOW_US) as usize).min(WINDOWS - 1)] += 1;
                    now.latency_sum_us += at - started[n as usize];
                }
                (at, Stage::Generate)
            }
            stage => advance(system, run, &mut now, &mut shaped, (at, n, stage), counted),
        };
        if next == Stage::Link {
            started[n as usize] = ends;
        }
        events.push(Reverse((to_ns(ends), n, next)));
    }
    run.now_us = counted.1;
    now
}

fn to_ns(us: f64) -> u64 {
    (us * 1e3) as u64
}

/// What lets through only so much.
#[derive(Default)]
struct Shaped {
    period: u64,
    used_us: f64,
    disk_free_us: f64,
}

impl Shaped {
    /// When the server may run for this long, by its quota.
    fn quota(&mut self, system: &System, now: &mut Simulated, at: f64, takes: f64) -> f64 {
        let Some(cores) = system.quota else { return at };
        let period = (at / PERIOD_US) as u64;
        if period > self.period {
            (self.period, self.used_us) = (period, 0.0);
        }
        let mut begin = at.max(self.period as f64 * PERIOD_US);
        if self.used_us + takes > cores * PERIOD_US {
            self.period += 1;
            self.used_us = 0.0;
            let next = self.period as f64 * PERIOD_US;
            now.throttled_us += next - begin.min(next);
            begin = next;
        }
        self.used_us += takes;
        begin
    }
}

/// One stage of an operation: when it ends and what comes next.
fn advance(
    system: &System,
    run: &mut Run,
    now: &mut Simulated,
    shaped: &mut Shaped,
    (at, n, stage): (f64, u32, Stage),
    counted: (f64, f64),
) -> (f64, Stage) {
    let inside = |from: f64, to: f64| (to.min(counted.1) - from.max(counted.0)).max(0.0);
    match stage {
        Stage::Generate => {
            let takes = system.generator_us * run.vary(0.5);
            let client = (n % now.load.0) as usize;
            let end = now.generators[client].serve(at, takes, counted);
            let end =
                if system.same_host { now.host.serve(end - takes, takes, counted) } else { end };
            now.generator_us += inside(end - takes, end);
            (end, Stage::Link)
        }
        Stage::Link => {
            let end = now.link.serve(at, 1e6 / system.link_ops, counted);
            (end, Stage::Serve)
        }
        Stage::Serve => {
            let takes = system.cpu_us * run.vary(0.5);
            let at = shaped.quota(system, now, at, takes);
            let end = now.threads.serve(at, takes, counted);
            let end = now.host.serve(end - takes, takes, counted);
            now.server_us += inside(end - takes, end);
            let cold = system.warm_after.map_or(1.0, |all| 1.0 - run.done as f64 / all as f64);
            let misses = system.disk_us > 0.0 && (run.vary(1.0) / 2.0) < cold;
            (end, if misses { Stage::Disk } else { Stage::Delay })
        }
        Stage::Disk => {
            let mut begin = at;
            if let Some(cap) = system.cap_ops {
                begin = at.max(shaped.disk_free_us);
                shaped.disk_free_us = begin + 1e6 / cap;
            }
            let takes = system.disk_us * run.vary(0.5);
            let end = now.disk.serve(begin, takes, counted);
            now.disk_ops += u64::from(end >= counted.0 && end < counted.1);
            (end, Stage::Delay)
        }
        Stage::Delay | Stage::Done => {
            let delay = match (system.usl, system.step_at_s) {
                (Some((gamma, alpha, beta)), _) => {
                    let n = f64::from(now.load.0 * now.load.1);
                    1e6 / gamma * (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0))
                }
                (None, Some((from_s, then))) if at >= from_s * 1e6 => then,
                _ => system.delay_us,
            };
            (at + delay * run.vary(0.2), Stage::Done)
        }
    }
}
