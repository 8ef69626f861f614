//! Mixed operations over NFSv3, 4.0 and 4.1 with clients that come and go, properly or not: memory
//! stays flat, and nothing is left when all are gone. `PLIMSOLL_SOAK_OPS=N` runs so many operations
//! instead of what fits in a while.

#[path = "soak/lives.rs"]
mod lives;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use base::random::SeededRandom;
use e2e::api::{Api, wait_for};
use e2e::process::memory;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use lives::Life;

/// How long it runs unless it is told how many operations.
const WHILE: Duration = Duration::from_secs(40);
/// Operations after which nothing has grown that grows with them would say nothing.
const LEAST: u64 = 20_000;
/// Part of the run in which caches and tables fill: a quarter.
const WARM_UP: u32 = 4;
/// What memory may grow after that: a twentieth, and what the allocator keeps.
const GROWTH: u64 = 20;
const MARGIN: u64 = 8 << 20;
/// How long the clients that went away may take to be gone.
const GONE: Duration = Duration::from_secs(30);
/// Budgets of what is under way.
const IDLE: [&str; 6] = [
    "server.connections",
    "server.requests_in_flight",
    "server.bytes_in_flight",
    "server.pool_queue",
    "server.pool_busy",
    "server.flush_waiters",
];
/// Descriptors beyond those at the start: of the share's root, and of what a client asked last.
const KEPT: usize = 8;
/// Longest run of any length.
const LONGEST: Duration = Duration::from_secs(3 * 3600);

struct Run {
    wanted: Option<u64>,
    began: Instant,
    done: AtomicU64,
    over: AtomicBool,
}

impl Run {
    /// How much of it is done, of 1.
    fn progress(&self) -> f64 {
        match self.wanted {
            Some(wanted) => self.done.load(SeqCst) as f64 / wanted as f64,
            None => self.began.elapsed().as_secs_f64() / WHILE.as_secs_f64(),
        }
    }
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// One client after another, until all is done.
fn live(run: &Run, server: &Server, worker: u64) -> Result<(), String> {
    let mut life = Life::new(server.nfs(), server.export(), worker, SeededRandom::new(worker))?;
    while !run.over.load(SeqCst) {
        match life.live() {
            Ok(done) => run.done.fetch_add(done, SeqCst),
            Err(what) => {
                run.over.store(true, SeqCst);
                return Err(what);
            }
        };
    }
    life.end()
}

/// What memory there was after the warm-up, and the most at the end.
fn watch(run: &Run, pid: u32) -> (u64, u64) {
    let at = |part: f64| {
        wait_for("the operations", LONGEST, || {
            let ended = run.progress() >= part || run.over.load(SeqCst);
            ended.then(|| memory(pid, "VmRSS"))
        })
    };
    let warm = at(1.0 / f64::from(WARM_UP));
    (warm, at(1.0))
}

/// Nobody is there, nothing is held.
fn wait_for_nobody(api: &Api) {
    for what in ["clients", "opens", "locks"] {
        let path = format!("/api/v1/services/nfs/{what}");
        wait_for(what, GONE, || api.get(&path).1["rows"].as_array()?.is_empty().then_some(()));
    }
}

#[test]
fn nothing_grows_and_nothing_is_left() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "soak");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let args = ["--nfs-lease", "5"].map(Into::into).to_vec();
    let mut server = Server::start(&Options { args, ..Options::new(&dir, &state) });
    let (api, pid) = (Api::new(&state), server.pid());
    let wanted = std::env::var("PLIMSOLL_SOAK_OPS").ok().and_then(|ops| ops.parse().ok());
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let run = Run { wanted, began: Instant::now(), done, over };
    let before = descriptors(pid);
    let (warm, end) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|n| {
                scope.spawn({
                    let (run, server) = (&run, &server);
                    move || live(run, server, n)
                })
            })
            .collect();
        let (warm, end) = watch(&run, pid);
        run.over.store(true, SeqCst);
        for worker in workers {
            worker.join().expect("no panic").expect("a life");
        }
        (warm, end)
    });
    let (done, seconds) = (run.done.load(SeqCst), run.began.elapsed().as_secs_f64());
    lives::expire_all(&api);
    wait_for_nobody(&api);
    wait_for("nothing to be under way", GONE, || {
        IDLE.iter().all(|id| api.budget(id).0 == 0).then_some(())
    });
    let after = descriptors(pid);
    let kept = api.budget("server.open_files").0;
    println!(
        "{done} operations, {:.0} a second; {} MiB after the warm-up, {} MiB at the end; \
         {before} descriptors before, {after} after, {kept} of them kept files",
        done as f64 / seconds,
        warm >> 20,
        end >> 20,
    );
    assert!(done >= LEAST, "only {done} operations");
    assert!(end <= warm + warm / GROWTH + MARGIN, "{warm} bytes have become {end}");
    assert!(after <= before + KEPT, "{after} descriptors, {kept} of them for files");
    assert!(server.stop().success(), "{}", server.said());
}
