//! Delegations for writing: where one is granted, what others see of what its holder has not
//! flushed, what recalls it.

use std::net::TcpListener;
use std::time::Duration;

use wire::nfs3::{Fh3, GetattrArgs as Getattr3, NFS_PROGRAM, NFS_V3, Proc};
use wire::nfs4::*;

use crate::recalls::{old_client, old_open_for, reclaim};
use crate::scene::stream::by_rdma;
use crate::scene::{Called, Client, LEASE, Scene, Wire, in_root, open, wait_for};

const READ: u32 = share4::ACCESS_READ;
const WRITE: u32 = share4::ACCESS_WRITE;
const BOTH: u32 = share4::ACCESS_BOTH;
const SECOND: Duration = Duration::from_secs(1);
const FILE: ArgOp<'static> = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
const JUKEBOX: u32 = 10008;

fn client(scene: &Scene, name: &[u8]) -> Client {
    Client::new(scene.addr, name, vec![CallbackSec4::None(())])
}

/// The delegation for writing that an OPEN was given.
fn write_delegation(ok: &OpenResOk4<'_>) -> Option<Stateid4> {
    match &ok.delegation {
        OpenDelegation4::Write(write) => {
            assert_eq!(write.space_limit, SpaceLimit4::Size(0), "flushed before CLOSE");
            Some(write.stateid)
        }
        _ => None,
    }
}

/// Why an OPEN was given none.
fn refused(ok: &OpenResOk4<'_>) -> Option<u32> {
    match ok.delegation {
        OpenDelegation4::NoneExt(none) => Some(none.why),
        _ => None,
    }
}

/// A client that holds a delegation for writing on `f`.
fn holder(scene: &Scene) -> (Client, Stateid4) {
    let mut holder = client(scene, b"holder");
    let made = holder.open(BOTH, true).expect("made");
    let id = write_delegation(&made).expect("a delegation for writing");
    (holder, id)
}

fn getattr() -> ArgOp<'static> {
    ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::CHANGE, attr4::SIZE]) })
}

/// Size and change attribute in what GETATTR, the last operation, has answered.
fn attributes(status: Nfsstat4, results: &[ResOp<'_>]) -> Result<(u64, u64), Nfsstat4> {
    match results.last() {
        Some(ResOp::Getattr(Res4::Ok(ok))) => {
            let values = ok.obj_attributes.values().expect("values");
            Ok((values.size.expect("a size"), values.change.expect("a change attribute")))
        }
        _ => Err(status),
    }
}

/// What a client sees of `f`.
fn look(client: &mut Client) -> Result<(u64, u64), Nfsstat4> {
    let (status, results) = client.at_root(&[FILE, getattr()]);
    attributes(status, &results)
}

/// The results of CB_GETATTR with this size and change attribute.
fn getattr_results(called: &Called, size: u64, change: u64) -> Vec<CbResOp<'static>> {
    let Some(CbArgOp::Getattr(args)) = called.ops.last() else { panic!("{called:?}") };
    let attrmask = Bitmap4::of(&[attr4::CHANGE, attr4::SIZE]);
    assert_eq!(args.attr_request, attrmask);
    let attr_vals = [change, size].map(u64::to_be_bytes).concat().leak();
    let obj_attributes = Fattr4 { attrmask, attr_vals };
    let known = CbResOp::Getattr(Res4::Ok(GetattrResOk4 { obj_attributes }));
    let mut results = called.sequence_done();
    results.push(known);
    results
}

/// Looks until the holder has answered, with this.
fn look_through(other: &mut Client, holder: &mut Client, (size, change): (u64, u64)) -> (u64, u64) {
    assert_eq!(look(other), Err(Nfsstat4::DELAY), "the holder is asked");
    let called = holder.wire.called();
    assert_eq!(look(other), Err(Nfsstat4::DELAY), "it is asked once");
    holder.wire.answer(&called, &getattr_results(&called, size, change));
    wait_for("the answer is known", || look(other).ok())
}

/// Its open ends, and the delegation stays.
fn close(holder: &mut Client, open: Stateid4) {
    let args = CloseArgs4 { seqid: 0, open_stateid: open };
    assert_eq!(holder.at_root(&[FILE, ArgOp::Close(args)]).0, Nfsstat4::OK);
}

