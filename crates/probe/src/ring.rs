//! A core's ring of operation records: the flight recorder.
//!
//! One producer (the core) overwrites the oldest record; any number of readers copy records out and
//! find by the head position whether a copy was overtaken, as in a sequence lock. The slots are
//! words of atomics, so a torn copy is a wrong value that is thrown away and never undefined.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use base::limits::RECORDER_CHUNK;

use crate::op::OpRecord;
use crate::phases::PhaseParts;

/// Words in a record.
const WORDS: usize = size_of::<OpRecord>() / 8;
/// Slots that are fetched ahead of the record being written: an ordinary burst.
const FETCH_AHEAD: u64 = 16;
/// Fewest records in a ring; below this nothing can be asked of it.
const RECORDS_MIN: usize = 64;

type Slot = [AtomicU64; WORDS];

/// One core's records, the newest [`CoreRing::capacity`] of them.
pub struct CoreRing {
    slots: NonNull<Slot>,
    capacity: u64,
    /// Records ever written; the next goes to `head % capacity`.
    head: AtomicU64,
    /// Position from which on the ring has records: those before it were dropped with their memory.
    first: AtomicU64,
    /// When that was, in ns since the epoch; 0 for never.
    dropped_ns: AtomicU64,
    /// Position up to which the memory is ready; below it, and above `first`, nothing has to be
    /// mapped when a record is written.
    ready: AtomicU64,
}

// SAFETY: the slots are atomics in memory that lives as long as the ring; `push` by two threads at
// once would mix records up but touch nothing else, and `CoreProbe` is the only caller.
unsafe impl Send for CoreRing {}
// SAFETY: as above.
unsafe impl Sync for CoreRing {}

impl CoreRing {
    /// A ring of at most `bytes`, rounded down to a power of two of records (at least 64).
    /// When the system has no such memory to give, a smaller one.
    pub fn new(bytes: usize) -> Self {
        let mut records = (bytes / size_of::<OpRecord>()).max(RECORDS_MIN);
        if !records.is_power_of_two() {
            records = records.next_power_of_two() / 2;
        }
        loop {
            if let Some(slots) = map(records * size_of::<OpRecord>()) {
                return Self::over(slots, records as u64);
            }
            assert!(records > RECORDS_MIN, "no memory for {RECORDS_MIN} operation records");
            records /= 2;
        }
    }

    /// Of these slots, none of which has memory yet.
    fn over(slots: NonNull<Slot>, capacity: u64) -> Self {
        let zero = AtomicU64::default;
        Self {
            slots,
            capacity,
            head: zero(),
            first: zero(),
            dropped_ns: zero(),
            ready: AtomicU64::new(chunk(capacity)),
        }
    }

