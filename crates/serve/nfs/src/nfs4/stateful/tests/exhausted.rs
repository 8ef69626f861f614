//! The errors that clients of 4.0 and of later versions get when a limit is reached
//! (RFC 7530 §13.2, RFC 8881 §15.2).

use base::limits::{LOCKS_PER_FILE_MAX, OPENS_PER_FILE_MAX};
use vfs::locks::{ClientKey, Kind, Owner, Range, SHARE_READ, Share};

use super::*;

/// An owner of another protocol, which is no part of any client.
fn other(n: u64) -> Owner {
    let client = ClientKey { protocol: Protocol::Smb, id: 1 };
    Owner::new(client, &n.to_be_bytes()).expect("short")
}

#[test]
fn a_full_table_is_an_error_of_the_minor_version() {
    let (world, keeper) = World::recorded(Vec::new(), Arc::new(NoRecords));
    let (old, session) = (world.client40(b"a"), world.session(b"b"));
    let locks = &keeper.state.locks;
    let mut next = 0;
    let mut new = |ops: &[ArgOp<'static>]| {
        next += 1;
        world.run(1, &[&[sequence(session, next)], ops].concat())
    };
    let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
    assert_eq!(new(&[done]).0, Nfsstat4::OK);
    let stateid = open_confirmed(&world, old);
    let (_, results) = new(&[&ROOT[..], &[open(0, 0, b"o", 0)]].concat());
    let theirs = opened(&results).0;
    let key = locks.list(None, 1).first().expect("an open").key;

    for n in 0..LOCKS_PER_FILE_MAX as u64 {
        let range = Range { start: n << 32, end: n << 32 };
        let _ = locks.lock(key, &other(n), range, Kind::Read);
    }
    // Bytes that are not locked.
    let at = |locker: ArgOp<'static>| match locker {
        ArgOp::Lock(args) => ArgOp::Lock(LockArgs4 { offset: 5, length: 5, ..args }),
        other => other,
    };
    assert_eq!(world.at_root(&[file(), at(lock_new(old, stateid, 3))]).0, Nfsstat4::RESOURCE);
    let lock = [&ROOT[..], &[file(), at(lock_new(0, theirs, 0))]].concat();
    assert_eq!(new(&lock).0, Nfsstat4::DELAY);

    let share = Share { access: SHARE_READ, deny: 0 };
    for n in 0..OPENS_PER_FILE_MAX as u64 {
        let _ = locks.open(key, &other(n), share);
    }
    let refused = world.at_root(&[open(old, 1, b"another", 0)]).0;
    assert_eq!(refused, Nfsstat4::RESOURCE);
    let another = [&ROOT[..], &[open(0, 0, b"another", 0)]].concat();
    assert_eq!(new(&another).0, Nfsstat4::NOSPC);
}
