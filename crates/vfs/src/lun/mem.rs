//! A medium in memory with faults to inject: for tests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Extent, Ledger, Medium, MediumStatus};
use crate::fs::Result;
use crate::status::Status;

/// Bytes that get space at once.
const PAGE: usize = 4096;

/// What it does wrong.
#[derive(Debug, Default)]
pub struct Faults {
    /// Flushes fail.
    pub flush: AtomicBool,
    /// Reads fail.
    pub read: AtomicBool,
    /// What would need space fails with this status.
    pub full: AtomicBool,
    /// Nothing is done at once: every call that may not block returns `WouldBlock`.
    pub slow: AtomicBool,
}

/// The medium.
#[derive(Debug)]
pub struct MemMedium {
    size: AtomicU64,
    read_only: bool,
    pages: Mutex<BTreeMap<u64, Box<[u8; PAGE]>>>,
    ledger: Ledger,
    /// What it does wrong.
    pub faults: Faults,
    stuck: Mutex<bool>,
    loose: Condvar,
    waiting: AtomicUsize,
}

impl MemMedium {
    /// A medium of `size` bytes, all of them without space.
    pub fn new(size: u64) -> Self {
        Self {
            size: AtomicU64::new(size),
            read_only: false,
            pages: Mutex::default(),
            ledger: Ledger::default(),
            faults: Faults::default(),
            stuck: Mutex::new(false),
            loose: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// One that cannot be written.
    pub fn read_only(size: u64) -> Self {
        Self { read_only: true, ..Self::new(size) }
    }

    /// While `stuck` is set, everything that may block waits.
    pub fn stick(&self, stuck: bool) {
        *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = stuck;
        self.loose.notify_all();
    }

    /// Threads that wait because of [`Self::stick`].
    pub fn waiting(&self) -> usize {
        // A thread that does not wait is not counted while this has the lock.
        let _stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.load(Ordering::Acquire)
    }

    fn pages(&self) -> MutexGuard<'_, BTreeMap<u64, Box<[u8; PAGE]>>> {
        // Nothing under this lock panics half way through a change.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, may_block: bool) -> Result<()> {
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        if !may_block && (*stuck || self.faults.slow.load(Ordering::Relaxed)) {
            return Err(Status::WouldBlock);
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        while *stuck {
            stuck = self.loose.wait(stuck).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }

    fn change(&self, may_block: bool) -> Result<()> {
        self.begin(may_block)?;
        if self.read_only { Err(Status::ReadOnly) } else { Ok(()) }
    }

    fn put(&self, offset: u64, length: u64, data: Option<&[u8]>) -> Result<()> {
        let mut pages = self.pages();
        let mut at = offset;
        while at < offset + length {
            let (number, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let count = (PAGE - within).min((offset + length - at) as usize);
            if self.faults.full.load(Ordering::Relaxed) && !pages.contains_key(&number) {
                return Err(Status::NoSpace);
            }
            let page = pages.entry(number).or_insert_with(|| Box::new([0; PAGE]));
            let place = page.get_mut(within..within + count).unwrap_or_default();
            let done = (at - offset) as usize;
            match data.and_then(|data| data.get(done..done + count)) {
                Some(data) => place.copy_from_slice(data),
                None => place.fill(0),
            }
            at += count as u64;
        }
        Ok(())
    }
}

impl Medium for MemMedium {
    fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, offset: u64, into: &mut [u8], may_block: bool) -> Result<()> {
        self.begin(may_block)?;
        if self.faults.read.load(Ordering::Relaxed) {
            return Err(Status::Io);
        }
        let pages = self.pages();
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            let within = (at % PAGE as u64) as usize;
            let count = (PAGE - within).min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            match pages.get(&(at / PAGE as u64)).and_then(|page| page.get(within..within + count)) {
                Some(data) => now.copy_from_slice(data),
                None => now.fill(0),
            }
            (at, rest) = (at + count as u64, later);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], may_block: bool) -> Result<()> {
        self.change(may_block)?;
        self.put(offset, data.len() as u64, Some(data))
    }

    fn write_durable(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data, true)?;
        if self.faults.flush.load(Ordering::Relaxed) {
            self.ledger.fail();
            return Err(Status::Io);
        }
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.change(true)?;
        let (first, end) = (offset.div_ceil(PAGE as u64), (offset + length) / PAGE as u64);
        if first < end {
            self.pages().retain(|number, _| !(first..end).contains(number));
        }
        // What is left of pages at both ends keeps its space.
        let mut pages = self.pages();
        for (number, page) in
            pages.range_mut(offset / PAGE as u64..=(offset + length) / PAGE as u64)
        {
            let start = number * PAGE as u64;
            let from = offset.saturating_sub(start).min(PAGE as u64) as usize;
            let to = (offset + length).saturating_sub(start).min(PAGE as u64) as usize;
            page.get_mut(from..to).unwrap_or_default().fill(0);
        }
        Ok(())
    }

    fn zero(&self, offset: u64, length: u64) -> Result<()> {
        self.change(true)?;
        self.put(offset, length, None)
    }

    fn extent(&self, offset: u64) -> Result<Extent> {
        self.begin(true)?;
        let (pages, size) = (self.pages(), self.size());
        let number = offset / PAGE as u64;
        let is_mapped = pages.contains_key(&number);
        let mut end = number + 1;
        while end * (PAGE as u64) < size && pages.contains_key(&end) == is_mapped {
            end += 1;
        }
        Ok(Extent { is_mapped, end: (end * PAGE as u64).min(size) })
    }

    fn resize(&self, size: u64) -> Result<()> {
        self.change(true)?;
        self.pages().retain(|number, _| number * (PAGE as u64) < size);
        self.size.store(size, Ordering::Release);
        Ok(())
    }

    fn status(&self) -> MediumStatus {
        MediumStatus {
            allocated: (self.pages().len() * PAGE) as u64,
            flush_failures: self.ledger.failures(),
            is_dirty: self.ledger.is_dirty(),
        }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn sync(&self) -> Result<()> {
        self.begin(true)?;
        self.ledger.flush(|| match self.faults.flush.load(Ordering::Relaxed) {
            true => Err(Status::Io),
            false => Ok(()),
        })
    }
}
