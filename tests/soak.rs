//! Mixed operations over NFSv3 with NLM, 4.0 and 4.1, with clients that come and go, properly or
//! not: memory stays flat, and nothing is left when all are gone, not even a record for which the
//! next start would wait. `PLIMSOLL_SOAK_OPS=50000000` is the whole of what the project promises
//! (bench/README.md has its figures), `make test-long soak` runs a tenth of it; the gate runs a
//! five-hundredth, which does not look at memory. `PLIMSOLL_SOAK_HOUR=1` continues until a minute
//! after a full hour, when the statistics of the hour are packed.

#[path = "soak/lives.rs"]
mod lives;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use base::limits::SECONDS_IN_MEMORY;
use base::random::SeededRandom;
use e2e::api::{self, Api, wait_for};
use e2e::nfs4::Client;
use e2e::process::memory;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use lives::Life;

/// How many operations the gate runs. Memory is looked at only in a run of as many as are asked
/// for: the warm-up takes more operations than these.
const OPERATIONS: u64 = 100_000;
/// Clients that live at the same time.
const WORKERS: u64 = 3;
/// Part of all operations that each version must have had at least: a tenth.
const SHARE: u64 = 10;
/// How often memory is looked at on the way.
const LOOKS: u64 = 20;
/// What memory may grow after the warm-up: a twentieth.
const GROWTH: u64 = 20;
/// What memory may change in [`Run::level_for`] and still be called level: a four-hundredth. For
/// the ten minutes that the whole run takes that is half of what it may grow.
const LEVEL: u64 = 400;
/// The warm-up ends here, whether memory is level or not.
const WARM_MAX: Duration = Duration::from_secs(20 * 60);
/// How long after a full hour the statistics of that hour are packed for certain, in s.
const PACKED_S: i64 = 60;
/// What is retained up to a limit, whichever clients come: the warm-up lasts until it is full, and
/// for the five minutes of history that are retained in memory: they grew by 0.15 MiB a second
/// here, so that a slow machine, which needs longer for its operations, had more of them.
const FULL: [&str; 2] = ["server.known_files", "server.drc_entries"];
/// How long the clients that went away may take to be gone, and what was kept for them.
const GONE: Duration = Duration::from_secs(60);
/// Budgets of what is in progress or retained for a client, and of what is retained of files: the
/// files of the clients are gone.
const IDLE: [&str; 9] = [
    "server.connections",
    "server.requests_in_flight",
    "server.bytes_in_flight",
    "server.pool_queue",
    "server.pool_busy",
    "server.flush_waiters",
    "server.open_files",
    "server.retained_files",
    "server.known_handles",
];
/// What clients hold.
const HELD: [&str; 9] = [
    "nfs4.clients",
    "nfs4.sessions",
    "nfs4.opens",
    "nfs4.locks",
    "nfs4.waiting",
    "nfs4.delegations",
    "nlm.locks",
    "nlm.waiting",
    "nlm.shares",
];
/// Descriptors beyond those at the start: of the share's root, which is listed, of the database of
/// clients that came, and of the connection that queries the number.
const KEPT: usize = 3;
/// Longest run of any length.
const LONGEST: Duration = Duration::from_secs(3 * 3600);

struct Run {
    wanted: u64,
    /// Whether it is a run of as many operations as are asked for, and memory is looked at.
    measured: bool,
    /// Whether it continues until a full hour has passed.
    hour: bool,
    /// Operations over 3, 4.0, 4.1, since the warm-up.
    done: [AtomicU64; 3],
    lives: AtomicU64,
    warm: AtomicBool,
    over: AtomicBool,
}

