//! An end of a run: its threads, its listeners, transaction after transaction. All threads begin a
//! transaction at the same moment; what was sent in it and not received when it ends is received
//! afterwards, so that both ends count the same bytes.
//!
//! - `lobby`: connections that arrive; `strand`: one thread; `windows`: what was counted when.

mod lobby;
mod strand;
mod windows;

use crate::count::{ConnCount, Ended, Fault, FlowopCount, Key, TcpAccount};
use crate::limits::{SILENCE_EACH, SILENCE_MAX, STACK, TRANSFER_MAX};
use crate::profile::{Profile, Protocol};
use crate::script::{End, Kind, Script, scripts};
use crate::socket;
use base::random::{Random, SeededRandom};
use hdrhistogram::Histogram;
use lobby::Lobby;
pub use lobby::SECRET;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use strand::{Accounts, Strand};
use windows::{Windows, whole};

/// Largest latency in nanoseconds: one hour.
const LATENCY_MAX: u64 = 3_600_000_000_000;

/// What an end is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The profile, all variables replaced.
    pub profile: Profile,
    /// Which end.
    pub end: End,
    /// Secret of the run, with which connections begin.
    pub secret: [u8; SECRET],
    /// Seed of random sizes and of the content.
    pub seed: u64,
    /// The one address to listen at.
    pub bind: Option<IpAddr>,
}

/// Where an end listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// TCP.
    pub tcp: u16,
    /// UDP.
    pub udp: u16,
}

/// Where another end is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Index of the host of the far end of the two.
    pub host: u32,
    /// Address.
    pub address: IpAddr,
    /// Its ports.
    pub ports: Ports,
}

/// What all threads of an end share.
pub struct Shared {
    /// The clock.
    pub now: fn() -> u64,
    /// When the running transaction is stopped, ns.
    pub stop_ns: AtomicU64,
    /// How long a connection may make no progress, ns.
    pub silence_ns: u64,
    /// Seed of random sizes.
    pub seed: u64,
    /// Secret of the run.
    pub secret: [u8; SECRET],
    /// What is sent.
    pub content: Vec<u8>,
    /// The file that is sent, if one is.
    pub file: Option<File>,
    /// Connections that arrive.
    pub lobby: Arc<Lobby>,
    /// What threads report.
    pub done: Sender<Done>,
    /// The same after draining.
    pub drained: Sender<Drained>,
    /// The same at the end.
    pub closed: Sender<Accounts>,
    /// What all threads have counted in the running transaction.
    pub windows: Windows,
    peers: OnceLock<Vec<Peer>>,
    flowops: Mutex<BTreeMap<(u32, u32), FlowopCount>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn latencies() -> Histogram<u64> {
    // The bounds are constants that the constructor accepts.
    Histogram::new_with_bounds(1, LATENCY_MAX, 3).unwrap_or_else(|_| unreachable!())
}

impl Shared {
    /// Where the other end of a host listens.
    pub fn address(&self, host: u32, protocol: Protocol) -> Option<SocketAddr> {
        let peer = self.peers.get()?.iter().find(|peer| peer.host == host)?;
        let port = match protocol {
            Protocol::Tcp => peer.ports.tcp,
            Protocol::Udp => peer.ports.udp,
        };
        Some(SocketAddr::new(peer.address, port))
    }

    /// Adds calls of threads of a group: flowop, bytes, ns.
    pub fn record(&self, group: u32, calls: &[(u32, u32, u64)]) {
        let mut flowops = lock(&self.flowops);
        for same in calls.chunk_by(|a, b| a.0 == b.0) {
            let Some((flowop, ..)) = same.first() else { continue };
            let count = flowops.entry((group, *flowop)).or_insert_with(|| none(group, *flowop));
            count.calls += same.len() as u64;
            for (_, bytes, ns) in same {
                count.bytes += u64::from(*bytes);
                count.latency.saturating_record((*ns).max(1));
            }
        }
    }

