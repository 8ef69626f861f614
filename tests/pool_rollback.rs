//! Rollback, clones and names of snapshots through a running server, on a loop device.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use e2e::api::{Api, wait_for};
use e2e::nfs3::{Client, Failure, Handle};
use e2e::pool_disk::{PoolDisk, act, change, done, value, wait_online};
use e2e::server::{Options, Server};
use e2e::{nfs4, patience, skip};
use serde_json::json;
use wire::nfs3::{Nfsstat3, StableHow};

use crate::pool_mount::Mounted;

const SHARE: &str = "work";
/// Files that the snapshot has.
const FILES: usize = 40;
const BLOCK: usize = 4096;

/// A block that contains the number of its file, and of its state.
fn block(file: usize, state: u64) -> Vec<u8> {
    let mut bytes = format!("{file} {state} ").into_bytes();
    bytes.resize(BLOCK, b'.');
    bytes
}

fn file_of(block: &[u8]) -> Option<usize> {
    String::from_utf8_lossy(block).split(' ').next()?.parse().ok()
}

fn is_stale<T>(outcome: &Result<T, Failure>) -> bool {
    matches!(outcome, Err(Failure::Status(Nfsstat3::STALE)))
}

fn snapshot(bed: &PoolDisk, name: &str) -> String {
    format!("{}/snapshots/{SHARE}@{name}", bed.node())
}

/// The snapshots with a state before a rollback.
fn kept(bed: &PoolDisk, api: &Api) -> Vec<String> {
    let (_, node) = api.get(&format!("/api/v1/nodes{}/snapshots", bed.node()));
    let names = node["items"].as_array().cloned().unwrap_or_default();
    let name = |item: &serde_json::Value| {
        item.as_str().or(item["name"].as_str()).unwrap_or_default().to_owned()
    };
    names.iter().map(name).filter(|name| name.contains("before-rollback-")).collect()
}

/// Clients that write and read all files but the first one by their handles until they are stopped.
/// Each call must succeed; gives how many there were.
fn load(server: &Server, files: &[Handle], stop: &Arc<AtomicBool>) -> Vec<thread::JoinHandle<u64>> {
    let counted = Arc::new(AtomicU64::new(1));
    let client = |number: usize| {
        let (server, stop, counted) = (server.nfs(), Arc::clone(stop), Arc::clone(&counted));
        let files = files.to_vec();
        thread::spawn(move || {
            let mut client = Client::connect(server, 0, 0).expect("a connection");
            let (mut calls, mut at) = (0, number);
            while !stop.load(Ordering::Relaxed) {
                at = 1 + (at + 7) % (files.len() - 1);
                let state = counted.fetch_add(1, Ordering::Relaxed);
                let wrote = client.write(&files[at], 0, &block(at, state), StableHow::FILE_SYNC);
                assert!(wrote.is_ok(), "{at}: {wrote:?}");
                let read = client.read_all(&files[at]).expect("read");
                assert_eq!(file_of(&read), Some(at), "another file");
                calls += 2;
            }
            calls
        })
    };
    (0..4).map(client).collect()
}

