//! The crash test: a server under seeded load is killed at a seeded moment, the layer below it
//! forgets what was not flushed, the server starts again, and everything that it acknowledged as
//! stable must be there.
//!
//! - [`model`]: what each worker may expect after the crash;
//! - [`load`]: one worker: a connection, a directory of its own, one operation at a time;
//! - [`remote`] has the requests of a worker, over NFSv3 or (`over4`) NFSv4.2;
//! - [`verify`]: compares the server after the crash with the model.

pub mod load;
pub mod model;
mod over4;
pub mod remote;
pub mod verify;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use base::random::{Random, SeededRandom};

use crate::nfs3::Failure;
use load::{Op, Worker};
use remote::{Over, Remote};

/// Workers at a time, each with a connection and a directory of its own.
const WORKERS: u64 = 4;
/// Acknowledged operations after which the server is killed: at least, and how many more at most.
const MOMENT: (u64, u64) = (8, 240);
/// Longest wait for that moment; a server that stands still is an error.
const STALL: Duration = crate::patience(60);

/// What is crashed.
pub trait Victim {
    /// Starts it, cold; gives its address. Must be the same each time.
    fn start(&mut self) -> Result<SocketAddr, String>;
    /// Kills it, and drops what it did not flush.
    fn crash(&mut self);
    /// Path to mount.
    fn export(&self) -> String;
    /// The uid of the clients.
    fn user(&self) -> u32;
}

/// What a round found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Something acknowledged is gone, or something removed is back.
    Lost(String),
    /// Anything else: the server does not start, does not answer, or answers wrongly.
    Other(String),
}

impl Trouble {
    /// The same, with what it is about in front.
    #[must_use]
    pub fn within(self, what: impl fmt::Display) -> Self {
        match self {
            Self::Lost(why) => Self::Lost(format!("{what}: {why}")),
            Self::Other(why) => Self::Other(format!("{what}: {why}")),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Status(status) => Self::Lost(status.to_string()),
            Failure::Broken(why) => Self::Other(why),
        }
    }
}

/// Counts acknowledged operations and signals when the moment has come.
pub struct Moment {
    acknowledged: AtomicU64,
    at: u64,
    said: AtomicBool,
    say: mpsc::SyncSender<()>,
}

impl Moment {
    /// One more acknowledged operation.
    pub fn acknowledged(&self) {
        if self.acknowledged.fetch_add(1, SeqCst) + 1 >= self.at {
            self.now();
        }
    }

    /// The moment has come.
    pub fn now(&self) {
        if !self.said.swap(true, SeqCst) {
            let _heard = self.say.try_send(());
        }
    }
}

/// Many rounds against one victim.
pub struct Trial<'a, V: Victim> {
    victim: &'a mut V,
    over: Over,
    seed: u64,
    /// Operations to do more often than others.
    focus: &'a [Op],
    survivors: Vec<Worker>,
    /// Operations that were acknowledged in all rounds.
    pub acknowledged: u64,
}

impl<'a, V: Victim> Trial<'a, V> {
    /// A trial with rounds that all follow from `seed`.
    pub fn new(victim: &'a mut V, over: Over, seed: u64, focus: &'a [Op]) -> Self {
        Self { victim, over, seed, focus, survivors: Vec::new(), acknowledged: 0 }
    }

    /// Load, kill, forget, start again, verify. After the last round the server is dead again.
    ///
    /// # Errors
    /// What was lost, or what else went wrong, with the round's number.
    pub fn round(&mut self, number: u64) -> Result<(), Trouble> {
        let (seed, round) = (self.seed, format!("round {number} of seed {}", self.seed));
        let outcome = self.until_the_crash(number, seed).map_err(|what| what.within(&round));
        let mut workers = outcome?;
        let checked = self.after_the_crash(&mut workers);
        self.survivors.extend(workers);
        checked.map_err(|what| what.within(&round))
    }

    /// Verifies all rounds once more: a later crash must not take what an earlier one left.
    ///
    /// # Errors
    /// As [`Trial::round`].
    pub fn all_again(&mut self) -> Result<(), Trouble> {
        let mut workers = std::mem::take(&mut self.survivors);
        self.after_the_crash(&mut workers).map_err(|what| what.within("all rounds again"))
    }

    fn until_the_crash(&mut self, number: u64, seed: u64) -> Result<Vec<Worker>, Trouble> {
        let address = self.victim.start()?;
        let outcome = self.load(SeededRandom::new(seed ^ (number << 20)), number, address);
        self.victim.crash();
        let mut workers = Vec::new();
        for worker in outcome? {
            // A worker ends with the connection; anything else is an answer that it did not expect.
            let ended = worker.join().map_err(|_| "a worker panicked".to_owned())?;
            workers.push(ended.map_err(|what| format!("before the crash: {what}"))?);
        }
        Ok(workers)
    }

    fn after_the_crash(&mut self, workers: &mut [Worker]) -> Result<(), Trouble> {
        let address = self.victim.start()?;
        let checked = self.check(workers, address);
        self.victim.crash();
        checked
    }

    fn load(
        &mut self,
        mut random: SeededRandom,
        number: u64,
        address: SocketAddr,
    ) -> Result<Vec<Thread>, String> {
        let (say, hear) = mpsc::sync_channel(1);
        let at = MOMENT.0 + random.below(MOMENT.1);
        let (acknowledged, said) = (AtomicU64::new(0), AtomicBool::new(false));
        let moment = Arc::new(Moment { acknowledged, at, said, say });
        let (export, user) = (self.victim.export(), self.victim.user());
        let mut threads = Vec::new();
        // All connect before any begins: over version 4 all of them were on record, and until the
        // last has come back no client may open anything.
        for (n, client) in self.connect(address, user)?.into_iter().enumerate() {
            let name = format!("round{number}-worker{n}");
            let (focus, seed) = (self.focus.to_vec(), random.next_u64());
            let (moment, export) = (moment.clone(), export.clone());
            threads.push(std::thread::spawn(move || {
                Worker::new(name, seed, focus).run(client, &export, &moment)
            }));
        }
        let heard = hear.recv_timeout(STALL);
        self.acknowledged += moment.acknowledged.load(SeqCst);
        // The caller kills the server now, which ends the workers.
        heard.map(|()| threads).map_err(|_| "the server stands still".to_owned())
    }

    fn connect(&self, at: SocketAddr, user: u32) -> Result<Vec<Box<dyn Remote>>, String> {
        (0..WORKERS).map(|n| self.over.connect(at, user, &format!("worker{n}"))).collect()
    }

    fn check(&mut self, workers: &mut [Worker], address: SocketAddr) -> Result<(), Trouble> {
        let user = self.victim.user();
        let mut clients = self.connect(address, user)?;
        let client = clients.first_mut().ok_or_else(|| "no clients".to_owned())?;
        let root = client.root(&self.victim.export())?;
        for worker in workers {
            let verifier = verify::check(worker, &mut **client, &root).map_err(|what| {
                eprintln!("{}:\n  {}", worker.name, worker.history.join("\n  "));
                what.within(&worker.name)
            })?;
            if verifier.is_some() && verifier == worker.verifier {
                let what = "the write verifier did not change with the restart";
                return Err(Trouble::Other(what.to_owned()));
            }
        }
        Ok(())
    }
}

type Thread = std::thread::JoinHandle<Result<Worker, String>>;
