//! SYNCHRONIZE CACHE (SBC-4 §5.29) and START STOP UNIT (SBC-4 §5.25).

use std::sync::Arc;

use vfs::flush::FlushSite;
use wire::scsi::cdb::{CacheRange, StartStop};

use super::{Done, Outcome, Request, bad_field, check_range};

/// Power conditions in which the medium cannot be accessed (SBC-4 §5.25).
const STANDBY: [u8; 2] = [0x3, 0xb];

/// SYNCHRONIZE CACHE: all of the unit, whatever part is asked for.
pub(super) fn synchronize(request: &Request, range: CacheRange) -> Outcome {
    check_range(&request.unit, range.blocks.lba, range.blocks.count.into())?;
    Ok(flush(request, range.immediate))
}

/// START STOP UNIT: a unit is always started; what stops it brings everything to disk.
pub(super) fn start_stop(request: &Request, command: StartStop) -> Outcome {
    if command.load_eject {
        // Nothing can be ejected.
        return Err(bad_field(4));
    }
    let stops = match command.power_condition {
        0 => !command.start,
        condition => STANDBY.contains(&condition),
    };
    if !stops || command.no_flush {
        return Ok(Done::good(0));
    }
    Ok(flush(request, command.immediate))
}

/// Brings everything to disk, before the initiator hears of it or, with IMMED, after that.
fn flush(request: &Request, immediate: bool) -> Done {
    let written = request.nexus.written();
    let mut flush = request.unit.flush(FlushSite::LunSync, written);
    if immediate {
        // The next flush reports its outcome: the writes stay unsettled.
        match request.unit.threads.flush_behind(flush, &request.nexus.flushes) {
            Ok(()) => return Done::good(0),
            // Too many are in progress: this one is a task in the command window.
            Err(left) => flush = left,
        }
    }
    Done { flush, settles: Some((Arc::clone(&request.nexus), written)), ..Done::good(0) }
}
