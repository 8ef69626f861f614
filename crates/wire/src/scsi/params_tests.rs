//! Tests of the data that commands carry: bytes made by hand from SPC and SBC, round trips, faults.

use base::limits::{SCSI_COPY_TARGETS_MAX, SCSI_UNMAP_DESCRIPTORS_MAX};
use proptest::prelude::*;

use super::capacity::{Capacity, LbaStatus, lba_status, put_lba_status};
use super::cdb::{ReserveOut, Width};
use super::copy::{Copy, CopyStatus, CopyTarget, OperatingParameters, Segment};
use super::inquiry::Inquiry;
use super::mode::{self, BlockDescriptor, Caching, Control, ControlExtension, Header};
use super::mode::{ErrorRecovery, Exceptions, check_change, pages};
use super::opcodes::{COMMANDS, find, with_opcode};
use super::ports::{
    AccessState, PortGroup, TaskFunctions, Timeouts, all_commands, one_command, port_groups,
    put_all_commands, put_one_command, put_port_groups,
};
use super::reserve::{
    Capabilities, FullStatus, More, Parameters, Reservation, full_status, keys, put_full_status,
    put_keys, put_reservation, reservation,
};
use super::transport_id::TransportId;
use super::unmap::{self, Extent};
use super::vpd::{
    self, Association, BlockLimits, Characteristics, Designator, Extended, Provisioning,
};
use super::{ResponseError, ScsiError};
use crate::iscsi::login::Isid;

/// What a function appends.
fn put(f: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![];
    f(&mut out);
    out
}

#[test]
fn golden_inquiry() {
    let inquiry = Inquiry {
        qualifier: 0,
        device_type: 0,
        is_removable: false,
        version: 6,
        is_hierarchical: true,
        port_groups: 1,
        third_party_copy: true,
        protect: false,
        multi_port: true,
        command_queue: true,
        vendor: *b"PLIMSOLL",
        product: *b"LUN             ",
        revision: *b"0001",
        versions: [0x00a2, 0x0960, 0x04c0, 0x0460, 0, 0, 0, 0],
    };
    let bytes = put(|out| inquiry.put(out));
    assert_eq!(bytes.len(), 96);
    assert_eq!(bytes[..8], [0, 0, 6, 0x12, 91, 0x18, 0x10, 2]);
    assert_eq!(bytes[8..36], *b"PLIMSOLLLUN             0001");
    assert_eq!(bytes[58..62], [0, 0xa2, 9, 0x60]);
    assert_eq!(Inquiry::decode(&bytes), Ok(inquiry));
    assert_eq!(Inquiry::decode(&bytes[..36]).map(|i| i.versions), Ok([0; 8]));
    assert!(Inquiry::decode(&bytes[..35]).is_err());
}

