//! Tests of the PDU codec: bytes made by hand from the figures of RFC 7143, round trips, digests,
//! limits.

use base::limits::{ISCSI_AHS_MAX, SCSI_CDB_MAX};
use proptest::prelude::*;

use super::bhs::{BHS, PduError, RESERVED_TAG};
use super::command::{CdbParts, Residual, ScsiCommand, TaskAttribute};
use super::data::DataOut;
use super::digest::{Crc32c, Digests, digest};
use super::frame::{CutError, Framed, Framer, Pdu, PutPdu, segment_length, tail};
use super::login::{LoginStatus, Stage};
use super::reject::RejectReason;
use super::{InitiatorSn, Request, Response, Serial};
use crate::arb::Gen;

const NO: Digests = Digests { header: false, data: false };
const BOTH: Digests = Digests { header: true, data: true };

fn whole(framer: Framer, bytes: &[u8]) -> Pdu<'_> {
    match framer.next(bytes) {
        Ok(Framed::Complete(pdu)) => pdu,
        other => panic!("{other:?}"),
    }
}

fn request(bytes: &[u8]) -> Result<Request<'_>, PduError> {
    let pdu = whole(Framer::new(NO, 1 << 20), bytes);
    Request::decode(&pdu.head, pdu.data.expect("no digest"))
}

