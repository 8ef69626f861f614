//! Tests of the SFTP codec: packets made by hand from the draft, round trips, limits.

use base::limits::{SFTP_IO_MAX, SFTP_PACKET_MAX};
use proptest::prelude::*;

use super::extended::{CopyData, UsersGroups};
use super::packet::{Hello, cut};
use super::reply::{DATA_HEAD, data_begin, data_head};
use super::request::{Open, Read, Symlink};
use super::*;
use crate::arb::Gen;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer, decode_all};

fn put(request: &Request<'_>, id: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.put(&mut Writer::new(&mut bytes), id);
    bytes
}

/// Cuts one packet and gives its type, its id and what is after it.
fn open(bytes: &[u8]) -> (PacketType, u32, Reader<'_>) {
    let packet = cut(bytes).expect("a length").expect("a whole packet");
    assert_eq!(packet.consumed, bytes.len());
    let mut r = Reader::new(packet.body);
    let id = r.u32("id").expect("an id");
    (packet.kind, id, r)
}

#[test]
fn golden_open() {
    let attrs = Attrs {
        permissions: Some(0o644),
        times: Some(Times { atime: 1, mtime: 2 }),
        ..Attrs::default()
    };
    let pflags = OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC);
    let request = Request::Open(Open { filename: PathBytes(b"/a\xff"), pflags, attrs });
    #[rustfmt::skip]
    let expect = [
        0, 0, 0, 32, 3, 0, 0, 0, 9, // length, OPEN, id
        0, 0, 0, 3, b'/', b'a', 0xff, // filename: no padding
        0, 0, 0, 0x1a, // pflags
        0, 0, 0, 0xc, 0, 0, 1, 0xa4, 0, 0, 0, 1, 0, 0, 0, 2, // attrs
    ];
    assert_eq!(put(&request, 9), expect);
    let (kind, id, mut r) = open(&expect);
    assert_eq!((kind, id), (PacketType::OPEN, 9));
    assert_eq!(Request::decode(kind, &mut r), Ok(Some(request)));
}

#[test]
fn golden_symlink_has_the_target_first() {
    let (targetpath, linkpath) = (PathBytes(b"to"), PathBytes(b"ln"));
    let bytes = put(&Request::Symlink(Symlink { targetpath, linkpath }), 1);
    assert_eq!(bytes[9..], [0, 0, 0, 2, b't', b'o', 0, 0, 0, 2, b'l', b'n']);
}

#[test]
fn golden_extended() {
    let (read_handle, write_handle) = (HandleBytes(b"r"), HandleBytes(b"w"));
    let copy = CopyData { read_handle, read_offset: 1, read_len: 0, write_handle, write_offset: 2 };
    let bytes = put(&Request::Extended(Extended::CopyData(copy)), 7);
    assert_eq!(&bytes[9..22], b"\0\0\0\x09copy-data");
    assert_eq!(&bytes[22..27], b"\0\0\0\x01r");
    let ids = UsersGroups { uids: extended::Ids(vec![0, 1000]), gids: extended::Ids(vec![]) };
    let bytes = put(&Request::Extended(Extended::UsersGroupsById(ids)), 7);
    assert_eq!(bytes[43..], [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 0, 0, 0]);
}