#[test]
fn golden_vpd() {
    let pages = put(|out| vpd::put_supported(&[0, 0x80, 0x83], out));
    assert_eq!(pages, [0, 0, 0, 3, 0, 0x80, 0x83]);
    assert_eq!(vpd::supported(&pages), Ok(&[0, 0x80, 0x83][..]));
    assert_eq!(vpd::serial(&put(|out| vpd::put_serial("ab12", out))), Ok(&b"ab12"[..]));
    let wrong = ResponseError::BadValue { what: "code of a VPD page", got: 0 };
    assert_eq!(vpd::serial(&pages), Err(wrong));
    let naa = [0x60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let list = [
        Designator::naa6(naa),
        Designator::t10(*b"PLIMSOLL", "x"),
        Designator::relative_port(1),
        Designator::port_group(2),
        Designator::name_string(Association::Device, "iqn.a"),
    ];
    let bytes = put(|out| vpd::put_identification(&list, out));
    assert_eq!(bytes[..8], [0, 0x83, 0, 61, 1, 3, 0, 16]);
    assert_eq!(bytes[24..28], [2, 1, 0, 9]);
    assert_eq!(bytes[37..45], [0x51, 0x94, 0, 4, 0, 0, 0, 1]);
    assert_eq!(bytes[45..53], [0x51, 0x95, 0, 4, 0, 0, 0, 2]);
    assert_eq!(bytes[53..], [0x53, 0xa8, 0, 8, b'i', b'q', b'n', b'.', b'a', 0, 0, 0]);
    assert_eq!(vpd::identification(&bytes), Ok(list.to_vec()));
    assert_eq!(vpd::identification(&bytes[..30]).map(|list| list.len()), Ok(1), "cut off");
}

#[test]
fn golden_block_pages() {
    let limits = BlockLimits {
        write_same_non_zero: true,
        compare_and_write_max: 255,
        transfer_granularity: 8,
        transfer_max: 0x8000,
        transfer_optimal: 0x800,
        prefetch_max: 0,
        unmap_max: 0x40_0000,
        unmap_descriptors_max: 256,
        unmap_granularity: 8,
        unmap_alignment: Some(0),
        write_same_max: 0x1_0000_0000,
    };
    let bytes = put(|out| limits.put(out));
    #[rustfmt::skip]
    assert_eq!(bytes[..44], [
        0, 0xb0, 0, 0x3c, 1, 255, 0, 8, 0, 0, 0x80, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0x40, 0, 0,
        0, 0, 1, 0, 0, 0, 0, 8, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    ]);
    assert_eq!((bytes.len(), BlockLimits::decode(&bytes)), (64, Ok(limits)));
    let kind = Characteristics { rotation_rate: 1, form_factor: 3 };
    let bytes = put(|out| kind.put(out));
    assert_eq!(bytes[..8], [0, 0xb1, 0, 0x3c, 0, 1, 0, 3]);
    assert_eq!((bytes.len(), Characteristics::decode(&bytes)), (64, Ok(kind)));
    let space = Provisioning {
        unmap: true,
        write_same_16: true,
        write_same_10: true,
        reads_zeros: 1,
        kind: 2,
    };
    let bytes = put(|out| space.put(out));
    assert_eq!(bytes, [0, 0xb2, 0, 4, 0, 0xe4, 2, 0]);
    assert_eq!(Provisioning::decode(&bytes), Ok(space));
    let extended = Extended {
        head_of_queue: true,
        ordered: true,
        simple: true,
        volatile_cache: true,
        nexus_loss_cleared: false,
        sense_max: 252,
    };
    let bytes = put(|out| extended.put(out));
    assert_eq!(bytes[..7], [0, 0x86, 0, 0x3c, 0, 7, 1]);
    assert_eq!((bytes[13], Extended::decode(&bytes)), (252, Ok(extended)));
}

#[test]
fn golden_capacity() {
    let capacity = Capacity {
        last_lba: 0x1_0000_0000,
        block: 512,
        physical_exponent: 3,
        is_provisioned: true,
        reads_zeros: true,
        lowest_aligned: 0,
    };
    let bytes = put(|out| capacity.put_16(out));
    assert_eq!(bytes[..16], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0xc0, 0]);
    assert_eq!((bytes.len(), Capacity::decode_16(&bytes)), (32, Ok(capacity)));
    let bytes = put(|out| capacity.put_10(out));
    assert_eq!(bytes, [255, 255, 255, 255, 0, 0, 2, 0]);
    assert_eq!(Capacity::decode_10(&bytes), Ok((u32::MAX, 512)));
    let list =
        [LbaStatus { lba: 0, count: 8, status: 0 }, LbaStatus { lba: 8, count: 24, status: 1 }];
    let bytes = put(|out| put_lba_status(&list, out));
    assert_eq!(bytes[..8], [0, 0, 0, 36, 0, 0, 0, 0]);
    assert_eq!(bytes[24..], [0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 24, 1, 0, 0, 0]);
    assert_eq!(lba_status(&bytes), Ok(list.to_vec()));
    assert_eq!(lba_status(&bytes[..30]).map(|list| list.len()), Ok(1));
}

