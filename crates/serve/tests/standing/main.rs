//! A file system that stands still wakes nothing: many connections of each protocol with requests
//! that wait for a place on a full pool, and no thread of the server that runs without cause. What
//! waits is answered when the file system continues.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]
#![allow(clippy::duplicate_mod, reason = "clients of NFSv3 and of NFSv4 have streams of their own")]

#[path = "../nfs3/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod client;
mod ftp;
#[path = "../ftp/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod ftp_client;
mod http;
mod iscsi;
#[path = "../../iscsi/src/tests/planted.rs"]
mod medium;
mod nfs3;
mod nfs4;
#[path = "../files/planted.rs"]
mod planted;
mod rdma;
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
mod sftp;
mod smb;
#[path = "../http/stand.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod stand;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use e2e::api::wait_for;
use serve::pool::{Pool, PoolLimits};

/// Connections of a protocol.
const CONNECTIONS: usize = 64;
/// A pool that they fill: one client may have all of it.
const POOL: PoolLimits = PoolLimits { threads: 2, queue: 8, per_client: 8 };
/// How long the file system stands still while it is counted.
const STANDS: Duration = Duration::from_secs(5);
/// How often a thread may wake in that time: 5 times a second.
const WAKES_MAX: u64 = 25;
/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(80);

/// How often each thread of this process has left its processor to wait, by its number and name.
fn waits() -> BTreeMap<(String, String), u64> {
    let mut all = BTreeMap::new();
    for thread in fs::read_dir("/proc/self/task").expect("threads").flatten() {
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned()).unwrap_or_default()
        };
        let number = thread.file_name().to_string_lossy().into_owned();
        let count = field("voluntary_ctxt_switches:").parse().expect("a number");
        all.insert((number, field("Name:")), count);
    }
    all
}

/// Waits until a pool is full and `waiting` operations wait for a place, and that none of the
/// threads wakes then but for its own few looks a second.
fn assert_stands(pool: &Pool, waiting: usize) {
    assert_stands_while("a full pool", || pool.queued() == POOL.queue && pool.waiting() >= waiting);
}

/// The same from when something is so, which it stays.
fn assert_stands_while(what: &str, is_so: impl Fn() -> bool) {
    wait_for(what, PATIENCE, || is_so().then_some(()));
    // What has just been done is over: a core has its ticks for a moment, and answers that take
    // long say so once.
    wait_for("no more wakes", PATIENCE, || {
        let before = waits();
        std::thread::sleep(Duration::from_millis(500));
        let after = waits();
        after
            .iter()
            .all(|(thread, count)| count - before.get(thread).unwrap_or(&0) <= 5)
            .then_some(())
    });
    let before = waits();
    std::thread::sleep(STANDS);
    let too_many: Vec<_> = waits()
        .into_iter()
        .map(|(thread, count)| (count - before.get(&thread).copied().unwrap_or(0), thread))
        .filter(|(count, _)| *count > WAKES_MAX)
        .collect();
    assert!(too_many.is_empty(), "threads that wake without cause: {too_many:?}");
    assert!(is_so(), "{what} still");
}

/// Where the READ `number` of a connection begins, by which READs are distinguished.
fn offset(connection: usize, number: usize) -> u64 {
    (CONNECTIONS * number + connection) as u64
}

/// That each connection has begun its `reads` READs in order, but for those of which the thread is
/// delayed by its processor: one for each of `threads` but one. And that one that waits before
/// another one begins its next; the `first` had a place at once, and what is begun while others
/// wake can overtake them.
fn assert_in_turn(begun: &[u64], reads: usize, (threads, first): (usize, usize)) {
    assert_eq!(begun.len(), CONNECTIONS * reads);
    for connection in 0..CONNECTIONS {
        let own = begun.iter().map(|at| *at as usize).filter(|at| at % CONNECTIONS == connection);
        let numbers: Vec<usize> = own.map(|at| at / CONNECTIONS).collect();
        let is_late =
            |place: &usize| numbers.iter().take(*place).any(|before| *before > numbers[*place]);
        let late = (0..numbers.len()).filter(is_late).count();
        assert!(numbers.len() == reads && late < threads, "{connection}: {numbers:?}");
    }
    let turn = begun.get(first..CONNECTIONS).expect("as many");
    let of = |at: &u64| *at as usize % CONNECTIONS;
    let connections: BTreeSet<usize> = turn.iter().map(of).collect();
    assert!(connections.len() + first >= turn.len(), "{turn:?}");
}
