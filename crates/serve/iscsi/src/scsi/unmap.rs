//! UNMAP (SBC-4 §5.35) and GET LBA STATUS (SBC-4 §5.8).

use base::limits::{ISCSI_LBA_STATUS_MAX, ISCSI_UNMAP_MAX};
use vfs::lun::Written;
use wire::scsi::capacity::{LbaStatus, put_lba_status};
use wire::scsi::{Asc, ScsiError, unmap};

use super::{
    Done, Fail, Outcome, Request, answer, changed, check_range, illegal, read_failed, writable,
    write_failed,
};
use engine::transport::buffers::ReplyBuf;

/// UNMAP: all descriptors are checked before anything is done.
pub(super) fn unmap(request: &Request, data: &[u8], may_block: bool) -> Outcome {
    let unit = &request.unit;
    writable(unit)?;
    let (extents, block) = (unmap::parse(data)?, u64::from(unit.identity.block));
    let mut whole = 0;
    for extent in &extents {
        check_range(unit, extent.lba, extent.count.into())?;
        whole += u64::from(extent.count);
    }
    if whole * block > ISCSI_UNMAP_MAX {
        return Err(ScsiError::list(2, 7).into());
    }
    if !may_block && whole > 0 {
        return Err(Fail::WouldBlock);
    }
    let mut all = Written::NONE;
    for extent in extents.iter().filter(|extent| extent.count > 0) {
        let (offset, length) = (extent.lba * block, u64::from(extent.count) * block);
        let _guard = match request.hold(unit, (offset, length), may_block) {
            Ok(guard) => guard,
            Err(fail) => {
                request.nexus.wrote(all);
                return Err(fail);
            }
        };
        let medium = &unit.medium;
        let (done, written) = medium.ledger().noted(|| medium.discard(offset, length));
        all.join(written);
        if let Err(failure) = done {
            request.nexus.wrote(all);
            return Err(write_failed(failure));
        }
    }
    Ok(if all.is_empty() {
        Done::good(data.len() as u64)
    } else {
        changed(request, all, data.len() as u64)
    })
}

/// GET LBA STATUS: which blocks have space, as the holes of the file say.
pub(super) fn lba_status(
    request: &Request,
    (lba, allocation): (u64, u32),
    may_block: bool,
    out: &mut ReplyBuf,
) -> Outcome {
    let unit = &request.unit;
    let (block, blocks) = (u64::from(unit.identity.block), unit.blocks());
    if lba >= blocks {
        return Err(illegal(Asc::LBA_OUT_OF_RANGE));
    }
    if !may_block {
        return Err(Fail::WouldBlock);
    }
    let most = ((allocation as usize).saturating_sub(8) / 16).clamp(1, ISCSI_LBA_STATUS_MAX);
    let (mut list, mut at): (Vec<LbaStatus>, u64) = (Vec::new(), lba);
    // Where blocks of the file are smaller than ours, what lies between holes is one: the looks are
    // counted, not what they come to.
    let mut looks = 0;
    while at < blocks && list.len() < most && looks < 4 * ISCSI_LBA_STATUS_MAX {
        looks += 1;
        let extent = unit.medium.extent(at * block).map_err(read_failed)?;
        // A block that has space in part has space; so a hole ends with its last whole block.
        let end = match extent.is_mapped {
            true => extent.end.div_ceil(block),
            false => extent.end / block,
        };
        let is_mapped = extent.is_mapped || end <= at;
        let end = end.clamp(at + 1, blocks).min(at + u64::from(u32::MAX));
        let status = if is_mapped { 0 } else { 1 };
        match list.last_mut() {
            Some(last) if last.status == status && u64::from(last.count) + (end - at) < 1 << 32 => {
                last.count += (end - at) as u32;
            }
            _ => list.push(LbaStatus { lba: at, count: (end - at) as u32, status }),
        }
        at = end;
    }
    let start = out.len();
    put_lba_status(&list, out.vec());
    Ok(answer(out, start, allocation))
}
