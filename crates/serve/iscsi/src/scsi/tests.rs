//! Tests of commands on a medium in memory: what they do, the sense data to the bit, and that what
//! they say of the cache is true.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vfs::lun::Medium;
use vfs::lun::mapping::Initiators;
use vfs::lun::mem::MemMedium;
use vfs::lun::reservations::{self, Origin, Port};
use wire::scsi::capacity::{Capacity, lba_status};
use wire::scsi::cdb::*;
use wire::scsi::copy::{Copy, CopyStatus, CopyTarget, Segment};
use wire::scsi::mode::{self, Caching, Control, Header, page};
use wire::scsi::reserve::{self, More, Parameters};
use wire::scsi::unmap::Extent;
use wire::scsi::vpd::{self, Association};
use wire::scsi::{Asc, Sense, SenseKey, Status, sense};

use super::{Done, Fail, Request, admit, execute};
use crate::targets::{SignIn, Target};
use crate::tests::planted::Planted;
use crate::unit::{Identity, Nexus, Unit, UnitSettings};
use engine::transport::buffers::ReplyBuf;

mod aborted;
mod random;
mod sync;

const BLOCKS: u64 = 2048;
const BLOCK: usize = 512;
/// The address of initiators.
const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A unit, and two initiators of it.
struct Bench {
    medium: Arc<MemMedium>,
    unit: Arc<Unit>,
    target: Arc<Target>,
    nexuses: [Arc<Nexus>; 2],
}

fn unit_of(medium: &Arc<MemMedium>, number: u8) -> Arc<Unit> {
    unit_over(Arc::clone(medium) as Arc<dyn Medium>, number)
}

fn unit_over(medium: Arc<dyn Medium>, number: u8) -> Arc<Unit> {
    let guid = [0x60 | number; 16];
    let identity = Identity { name: format!("lun{number}"), guid, block: BLOCK as u32 };
    let settings = UnitSettings { write_cache: true, read_only: false };
    Unit::new(identity, medium, settings, None)
}

impl Bench {
    fn new() -> Self {
        let medium = Arc::new(MemMedium::new(BLOCKS * BLOCK as u64));
        let unit = unit_of(&medium, 0);
        let target = Target::new("iqn.2026-01.test:t", SignIn::default());
        target.add(None, Initiators::Everybody, Arc::clone(&unit)).expect("room");
        let nexuses = [1, 2].map(|number| {
            let port = Port { name: format!("iqn.{number}"), isid: [number; 6] };
            let nexus = unit.join(port, HOME);
            assert_eq!(nexus.take_unit_attention(), Some(Asc::POWER_ON_OR_RESET));
            nexus
        });
        Self { medium, unit, target, nexuses }
    }

    /// A command of initiator `who`, as it comes: how it ends once it is on disk, and its data.
    fn run(&self, who: usize, cdb: Cdb, data: &[u8]) -> Result<(Done, Vec<u8>), Fail> {
        let bytes = cdb.encode().expect("a CDB");
        self.run_bytes(who, bytes.bytes(), data)
    }

    fn run_bytes(&self, who: usize, cdb: &[u8], data: &[u8]) -> Result<(Done, Vec<u8>), Fail> {
        let nexus = Arc::clone(&self.nexuses[who]);
        let cdb = admit(&self.unit, &nexus, cdb)?;
        let (unit, target) = (Arc::clone(&self.unit), Arc::clone(&self.target));
        let limit = if data.is_empty() { u32::MAX } else { data.len() as u32 };
        let request = Request { unit, nexus, target, cdb, limit, mark: None };
        let mut out = ReplyBuf::default();
        let outcome = match execute(&request, data, false, &mut out) {
            Err(Fail::WouldBlock) => {
                assert!(out.is_empty(), "an attempt leaves nothing behind");
                execute(&request, data, true, &mut out)
            }
            done => done,
        };
        let mut done = outcome?;
        let flush = std::mem::take(&mut done.flush);
        let flushed = flush.wait();
        if let Some((nexus, written)) = done.settles.take() {
            nexus.settle(written);
        }
        flushed.map_err(super::write_failed)?;
        Ok((done, out.into_vec()))
    }

