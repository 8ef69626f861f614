//! What every medium must do, as a function that a medium's tests call. It panics, as tests do,
//! when something is not as it must be.

use std::sync::Arc;

use super::{Medium, Written, copy, flush};
use crate::flush::FlushSite;
use crate::status::Status;

/// Bytes that a medium under test must have.
pub const SIZE: u64 = 8 << 20;

/// The value of a method that did not have to wait; `None` if it would have to. Panics on other
/// errors.
fn at_once<T>(outcome: Result<T, Status>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(Status::WouldBlock) => None,
        Err(other) => panic!("at once or not at all: {other}"),
    }
}

/// Runs everything on a medium of [`SIZE`] bytes that was never written.
pub fn run(medium: &Arc<dyn Medium>) {
    assert_eq!(medium.size(), SIZE);
    assert!(!medium.is_read_only());
    data(medium.as_ref());
    space(medium.as_ref());
    copies(medium.as_ref());
    flushes(medium);
    sizes(medium.as_ref());
}

fn read(medium: &dyn Medium, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; length];
    medium.read(offset, &mut bytes, true).expect("read");
    bytes
}

fn data(medium: &dyn Medium) {
    assert_eq!(read(medium, 0, 10_000), vec![0; 10_000], "never written");
    medium.write(1000, b"hello", true).expect("write");
    assert_eq!(read(medium, 999, 7), b"\0hello\0");
    let large: Vec<u8> = (0..1 << 20).map(|n: u32| n as u8 ^ (n >> 8) as u8).collect();
    medium.write(4097, &large, true).expect("write");
    assert_eq!(read(medium, 4097, large.len()), large);
    assert_eq!(read(medium, SIZE - 1, 1), [0], "the last byte");
    medium.write(SIZE - 1, b"z", true).expect("write the last byte");
    assert_eq!(read(medium, SIZE - 1, 1), *b"z");
    medium.write_durable(1001, b"E").expect("durable");
    assert_eq!(read(medium, 1000, 5), b"hEllo");
    let mut bytes = [0; 5];
    if at_once(medium.read(1000, &mut bytes, false)).is_some() {
        assert_eq!(&bytes, b"hEllo");
    }
    if at_once(medium.write(1000, b"HELLO", false)).is_some() {
        assert_eq!(read(medium, 1000, 5), b"HELLO");
    } else {
        medium.write(1000, b"HELLO", true).expect("write");
    }
}

fn space(medium: &dyn Medium) {
    medium.discard(0, SIZE).expect("discard all");
    assert_eq!(read(medium, 0, 100_000), vec![0; 100_000]);
    let (start, length) = (1 << 20, 1 << 20);
    medium.write(start, &vec![7; length], true).expect("write");
    medium.sync().expect("sync");
    let before = medium.status().allocated;
    assert!(before >= length as u64, "{before} allocated");
    let mapped = medium.extent(start).expect("extent");
    assert!(mapped.is_mapped && mapped.end >= start + length as u64);
    medium.discard(start + 4096, 512 << 10).expect("discard");
    assert_eq!(read(medium, start, 4096), vec![7; 4096]);
    assert_eq!(read(medium, start + 4096, 512 << 10), vec![0; 512 << 10]);
    assert_eq!(read(medium, start + 4096 + (512 << 10), 4096), vec![7; 4096]);
    let after = medium.status().allocated;
    if after < before {
        let hole = medium.extent(start + 4096).expect("extent");
        assert!(!hole.is_mapped);
        assert_eq!(hole.end, start + 4096 + (512 << 10));
    }
    medium.discard(start + 1, 100).expect("a part of a page");
    assert_eq!(read(medium, start, 102), [&[7][..], &[0; 100], &[7]].concat());
    medium.zero(start, 8192).expect("zero");
    assert_eq!(read(medium, start, 8192), vec![0; 8192]);
    assert_eq!(medium.extent(SIZE - 1).expect("extent").end, SIZE, "the last");
}

fn copies(medium: &dyn Medium) {
    let pattern: Vec<u8> = (0..3 << 20).map(|n: u32| (n / 4093) as u8).collect();
    for (from, to) in [(0, 4 << 20), (0, 1 << 19), (1 << 19, 0), (100, 101), (7, 7)] {
        medium.write(from, &pattern, true).expect("write");
        copy((medium, from), (medium, to), pattern.len() as u64, &|| Ok(())).expect("copy");
        assert!(read(medium, to, pattern.len()) == pattern, "from {from} to {to}");
    }
}

fn flushes(medium: &Arc<dyn Medium>) {
    let mut written = Written::NONE;
    let ((), noted) = medium.ledger().noted(|| medium.write(0, b"x", true).expect("write"));
    written.join(noted);
    assert!(medium.status().is_dirty && !written.is_empty());
    assert_eq!(flush(medium, FlushSite::LunSync, written).wait(), Ok(()));
    assert!(!medium.status().is_dirty);
    assert_eq!(medium.status().flush_failures, 0);
}

fn sizes(medium: &dyn Medium) {
    match medium.resize(2 * SIZE) {
        Err(Status::NotSupported) => {}
        outcome => {
            outcome.expect("resize");
            assert_eq!(medium.size(), 2 * SIZE);
            assert_eq!(read(medium, SIZE, 100), [0; 100]);
            medium.write(2 * SIZE - 3, b"end", true).expect("write");
            assert_eq!(read(medium, 2 * SIZE - 3, 3), b"end");
        }
    }
}
