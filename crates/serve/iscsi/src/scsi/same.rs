//! WRITE SAME (SBC-4 §5.53, §5.54).

use base::limits::{ISCSI_WRITE_SAME_MAX, LUN_BUFFER};
use vfs::fs::Flush;
use wire::scsi::Asc;
use wire::scsi::cdb::{Width, WriteSame};

use super::write::put_held;
use super::{
    CountAt, Done, Fail, Outcome, Request, bad_field, changed, check_range, illegal, writable,
    write_failed,
};

/// WRITE SAME: one block, or zeros, into all of them. With UNMAP the space of blocks that are to be
/// zeros is unmapped instead.
pub(super) fn write_same(
    request: &Request,
    same: WriteSame,
    data: &[u8],
    may_block: bool,
) -> Outcome {
    let unit = &request.unit;
    writable(unit)?;
    let (blocks, block) = (same.blocks, u64::from(unit.identity.block));
    check_range(unit, blocks.lba, blocks.count.into())?;
    let count = match blocks.count {
        0 => unit.blocks() - blocks.lba,
        count => u64::from(count),
    };
    if count * block > ISCSI_WRITE_SAME_MAX {
        return Err(bad_field(blocks.count_at()));
    }
    let no_data = same.no_data && blocks.width != Width::Ten;
    if !no_data && (u64::from(request.limit) != block || data.len() as u64 != block) {
        return Err(illegal(Asc::INVALID_FIELD_IN_INFORMATION_UNIT));
    }
    if !may_block {
        return Err(Fail::WouldBlock);
    }
    let (offset, length) = (blocks.lba * block, count * block);
    let sent = if no_data { 0 } else { block };
    if length == 0 {
        return Ok(Done::good(sent));
    }
    let _guard = request.hold(unit, (offset, length), may_block)?;
    if no_data || data.iter().all(|byte| *byte == 0) {
        let medium = &unit.medium;
        let (done, written) = medium.ledger().noted(|| match same.unmap {
            true => medium.discard(offset, length),
            false => medium.zero(offset, length),
        });
        done.map_err(write_failed)?;
        return Ok(changed(request, written, sent));
    }
    let copies = (LUN_BUFFER / data.len().max(1)).max(1);
    let piece = data.repeat(copies.min(count as usize));
    let (mut done, mut flush) = (0, Flush::NONE);
    while done < length {
        request.check_aborted()?;
        let now = (length - done).min(piece.len() as u64) as usize;
        let part = piece.get(..now).unwrap_or_default();
        let left = put_held(request, offset + done, part, !unit.write_cache(), may_block)?;
        flush.targets.extend(left.targets);
        done += now as u64;
    }
    Ok(Done { flush, ..Done::good(sent) })
}
