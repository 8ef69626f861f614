//! Tests of the NFSv4 messages: numbers against the RFCs' tables, round trips and prefixes of
//! every operation, bounds, and the replies that are written piece by piece.

use proptest::prelude::*;

use super::*;
use crate::arb::Gen;
use crate::xdr::{DecodeError, Encode, Reader, Writer, decode_all};

mod numbers;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Encodes an arbitrary value of each type, expects the same back, and an error for every prefix.
macro_rules! round_trips {
    ($entropy:expr, $($type:ty),* $(,)?) => {$({
        let value: $type = Gen::new($entropy).arb();
        let bytes = encoded(&value);
        prop_assert_eq!(decode_all::<$type>(&bytes), Ok(value));
        for end in 0..bytes.len() {
            let short = decode_all::<$type>(&bytes[..end]);
            prop_assert!(short.is_err(), "{} of {} bytes of {:?}", end, bytes.len(), short);
        }
        let mut longer = bytes;
        longer.push(0);
        prop_assert_eq!(decode_all::<$type>(&longer), Err(DecodeError::Trailing));
    })*};
}

proptest! {
    #[test]
    fn operations_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..700)) {
        // The first byte chooses the operation.
        round_trips!(&entropy, ArgOp<'_>, ResOp<'_>, CbArgOp<'_>, CbResOp<'_>);
    }

    #[test]
    fn headers_and_attributes_round_trip(
        entropy in proptest::collection::vec(any::<u8>(), 0..700)
    ) {
        round_trips!(
            &entropy,
            CompoundArgs<'_>, CompoundRes<'_>, CbCompoundArgs<'_>, CbCompoundRes<'_>,
            Attrs4<'_>, Fattr4<'_>,
        );
    }
}

#[test]
fn every_operation_round_trips() {
    for which in 0..=255 {
        let mut entropy = vec![which];
        entropy.extend((0..400u32).map(|i| (i * 7 + u32::from(which)) as u8));
        let op: ArgOp<'_> = Gen::new(&entropy).arb();
        assert_eq!(decode_all(&encoded(&op)), Ok(op));
        let op: ResOp<'_> = Gen::new(&entropy).arb();
        assert_eq!(decode_all(&encoded(&op)), Ok(op));
    }
}

#[test]
fn a_bad_operation_does_not_touch_those_before_it() {
    let mut bytes = encoded(&CompoundArgs { tag: Tag4(b"t"), minorversion: 0, count: 3 });
    bytes.extend(words(&[24, 22, 129]));
    let mut r = Reader::new(&bytes);
    let header = <CompoundArgs<'_> as crate::xdr::Decode<'_>>::decode(&mut r).unwrap();
    assert_eq!((header.tag, header.minorversion, header.count), (Tag4(b"t"), 0, 3));
    let mut next = || <ArgOp<'_> as crate::xdr::Decode<'_>>::decode(&mut r);
    assert_eq!(next(), Ok(ArgOp::Putrootfh(())));
    assert_eq!(next(), Err(DecodeError::TooLong { what: "nfs_fh4", max: 128, got: 129 }));
}

#[test]
fn unknown_operations_are_distinguished_from_malformed_ones() {
    for number in [0, 1, 2, 76, 10044] {
        assert_eq!(decode_all(&words(&[number])), Ok(ArgOp::Illegal(number)));
    }
    assert!(matches!(decode_all::<ArgOp<'_>>(&words(&[3])), Err(DecodeError::Short { .. })));
}

#[test]
fn bitmaps_are_sets() {
    let set = Bitmap4::of(&[0, 1, 33, 82]);
    assert_eq!(encoded(&set), words(&[3, 3, 2, 1 << 18]));
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 33, 82]);
    assert!(set.has(33) && !set.has(34) && !set.has(4711));
    assert_eq!(encoded(&Bitmap4::EMPTY), words(&[0]));
    // Trailing zero words are ignored; bits beyond the capacity become one unknown attribute.
    assert_eq!(decode_all(&words(&[5, 3, 2, 1 << 18, 0, 0])), Ok(set));
    let beyond: Bitmap4 = decode_all(&words(&[6, 1, 0, 0, 0, 0, 9])).unwrap();
    assert_eq!(beyond.iter().collect::<Vec<_>>(), [0, 127]);
    assert!(matches!(
        decode_all::<Bitmap4>(&words(&[65])),
        Err(DecodeError::TooLong { what: "bitmap4", .. })
    ));
    assert_eq!(set.without(&Bitmap4::of(&[1, 82])), Bitmap4::of(&[0, 33]));
    assert_eq!(set.and(&Bitmap4::of(&[1, 2])), Bitmap4::of(&[1]));
    assert_eq!(Bitmap4::of(&[1]).or(&Bitmap4::of(&[2])), Bitmap4::of(&[1, 2]));
}

