//! EXTENDED COPY(LID1) and RECEIVE COPY RESULTS (SPC-4 §6.3, §6.24): copies between units of this
//! server that the initiator sees. A copy is done when its command ends; how it went is
//! kept.

use std::sync::Arc;

use base::limits::{
    LUN_THREADS, SCSI_COPY_BYTES_MAX, SCSI_COPY_SEGMENTS_MAX, SCSI_COPY_TARGETS_MAX,
};
use vfs::flush::FlushSite;
use vfs::lun::reservations::Access;
use vfs::lun::{self, Written};
use vfs::status::Status as Failure;
use wire::scsi::cdb::ReceiveCopy;
use wire::scsi::copy::{
    BLOCK_TO_BLOCK, BY_IDENTIFICATION, Copy, CopyStatus, CopyTarget, FailureDetails,
    OperatingParameters, Segment,
};
use wire::scsi::sense::Format;
use wire::scsi::vpd::ThirdPartyCopy;
use wire::scsi::{Asc, ScsiError, Sense, SenseKey, Status};

use super::copies::CopyRecord;
use super::{Done, Fail, Outcome, Request, answer, bad_field, check_access, illegal, writable};
use crate::unit::Unit;
use engine::transport::buffers::ReplyBuf;

/// `id_usage`: nothing of the copy is kept.
const NOT_KEPT: u8 = 3;
/// Bytes of a list of parameters before its descriptors.
const LIST_HEAD: usize = 16;
/// Unit of the count of a copy's status: KiB (SPC-4 table 213).
const KIB: u8 = 1;

fn parameters() -> OperatingParameters {
    OperatingParameters {
        without_list_id: true,
        targets_max: SCSI_COPY_TARGETS_MAX as u16,
        segments_max: SCSI_COPY_SEGMENTS_MAX as u16,
        descriptors_max: (SCSI_COPY_TARGETS_MAX * 32 + SCSI_COPY_SEGMENTS_MAX * 28) as u32,
        // The count of a segment has 16 bits, its blocks at most 4096 bytes.
        segment_max: SCSI_COPY_BYTES_MAX as u32,
        concurrent_max: LUN_THREADS as u8,
        granularity: 9,
        types: vec![BLOCK_TO_BLOCK, BY_IDENTIFICATION],
    }
}

/// The content of page 8Fh of the vital product data.
pub(super) fn third_party_copy() -> ThirdPartyCopy {
    let commands = vec![(0x83, vec![0]), (0x84, vec![0, 3, 4])];
    ThirdPartyCopy { commands, parameters: parameters() }
}

/// RECEIVE COPY RESULTS.
pub(super) fn results(
    request: &Request,
    (action, list_id): (ReceiveCopy, u8),
    allocation: u32,
    out: &mut ReplyBuf,
) -> Outcome {
    let start = out.len();
    if action == ReceiveCopy::OperatingParameters {
        parameters().put(out.vec());
        return Ok(answer(out, start, allocation));
    }
    let mut kept = request.unit.copies.kept();
    let port = &request.nexus.port;
    let at = kept.iter().position(|one| one.port == *port && one.list_id == list_id);
    let found = at.and_then(|at| kept.get(at)).ok_or(bad_field(2))?;
    match (action, found.failed) {
        (ReceiveCopy::Status, _) => found.status.put(out.vec()),
        (ReceiveCopy::FailureDetails, Some(sense)) => {
            let mut details =
                FailureDetails { status: Status::CHECK_CONDITION.0, ..FailureDetails::default() };
            sense.put(Format::Fixed, &mut details.sense);
            details.put(out.vec());
            // They are reported once (SPC-4 §6.24.5).
            at.and_then(|at| kept.remove(at));
        }
        // No data is held, and a copy that went well has no failure.
        _ => return Err(bad_field(1)),
    }
    Ok(answer(out, start, allocation))
}

/// COPY ABORTED with this code.
const fn aborted(asc: Asc) -> Fail {
    Fail::Sense(Sense::new(SenseKey::COPY_ABORTED, asc))
}

/// What a copy has done so far.
#[derive(Default)]
struct Progress {
    segments: u16,
    bytes: u64,
    /// What was written to each destination.
    written: Vec<(Arc<Unit>, Written)>,
}