    /// Counts a call that failed.
    pub fn failed(&self, group: u32, flowop: u32) {
        let mut flowops = lock(&self.flowops);
        flowops.entry((group, flowop)).or_insert_with(|| none(group, flowop)).failed += 1;
    }
}

fn none(group: u32, flowop: u32) -> FlowopCount {
    FlowopCount { group, flowop, calls: 0, failed: 0, bytes: 0, latency: latencies() }
}

/// What a thread is to do.
pub enum Command {
    /// A transaction.
    Run(Timing),
    /// Receive what is missing: bytes by host and connection.
    Drain {
        /// What the other ends have sent.
        expected: BTreeMap<(u32, u32), u64>,
    },
    /// Close all connections.
    Close,
}

/// A thread after a transaction.
#[derive(Default)]
pub struct Done {
    /// Its number.
    pub thread: u32,
    /// When it began, ns; 0 if it did not.
    pub begun_ns: u64,
    /// When it ended, ns.
    pub ended_ns: u64,
    /// When it had to end by its duration, ns.
    pub until_ns: u64,
    /// Bytes by connection.
    pub counts: Vec<ConnCount>,
    /// Why it ended early.
    pub fault: Option<Fault>,
    /// TCP statistics of its connections, if they are closed because of the fault.
    pub accounts: Accounts,
}

/// A thread that has received what was missing.
pub struct Drained {
    /// Its number.
    pub thread: u32,
    /// Bytes of the transaction by connection.
    pub counts: Vec<ConnCount>,
}

/// An end.
pub struct Engine {
    shared: Arc<Shared>,
    threads: BTreeMap<u32, Sender<Command>>,
    done: Receiver<Done>,
    drained: Receiver<Drained>,
    closed: Receiver<Accounts>,
    accounts: BTreeMap<Key, TcpAccount>,
}

/// Windows of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Number of the transaction.
    pub transaction: u32,
    /// When it begins, ns.
    pub begin_ns: u64,
    /// Length of a window, ns.
    pub window_ns: u64,
}

impl Engine {
    /// Listens, and starts the threads.
    ///
    /// # Errors
    /// There are no ports, threads or memory.
    pub fn new(setup: &Setup, now: fn() -> u64) -> io::Result<Self> {
        socket::raise_descriptor_limit();
        let scripts = scripts(&setup.profile, setup.end);
        let threads = setup.profile.threads();
        let lobby = Lobby::open(socket::listen(setup.bind)?, threads, setup.secret)?;
        let content = content(&scripts, setup.seed);
        let files = kinds(&scripts).any(|kind| matches!(kind, Kind::SendFile(_)));
        let file = if files { Some(socket::memory_file(&content)?) } else { None };
        let (done_to, done) = channel();
        let (drained_to, drained) = channel();
        let (closed_to, closed) = channel();
        let shared = Arc::new(Shared {
            now,
            stop_ns: AtomicU64::new(u64::MAX),
            silence_ns: (SILENCE_MAX + SILENCE_EACH * threads).as_nanos() as u64,
            seed: setup.seed,
            secret: setup.secret,
            content,
            file,
            lobby,
            done: done_to,
            drained: drained_to,
            closed: closed_to,
            windows: Windows::new(),
            peers: OnceLock::new(),
            flowops: Mutex::default(),
        });
        let threads = start(&scripts, &shared)?;
        Ok(Self { shared, threads, done, drained, closed, accounts: BTreeMap::new() })
    }

    /// Where it listens.
    pub fn ports(&self) -> Ports {
        Ports { tcp: self.shared.lobby.tcp, udp: self.shared.lobby.udp }
    }

    /// Where the other ends are; the first call counts.
    pub fn meet(&self, peers: Vec<Peer>) {
        let _again = self.shared.peers.set(peers);
    }

