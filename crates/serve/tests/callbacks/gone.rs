//! A session outlives the connection of a request: what was not carried out is so when it is sent
//! again in its slot (RFC 8881 §2.10.6.1).

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use serve::pool::PoolLimits;
use vfs::mem::MemFs;
use vfs::share::tag;
use wire::nfs4::*;

use crate::scene::{Client, Scene, Wire, in_root, wait_for};
use crate::scripted::Scripted;

/// Operations of a request.
const COUNT: usize = 20;

/// Sends the last request of a client again until it is answered otherwise than that the first one
/// is in progress.
fn again(client: &mut Client, ops: &[ArgOp<'static>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
    wait_for("the slot is free", || {
        client.start_again(ops);
        let (status, results) = client.wire.results();
        (status != Nfsstat4::DELAY).then_some((status, results))
    })
}

#[test]
fn a_request_that_was_not_carried_out_is_when_it_comes_again() {
    for has_begun in [false, true] {
        let script = Scripted::over(MemFs::new(tag("t"), 1 << 30));
        let pool = PoolLimits { threads: 1, queue: 100, per_client: 100 };
        let scene = Scene::with_pool(Arc::clone(&script) as _, Vec::new(), pool);
        let new = |name| Client::new(scene.addr, name, vec![CallbackSec4::None(())]);
        let (mut first, mut gone) = (new(b"first"), new(b"gone"));
        let getattr = ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::TYPE]) });
        let ops = in_root(&vec![getattr; COUNT]);
        script.blocks.store(true, SeqCst);
        first.run(&ops);
        let whole = script.begun();
        assert!(whole >= COUNT, "{whole} operations");
        script.close_gate();
        let before = whole;
        if has_begun {
            gone.start(&ops);
            script.wait_begun(before + 1);
            first.start(&ops);
        } else {
            first.start(&ops);
            script.wait_begun(before + 1);
            gone.start(&ops);
        }
        wait_for("a request waits", || (scene.pool.queued() == 1).then_some(()));
        std::mem::replace(&mut gone.wire, Wire::connect(scene.addr)).leave(scene.addr);
        script.open_gate();
        assert_eq!(first.wire.results().0, Nfsstat4::OK);
        wait_for("nothing is left", || {
            (scene.pool.queued() + scene.pool.busy() == 0).then_some(())
        });
        let done = script.begun() - before;
        assert!(done <= whole + 3, "{done} of {whole}, has begun: {has_begun}");
        let (status, results) = again(&mut gone, &ops);
        assert_eq!((status, results.len()), (Nfsstat4::OK, 1 + ops.len()));
        let next = gone.run(&ops);
        assert_eq!((next.0, next.1.len()), (Nfsstat4::OK, ops.len()), "and the next one");
    }
}
