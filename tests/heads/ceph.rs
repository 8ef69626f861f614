//! CephFS itself, for `make test-long`, mounted by ceph-fuse: with its defaults it is found unfit,
//! with the option that is named it is fit; handles are good after it was mounted again and at a
//! second head; an OSD that is killed under load, and takeovers, are no error. A client of CephFS
//! that is gone with its machine is evicted at the takeover, and one that answers is not.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use e2e::{patience, process, skip};
use serde_json::Value;

use super::ceph_daemons::{Ceph, HEADS, Shared};
use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT, Setup};
use super::refusals::compare;
use super::writer::{Version, Writer};
use super::{handles, progress};

/// How long the program of a former owner may take.
const SOON: Duration = patience(30);

#[test]
fn it_is_fit_with_the_option_that_is_named() {
    let mut ceph = match Ceph::start() {
        Ok(ceph) => ceph,
        Err(why) => skip!("heads-ceph", "{why}"),
    };
    let [a, b] = HEADS.map(|name| ceph.mount_with(name, &[]));
    let (code, report) = compare(&a, &b);
    println!("with its defaults: {report:#}");
    assert_eq!((code, &report["fit"]), (Some(1), &Value::Bool(false)));
    let advice = report["advice"].as_str().expect("advice");
    assert!(advice.contains("fuse_disable_pagecache = true"), "{advice}");
    HEADS.iter().for_each(|name| ceph.unmount(name));

    let [a, b] = HEADS.map(|name| ceph.mount(name));
    let (code, report) = compare(&a, &b);
    println!("with the option: {report:#}");
    assert_eq!((code, &report["fit"]), (Some(0), &Value::Bool(true)));
}

#[test]
fn handles_are_good_after_it_was_mounted_again_and_at_a_second_head() {
    let mut ceph = match Ceph::start() {
        Ok(ceph) => ceph,
        Err(why) => skip!("heads-ceph", "{why}"),
    };
    let [a, b] = HEADS.map(|name| ceph.mount(name));
    handles::outlive([&a, &b], || {
        ceph.unmount(HEADS[LEFT]);
        assert_eq!(ceph.mount(HEADS[LEFT]), a);
    });
}

/// A program on the machine of a head with a file that it has changed and not flushed. It is a
/// process of its own: one that has such a file open waits for its client of CephFS when it starts
/// another program.
struct Stale {
    program: Child,
    name: &'static str,
}

/// What it writes first, and later; of one length.
const FIRST: &[u8] = b"of the former owner";
const LATER: &[u8] = b"of the former again";
/// What the new owner writes.
const NEW: &[u8] = b"of the new owner";

impl Stale {
    fn begin(mount: &Path) -> Self {
        let name = "stale";
        let path = mount.join(name);
        let mut command = Command::new("dd");
        command.args(["count=2", "iflag=fullblock", "conv=notrunc,fsync", "status=none"]);
        command.arg(format!("bs={}", FIRST.len())).arg(format!("of={}", path.display()));
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().expect("dd");
        program.stdin.as_mut().expect("its input").write_all(FIRST).expect("written");
        let until = Instant::now() + SOON;
        while !fs::metadata(&path).is_ok_and(|file| file.len() == FIRST.len() as u64) {
            assert!(Instant::now() < until, "nothing was written");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { program, name }
    }

    /// What it writes from now on does not reach the file, which others have written.
    fn check(mut self, own: &Path) {
        self.program.stdin.take().expect("its input").write_all(LATER).expect("written");
        let ended = process::wait(&mut self.program, SOON).expect("its end");
        println!("a write by the client that was evicted: {ended}");
        assert!(!ended.success(), "it was written");
        assert_eq!(fs::read(own.join(self.name)).expect("the file"), NEW);
    }
}

#[test]
fn an_osd_that_is_killed_and_takeovers_are_no_error() {
    let shared = match Ceph::start() {
        Ok(ceph) => Shared::new(ceph),
        Err(why) => skip!("heads-ceph", "{why}"),
    };
    let keys = shared.ceph().evict_key();
    let setup = Setup { nfs_lease: "15", head_keys: &keys, ..Setup::default() };
    let mut cluster =
        Cluster::set_up(Box::new(shared.clone()), &[ACCOUNTS], &setup).expect("a cluster");
    let versions = [Version::V3, Version::V4];
    let mut writers = versions.map(|version| Writer::start(&cluster, ACCOUNTS, version));
    progress(&mut writers, "the first writes");
    shared.ceph().kill_osd(0);
    progress(&mut writers, "an OSD was killed");
    for writer in &writers {
        // A reply that is late is no error: this client gives up after a second.
        println!("{}: {:?}", writer.name(), writer.troubles());
    }
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    progress(&mut writers, "planned");

    // The head dies, and its machine does not: its client of CephFS is left alone.
    let clients = shared.ceph().clients();
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    progress(&mut writers, "kill -9");
    assert_eq!(shared.ceph().clients(), clients, "a client that answers was evicted");
    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);

    // The machine dies with all that it has.
    let stale = Stale::begin(&shared.ceph().place(HEADS[LEFT]));
    let server = cluster.process(ACCOUNTS, LEFT);
    shared.ceph().set_running(HEADS[LEFT], false);
    cluster.kill(LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    progress(&mut writers, "kill -9 with the client of CephFS stopped");
    assert_eq!(shared.ceph().clients(), clients - 1, "the client was not evicted");
    let own = shared.ceph().place("own");
    fs::write(own.join(stale.name), NEW).expect("written");
    shared.ceph().set_running(HEADS[LEFT], true);
    stale.check(&own);

    // Mounted again it serves as before.
    cluster.unmount(LEFT);
    shared.ceph().unmount(HEADS[LEFT]);
    shared.ceph().mount(HEADS[LEFT]);
    cluster.mount_again(LEFT);
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.command(LEFT, &["takeover", ACCOUNTS.name]);
    progress(&mut writers, "planned, by the head that was mounted again");
    for writer in writers {
        writer.check(&cluster);
    }
    cluster.end();
}