    /// What stops the running transaction: a time of the clock, ns.
    pub fn stop_at(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Runs a transaction; `each` is called about once in a window while it runs. The windows are
    /// those that have passed when the last thread ended or, if that is earlier, had to end by its
    /// duration.
    pub fn run(&mut self, timing: &Timing, each: &mut dyn FnMut()) -> Ended {
        lock(&self.shared.flowops).clear();
        self.shared.windows.clear();
        for thread in self.threads.values() {
            // One that has panicked reports nothing, and is not waited for below.
            let _gone = thread.send(Command::Run(*timing));
        }
        let (mut ended, mut waiting, mut until_ns) = (Ended::default(), self.threads.len(), 0);
        let mut due_ns = timing.begin_ns.saturating_add(timing.window_ns);
        while waiting > 0 {
            let left_ns = due_ns.saturating_sub((self.shared.now)());
            match self.done.recv_timeout(Duration::from_nanos(left_ns.max(1))) {
                Ok(done) => {
                    waiting -= 1;
                    until_ns = until_ns.max(done.ended_ns.min(done.until_ns));
                    self.take(done, &mut ended);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now_ns = (self.shared.now)();
            if now_ns >= due_ns {
                each();
                due_ns = now_ns.saturating_add(timing.window_ns);
            }
        }
        let passed = whole(timing.begin_ns, until_ns, timing.window_ns);
        ended.windows = self.shared.windows.first(passed);
        ended.flowops = std::mem::take(&mut *lock(&self.shared.flowops)).into_values().collect();
        ended
    }

    fn take(&mut self, done: Done, ended: &mut Ended) {
        if done.begun_ns > 0 {
            let first = ended.begun_ns == 0 || done.begun_ns < ended.begun_ns;
            ended.begun_ns = if first { done.begun_ns } else { ended.begun_ns };
            ended.ended_ns = ended.ended_ns.max(done.ended_ns);
        }
        ended.counts.extend(done.counts);
        done.fault.into_iter().for_each(|fault| ended.faults.add(fault));
        self.account(done.accounts);
    }

    fn account(&mut self, accounts: Accounts) {
        for (key, account) in accounts {
            self.accounts.entry(key).or_default().add(&account);
        }
    }

    /// Receives what the other ends have sent in the transaction; bytes by connection after that.
    pub fn drain(&mut self, sent: &[ConnCount]) -> Vec<ConnCount> {
        let mut expected: BTreeMap<u32, BTreeMap<(u32, u32), u64>> = BTreeMap::new();
        for ConnCount { key, sent, .. } in sent {
            expected.entry(key.thread).or_default().insert((key.host, key.conn), *sent);
        }
        for (number, thread) in &self.threads {
            let expected = expected.remove(number).unwrap_or_default();
            let _gone = thread.send(Command::Drain { expected });
        }
        let each = (0..self.threads.len()).map_while(|_| self.drained.recv().ok());
        each.flat_map(|drained| drained.counts).collect()
    }

    /// Closes all connections. Returns the TCP statistics of all connections since the start of the
    /// run.
    pub fn close(&mut self) -> Accounts {
        for thread in self.threads.values() {
            let _gone = thread.send(Command::Close);
        }
        for _ in 0..self.threads.len() {
            match self.closed.recv() {
                Ok(accounts) => self.account(accounts),
                Err(_) => break,
            }
        }
        std::mem::take(&mut self.accounts).into_iter().collect()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Threads in the middle of a transaction end within a slice of time.
        self.shared.stop_ns.store(0, Ordering::SeqCst);
    }
}

fn kinds(scripts: &[Script]) -> impl Iterator<Item = &Kind> {
    scripts.iter().flat_map(|s| &s.transactions).flat_map(|t| &t.acts).map(|act| &act.kind)
}

/// What is sent: as many bytes as the largest transfer has, which do not compress.
fn content(scripts: &[Script], seed: u64) -> Vec<u8> {
    let sizes = kinds(scripts).map(|kind| match kind {
        Kind::Send(size) => size.max,
        Kind::SendFile(bytes) => *bytes,
        _ => 0,
    });
    let bytes = sizes.max().unwrap_or(0).clamp(1, TRANSFER_MAX) as usize;
    let mut content = vec![0; bytes];
    SeededRandom::new(seed).fill(&mut content);
    content
}

fn start(scripts: &[Script], shared: &Arc<Shared>) -> io::Result<BTreeMap<u32, Sender<Command>>> {
    let mut threads = BTreeMap::new();
    for script in scripts {
        let script = Arc::new(script.clone());
        for number in script.threads.clone() {
            let (commands, inbox) = channel();
            let (script, shared) = (Arc::clone(&script), Arc::clone(shared));
            let builder = std::thread::Builder::new().stack_size(STACK).name("net-load".into());
            builder.spawn(move || Strand::new(number, script, shared).run(&inbox))?;
            threads.insert(number, commands);
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests;