#[test]
fn others_see_what_is_not_flushed_with_another_change_attribute_each_time() {
    let scene = Scene::new();
    let (mut holder, _) = holder(&scene);
    let granted = look(&mut holder).expect("its own delegation is not in its way");
    let mut other = client(&scene, b"other");
    let same = look_through(&mut other, &mut holder, granted);
    assert_eq!(same, granted, "nothing was written");
    scene.pass(2 * SECOND);
    let written = (77, granted.1 + 1);
    let first = look_through(&mut other, &mut holder, written);
    assert_eq!(first.0, 77);
    assert!(first.1 > granted.1, "{first:?}");
    assert_eq!(look(&mut other), Ok(first), "the holder is not asked for each request");
    scene.pass(2 * SECOND);
    let second = look_through(&mut other, &mut holder, written);
    assert_eq!(second.0, 77);
    assert!(second.1 > first.1, "it may have written more: {second:?} after {first:?}");
}

#[test]
fn the_change_attribute_is_no_lower_after_the_delegation() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let granted = look(&mut holder).expect("attributes");
    let mut other = client(&scene, b"other");
    let seen = look_through(&mut other, &mut holder, (5, granted.1 + 1));
    // It has thought better of it.
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    let after = look(&mut other).expect("no client is asked any more");
    assert_eq!(after.0, 0);
    assert!(after.1 >= seen.1, "{after:?} after {seen:?}");
}

#[test]
fn the_answer_is_kept_for_clients_that_come_again_late() {
    let scene = Scene::new();
    let (mut holder, _) = holder(&scene);
    let granted = look(&mut holder).expect("attributes");
    let mut other = client(&scene, b"other");
    let (_, results) = other.at_root(&[FILE, ArgOp::Getfh(())]);
    let Some(ResOp::Getfh(Res4::Ok(file))) = results.last() else { panic!("{results:?}") };
    let mut old = Wire::connect(scene.addr);
    let mut getattr = || {
        let args = Getattr3 { object: Fh3(file.object.0) };
        let reply = old.call((NFS_PROGRAM, NFS_V3, Proc::GETATTR.0), &args);
        let status = u32::from_be_bytes(*reply.first_chunk().expect("a status"));
        // Type, mode, links, owner and group come before the size.
        let size = reply.get(24..32).and_then(|bytes| bytes.try_into().ok());
        (status, size.map_or(0, u64::from_be_bytes))
    };
    assert_eq!(getattr().0, JUKEBOX);
    let called = holder.wire.called();
    holder.wire.answer(&called, &getattr_results(&called, 99, granted.1 + 1));
    // A round trip of the holder: its answer came before.
    holder.run(&[]);
    scene.pass(10 * SECOND);
    assert_eq!(getattr(), (0, 99));
}

#[test]
fn a_holder_that_does_not_answer_is_recalled_after_a_second() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let mut other = client(&scene, b"other");
    assert_eq!(look(&mut other), Err(Nfsstat4::DELAY));
    let asked = holder.wire.called();
    assert!(matches!(asked.ops.last(), Some(CbArgOp::Getattr(_))), "{asked:?}");
    scene.clock.advance(2 * SECOND);
    assert_eq!(look(&mut other), Err(Nfsstat4::DELAY));
    if by_rdma() {
        // The call without an answer has the only credit for calls of the server.
        let mut late = asked.sequence_done();
        late.push(CbResOp::Getattr(Res4::Fail(Nfsstat4::BADHANDLE, ())));
        holder.wire.answer(&asked, &late);
    }
    let called = holder.wire.called();
    assert_eq!(called.recalled(), id);
    holder.wire.answer(&called, &called.done());
    assert_eq!(look(&mut other), Err(Nfsstat4::DELAY), "it has not returned it");
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    assert!(look(&mut other).is_ok());
}

