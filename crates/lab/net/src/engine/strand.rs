//! One thread of an end: it performs its acts, waits in slices of time, and counts.

mod conn;

use crate::count::{ConnCount, Fault, Key, TcpAccount};
use crate::engine::windows::Tally;
use crate::engine::{Command, Done, Drained, Shared, Timing};
use crate::limits::{LATENCIES, RECEIVE_MAX, SLICE};
use crate::machine::{Machine, Next};
use crate::profile::Size;
use crate::script::{Act, Kind, Script, TransactionScript, bytes_of};
use conn::{Broken, Conns, Progress};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A thread.
pub struct Strand {
    number: u32,
    script: Arc<Script>,
    shared: Arc<Shared>,
    conns: Conns,
    tally: Tally,
    buffer: Vec<u8>,
    /// It has failed and takes part in no transaction any more.
    failed: bool,
    latencies: Vec<(u32, u32, u64)>,
}

/// How an act ended.
enum Outcome {
    /// With this number of bytes.
    Ok(u32),
    /// The transaction has ended before it.
    Stopped,
    /// It failed.
    Failed(String),
}

impl From<Broken> for Outcome {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Stopped => Self::Stopped,
            Broken::Failed(what) => Self::Failed(what),
        }
    }
}

impl Strand {
    /// The thread of this number.
    pub fn new(number: u32, script: Arc<Script>, shared: Arc<Shared>) -> Self {
        let received = script.transactions.iter().flat_map(|t| &t.acts).map(|act| match act.kind {
            Kind::Receive(size) => size.max,
            _ => 0,
        });
        let bytes = received.max().unwrap_or(0).clamp(1, RECEIVE_MAX) as usize;
        let (conns, tally) = (Conns::new(number), Tally::default());
        let (buffer, latencies) = (vec![0; bytes], Vec::with_capacity(LATENCIES));
        Self { number, script, shared, conns, tally, buffer, failed: false, latencies }
    }

    /// Obeys until its end is dropped.
    pub fn run(mut self, inbox: &Receiver<Command>) {
        while let Ok(command) = inbox.recv() {
            let shared = Arc::clone(&self.shared);
            match command {
                Command::Run(timing) => {
                    let done = self.transaction(&timing);
                    // Nothing waits any more if the end is gone.
                    let _gone = shared.done.send(done);
                }
                Command::Drain { expected } => {
                    let _gone = shared.drained.send(self.drain(&expected));
                }
                Command::Close => {
                    let _gone = shared.closed.send(self.conns.close_all());
                }
            }
        }
    }

    fn transaction(&mut self, timing: &Timing) -> Done {
        let Timing { transaction, begin_ns, window_ns } = *timing;
        let (script, shared) = (Arc::clone(&self.script), Arc::clone(&self.shared));
        let mut done = Done { thread: self.number, ..Done::default() };
        let Some(acts) = script.transactions.get(transaction as usize) else { return done };
        if !self.failed {
            sleep_until(&shared, begin_ns);
            done.begun_ns = (shared.now)();
            self.tally = Tally::new(begin_ns, window_ns);
            let fault = self.perform(transaction, acts, begin_ns);
            done.ended_ns = (shared.now)();
            done.until_ns = Machine::new(acts, begin_ns).until_ns().unwrap_or(u64::MAX);
            self.flush();
            self.tally.flush(&shared.windows);
            self.failed = fault.is_some();
            done.fault = fault;
        }
        done.counts = self.conns.counts();
        if self.failed {
            // Its peers see the end of their connections instead of waiting.
            done.accounts = self.conns.close_all();
        }
        done
    }

    /// Performs a transaction; the fault that ended it early.
    fn perform(
        &mut self,
        transaction: u32,
        script: &TransactionScript,
        begin_ns: u64,
    ) -> Option<Fault> {
        let shared = Arc::clone(&self.shared);
        let mut machine = Machine::new(script, begin_ns);
        let until_ns = machine.until_ns().unwrap_or(u64::MAX);
        let progress = |timeout: Option<u64>| Progress {
            now: shared.now,
            until_ns: until_ns.min(shared.stop_ns.load(Ordering::Relaxed)),
            stop_ns: &shared.stop_ns,
            // A transaction of a duration ends then at the latest. Until then TCP may repeat a
            // segment at ever longer intervals, which is no fault of an end; bytes that never
            // arrive are found when what is missing is received.
            timeout_ns: timeout
                .or(script.duration_ns)
                .unwrap_or(shared.silence_ns.saturating_add(script.pause_ns)),
        };
        let mut now_ns = (shared.now)();
        loop {
            let stopped = now_ns >= shared.stop_ns.load(Ordering::Relaxed);
            let (index, n) = match machine.next_act(now_ns, stopped) {
                Next::End => return None,
                Next::Wait(at_ns) => {
                    sleep_slice(at_ns.saturating_sub(now_ns));
                    now_ns = (shared.now)();
                    continue;
                }
                Next::Act { act, n } => (act, n),
            };
            let act = script.acts.get(index)?;
            let outcome = self.act(act, (transaction, n), &progress(act.timeout_ns));
            let ended_ns = match &outcome {
                // A transfer has read the clock when it counted its last bytes.
                Outcome::Ok(bytes) if *bytes > 0 => self.tally.latest_ns(),
                _ => (shared.now)(),
            };
            match outcome {
                Outcome::Ok(bytes) => {
                    self.tally.at(ended_ns, &shared.windows).calls += 1;
                    self.count(act.flowop, bytes, ended_ns.saturating_sub(now_ns));
                }
                Outcome::Stopped => return None,
                Outcome::Failed(what) => {
                    shared.failed(self.script.group, act.flowop);
                    if !act.canfail {
                        return Some(self.fault(act, what));
                    }
                }
            }
            now_ns = ended_ns;
            machine.done();
        }
    }

