//! A share that is removed while clients use it: its handles are stale, the state held through it
//! ends, and another share is not affected.

use vfs::locks::LockCounts;
use vfs::mem::MemFs;
use vfs::share::{ShareTable, tag};
use wire::nfs3::{Fh3, NFS_PROGRAM, NFS_V3, Proc};

use super::*;

const STALE3: u32 = 70;

/// Adds the share `other`.
fn add_other(scene: &Scene) {
    let mut table = ShareTable::clone(&scene.shares.load());
    table.add("other", MemFs::new(tag("other"), 1 << 20), false).expect("new");
    scene.shares.replace(table);
}

fn remove_share(scene: &Scene, name: &str) -> (usize, usize) {
    let mut table = ShareTable::clone(&scene.shares.load());
    table.remove(name).expect("it is there");
    scene.shares.replace(table);
    scene.keeper.release_share(tag(name))
}

fn handle(client: &mut Client, share: &[u8]) -> Vec<u8> {
    let lookup = |name| ArgOp::Lookup(LookupArgs4 { objname: Component4(name) });
    let (_, results) =
        client.run(&[ArgOp::Putrootfh(()), lookup(b"export"), lookup(share), ArgOp::Getfh(())]);
    match results.last() {
        Some(ResOp::Getfh(Res4::Ok(ok))) => ok.object.0.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn status(client: &mut Client, handle: &[u8]) -> Nfsstat4 {
    client.run(&[ArgOp::Putfh(PutfhArgs4 { object: Fh4(handle) })]).0
}

fn getattr3(wire: &mut Wire, handle: &[u8]) -> u32 {
    let results = wire.call((NFS_PROGRAM, NFS_V3, Proc::GETATTR.0), &Fh3(handle));
    u32::from_be_bytes(*results.first_chunk().expect("a status"))
}

#[test]
fn what_was_held_through_it_ends_with_it() {
    let scene = Scene::new();
    add_other(&scene);
    let (mut holder, id) = holder(&scene);
    let opened = holder.open(READ, false).expect("open");
    let (gone, stays) = (handle(&mut holder, b"t"), handle(&mut holder, b"other"));
    let mut old = Wire::connect(scene.addr);
    assert_eq!((getattr3(&mut old, &gone), getattr3(&mut old, &stays)), (0, 0));
    let before = scene.locks.counts();
    assert_eq!((before.opens, before.leases), (1, 1));

    assert_eq!(remove_share(&scene, "t"), (1, 1));
    let LockCounts { opens, locks, leases, .. } = scene.locks.counts();
    assert_eq!((opens, locks, leases), (0, 0, 0));
    assert_eq!(status(&mut holder, &gone), Nfsstat4::STALE);
    assert_eq!(status(&mut holder, &stays), Nfsstat4::OK);
    assert_eq!((getattr3(&mut old, &gone), getattr3(&mut old, &stays)), (STALE3, 0));
    assert_eq!(holder.test(id), Nfsstat4::BAD_STATEID);
    assert_eq!(holder.test(opened.stateid), Nfsstat4::BAD_STATEID);
    assert_eq!(holder.open(READ, false).err(), Some(Nfsstat4::NOENT));
    // A handle of another form is still not a handle of this server.
    assert_eq!(status(&mut holder, b"\x11123"), Nfsstat4::BADHANDLE);
    // No client has to be called, now or later.
    scene.pass(2 * LEASE);
}

#[test]
fn one_share_of_two_keeps_what_is_held() {
    let scene = Scene::new();
    add_other(&scene);
    let (mut holder, id) = holder(&scene);
    assert_eq!(remove_share(&scene, "other"), (0, 0));
    assert_eq!(holder.test(id), Nfsstat4::OK);
    assert!(holder.open(READ, false).is_ok());
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
}