#[test]
fn hello_lists_extensions() {
    let bytes = b"\0\0\0\x03\0\0\0\x01a\0\0\0\x012\0\0\0\x01b\0\0\0\0";
    let hello: Hello<'_> = decode_all(bytes).expect("VERSION");
    assert_eq!(hello.version, SFTP_VERSION);
    assert_eq!(hello.extensions, [(Str(b"a"), Str(b"2")), (Str(b"b"), Str(b""))]);
    assert!(decode_all::<Hello<'_>>(b"\0\0\0\x03\0\0\0\x01a").is_err());
}

#[test]
fn extended_attributes_are_read_over() {
    let bytes = b"\x80\0\0\x01\0\0\0\0\0\0\0\x05\0\0\0\x01\0\0\0\x01k\0\0\0\x01v";
    let attrs: Attrs = decode_all(bytes).expect("attributes");
    assert_eq!(attrs, Attrs { size: Some(5), ..Attrs::default() });
}

#[test]
fn status_without_words() {
    let mut r = Reader::new(&[0, 0, 0, 1]);
    let reply = Reply::decode(PacketType::STATUS, &mut r).expect("a status");
    let Some(Reply::Status(status)) = reply else { panic!("{reply:?}") };
    assert_eq!(status.code, StatusCode::EOF);
}

#[test]
fn packets_are_cut_where_they_end() {
    let one = put(&Request::Close(request::OfHandle { handle: HandleBytes(b"1234") }), 3);
    let two = [&one[..], &one[..]].concat();
    for len in 0..one.len() {
        let need = cut(&two[..len]).expect("a length").expect_err("not whole");
        assert!(need > len && need <= one.len());
    }
    assert_eq!(cut(&two).expect("a length").expect("whole").consumed, one.len());
    assert!(matches!(cut(&[0, 0, 0, 0, 9]), Err(DecodeError::BadValue { .. })));
    let long = (SFTP_PACKET_MAX as u32 + 1).to_be_bytes();
    assert!(matches!(cut(&long), Err(DecodeError::TooLong { .. })));
}

#[test]
fn the_longest_read_fits_a_packet() {
    let mut bytes = Vec::new();
    data_head(&mut Writer::new(&mut bytes), 1, SFTP_IO_MAX);
    assert_eq!(bytes.len(), DATA_HEAD);
    bytes.resize(DATA_HEAD + SFTP_IO_MAX, 7);
    let (kind, _, mut r) = open(&bytes);
    let reply = Reply::decode(kind, &mut r).expect("data");
    assert_eq!(reply, Some(Reply::Data(Data(&bytes[DATA_HEAD..]))));
}

#[test]
fn data_is_known_by_its_begin() {
    let mut bytes = Vec::new();
    data_head(&mut Writer::new(&mut bytes), 9, SFTP_IO_MAX);
    assert_eq!(data_begin(&bytes), Some((9, SFTP_IO_MAX)));
    for short in 0..DATA_HEAD {
        assert_eq!(data_begin(&bytes[..short]), None);
    }
    // Another kind, a length that is not that of the data, and one that is no packet's.
    for (at, wrong) in [(4, PacketType::STATUS.0), (3, 0), (0, 1)] {
        let mut other = bytes.clone();
        other[at] = wrong;
        assert_eq!(data_begin(&other), None, "byte {at}");
    }
}

#[test]
fn names_stop_at_the_limit() {
    let name =
        Name { filename: PathBytes(b"12345678"), longname: Str(b""), attrs: Attrs::default() };
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    let mut names = NamesEncoder::begin(&mut w, 5, 100);
    while names.add(&name) {}
    assert_eq!(names.count(), 4);
    names.finish();
    let (kind, id, mut r) = open(&bytes);
    assert_eq!((kind, id), (PacketType::NAME, 5));
    let Ok(Some(Reply::Name(read))) = Reply::decode(kind, &mut r) else { panic!("no names") };
    assert_eq!(read.0, [name; 4]);
}

#[test]
fn long_strings_are_refused_before_they_are_read() {
    let mut bytes = (1u32 << 30).to_be_bytes().to_vec();
    bytes.push(b'x');
    let path = decode_all::<PathBytes<'_>>(&bytes);
    assert!(matches!(path, Err(DecodeError::TooLong { .. })), "{path:?}");
    let read = Read::decode(&mut Reader::new(&bytes));
    assert!(matches!(read, Err(DecodeError::TooLong { .. })), "{read:?}");
}

proptest! {
    #[test]
    fn requests_round_trip(entropy: Vec<u8>, id: u32) {
        let request: Request<'_> = Gen::new(&entropy).arb();
        // A name that is drawn may be that of an extension that is known.
        let bytes = put(&request, id);
        let (kind, got, mut r) = open(&bytes);
        prop_assert_eq!(got, id);
        prop_assert_eq!(Request::decode(kind, &mut r), Ok(Some(request)));
        prop_assert!(r.rest().is_empty());
    }

    #[test]
    fn replies_round_trip(entropy: Vec<u8>, id: u32) {
        let reply: Reply<'_> = Gen::new(&entropy).arb();
        let mut bytes = Vec::new();
        reply.put(&mut Writer::new(&mut bytes), id);
        let (kind, got, mut r) = open(&bytes);
        prop_assert_eq!(got, id);
        prop_assert_eq!(Reply::decode(kind, &mut r), Ok(Some(reply)));
        prop_assert!(r.rest().is_empty());
    }

    #[test]
    fn replies_of_extensions_round_trip(entropy: Vec<u8>) {
        let mut g = Gen::new(&entropy);
        let (names, space): (extended::UserGroupNames<'_>, extended::Statvfs) = (g.arb(), g.arb());
        let mut bytes = Vec::new();
        names.encode(&mut Writer::new(&mut bytes));
        space.encode(&mut Writer::new(&mut bytes));
        let mut r = Reader::new(&bytes);
        prop_assert_eq!(extended::UserGroupNames::decode(&mut r), Ok(names));
        prop_assert_eq!(extended::Statvfs::decode(&mut r), Ok(space));
        prop_assert!(r.finish().is_ok());
    }
}