    fn good(&self, cdb: Cdb, data: &[u8]) -> Vec<u8> {
        let (done, data) = self.run(0, cdb, data).expect("GOOD");
        assert_eq!(done.status, Status::GOOD);
        data
    }

    fn sense(&self, cdb: Cdb, data: &[u8]) -> Sense {
        match self.run(0, cdb, data).map(|(done, _)| done.status) {
            Err(Fail::Sense(sense)) => sense,
            other => panic!("no sense data: {other:?}"),
        }
    }

    fn asc(&self, cdb: Cdb, data: &[u8]) -> (SenseKey, Asc) {
        let sense = self.sense(cdb, data);
        (sense.key, sense.asc)
    }
}

fn blocks(lba: u64, count: u32) -> Blocks {
    Blocks { width: Width::Sixteen, lba, count, group: 0 }
}

fn io(lba: u64, count: u32) -> Io {
    Io { blocks: blocks(lba, count), no_cache: false, force_unit_access: false }
}

fn fua(lba: u64, count: u32) -> Io {
    Io { force_unit_access: true, ..io(lba, count) }
}

fn sync_cache() -> Cdb {
    Cdb::SynchronizeCache(CacheRange { blocks: blocks(0, 0), immediate: false })
}

const ILLEGAL: SenseKey = SenseKey::ILLEGAL_REQUEST;

#[test]
fn what_is_written_is_read() {
    let bench = Bench::new();
    let data: Vec<u8> = (0..8 * BLOCK).map(|n| (n / 7) as u8).collect();
    for width in [Width::Six, Width::Ten, Width::Twelve, Width::Sixteen] {
        let io = |lba, count| Io { blocks: Blocks { width, ..blocks(lba, count) }, ..io(0, 0) };
        bench.good(Cdb::Write(io(100, 8)), &data);
        assert_eq!(bench.good(Cdb::Read(io(100, 8)), &[]), data, "{width:?}");
    }
    assert_eq!(bench.good(Cdb::Read(io(BLOCKS - 1, 1)), &[]), vec![0; BLOCK]);
    assert_eq!(bench.good(Cdb::Read(io(BLOCKS, 0)), &[]), vec![0; 0]);
    for (lba, count) in [(BLOCKS, 1), (BLOCKS + 1, 0), (BLOCKS - 1, 2), (u64::MAX, 1)] {
        let expect = (ILLEGAL, Asc::LBA_OUT_OF_RANGE);
        assert_eq!(bench.asc(Cdb::Read(io(lba, count)), &[]), expect);
        let data = vec![0; count as usize * BLOCK];
        assert_eq!(bench.asc(Cdb::Write(io(lba, count)), &data), expect);
    }
    // Less than the command has: so much is written, and no more.
    bench.good(Cdb::Write(io(100, 1)), &[0xff; 200]);
    let back = bench.good(Cdb::Read(io(100, 1)), &[]);
    assert_eq!(back, [&[0xff; 200][..], &data[200..BLOCK]].concat());
}

#[test]
fn too_much_at_once_is_refused_by_its_field() {
    let medium = Arc::new(MemMedium::new(64 << 20));
    let mut bench = Bench::new();
    (bench.unit, bench.medium) = (unit_of(&medium, 0), medium);
    let count = (base::limits::ISCSI_TRANSFER_MAX / BLOCK) as u32;
    assert_eq!(bench.good(Cdb::Read(io(0, count)), &[]).len(), count as usize * BLOCK);
    let sense = bench.sense(Cdb::Read(io(0, count + 1)), &[]);
    let at = wire::scsi::Pointer { byte: 10, bit: None };
    assert_eq!(sense, Sense::new(ILLEGAL, Asc::INVALID_FIELD_IN_CDB).at_cdb(at));
}

