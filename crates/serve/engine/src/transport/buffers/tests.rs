//! Reply buffers keep what was written, whatever is appended, cut and moved.

use super::*;

#[test]
fn stale_room_follows_what_was_written() {
    let mut buf = ReplyBuf::with_capacity(16);
    buf.vec().extend_from_slice(b"head");
    let start = buf.extend_stale(8);
    assert_eq!((start, buf.len()), (4, 12));
    assert_eq!(&buf.as_slice()[..4], b"head");
    buf.vec()[start..].copy_from_slice(b"12345678");
    buf.truncate(4);
    let again = buf.extend_stale(8);
    assert_eq!(&buf.as_slice()[again..], b"12345678", "the room was not cleared again");
}

#[test]
fn stale_room_after_growth_is_initialised() {
    let mut buf = ReplyBuf::with_capacity(4);
    for round in 0..200_usize {
        buf.vec().extend_from_slice(&round.to_le_bytes());
        let before = buf.as_slice().to_vec();
        let start = buf.extend_stale(round);
        assert_eq!(&buf.as_slice()[..start], &before[..]);
        assert_eq!(buf.len(), start + round);
        // Reads every byte, so that a checker of memory would see uninitialised ones.
        let sum: usize = buf.as_slice().iter().map(|b| usize::from(*b)).sum();
        assert!(sum <= buf.len() * 255);
        if round % 3 == 0 {
            buf.truncate(round / 2);
        }
    }
}

#[test]
fn split_off_takes_the_tail() {
    let mut buf = ReplyBuf::default();
    buf.vec().extend_from_slice(b"abcdef");
    assert_eq!(buf.split_off(4), b"ef");
    assert_eq!(buf.as_slice(), b"abcd");
    assert!(buf.split_off(9).is_empty());
}

#[test]
fn buffers_come_back() {
    let core = CoreBuffers::default();
    let mut first = core.take_receive();
    first.push(1);
    let place = first.as_ptr();
    core.give_receive(first);
    let second = core.take_receive();
    assert!(second.is_empty() && second.as_ptr() == place);
    let large = LargeBuffers::default();
    let buffer = large.take(1 << 20);
    let place = buffer.as_ptr();
    large.give(buffer);
    let again = large.take(1 << 19);
    assert_eq!(again.as_ptr(), place);
}
