//! Tests of record marking, headers and credentials, with bytes made by hand from RFC 5531.

use base::limits::{RPC_FRAGMENTS_MAX, RPC_RECORD_MAX};
use proptest::prelude::*;

use super::*;
use crate::arb::Gen;
use crate::xdr::{DecodeError, Encode, Writer, decode_all};

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

fn fragment(last: bool, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32 | u32::from(last) << 31).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

#[test]
fn one_fragment_is_borrowed_in_place() {
    let mut input = fragment(true, b"abcd");
    input.extend_from_slice(&fragment(true, b"ef"));
    let mut framer = Framer::new();
    let Framed::Record { body, consumed } = framer.next(&input).unwrap() else { panic!() };
    assert_eq!((body, consumed), (&b"abcd"[..], 8));
    assert_eq!(body.as_ptr(), input[4..].as_ptr());
    let next = framer.next(&input[consumed..]).unwrap();
    assert_eq!(next, Framed::Record { body: b"ef", consumed: 6 });
}

#[test]
fn need_reports_the_missing_bytes() {
    let mut framer = Framer::new();
    assert_eq!(framer.next(&[]), Ok(Framed::Need(4)));
    assert_eq!(framer.next(&[0x80, 0, 0]), Ok(Framed::Need(4)));
    assert_eq!(framer.next(&[0x80, 0, 0, 9]), Ok(Framed::Need(13)));
    // Not the last fragment: the next header is needed too.
    assert_eq!(framer.next(&[0, 0, 0, 9]), Ok(Framed::Need(17)));
}

#[test]
fn limits_hold_before_the_bytes_arrive() {
    let mut framer = Framer::new();
    let max = RPC_RECORD_MAX as u32;
    let whole = framer.next(&(max | 1 << 31).to_be_bytes()).map(|_| ());
    assert_eq!(whole, Ok(()));
    let over = (max + 1) | 1 << 31;
    let error = RecordError::TooLong { max: RPC_RECORD_MAX, got: RPC_RECORD_MAX + 1 };
    assert_eq!(framer.next(&over.to_be_bytes()), Err(error));
    assert_eq!(framer.next(&(max + 1).to_be_bytes()), Err(error));
    // The sum of the fragments counts.
    let mut parts = fragment(false, &vec![0; RPC_RECORD_MAX]);
    parts.extend_from_slice(&(1u32 | 1 << 31).to_be_bytes());
    assert_eq!(framer.next(&parts), Err(error));
}

#[test]
fn floods_of_nothing_are_refused() {
    let mut framer = Framer::new();
    assert_eq!(framer.next(&[0x80, 0, 0, 0]), Err(RecordError::Empty));
    let mut flood = vec![0; 4 * (RPC_FRAGMENTS_MAX - 1)];
    flood.extend_from_slice(&fragment(true, b"x"));
    let record = Framed::Record { body: b"x", consumed: flood.len() };
    assert_eq!(framer.next(&flood), Ok(record));
    let flood = vec![0; 4 * RPC_FRAGMENTS_MAX];
    let error = RecordError::TooManyFragments { max: RPC_FRAGMENTS_MAX };
    assert_eq!(framer.next(&flood), Err(error));
}

#[test]
fn large_scratch_is_given_back() {
    let mut framer = Framer::new();
    let mut input = fragment(false, &[1; 200_000]);
    input.extend_from_slice(&fragment(true, &[2; 200_000]));
    let Ok(Framed::Record { body, consumed }) = framer.next(&input) else { panic!() };
    assert_eq!((body.len(), consumed), (400_000, 400_008));
    // The question that ends a turn is enough: an idle connection keeps little.
    assert_eq!(framer.next(&[]), Ok(Framed::Need(4)));
    assert!(framer.scratch_capacity() <= base::limits::RPC_SCRATCH_KEEP);
}

#[test]
fn record_headers_are_patched() {
    let mut bytes = vec![0xaa];
    let w = &mut Writer::new(&mut bytes);
    let mark = begin_record(w);
    w.u32(7);
    end_record(w, mark);
    let mark = begin_record(w);
    w.u32(8);
    end_record_with_tail(w, mark, 100);
    assert_eq!(mark.start(), 9);
    assert_eq!(bytes, [0xaa, 0x80, 0, 0, 4, 0, 0, 0, 7, 0x80, 0, 0, 104, 0, 0, 0, 8]);
}

/// A NULL call to NFSv3 with AUTH_SYS, word by word from RFC 5531 §9 and appendix A.
const CALL: [u32; 19] = [
    0x1234_5678, // xid
    0,           // CALL
    2,           // rpcvers
    100_003,     // prog
    3,           // vers
    0,           // proc
    1,           // cred flavor AUTH_SYS
    36,          // cred length
    0x5eed,      // stamp
    5,           // machinename length
    0x686f_7374, // "host"
    0x3100_0000, // "1" and padding
    1000,        // uid
    100,         // gid
    2,           // gids
    27,          // first
    1000,        // second
    0,           // verf flavor AUTH_NONE
    0,           // verf length
];

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn golden_call_with_auth_sys() {
    let mut bytes = words(&CALL);
    let call = CallHeader {
        xid: 0x1234_5678,
        prog: 100_003,
        vers: 3,
        proc: 0,
        cred: Auth::Sys(AuthSys {
            stamp: 0x5eed,
            machine: b"host1",
            uid: 1000,
            gid: 100,
            gids: Gids::new(&[27, 1000]),
        }),
        verf: Auth::None,
    };
    assert_eq!(encoded(&call), bytes);
    bytes.extend_from_slice(b"args");
    let (got, args) = open_call(&bytes).unwrap();
    assert_eq!(got, call);
    assert_eq!(args.rest(), b"args");
}

