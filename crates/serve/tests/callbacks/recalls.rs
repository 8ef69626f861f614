//! Conflicts recall delegations from their holders; clients of 4.0 are called over a connection
//! from the server.

#[path = "shares.rs"]
mod shares;

use std::net::TcpListener;
use std::time::Duration;

use serve::nfs4::state::Identity;

use crate::scene::{
    Called, Client, LEASE, Scene, Wire, in_root, open, opened, read_delegation, wait_for,
};
use wire::nfs4::*;

const READ: u32 = share4::ACCESS_READ;
const BOTH: u32 = share4::ACCESS_BOTH;
const SECOND: Duration = Duration::from_secs(1);

/// A client that holds a delegation on `f`.
fn holder(scene: &Scene) -> (Client, Stateid4) {
    let mut holder = Client::new(scene.addr, b"holder", vec![CallbackSec4::None(())]);
    let made = holder.open(READ, true).expect("made");
    let id = read_delegation(&made).expect("a delegation");
    (holder, id)
}

fn other(scene: &Scene) -> Client {
    Client::new(scene.addr, b"other", vec![CallbackSec4::None(())])
}

fn check_recall(called: &Called, client: &Client, id: Stateid4, sequence: u32) {
    assert_eq!((called.prog, called.proc), (NFS4_CALLBACK, CB_COMPOUND));
    assert_eq!(called.head.map(|head| (head.minorversion, head.count)), Some((1, 2)));
    let CbArgOp::Sequence(first) = &called.ops[0] else { panic!("{called:?}") };
    assert_eq!((first.sessionid, first.slotid, first.sequenceid), (client.session, 0, sequence));
    assert_eq!(called.recalled(), id);
}

#[test]
fn a_conflict_recalls_from_the_holder_and_continues() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    assert_eq!(holder.test(id), Nfsstat4::OK);
    let mut other = other(&scene);
    assert!(read_delegation(&other.open(READ, false).expect("read")).is_some(), "readers share");
    assert!(holder.open(BOTH, false).is_err(), "the other must give its own back");
    let called = other.wire.called();
    other.wire.answer(&called, &called.done());
    assert_eq!(other.give_back(called.recalled()), Nfsstat4::OK);
    assert!(holder.open(BOTH, false).is_ok(), "its own is not in its way");
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    let called = holder.wire.called();
    check_recall(&called, &holder, id, 1);
    assert_eq!(called.uid, None, "AUTH_NONE, as it wants");
    holder.wire.answer(&called, &called.done());
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY), "it has not returned it");
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    assert!(other.open(BOTH, false).is_ok());
    assert_eq!(holder.flags, 0);
}

#[test]
fn changes_over_nfs3_wait_as_well() {
    use wire::nfs3::{DiropArgs, Fh3, Filename3, NFS_PROGRAM, NFS_V3, Proc, RemoveArgs};
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let (_, results) = holder.at_root(&[ArgOp::Getfh(())]);
    let Some(ResOp::Getfh(Res4::Ok(root))) = results.last() else { panic!("{results:?}") };
    let mut old = Wire::connect(scene.addr);
    let args = RemoveArgs { object: DiropArgs { dir: Fh3(root.object.0), name: Filename3(b"f") } };
    let mut remove = || {
        let results = old.call((NFS_PROGRAM, NFS_V3, Proc::REMOVE.0), &args);
        u32::from_be_bytes(*results.first_chunk().expect("a status"))
    };
    const JUKEBOX: u32 = 10008;
    assert_eq!(remove(), JUKEBOX);
    let called = holder.wire.called();
    holder.wire.answer(&called, &called.done());
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    assert_eq!(remove(), 0);
}

