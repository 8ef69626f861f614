//! Tests of commands, sense data and addresses: bytes made by hand from SPC and SBC, round trips,
//! and the sense data of every kind of fault.

use proptest::prelude::*;

use super::cdb::*;
use super::lun::{Lun, put_report, report};
use super::opcodes::{COMMANDS, with_opcode};
use super::sense::{Asc, Format, Pointer, Sense, SenseKey, Specific};
use super::{ResponseError, ScsiError};
use crate::arb::Gen;

#[test]
fn golden_reads_of_each_form() {
    let read = |width, lba, count, no_cache, force_unit_access| {
        let blocks = Blocks { width, lba, count, group: if width == Width::Six { 0 } else { 5 } };
        Cdb::Read(Io { blocks, no_cache, force_unit_access })
    };
    #[rustfmt::skip]
    let cases: [(Cdb, &[u8]); 5] = [
        (read(Width::Six, 0x1f_0203, 256, false, false), &[0x08, 0x1f, 2, 3, 0, 0]),
        (read(Width::Ten, 0x0102_0304, 0x0506, true, false),
            &[0x28, 0x10, 1, 2, 3, 4, 5, 5, 6, 0]),
        (read(Width::Twelve, 0x0102_0304, 0x0506_0708, false, true),
            &[0xa8, 0x08, 1, 2, 3, 4, 5, 6, 7, 8, 5, 0]),
        (read(Width::Sixteen, 0x0102_0304_0506_0708, 0x090a_0b0c, true, true),
            &[0x88, 0x18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 5, 0]),
        (read(Width::ThirtyTwo, 0x0102_0304_0506_0708, 0x090a_0b0c, true, true),
            &[0x7f, 0, 0, 0, 0, 0, 5, 0x18, 0, 9, 0x18, 0, 1, 2, 3, 4, 5, 6, 7, 8,
              0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 11, 12]),
    ];
    for (cdb, bytes) in cases {
        assert_eq!(cdb.encode().expect("a form").bytes(), bytes);
        assert_eq!(Cdb::decode(bytes), Ok(cdb));
        // As iSCSI pads it.
        assert_eq!(Cdb::decode(&[bytes, &[0; 16]].concat()), Ok(cdb));
    }
    assert!(read(Width::Six, 0x20_0000, 1, false, false).encode().is_none());
    assert!(read(Width::Ten, 0, 65_536, false, false).encode().is_none());
    assert!(read(Width::Six, 0, 0, false, false).encode().is_none());
}

#[test]
fn golden_others() {
    #[rustfmt::skip]
    let cases: [(Cdb, &[u8]); 9] = [
        (Cdb::TestUnitReady, &[0; 6]),
        (Cdb::Inquiry { page: Some(0x83), allocation: 0x0102 }, &[0x12, 1, 0x83, 1, 2, 0]),
        (Cdb::ReadCapacity16 { allocation: 32 },
            &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]),
        (Cdb::Unmap { group: 0, list_length: 24 }, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]),
        (Cdb::PersistentReserveOut(PersistentReserveOut {
                action: ReserveOut::PreemptAndAbort, scope: 0, kind: 5, list_length: 24 }),
            &[0x5f, 5, 5, 0, 0, 0, 0, 0, 24, 0]),
        (Cdb::ReportOpcodes { timeouts: true, query: OpcodeQuery::OneAny(0x9e, 0x10),
                allocation: 64 },
            &[0xa3, 0x0c, 0x83, 0x9e, 0, 0x10, 0, 0, 0, 64, 0, 0]),
        (Cdb::ReportTargetPortGroups { format: 1, allocation: 255 },
            &[0xa3, 0x2a, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0]),
        (Cdb::ModeSense(ModeSense { width: Width::Six, long_lba: false,
                no_block_descriptors: true, control: 2, page: 8, subpage: 0, allocation: 24 }),
            &[0x1a, 8, 0x88, 0, 24, 0]),
        (Cdb::ReceiveCopyResults { action: ReceiveCopy::OperatingParameters, list_id: 0,
                allocation: 1024 },
            &[0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]),
    ];
    for (cdb, bytes) in cases {
        assert_eq!(cdb.encode().expect("a form").bytes(), bytes);
        assert_eq!(Cdb::decode(bytes), Ok(cdb));
    }
}