    fn fault(&self, act: &Act, what: String) -> Fault {
        let host = self.conns.host_of(act.conn).unwrap_or(match act.kind {
            Kind::Open(host, _) | Kind::Accept(host, _) => host,
            _ => 0,
        });
        Fault {
            key: Key { host, thread: self.number, conn: act.conn },
            group: self.script.group,
            line: act.line,
            flowop: act.name.to_owned(),
            what,
        }
    }

    #[inline]
    fn act(&mut self, act: &Act, (transaction, n): (u32, u64), progress: &Progress<'_>) -> Outcome {
        let (seed, thread) = (self.shared.seed, self.number);
        let bytes = |size: Size| bytes_of(size, seed, thread, (transaction, act.flowop), n);
        let counted = (&mut self.tally, &self.shared.windows);
        let done = match &act.kind {
            Kind::Send(size) => {
                self.conns.send(act.conn, &self.shared.content, bytes(*size), progress, counted)
            }
            Kind::Receive(size) => {
                self.conns.receive(act.conn, &mut self.buffer, bytes(*size), progress, counted)
            }
            Kind::SendFile(bytes) => match &self.shared.file {
                Some(file) => self.conns.send_file(act.conn, file, *bytes, progress, counted),
                None => Err(Broken::Failed("there is no file".to_owned())),
            },
            Kind::Open(host, endpoint) => {
                self.conns.open(act.conn, (*host, endpoint), &self.shared, progress)
            }
            Kind::Accept(host, endpoint) => {
                self.conns.accept(act.conn, (*host, endpoint), &self.shared, progress)
            }
            Kind::Close => self.conns.close(act.conn),
            Kind::Think { ns, busy } => think(*ns, *busy, progress),
            Kind::Nop => Ok(0),
        };
        done.map_or_else(Outcome::from, Outcome::Ok)
    }

    #[inline]
    fn count(&mut self, flowop: u32, bytes: u32, ns: u64) {
        self.latencies.push((flowop, bytes, ns));
        if self.latencies.len() >= LATENCIES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.shared.record(self.script.group, &self.latencies);
        self.latencies.clear();
    }

    /// Receives what the other ends have sent in the transaction and this one has not taken.
    fn drain(&mut self, expected: &BTreeMap<(u32, u32), u64>) -> Drained {
        let shared = Arc::clone(&self.shared);
        let progress = Progress {
            now: shared.now,
            until_ns: shared.stop_ns.load(Ordering::Relaxed),
            stop_ns: &shared.stop_ns,
            timeout_ns: shared.silence_ns,
        };
        for ((host, conn), bytes) in expected {
            self.conns.drain((*host, *conn), *bytes, &mut self.buffer, &shared, &progress);
        }
        let counts: Vec<ConnCount> = self.conns.counts();
        self.conns.next_transaction();
        Drained { thread: self.number, counts }
    }
}

/// Waits without or with a busy processor.
fn think(ns: u64, busy: bool, progress: &Progress<'_>) -> Result<u32, Broken> {
    let begin_ns = (progress.now)();
    loop {
        let now_ns = (progress.now)();
        let left = ns.saturating_sub(now_ns.saturating_sub(begin_ns));
        if left == 0 {
            return Ok(0);
        }
        if progress.stopped(now_ns) {
            return Err(Broken::Stopped);
        }
        if busy {
            std::hint::spin_loop();
        } else {
            sleep_slice(left);
        }
    }
}

/// Sleeps until this time of the clock, or a stop.
fn sleep_until(shared: &Shared, at_ns: u64) {
    loop {
        let now_ns = (shared.now)();
        if now_ns >= at_ns || now_ns >= shared.stop_ns.load(Ordering::Relaxed) {
            return;
        }
        sleep_slice(at_ns - now_ns);
    }
}

fn sleep_slice(ns: u64) {
    std::thread::sleep(Duration::from_nanos(ns).min(SLICE));
}

/// TCP statistics of the connections of a thread.
pub type Accounts = Vec<(Key, TcpAccount)>;