/// A client that reclaims its open of `f` with a delegation of this kind after a restart, and its
/// result.
pub fn reclaim(share_access: u32, kind: u32) -> (Scene, Client, OpenResOk4<'static>) {
    use wire::nfs3::{CreateArgs, CreateHow, DiropArgs, Fh3, Filename3, NFS_PROGRAM, NFS_V3, Proc};
    let scene = Scene::after(vec![Identity { name: (true, b"holder".to_vec()), principal: 0 }]);
    let mut holder = Client::back(scene.addr, b"holder", vec![CallbackSec4::None(())]);
    let (_, results) = holder.at_root(&[ArgOp::Getfh(())]);
    let Some(ResOp::Getfh(Res4::Ok(root))) = results.last() else { panic!("{results:?}") };
    let where_ = DiropArgs { dir: Fh3(root.object.0), name: Filename3(b"f") };
    let args = CreateArgs { where_, how: CreateHow::Guarded(Default::default()) };
    let made = Wire::connect(scene.addr).call((NFS_PROGRAM, NFS_V3, Proc::CREATE.0), &args);
    assert_eq!(made.first_chunk(), Some(&[0; 4]), "CREATE");
    let reclaim = ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access,
        share_deny: 0,
        owner: StateOwner4 { clientid: holder.id, owner: Opaque4(b"o") },
        openhow: Openflag4::Nocreate(()),
        claim: OpenClaim4::Previous(kind),
    });
    let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
    let (status, results) = holder.at_root(&[lookup, reclaim]);
    let reclaimed = opened(status, results).expect("what was open");
    (scene, holder, reclaimed)
}

/// What was changed in between, over NFSv3 or by a program on the server, it was not called for.
#[test]
fn what_is_reclaimed_after_a_restart_is_to_be_returned() {
    let (_scene, mut holder, reclaimed) = reclaim(READ, delegation4::READ);
    let OpenDelegation4::Read(held) = reclaimed.delegation else { panic!("{reclaimed:?}") };
    assert!(held.recall, "nobody knows what has happened to the file");
    assert_eq!(holder.give_back(held.stateid), Nfsstat4::OK);
}

#[test]
fn its_own_changes_recall_nothing() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let remove = ArgOp::Remove(RemoveArgs4 { target: Component4(b"f") });
    assert_eq!(holder.at_root(&[remove]).0, Nfsstat4::OK);
    assert_eq!(holder.test(id), Nfsstat4::OK);
}

#[test]
fn a_client_without_a_reply_loses_it_after_a_lease() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    let mut other = other(&scene);
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    let _unanswered = holder.wire.called();
    scene.pass(LEASE / 2);
    assert_eq!(holder.test(id), Nfsstat4::OK);
    let down = seq4_status::CB_PATH_DOWN | seq4_status::CB_PATH_DOWN_SESSION;
    assert_eq!(holder.flags, down, "it does not seem to hear");
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    scene.pass(LEASE / 2 + SECOND);
    assert!(other.open(BOTH, false).is_ok());
    assert_eq!(holder.test(id), Nfsstat4::DELEG_REVOKED);
    assert_eq!(holder.flags & !down, seq4_status::RECALLABLE_STATE_REVOKED);
    assert_eq!(holder.give_back(id), Nfsstat4::DELEG_REVOKED);
    let free = ArgOp::FreeStateid(FreeStateidArgs4 { stateid: id });
    assert_eq!(holder.run(&[free]).0, Nfsstat4::OK);
    assert_eq!(holder.test(id), Nfsstat4::BAD_STATEID);
    assert_eq!(holder.flags & !down, 0);
}

#[test]
fn a_cut_back_channel_is_reported_and_replaced() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    // The connection ends; the session continues over another.
    holder.wire = Wire::connect(scene.addr);
    let down = seq4_status::CB_PATH_DOWN | seq4_status::CB_PATH_DOWN_SESSION;
    wait_for("it is noticed", || {
        scene.pass(Duration::ZERO);
        holder.run(&[]);
        (holder.flags == down).then_some(())
    });
    let mut other = other(&scene);
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    let again = holder.open(READ, false).expect("open");
    assert_eq!(read_delegation(&again), None, "it cannot be called");
    let bind =
        BindConnArgs4 { sessid: holder.session, dir: channel_dir4::BACK_OR_BOTH, use_rdma: false };
    let (_, results) = holder.wire.compound(1, &[ArgOp::BindConnToSession(bind)]);
    let [ResOp::BindConnToSession(Res4::Ok(bound))] = results[..] else { panic!("{results:?}") };
    assert_eq!(bound.dir, channel_dir4::BOTH);
    holder.run(&[]);
    assert_eq!(holder.flags, 0);
}

