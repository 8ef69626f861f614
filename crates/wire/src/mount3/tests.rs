//! Tests of MOUNT: numbers, a call and a reply made by hand from RFC 1813 appendix I, round trips.

use base::limits::PATH_MAX;
use proptest::prelude::*;

use super::*;
use crate::arb::Gen;
use crate::rpc::{Auth, CallHeader, begin_record, end_record, open_call};
use crate::xdr::decode_all;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn procedures_have_the_numbers_of_the_rfc() {
    let names: Vec<_> = (0..7).map(Proc::name).collect();
    assert_eq!(names, ["null", "mnt", "dump", "umnt", "umntall", "export", "unknown"]);
    let numbers: Vec<_> = Mountstat3::ALL.iter().map(|s| s.0).collect();
    assert_eq!(numbers, [0, 1, 2, 5, 13, 20, 22, 63, 10004, 10006]);
}

#[test]
fn golden_mnt_call() {
    let mut bytes = Vec::new();
    let w = &mut Writer::new(&mut bytes);
    let mark = begin_record(w);
    let call = CallHeader {
        xid: 0x0a0b_0c0d,
        prog: MOUNT_PROGRAM,
        vers: MOUNT_V3,
        proc: Proc::MNT.0,
        cred: Auth::None,
        verf: Auth::None,
    };
    call.encode(w);
    Dirpath(b"/export/x").encode(w);
    end_record(w, mark);
    #[rustfmt::skip]
    let expect = [
        0x80, 0, 0, 56, // last fragment, 56 bytes
        0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 0, 0, 0, 0, 2, // xid, CALL, RPC 2
        0, 1, 0x86, 0xa5, 0, 0, 0, 3, 0, 0, 0, 1, // 100005, version 3, MNT
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // AUTH_NONE twice
        0, 0, 0, 9, b'/', b'e', b'x', b'p', b'o', b'r', b't', b'/', b'x', 0, 0, 0,
    ];
    assert_eq!(bytes, expect);
    let (got, args) = open_call(&expect[4..]).unwrap();
    assert_eq!(got, call);
    assert_eq!(decode_all(args.rest()), Ok(Dirpath(b"/export/x")));
}

#[test]
fn golden_mnt_reply() {
    #[rustfmt::skip]
    let expect = [
        0, 0, 0, 0, // MNT3_OK
        0, 0, 0, 2, 0xca, 0xfe, 0, 0, // handle of two bytes
        0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, // two flavours: AUTH_SYS, AUTH_NONE
    ];
    let res = MntRes::Ok(MntResOk {
        fhandle: Fhandle3(&[0xca, 0xfe]),
        auth_flavors: Flavors(vec![1, 0]),
    });
    assert_eq!(encoded(&res), expect);
    assert_eq!(decode_all(&expect), Ok(res));
    assert_eq!(encoded(&MntRes::Fail(Mountstat3::ACCES)), [0, 0, 0, 13]);
}

#[test]
fn limits_have_names() {
    let long = vec![b'x'; PATH_MAX + 1];
    let error = DecodeError::TooLong { what: "dirpath", max: PATH_MAX, got: PATH_MAX + 1 };
    assert_eq!(decode_all::<Dirpath<'_>>(&encoded(&Dirpath(&long))), Err(error));
    let many = encoded(&Flavors(vec![1; MOUNT_FLAVORS_MAX + 1]));
    assert!(matches!(decode_all::<Flavors>(&many), Err(DecodeError::TooLong { .. })));
    let many = encoded(&List(vec![Name(b""); MOUNT_LIST_MAX + 1]));
    assert!(matches!(decode_all::<List<Name<'_>>>(&many), Err(DecodeError::TooLong { .. })));
}

macro_rules! round_trip {
    ($g:expr, $type:ty) => {{
        let value: $type = $g.arb();
        let bytes = encoded(&value);
        prop_assert_eq!(decode_all::<$type>(&bytes), Ok(value));
        for end in 0..bytes.len() {
            prop_assert!(decode_all::<$type>(&bytes[..end]).is_err());
        }
    }};
}

proptest! {
    #[test]
    fn messages_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..800)) {
        let mut g = Gen::new(&entropy);
        round_trip!(g, MntRes<'_>);
        round_trip!(g, DumpRes<'_>);
        round_trip!(g, ExportRes<'_>);
        round_trip!(g, MntArgs<'_>);
    }
}
