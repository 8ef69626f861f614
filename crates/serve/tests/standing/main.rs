//! A file system that stands still wakes nothing: many connections of each protocol with requests
//! that wait for a place on a full pool, and no thread of the server that runs without cause. What
//! waits is answered when the file system continues.

#![allow(clippy::unwrap_used, clippy::expect_used)]
// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

#[path = "../nfs3/client.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod client;
mod http;
mod nfs3;
#[path = "../files/planted.rs"]
mod planted;
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
mod smb;
#[path = "../http/stand.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod stand;

use std::collections::BTreeMap;
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
    let is_full = || (pool.queued() == POOL.queue && pool.waiting() >= waiting).then_some(());
    wait_for("a full pool", PATIENCE, is_full);
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
    assert!(pool.waiting() >= waiting, "they wait still");
}
