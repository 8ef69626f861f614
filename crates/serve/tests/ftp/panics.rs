//! A panic in a handler, a transfer or a flush fails one command with 451; the session continues.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use serve::ftp::Settings;
use vfs::mem::MemFs;
use vfs::share::{Service, tag};
use wire::ftp::{Request, Verb};

use crate::client::{Client, Running};
use crate::planted::Planted;
use crate::scene::Scene;

fn stor() -> Request<'static> {
    Request::Text(Verb::Stor, b"f")
}

/// The code at the end of a download, however much came.
fn fetch(c: &mut Client) -> u16 {
    let _ = c.begin(&Request::Text(Verb::Retr, b"f")).all();
    c.reply().code
}

#[test]
fn a_panic_fails_its_command_and_no_other() {
    let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
    let running = Running::over(
        Scene::over(Service::Ftp, &[("share", Arc::clone(&fs) as _)]),
        Settings::default(),
    );
    let files = Arc::clone(&running.scene.files);
    let mut c = running.signed_in();
    c.put("f", b"before");
    let mut count = 0;
    let mut planted = |fs: &Planted, call| {
        fs.plant(call);
        count += 1;
    };
    for blocks in [false, true] {
        fs.blocks.store(blocks, SeqCst);
        planted(&fs, "lookup");
        assert_eq!(c.code_of("SIZE f"), 451, "pooled: {blocks}");
        assert_eq!(c.code_of("SIZE f"), 213);
        planted(&fs, "mkdir");
        assert_eq!(c.code_of("MKD d"), 451);
        assert_eq!(c.code_of("MKD d"), 257);
        assert_eq!(c.code_of("RMD d"), 250);
        planted(&fs, "read");
        assert_eq!(fetch(&mut c), 451);
        assert_eq!(c.get("f"), b"before");
        planted(&fs, "write");
        assert_eq!(c.store(&stor(), b"half"), 451);
        assert_eq!(c.get("f"), b"before");
        planted(&fs, "list");
        let _ = c.begin(&Request::Maybe(Verb::Nlst, None)).all();
        assert_eq!(c.reply().code, 451);
        assert_eq!(c.names(), ["f"]);
    }
    fs.flushes.store(true, SeqCst);
    for call in ["flush", "covered"] {
        planted(&fs, call);
        assert_eq!(c.store(&stor(), b"half"), 451, "{call}");
        assert_eq!(c.get("f"), b"before");
    }
    fs.flushes.store(false, SeqCst);
    c.put("f", b"after");
    assert_eq!((c.get("f"), c.names()), (b"after".to_vec(), vec!["f".to_owned()]));
    assert_eq!(
        files.engine.budgets.panics.load(Relaxed) + files.engine.flush.counts().panics,
        count
    );
    assert!(!fs.is_planted());
}
