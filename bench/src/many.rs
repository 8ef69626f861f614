//! Load over many connections from few threads: each thread polls its share of them. With a thread
//! for every connection, context switches would dominate on the machine that both sides share.

use std::io;
use std::time::Duration;

use base::clock::{Deadline, NS_PER_S, monotonic_ns};
use lab::client::{self, Client, Completion, FileSet, Op, Options, Target};
use lab::workload::{Shape, Workload};

use crate::cpu;
use crate::load::Figure;
use crate::poll::Poll;

/// Threads of the generator.
const THREADS: usize = 2;
/// Timeout without any data.
const SILENCE: Duration = Duration::from_secs(10);
/// A receive that brought no whole reply waits this long for the rest.
const REST: Duration = Duration::from_millis(1);

/// One connection and what runs on it.
struct Lane {
    client: Box<dyn Client>,
    work: Workload,
    running: Vec<Option<Op>>,
    set: FileSet,
}

/// Connected and prepared lanes.
pub struct Lanes {
    threads: Vec<Vec<Lane>>,
}

/// What all lanes are like.
pub struct Wanted<'a> {
    /// Target URL.
    pub url: &'a str,
    /// The workload of each.
    pub shape: Shape,
    /// How many.
    pub connections: u32,
    /// Operations in flight on each.
    pub depth: u32,
    /// Number of the first, after which its files are named.
    pub first: u32,
}

impl Lanes {
    /// Connects, and makes the files.
    ///
    /// # Errors
    /// When the target refuses, or grants fewer requests at once than wanted.
    pub fn ready(wanted: &Wanted<'_>) -> io::Result<Self> {
        let target = Target::parse(wanted.url).map_err(io::Error::other)?;
        let mut threads: Vec<Vec<Lane>> = (0..THREADS).map(|_| Vec::new()).collect();
        for number in wanted.first..wanted.first + wanted.connections {
            let options = Options { bind: None, seed: 1, check_one_in: 0, slots: wanted.depth };
            let mut client = client::open(&target, &options).map_err(io::Error::other)?;
            if let Some(granted) = client.granted() {
                return Err(io::Error::other(format!("only {granted} slots were granted")));
            }
            let size = wanted.shape.file_size;
            let set = FileSet { client: number, files: wanted.shape.files, size };
            client.prepare(&set).map_err(io::Error::other)?;
            let work = Workload::new(wanted.shape.clone(), u64::from(number));
            let running = vec![None; wanted.depth as usize];
            threads[number as usize % THREADS].push(Lane { client, work, running, set });
        }
        Ok(Self { threads })
    }

    /// Drives all lanes for `time`, and measures the CPU time of the process `server`.
    ///
    /// # Errors
    /// When a connection is lost or any operation fails.
    pub fn run(&mut self, server: u32, time: Duration) -> io::Result<Figure> {
        let (begin, until) = (monotonic_ns(), Deadline::after(time));
        let (server_before, own_before) = (cpu::of(server)?, cpu::own()?);
        let sums: Vec<io::Result<(u64, u64)>> = std::thread::scope(|scope| {
            let workers: Vec<_> = self
                .threads
                .iter_mut()
                .map(|lanes| scope.spawn(move || drive(lanes, until)))
                .collect();
            let panicked = |_| Err(io::Error::other("a driver panicked"));
            workers.into_iter().map(|w| w.join().unwrap_or_else(panicked)).collect()
        });
        let wall = (monotonic_ns() - begin) as f64 / NS_PER_S as f64;
        let (server, own) = (cpu::of(server)? - server_before, cpu::own()? - own_before);
        let (mut ops, mut bytes) = (0, 0);
        for sum in sums {
            let (more, moved) = sum?;
            (ops, bytes) = (ops + more, bytes + moved);
        }
        Ok(Figure {
            ops_s: ops as f64 / wall,
            bytes_s: bytes as f64 / wall,
            server_us_op: server * 1e6 / ops.max(1) as f64,
            server_s_gb: server * 1e9 / bytes.max(1) as f64,
            client_us_op: own * 1e6 / ops.max(1) as f64,
        })
    }

    /// Removes the files.
    pub fn clean(self) {
        for mut lane in self.threads.into_iter().flatten() {
            let _ = lane.client.clean(&lane.set);
        }
    }
}

/// Keeps the lanes full until the time has come, and finishes what is in flight.
fn drive(lanes: &mut [Lane], until: Deadline) -> io::Result<(u64, u64)> {
    let poll = Poll::new()?;
    let mut open = 0usize;
    for (n, lane) in lanes.iter_mut().enumerate() {
        let socket = lane.client.descriptor().ok_or_else(|| io::Error::other("no socket"))?;
        poll.add(socket, n)?;
        for slot in 0..lane.running.len() as u32 {
            open += usize::from(lane.start(slot)?);
        }
        lane.client.flush().map_err(io::Error::other)?;
    }
    let (mut ops, mut bytes, mut done) = (0, 0, Vec::new());
    let mut ready = Vec::new();
    while open > 0 {
        poll.wait(&mut ready, SILENCE)?;
        if ready.is_empty() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer on any connection"));
        }
        let more = !until.passed();
        for lane in &ready {
            let Some(lane) = lanes.get_mut(*lane) else { continue };
            done.clear();
            lane.client.wait(REST, &mut done).map_err(io::Error::other)?;
            for Completion { slot, outcome } in done.drain(..) {
                let moved = outcome.map_err(|f| io::Error::other(format!("{f:?}")))?;
                let op = lane.running.get_mut(slot as usize).and_then(Option::take);
                if let Some(op) = op {
                    lane.work.done(slot, op, outcome);
                }
                (ops, bytes, open) = (ops + 1, bytes + u64::from(moved), open - 1);
                if more {
                    open += usize::from(lane.start(slot)?);
                }
            }
            lane.client.flush().map_err(io::Error::other)?;
        }
    }
    Ok((ops, bytes))
}

impl Lane {
    fn start(&mut self, slot: u32) -> io::Result<bool> {
        let Some(op) = self.work.next(slot) else { return Ok(false) };
        if let Some(place) = self.running.get_mut(slot as usize) {
            *place = Some(op);
        }
        self.client.submit(slot, op).map_err(io::Error::other)?;
        Ok(true)
    }
}
