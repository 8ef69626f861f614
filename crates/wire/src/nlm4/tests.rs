//! Tests of NLM version 4: numbers, a call made by hand from the XDR of XNFS, round trips.

use base::limits::NLM_STRING_MAX;
use proptest::prelude::*;

use super::*;
use crate::arb::{Arb, Gen};
use crate::xdr::decode_all;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

impl<'a> Arb<'a> for TestReply<'a> {
    fn arb(g: &mut Gen<'a>) -> Self {
        match g.arb() {
            Nlm4Stat::DENIED => Self::Denied(g.arb()),
            other => Self::Other(other),
        }
    }
}

fn lock() -> Nlm4Lock<'static> {
    Nlm4Lock {
        caller_name: HostName(b"pc"),
        fh: Netobj(&[0xfa, 0xce]),
        oh: Netobj(b"7@pc"),
        svid: 7,
        l_offset: 10,
        l_len: 0,
    }
}

#[test]
fn golden_lock() {
    let args = LockArgs {
        cookie: Netobj(&[1, 2, 3, 4]),
        block: true,
        exclusive: true,
        alock: lock(),
        reclaim: false,
        state: 3,
    };
    #[rustfmt::skip]
    let expect = [
        0, 0, 0, 4, 1, 2, 3, 4, // cookie
        0, 0, 0, 1, 0, 0, 0, 1, // block, exclusive
        0, 0, 0, 2, b'p', b'c', 0, 0, // caller_name
        0, 0, 0, 2, 0xfa, 0xce, 0, 0, // fh
        0, 0, 0, 4, b'7', b'@', b'p', b'c', // oh
        0, 0, 0, 7, // svid
        0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, // l_offset, l_len
        0, 0, 0, 0, 0, 0, 0, 3, // reclaim, state
    ];
    assert_eq!(encoded(&args), expect);
    assert_eq!(decode_all(&expect), Ok(args));
    assert_eq!(handle_in(Proc::LOCK, &expect), Some(&[0xfa, 0xce][..]));
    assert_eq!(handle_in(Proc::LOCK, &expect[..20]), None);
    assert_eq!(handle_in(Proc::FREE_ALL, &expect), None);
}

#[test]
fn golden_test_denied() {
    let holder = Nlm4Holder { exclusive: true, svid: 9, oh: Netobj(b"x"), l_offset: 1, l_len: 2 };
    let res = TestRes { cookie: Netobj(b""), stat: TestReply::Denied(holder) };
    #[rustfmt::skip]
    let expect = [
        0, 0, 0, 0, // cookie
        0, 0, 0, 1, // NLM4_DENIED
        0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, b'x', 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2,
    ];
    assert_eq!(encoded(&res), expect);
    assert_eq!(decode_all(&expect), Ok(res));
    let granted = TestRes { cookie: Netobj(b""), stat: TestReply::Other(Nlm4Stat::GRANTED) };
    assert_eq!(encoded(&granted), [0; 8]);
}

#[test]
fn numbers_are_those_of_xnfs() {
    let numbers: Vec<_> = Proc::ALL.iter().map(|p| p.0).collect();
    assert_eq!(numbers, (0..=15).chain(20..=23).collect::<Vec<_>>());
    let numbers: Vec<_> = Nlm4Stat::ALL.iter().map(|s| s.0).collect();
    assert_eq!(numbers, (0..=9).collect::<Vec<_>>());
}

#[test]
fn limits_have_names() {
    let long = vec![0; NLM_STRING_MAX + 1];
    let error =
        DecodeError::TooLong { what: "netobj", max: NLM_STRING_MAX, got: NLM_STRING_MAX + 1 };
    assert_eq!(decode_all::<Netobj<'_>>(&encoded(&Netobj(&long))), Err(error));
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
    fn messages_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut g = Gen::new(&entropy);
        round_trip!(g, LockArgs<'_>);
        round_trip!(g, TestRes<'_>);
        round_trip!(g, TestArgs<'_>);
        round_trip!(g, CancelArgs<'_>);
        round_trip!(g, UnlockArgs<'_>);
        round_trip!(g, Nlm4Res<'_>);
        round_trip!(g, ShareArgs<'_>);
        round_trip!(g, ShareRes<'_>);
        round_trip!(g, NotifyArgs<'_>);
    }
}