#[test]
fn faults_name_their_field() {
    let fault = |bytes: &[u8]| Cdb::decode(bytes).expect_err("it is wrong");
    assert_eq!(fault(&[]), ScsiError::UnknownOpcode(0));
    assert_eq!(fault(&[0xff; 16]), ScsiError::UnknownOpcode(0xff));
    // Protection, NACA, reserved bytes, page without EVPD.
    assert_eq!(fault(&[0x28, 0xe0, 0, 0, 0, 0, 0, 0, 1, 0]), ScsiError::cdb(1, 7));
    assert_eq!(fault(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 4]), ScsiError::cdb(9, 2));
    assert_eq!(fault(&[0x00, 0, 0, 1, 0, 0]), ScsiError::cdb(3, 0));
    assert_eq!(fault(&[0x12, 0, 0x83, 0, 255, 0]), ScsiError::cdb(2, 7));
    assert_eq!(fault(&[0x12, 2, 0, 0, 255, 0]), ScsiError::cdb(1, 1), "CMDDT");
    // ANCHOR, reserved BYTCHK, BYTCHK of WRITE AND VERIFY.
    assert_eq!(fault(&[0x41, 0x10, 0, 0, 0, 0, 0, 0, 1, 0]), ScsiError::cdb(1, 4));
    assert_eq!(fault(&[0x2f, 4, 0, 0, 0, 0, 0, 0, 1, 0]), ScsiError::cdb(1, 2));
    assert_eq!(fault(&[0x2e, 6, 0, 0, 0, 0, 0, 0, 1, 0]), ScsiError::cdb(1, 2));
    // Service actions.
    assert_eq!(fault(&[0x5e, 4, 0, 0, 0, 0, 0, 0, 8, 0]), ScsiError::cdb(1, 4));
    assert_eq!(fault(&[[0x9e, 0x1f].as_slice(), &[0; 14]].concat()), ScsiError::cdb(1, 4));
    let mut long = [0; 32];
    long[0] = 0x7f;
    assert_eq!(fault(&long), ScsiError::cdb(8, 7));
    (long[7], long[9]) = (0x10, 9);
    assert_eq!(fault(&long), ScsiError::cdb(7, 7), "additional length");
    // Too short.
    let short = ScsiError::CdbField(Pointer { byte: 6, bit: None });
    assert_eq!(fault(&[0x28, 0, 0, 0, 0, 0]), short);
    let sense = fault(&[0x28, 0xe0, 0, 0, 0, 0, 0, 0, 1, 0]).sense();
    let mut bytes = Vec::new();
    sense.put(Format::Fixed, &mut bytes);
    #[rustfmt::skip]
    assert_eq!(bytes, [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xcf, 0, 1]);
}

#[test]
fn lengths_of_data() {
    let blocks = Blocks { width: Width::Sixteen, lba: 9, count: 3, group: 0 };
    let io = Io { blocks, no_cache: false, force_unit_access: false };
    let verify = |compare| VerifyIo { blocks, no_cache: false, compare };
    let same = |no_data| Cdb::WriteSame(WriteSame { blocks, unmap: true, no_data });
    let none = Io { blocks: Blocks { count: 0, ..blocks }, ..io };
    for (cdb, data) in [
        (Cdb::Read(io), Data::In(1536)),
        (Cdb::Read(none), Data::None),
        (Cdb::Write(io), Data::Out(1536)),
        (Cdb::OrWrite(io), Data::Out(1536)),
        (Cdb::CompareAndWrite(io), Data::Out(3072)),
        (Cdb::CompareAndWrite(none), Data::None),
        (Cdb::Verify(verify(Compare::Nothing)), Data::None),
        (Cdb::Verify(verify(Compare::Each)), Data::Out(1536)),
        (Cdb::Verify(verify(Compare::AllWithOne)), Data::Out(512)),
        (Cdb::WriteAndVerify(verify(Compare::Nothing)), Data::Out(1536)),
        (same(false), Data::Out(512)),
        (same(true), Data::None),
        (Cdb::Unmap { group: 0, list_length: 24 }, Data::Out(24)),
        (Cdb::ReadCapacity10, Data::In(8)),
        (Cdb::Inquiry { page: None, allocation: 96 }, Data::In(96)),
        (Cdb::TestUnitReady, Data::None),
    ] {
        assert_eq!(cdb.data(512), data, "{cdb:?}");
    }
    let most = Blocks { count: u32::MAX, ..blocks };
    assert_eq!(Cdb::Write(Io { blocks: most, ..io }).data(4096), Data::Out(0xffff_ffff * 4096));
}

#[test]
fn commands_are_in_order_and_complete() {
    let numbers = COMMANDS.iter().map(|c| (c.opcode(), c.action));
    assert!(numbers.is_sorted_by(|a, b| a < b));
    for command in COMMANDS {
        // With nothing else than what it must have, each is a command; with all that it may have
        // set, nothing is wrong but values that exclude each other.
        let mut cdb = [0; 32];
        cdb[0] = command.opcode();
        match command.action {
            Some(action) if cdb[0] == 0x7f => (cdb[7], cdb[9]) = (0x18, action as u8),
            Some(action) => cdb[1] = action as u8,
            None => {}
        }
        let decoded = Cdb::decode(&cdb).expect(command.name);
        assert_eq!(decoded.command().map(|c| c.name), Some(command.name));
        assert_eq!(decoded.encode().expect("a form").bytes(), &cdb[..command.length()]);
        // Each reserved byte is refused, at that byte.
        for at in 1..command.length() {
            let is_action =
                matches!((cdb[0], at), (0x7f, 7..=9)) || command.action.is_some() && at == 1;
            if command.usage[at] == 0 && !is_action {
                let mut bad = cdb;
                bad[at] = 0x10;
                assert_eq!(
                    Cdb::decode(&bad),
                    Err(ScsiError::cdb(at as u16, 4)),
                    "{}",
                    command.name
                );
            }
        }
    }
    assert_eq!(with_opcode(0x5f).count(), 8);
    assert_eq!(with_opcode(0xc0).count(), 0);
}