#[test]
fn compare_and_write_is_one_thing() {
    let bench = Bench::new();
    let (old, new) = (vec![0; BLOCK], vec![9; BLOCK]);
    let both = [&old[..], &new[..]].concat();
    bench.good(Cdb::CompareAndWrite(io(5, 1)), &both);
    let sense = bench.sense(Cdb::CompareAndWrite(io(5, 1)), &both);
    let expect = Sense::new(SenseKey::MISCOMPARE, Asc::MISCOMPARE).with_information(0);
    assert_eq!(sense, expect, "the first byte that differs");
    let mut almost = [&new[..], &old[..]].concat();
    almost[100] ^= 1;
    let sense = bench.sense(Cdb::CompareAndWrite(io(5, 1)), &almost);
    assert_eq!(sense.information, Some(100));
    assert_eq!(bench.good(Cdb::Read(io(5, 1)), &[]), new);
    assert_eq!(
        bench.asc(Cdb::CompareAndWrite(io(5, 1)), &both[..BLOCK]),
        (ILLEGAL, Asc::INVALID_FIELD_IN_CDB)
    );
    bench.good(Cdb::OrWrite(io(5, 1)), &vec![0x16; BLOCK]);
    assert_eq!(bench.good(Cdb::Read(io(5, 1)), &[]), vec![0x1f; BLOCK]);
}

/// A write that may not wait can stop half way: the command is repeated where it may, and must not
/// find its own data then.
#[test]
fn a_compare_and_write_is_repeated_only_if_it_has_written_nothing() {
    let mut bench = Bench::new();
    let medium = Planted::new(1 << 20);
    bench.unit = unit_over(Arc::clone(&medium) as Arc<dyn Medium>, 0);
    let count = 16;
    medium.cut.store(BLOCK, Ordering::Relaxed);
    let both = [vec![0; count * BLOCK], vec![9; count * BLOCK]].concat();
    bench.good(Cdb::CompareAndWrite(io(4, count as u32)), &both);
    assert_eq!(bench.good(Cdb::Read(io(4, count as u32)), &[]), vec![9; count * BLOCK]);
}

#[test]
fn verify_compares() {
    let bench = Bench::new();
    bench.good(Cdb::Write(io(0, 4)), &[7; 4 * BLOCK]);
    let verify = |compare| VerifyIo { blocks: blocks(0, 4), no_cache: false, compare };
    bench.good(Cdb::Verify(verify(Compare::Nothing)), &[]);
    bench.good(Cdb::Verify(verify(Compare::Each)), &[7; 4 * BLOCK]);
    bench.good(Cdb::Verify(verify(Compare::AllWithOne)), &[7; BLOCK]);
    let mut wrong = vec![7; 4 * BLOCK];
    wrong[1500] = 8;
    let sense = bench.sense(Cdb::Verify(verify(Compare::Each)), &wrong);
    assert_eq!((sense.key, sense.information), (SenseKey::MISCOMPARE, Some(1500)));
    bench.good(Cdb::WriteAndVerify(verify(Compare::Each)), &wrong);
    assert_eq!(bench.good(Cdb::Read(io(0, 4)), &[]), wrong);
}

/// MODE SELECT of the write cache, and its parameters.
pub(crate) fn select_cache(write_cache: bool) -> (Cdb, Vec<u8>) {
    let mut list = vec![0; 4];
    Caching { write_cache, ..Caching::default() }.put(&mut list);
    let list_length = list.len() as u16;
    let (width, page_format, save) = (Width::Six, true, false);
    (Cdb::ModeSelect(ModeSelect { width, page_format, save, list_length }), list)
}

