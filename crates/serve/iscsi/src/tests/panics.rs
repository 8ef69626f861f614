//! A panic in a command, a flush or at its end fails one command; the session continues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vfs::fs::Result;
use vfs::lun::ledger::Ledger;
use vfs::lun::mem::MemMedium;
use vfs::lun::{Extent, Medium, MediumStatus};
use wire::scsi::cdb::CacheRange;
use wire::scsi::{Asc, Cdb, SenseKey, Status};

use super::client::{Answer, Client, How, io};
use super::{BLOCK, Bench};
use crate::targets::SignIn;

/// A medium that panics where a test wants it to.
struct Planted {
    inner: MemMedium,
    next: Mutex<Option<&'static str>>,
    /// Reads and writes that must not wait answer that they would.
    blocks: AtomicBool,
}

impl Planted {
    fn new() -> Arc<Self> {
        let (next, blocks) = Default::default();
        Arc::new(Self { inner: MemMedium::new(32 << 20), next, blocks })
    }

    /// The next call of this name panics.
    fn plant(&self, call: &'static str) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    fn strike(&self, here: &str, may_block: bool) -> Result<()> {
        if self.blocks.load(Ordering::Relaxed) && !may_block {
            return Err(vfs::status::Status::WouldBlock);
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if *next == Some(here) {
            *next = None;
            drop(next);
            panic!("planted in {here}");
        }
        Ok(())
    }
}

impl Medium for Planted {
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn read(&self, offset: u64, into: &mut [u8], may_block: bool) -> Result<()> {
        self.strike("read", may_block)?;
        self.inner.read(offset, into, may_block)
    }
    fn write(&self, offset: u64, data: &[u8], may_block: bool) -> Result<()> {
        self.strike("write", may_block)?;
        self.inner.write(offset, data, may_block)
    }
    fn write_durable(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.strike("write_durable", true)?;
        self.inner.write_durable(offset, data)
    }
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.inner.discard(offset, length)
    }
    fn zero(&self, offset: u64, length: u64) -> Result<()> {
        self.strike("zero", true)?;
        self.inner.zero(offset, length)
    }
    fn extent(&self, offset: u64) -> Result<Extent> {
        self.inner.extent(offset)
    }
    fn resize(&self, size: u64) -> Result<()> {
        self.inner.resize(size)
    }
    fn status(&self) -> MediumStatus {
        self.inner.status()
    }
    fn ledger(&self) -> &Ledger {
        // None waits here, so that it passes if it does not panic.
        let _ = self.strike("ledger", true);
        self.inner.ledger()
    }
    fn sync(&self) -> Result<()> {
        let done = self.ledger().flush(|| self.strike("sync", true));
        // What looks next which writes a flush has covered is the end of that.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if *next == Some("covered") {
            *next = Some("ledger");
        }
        done
    }
}

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
    let medium = Planted::new();
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
