//! A panic in a command, a flush or at its end fails one command; the session continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wire::scsi::cdb::CacheRange;
use wire::scsi::{Asc, Cdb, SenseKey, Status};

use super::client::{Answer, Client, How, io};
use super::planted::Planted;
use super::{BLOCK, Bench};
use crate::targets::SignIn;

fn synchronize(client: &mut Client) -> Answer {
    let range = CacheRange { blocks: io(0, 0).blocks, immediate: false };
    client.run(0, Cdb::SynchronizeCache(range), false, 0, &[])
}

fn assert_failed(answer: &Answer) {
    let sense = answer.sense.as_ref().expect("sense data");
    let expected = (SenseKey::HARDWARE_ERROR, Asc::INTERNAL_TARGET_FAILURE);
    assert_eq!((sense.key, sense.asc), expected);
}

#[test]
fn a_panic_fails_its_command_and_no_other() {
    let medium = Planted::new(32 << 20);
    let bench = Bench::over(vec![Arc::clone(&medium) as _], SignIn::default());
    let mut client = Client::new(&bench, &How::default());
    client.settle(0);
    let (before, after) = ([1; BLOCK], [2; BLOCK]);
    assert_eq!(client.write(0, 0, &before).status, Status::GOOD);
    for blocks in [false, true] {
        medium.blocks.store(blocks, Ordering::Relaxed);
        medium.plant("read");
        assert_failed(&client.read(0, 0, 1));
        assert_eq!(client.read(0, 0, 1).data, before, "pooled: {blocks}");
        medium.plant("write");
        assert_failed(&client.write(0, 0, &after));
        assert_eq!(client.read(0, 0, 1).data, before);
    }
    for call in ["sync", "sync", "covered"] {
        medium.plant(call);
        assert_failed(&synchronize(&mut client));
    }
    assert_eq!(client.write(0, 0, &after).status, Status::GOOD);
    assert_eq!(synchronize(&mut client).status, Status::GOOD);
    assert_eq!(client.read(0, 0, 1).data, after);
    let engine = &bench.iscsi.engine;
    let panics = engine.budgets.panics.load(Ordering::Relaxed) + engine.flush.counts().panics;
    assert_eq!(panics, 7);
    assert!(bench.end(), "nothing is left undone");
}