#[test]
fn a_holder_that_does_not_return_it_loses_it_after_a_lease() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let mut other = client(&scene, b"other");
    assert_eq!(other.open(READ, false).err(), Some(Nfsstat4::DELAY));
    let called = holder.wire.called();
    assert_eq!(called.recalled(), id);
    holder.wire.answer(&called, &called.done());
    scene.pass(LEASE / 2);
    assert_eq!(holder.test(id), Nfsstat4::OK);
    assert_eq!(other.open(READ, false).err(), Some(Nfsstat4::DELAY));
    scene.pass(LEASE / 2 + SECOND);
    assert!(other.open(READ, false).is_ok());
    assert_eq!(holder.test(id), Nfsstat4::DELEG_REVOKED);
    let late = WriteArgs4 { stateid: id, offset: 0, stable: StableHow4::UNSTABLE, data: b"late" };
    assert_eq!(holder.at_root(&[FILE, ArgOp::Write(late)]).0, Nfsstat4::DELEG_REVOKED);
}

#[test]
fn what_the_holder_does_recalls_nothing() {
    let scene = Scene::new();
    let mut holder = client(&scene, b"holder");
    let made = holder.open(BOTH, true).expect("made");
    let id = write_delegation(&made).expect("a delegation for writing");
    close(&mut holder, made.stateid);
    // Under the delegation alone.
    let write =
        WriteArgs4 { stateid: id, offset: 0, stable: StableHow4::FILE_SYNC, data: b"12345" };
    let read = ReadArgs4 { stateid: id, offset: 0, count: 9 };
    let ops = [FILE, ArgOp::Write(write), ArgOp::Read(read), getattr()];
    let (status, results) = holder.at_root(&ops);
    assert_eq!(attributes(status, &results).map(|(size, _)| size), Ok(5));
    let by_handle = ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access: BOTH,
        share_deny: share4::DENY_WRITE,
        owner: StateOwner4 { clientid: holder.id, owner: Opaque4(b"second") },
        openhow: Openflag4::Nocreate(()),
        claim: OpenClaim4::DelegCurFh(id),
    });
    assert_eq!(holder.at_root(&[FILE, by_handle]).0, Nfsstat4::OK);
    assert_eq!(holder.test(id), Nfsstat4::OK);
    assert_eq!(scene.locks.counts().recalls, 0);
}

#[test]
fn one_is_given_where_no_other_client_uses_the_file() {
    let scene = Scene::new();
    let mut one = client(&scene, b"one");
    let mut two = client(&scene, b"two");
    let made = two.open(READ | share4::WANT_NO_DELEG, true).expect("made");
    let wanted = one.open(BOTH | share4::WANT_WRITE_DELEG, false).expect("open");
    assert_eq!(refused(&wanted), Some(why_no_delegation4::CONTENTION), "another has it open");
    close(&mut two, made.stateid);
    close(&mut one, wanted.stateid);
    let read_only = one.open(READ | share4::WANT_WRITE_DELEG, false).expect("open");
    assert_eq!(refused(&read_only), Some(why_no_delegation4::RESOURCE), "not open for writing");
    close(&mut one, read_only.stateid);
    let unasked = one.open(WRITE, false).expect("open");
    assert_eq!(unasked.delegation, OpenDelegation4::None(()), "written by what writes once");
    close(&mut one, unasked.stateid);
    let asked = one.open(WRITE | share4::WANT_WRITE_DELEG, false).expect("open");
    let id = write_delegation(&asked).expect("as wanted");
    let again = one.open(BOTH | share4::WANT_WRITE_DELEG, false).expect("open");
    assert_eq!(refused(&again), Some(why_no_delegation4::RESOURCE), "one is enough");
    assert_eq!(one.give_back(id), Nfsstat4::OK);
}

#[test]
fn byte_ranges_of_others_are_known_before() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let mut other = client(&scene, b"other");
    let test = ArgOp::Lockt(LocktArgs4 {
        locktype: locktype4::WRITE,
        offset: 0,
        length: 9,
        owner: StateOwner4 { clientid: other.id, owner: Opaque4(b"o") },
    });
    let lockt = |other: &mut Client, holder: &mut Client| {
        loop {
            let status = other.at_root(&[FILE, test.clone()]).0;
            let Some(called) = (status == Nfsstat4::DELAY).then(|| holder.wire.called()) else {
                return (status, None);
            };
            // What kind of file it is comes first.
            match called.ops.last() {
                Some(CbArgOp::Getattr(_)) => {
                    let same = look(holder).expect("its own");
                    holder.wire.answer(&called, &getattr_results(&called, same.0, same.1));
                    holder.run(&[]);
                }
                _ => return (status, Some(called)),
            }
        }
    };
    let (status, called) = lockt(&mut other, &mut holder);
    assert_eq!(status, Nfsstat4::DELAY, "the holder may have locked it");
    let called = called.expect("a recall");
    assert_eq!(called.recalled(), id);
    holder.wire.answer(&called, &called.done());
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    assert_eq!(lockt(&mut other, &mut holder).0, Nfsstat4::OK);
}

