//! Tests of the XDR primitives against RFC 4506.

use super::*;

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn primitives_are_big_endian() {
    let bytes = written(|w| {
        w.u32(0x0102_0304);
        w.u64(0x0506_0708_090a_0b0c);
        w.bool(true);
    });
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1]);
    let mut r = Reader::new(&bytes);
    assert_eq!(r.u32("a"), Ok(0x0102_0304));
    assert_eq!(r.u64("b"), Ok(0x0506_0708_090a_0b0c));
    assert_eq!(r.bool("c"), Ok(true));
    assert_eq!(r.finish(), Ok(()));
}

#[test]
fn opaques_are_padded_to_four() {
    for (len, pad) in [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0), (5, 3)] {
        let data = vec![0xee; len];
        let bytes = written(|w| w.opaque(&data));
        assert_eq!(bytes.len(), 4 + len + pad);
        assert!(bytes[4 + len..].iter().all(|b| *b == 0));
        assert_eq!(Reader::new(&bytes).opaque(8, "x"), Ok(&data[..]));
    }
}

#[test]
fn padding_must_be_there_but_may_be_anything() {
    let mut r = Reader::new(&[0, 0, 0, 1, b'a', 9, 9, 9]);
    assert_eq!(r.opaque(4, "x"), Ok(&b"a"[..]));
    assert_eq!(r.finish(), Ok(()));
    let mut r = Reader::new(&[0, 0, 0, 1, b'a', 0, 0]);
    assert_eq!(r.opaque(4, "x"), Err(DecodeError::Short { what: "x" }));
}

#[test]
fn opaque_borrows_from_the_message() {
    let bytes = [0, 0, 0, 2, b'h', b'i', 0, 0];
    let got = Reader::new(&bytes).opaque(2, "x").unwrap();
    assert_eq!(got.as_ptr(), bytes[4..].as_ptr());
}

#[test]
fn errors_name_the_item() {
    let mut r = Reader::new(&[0, 0, 0]);
    assert_eq!(r.u32("count"), Err(DecodeError::Short { what: "count" }));
    let mut r = Reader::new(&[0xff; 4]);
    let too_long = DecodeError::TooLong { what: "name", max: 255, got: 0xffff_ffff };
    assert_eq!(r.opaque(255, "name"), Err(too_long));
    let mut r = Reader::new(&[0, 0, 0, 2]);
    assert_eq!(r.bool("eof"), Err(DecodeError::BadValue { what: "eof", got: 2 }));
    assert_eq!(Reader::new(&[0]).finish(), Err(DecodeError::Trailing));
    // The largest length that a limit could let through must not overflow when padded.
    let mut r = Reader::new(&[0xff; 4]);
    assert_eq!(r.opaque(usize::MAX, "data"), Err(DecodeError::Short { what: "data" }));
    assert_eq!(r.fixed(usize::MAX, "data"), Err(DecodeError::Short { what: "data" }));
}

#[test]
fn lists_end_at_their_limit() {
    let bytes = written(|w| {
        for _ in 0..3 {
            w.bool(true);
            Some(7u32).encode(w);
        }
        w.bool(false);
    });
    assert_eq!(Reader::new(&bytes).list::<Option<u32>>(3, "l").unwrap(), [Some(7); 3]);
    let too_long = DecodeError::TooLong { what: "l", max: 2, got: 3 };
    assert_eq!(Reader::new(&bytes).list::<Option<u32>>(2, "l"), Err(too_long));
}

#[test]
fn what_was_written_can_be_patched_and_taken_back() {
    let bytes = written(|w| {
        w.u32(1);
        let room = w.zeros(4);
        w.u32(3);
        w.slice_mut(room.clone()).copy_from_slice(&[9; 4]);
        w.patch_u32(0, 5);
        w.remove(room);
        w.u32(4);
        w.truncate(8);
    });
    assert_eq!(bytes, [0, 0, 0, 5, 0, 0, 0, 3]);
}