#[test]
fn a_rollback_under_load_keeps_handles_and_ends_only_what_did_not_exist() {
    let bed = match PoolDisk::new("rollback", 384) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-rollback", "{why}"),
    };
    let (server, api) = bed.start();
    bed.create(&api, SHARE);
    let mut mounted = Mounted::new(&server, SHARE);
    let files: Vec<Handle> =
        (0..FILES).map(|at| mounted.make(&format!("file{at}"), &block(at, 0))).collect();
    bed.snapshot(&api, SHARE, "good");
    // Files that the snapshot does not have: their numbers are given again after the rollback.
    let later: Vec<Handle> =
        (0..FILES).map(|at| mounted.make(&format!("later{at}"), &block(at, 1))).collect();
    mounted.client.remove(&mounted.root, "file0", false).expect("removed");
    let mut holder =
        nfs4::Client::connect(server.nfs(), (0, 0), "holder", 1).expect("a client of NFSv4");
    holder.reclaim_complete().expect("RECLAIM_COMPLETE");
    let top = holder.walk(&format!("/export/{SHARE}")).expect("found");
    let open = holder.open(&top, "file1", "owner", false).expect("opened");
    let gone = holder.open(&top, "later1", "owner", false).expect("opened");
    let (code, answer) =
        act(&api, &snapshot(&bed, "good"), "rollback", &json!({ "confirm": "no" }));
    assert!(code != 200 && answer.to_string().contains("not the name"), "{answer}");
    let stop = Arc::new(AtomicBool::new(false));
    // The first one is removed now, and there again later.
    let clients = load(&server, &files, &stop);
    let answer = done(&api, &snapshot(&bed, "good"), "rollback", &json!({ "confirm": SHARE }));
    assert!(answer.to_string().contains("before-rollback-"), "{answer}");
    stop.store(true, Ordering::Relaxed);
    let calls: u64 = clients.into_iter().map(|one| one.join().expect("a client")).sum();
    println!("{calls} calls while the share was exchanged");
    // All files of the snapshot have their handles, also the one that was removed.
    for (at, file) in files.iter().enumerate() {
        let read = mounted.read(file).unwrap_or_else(|e| panic!("{at}: {e:?}"));
        assert_eq!(file_of(&read), Some(at));
    }
    assert_eq!(mounted.read(&files[0]).expect("there again"), block(0, 0));
    for file in &later {
        assert!(is_stale(&mounted.read(file)));
    }
    // New files get the numbers of those: no handle of before leads to them.
    let numbers =
        |mounted: &mut Mounted, file: &[u8]| mounted.client.getattr(file).map(|a| a.fileid);
    let new: Vec<Handle> =
        (0..2 * FILES).map(|at| mounted.make(&format!("new{at}"), &block(at, 2))).collect();
    let last = numbers(&mut mounted, &files[FILES - 1]).expect("attributes");
    let used_again = new.iter().filter(|file| {
        numbers(&mut mounted, file).is_ok_and(|n| n > last && n <= last + FILES as u64)
    });
    assert!(used_again.count() > FILES / 2, "no number was used again");
    for file in &later {
        assert!(is_stale(&mounted.read(file)));
        assert!(is_stale(&mounted.client.write(file, 0, b"x", StableHow::FILE_SYNC)));
    }
    opens(&mut holder, &open, &gone);
    the_state_before(&bed, &api, &mut mounted);
    settings_stay(&bed, &api);
    clones_and_names(&bed, &api, &server);
}

/// Opens of before end with the protocol's error, or continue with the same file.
fn opens(holder: &mut nfs4::Client, open: &nfs4::files::Opened, gone: &nfs4::files::Opened) {
    match holder.read(open, 0, 64) {
        Ok(read) => assert_eq!(file_of(&read), Some(1), "another file"),
        Err(error) => {
            let text = format!("{error:?}");
            assert!(
                ["BAD_STATEID", "EXPIRED", "ADMIN_REVOKED", "STALE"]
                    .iter()
                    .any(|one| text.contains(one)),
                "{text}"
            );
        }
    }
    let error = format!("{:?}", holder.read(gone, 0, 64).expect_err("it does not exist"));
    assert!(error.contains("STALE") || error.contains("STATEID"), "{error}");
}

/// What was replaced is a read-only snapshot.
fn the_state_before(bed: &PoolDisk, api: &Api, mounted: &mut Mounted) {
    let kept = kept(bed, api);
    assert_eq!(kept.len(), 1, "{kept:?}");
    let name = kept[0].split('@').nth(1).expect("a name").to_owned();
    let at = format!("{}/.snapshots/{SHARE}/{name}", bed.directory());
    let flags = Command::new("btrfs").args(["property", "get", "-ts", &at, "ro"]).output();
    assert!(String::from_utf8_lossy(&flags.expect("btrfs").stdout).contains("ro=true"));
    let root = mounted.root.clone();
    let door = mounted.client.lookup(&root, ".snapshot").expect("there").handle;
    let before = mounted.client.lookup(&door, &name).expect("there").handle;
    let later = mounted.client.lookup(&before, "later3").expect("there").handle;
    assert_eq!(mounted.read(&later).expect("read"), block(3, 1));
    assert!(mounted.client.lookup(&before, "file0").is_err(), "it was removed before");
    assert!(mounted.client.lookup(&before, "new3").is_err(), "it was made after");
}

/// The snapshot has the compression of its time, and the share that of now.
fn settings_stay(bed: &PoolDisk, api: &Api) {
    let compress = |how: &str| {
        let at = format!("/shares/default/{SHARE}");
        change(api, &json!([{ "set": at, "property": "compression", "value": how }]));
    };
    compress("zstd");
    bed.snapshot(api, SHARE, "packed");
    compress("off");
    done(api, &snapshot(bed, "packed"), "rollback", &json!({ "confirm": SHARE }));
    let at = format!("{}/{SHARE}", bed.directory());
    let how = Command::new("btrfs").args(["property", "get", &at, "compression"]).output();
    assert_eq!(String::from_utf8_lossy(&how.expect("btrfs").stdout).trim(), "");
}

