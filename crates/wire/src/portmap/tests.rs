//! Tests of port mapper and rpcbind messages against RFC 1833.

use proptest::prelude::*;

use super::*;
use crate::arb::Gen;
use crate::xdr::{Encode, Writer, decode_all};

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn golden_getport() {
    let mapping = Mapping { prog: 100_003, vers: 3, prot: IPPROTO_TCP, port: 0 };
    let expect = [0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0, 0];
    assert_eq!(encoded(&mapping), expect);
    assert_eq!(decode_all(&expect), Ok(mapping));
}

#[test]
fn golden_getaddr() {
    let netid = RpcbString(b"tcp");
    let (addr, owner) = (RpcbString(b""), RpcbString(b"x"));
    let rpcb = Rpcb { prog: 100_003, vers: 3, netid, addr, owner };
    #[rustfmt::skip]
    let expect = [
        0, 1, 0x86, 0xa3, 0, 0, 0, 3,
        0, 0, 0, 3, b't', b'c', b'p', 0, 0, 0, 0, 0, 0, 0, 0, 1, b'x', 0, 0, 0,
    ];
    assert_eq!(encoded(&rpcb), expect);
    assert_eq!(decode_all(&expect), Ok(rpcb));
}

#[test]
fn universal_addresses() {
    assert_eq!(uaddr("127.0.0.1", 2049), "127.0.0.1.8.1");
    assert_eq!(uaddr_parts(b"127.0.0.1.8.1"), Some(("127.0.0.1", 2049)));
    assert_eq!(uaddr_parts(b"::1.0.111"), Some(("::1", 111)));
    for wrong in [&b""[..], b"1", b"1.2", b"1.2.256", b"1.2.-3", b"1.+2.3", b"\xff.1.2"] {
        assert_eq!(uaddr_parts(wrong), None);
    }
}

proptest! {
    #[test]
    fn lists_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut g = Gen::new(&entropy);
        let list: DumpRes = g.arb();
        prop_assert_eq!(decode_all(&encoded(&list)), Ok(list));
        let list: RpcbDumpRes<'_> = g.arb();
        let bytes = encoded(&list);
        prop_assert_eq!(decode_all(&bytes), Ok(list));
        for end in 0..bytes.len() {
            prop_assert!(decode_all::<RpcbDumpRes<'_>>(&bytes[..end]).is_err());
        }
    }
}