/// RFC 3720 appendix B.4 (RFC 7143 §13.1 leaves the examples to it): bytes as they are sent.
#[test]
fn digests_of_the_rfc() {
    assert_eq!(digest(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
    assert_eq!(digest(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    let up: Vec<u8> = (0..32).collect();
    assert_eq!(digest(&up), [0x4e, 0x79, 0xdd, 0x46]);
    let down: Vec<u8> = (0..32).rev().collect();
    assert_eq!(digest(&down), [0x5c, 0xdb, 0x3f, 0x11]);
    #[rustfmt::skip]
    let read_10 = [
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x14, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
        0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(digest(&read_10), [0x56, 0x3a, 0x96, 0xd9]);
    let (a, b) = read_10.split_at(17);
    assert_eq!(Crc32c::new().with(a).with(b).bytes(), digest(&read_10));
    // The example is a PDU: a SCSI Command.
    let command = ScsiCommand {
        immediate: false,
        is_final: true,
        read: true,
        write: false,
        attribute: TaskAttribute::UNTAGGED,
        lun: 0,
        itt: 0x1400_0000,
        expected_length: 0x400,
        read_length: None,
        sn: InitiatorSn { cmd_sn: Serial(0x14), exp_stat_sn: Serial(0x18) },
        cdb: CdbParts::from(&read_10[32..48]),
        data: &[],
    };
    assert_eq!(request(&read_10), Ok(Request::ScsiCommand(command)));
    let mut sent = Vec::new();
    command.put(&mut sent, Digests { header: true, data: false });
    assert_eq!(sent, [&read_10[..], &[0x56, 0x3a, 0x96, 0xd9]].concat());
}

#[test]
fn golden_long_cdb_and_read_length() {
    let cdb: Vec<u8> = (0..35).collect();
    let command = ScsiCommand {
        immediate: true,
        is_final: true,
        read: true,
        write: true,
        attribute: TaskAttribute::ORDERED,
        lun: 0x0001_0000_0000_0000,
        itt: 7,
        expected_length: 3,
        read_length: Some(512),
        sn: InitiatorSn::default(),
        cdb: CdbParts::from(&cdb[..]),
        data: b"abc",
    };
    let mut sent = Vec::new();
    command.put(&mut sent, NO);
    assert_eq!(sent[..8], [0x41, 0xe2, 0, 0, 8, 0, 0, 3]);
    assert_eq!(sent[8..10], [0, 1]);
    #[rustfmt::skip]
    let ahs = [
        0, 20, 1, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 0,
        0, 5, 2, 0, 0, 0, 2, 0,
    ];
    assert_eq!(sent[BHS..BHS + 32], ahs);
    assert_eq!(sent[BHS + 32..], *b"abc\0");
    assert_eq!(request(&sent), Ok(Request::ScsiCommand(command)));
    let mut buffer = [0; SCSI_CDB_MAX];
    assert_eq!(command.cdb.join(&mut buffer), Some(&cdb[..]));
    // Longer than its segment, and twice.
    let mut bad = sent.clone();
    bad[BHS + 1] = 200;
    assert!(matches!(request(&bad), Err(PduError::Short { .. })));
    let mut bad = sent.clone();
    bad[BHS + 26] = 1;
    assert!(matches!(request(&bad), Err(PduError::Rule { .. })));
    // An unknown header is ignored.
    let mut unknown = sent;
    unknown[BHS + 26] = 9;
    let Ok(Request::ScsiCommand(other)) = request(&unknown) else { panic!("a command") };
    assert_eq!(other.read_length, None);
}

#[test]
fn golden_login_request() {
    #[rustfmt::skip]
    let mut bytes = vec![
        0x43, 0x87, 0, 0, 0, 0, 0, 9, // immediate; T, CSG 1, NSG 3
        0x40, 0, 1, 0x37, 0, 2, 0, 5, // ISID, TSIH
        0, 0, 0, 9, 0, 1, 0, 0, // ITT, CID
        0, 0, 0, 1, 0, 0, 0, 2,
    ];
    bytes.resize(BHS, 0);
    bytes.extend_from_slice(b"a=b\0c=dd\0\0\0\0");
    let Ok(Request::Login(login)) = request(&bytes) else { panic!("a login") };
    assert_eq!(login.stages.current, Stage::LoginOperationalNegotiation);
    assert_eq!(login.stages.transit, Some(Stage::FullFeaturePhase));
    assert_eq!(login.isid.0, [0x40, 0, 1, 0x37, 0, 2]);
    assert_eq!((login.tsih, login.itt, login.cid), (5, 9, 1));
    assert_eq!(login.data, b"a=b\0c=dd\0");
    let mut sent = Vec::new();
    login.put(&mut sent, NO);
    assert_eq!(sent, bytes);
    for (flags, what) in [(0xc7, "C and T"), (0x8f, "CSG 3"), (0x82, "NSG 2"), (0x84, "back")] {
        bytes[1] = flags;
        assert!(request(&bytes).is_err(), "{what}");
    }
    assert_eq!(LoginStatus::ALL.len(), 18);
}

#[test]
fn rules_of_single_pdus() {
    let bad = |first: [u8; 2], at: usize, bytes: &[u8]| {
        let mut pdu = [0; BHS];
        pdu[..2].copy_from_slice(&first);
        pdu[at..at + bytes.len()].copy_from_slice(bytes);
        request(&pdu).expect_err("a rule is broken").reason()
    };
    let (protocol, field) = (RejectReason::PROTOCOL_ERROR, RejectReason::INVALID_PDU_FIELD);
    assert_eq!(bad([0x01, 0x40], 2, &[]), protocol, "neither F nor W");
    assert_eq!(bad([0x01, 0x85], 2, &[]), field, "ATTR");
    assert_eq!(bad([0x00, 0x80], 16, &[0xff; 4]), protocol, "NOP-Out without a tag");
    assert_eq!(bad([0x04, 0xc0], 2, &[]), protocol, "Text with F and C");
    assert_eq!(bad([0x06, 0x83], 2, &[]), field, "reason of a logout");
    assert_eq!(bad([0x10, 0x84], 2, &[]), field, "type of a SNACK");
    assert_eq!(bad([0x07, 0x80], 2, &[]), RejectReason::COMMAND_NOT_SUPPORTED);
    assert_eq!(bad([0x21, 0x80], 2, &[]), RejectReason::COMMAND_NOT_SUPPORTED, "of a target");
    let mut nop = [0; BHS];
    nop[..2].copy_from_slice(&[0x40, 0x80]);
    nop[16..20].copy_from_slice(&[0xff; 4]);
    assert!(matches!(request(&nop), Ok(Request::NopOut(nop)) if nop.itt == RESERVED_TAG));
}

#[test]
fn residuals() {
    assert_eq!(Residual::of(512, 512), Residual::None);
    assert_eq!(Residual::of(512, 0), Residual::Underflow(512));
    assert_eq!(Residual::of(0, 512), Residual::Overflow(512));
    assert_eq!(Residual::of(0, 1 << 40), Residual::Overflow(u32::MAX));
}

#[test]
fn a_wrong_header_digest_ends_the_connection_and_a_wrong_data_digest_does_not() {
    let mut sent = Vec::new();
    let request = DataOut {
        is_final: true,
        lun: 3,
        itt: 4,
        ttt: 5,
        exp_stat_sn: Serial(6),
        data_sn: Serial(7),
        offset: 8,
        data: b"12345",
    };
    request.put(&mut sent, BOTH);
    let framer = Framer::new(BOTH, 4096);
    assert_eq!(sent.len(), BHS + 4 + 8 + 4);
    assert_eq!(whole(framer, &sent).data, Ok(&b"12345"[..]));
    // Padding is covered by the digest.
    for at in [BHS + 4, BHS + 4 + 7, sent.len() - 1] {
        let mut bad = sent.clone();
        bad[at] ^= 1;
        let pdu = whole(framer, &bad);
        assert!(pdu.data.is_err());
        assert_eq!(pdu.consumed, sent.len());
    }
    for at in 0..BHS + 4 {
        let mut bad = sent.clone();
        bad[at] ^= 1;
        let error = framer.next(&bad);
        // A changed length of the additional headers requires more bytes first.
        let refused = matches!(
            error,
            Err(CutError::HeaderDigest { .. } | CutError::AhsTooLong { .. }) | Ok(Framed::Need(_))
        );
        assert!(refused, "byte {at}: {error:?}");
    }
}

#[test]
fn limits_are_found_by_the_header_alone() {
    let framer = Framer::new(NO, 1000);
    let mut bhs = [0; BHS];
    bhs[4] = (ISCSI_AHS_MAX / 4) as u8 + 1;
    assert!(matches!(framer.next(&bhs), Err(CutError::AhsTooLong { got: 260, .. })));
    bhs[4] = 0;
    bhs[5..8].copy_from_slice(&1001u32.to_be_bytes()[1..]);
    let too_long = CutError::DataTooLong { max: 1000, got: 1001 };
    assert_eq!(framer.next(&bhs), Err(too_long));
    bhs[5..8].copy_from_slice(&1000u32.to_be_bytes()[1..]);
    assert_eq!(framer.next(&bhs), Ok(Framed::Need(BHS + 1000)));
    assert!(framer.input_max() >= BHS + ISCSI_AHS_MAX + 1000);
    // The overall limit bounds every data segment.
    let framer = Framer::new(NO, usize::MAX);
    bhs[5..8].copy_from_slice(&[0xff; 3]);
    assert!(matches!(framer.next(&bhs), Err(CutError::DataTooLong { .. })));
}

#[test]
fn serials_wrap() {
    let (zero, last) = (Serial(0), Serial(u32::MAX));
    assert!(last.is_before(zero) && zero.is_after(last));
    assert_eq!(zero.since(last), Some(1));
    assert_eq!(last.since(zero), None);
    assert_eq!(zero.compare(Serial(1 << 31)), None);
    assert!(zero.is_within(Serial(u32::MAX - 3), Serial(5)));
    assert!(!Serial(6).is_within(Serial(u32::MAX - 3), Serial(5)));
    // A closed window holds nothing, not even its own start.
    for at in [0, 7, u32::MAX] {
        let first = Serial(at);
        assert!(!first.is_within(first, first.minus(1)));
        assert!(first.is_within(first, first));
        assert!(!first.next().is_within(first, first));
    }
    // A maximum that lies before the closed window is no window.
    assert!(!Serial(5).is_within(Serial(10), Serial(3)));
}

proptest! {
    #[test]
    fn requests_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..500)) {
        let request: Request<'_> = Gen::new(&entropy).arb();
        for (header, data) in [(false, false), (true, false), (false, true), (true, true)] {
            let digests = Digests { header, data };
            let mut sent = vec![];
            request.put(&mut sent, digests);
            let framer = Framer::new(digests, 1 << 20);
            for short in 0..sent.len() {
                match framer.next(&sent[..short]) {
                    Ok(Framed::Need(n)) => prop_assert!(n > short && n <= sent.len()),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            let pdu = whole(framer, &sent);
            prop_assert_eq!(pdu.consumed, sent.len());
            let data = pdu.data.expect("the digest fits");
            prop_assert_eq!(Request::decode(&pdu.head, data), Ok(request));
        }
    }

    #[test]
    fn responses_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..500)) {
        let response: Response<'_> = Gen::new(&entropy).arb();
        let mut sent = vec![];
        response.put(&mut sent, BOTH);
        let pdu = whole(Framer::new(BOTH, 1 << 20), &sent);
        prop_assert_eq!(pdu.consumed, sent.len());
        let data = pdu.data.expect("the digest fits");
        prop_assert_eq!(Response::decode(&pdu.head, data), Ok(response));
        // With its data sent from elsewhere it is the same.
        let mut data = vec![];
        response.pdu().put_data(&mut data);
        let mut apart = vec![];
        response.pdu().put_head(&mut apart, BOTH, data.len());
        apart.extend_from_slice(&data);
        apart.extend_from_slice(tail(&data, BOTH).bytes());
        prop_assert_eq!(&apart, &sent);
        let rest = segment_length(data.len(), true);
        prop_assert_eq!(pdu.head.consumed + rest, sent.len());
    }

    #[test]
    fn serials_agree_with_distances(a in any::<u32>(), by in 1u32..(1 << 31)) {
        let (start, end) = (Serial(a), Serial(a).plus(by));
        prop_assert!(start.is_before(end) && end.is_after(start));
        prop_assert_eq!(end.since(start), Some(by));
        prop_assert_eq!(end.minus(by), start);
        prop_assert!(start.is_within(start, end) && end.is_within(start, end));
        prop_assert!(!end.next().is_within(start, end) && !start.minus(1).is_within(start, end));
    }
}
