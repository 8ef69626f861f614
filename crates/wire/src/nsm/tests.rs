//! Tests of NSM: a notification made by hand from the XDR of XNFS, round trips.

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
fn golden_notify() {
    let args = NotifyArgs { mon_name: SmName(b"pc1"), state: 5 };
    let expect = [0, 0, 0, 3, b'p', b'c', b'1', 0, 0, 0, 0, 5];
    assert_eq!(encoded(&args), expect);
    assert_eq!(decode_all(&expect), Ok(args));
}

#[test]
fn numbers_are_those_of_xnfs() {
    let numbers: Vec<_> = Proc::ALL.iter().map(|p| p.0).collect();
    assert_eq!(numbers, (0..=6).collect::<Vec<_>>());
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
    fn messages_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut g = Gen::new(&entropy);
        round_trip!(g, MonArgs<'_>);
        round_trip!(g, StatArgs<'_>);
        round_trip!(g, SmStatRes);
        round_trip!(g, MonId<'_>);
        round_trip!(g, SmStat);
        round_trip!(g, NotifyArgs<'_>);
    }
}
