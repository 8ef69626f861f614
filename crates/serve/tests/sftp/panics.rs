//! A panic in a handler or a flush fails one request with FAILURE; the channel continues, and an
//! incomplete upload does not take its name.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::sftp::request::SetByPath;
use wire::sftp::{Attrs, PathBytes, Request, StatusCode};

use crate::client::*;
use crate::planted::Planted;
use crate::scene::Scene;

const FAILURE: Got = Got::Status(StatusCode::FAILURE);

fn mkdir() -> Request<'static> {
    Request::Mkdir(SetByPath { path: PathBytes(b"/share/d"), attrs: Attrs::default() })
}

#[test]
fn a_panic_fails_its_request_and_no_other() {
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let scene = Scene::over(Service::Sftp, &[("share", Arc::clone(&fs) as _)]);
    with_client(&scene, |core, mut c, _| async move {
        c.put_file(b"/share/f", b"before").await;
        let mut count = 0;
        for blocks in [false, true] {
            fs.blocks.store(blocks, SeqCst);
            fs.plant("lookup");
            let (failing, next) = (c.put(&stat(b"/share/f")), c.put(&stat(b"/share")));
            c.flush(usize::MAX);
            assert_eq!(c.answer(failing).await, FAILURE, "pooled: {blocks}");
            c.answer(next).await.attrs();
            fs.plant("mkdir");
            assert_eq!(c.call(mkdir()).await, FAILURE);
            c.done(mkdir()).await;
            c.done(rmdir(b"/share/d")).await;
            fs.plant("write");
            let handle = c.call(open(b"/share/f", new_file())).await.handle();
            assert_eq!(c.call(write(&handle, 0, b"half")).await, FAILURE);
            assert_eq!(c.call(close(&handle)).await, FAILURE, "something of it is missing");
            assert_eq!(c.get_file(b"/share/f").await, b"before");
            count += 3;
        }
        fs.flushes.store(true, SeqCst);
        for call in ["flush", "covered"] {
            let handle = c.call(open(b"/share/f", new_file())).await.handle();
            c.done(write(&handle, 0, b"half")).await;
            fs.plant(call);
            assert_eq!(c.call(close(&handle)).await, FAILURE, "{call}");
            assert_eq!(c.get_file(b"/share/f").await, b"before");
            count += 1;
        }
        c.put_file(b"/share/f", b"after").await;
        assert_eq!(c.get_file(b"/share/f").await, b"after");
        assert_eq!(c.list(b"/share").await, [b"f"]);
        let files = &core.files;
        assert_eq!(
            files.engine.budgets.panics.load(Relaxed) + files.engine.flush.counts().panics,
            count
        );
    });
}
