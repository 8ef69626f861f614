//! A medium that does something before a call where a test wants it: it panics, takes time, or
//! would have to wait. Tests of `serve` include this file by its path.

#![allow(dead_code, reason = "each test that includes it uses a part")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vfs::fs::Result;
use vfs::lun::ledger::Ledger;
use vfs::lun::mem::MemMedium;
use vfs::lun::{Extent, Medium, MediumStatus};
use vfs::status::Status;

/// What a call does before it begins.
type Before = Box<dyn FnOnce() + Send>;

/// The medium.
pub struct Planted {
    /// What it is over.
    pub inner: MemMedium,
    next: Mutex<Option<(&'static str, Before)>>,
    /// Reads and writes that must not wait answer that they would.
    pub blocks: AtomicBool,
    /// The next write that must not wait writes this many bytes, and then it would have to.
    pub cut: AtomicUsize,
    /// Offsets of the reads that may wait, in the order in which they have begun.
    pub reads: Mutex<Vec<u64>>,
}

impl Planted {
    /// One of this number of bytes.
    pub fn new(size: u64) -> Arc<Self> {
        let (next, blocks, cut, reads) = Default::default();
        Arc::new(Self { inner: MemMedium::new(size), next, blocks, cut, reads })
    }

    fn next(&self) -> MutexGuard<'_, Option<(&'static str, Before)>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call of this name does that before it begins.
    pub fn before(&self, call: &'static str, act: impl FnOnce() + Send + 'static) {
        *self.next() = Some((call, Box::new(act)));
    }

    /// The next call of this name panics: of a function of a medium, or `covered`, the end of a
    /// flush.
    pub fn plant(&self, call: &'static str) {
        self.before(call, move || panic!("planted in {call}"));
    }

    fn enter(&self, here: &str, may_block: bool) -> Result<()> {
        if self.blocks.load(Ordering::Relaxed) && !may_block {
            return Err(Status::WouldBlock);
        }
        // Not under the lock: other calls continue meanwhile.
        let planted = self.next().take_if(|(call, _)| *call == here);
        if let Some((_, act)) = planted {
            act();
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
        if may_block {
            self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(offset);
        }
        self.enter("read", may_block)?;
        self.inner.read(offset, into, may_block)
    }
    fn write(&self, offset: u64, data: &[u8], may_block: bool) -> Result<()> {
        self.enter("write", may_block)?;
        let cut = if may_block { 0 } else { self.cut.swap(0, Ordering::Relaxed) };
        if let Some(part) = data.get(..cut).filter(|part| !part.is_empty()) {
            self.inner.write(offset, part, may_block)?;
            return Err(Status::WouldBlock);
        }
        self.inner.write(offset, data, may_block)
    }
    fn write_durable(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.enter("write_durable", true)?;
        self.inner.write_durable(offset, data)
    }
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.inner.discard(offset, length)
    }
    fn zero(&self, offset: u64, length: u64) -> Result<()> {
        self.enter("zero", true)?;
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
        // It may wait, so that it only fails by a panic.
        let _ = self.enter("ledger", true);
        self.inner.ledger()
    }
    fn sync(&self) -> Result<()> {
        let done = self.ledger().flush(|| self.enter("sync", true));
        // What looks next at which writes a flush has covered is the end of that.
        if let Some((call @ "covered", _)) = &mut *self.next() {
            *call = "ledger";
        }
        done
    }
}
