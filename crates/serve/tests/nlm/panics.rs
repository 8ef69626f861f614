//! A panic in a call of NLM fails that call, with the cookie by which its client knows it.

use std::sync::atomic::Ordering::SeqCst;

use wire::nlm4::*;

use crate::host::{COOKIE, Host};
use crate::planted::Planted;
use crate::server::{Server, World, wait_for};

#[test]
fn a_panic_fails_its_call_and_no_other() {
    let world = World::new(1);
    let file = world.file("f", 0o644);
    let fs = Planted::over(world.fs.clone());
    let server = Server::over(&world, fs.clone());
    let mut host = Host::new(server.addr, "one");
    for (n, blocks) in [false, true].into_iter().enumerate() {
        fs.blocks.store(blocks, SeqCst);
        fs.plant("access");
        assert_eq!(host.lock(&file, 0, 1), Nlm4Stat::FAILED, "pooled: {blocks}");
        assert_eq!(host.lock(&file, 0, 1), Nlm4Stat::GRANTED);
        fs.plant("access");
        let alock = host.alock(&file, 0, 100);
        let reply = host.call(Proc::TEST, &TestArgs { cookie: COOKIE, exclusive: false, alock });
        let res: TestRes<'_> = reply.results();
        assert_eq!((res.cookie, res.stat), (COOKIE, TestReply::Other(Nlm4Stat::FAILED)));
        fs.plant("access");
        assert_eq!(host.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::FAILED);
        assert_eq!(host.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::GRANTED);
        let count = 3 * (n as u64 + 1);
        wait_for("panics are shown", || (server.hub.gauges().panics.get() == count).then_some(()));
    }
}