impl Run {
    fn new() -> Self {
        let wanted = std::env::var("PLIMSOLL_SOAK_OPS").ok().and_then(|ops| ops.parse().ok());
        Self {
            wanted: wanted.unwrap_or(OPERATIONS),
            measured: wanted.is_some(),
            hour: std::env::var_os("PLIMSOLL_SOAK_HOUR").is_some(),
            done: Default::default(),
            lives: AtomicU64::new(0),
            warm: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    fn done(&self) -> u64 {
        self.done.iter().map(|done| done.load(SeqCst)).sum()
    }

    /// One client after another, until all is done.
    fn live(&self, server: &Server, worker: u64) -> Result<(), String> {
        let random = SeededRandom::new(worker);
        let mut life = Life::new(server.nfs(), server.export(), worker, random)?;
        while !self.over.load(SeqCst) {
            let (version, done) = life.live().inspect_err(|_| self.over.store(true, SeqCst))?;
            if self.warm.load(SeqCst) {
                self.done[version as usize].fetch_add(done, SeqCst);
                self.lives.fetch_add(1, SeqCst);
            }
        }
        life.end()
    }

    /// How long memory has to be level before it is measured.
    fn level_for(&self) -> Duration {
        Duration::from_secs(if self.measured { 60 } else { 5 })
    }

    /// Waits until what fills with use is full, and memory is level.
    fn warm_up(&self, api: &Api, pid: u32) {
        let began = Instant::now();
        let history = Duration::from_secs(SECONDS_IN_MEMORY as u64);
        let mut mark = (Instant::now(), 0);
        wait_for("the warm-up", LONGEST, || {
            let full = !self.measured
                || FULL.iter().all(|id| matches!(api.budget(id), (used, most) if used >= most));
            let seen = !self.measured || began.elapsed() > history;
            let now = memory(pid, "VmRSS");
            if !full || now.abs_diff(mark.1) > now / LEVEL {
                mark = (Instant::now(), now);
            }
            let level = !self.measured || mark.0.elapsed() > self.level_for();
            let end = full && seen && level || began.elapsed() > WARM_MAX;
            (end || self.over.load(SeqCst)).then_some(())
        });
        let level = mark.0.elapsed().as_secs_f64();
        println!("warm after {:.0} s, level for {level:.0} s", began.elapsed().as_secs_f64());
        self.warm.store(true, SeqCst);
    }

    /// Resident memory of the server after the warm-up, and at every twentieth of the operations
    /// that follow.
    fn watch(&self, api: &Api, pid: u32) -> Vec<u64> {
        self.warm_up(api, pid);
        let began = api::now();
        let reach = |operations: u64| {
            wait_for("the operations", LONGEST, || {
                (self.done() >= operations || self.over.load(SeqCst)).then_some(())
            });
            memory(pid, "VmRSS")
        };
        let mut looks: Vec<u64> =
            (0..=LOOKS).map(|look| reach(self.wanted * look / LOOKS)).collect();
        let until = (began / 3600 + 1) * 3600 + PACKED_S;
        if self.hour && api::now() < until {
            wait_for("the full hour", LONGEST, || {
                (api::now() >= until || self.over.load(SeqCst)).then_some(())
            });
            looks.push(memory(pid, "VmRSS"));
        }
        println!("{} full hours have passed", api::now() / 3600 - began / 3600);
        looks
    }

    /// Runs the clients, and prints their counts; memory as [`Run::watch`] saw it.
    fn run(&self, api: &Api, server: &Server) -> Vec<u64> {
        let began = Instant::now();
        let memory = std::thread::scope(|scope| {
            let live = |worker| scope.spawn(move || self.live(server, worker));
            let workers: Vec<_> = (0..WORKERS).map(live).collect();
            let memory = self.watch(api, server.pid());
            self.over.store(true, SeqCst);
            for worker in workers {
                worker.join().expect("no panic").expect("a life");
            }
            memory
        });
        let [v3, v40, v41] = self.done.each_ref().map(|done| done.load(SeqCst));
        println!(
            "{} operations ({v3} over 3, {v40} over 4.0, {v41} over 4.1) of {} clients, {:.0} s",
            self.done(),
            self.lives.load(SeqCst),
            began.elapsed().as_secs_f64(),
        );
        assert!([v3, v40, v41].iter().all(|part| part * SHARE >= self.done()), "not mixed");
        memory
    }
}

/// Entries of a folder of the server's process.
fn count(pid: u32, folder: &str) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count)
}

/// The statistics of the first second and minute are being written: their files are opened when
/// there is something to write, not at the start.
fn wait_for_statistics(state: &Path, pid: u32) {
    wait_for("the files of statistics", GONE, || {
        let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let open: Vec<_> =
            folder.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
        let has =
            |part: &str| open.iter().any(|file| file.starts_with(state.join("stats").join(part)));
        ["second", "minute"].iter().all(|part| has(part)).then_some(())
    });
}

/// No client is there, nothing is held, nothing is in progress.
fn wait_for_no_clients(api: &Api) {
    for what in ["clients", "opens", "locks"] {
        let path = format!("/api/v1/services/nfs/{what}");
        wait_for(what, GONE, || api.get(&path).1["rows"].as_array()?.is_empty().then_some(()));
    }
    for id in IDLE {
        wait_for(id, GONE, || (api.budget(id).0 == 0).then_some(()));
    }
    // What a second has of them was read at some moment around it.
    for stat in HELD {
        wait_for(stat, GONE, || {
            let second = api::now() + 1;
            api.wait_for_second(second);
            (api.count(stat, (second, second + 1)) == 0).then_some(())
        });
    }
}

/// At the next start no client is on record, so that no client waits for a grace period.
fn no_client_is_on_record(server: &Server) {
    let mut client = Client::connect(server.nfs(), (0, 0), "next", 1).expect("a session");
    client.reclaim_complete().expect("RECLAIM_COMPLETE");
    let root = client.walk(&server.export()).expect("the share");
    client.open(&root, "new", "owner", true).expect("no grace period");
}

#[test]
fn nothing_grows_and_nothing_is_left() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "soak");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let options = || Options {
        args: ["--nfs-lease", "5"].map(Into::into).to_vec(),
        ..Options::new(&dir, &state)
    };
    let mut server = Server::start(&options());
    let (api, pid) = (Api::new(&state), server.pid());
    wait_for_statistics(&state, pid);
    let figures = || (count(pid, "fd"), count(pid, "task"));
    let (before, run) = (figures(), Run::new());
    let memory = run.run(&api, &server);
    let mib: Vec<_> = memory.iter().map(|bytes| bytes >> 20).collect();
    println!("resident MiB after the warm-up, and at every twentieth: {mib:?}");
    lives::expire_all(&api);
    wait_for_no_clients(&api);
    let after = figures();
    println!("descriptors and threads before: {before:?}, after: {after:?}");
    let (warm, most) = (memory[0], memory.iter().copied().max());
    let flat = !run.measured || most <= Some(warm + warm / GROWTH);
    assert!(flat, "{warm} bytes have become {most:?}");
    assert!(after.0 <= before.0 + KEPT, "{after:?} descriptors and threads, {before:?} before");
    assert!(server.stop().success(), "{}", server.stderr_text());
    let mut server = Server::start(&options());
    no_client_is_on_record(&server);
    assert!(server.stop().success(), "{}", server.stderr_text());
}