fn reply_to(record: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let error = open_call(record).unwrap_err();
    error.encode_reply(&mut Writer::new(&mut bytes)).then_some(bytes)
}

#[test]
fn wrong_headers_get_the_reply_of_the_rfc() {
    let with = |at: usize, value: u32| {
        let mut call = CALL;
        call[at] = value;
        words(&call)
    };
    let xid = CALL[0];
    // RPC version 3: MSG_DENIED, RPC_MISMATCH, 2 to 2.
    assert_eq!(reply_to(&with(2, 3)), Some(words(&[xid, 1, 1, 0, 2, 2])));
    // 17 groups, a machine name of 256, a credential of 401: MSG_DENIED, AUTH_ERROR, AUTH_BADCRED.
    for (at, value) in [(14, 17), (9, 256), (7, 401), (7, 32), (7, 40)] {
        let reply = reply_to(&with(at, value));
        assert_eq!(reply, Some(words(&[xid, 1, 1, 1, 1])), "word {at} = {value}");
    }
    // A verifier that ends early: AUTH_BADVERF.
    assert_eq!(reply_to(&with(18, 8)), Some(words(&[xid, 1, 1, 1, 3])));
    // A reply, or nothing at all, gets none.
    assert_eq!(reply_to(&with(1, 1)), None);
    assert_eq!(reply_to(&words(&CALL[..5])), None);
}

#[test]
fn unknown_flavours_survive() {
    let call = words(&[1, 0, 2, 3, 4, 5, 6, 4, 0xdead_beef, 0, 4, 0xcafe_f00d]);
    let (got, _) = open_call(&call).unwrap();
    assert_eq!(got.cred, Auth::Raw { flavor: 6, body: &[0xde, 0xad, 0xbe, 0xef] });
    assert_eq!(got.verf, Auth::Raw { flavor: 0, body: &[0xca, 0xfe, 0xf0, 0x0d] });
    assert_eq!(encoded(&got), call);
}

#[test]
fn golden_replies() {
    type Write = fn(&mut Writer<'_>, u32);
    let table: [(Write, &[u32]); 8] = [
        (success, &[9, 1, 0, 0, 0, 0]),
        (prog_unavail, &[9, 1, 0, 0, 0, 1]),
        (|w, xid| prog_mismatch(w, xid, 3, 4), &[9, 1, 0, 0, 0, 2, 3, 4]),
        (proc_unavail, &[9, 1, 0, 0, 0, 3]),
        (garbage_args, &[9, 1, 0, 0, 0, 4]),
        (system_err, &[9, 1, 0, 0, 0, 5]),
        (rpc_mismatch, &[9, 1, 1, 0, 2, 2]),
        (|w, xid| auth_error(w, xid, AuthStat::TOOWEAK), &[9, 1, 1, 1, 5]),
    ];
    for (write, expect) in table {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes), 9);
        assert_eq!(bytes, words(expect));
        let reply = decode_all::<ReplyHeader<'_>>(&bytes).unwrap();
        assert_eq!(encoded(&reply), bytes);
    }
    let nonsense = decode_all::<ReplyHeader<'_>>(&words(&[9, 1, 0, 0, 0, 6])[..]).unwrap_err();
    assert_eq!(nonsense, DecodeError::BadValue { what: "accept_stat", got: 6 });
}

#[test]
fn groups_beyond_sixteen_are_left_out() {
    let many: Vec<u32> = (0..20).collect();
    assert_eq!(Gids::new(&many).as_slice(), &many[..16]);
}

proptest! {
    #[test]
    fn headers_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..1200)) {
        let mut g = Gen::new(&entropy);
        let call: CallHeader<'_> = g.arb();
        let bytes = encoded(&call);
        prop_assert_eq!(decode_all::<CallHeader<'_>>(&bytes), Ok(call));
        for end in 0..bytes.len() {
            prop_assert!(open_call(&bytes[..end]).is_err());
        }
        let reply: ReplyHeader<'_> = g.arb();
        let bytes = encoded(&reply);
        prop_assert_eq!(decode_all::<ReplyHeader<'_>>(&bytes), Ok(reply));
        for end in 0..bytes.len() {
            prop_assert!(decode_all::<ReplyHeader<'_>>(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn any_fragmentation_gives_the_same_records(
        records in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 1..6), 1..5),
        step in 1usize..40,
    ) {
        let mut stream = Vec::new();
        for parts in &records {
            for (i, part) in parts.iter().enumerate() {
                stream.extend_from_slice(&fragment(i + 1 == parts.len(), part));
            }
        }
        let (mut framer, mut start, mut end) = (Framer::new(), 0, 0);
        for parts in &records {
            let body = parts.concat();
            if body.is_empty() {
                prop_assert_eq!(framer.next(&stream[start..]), Err(RecordError::Empty));
                return Ok(());
            }
            loop {
                match framer.next(&stream[start..end]) {
                    Ok(Framed::Record { body: got, consumed }) => {
                        prop_assert_eq!(got, &body[..]);
                        start += consumed;
                        break;
                    }
                    Ok(Framed::Need(n)) => {
                        prop_assert!(start + n > end && start + n <= stream.len());
                        end = (end + step).min(stream.len());
                    }
                    Err(RecordError::Empty) => unreachable!("checked above"),
                    Err(error) => prop_assert!(false, "{error}"),
                }
            }
        }
        prop_assert_eq!(start, stream.len());
    }
}