#[test]
fn golden_sense_in_both_formats() {
    let sense = Sense::new(SenseKey::MISCOMPARE, Asc::MISCOMPARE).with_information(0x0102_0304);
    let mut bytes = Vec::new();
    sense.put(Format::Fixed, &mut bytes);
    assert_eq!(bytes, [0xf0, 0, 0x0e, 1, 2, 3, 4, 10, 0, 0, 0, 0, 0x1d, 0, 0, 0, 0, 0]);
    bytes.clear();
    sense.put(Format::Descriptor, &mut bytes);
    #[rustfmt::skip]
    assert_eq!(bytes, [0x72, 0x0e, 0x1d, 0, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
    // Too large for the fixed format: left out.
    bytes.clear();
    sense.with_information(1 << 32).put(Format::Fixed, &mut bytes);
    assert_eq!(bytes[..7], [0x70, 0, 0x0e, 0, 0, 0, 0]);
    let progress = Sense {
        specific: Some(Specific::Progress(0x8000)),
        ..Sense::new(SenseKey::NOT_READY, Asc::BECOMING_READY)
    };
    bytes.clear();
    progress.put(Format::Descriptor, &mut bytes);
    assert_eq!(bytes[8..], [2, 6, 0, 0, 0x80, 0x80, 0, 0]);
    for bad in [&[][..], &[0x70, 0], &[0x72, 5, 0x24]] {
        assert_eq!(Sense::decode(bad), Err(ResponseError::Short { what: "sense data" }));
    }
    assert!(Sense::decode(&[0x7f; 20]).is_err());
    // A truncated descriptor, and an unknown one.
    assert!(Sense::decode(&[0x72, 5, 0x24, 0, 0, 0, 0, 12, 0, 10, 0x80]).is_ok());
    let unknown = Sense::decode(&[0x72, 5, 0x24, 0, 0, 0, 0, 4, 0x99, 2, 0, 0]);
    assert_eq!(unknown, Ok(Sense::new(SenseKey::ILLEGAL_REQUEST, Asc::INVALID_FIELD_IN_CDB)));
}

#[test]
fn units_have_addresses() {
    assert_eq!(Lun::of(0), Some(Lun(0)));
    assert_eq!(Lun::of(7), Some(Lun(0x0007_0000_0000_0000)));
    assert_eq!(Lun::of(256), Some(Lun(0x4100_0000_0000_0000)));
    assert_eq!(Lun::of(0x4000), None);
    for number in [0, 1, 255, 256, 0x3fff] {
        assert_eq!(Lun::of(number).and_then(Lun::number), Some(number));
    }
    // Flat addressing of a small number is the same unit.
    assert_eq!(Lun(0x4007 << 48).number(), Some(7));
    for none in [0x0107 << 48, Lun::REPORT_LUNS.0, 0x8000 << 48, 1, 1 << 32] {
        assert_eq!(Lun(none).number(), None, "{none:x}");
    }
    let (luns, mut data) = ([Lun(0), Lun(1 << 48)], Vec::new());
    put_report(&luns, &mut data);
    assert_eq!(data[..8], [0, 0, 0, 16, 0, 0, 0, 0]);
    assert_eq!(report(&data), Ok((luns.to_vec(), 24)));
    assert_eq!(report(&data[..20]), Ok((vec![Lun(0)], 24)), "cut by the allocation length");
    assert!(report(&data[..7]).is_err());
}

proptest! {
    #[test]
    fn commands_round_trip(entropy in proptest::collection::vec(any::<u8>(), 0..64)) {
        let cdb: Cdb = Gen::new(&entropy).arb();
        let bytes = cdb.encode();
        prop_assert!(bytes.is_some(), "{:?}", cdb);
        let bytes = bytes.expect("a form");
        prop_assert_eq!(Cdb::decode(bytes.bytes()), Ok(cdb));
        prop_assert_eq!(cdb.command().map(|c| c.length()), Some(bytes.bytes().len()));
        let _ = cdb.data(512);
    }

    #[test]
    fn sense_round_trips(entropy in proptest::collection::vec(any::<u8>(), 0..64)) {
        let sense: Sense = Gen::new(&entropy).arb();
        let mut bytes = vec![];
        sense.put(Format::Descriptor, &mut bytes);
        prop_assert_eq!(Sense::decode(&bytes), Ok(sense));
        bytes.clear();
        sense.put(Format::Fixed, &mut bytes);
        // The fixed format has room for 32 bits, and takes 0 for none in one field.
        let narrow = |n: Option<u64>| n.filter(|n| *n <= u64::from(u32::MAX));
        let expect = Sense {
            information: narrow(sense.information),
            command_information: narrow(sense.command_information).filter(|n| *n != 0),
            ..sense
        };
        prop_assert_eq!(Sense::decode(&bytes), Ok(expect));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(cdb) = Cdb::decode(&bytes) {
            prop_assert!(cdb.encode().is_some(), "{:?}", cdb);
        }
        let _ = Sense::decode(&bytes);
    }
}
