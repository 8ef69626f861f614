//! Tests of directory listings that are written entry by entry within the client's limits.

use super::*;

const VERF: [u8; 8] = *b"verifier";

/// The size of the `resok` of a reply: without its status.
fn resok_len(reply: &[u8]) -> usize {
    reply.len() - 4
}

#[test]
fn readdir_fills_count_exactly() {
    // attributes 88, verifier 8, two entries of 4+8+4+4+8 = 28, close 8
    let exact = 88 + 8 + 2 * 28 + 8;
    for (count, entries) in [(exact, 2), (exact - 1, 1), (exact + 27, 2), (exact + 28, 3)] {
        let mut bytes = Vec::new();
        let w = &mut Writer::new(&mut bytes);
        let mut list = ReaddirEncoder::begin(w, count as u32);
        let mut cookie = 0;
        while list.add(100 + cookie, b"abc", cookie + 1) {
            cookie += 1;
        }
        assert_eq!(list.entries(), entries);
        list.finish(Some(&some_attr()), VERF, false);
        assert!(resok_len(&bytes) <= count);
        assert_eq!(resok_len(&bytes), 88 + 8 + entries * 28 + 8);
        let Res::Ok(ok) = decode_all::<ReaddirRes<'_>>(&bytes).unwrap() else { panic!() };
        assert_eq!(ok.dir_attributes, Some(some_attr()));
        assert_eq!((ok.cookieverf, ok.eof), (VERF, false));
        let names: Vec<_> = ok.entries.iter().map(|e| (e.fileid, e.name.0, e.cookie)).collect();
        let expect: Vec<_> = (0..entries as u64).map(|i| (100 + i, &b"abc"[..], i + 1)).collect();
        assert_eq!(names, expect);
    }
}

#[test]
fn entry_that_does_not_fit_leaves_nothing() {
    for count in [0, 4, 88 + 8 + 28 + 7] {
        let mut bytes = vec![9; 4];
        let w = &mut Writer::new(&mut bytes);
        let mut list = ReaddirEncoder::begin(w, count);
        assert!(!list.add(1, b"abc", 1));
        assert_eq!(list.entries(), 0);
        list.abort();
        ReaddirRes::Fail(Nfsstat3::TOOSMALL, None).encode(w);
        assert_eq!(bytes[4..], words(&[10005, 0]));
    }
}

#[test]
fn empty_listing_and_missing_attributes() {
    let mut bytes = vec![9; 4];
    let w = &mut Writer::new(&mut bytes);
    ReaddirEncoder::begin(w, 512).finish(None, VERF, true);
    assert_eq!(bytes[4..], words(&[0, 0, 0x7665_7269, 0x6669_6572, 0, 1]));
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    let mut list = ReaddirplusEncoder::begin(w, 512, 512);
    assert!(list.add(1, b"x", 2, &None, None));
    list.finish(None, VERF, true);
    let expect = [0, 0, 0x7665_7269, 0x6669_6572, 1, 0, 1, 1, 0x7800_0000, 0, 2, 0, 0, 0, 1];
    assert_eq!(bytes, words(&expect));
}

/// How many entries of one kind a READDIRPLUS takes, and the size of its `resok`.
fn plus(dircount: u32, maxcount: u32, handle: &[u8]) -> (usize, usize) {
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    let mut list = ReaddirplusEncoder::begin(w, dircount, maxcount);
    let attr = Some(some_attr());
    while list.add(7, b"abc", 1, &attr, Some(handle)) {}
    let entries = list.entries();
    list.finish(Some(&some_attr()), VERF, true);
    let Res::Ok(ok) = decode_all::<ReaddirplusRes<'_>>(&bytes).unwrap() else { panic!() };
    assert_eq!(ok.entries.iter().count(), entries);
    assert!(ok.entries.iter().all(|e| {
        e.name_attributes == attr && e.name_handle == Some(Fh3(handle)) && e.name.0 == b"abc"
    }));
    (entries, resok_len(&bytes))
}

#[test]
fn readdirplus_keeps_maxcount() {
    // entry: flag 4, fileid 8, name 8, cookie 8, attributes 88, handle 4 + 4 + 36
    let entry = 4 + 24 + 88 + 44;
    let exact = 96 + 3 * entry + 8;
    for (maxcount, entries) in [(exact, 3), (exact - 1, 2), (exact + entry - 1, 3)] {
        let got = plus(1 << 20, maxcount as u32, &[5; 33]);
        assert_eq!(got, (entries, 96 + entries * entry + 8));
    }
}

#[test]
fn readdirplus_keeps_dircount() {
    // fileid 8, name 4 + 4, cookie 8 count; attributes and handle do not.
    assert_eq!(plus(24 * 5, 1 << 16, b"h").0, 5);
    assert_eq!(plus(24 * 5 - 1, 1 << 16, b"h").0, 4);
    // Too low for one entry: one is given all the same.
    assert_eq!(plus(0, 1 << 16, b"h").0, 1);
    assert_eq!(plus(24, 96, b"h").0, 0);
}

#[test]
fn entries_end_at_the_first_flag_that_is_not_one() {
    let bytes = words(&[0, 0, 1, 2, 2]);
    let error = DecodeError::BadValue { what: "entry follows", got: 2 };
    assert_eq!(decode_all::<ReaddirRes<'_>>(&bytes), Err(error));
}
