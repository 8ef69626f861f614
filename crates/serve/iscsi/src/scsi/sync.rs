//! SYNCHRONIZE CACHE (SBC-4 §5.29) and START STOP UNIT (SBC-4 §5.25).

use vfs::flush::FlushSite;
use wire::scsi::cdb::{CacheRange, StartStop};

use super::{Done, Outcome, Request, bad_field, check_range};

/// SYNCHRONIZE CACHE: all of the unit, whatever part is asked for.
pub(super) fn synchronize(request: &Request, range: CacheRange) -> Outcome {
    check_range(&request.unit, range.blocks.lba, range.blocks.count.into())?;
    let written = request.nexus.written();
    let flush = request.unit.flush(FlushSite::LunSync, written);
    if range.immediate {
        // Whether it went well is told by the next one: what is written stays unsettled.
        request.unit.threads.flush_behind(flush);
        return Ok(Done::good(0));
    }
    Ok(Done { flush, settles: Some(written), ..Done::good(0) })
}

/// START STOP UNIT: a unit is always started; what stops it brings everything to disk.
pub(super) fn start_stop(request: &Request, command: StartStop) -> Outcome {
    if command.load_eject {
        // Nothing can be ejected.
        return Err(bad_field(4));
    }
    if command.power_condition != 0 || command.start || command.no_flush || command.immediate {
        return Ok(Done::good(0));
    }
    let written = request.nexus.written();
    let flush = request.unit.flush(FlushSite::LunSync, written);
    Ok(Done { flush, settles: Some(written), ..Done::good(0) })
}