#[test]
fn a_recall_that_could_not_be_sent_goes_over_the_next_connection() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    holder.wire = Wire::connect(scene.addr);
    wait_for("the end is noticed", || {
        scene.pass(Duration::ZERO);
        holder.run(&[]);
        (holder.flags != 0).then_some(())
    });
    let mut other = other(&scene);
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    let bind =
        BindConnArgs4 { sessid: holder.session, dir: channel_dir4::FORE_OR_BOTH, use_rdma: false };
    let (status, _) = holder.wire.compound(1, &[ArgOp::BindConnToSession(bind)]);
    assert_eq!(status, Nfsstat4::OK);
    scene.pass(SECOND);
    let called = holder.wire.called();
    check_recall(&called, &holder, id, 1);
    holder.wire.answer(&called, &called.done());
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    assert!(other.open(BOTH, false).is_ok());
}

#[test]
fn callbacks_have_the_credentials_of_the_client() {
    let scene = Scene::new();
    let sys = |uid| {
        CallbackSec4::Sys(CallbackSys4 {
            stamp: 0,
            machinename: MachineName4(b"m"),
            uid,
            gid: 1,
            gids: wire::xdr::Seq(vec![5]),
        })
    };
    let mut holder = Client::new(scene.addr, b"holder", vec![sys(17)]);
    let id = read_delegation(&holder.open(READ, true).expect("made")).expect("a delegation");
    let args = BackchannelCtlArgs4 { cb_program: 77, sec_parms: wire::xdr::Seq(vec![sys(29)]) };
    assert_eq!(holder.run(&[ArgOp::BackchannelCtl(args)]).0, Nfsstat4::OK);
    assert_eq!(other(&scene).open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    let called = holder.wire.called();
    assert_eq!((called.prog, called.uid, called.recalled()), (77, Some(29), id));
}

#[test]
fn what_a_client_does_not_want_it_does_not_get() {
    let scene = Scene::new();
    let mut client = other(&scene);
    let made = client.open(READ | share4::WANT_NO_DELEG, true).expect("made");
    let OpenDelegation4::NoneExt(none) = made.delegation else { panic!("{made:?}") };
    assert_eq!(none.why, why_no_delegation4::NOT_WANTED);
    let written = client.open(BOTH | share4::WANT_READ_DELEG, false).expect("open");
    assert!(matches!(written.delegation, OpenDelegation4::NoneExt(_)), "{written:?}");
}

#[test]
fn a_delegation_opens_the_file_while_it_is_recalled() {
    let scene = Scene::new();
    let (mut holder, id) = holder(&scene);
    assert_eq!(other(&scene).open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    let claim = |claim| {
        ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: READ,
            share_deny: 0,
            owner: StateOwner4 { clientid: holder.id, owner: Opaque4(b"second") },
            openhow: Openflag4::Nocreate(()),
            claim,
        })
    };
    let by_name = |delegate_stateid| {
        let file = Component4(b"f");
        OpenClaim4::DelegateCur(OpenClaimDelegateCur4 { delegate_stateid, file })
    };
    let (named, wrong) = (claim(by_name(id)), claim(by_name(Stateid4 { seqid: 9, ..id })));
    let by_handle = claim(OpenClaim4::DelegCurFh(id));
    let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
    assert_eq!(holder.at_root(&[named]).0, Nfsstat4::OK);
    assert_eq!(holder.at_root(&[lookup, by_handle]).0, Nfsstat4::OK);
    assert_eq!(holder.at_root(&[wrong]).0, Nfsstat4::BAD_STATEID);
}

/// Makes a client of 4.0 that wants to be called at this address: its id.
fn set_client(wire: &mut Wire, addr: &str) -> u64 {
    let location = Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(addr.as_bytes()) };
    let args = SetclientidArgs4 {
        client: NfsClientId4 { verifier: [1; 8], id: Opaque4(b"old") },
        callback: CbClient4 { program: 99, location },
        callback_ident: 5,
    };
    let (_, results) = wire.compound(0, &[ArgOp::Setclientid(args)]);
    let [ResOp::Setclientid(SetclientidRes4::Ok(ok))] = results[..] else { panic!("{results:?}") };
    let args = SetclientidConfirmArgs4 { clientid: ok.clientid, confirm: ok.confirm };
    assert_eq!(wire.compound(0, &[ArgOp::SetclientidConfirm(args)]).0, Nfsstat4::OK);
    ok.clientid
}