    /// How many records it holds.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.capacity as usize * size_of::<OpRecord>()
    }

    /// Records ever written.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Position of the oldest record that a reader may still hope to copy.
    pub fn oldest(&self) -> u64 {
        let first = self.first.load(Ordering::Acquire);
        (self.head() + 1).saturating_sub(self.capacity).max(first)
    }

    /// When all records were dropped ([`Self::give_back`]), in ns since the epoch, if no record was
    /// overwritten since.
    pub fn dropped_ns(&self) -> Option<u64> {
        let dropped_ns = self.dropped_ns.load(Ordering::Acquire);
        let first = self.first.load(Ordering::Acquire);
        (dropped_ns > 0 && self.oldest() == first).then_some(dropped_ns)
    }

    #[inline]
    fn slot(&self, position: u64) -> &Slot {
        let index = (position & (self.capacity - 1)) as usize;
        // SAFETY: `index` is below `capacity`, a power of two, which is how many slots are mapped.
        unsafe { &*self.slots.as_ptr().add(index) }
    }

    /// Writes one record down. Only the ring's own core may call this.
    #[inline]
    pub(crate) fn push(&self, record: &OpRecord) {
        let head = self.head.load(Ordering::Relaxed);
        self.fetch(head + FETCH_AHEAD);
        // A reader that sees one of the words below also sees the head that allowed it.
        fence(Ordering::Release);
        for (word, value) in self.slot(head).iter().zip(pack(record)) {
            word.store(value, Ordering::Relaxed);
        }
        self.head.store(head + 1, Ordering::Release);
    }

    /// Begins to bring a slot into the cache for writing: it was last touched a whole turn of the
    /// ring ago, and records come in bursts that would wait for memory one by one.
    #[inline]
    fn fetch(&self, position: u64) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
            // SAFETY: a hint, which changes nothing and cannot fault.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(self.slot(position)).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = position;
    }

    /// The record at `position`, for the only writer, which nothing can overtake.
    #[inline]
    pub(crate) fn read_own(&self, position: u64) -> OpRecord {
        unpack(self.slot(position).each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// A copy of the record at `position`, or `None` when it was overwritten, dropped or not yet
    /// written.
    #[inline]
    pub fn read(&self, position: u64) -> Option<OpRecord> {
        if position >= self.head() {
            return None;
        }
        let copy = self.slot(position).each_ref().map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        // The producer may be writing the slot of position `head` this moment.
        let head = self.head.load(Ordering::Relaxed);
        // Its memory may be gone: `first` was moved on before.
        let first = self.first.load(Ordering::Relaxed);
        (position + self.capacity > head && position >= first).then(|| unpack(copy))
    }

    /// Has the kernel back the memory of the next `records`, so that the request path does not wait
    /// for it. Slow: for a thread that is not a core's. The memory of what is never reached is not
    /// taken, and a ring of one chunk takes it page by page.
    pub fn prepare(&self, records: u64) {
        let chunk = chunk(self.capacity);
        let target = self.head() + records;
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            let end = self.first.load(Ordering::Acquire) + self.capacity;
            if ready >= target || ready + chunk > end {
                return;
            }
            self.back(ready, chunk);
            // If the core has given all back meanwhile, it has moved `ready`, too.
            let _ = self.ready.compare_exchange(
                ready,
                ready + chunk,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
    }

    fn back(&self, from: u64, records: u64) {
        let bytes = records as usize * size_of::<OpRecord>();
        let at = std::ptr::from_ref(self.slot(from)).cast_mut().cast();
        // SAFETY: chunks divide the ring, so that the range lies within the mapping; advice and
        // populating do not change its content. Where huge pages are refused, small ones serve.
        let done = unsafe {
            libc::madvise(at, bytes, libc::MADV_HUGEPAGE);
            libc::madvise(at, bytes, libc::MADV_POPULATE_WRITE)
        };
        if done != 0 {
            self.touch_by_hand(from, records);
        }
    }

    /// Drops all records and gives their memory back. Only the ring's own core may call this, when
    /// all is aggregated: a record that was being written would be lost.
    pub(crate) fn give_back(&self, now_ns: u64) {
        let head = self.head.load(Ordering::Relaxed);
        self.dropped_ns.store(now_ns, Ordering::Release);
        self.first.store(head, Ordering::SeqCst);
        let chunk = chunk(self.capacity);
        self.ready.store((head / chunk + 1) * chunk, Ordering::Release);
        // SAFETY: this is the mapping, and its words read as zero from now on. A reader that copies
        // one meanwhile finds by `first` that it is gone.
        unsafe {
            libc::madvise(self.slots.as_ptr().cast(), self.bytes(), libc::MADV_DONTNEED);
            libc::madvise(self.slots.as_ptr().cast(), self.bytes(), libc::MADV_NOHUGEPAGE);
        }
    }

    /// Whether it holds records.
    pub(crate) fn has_records(&self) -> bool {
        self.head() > self.first.load(Ordering::Relaxed)
    }

    /// For kernels before 5.14: adds nothing to one word of each page.
    fn touch_by_hand(&self, first: u64, records: u64) {
        for position in (first..first + records).step_by(4096 / size_of::<OpRecord>()) {
            self.slot(position)[0].fetch_add(0, Ordering::Relaxed);
        }
    }
}

impl Drop for CoreRing {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and nothing refers to it any more.
        unsafe { libc::munmap(self.slots.as_ptr().cast(), self.bytes()) };
    }
}

/// Records that are made ready at a time, in a ring of this capacity; both are powers of two.
fn chunk(capacity: u64) -> u64 {
    capacity.min((RECORDER_CHUNK / size_of::<OpRecord>()) as u64)
}

fn map(bytes: usize) -> Option<NonNull<Slot>> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // A large ring begins where a huge page may.
    let align = if bytes < RECORDER_CHUNK { 0 } else { RECORDER_CHUNK };
    // SAFETY: an anonymous mapping at an address of the kernel's choice affects no existing memory.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes + align, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    let before = if align == 0 { 0 } else { at.cast::<u8>().align_offset(align) };
    // SAFETY: both ends are pages of the mapping just made; what lies between them stays.
    let at = unsafe {
        let start = at.cast::<u8>().add(before);
        if before > 0 {
            libc::munmap(at, before);
        }
        if align > before {
            libc::munmap(start.add(bytes).cast(), align - before);
        }
        start.cast()
    };
    // SAFETY: advice on the mapping just made. The first records of a server that has hardly any
    // take small pages; huge ones come with `prepare`.
    unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
    NonNull::new(at.cast())
}

#[inline]
fn pack(r: &OpRecord) -> [u64; WORDS] {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [
        r.done_ns,
        r.latency_ns,
        r.file,
        r.offset,
        pair(r.bytes, r.size),
        r.phases.bits(),
        pair(r.client, r.user),
        pair(
            u32::from_le_bytes([r.protocol, r.op, r.flags, r.core]),
            u32::from(r.share) | u32::from(r.status) << 16,
        ),
    ]
}

#[inline]
fn unpack(w: [u64; WORDS]) -> OpRecord {
    let [protocol, op, flags, core] = (w[7] as u32).to_le_bytes();
    OpRecord {
        done_ns: w[0],
        latency_ns: w[1],
        file: w[2],
        offset: w[3],
        bytes: w[4] as u32,
        size: (w[4] >> 32) as u32,
        phases: PhaseParts::from_bits(w[5]),
        client: w[6] as u32,
        user: (w[6] >> 32) as u32,
        share: (w[7] >> 32) as u16,
        status: (w[7] >> 48) as u16,
        protocol,
        op,
        flags,
        core,
    }
}

#[cfg(test)]
mod tests;
