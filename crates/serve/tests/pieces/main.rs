//! Frames that arrive in pieces of any size, connections that end anywhere, and a pool that is full
//! at random: all answers, and what is stored afterwards, are those of a model, and nothing is held
//! when all connections have ended. The same test for every protocol of messages over TCP.
//!
//! `PLIMSOLL_PIECES_RUNS` is how many runs of each there are, `PLIMSOLL_PIECES_SEED` the seed of
//! the first.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]
#![allow(clippy::duplicate_mod, reason = "clients of NFSv3 and of NFSv4 have streams of their own")]

#[path = "../nfs3/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod client;
#[cfg(feature = "test-services")]
mod echo;
#[cfg(feature = "test-services")]
mod echo_panics;
mod iscsi;
mod nfs3;
mod nfs4;
#[path = "../files/planted.rs"]
mod planted;
mod relay;
#[path = "../smb/running.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod running;
#[path = "../files/scene.rs"]
mod scene;
#[path = "../nfs3/scripted.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod scripted;
#[path = "../nfs3/server.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod server;
#[path = "../callbacks/scene.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod sessions;
mod smb;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::random::{Random as _, SeededRandom};
use e2e::api::wait_for;
use serve::pool::{Pool, PoolLimits, Slot};
use serve::transport::Budgets;

use relay::Relay;

/// Runs of each protocol in the gate, and the seed of the first.
const RUNS: u64 = 20;
const SEED: u64 = 43;
/// Connections of a run, one after the other.
const CONNECTIONS: u32 = 5;
/// Requests of a connection, at most this number at once.
const BATCHES: u32 = 6;
const BATCH: u32 = 8;
/// What is read and written.
const BLOCKS: u32 = 16;
const BLOCK: usize = 512;
/// Bytes that a connection moves at most before it ends, in either direction.
const BYTES: u32 = 16 << 10;
/// A pool that requests fill, and places on it that are taken at random meanwhile.
const POOL: PoolLimits = PoolLimits { threads: 2, queue: 4, per_client: 4 };
/// Numbers of other clients, of which each takes a place.
pub const OTHERS: u64 = 1_000_000;
/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(80);

/// A request.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    /// Reads a block.
    Read(u32),
    /// Fills a block with this.
    Write(u32, u8),
}

/// What a request has come to: the data of a READ; none if it was refused for lack of room.
pub type Outcome = Option<Vec<u8>>;

/// A connection of a client.
pub trait Session {
    /// Sends requests, all at once.
    fn send(&mut self, ops: &[Op]) -> io::Result<()>;
    /// The next answer: the index of its request, and its outcome.
    fn answer(&mut self) -> io::Result<(usize, Outcome)>;
}

/// A service with [`BLOCKS`] blocks.
pub trait Serves {
    /// Where it listens.
    fn at(&self) -> SocketAddr;
    /// A client, which connects there.
    fn open(&self, at: SocketAddr) -> io::Result<Box<dyn Session>>;
    /// What it may use.
    fn budgets(&self) -> Arc<Budgets>;
    /// Its pool.
    fn pool(&self) -> Arc<Pool>;
    /// Connections that are not of the test.
    fn kept(&self) -> i64 {
        0
    }
    /// Whether anything is open, or otherwise held outside of the budgets.
    fn is_held(&self) -> bool {
        false
    }
    /// Whether requests go to the pool from now on, in a service that has such.
    fn set_blocks(&self, _blocks: bool) {}
    /// Places of the pool taken by others, so that it is full at random.
    fn take_places(&self, dice: &mut Dice) -> Vec<Slot> {
        let (pool, count) = (self.pool(), dice.below(POOL.queue as u32 + 1));
        (0..u64::from(count)).filter_map(|n| pool.reserve(OTHERS + n)).collect()
    }
    /// What is stored; nothing for a service that stores nothing.
    fn content(&self) -> Option<Vec<u8>>;
}

/// Name, and how it starts.
type Protocol = (&'static str, fn() -> Box<dyn Serves>);

const PROTOCOLS: &[Protocol] = &[
    ("NFSv3", || Box::new(nfs3::Nfs::start())),
    ("NFSv4.1", || Box::new(nfs4::Nfs::start())),
    ("SMB", || Box::new(smb::Smb::start())),
    ("iSCSI", || Box::new(iscsi::Target::start())),
    #[cfg(feature = "test-services")]
    ("echo", || Box::new(echo::Echo::start())),
];

/// Numbers by chance.
pub struct Dice(SeededRandom);

impl Dice {
    /// A number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        u32::from_le_bytes(bytes) % end
    }

    fn one_of(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }
}

/// What each block may have.
struct Model(Vec<BTreeSet<u8>>);