/// A client of 4.0 that listens for callbacks here: its connection, its id.
pub fn old_client(scene: &Scene, listener: &TcpListener) -> (Wire, u64) {
    let mut wire = Wire::connect(scene.addr);
    let port = listener.local_addr().unwrap().port();
    let addr = format!("127.0.0.1.{}.{}", port >> 8, port & 255);
    let id = set_client(&mut wire, &addr);
    (wire, id)
}

/// Opens `f` for reading under the next numbers of the owner.
fn old_open(wire: &mut Wire, id: u64, seqid: &mut u32) -> OpenResOk4<'static> {
    old_open_for(wire, id, seqid, READ)
}

/// The same, for this access.
pub fn old_open_for(wire: &mut Wire, id: u64, seqid: &mut u32, access: u32) -> OpenResOk4<'static> {
    *seqid += 1;
    let (status, results) = wire.compound(0, &in_root(&[open(id, *seqid, access, true)]));
    let ok = opened(status, results).expect("open");
    if ok.rflags & open4::RESULT_CONFIRM != 0 {
        assert_eq!(read_delegation(&ok), None, "nothing before the confirmation");
        *seqid += 1;
        let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
        let args = OpenConfirmArgs4 { open_stateid: ok.stateid, seqid: *seqid };
        let confirm = in_root(&[lookup, ArgOp::OpenConfirm(args)]);
        assert_eq!(wire.compound(0, &confirm).0, Nfsstat4::OK);
    }
    ok
}

#[test]
fn a_client_of_4_0_is_called_at_its_address() {
    let scene = Scene::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mut wire, id) = old_client(&scene, &listener);
    let mut back = Wire::over(listener.accept().expect("the server connects").0);
    let probe = back.called();
    assert_eq!((probe.prog, probe.proc), (99, CB_NULL));
    let mut seqid = 0;
    old_open(&mut wire, id, &mut seqid);
    assert_eq!(read_delegation(&old_open(&mut wire, id, &mut seqid)), None, "no answer yet");
    back.answer(&probe, &[]);
    let held =
        wait_for("the answer is known", || read_delegation(&old_open(&mut wire, id, &mut seqid)));
    let mut other = other(&scene);
    assert_eq!(other.open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    let called = back.called();
    assert_eq!((called.prog, called.proc, called.uid), (99, CB_COMPOUND, Some(0)));
    assert_eq!(called.head.map(|h| (h.minorversion, h.callback_ident)), Some((0, 5)));
    assert_eq!(called.recalled(), held);
    back.answer(&called, &called.done());
    let lookup = ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") });
    let give_back = ArgOp::Delegreturn(DelegreturnArgs4 { deleg_stateid: held });
    assert_eq!(wire.compound(0, &in_root(&[lookup, give_back])).0, Nfsstat4::OK);
    assert!(other.open(BOTH, false).is_ok());
}

#[test]
fn a_client_of_4_0_that_stops_listening_is_notified_by_renew() {
    let scene = Scene::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mut wire, id) = old_client(&scene, &listener);
    let mut back = Wire::over(listener.accept().expect("the server connects").0);
    let probe = back.called();
    back.answer(&probe, &[]);
    let mut seqid = 0;
    wait_for("the answer is known", || read_delegation(&old_open(&mut wire, id, &mut seqid)));
    let renew = |wire: &mut Wire| wire.compound(0, &[ArgOp::Renew(ClientidArgs4 { clientid: id })]);
    assert_eq!(renew(&mut wire).0, Nfsstat4::OK);
    drop((back, listener));
    assert_eq!(other(&scene).open(BOTH, false).err(), Some(Nfsstat4::DELAY));
    wait_for("it is known", || {
        scene.pass(Duration::ZERO);
        (renew(&mut wire).0 == Nfsstat4::CB_PATH_DOWN).then_some(())
    });
}

#[test]
fn callbacks_go_only_to_the_address_of_the_client() {
    let scene = Scene::new();
    let mut wire = Wire::connect(scene.addr);
    let id = set_client(&mut wire, "127.0.0.2.8.1");
    let mut seqid = 0;
    for _ in 0..3 {
        assert_eq!(read_delegation(&old_open(&mut wire, id, &mut seqid)), None);
    }
}
