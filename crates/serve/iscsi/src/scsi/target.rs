//! Commands that need no unit (SPC-5 §6.7, §6.33; SAM-5 §5.11): what a target answers for a number
//! that is no unit of this initiator.

use wire::scsi::cdb::Cdb;
use wire::scsi::lun::{Lun, put_report};
use wire::scsi::{Asc, Sense, SenseKey};

use super::{Done, Fail, Outcome, answer, bad_field, illegal, inquiry};
use crate::targets::Target;
use engine::transport::buffers::ReplyBuf;

/// Fewest bytes that REPORT LUNS may be asked for (SPC-5 §6.33).
const REPORT_MIN: u32 = 16;

/// REPORT LUNS, wherever it is sent.
pub(super) fn report_luns(
    target: &Target,
    initiator: &str,
    (select, allocation): (u8, u32),
    out: &mut ReplyBuf,
) -> Outcome {
    if allocation < REPORT_MIN {
        return Err(bad_field(6));
    }
    let luns = match select {
        0 | 2 => {
            let units = target.units();
            units.seen_by(initiator).filter_map(|(number, _)| Lun::of(number)).collect()
        }
        1 => Vec::new(),
        _ => return Err(bad_field(2)),
    };
    let start = out.len();
    put_report(&luns, out.vec());
    Ok(answer(out, start, allocation))
}

/// A command for a number that is no unit.
///
/// # Errors
/// LOGICAL UNIT NOT SUPPORTED for all but INQUIRY, REPORT LUNS and REQUEST SENSE.
pub fn execute(target: &Target, initiator: &str, cdb: &[u8], out: &mut ReplyBuf) -> Outcome {
    let start = out.len();
    let unknown = Sense::new(SenseKey::ILLEGAL_REQUEST, Asc::LUN_NOT_SUPPORTED);
    match Cdb::decode(cdb) {
        Ok(Cdb::ReportLuns { select, allocation }) => {
            report_luns(target, initiator, (select, allocation), out)
        }
        Ok(Cdb::Inquiry { page: None, allocation }) => {
            inquiry::absent().put(out.vec());
            Ok(answer(out, start, allocation.into()))
        }
        Ok(Cdb::RequestSense { descriptor, allocation }) => {
            let format = match descriptor {
                true => wire::scsi::sense::Format::Descriptor,
                false => wire::scsi::sense::Format::Fixed,
            };
            unknown.put(format, out.vec());
            Ok(answer(out, start, allocation.into()))
        }
        _ => Err(illegal(Asc::LUN_NOT_SUPPORTED)),
    }
}

/// As [`execute`], with a failure as how it ended.
pub fn answer_for(target: &Target, initiator: &str, cdb: &[u8], out: &mut ReplyBuf) -> Done {
    execute(target, initiator, cdb, out).unwrap_or_else(|fail: Fail| Done::failed(fail))
}
