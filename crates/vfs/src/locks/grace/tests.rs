//! What is granted during the grace period, for each holder, taker and kind of request.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::attr::Time;
use crate::locks::{ClientKey, FileKey, Kind, Owner, Range, Refused, SHARE_DELETE, SHARE_READ};

const KEY: FileKey = FileKey { fsid: 1, fileid: 2, generation: 3 };
const READ: Share = Share { access: SHARE_READ, deny: 0 };
const WRITE: Share = Share { access: SHARE_READ | SHARE_WRITE, deny: 0 };

fn owner(protocol: Protocol) -> Owner {
    Owner::new(ClientKey { protocol, id: 1 }, b"owner").expect("short")
}

#[test]
fn the_rule_holds_for_each_pair() {
    let denies = |deny| Share { access: SHARE_READ, deny };
    for holder in Protocol::ALL {
        for taker in Protocol::ALL {
            let reclaims = matches!(holder, Protocol::Nfs4 | Protocol::Nlm);
            let strict = matches!(taker, Protocol::Nfs4 | Protocol::Nlm);
            let waits = |wanted| waits(holder, taker, wanted);
            assert_eq!(
                waits(GraceRequest::Open(READ)),
                reclaims && strict,
                "{holder:?}, {taker:?}"
            );
            let changes = [WRITE, denies(SHARE_READ), denies(SHARE_WRITE), denies(SHARE_DELETE)];
            let all = changes.map(GraceRequest::Open).into_iter();
            for wanted in all.chain([GraceRequest::Range, GraceRequest::Write, GraceRequest::Name])
            {
                assert_eq!(waits(wanted), reclaims, "{holder:?}, {taker:?}, {wanted:?}");
            }
        }
    }
}

#[test]
fn the_table_waits_for_reclaims() {
    let table = LockTable::default();
    for holder in [Protocol::Nfs4, Protocol::Nlm] {
        table.begin_grace(holder);
        for taker in [Protocol::Smb, Protocol::Ftp, Protocol::Sftp, Protocol::Http, Protocol::Iscsi]
        {
            let who = owner(taker);
            assert_eq!(table.open(KEY, &who, WRITE), Err(Refused::Grace), "{taker:?}");
            let range = Range::to_end(0);
            let locked = table.lock(KEY, &who, range, Kind::Read);
            assert_eq!(locked, Err(Refused::Grace), "{taker:?}");
            let waits = table.lock_or_wait(KEY, &who, range, Kind::Read, Box::new(|_| {}));
            assert_eq!(waits.err(), Some(Refused::Grace), "{taker:?}");
            table.open(KEY, &who, READ).expect("reading does no harm");
            // Which is so even if it was denied before the restart.
            let deny = Share { access: SHARE_READ, deny: SHARE_READ | SHARE_WRITE };
            table.reopen(KEY, &owner(holder), deny).expect("reclaimed");
            table.relock(KEY, &owner(holder), range, Kind::Write).expect("reclaimed");
            table.release(KEY, &owner(holder));
            table.release(KEY, &who);
        }
        table.end_grace(holder);
        table.open(KEY, &owner(Protocol::Smb), WRITE).expect("it is over");
        table.release(KEY, &owner(Protocol::Smb));
    }
}

#[test]
fn the_end_is_reported_once() {
    let (table, calls) = (LockTable::default(), Arc::new(AtomicUsize::new(0)));
    let count = |calls: &Arc<AtomicUsize>| {
        let calls = Arc::clone(calls);
        Box::new(move || {
            calls.fetch_add(1, Ordering::SeqCst);
        })
    };
    assert_eq!(table.when_grace_ends(count(&calls)), None, "there is none");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    table.begin_grace(Protocol::Nfs4);
    table.begin_grace(Protocol::Nlm);
    let first = table.when_grace_ends(count(&calls));
    let second = table.when_grace_ends(count(&calls)).expect("a number");
    assert!(first.is_some() && table.waiting_for_grace() == 2);
    table.forget_grace(second);
    table.end_grace(Protocol::Nfs4);
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the other protocol's clients may reclaim");
    table.end_grace(Protocol::Nlm);
    assert_eq!((calls.load(Ordering::SeqCst), table.waiting_for_grace()), (2, 0));
}

#[test]
fn what_was_made_since_cannot_be_reclaimed() {
    let table = LockTable::default();
    let mut attr = Attr { kind: FileType::Regular, ..Attr::of_shares() };
    assert!(!table.may_be_reclaimed(&attr), "no grace period");
    table.begin_grace(Protocol::Nfs4);
    assert!(table.may_be_reclaimed(&attr), "it is old");
    assert!(!table.may_be_reclaimed(&Attr::of_shares()), "a directory");
    attr.ctime = Time::from_ns(wall_ns());
    assert!(!table.may_be_reclaimed(&attr), "it was made now");
    attr.birth = Some(Time::from_ns(1));
    assert!(table.may_be_reclaimed(&attr), "it was made before, and changed now");
    attr.birth = Some(attr.ctime);
    assert!(!table.may_be_reclaimed(&attr));
}