#[test]
fn unmap_lists() {
    let extents = vec![Extent { lba: 1 << 33, count: 7 }, Extent { lba: 9, count: 0 }];
    let bytes = put(|out| unmap::put(&extents, out));
    assert_eq!(bytes[..8], [0, 38, 0, 32, 0, 0, 0, 0]);
    assert_eq!(unmap::parse(&bytes), Ok(extents));
    assert_eq!(unmap::parse(&[]), Ok(vec![]));
    assert_eq!(unmap::parse(&bytes[..7]), Err(ScsiError::ListLength));
    assert_eq!(unmap::parse(&bytes[..39]), Err(ScsiError::ListLength));
    let mut ragged = bytes;
    ragged[3] = 31;
    assert_eq!(unmap::parse(&ragged).map(|list| list.len()), Ok(1), "one that is not whole");
    let length = (SCSI_UNMAP_DESCRIPTORS_MAX + 1) * 16;
    let mut many = vec![0; 8 + length];
    many[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    assert_eq!(unmap::parse(&many), Err(ScsiError::list(2, 7)));
}

#[test]
fn golden_mode() {
    let caching = Caching { write_cache: true, ..Caching::default() };
    let block = Some(BlockDescriptor { count: 0x100, block: 512 });
    let header = Header { dpo_fua: true, block, ..Header::default() };
    let list = put(|out| {
        let start = header.put(Width::Six, out);
        caching.put(out);
        mode::end(Width::Six, start, out);
    });
    assert_eq!(list[..12], [31, 0, 0x10, 8, 0, 0, 1, 0, 0, 0, 2, 0]);
    assert_eq!(list[12..16], [8, 0x12, 4, 0]);
    let (parsed, at) = Header::parse(Width::Six, &list).expect("a header");
    assert_eq!((parsed, at), (header, 12));
    let found = pages(&list, at).expect("pages");
    assert_eq!((found.len(), Caching::parse(found[0].bytes)), (1, caching));
    let long = Header {
        long_lba: true,
        block: Some(BlockDescriptor { count: 1 << 40, block: 4096 }),
        ..header
    };
    let list = put(|out| {
        let start = long.put(Width::Ten, out);
        mode::end(Width::Ten, start, out);
    });
    assert_eq!(list[..8], [0, 22, 0, 0x10, 1, 0, 0, 16]);
    assert_eq!(Header::parse(Width::Ten, &list), Ok((long, 24)));
    assert_eq!(Header::parse(Width::Ten, &list[..23]), Err(ScsiError::ListLength));
    // An answer may be cut by its allocation length.
    let cut = Header { block: None, ..long };
    assert_eq!(Header::decode(Width::Ten, &list[..23]), Ok((cut, 24)));
    assert_eq!(Header::decode(Width::Ten, &list), Ok((long, 24)));
    assert!(Header::decode(Width::Six, &[0x69, 0, 0x10]).is_err());
    assert_eq!(Header::parse(Width::Six, &[0, 0, 0, 4, 0, 0, 0, 0]), Err(ScsiError::list(3, 7)));
}

#[test]
fn mode_pages_round_trip() {
    let control = Control {
        task_sets: 1,
        descriptor_sense: true,
        queue_algorithm: 1,
        queue_error: 3,
        write_protect: true,
        task_aborted_status: true,
        attention_interlock: 2,
        busy_timeout: 100,
    };
    let extension = ControlExtension {
        timestamp_by_commands: true,
        timestamp_by_scsi: false,
        implicit_access: true,
        sense_max: 252,
    };
    let recovery = ErrorRecovery {
        reallocate_writes: true,
        reallocate_reads: true,
        read_retries: 1,
        write_retries: 2,
        time_limit: 300,
    };
    let exceptions =
        Exceptions { is_off: true, warnings: true, method: 6, interval: 10, count: 11 };
    let list = put(|out| {
        control.put(out);
        extension.put(out);
        recovery.put(out);
        exceptions.put(out);
    });
    assert_eq!(list[..6], [0x0a, 0x0a, 0x24, 0x16, 0x28, 0x40]);
    assert_eq!(list[12..17], [0x4a, 1, 0, 0x1c, 5]);
    let found = pages(&list, 0).expect("pages");
    let codes: Vec<_> = found.iter().map(|page| (page.code, page.subpage, page.at)).collect();
    assert_eq!(codes, [(0x0a, 0, 0), (0x0a, 1, 12), (1, 0, 44), (0x1c, 0, 56)]);
    assert_eq!(Control::parse(found[0].bytes), control);
    assert_eq!(ControlExtension::parse(found[1].bytes), extension);
    assert_eq!(ErrorRecovery::parse(found[2].bytes), recovery);
    assert_eq!(Exceptions::parse(found[3].bytes), exceptions);
    assert_eq!(pages(&list[..20], 0), Err(ScsiError::ListLength));
    assert!(pages(&[0; 200], 0).is_err(), "too many");
}

#[test]
fn mode_select_changes_what_can_be_changed() {
    let old = put(|out| Caching { write_cache: true, ..Caching::default() }.put(out));
    let mut mask = vec![0; old.len()];
    mask[2] = 4;
    let new = put(|out| Caching::default().put(out));
    let check = |bytes: &[u8]| {
        let pages = pages(bytes, 0).expect("a page");
        let page = mode::RawPage { at: 4, ..pages[0] };
        check_change(&page, &old, &mask)
    };
    assert_eq!(check(&new), Ok(()));
    let mut bad = new.clone();
    bad[0] |= 0x80;
    assert_eq!(check(&bad), Ok(()), "PS");
    bad[12] = 0x20;
    assert_eq!(check(&bad), Err(ScsiError::list(16, 5)));
    assert_eq!(check(&[8, 2, 0, 0]), Err(ScsiError::list(5, 7)), "its length");
}

fn port(name: &str) -> TransportId {
    TransportId { name: name.to_owned(), isid: Some(Isid([0x40, 0, 1, 0x37, 0, 0xab])) }
}

#[test]
fn golden_transport_ids() {
    let bytes = put(|out| port("iqn.a").put(out));
    assert_eq!(bytes[..4], [0x45, 0, 0, 24]);
    assert_eq!(bytes[4..], *b"iqn.a,i,0x4000013700ab\0\0");
    assert_eq!(TransportId::parse(&bytes, 0), Ok((port("iqn.a"), 28)));
    let whole = TransportId { name: "iqn.a".to_owned(), isid: None };
    let bytes = put(|out| whole.put(out));
    assert_eq!(bytes[..9], [5, 0, 0, 20, b'i', b'q', b'n', b'.', b'a']);
    assert_eq!(TransportId::parse(&bytes, 0), Ok((whole, 24)));
    let fault = |at: usize, byte: u8| {
        let mut bad = put(|out| port("iqn.a").put(out));
        bad[at] = byte;
        TransportId::parse(&bad, 100).map(|_| ())
    };
    assert_eq!(fault(0, 0x46), Err(ScsiError::list(100, 7)), "protocol");
    assert_eq!(fault(0, 0xc5), Err(ScsiError::list(100, 7)), "format");
    assert_eq!(fault(3, 25), Err(ScsiError::ListLength));
    assert_eq!(fault(3, 16), Err(ScsiError::list(102, 7)));
    assert_eq!(fault(9, b'x'), Err(ScsiError::list(104, 7)), "separator");
    assert_eq!(fault(20, b'g'), Err(ScsiError::list(104, 7)), "ISID");
    assert_eq!(fault(4, 0), Err(ScsiError::list(104, 7)), "empty");
    assert_eq!(fault(4, 0xff), Err(ScsiError::list(104, 7)), "UTF-8");
}

#[test]
fn reserve_parameters() {
    let more = More::Plain { all_ports: true, initiators: vec![] };
    let plain = Parameters { key: 1, action_key: 2, persist: true, more };
    let bytes = put(|out| plain.put(out));
    #[rustfmt::skip]
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(Parameters::parse(ReserveOut::Register, &bytes), Ok(plain.clone()));
    let longer = [&bytes[..], &[0; 4]].concat();
    let list_length = Err(ScsiError::ListLength);
    assert_eq!(Parameters::parse(ReserveOut::Register, &longer), list_length);
    assert_eq!(Parameters::parse(ReserveOut::Reserve, &bytes[..23]), list_length);
    let initiators = vec![port("iqn.a"), port("iqn.bcdef")];
    let others = Parameters { more: More::Plain { all_ports: false, initiators }, ..plain.clone() };
    let bytes = put(|out| others.put(out));
    assert_eq!(bytes[20..28], [9, 0, 0, 0, 0, 0, 0, 60]);
    assert_eq!(Parameters::parse(ReserveOut::Register, &bytes), Ok(others));
    let with_others = Parameters::parse(ReserveOut::RegisterAndIgnore, &bytes);
    assert_eq!(with_others, Err(ScsiError::list(20, 3)));
    assert_eq!(Parameters::parse(ReserveOut::Register, &bytes[..80]), list_length);
    let more = More::Move { unregister: true, port: 3, initiator: port("iqn.a") };
    let moved = Parameters { more, ..plain };
    let bytes = put(|out| moved.put(out));
    assert_eq!(bytes[16..24], [0, 3, 0, 3, 0, 0, 0, 28]);
    assert_eq!(Parameters::parse(ReserveOut::RegisterAndMove, &bytes), Ok(moved));
    let longer = [&bytes[..], &[0; 4]].concat();
    assert_eq!(Parameters::parse(ReserveOut::RegisterAndMove, &longer), list_length);
}

#[test]
fn reserve_answers() {
    let bytes = put(|out| put_keys(7, &[1, 2], out));
    assert_eq!(bytes[..9], [0, 0, 0, 7, 0, 0, 0, 16, 0]);
    assert_eq!(keys(&bytes), Ok((7, vec![1, 2])));
    let held = Reservation { key: 5, scope: 0, kind: 7 };
    let bytes = put(|out| put_reservation(7, Some(held), out));
    #[rustfmt::skip]
    assert_eq!(bytes, [0, 0, 0, 7, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 7, 0, 0]);
    assert_eq!(reservation(&bytes), Ok((7, Some(held))));
    assert!(reservation(&bytes[..20]).is_err());
    let none = put(|out| put_reservation(8, None, out));
    assert_eq!((none.len(), reservation(&none)), (8, Ok((8, None))));
    let capabilities = Capabilities {
        compatible: true,
        initiators: true,
        all_ports: true,
        can_persist: true,
        persists: true,
        allow_commands: 1,
    };
    let bytes = put(|out| capabilities.put(out));
    assert_eq!(bytes, [0, 8, 0x1d, 0x91, 0xea, 1, 0, 0]);
    assert_eq!(Capabilities::decode(&bytes), Ok((capabilities, 0xea01)));
    // The mask has one bit for each type: WR_EX is bit 1 of the first byte, EX_AC_AR bit 0 of the
    // second.
    let mask: u32 = [1, 3, 5, 6, 7, 8].iter().map(|kind| 1 << kind).sum();
    assert_eq!((mask & 0xff) << 8 | mask >> 8, 0xea01);
    let list = vec![
        FullStatus { key: 1, all_ports: false, holds: Some((0, 5)), port: 1, initiator: port("a") },
        FullStatus { key: 2, all_ports: true, holds: None, port: 0, initiator: port("bb") },
    ];
    let bytes = put(|out| put_full_status(9, &list, out));
    assert_eq!(bytes[20..22], [1, 5]);
    assert_eq!(full_status(&bytes), Ok((9, list)));
}

/// A copy of eight blocks.
fn a_copy() -> Copy {
    let target = CopyTarget {
        is_null: false,
        device_type: 0,
        code_set: 1,
        association: 0,
        kind: 3,
        length: 16,
        designator: [6; 20],
        pad: true,
        block: 512,
    };
    let segment = Segment {
        counts_destination: true,
        concatenate: false,
        source: 0,
        destination: 1,
        count: 8,
        source_lba: 1,
        destination_lba: 1 << 40,
    };
    Copy {
        list_id: 9,
        is_striped: false,
        id_usage: 3,
        priority: 1,
        targets: vec![target; 2],
        segments: vec![segment],
    }
}

#[test]
fn copies() {
    let copy = a_copy();
    let bytes = put(|out| copy.put(out));
    assert_eq!(bytes[..16], [9, 0x19, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0]);
    assert_eq!(bytes[16..24], [0xe4, 0, 0, 0, 1, 3, 0, 16]);
    assert_eq!(bytes[44..48], [4, 0, 2, 0]);
    assert_eq!(bytes[80..92], [2, 2, 0, 24, 0, 0, 0, 1, 0, 0, 0, 8]);
    assert_eq!(Copy::parse(&bytes), Ok(copy));
    assert_eq!(Copy::parse(&[]), Ok(Copy::default()));
    let fault = |at: usize, byte: u8| {
        let mut bad = bytes.clone();
        bad[at] = byte;
        Copy::parse(&bad).expect_err("a fault")
    };
    assert_eq!(fault(3, 63), ScsiError::list(2, 7));
    assert_eq!(fault(11, 29), ScsiError::ListLength);
    assert_eq!(fault(15, 1), ScsiError::list(12, 7), "inline data");
    assert_eq!(fault(16, 0xe3), ScsiError::TargetDescriptor);
    assert_eq!(fault(23, 21), ScsiError::list(23, 7));
    assert_eq!(fault(80, 3), ScsiError::SegmentDescriptor);
    assert_eq!(fault(83, 25), ScsiError::list(82, 7));
    assert_eq!(fault(87, 2), ScsiError::UnreachableTarget);
    assert_eq!(Copy::parse(&bytes[..107]), Err(ScsiError::ListLength));
    let mut many = vec![0; 16 + (SCSI_COPY_TARGETS_MAX + 1) * 32];
    let length = (many.len() - 16) as u16;
    many[2..4].copy_from_slice(&length.to_be_bytes());
    assert_eq!(Copy::parse(&many), Err(ScsiError::TooManyTargets));
    let operating = OperatingParameters {
        without_list_id: true,
        targets_max: 16,
        segments_max: 64,
        descriptors_max: 4096,
        segment_max: 1 << 24,
        concurrent_max: 4,
        granularity: 9,
        types: vec![0x02, 0xe4],
    };
    let bytes = put(|out| operating.put(out));
    assert_eq!((bytes.len(), &bytes[..5]), (46, &[0, 0, 0, 42, 1][..]));
    assert_eq!(OperatingParameters::decode(&bytes), Ok(operating));
    let status = CopyStatus { status: 1, segments: 2, unit: 0, count: 4096 };
    let bytes = put(|out| status.put(out));
    assert_eq!(bytes, [0, 0, 0, 8, 1, 0, 2, 0, 0, 0, 0x10, 0]);
    assert_eq!(CopyStatus::decode(&bytes), Ok(status));
}

/// What libiscsi 1.19 sends: a copy of 2048 blocks within one unit, and the faults that it looks
/// for.
#[test]
fn copies_of_libiscsi() {
    #[rustfmt::skip]
    let list = [
        1, 0x10, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x1c, 0, 0, 0, 0,
        0xe4, 0, 0, 0, 1, 3, 0, 8, 0x30, 0, 0, 1, 0, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0,
        2, 0, 0, 0x18, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 1, 0xf8, 0,
    ];
    let copy = Copy::parse(&list).expect("a copy");
    assert_eq!((copy.id_usage, copy.targets.len(), copy.segments.len()), (2, 1, 1));
    let (target, segment) = (copy.targets[0], copy.segments[0]);
    assert_eq!(target.designator(), [0x30, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!((target.kind, target.block), (3, 512));
    assert_eq!((segment.count, segment.source_lba, segment.destination_lba), (2048, 0, 0x1_f800));
    let mut again = vec![];
    copy.put(&mut again);
    assert_eq!(again, list);
    assert_eq!(Copy::parse(&list[..47]), Err(ScsiError::ListLength));
    let fault = |at: usize, byte: u8| {
        let mut bad = list;
        bad[at] = byte;
        Copy::parse(&bad).map(|_| ())
    };
    assert_eq!(fault(16, 0xe0), Err(ScsiError::TargetDescriptor));
    assert!(fault(17, 0x80).is_ok(), "the type of the identifier is ignored");
    assert_eq!(fault(55, 1), Err(ScsiError::UnreachableTarget));
}

#[test]
fn port_groups_and_functions() {
    let group = PortGroup {
        is_preferred: true,
        state: AccessState::ACTIVE_OPTIMIZED,
        supported: 1,
        group: 1,
        status: 0,
        ports: vec![1, 2],
    };
    let bytes = put(|out| put_port_groups(std::slice::from_ref(&group), None, out));
    #[rustfmt::skip]
    assert_eq!(bytes, [0, 0, 0, 16, 0x80, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(port_groups(&bytes, false), Ok(vec![group.clone()]));
    let bytes = put(|out| put_port_groups(std::slice::from_ref(&group), Some(9), out));
    assert_eq!(bytes[..8], [0, 0, 0, 20, 0x10, 9, 0, 0]);
    assert_eq!(port_groups(&bytes, true), Ok(vec![group]));
    let functions = TaskFunctions {
        abort_task: true,
        abort_task_set: true,
        clear_task_set: true,
        unit_reset: true,
        target_reset: true,
        ..TaskFunctions::default()
    };
    assert_eq!(put(|out| functions.put(false, out)), [0xda, 0, 0, 0]);
    let bytes = put(|out| functions.put(true, out));
    assert_eq!((bytes.len(), bytes[3]), (16, 12));
    assert_eq!(TaskFunctions::decode(&bytes), Ok(functions));
}

#[test]
fn supported_commands() {
    let bytes = put(|out| put_all_commands(with_opcode(0x5f), None, out));
    assert_eq!(bytes[..12], [0, 0, 0, 64, 0x5f, 0, 0, 0, 0, 1, 0, 10]);
    let timeouts = Timeouts { nominal: 1, recommended: 60 };
    let bytes = put(|out| put_all_commands(COMMANDS.iter(), Some(timeouts), out));
    let list = all_commands(&bytes).expect("a list");
    assert!(
        list.iter().map(|one| (one.0, one.1)).eq(COMMANDS.iter().map(|c| (c.opcode(), c.action)))
    );
    let read = find(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]).ok();
    let bytes = put(|out| put_one_command(read, Some(timeouts), out));
    #[rustfmt::skip]
    assert_eq!(bytes, [
        0, 0x83, 0, 10, 0x28, 0x18, 255, 255, 255, 255, 0x3f, 255, 255, 0,
        0, 10, 0, 0, 0, 0, 0, 1, 0, 0, 0, 60,
    ]);
    assert_eq!(one_command(&bytes), Ok(read.map(|command| command.usage)));
    let none = put(|out| put_one_command(None, None, out));
    assert_eq!((none.as_slice(), one_command(&none)), (&[0, 1, 0, 0][..], Ok(None)));
}

fn mode_pages(width: Width) -> Vec<u8> {
    put(|out| {
        let block = Some(BlockDescriptor { count: 9, block: 512 });
        let start = Header { block, ..Header::default() }.put(width, out);
        Caching::default().put(out);
        ControlExtension::default().put(out);
        mode::end(width, start, out);
    })
}

/// Seeds for fuzzing: the number that selects a format, and its bytes.
pub(crate) fn examples() -> Vec<(u8, Vec<u8>)> {
    let more = |initiators| More::Plain { all_ports: true, initiators };
    let register =
        Parameters { key: 1, action_key: 2, persist: true, more: more(vec![port("iqn.a")]) };
    let preempt = Parameters { more: more(vec![]), ..register.clone() };
    let moved = More::Move { unregister: true, port: 1, initiator: port("iqn.b") };
    let moved = Parameters { more: moved, ..register.clone() };
    let holder =
        FullStatus { key: 1, all_ports: false, holds: Some((0, 5)), port: 1, initiator: port("a") };
    let names = [Designator::relative_port(1), Designator::t10(*b"PLIMSOLL", "x")];
    let statuses =
        [LbaStatus { lba: 0, count: 8, status: 1 }, LbaStatus { lba: 8, count: 9, status: 0 }];
    let extents = [Extent { lba: 1, count: 2 }, Extent { lba: 9, count: 1 }];
    let held = Reservation { key: 5, scope: 0, kind: 1 };
    let group = PortGroup {
        is_preferred: false,
        state: AccessState::STANDBY,
        supported: 15,
        group: 1,
        status: 2,
        ports: vec![1, 2],
    };
    let groups = [group.clone(), group];
    let sense = super::Sense::new(super::SenseKey::MISCOMPARE, super::Asc::MISCOMPARE);
    let sense = sense.with_information(7);
    vec![
        (0, put(|out| sense.put(super::sense::Format::Fixed, out))),
        (0, put(|out| sense.put(super::sense::Format::Descriptor, out))),
        (1, vec![0; 96]),
        (2, put(|out| vpd::put_identification(&names, out))),
        (3, put(|out| Extended::default().put(out))),
        (4, put(|out| BlockLimits::default().put(out))),
        (5, put(|out| Characteristics::default().put(out))),
        (6, put(|out| Provisioning::default().put(out))),
        (7, put(|out| vpd::put_supported(&[0, 0x80], out))),
        (7, put(|out| vpd::put_serial("abc", out))),
        (8, put(|out| Capacity::default().put_16(out))),
        (9, put(|out| Capacity::default().put_10(out))),
        (10, put(|out| put_lba_status(&statuses, out))),
        (11, put(|out| unmap::put(&extents, out))),
        (12, put(|out| register.put(out))),
        (13, put(|out| preempt.put(out))),
        (14, put(|out| moved.put(out))),
        (15, put(|out| put_keys(1, &[2, 3], out))),
        (16, put(|out| put_reservation(1, Some(held), out))),
        (16, put(|out| put_reservation(1, None, out))),
        (17, put(|out| put_full_status(1, &[holder], out))),
        (18, put(|out| Capabilities::default().put(out))),
        (19, put(|out| port("iqn.a").put(out))),
        (20, put(|out| a_copy().put(out))),
        (21, put(|out| OperatingParameters::default().put(out))),
        (22, vec![0, 0, 0, 8, 1, 0, 2, 0, 0, 0, 0, 9]),
        (23, put(|out| put_port_groups(&groups, None, out))),
        (24, put(|out| put_port_groups(&groups, Some(1), out))),
        (25, put(|out| put_all_commands(with_opcode(0x5e), Some(Timeouts::default()), out))),
        (26, put(|out| put_one_command(COMMANDS.first(), None, out))),
        (27, put(|out| super::lun::put_report(&[super::lun::Lun(0), super::lun::Lun(1)], out))),
        (28, mode_pages(Width::Six)),
        (29, mode_pages(Width::Ten)),
    ]
}

proptest! {
    /// Nothing that a peer sends panics, and what is taken means the same once more.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), which in 0u8..32) {
        let mut all = vec![which];
        all.extend_from_slice(&bytes);
        crate::fuzz::scsi_data(&all);
    }
}

#[test]
fn third_party_copy_reports_the_supported_operations() {
    let parameters = OperatingParameters {
        targets_max: 16,
        segments_max: 64,
        descriptors_max: 2304,
        segment_max: 0xffff,
        concurrent_max: 4,
        granularity: 12,
        types: vec![0x02, 0xe4],
        ..OperatingParameters::default()
    };
    let commands = vec![(0x83, vec![0]), (0x84, vec![0, 3, 4])];
    let page = vpd::ThirdPartyCopy { commands, parameters };
    let mut bytes = Vec::new();
    page.put(&mut bytes);
    assert_eq!((bytes[1], bytes.len() % 4), (0x8f, 0));
    assert_eq!(vpd::ThirdPartyCopy::decode(&bytes), Ok(page));
    let details = super::copy::FailureDetails { status: 2, sense: vec![0x70, 0, 0xa] };
    let mut bytes = Vec::new();
    details.put(&mut bytes);
    assert_eq!(bytes.get(..4), Some(&[0, 0, 0, 59][..]));
    assert_eq!(super::copy::FailureDetails::decode(&bytes), Ok(details));
}
