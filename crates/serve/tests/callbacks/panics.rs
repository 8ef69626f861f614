//! A panic in an operation of a compound fails that operation with SERVERFAULT: its slot, its
//! owner's sequence and all other clients continue.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use vfs::mem::MemFs;
use vfs::share::tag;
use wire::nfs4::*;

use crate::planted::Planted;
use crate::scene::{Client, LEASE, Scene, Wire, in_root, open, opened, wait_for};

const BOTH: u32 = share4::ACCESS_BOTH;

fn scene() -> (Scene, Arc<Planted>) {
    let fs = Planted::over(MemFs::new(tag("t"), 1 << 30));
    let scene = Scene::over(Arc::clone(&fs) as _, Vec::new());
    scene.pass(LEASE);
    (scene, fs)
}

fn shown(scene: &Scene, count: u64) {
    wait_for("panics are shown", || (scene.hub.gauges().panics.get() == count).then_some(()));
}

fn getattr() -> ArgOp<'static> {
    ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::SIZE]) })
}

fn lookup() -> ArgOp<'static> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") })
}

fn write(stateid: Stateid4) -> ArgOp<'static> {
    ArgOp::Write(WriteArgs4 { stateid, offset: 0, stable: StableHow4::FILE_SYNC, data: b"data" })
}

#[test]
fn a_panic_in_a_compound_of_41_leaves_its_slot_free() {
    let (scene, fs) = scene();
    let mut client = Client::new(scene.addr, b"one", vec![CallbackSec4::None(())]);
    let mut count = 0;
    for blocks in [false, true] {
        fs.blocks.store(blocks, SeqCst);
        let ops = in_root(&[getattr(), ArgOp::Getfh(())]);
        fs.plant("getattr");
        let (status, results) = client.run(&ops);
        assert_eq!(status, Nfsstat4::SERVERFAULT, "pooled: {blocks}");
        assert_eq!(results.len(), 4, "it ends with the operation that panicked: {results:?}");
        count += 1;
        // A repeat gets the same results; the next request of the slot is done.
        assert_eq!(client.again(&ops), (status, results));
        assert_eq!(client.run(&ops).0, Nfsstat4::OK);
    }
    shown(&scene, count);
}

#[test]
fn a_flush_of_41_that_panics_leaves_its_slot_free() {
    let (scene, fs) = scene();
    let mut client = Client::new(scene.addr, b"one", vec![CallbackSec4::None(())]);
    let made = client.open(BOTH, true).expect("made");
    fs.flushes.store(true, SeqCst);
    for (n, call) in ["flush", "covered"].into_iter().enumerate() {
        let ops = in_root(&[lookup(), write(made.stateid)]);
        fs.plant(call);
        let failed = client.run(&ops);
        assert_eq!(failed.0, Nfsstat4::SERVERFAULT, "{call}");
        assert_eq!(client.again(&ops), failed);
        assert_eq!(client.run(&ops).0, Nfsstat4::OK, "{call}");
        shown(&scene, n as u64 + 1);
    }
}

/// A client of 4.0 that has confirmed its owner with two requests.
fn client40(wire: &mut Wire) -> u64 {
    let args = SetclientidArgs4 {
        client: NfsClientId4 { verifier: [1; 8], id: Opaque4(b"one") },
        callback: CbClient4 {
            program: 1,
            location: Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(b"") },
        },
        callback_ident: 0,
    };
    let (_, results) = wire.compound(0, &[ArgOp::Setclientid(args)]);
    let [ResOp::Setclientid(SetclientidRes4::Ok(ok))] = results[..] else { panic!("{results:?}") };
    let (id, confirm) = (ok.clientid, ok.confirm);
    let args = SetclientidConfirmArgs4 { clientid: id, confirm };
    assert_eq!(wire.compound(0, &[ArgOp::SetclientidConfirm(args)]).0, Nfsstat4::OK);
    let (status, results) = wire.compound(0, &in_root(&[open(id, 1, BOTH, true)]));
    let made = opened(status, results).expect("made");
    let confirm = OpenConfirmArgs4 { open_stateid: made.stateid, seqid: 2 };
    let ops = in_root(&[lookup(), ArgOp::OpenConfirm(confirm)]);
    assert_eq!(wire.compound(0, &ops).0, Nfsstat4::OK);
    id
}

/// The client counts SERVERFAULT as a request of its open owner, so must the server: otherwise
/// every later OPEN of the owner is BAD_SEQID.
#[test]
fn a_panic_in_open_of_40_is_a_request_of_its_owner() {
    let (scene, fs) = scene();
    let mut wire = Wire::connect(scene.addr);
    let id = client40(&mut wire);
    fs.plant("access");
    let (status, _) = wire.compound(0, &in_root(&[open(id, 3, BOTH, false)]));
    assert_eq!(status, Nfsstat4::SERVERFAULT);
    let (status, results) = wire.compound(0, &in_root(&[open(id, 4, BOTH, false)]));
    assert!(opened(status, results).is_ok(), "{status}");
    shown(&scene, 1);
}
