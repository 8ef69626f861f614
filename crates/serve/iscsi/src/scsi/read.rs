//! READ and PRE-FETCH (SBC-4 §5.13 to §5.18).

use base::limits::SEND_FILE_MIN;
use vfs::mapped::Slice;
use wire::scsi::Status;
use wire::scsi::cdb::{CacheRange, Io};

use super::{Done, Fail, Outcome, Request, bytes_of, check_range, read_failed};
use engine::transport::buffers::ReplyBuf;

/// READ.
pub(super) fn read(request: &Request, io: Io, may_block: bool, out: &mut ReplyBuf) -> Outcome {
    let unit = &request.unit;
    let (offset, length) = bytes_of(unit, io.blocks)?;
    if io.force_unit_access && unit.medium.ledger().is_dirty() {
        // What is newer in the cache goes to the medium first, from which it then comes.
        if !may_block {
            return Err(Fail::WouldBlock);
        }
        unit.medium.sync().map_err(read_failed)?;
    }
    let count = length.min(request.limit.into()) as usize;
    let start = out.extend_stale(count);
    let into = out.vec().get_mut(start..).unwrap_or_default();
    if let Err(failure) = unit.medium.read(offset, into, may_block) {
        out.truncate(start);
        return Err(read_failed(failure));
    }
    Ok(Done::good(length))
}

/// Data of a READ that is sent from the page cache without a copy: only of large reads that are
/// cached as a whole, and without a digest.
pub(super) fn mapped(request: &Request, io: Io) -> Option<(Slice, Done)> {
    let (offset, length) = bytes_of(&request.unit, io.blocks).ok()?;
    let count = length.min(request.limit.into()) as usize;
    if io.force_unit_access || count < SEND_FILE_MIN {
        return None;
    }
    let slice = request.unit.medium.slice(offset, count)?;
    Some((slice, Done::good(length)))
}

/// PRE-FETCH. The kernel reads ahead; what it does not retain is not an error.
pub(super) fn pre_fetch(request: &Request, range: CacheRange) -> Outcome {
    check_range(&request.unit, range.blocks.lba, range.blocks.count.into())?;
    Ok(Done { status: Status::CONDITION_MET, ..Done::good(0) })
}