#[test]
fn an_enabled_write_cache_is_reported_and_flushed() {
    let bench = Bench::new();
    let sense = |values| {
        let cdb = Cdb::ModeSense(ModeSense {
            width: Width::Six,
            long_lba: false,
            no_block_descriptors: true,
            control: values,
            page: page::CACHING,
            subpage: 0,
            allocation: 255,
        });
        let data = bench.good(cdb, &[]);
        let (header, at) = Header::decode(Width::Six, &data).expect("header");
        assert!(header.dpo_fua);
        Caching::parse(&data[at..]).write_cache
    };
    assert!(sense(0) && sense(1), "on, and it can be changed");
    bench.good(Cdb::Write(io(0, 1)), &[1; BLOCK]);
    assert!(bench.medium.status().is_dirty, "it is in the cache");
    bench.good(sync_cache(), &[]);
    assert!(!bench.medium.status().is_dirty);
    // Switched off: what is in it goes to disk, and every write is durable from then on.
    bench.good(Cdb::Write(io(0, 1)), &[2; BLOCK]);
    let (select, list) = select_cache(false);
    bench.good(select, &list);
    assert!(!bench.medium.status().is_dirty && !sense(0));
    assert_eq!(bench.nexuses[1].take_unit_attention(), Some(Asc::MODE_PARAMETERS_CHANGED));
    assert_eq!(bench.nexuses[0].take_unit_attention(), None, "who did it knows");
    bench.medium.faults.flush.store(true, Ordering::Relaxed);
    let medium_error = (SenseKey::MEDIUM_ERROR, Asc::WRITE_ERROR);
    assert_eq!(bench.asc(Cdb::Write(io(0, 1)), &[3; BLOCK]), medium_error);
    let same = WriteSame { blocks: blocks(0, 4), unmap: true, no_data: true };
    assert_eq!(bench.asc(Cdb::WriteSame(same), &[]), medium_error);
    let mut unmap = Vec::new();
    wire::scsi::unmap::put(&[Extent { lba: 8, count: 8 }], &mut unmap);
    let list_length = unmap.len() as u16;
    assert_eq!(bench.asc(Cdb::Unmap { group: 0, list_length }, &unmap), medium_error);
}

#[test]
fn a_failed_flush_is_reported_to_each_initiator_that_has_written() {
    let bench = Bench::new();
    let write = |who, byte| {
        bench.run(who, Cdb::Write(io(0, 1)), &[byte; BLOCK]).map(drop).expect("in the cache")
    };
    write(0, 1);
    write(1, 2);
    bench.medium.faults.flush.store(true, Ordering::Relaxed);
    let error = Fail::Sense(Sense::new(SenseKey::MEDIUM_ERROR, Asc::WRITE_ERROR));
    let sync = |who| bench.run(who, sync_cache(), &[]).map(drop);
    assert_eq!(sync(0), Err(error));
    bench.medium.faults.flush.store(false, Ordering::Relaxed);
    assert_eq!(sync(1), Err(error), "its write was lost by the flush of the other");
    assert_eq!((sync(0), sync(1)), (Ok(()), Ok(())), "told once");
    bench.medium.faults.flush.store(true, Ordering::Relaxed);
    assert_eq!(bench.asc(Cdb::Write(fua(0, 1)), &[1; BLOCK]).1, Asc::WRITE_ERROR);
    bench.medium.faults.flush.store(false, Ordering::Relaxed);
    bench.good(Cdb::Write(fua(0, 1)), &[1; BLOCK]);
}

#[test]
fn a_full_disk_and_a_dead_one_have_names() {
    let bench = Bench::new();
    bench.medium.faults.full.store(true, Ordering::Relaxed);
    let full = (SenseKey::DATA_PROTECT, Asc::SPACE_ALLOCATION_FAILED);
    assert_eq!(bench.asc(Cdb::Write(io(0, 1)), &[1; BLOCK]), full);
    bench.medium.faults.read.store(true, Ordering::Relaxed);
    let dead = (SenseKey::MEDIUM_ERROR, Asc::UNRECOVERED_READ_ERROR);
    assert_eq!(bench.asc(Cdb::Read(io(0, 1)), &[]), dead);
}

#[test]
fn unmapped_space_is_released_and_reported() {
    let bench = Bench::new();
    bench.good(Cdb::Write(io(0, 64)), &vec![1; 64 * BLOCK]);
    let mut list = Vec::new();
    wire::scsi::unmap::put(
        &[Extent { lba: 8, count: 16 }, Extent { lba: 40, count: 8 }],
        &mut list,
    );
    let list_length = list.len() as u16;
    bench.good(Cdb::Unmap { group: 0, list_length }, &list);
    let status = bench.good(Cdb::GetLbaStatus { lba: 0, allocation: 4096 }, &[]);
    let status = lba_status(&status).expect("status");
    let reported: Vec<_> = status.iter().map(|s| (s.lba, s.count, s.status)).collect();
    let rest = (BLOCKS - 64) as u32;
    assert_eq!(
        reported,
        [(0, 8, 0), (8, 16, 1), (24, 16, 0), (40, 8, 1), (48, 16, 0), (64, rest, 1)]
    );
    assert_eq!(bench.good(Cdb::Read(io(8, 16)), &[]), vec![0; 16 * BLOCK]);
    let beyond = (ILLEGAL, Asc::LBA_OUT_OF_RANGE);
    assert_eq!(bench.asc(Cdb::GetLbaStatus { lba: BLOCKS, allocation: 24 }, &[]), beyond);
    // One descriptor that is wrong, and nothing is done.
    let mut list = Vec::new();
    let extents = [Extent { lba: 0, count: 8 }, Extent { lba: BLOCKS - 1, count: 2 }];
    wire::scsi::unmap::put(&extents, &mut list);
    let list_length = list.len() as u16;
    assert_eq!(bench.asc(Cdb::Unmap { group: 0, list_length }, &list), beyond);
    assert_eq!(bench.good(Cdb::Read(io(0, 8)), &[]), vec![1; 8 * BLOCK]);
}

