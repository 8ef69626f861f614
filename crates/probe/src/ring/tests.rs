//! Records come out as they went in; what was overtaken is refused, also while being written.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;

fn record(n: u64) -> OpRecord {
    OpRecord {
        done_ns: n,
        latency_ns: n,
        file: n,
        offset: n,
        bytes: n as u32,
        size: n as u32 ^ 1,
        phases: PhaseParts::from_bits(n ^ 2),
        client: n as u32 ^ 3,
        user: n as u32 ^ 4,
        share: n as u16,
        status: n as u16 ^ 5,
        protocol: n as u8,
        op: n as u8 ^ 6,
        flags: n as u8 ^ 7,
        core: n as u8 ^ 8,
    }
}

#[test]
fn a_record_comes_out_as_it_went_in() {
    let ring = CoreRing::new(4096);
    ring.push(&record(0x1234_5678_9abc_def1));
    assert_eq!(ring.read(0), Some(record(0x1234_5678_9abc_def1)));
    assert_eq!(ring.read(1), None);
}

#[test]
fn the_oldest_are_overwritten_and_refused() {
    let ring = CoreRing::new(64 * 64);
    ring.prepare(64);
    for n in 0..200 {
        ring.push(&record(n));
    }
    assert_eq!(ring.capacity(), 64);
    assert_eq!(ring.oldest(), 200 + 1 - 64);
    assert_eq!(ring.read(ring.oldest() - 1), None);
    for n in ring.oldest()..200 {
        assert_eq!(ring.read(n), Some(record(n)));
    }
}

#[test]
fn a_reader_never_sees_half_a_record() {
    let ring = Arc::new(CoreRing::new(64 * 64));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (ring, stop) = (ring.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                ring.push(&record(n));
                n += 1;
            }
        })
    };
    let mut seen = 0u32;
    while seen < 100_000 {
        let position = ring.oldest();
        if let Some(copy) = ring.read(position) {
            assert_eq!(copy, record(position));
            seen += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the writer ends");
}

/// Bytes of a ring that have memory (mincore(2)).
fn backed(ring: &CoreRing) -> usize {
    let mut pages = vec![0u8; ring.bytes() / 4096];
    // SAFETY: the mapping of the ring, and a byte for each of its pages.
    let done = unsafe {
        libc::mincore(ring.slots.as_ptr().cast(), ring.bytes(), pages.as_mut_ptr().cast())
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    4096 * pages.iter().filter(|page| **page & 1 == 1).count()
}

/// A ring of four chunks.
const LARGE: usize = 4 * RECORDER_CHUNK;

#[test]
fn memory_comes_with_the_records() {
    let ring = CoreRing::new(LARGE);
    assert_eq!((ring.bytes(), backed(&ring)), (LARGE, 0));
    for n in 0..640 {
        ring.push(&record(n));
    }
    // The slot that is fetched ahead may be on another page.
    assert!((40_960..=2 * 40_960).contains(&backed(&ring)), "{}", backed(&ring));
    // They end within the first chunk.
    ring.prepare(640);
    assert!(backed(&ring) <= 2 * 40_960, "{}", backed(&ring));
    let chunk = (RECORDER_CHUNK / size_of::<OpRecord>()) as u64;
    ring.prepare(chunk);
    assert!((RECORDER_CHUNK..2 * RECORDER_CHUNK).contains(&backed(&ring)), "{}", backed(&ring));
    ring.prepare(u64::from(u32::MAX));
    assert!(backed(&ring) > 3 * RECORDER_CHUNK, "{}", backed(&ring));
    assert_eq!(ring.read(639), Some(record(639)));
}

#[test]
fn memory_that_is_given_back_has_no_records() {
    let ring = CoreRing::new(LARGE);
    let chunk = (RECORDER_CHUNK / size_of::<OpRecord>()) as u64;
    let count = 5 * chunk + 7;
    for n in 0..count {
        ring.push(&record(n));
    }
    assert!(ring.has_records() && ring.read(count - 1).is_some());
    assert_eq!((backed(&ring), ring.dropped_ns()), (LARGE, None));
    ring.give_back(77);
    assert_eq!((backed(&ring), ring.oldest(), ring.has_records()), (0, count, false));
    assert_eq!((ring.read(count - 1), ring.dropped_ns()), (None, Some(77)));
    for n in count..count + 3 * chunk {
        ring.push(&record(n));
    }
    assert_eq!(ring.oldest(), count);
    assert_eq!((ring.read(count - 1), ring.read(count)), (None, Some(record(count))));
    assert_eq!(ring.read(count + 3 * chunk - 1), Some(record(count + 3 * chunk - 1)));
    ring.prepare(u64::from(u32::MAX));
    assert_eq!(backed(&ring), LARGE, "all of it: the first chunk was written by hand");
    for n in count + 3 * chunk..count + 5 * chunk {
        ring.push(&record(n));
    }
    assert_eq!((ring.oldest(), ring.dropped_ns()), (count + chunk + 1, None), "overwritten");
}

#[test]
fn readers_never_see_memory_that_was_given_back() {
    let ring = Arc::new(CoreRing::new(64 * 64));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (ring, stop) = (ring.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut n = 1;
            ring.push(&record(0));
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..40 {
                    ring.push(&record(n));
                    n += 1;
                }
                ring.give_back(n);
            }
        })
    };
    let mut seen = 0u32;
    while seen < 10_000 {
        let position = ring.head().saturating_sub(1);
        if let Some(copy) = ring.read(position) {
            assert_eq!(copy, record(position));
            seen += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the writer ends");
}