impl Model {
    fn check(&self, block: u32, data: &[u8]) {
        let may_be = &self.0[block as usize];
        let found = data.first().copied().unwrap_or_default();
        assert_eq!(data.len(), BLOCK, "block {block}");
        assert!(data.iter().all(|byte| *byte == found), "block {block} is torn");
        assert!(may_be.contains(&found), "block {block}: {found} and not one of {may_be:?}");
    }
}

/// One protocol, one seed.
struct Run {
    serves: Box<dyn Serves>,
    dice: Dice,
    model: Model,
}

impl Run {
    /// Different blocks, each read or written.
    fn batch(&mut self) -> Vec<Op> {
        let mut blocks: Vec<u32> = (0..BLOCKS).collect();
        let count = 1 + self.dice.below(BATCH);
        let draw = |_| {
            let block = blocks.swap_remove(self.dice.below(blocks.len() as u32) as usize);
            match self.dice.one_of(2) {
                true => Op::Read(block),
                false => Op::Write(block, self.dice.below(256) as u8),
            }
        };
        (0..count).map(draw).collect()
    }

    /// Sends a batch while places of the pool are taken, which are given back in between; an error
    /// when the connection has ended.
    fn exchange(&mut self, session: &mut dyn Session) -> io::Result<()> {
        let ops = self.batch();
        self.serves.set_blocks(self.dice.one_of(2));
        let mut taken = self.serves.take_places(&mut self.dice);
        let sent = session.send(&ops);
        let mut answered = vec![false; ops.len()];
        let mut ended = sent;
        for _ in &ops {
            if ended.is_err() {
                break;
            }
            taken.clear();
            match session.answer() {
                Err(why) => ended = Err(why),
                Ok((number, outcome)) => {
                    assert!(!std::mem::replace(&mut answered[number], true), "answered twice");
                    self.answered(ops[number], outcome);
                }
            }
        }
        for op in ops.iter().zip(answered).filter(|(_, answered)| !answered).map(|(op, _)| op) {
            // It may have been done.
            if let Op::Write(block, value) = op {
                self.model.0[*block as usize].insert(*value);
            }
        }
        ended
    }

    fn answered(&mut self, op: Op, outcome: Outcome) {
        match (op, outcome) {
            (Op::Write(block, value), Some(_)) => {
                self.model.0[block as usize] = BTreeSet::from([value]);
            }
            (Op::Read(block), Some(data)) => self.model.check(block, &data),
            (_, None) => {}
        }
    }

    /// One connection, to wherever it ends.
    fn connection(&mut self) {
        // Some are not cut.
        let bytes = if self.dice.one_of(4) { u32::MAX } else { self.dice.below(BYTES) };
        let relay =
            Relay::start(self.serves.at(), bytes, [(); 2].map(|()| self.dice.below(u32::MAX)));
        let ended = self
            .serves
            .open(relay.at)
            .and_then(|mut session| (0..BATCHES).try_for_each(|_| self.exchange(&mut *session)));
        let was_cut = relay.end();
        assert!(ended.is_ok() || was_cut, "{ended:?}, and the connection was not cut");
        self.serves.set_blocks(false);
    }

    /// Waits until nothing runs for connections that have ended, and compares what is stored.
    fn settle(&mut self) {
        let (budgets, pool) = (self.serves.budgets(), self.serves.pool());
        wait_for("the end of all connections", PATIENCE, || {
            let rests = pool.queued() + pool.waiting() + pool.busy() == 0;
            (budgets.connections() == self.serves.kept() && rests).then_some(())
        });
        let Some(content) = self.serves.content() else { return };
        for (block, data) in (0..BLOCKS).zip(content.chunks(BLOCK)) {
            self.model.check(block, data);
            self.model.0[block as usize] = BTreeSet::from([data[0]]);
        }
    }

    fn run(&mut self) {
        for _ in 0..CONNECTIONS {
            self.connection();
            self.settle();
        }
        let budgets = self.serves.budgets();
        wait_for("nothing is held", PATIENCE, || {
            let is_held = budgets.bytes() != 0 || budgets.requests() != 0 || self.serves.is_held();
            (!is_held).then_some(())
        });
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn what_comes_in_pieces_and_ends_anywhere_is_as_in_the_model() {
    let (runs, first) =
        (setting("PLIMSOLL_PIECES_RUNS", RUNS), setting("PLIMSOLL_PIECES_SEED", SEED));
    for (name, start) in PROTOCOLS {
        for seed in first..first + runs {
            println!("{name}, PLIMSOLL_PIECES_SEED={seed}");
            let dice = Dice(SeededRandom::new(seed));
            let model = Model(vec![BTreeSet::from([0]); BLOCKS as usize]);
            Run { serves: start(), dice, model }.run();
        }
    }
}