/// EXTENDED COPY(LID1).
pub(super) fn extended_copy(request: &Request, data: &[u8], may_block: bool) -> Outcome {
    if data.len() > LIST_HEAD + parameters().descriptors_max as usize {
        return Err(ScsiError::ListLength.into());
    }
    let copy = Copy::parse(data)?;
    if copy.segments.is_empty() {
        return Ok(Done::good(data.len() as u64));
    }
    if !may_block {
        return Err(Fail::WouldBlock);
    }
    let mut progress = Progress::default();
    let outcome = carry_out(request, &copy, &mut progress);
    if copy.id_usage != NOT_KEPT {
        let failed = match &outcome {
            Err(Fail::Sense(sense)) => Some(*sense),
            _ => None,
        };
        let status = CopyStatus {
            status: if outcome.is_ok() { 1 } else { 2 },
            segments: progress.segments,
            unit: KIB,
            count: u32::try_from(progress.bytes / 1024).unwrap_or(u32::MAX),
        };
        let port = request.nexus.port.clone();
        request.unit.copies.keep(CopyRecord { port, list_id: copy.list_id, status, failed });
    }
    let mut done = Done::good(data.len() as u64);
    for (unit, written) in progress.written {
        if unit.write_cache() && Arc::ptr_eq(&unit, &request.unit) {
            request.nexus.wrote(written);
        } else {
            // The initiator would have to know to flush another unit than the one it has asked.
            let flush = unit.flush(FlushSite::LunChange, written);
            done.flush.targets.extend(flush.targets);
        }
    }
    outcome.map(|()| done)
}

fn carry_out(request: &Request, copy: &Copy, progress: &mut Progress) -> Result<(), Fail> {
    let units: Vec<_> = copy.targets.iter().map(|target| find(request, target)).collect();
    let blocks: u64 = copy.segments.iter().map(|segment| u64::from(segment.count)).sum();
    let block = units.iter().flatten().map(|unit| unit.identity.block).max().unwrap_or(0);
    if blocks * u64::from(block) > SCSI_COPY_BYTES_MAX {
        return Err(illegal(Asc::TOO_MANY_SEGMENT_DESCRIPTORS));
    }
    for segment in &copy.segments {
        let unit = |at: u16| units.get(usize::from(at)).cloned().flatten();
        let (from, to) = (unit(segment.source), unit(segment.destination));
        let (Some(from), Some(to)) = (from, to) else {
            return Err(aborted(Asc::COPY_TARGET_NOT_REACHABLE));
        };
        one_segment(request, segment, (&from, &to), progress)?;
        progress.segments = progress.segments.saturating_add(1);
    }
    Ok(())
}

/// The unit that a descriptor means, if the initiator sees it.
fn find(request: &Request, target: &CopyTarget) -> Option<Arc<Unit>> {
    let units = request.target.units();
    let is_meant = |unit: &Unit| {
        let is_naa = target.association == 0 && target.kind == 3 && target.code_set == 1;
        is_naa && target.designator() == unit.identity.guid && !target.is_null
    };
    let mut seen = units.seen_by(&request.nexus.port.name);
    seen.find(|(_, unit)| is_meant(unit)).map(|(_, unit)| Arc::clone(unit))
}

fn one_segment(
    request: &Request,
    segment: &Segment,
    (from, to): (&Arc<Unit>, &Arc<Unit>),
    progress: &mut Progress,
) -> Result<(), Fail> {
    let port = &request.nexus.port;
    let (block, other) = (u64::from(from.identity.block), u64::from(to.identity.block));
    let counted = if segment.counts_destination { other } else { block };
    let length = u64::from(segment.count) * counted;
    let range = |unit: &Unit, lba: u64, block: u64| {
        let offset = lba.checked_mul(block)?;
        let end = offset.checked_add(length)?;
        (length.is_multiple_of(block) && end <= unit.blocks() * block).then_some(offset)
    };
    let (Some(source), Some(destination)) =
        (range(from, segment.source_lba, block), range(to, segment.destination_lba, other))
    else {
        return Err(aborted(Asc::NONE));
    };
    check_access(from, port, Access::Read)?;
    check_access(to, port, Access::Write)?;
    writable(to)?;
    if length == 0 {
        return Ok(());
    }
    let _guard = request.hold(to, (destination, length), true)?;
    let (source, target) = ((from.medium.as_ref(), source), (to.medium.as_ref(), destination));
    // A segment may be of 256 MiB: the copy ends when the session of its initiator does, or when it
    // has no right to its destination any more, which is not the unit that it is a task of.
    let goes_on = || {
        request.check_aborted()?;
        check_access(to, port, Access::Write)
    };
    let go_on = || goes_on().map_err(|_| Failure::Busy);
    let copy = || lun::copy(source, target, length, &go_on);
    let (done, written) = to.medium.ledger().noted(copy);
    progress.written.push((Arc::clone(to), written));
    request.check_aborted()?;
    if done.is_err() {
        goes_on()?;
    }
    done.map_err(|_| aborted(Asc::THIRD_PARTY_DEVICE_FAILURE))?;
    progress.bytes += length;
    Ok(())
}