#[test]
fn write_same_fills() {
    let bench = Bench::new();
    let same = |lba, count, unmap, no_data| {
        Cdb::WriteSame(WriteSame { blocks: blocks(lba, count), unmap, no_data })
    };
    let block: Vec<u8> = (0..BLOCK).map(|n| n as u8).collect();
    bench.good(same(10, 20, false, false), &block);
    assert_eq!(bench.good(Cdb::Read(io(10, 20)), &[]), block.repeat(20));
    bench.good(same(BLOCKS - 9, 0, false, false), &block);
    assert_eq!(bench.good(Cdb::Read(io(BLOCKS - 9, 9)), &[]), block.repeat(9), "to the end");
    bench.good(same(0, 0, true, true), &[]);
    assert_eq!(bench.medium.status().allocated, 0);
    bench.good(same(0, 16, false, true), &[]);
    assert_eq!(bench.medium.status().allocated, 8192, "zeros that have space");
    let unfit = (ILLEGAL, Asc::INVALID_FIELD_IN_INFORMATION_UNIT);
    assert_eq!(bench.asc(same(0, 1, false, false), &block[1..]), unfit);
    assert_eq!(bench.asc(same(0, 1, false, false), &block.repeat(2)), unfit);
}

#[test]
fn a_unit_reports_its_designators() {
    let bench = Bench::new();
    let page = |page| bench.good(Cdb::Inquiry { page, allocation: 255 }, &[]);
    let inquiry = wire::scsi::inquiry::Inquiry::decode(&page(None)).expect("data");
    assert_eq!((inquiry.qualifier, inquiry.device_type), (0, 0));
    let reported = page(Some(0));
    let pages = vpd::supported(&reported).expect("pages");
    assert!(pages.iter().all(|code| page(Some(*code)).get(1) == Some(code)));
    let list = page(Some(vpd::page::IDENTIFICATION));
    let list = vpd::identification(&list).expect("designators");
    let naa = list.iter().find(|one| one.kind == 3).expect("NAA");
    assert_eq!((naa.association, &naa.bytes[..]), (Association::Unit, &[0x60; 16][..]));
    let limits = vpd::BlockLimits::decode(&page(Some(vpd::page::BLOCK_LIMITS))).expect("limits");
    assert_eq!(limits.transfer_max as usize * BLOCK, base::limits::ISCSI_TRANSFER_MAX);
    let capacity = bench.good(Cdb::ReadCapacity16 { allocation: 32 }, &[]);
    let capacity = Capacity::decode_16(&capacity).expect("capacity");
    assert_eq!((capacity.last_lba, capacity.block), (BLOCKS - 1, BLOCK as u32));
    assert!(capacity.is_provisioned && capacity.reads_zeros);
    assert_eq!(bench.good(Cdb::Inquiry { page: None, allocation: 5 }, &[]).len(), 5);
    assert_eq!(
        bench.sense(Cdb::Inquiry { page: Some(0x42), allocation: 255 }, &[]).asc,
        Asc::INVALID_FIELD_IN_CDB
    );
}