#[test]
fn attributes_travel_in_the_order_of_their_numbers() {
    let attrs = Attrs4 {
        mode: Some(0o644),
        size: Some(5),
        owner: Some(Utf8str(b"1000")),
        ..Attrs4::default()
    };
    let golden = words(&[2, 1 << 4, 1 << 1 | 1 << 4, 20, 0, 5, 0o644, 4, 0x3130_3030]);
    assert_eq!(encoded(&attrs), golden);
    assert_eq!(decode_all(&golden), Ok(attrs));
}

#[test]
fn attributes_without_a_type_are_named() {
    let fattr: Fattr4<'_> = Fattr4 { attrmask: Bitmap4::of(&[4, 67]), attr_vals: &[0; 12] };
    assert_eq!(fattr.values(), Err(FattrError::Unknown(67)));
    let short = Fattr4 { attrmask: Bitmap4::of(&[4]), attr_vals: &[0; 4] };
    assert_eq!(short.values(), Err(FattrError::Value(DecodeError::Short { what: "size" })));
    let long = Fattr4 { attrmask: Bitmap4::of(&[4]), attr_vals: &[0; 12] };
    assert_eq!(long.values(), Err(FattrError::Value(DecodeError::Trailing)));
}

#[test]
fn a_read_is_written_in_place() {
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    let open = ReadOpen4::begin(w, 8);
    let room = open.data();
    w.slice_mut(room)[..3].copy_from_slice(b"abc");
    open.finish(w, 3, true);
    let ok = Res4::<_>::Ok(ReadResOk4 { eof: true, data: b"abc" });
    assert_eq!(bytes, encoded(&ok));
    let w = &mut Writer::new(&mut bytes);
    ReadOpen4::begin(w, 8).abort(w);
    assert_eq!(bytes, encoded(&ok));
}

#[test]
fn a_listing_is_written_entry_by_entry() {
    let attrs = Attrs4 { fileid: Some(7), ..Attrs4::default() };
    let entry = |w: &mut Writer<'_>| attrs.encode(w);
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    // Verifier 8, entry 4 + 8 + 8 + (8 + 4 + 8), close 8.
    let mut list = ReaddirEncoder4::begin(w, 56);
    assert!(list.add(3, b"name", entry));
    assert!(!list.add(4, b"next", entry));
    assert_eq!(list.entries(), 1);
    list.finish([9; 8], false);
    assert_eq!(bytes.len(), 4 + 56);
    let read: Res4<ReaddirResOk4<'_>> = decode_all(&bytes).unwrap();
    let read = read.into_result().unwrap();
    assert_eq!((read.cookieverf, read.eof), ([9; 8], false));
    let names: Vec<_> = read.entries.iter().map(|e| (e.cookie, e.name.0)).collect();
    assert_eq!(names, [(3, &b"name"[..])]);
    assert_eq!(read.entries.iter().next().unwrap().attrs.values(), Ok(attrs));
}

#[test]
fn operations_belong_to_minor_versions() {
    assert!(Opnum4::RELEASE_LOCKOWNER.is_in(0) && !Opnum4::BACKCHANNEL_CTL.is_in(0));
    assert!(Opnum4::RECLAIM_COMPLETE.is_in(1) && !Opnum4::ALLOCATE.is_in(1));
    assert!(Opnum4::REMOVEXATTR.is_in(2) && !Opnum4(76).is_in(2) && !Opnum4(2).is_in(0));
    assert!(Opnum4::RENEW.is_only_in_0() && !Opnum4::OPEN.is_only_in_0());
}
