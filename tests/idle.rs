//! A server without clients: what memory it takes, and how often its threads wake. Both are counts
//! of the server's own work: a slow or busy machine does not raise them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use e2e::api;
use e2e::nfs3::Client;
use e2e::process::memory;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};

/// Resident memory until there is load.
const RESIDENT_MAX: u64 = 100 << 20;
/// Wake-ups of a thread of a core per second: its services end a second together, now and then one
/// by one.
const WAKES_CORE_MAX: u64 = 6;
/// Wake-ups of all other threads together per second.
const WAKES_OTHER_MAX: u64 = 10;
/// For how many seconds they are counted.
const SECONDS: u64 = 5;

/// Voluntary context switches of each thread so far, by number and name.
fn switches(pid: u32) -> BTreeMap<(u32, String), u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("threads").flatten();
    let one = |entry: fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name: &str| Some(status.lines().find_map(|l| l.strip_prefix(name))?.trim());
        let number = entry.file_name().to_str()?.parse().ok()?;
        let count = field("voluntary_ctxt_switches:")?.parse().ok()?;
        Some(((number, field("Name:")?.to_owned()), count))
    };
    threads.filter_map(one).collect()
}

/// How often each thread wakes in [`SECONDS`].
fn wakes(pid: u32) -> Vec<(String, u64)> {
    let before = switches(pid);
    std::thread::sleep(Duration::from_secs(SECONDS));
    let new = |(key, count): (&(u32, String), &u64)| {
        (key.1.clone(), count - before.get(key).copied().unwrap_or(0))
    };
    let mut wakes: Vec<_> = switches(pid).iter().map(new).filter(|(_, n)| *n > 0).collect();
    wakes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    wakes
}

/// Whether no thread of a core wakes too often, and the others together do not.
fn rests(wakes: &[(String, u64)]) -> bool {
    let is_core = |name: &str| name.starts_with("core-");
    let cores_rest = wakes
        .iter()
        .filter(|(name, _)| is_core(name))
        .all(|(_, count)| *count <= WAKES_CORE_MAX * SECONDS);
    let others: u64 = wakes.iter().filter(|(name, _)| !is_core(name)).map(|(_, n)| n).sum();
    cores_rest && others <= WAKES_OTHER_MAX * SECONDS
}

#[test]
fn a_server_without_load_rests() {
    let scratch = Scratch::new("idle");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut server = Server::start(&Options::new(&dir, &state));
    let pid = server.pid();
    let resting = |when: &str| {
        // What the start or a client has begun may take a while to end.
        let rests = || Some(wakes(pid)).filter(|wakes| rests(wakes));
        let wakes = api::wait_for(&format!("rest {when}"), Duration::from_secs(120), rests);
        let resident = memory(pid, "VmRSS");
        println!("{when}: {} MiB resident, {SECONDS} s: {wakes:?}", resident >> 20);
        resident
    };
    let resident = resting("at first");
    assert!(resident <= RESIDENT_MAX, "{} MiB", resident >> 20);
    // It rests again when its clients do, connected or gone.
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a client");
    let root = client.mnt("/export/data").expect("a mount");
    for _ in 0..1_000 {
        client.getattr(&root).expect("attributes");
    }
    resting("with an idle client");
    drop(client);
    let resident = resting("at last");
    assert!(resident <= RESIDENT_MAX, "{} MiB", resident >> 20);
    assert!(server.stop().success(), "{}", server.stderr_text());
}