#[test]
fn attentions_come_first_and_in_order() {
    let bench = Bench::new();
    let nexus = &bench.nexuses[0];
    nexus.establish(Asc::CAPACITY_CHANGED);
    nexus.establish(Asc::RESERVATIONS_RELEASED);
    nexus.establish(Asc::CAPACITY_CHANGED);
    bench.good(Cdb::Inquiry { page: None, allocation: 96 }, &[]);
    let attention = SenseKey::UNIT_ATTENTION;
    assert_eq!(bench.asc(Cdb::TestUnitReady, &[]), (attention, Asc::CAPACITY_CHANGED));
    let reported = bench.good(Cdb::RequestSense { descriptor: false, allocation: 18 }, &[]);
    let reported = Sense::decode(&reported).expect("sense data");
    assert_eq!((reported.key, reported.asc), (attention, Asc::RESERVATIONS_RELEASED));
    bench.good(Cdb::TestUnitReady, &[]);
    for n in 0..=base::limits::ISCSI_ATTENTIONS_MAX as u16 {
        nexus.establish(Asc(0x2a00 + n));
    }
    assert_eq!(bench.asc(Cdb::TestUnitReady, &[]).1, Asc::POWER_ON_OR_RESET, "too many");
    bench.good(Cdb::TestUnitReady, &[]);
}

#[test]
fn what_initiators_set_is_forgotten_with_a_reset() {
    let bench = Bench::new();
    let select = |control: Control| {
        let mut list = vec![0; 8];
        control.put(&mut list);
        let list_length = list.len() as u16;
        let select = ModeSelect { width: Width::Ten, page_format: true, save: false, list_length };
        bench.run(0, Cdb::ModeSelect(select), &list).map(drop)
    };
    let control = Control {
        queue_algorithm: 1,
        task_aborted_status: true,
        write_protect: true,
        descriptor_sense: true,
        ..Control::default()
    };
    assert_eq!(select(control), Ok(()));
    let protected = (SenseKey::DATA_PROTECT, Asc::WRITE_PROTECTED);
    assert_eq!(bench.asc(Cdb::Write(io(0, 1)), &[1; BLOCK]), protected);
    assert_eq!(super::format(&bench.unit), sense::Format::Descriptor);
    bench.unit.reset();
    assert_eq!(bench.asc(Cdb::TestUnitReady, &[]).1, Asc::DEVICE_RESET);
    bench.good(Cdb::Write(io(0, 1)), &[1; BLOCK]);
    let frozen = select(Control { queue_algorithm: 0, ..control });
    let at = wire::scsi::Pointer { byte: 8 + 3, bit: Some(4) };
    let sense = Sense::new(ILLEGAL, Asc::INVALID_FIELD_IN_PARAMETER_LIST).at_list(at);
    assert_eq!(frozen, Err(Fail::Sense(sense)), "the bit that cannot be changed");
    let all = ModeSense {
        width: Width::Ten,
        long_lba: false,
        no_block_descriptors: false,
        control: 0,
        page: page::ALL,
        subpage: 0xff,
        allocation: 1024,
    };
    let data = bench.good(Cdb::ModeSense(all), &[]);
    let (header, at) = Header::decode(Width::Ten, &data).expect("header");
    assert_eq!(header.block.map(|block| block.count), Some(BLOCKS));
    assert_eq!(mode::pages(&data, at).expect("pages").len(), 5);
}

/// PERSISTENT RESERVE OUT of an initiator.
fn reserve_out(
    bench: &Bench,
    who: usize,
    action: ReserveOut,
    (key, action_key): (u64, u64),
) -> Result<Done, Fail> {
    let more = More::Plain { all_ports: false, initiators: Vec::new() };
    let mut list = Vec::new();
    Parameters { key, action_key, persist: false, more }.put(&mut list);
    let kind = reservations::Kind::WriteExclusiveRegistrants as u8;
    let list_length = list.len() as u32;
    let out = PersistentReserveOut { action, scope: 0, kind, list_length };
    bench.run(who, Cdb::PersistentReserveOut(out), &list).map(|(done, _)| done)
}