fn clones_and_names(bed: &PoolDisk, api: &Api, server: &Server) {
    done(api, &snapshot(bed, "good"), "rename_snapshot", &json!({ "name": "better" }));
    let (code, _) = act(api, &snapshot(bed, "good"), "clone", &json!({ "name": "copy" }));
    assert_ne!(code, 200);
    for bad in ["", "../x", ".x", "a/b"] {
        let (code, answer) = act(api, &snapshot(bed, "better"), "clone", &json!({ "name": bad }));
        assert_ne!(code, 200, "{bad}: {answer}");
    }
    let (code, answer) = act(api, &snapshot(bed, "better"), "clone", &json!({ "name": SHARE }));
    assert!(code != 200, "{answer}");
    done(api, &snapshot(bed, "better"), "clone", &json!({ "name": "copy" }));
    wait_online(api, "copy");
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    let root = client.mnt("/export/copy").expect("mounted").to_vec();
    let file = client.lookup(&root, "file3").expect("there").handle;
    assert_eq!(client.read_all(&file).expect("read"), block(3, 0));
    client.write(&file, 0, b"changed", StableHow::FILE_SYNC).expect("writable");
    assert!(client.lookup(&root, "new3").is_err());
    done(api, &snapshot(bed, "better"), "destroy_snapshot", &json!({}));
    assert_eq!(&client.read_all(&file).expect("read")[..7], b"changed");
    renames(api, &mut client, &file);
}

/// The clone does not get the name of a share that is destroyed: its directory would be the
/// subvolume that the share has left.
fn renames(api: &Api, client: &mut Client, file: &Handle) {
    change(api, &json!([{ "destroy": format!("/shares/default/{SHARE}"), "confirm": true }]));
    let rename = json!([{ "rename": "/shares/default/copy", "to": SHARE }]);
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": rename }));
    assert_eq!(code, 409, "{answer}");
    assert!(answer.to_string().contains("cannot be renamed"), "{answer}");
    assert_eq!(value(api, "/shares/default/copy", "state"), "online");
    assert_eq!(&client.read_all(file).expect("read")[..7], b"changed");
}

/// A server that is killed at a step of a rollback.
fn stopping(bed: &PoolDisk, step: &'static str) -> (Server, Api) {
    let (dir, state) = (bed.scratch.path().join("data"), bed.scratch.path().join("state"));
    let env = vec![("PLIMSOLL_TEST_ROLLBACK_STOP", step.to_owned())];
    let options = Options { offset: Some(10_000), env, ..Options::new(&dir, &state) };
    (Server::start(&options), Api::new(&state))
}

#[test]
fn a_crash_in_a_rollback_leaves_the_old_state_or_the_new_one() {
    let bed = match PoolDisk::new("rollback-crash", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-rollback-crash", "{why}"),
    };
    let (mut server, api) = bed.start();
    bed.create(&api, SHARE);
    let mut mounted = Mounted::new(&server, SHARE);
    let file = mounted.make("file", b"old");
    bed.snapshot(&api, SHARE, "good");
    for (step, after) in [("copied", "new"), ("exchanged", "old"), ("kept", "old")] {
        mounted.client.write(&file, 0, b"new", StableHow::FILE_SYNC).expect("written");
        drop(mounted);
        server.stop();
        drop(server);
        let (mut stopped, api) = stopping(&bed, step);
        wait_online(&api, SHARE);
        let (code, answer) =
            act(&api, &snapshot(&bed, "good"), "rollback", &json!({ "confirm": SHARE }));
        assert_ne!(code, 200, "{step}: {answer}");
        stopped.kill();
        drop(stopped);
        // As after a power cut: nothing is mounted.
        wait_for("the pool is not in use", patience(60), || {
            let done = Command::new("umount").arg(bed.directory()).output().expect("umount");
            done.status.success().then_some(())
        });
        let again = bed.start();
        server = again.0;
        wait_online(&again.1, SHARE);
        mounted = Mounted::new(&server, SHARE);
        let read = mounted.read(&file).expect("the handle of before");
        assert_eq!(String::from_utf8_lossy(&read), after, "{step}");
        let left = fs::read_dir(format!("{}/.snapshots", bed.directory())).expect("a listing");
        let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, [SHARE], "{step}");
        let expected = ["copied", "exchanged", "kept"].iter().position(|one| *one == step);
        assert_eq!(Some(kept(&bed, &again.1).len()), expected, "{step}");
    }
    change(
        &Api::new(&bed.scratch.path().join("state")),
        &json!([{ "destroy": format!("/shares/default/{SHARE}"), "confirm": true }]),
    );
    assert_eq!(
        value(&Api::new(&bed.scratch.path().join("state")), &bed.node(), "state"),
        "healthy"
    );
}
