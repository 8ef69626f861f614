//! Rollback of a share on ZFS that is served, under load: the dataset goes back below its
//! directory, calls are to be repeated meanwhile, and only what did not exist then is stale.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use e2e::nfs3::{Client, Failure, Handle, Outcome};
use e2e::pool_disk::{act, done, wait_online};
use e2e::server::Server;
use e2e::{nfs4, skip};
use serde_json::json;
use wire::nfs3::{Nfsstat3, StableHow};

use super::{Bed, create_share};
use crate::pool_mount::Mounted;

/// Files that the snapshot has.
const FILES: usize = 24;
const BLOCK: usize = 4096;
/// How long a client waits before it repeats a call, as the protocol has it.
const REPEAT: Duration = Duration::from_millis(20);

/// A block of a file, in one of its states.
fn block(file: usize, state: u64) -> Vec<u8> {
    let mut bytes = format!("{file} {state} ").into_bytes();
    bytes.resize(BLOCK, b'.');
    bytes
}

fn file_of(block: &[u8]) -> Option<usize> {
    String::from_utf8_lossy(block).split(' ').next()?.parse().ok()
}

fn is_stale<T>(outcome: &Outcome<T>) -> bool {
    matches!(outcome, Err(Failure::Status(Nfsstat3::STALE)))
}

/// A call, repeated as long as the server requests that.
fn repeated<T>(later: &AtomicU64, mut call: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    loop {
        match call() {
            Err(Failure::Status(Nfsstat3::JUKEBOX)) => {
                later.fetch_add(1, Ordering::Relaxed);
                thread::sleep(REPEAT);
            }
            other => return other,
        }
    }
}

/// Clients that write and read files by their handles until they are stopped. Each call must
/// succeed at last.
struct Load {
    stop: Arc<AtomicBool>,
    later: Arc<AtomicU64>,
    clients: Vec<thread::JoinHandle<u64>>,
}

impl Load {
    /// On all files but those before the first one.
    fn begin(server: &Server, files: &[Handle], first: usize) -> Self {
        let (stop, later) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |number: usize| {
            let (server, stop, later) = (server.nfs(), stop.clone(), later.clone());
            let files = files.to_vec();
            thread::spawn(move || {
                let mut client = Client::connect(server, 0, 0).expect("a connection");
                let (mut calls, mut at) = (0, number);
                while !stop.load(Ordering::Relaxed) {
                    at = first + (at + 5) % (files.len() - first);
                    let block = block(at, calls + 1);
                    let stable = StableHow::FILE_SYNC;
                    let wrote = repeated(&later, || client.write(&files[at], 0, &block, stable));
                    assert!(wrote.is_ok(), "{at}: {wrote:?}");
                    let read = repeated(&later, || client.read_all(&files[at])).expect("read");
                    assert_eq!(file_of(&read), Some(at), "another file");
                    calls += 2;
                }
                calls
            })
        };
        let clients = (0..3).map(client).collect();
        Self { stop, later, clients }
    }

    /// How many calls there were, and how many of them were to be repeated.
    fn end(self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let calls = self.clients.into_iter().map(|one| one.join().expect("a client")).sum();
        (calls, self.later.load(Ordering::Relaxed))
    }
}

fn fileid(mounted: &mut Mounted, file: &[u8]) -> u64 {
    mounted.attr(file).fileid
}