#[test]
fn a_reservation_keeps_others_out() {
    let bench = Bench::new();
    assert!(reserve_out(&bench, 0, ReserveOut::Register, (0, 11)).is_ok());
    assert!(reserve_out(&bench, 0, ReserveOut::Reserve, (11, 0)).is_ok());
    let conflict = Err(Fail::Status(Status::RESERVATION_CONFLICT));
    let write = |who| bench.run(who, Cdb::Write(io(0, 1)), &[1; BLOCK]).map(drop);
    let read = |who| bench.run(who, Cdb::Read(io(0, 1)), &[]).map(drop);
    assert_eq!((write(0), write(1), read(1)), (Ok(()), conflict, Ok(())));
    let keys = Cdb::PersistentReserveIn { action: ReserveIn::ReadKeys, allocation: 255 };
    assert_eq!(reserve::keys(&bench.good(keys, &[])), Ok((1, vec![11])));
    let held = Cdb::PersistentReserveIn { action: ReserveIn::ReadReservation, allocation: 255 };
    let (_, held) = reserve::reservation(&bench.good(held, &[])).expect("data");
    assert_eq!(held.map(|held| (held.key, held.kind)), Some((11, 5)));
    assert!(reserve_out(&bench, 1, ReserveOut::Register, (0, 22)).is_ok());
    assert_eq!(write(1), Ok(()), "registered");
    let done = reserve_out(&bench, 1, ReserveOut::PreemptAndAbort, (22, 11)).expect("preempted");
    assert_eq!(done.aborts, [bench.nexuses[0].port.clone()]);
    let reported = bench.asc(Cdb::TestUnitReady, &[]);
    assert_eq!(reported, (SenseKey::UNIT_ATTENTION, Asc::REGISTRATIONS_PREEMPTED));
    assert_eq!((write(0), write(1)), (conflict, Ok(())));
    let reserve = |who| bench.run(who, Cdb::Reserve6, &[]).map(drop);
    assert!(reserve(1).is_err(), "there are persistent reservations");
    assert!(reserve_out(&bench, 1, ReserveOut::Clear, (22, 0)).is_ok());
    assert_eq!(write(0), Ok(()));
    assert!(reserve(1).is_ok() && reserve(0).is_err() && write(0).is_err() && read(0).is_err());
    assert!(reserve_out(&bench, 1, ReserveOut::Register, (0, 1)).is_err());
    bench.unit.leave(&bench.nexuses[1]);
    assert!(write(0).is_ok(), "it went with its session");
}

/// A unit of a copy, by its number.
pub(crate) fn copy_target(number: u8) -> CopyTarget {
    CopyTarget {
        is_null: false,
        device_type: 0,
        code_set: 1,
        association: 0,
        kind: 3,
        length: 16,
        designator: std::array::from_fn(|n| if n < 16 { 0x60 | number } else { 0 }),
        pad: false,
        block: BLOCK as u32,
    }
}

/// A copy of `count` blocks within the first unit.
fn copy_segment((source_lba, destination_lba, count): (u64, u64, u16)) -> Segment {
    let (source, destination) = (0, 0);
    let (counts_destination, concatenate) = (false, false);
    Segment {
        counts_destination,
        concatenate,
        source,
        destination,
        count,
        source_lba,
        destination_lba,
    }
}

/// EXTENDED COPY within the first unit, and its parameters.
pub(crate) fn copy_within(blocks: (u64, u64, u16)) -> (Cdb, Vec<u8>) {
    let (targets, segments) = (vec![copy_target(0)], vec![copy_segment(blocks)]);
    let mut list = Vec::new();
    Copy { targets, segments, ..Copy::default() }.put(&mut list);
    (Cdb::ExtendedCopy { list_length: list.len() as u32 }, list)
}