#[test]
fn it_is_reclaimed_after_a_restart_and_to_be_returned() {
    let (_scene, mut holder, reclaimed) = reclaim(BOTH, delegation4::WRITE);
    let OpenDelegation4::Write(held) = reclaimed.delegation else { panic!("{reclaimed:?}") };
    assert!(held.recall, "it may have been read since");
    let id = held.stateid;
    let write = WriteArgs4 { stateid: id, offset: 0, stable: StableHow4::FILE_SYNC, data: b"kept" };
    assert_eq!(holder.at_root(&[FILE, ArgOp::Write(write)]).0, Nfsstat4::OK);
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
}

/// Linux opens a file and looks at it in one COMPOUND, also when that grants the first delegation
/// of all: it is not asked.
#[test]
fn a_client_of_4_0_looks_at_what_it_is_just_granted() {
    let scene = Scene::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mut wire, id) = old_client(&scene, &listener);
    let mut back = Wire::over(listener.accept().expect("the server connects").0);
    let probe = back.called();
    let mut seqid = 0;
    let confirmed = old_open_for(&mut wire, id, &mut seqid, BOTH);
    assert_eq!(confirmed.delegation, OpenDelegation4::None(()));
    back.answer(&probe, &[]);
    wait_for("a delegation", || {
        seqid += 1;
        let ops = in_root(&[open(id, seqid, BOTH, true), getattr()]);
        let (status, results) = wire.compound(0, &ops);
        assert_eq!(status, Nfsstat4::OK, "{results:?}");
        results.iter().find_map(|result| match result {
            ResOp::Open(Res4::Ok(ok)) => write_delegation(ok),
            _ => None,
        })
    });
}

#[test]
fn a_client_of_4_0_is_asked_at_its_address() {
    let scene = Scene::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mut wire, id) = old_client(&scene, &listener);
    let mut back = Wire::over(listener.accept().expect("the server connects").0);
    let probe = back.called();
    back.answer(&probe, &[]);
    let mut seqid = 0;
    let held = wait_for("a delegation", || {
        write_delegation(&old_open_for(&mut wire, id, &mut seqid, BOTH))
    });
    // Its own requests are known by their stateid.
    let data = b"1234567";
    let write = WriteArgs4 { stateid: held, offset: 0, stable: StableHow4::FILE_SYNC, data };
    let (status, results) = wire.compound(0, &in_root(&[FILE, ArgOp::Write(write), getattr()]));
    let (size, change) = attributes(status, &results).expect("its own delegation is no obstacle");
    assert_eq!(size, 7);
    let mut other = client(&scene, b"other");
    assert_eq!(look(&mut other), Err(Nfsstat4::DELAY));
    let called = back.called();
    assert_eq!((called.prog, called.proc), (99, CB_COMPOUND));
    back.answer(&called, &getattr_results(&called, 1_000, change + 1));
    let seen = wait_for("the answer is known", || look(&mut other).ok());
    assert_eq!(seen.0, 1_000);
    // A holder that has nothing of the file has returned it, or is about to.
    scene.pass(2 * SECOND);
    assert_eq!(look(&mut other), Err(Nfsstat4::DELAY));
    let called = back.called();
    back.answer(&called, &[CbResOp::Getattr(Res4::Fail(Nfsstat4::BADHANDLE, ()))]);
    wait_for("it is recalled", || {
        let _ = look(&mut other);
        (scene.locks.counts().recalls == 1).then_some(())
    });
    let called = back.called();
    assert_eq!(called.recalled(), held);
    let back_again = ArgOp::Delegreturn(DelegreturnArgs4 { deleg_stateid: held });
    assert_eq!(wire.compound(0, &in_root(&[FILE, back_again])).0, Nfsstat4::OK);
    assert_eq!(look(&mut other).map(|(size, _)| size), Ok(7));
}