#[test]
fn a_served_share_goes_back_under_load_and_only_what_did_not_exist_is_stale() {
    let bed = match Bed::new(1) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-zfs-rollback", "{why}"),
    };
    let (mut server, api) = bed.start();
    let pool = json!({ "name": bed.pool, "kind": "zfs", "profile": "stripe",
        "disks": [bed.devices[0]] });
    done(&api, "/storage/pools", "create_pool", &pool);
    create_share(&bed, &api);
    let mut mounted = Mounted::new(&server, "work");
    assert!(mounted.find(".snapshot").is_err(), "snapshots of ZFS are not directories");
    let files: Vec<Handle> =
        (0..FILES).map(|at| mounted.make(&format!("file{at}"), &block(at, 0))).collect();
    let snapshot = |name: &str| {
        let create = json!({ "share": "work", "name": name });
        done(&api, &bed.node(), "create_snapshot", &create);
    };
    let at = |name: &str| format!("{}/snapshots/work@{name}", bed.node());
    let confirm = json!({ "confirm": "work" });
    snapshot("good");
    // File 0 is removed, file 1 has other bytes, which this machine has cached, file 2 is longer.
    mounted.client.remove(&mounted.root, "file0", false).expect("removed");
    mounted.put("file1", &block(1, 9));
    assert_eq!(mounted.read(&files[1]).expect("read"), block(1, 9));
    mounted.put("file2", &[block(2, 0), block(2, 9)].concat());
    let later: Vec<Handle> =
        (0..FILES).map(|at| mounted.make(&format!("later{at}"), &block(at, 1))).collect();
    let numbers: Vec<u64> = later.iter().map(|file| fileid(&mut mounted, file)).collect();
    let mut holder = nfs4::Client::connect(server.nfs(), (0, 0), "holder", 1).expect("a client");
    holder.reclaim_complete().expect("RECLAIM_COMPLETE");
    let top = holder.walk("/export/work").expect("found");
    let open = holder.open(&top, "file3", "owner", false).expect("opened");
    let load = Load::begin(&server, &files, 4);
    // Later snapshots would go: they are named, nothing is changed, and opens stay.
    snapshot("newer");
    let (code, answer) = act(&api, &at("good"), "rollback", &confirm);
    let named = "destroy the later ones first: newer";
    assert!(code == 409 && answer.to_string().contains(named), "{code} {answer}");
    assert_eq!(file_of(&holder.read(&open, 0, 64).expect("still open")), Some(3));
    done(&api, &at("newer"), "destroy_snapshot", &json!({}));
    done(&api, &at("good"), "rollback", &confirm);
    let (calls, repeats) = load.end();
    println!("{calls} calls while the share went back, {repeats} were to be repeated");
    assert!(repeats > 0, "no call met the rollback");
    let error = holder.read(&open, 0, 64).expect_err("opens of before have ended");
    assert!(format!("{error:?}").contains("STATEID"), "{error:?}");
    as_then(&mut mounted, &files, &later);
    // New files get the numbers of those: no handle of before leads to them.
    let new: Vec<Handle> =
        (0..FILES).map(|at| mounted.make(&format!("new{at}"), &block(at, 2))).collect();
    let used_again =
        new.iter().filter(|file| numbers.contains(&fileid(&mut mounted, file))).count();
    println!("{used_again} of {FILES} inode numbers were used again");
    assert!(used_again > 0, "no number was used again");
    as_then(&mut mounted, &files, &later);
    // After a restart, too.
    drop((mounted, holder));
    server.stop();
    let (server, api) = bed.start();
    wait_online(&api, "work");
    let mut mounted = Mounted::new(&server, "work");
    as_then(&mut mounted, &files, &later);
    assert_eq!(mounted.read(&new[5]).expect("read"), block(5, 2));
}

/// The files of the snapshot have their handles, also the one that was removed, and those that
/// were made later are stale.
fn as_then(mounted: &mut Mounted, files: &[Handle], later: &[Handle]) {
    for (at, file) in files.iter().enumerate() {
        let read = mounted.read(file).unwrap_or_else(|e| panic!("{at}: {e:?}"));
        // Load may have written what comes behind these.
        let right = if at < 4 { read == block(at, 0) } else { file_of(&read) == Some(at) };
        assert!(right, "file {at}: {} bytes", read.len());
    }
    for file in later {
        assert!(is_stale(&mounted.client.getattr(file)));
        assert!(is_stale(&mounted.read(file)));
        assert!(is_stale(&mounted.client.write(file, 0, b"x", StableHow::FILE_SYNC)));
    }
    assert!(mounted.find("later3").is_err());
}