#[test]
fn extended_copy_between_units_reports_its_progress() {
    let bench = Bench::new();
    let other = unit_of(&Arc::new(MemMedium::new(1 << 20)), 1);
    let nobodys = unit_of(&Arc::new(MemMedium::new(1 << 20)), 2);
    bench.target.add(None, Initiators::Everybody, Arc::clone(&other)).expect("room");
    bench.target.add(None, Initiators::Nobody, nobodys).expect("room");
    assert_eq!(bench.asc(Cdb::TestUnitReady, &[]).1, Asc::REPORTED_LUNS_CHANGED);
    bench.good(Cdb::Write(io(0, 8)), &[5; 8 * BLOCK]);
    let copy = |to: u8, destination_lba, list_id| {
        let targets = vec![copy_target(0), copy_target(to)];
        let segment = Segment { destination: 1, ..copy_segment((0, destination_lba, 8)) };
        let copy = Copy { list_id, targets, segments: vec![segment], ..Copy::default() };
        let mut list = Vec::new();
        copy.put(&mut list);
        let list_length = list.len() as u32;
        bench.run(0, Cdb::ExtendedCopy { list_length }, &list).map(drop)
    };
    assert_eq!(copy(1, 100, 1), Ok(()));
    let mut back = vec![0; 8 * BLOCK];
    other.medium.read(100 * BLOCK as u64, &mut back, true).expect("read");
    assert_eq!(back, vec![5; 8 * BLOCK]);
    assert!(!other.medium.status().is_dirty, "another unit's copy is on disk");
    let aborted = |asc| Err(Fail::Sense(Sense::new(SenseKey::COPY_ABORTED, asc)));
    assert_eq!(copy(2, 0, 2), aborted(Asc::COPY_TARGET_NOT_REACHABLE), "not for him");
    assert_eq!(copy(1, BLOCKS - 4, 3), aborted(Asc::NONE), "beyond the end");
    let status = |list_id| {
        let action = ReceiveCopy::Status;
        let data = bench.good(Cdb::ReceiveCopyResults { action, list_id, allocation: 64 }, &[]);
        CopyStatus::decode(&data).expect("status")
    };
    assert_eq!((status(1).status, status(1).count, status(3).status), (1, 4, 2));
    let action = ReceiveCopy::Status;
    let unknown = Cdb::ReceiveCopyResults { action, list_id: 9, allocation: 64 };
    assert_eq!(bench.asc(unknown, &[]).1, Asc::INVALID_FIELD_IN_CDB);
}

#[test]
fn commands_are_as_they_are_reported() {
    let bench = Bench::new();
    let query = OpcodeQuery::All;
    let all = bench.good(Cdb::ReportOpcodes { timeouts: false, query, allocation: 4096 }, &[]);
    for (opcode, action, length) in wire::scsi::ports::all_commands(&all).expect("list") {
        let mut cdb = vec![0; usize::from(length)];
        cdb[0] = opcode;
        cdb[1] = action.unwrap_or(0) as u8;
        let known = match bench.run_bytes(0, &cdb, &[]) {
            Err(Fail::Sense(sense)) => sense.asc != Asc::INVALID_COMMAND_OPERATION_CODE,
            _ => true,
        };
        assert!(known, "{opcode:#x} is reported and not there");
        let _ = bench.run(0, Cdb::Release6, &[]);
    }
    let unknown = Err(Fail::Sense(Sense::new(ILLEGAL, Asc::INVALID_COMMAND_OPERATION_CODE)));
    let mut read_32 = vec![0; 32];
    (read_32[0], read_32[7], read_32[9]) = (0x7f, 0x18, 9);
    for cdb in [&[0x1e, 0, 0, 0, 1, 0][..], &[0xff; 16], &read_32] {
        assert_eq!(bench.run_bytes(0, cdb, &[]).map(drop), unknown, "{cdb:x?}");
    }
}

#[test]
fn a_reservation_holds_during_releases_of_others() {
    let bench = Bench::new();
    let port = bench.nexuses[0].port.clone();
    let kind = reservations::Kind::ExclusiveAccess;
    let change = |next: reservations::Reservations| {
        bench.unit.change_reservations((), |_| Ok((next, ()))).expect("it is kept in memory");
    };
    let free = reservations::Reservations::default();
    let registered = free
        .register(Origin { port: &port, address: HOME }, Some(0), 1, &[], false)
        .expect("room")
        .state;
    let held = registered.reserve(&port, 1, kind).expect("it is free").state;
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // RELEASE(6) of initiators that hold nothing.
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    bench.unit.release_simple(Some(&bench.nexuses[1].port));
                }
            });
        }
        let lost = (0..1_000_000).find(|_| {
            change(registered.clone());
            change(held.clone());
            // What is stored too late is mended by the next one, soon.
            (0..100).any(|_| !bench.unit.is_reserved())
        });
        ended.store(true, Ordering::Release);
        assert_eq!(lost, None, "nobody is kept out");
    });
}
