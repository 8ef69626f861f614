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
        queue_ns: n as u32 ^ 2,
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
    ring.touch();
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
