//! Permission to lock: export rules, permissions on the file, handles.

use vfs::fs::FileSystem;
use vfs::handle::Handle;
use wire::nlm4::*;

use crate::host::{Host, args};
use crate::server::{Server, World};

#[test]
fn export_rules_hold() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    server.set_rules("127.0.0.1(ro)");
    let mut host = Host::new(server.addr, "one");
    assert_eq!(host.lock(&file, 0, 0), Nlm4Stat::ROFS);
    assert_eq!(host.lock_shared(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(host.share(Proc::SHARE, &file, 2, 0), Nlm4Stat::ROFS);
    assert_eq!(host.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::GRANTED);
    server.set_rules("10.0.0.0/8(rw)");
    assert_eq!(host.lock_shared(&file, 0, 0), Nlm4Stat::FAILED);
    // What it has it may let go of.
    assert_eq!(host.unlock(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().locks, 0);
    server.set_rules("127.0.0.1(rw,secure)");
    assert_eq!(host.lock(&file, 0, 0), Nlm4Stat::FAILED, "its port is above 1023");
}

#[test]
fn without_permission_to_read_no_lock_is_granted() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o600));
    let mut host = Host::new(server.addr, "one");
    host.client.uid = 1000;
    assert_eq!(host.lock_shared(&file, 0, 0), Nlm4Stat::FAILED);
    host.client.uid = 0;
    assert_eq!(host.lock(&file, 0, 0), Nlm4Stat::GRANTED);
    server.set_rules("127.0.0.1(rw,root_squash)");
    assert_eq!(host.lock(&file, 5, 5), Nlm4Stat::FAILED, "root is nobody");
}

#[test]
fn handles_and_ranges_are_checked() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut host = Host::new(server.addr, "one");
    assert_eq!(host.lock(&world.fs.root(), 0, 0), Nlm4Stat::FAILED, "a directory");
    assert_eq!(host.lock(&Handle::new(b"what").unwrap(), 0, 0), Nlm4Stat::STALE_FH);
    let mut forged = file.as_bytes().to_vec();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(host.lock(&Handle::new(&forged).unwrap(), 0, 0), Nlm4Stat::STALE_FH);
    let alock = host.alock(&file, 0, 0);
    let none = Nlm4Lock { fh: Netobj(b""), ..alock };
    assert_eq!(host.stat(Proc::LOCK, &args(none)), Nlm4Stat::STALE_FH);
    assert_eq!(host.lock(&file, u64::MAX, 2), Nlm4Stat::FBIG);
    assert_eq!(host.lock(&file, u64::MAX, 1), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().locks, 1);
}
