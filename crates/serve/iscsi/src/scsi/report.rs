//! Commands that only report: capacity, commands, task management, defects, and what is not about
//! blocks.

use wire::scsi::capacity::Capacity;
use wire::scsi::cdb::{OpcodeQuery, ReadDefectData, Width};
use wire::scsi::opcodes::{self, COMMANDS, Command};
use wire::scsi::ports::{TaskFunctions, Timeouts, put_all_commands, put_one_command};
use wire::scsi::{Asc, Cdb, Sense, SenseKey};

use super::{Done, Outcome, Request, answer, bad_field, format, illegal, inquiry, ports, target};
use crate::unit::Unit;
use engine::transport::buffers::ReplyBuf;

/// What a medium is given to end a command, in seconds: what a disk takes that has to be asked
/// again.
const TIMEOUTS: Timeouts = Timeouts { nominal: 0, recommended: 30 };

/// Carries out a command that only reports.
pub(super) fn execute(request: &Request, out: &mut ReplyBuf) -> Outcome {
    let (unit, start) = (&request.unit, out.len());
    match request.cdb {
        Cdb::Inquiry { page, allocation } => inquiry::inquiry(request, page, allocation, out),
        Cdb::RequestSense { descriptor, allocation } => {
            let asc = request.nexus.take_unit_attention();
            let sense = match asc {
                Some(asc) => Sense::new(SenseKey::UNIT_ATTENTION, asc),
                None => Sense::new(SenseKey::NO_SENSE, Asc::NONE),
            };
            let format =
                if descriptor { wire::scsi::sense::Format::Descriptor } else { format(unit) };
            sense.put(format, out.vec());
            Ok(answer(out, start, allocation.into()))
        }
        Cdb::ReportLuns { select, allocation } => {
            request.nexus.clear_attention(Asc::REPORTED_LUNS_CHANGED);
            let name = &request.nexus.port.name;
            target::report_luns(&request.target, name, (select, allocation), out)
        }
        Cdb::ReadCapacity10 => {
            capacity(unit).put_10(out.vec());
            Ok(answer(out, start, 8))
        }
        Cdb::ReadCapacity16 { allocation } => {
            capacity(unit).put_16(out.vec());
            Ok(answer(out, start, allocation))
        }
        Cdb::ReadDefectData(command) => Ok(defects(command, out)),
        Cdb::ReportTargetPortGroups { format, allocation } => {
            ports::report(format, allocation, out)
        }
        Cdb::ReportOpcodes { timeouts, query, allocation } => {
            commands(timeouts, query, out)?;
            Ok(answer(out, start, allocation))
        }
        Cdb::ReportTmf { extended, allocation } => {
            functions().put(extended, out.vec());
            Ok(answer(out, start, allocation))
        }
        _ => Err(illegal(Asc::INVALID_COMMAND_OPERATION_CODE)),
    }
}

fn capacity(unit: &Unit) -> Capacity {
    let block = unit.identity.block;
    Capacity {
        last_lba: unit.blocks().saturating_sub(1),
        block,
        // The page of the file system below.
        physical_exponent: if block < 4096 { (4096 / block).trailing_zeros() as u8 } else { 0 },
        is_provisioned: true,
        reads_zeros: true,
        lowest_aligned: 0,
    }
}

/// READ DEFECT DATA: an empty list, in the format that was requested.
fn defects(command: ReadDefectData, out: &mut ReplyBuf) -> Done {
    let start = out.len();
    let lists = u8::from(command.primary) << 4 | u8::from(command.grown) << 3;
    let flags = lists | command.format;
    match command.width {
        Width::Ten => out.vec().extend_from_slice(&[0, flags, 0, 0]),
        _ => out.vec().extend_from_slice(&[0, flags, 0, 0, 0, 0, 0, 0]),
    }
    answer(out, start, command.allocation)
}

/// Commands that there are.
fn supported() -> impl Iterator<Item = &'static Command> {
    // Those of 32 bytes are for units with protection information.
    COMMANDS.iter().filter(|row| !row.is_type2_only && row.opcode() != 0x1e)
}

/// REPORT SUPPORTED OPERATION CODES.
fn commands(timeouts: bool, query: OpcodeQuery, out: &mut ReplyBuf) -> Result<(), super::Fail> {
    let timeouts = timeouts.then_some(TIMEOUTS);
    let has_actions = |opcode| opcodes::with_opcode(opcode).any(|row| row.action.is_some());
    let find = |opcode, action: Option<u16>| {
        supported().find(|row| row.opcode() == opcode && row.action == action)
    };
    let found = match query {
        OpcodeQuery::All => {
            put_all_commands(supported(), timeouts, out.vec());
            return Ok(());
        }
        // REPORTING OPTIONS that do not fit the kind of command are an invalid field (SPC-5 table
        // 190).
        OpcodeQuery::One(opcode) if has_actions(opcode) => return Err(bad_field(2)),
        OpcodeQuery::One(opcode) => find(opcode, None),
        OpcodeQuery::OneAction(opcode, action) => {
            if !has_actions(opcode) && find(opcode, None).is_some() {
                return Err(bad_field(2));
            }
            find(opcode, Some(action))
        }
        OpcodeQuery::OneAny(opcode, action) => find(opcode, Some(action)).or(find(opcode, None)),
    };
    put_one_command(found, timeouts, out.vec());
    Ok(())
}

fn functions() -> TaskFunctions {
    TaskFunctions {
        abort_task: true,
        abort_task_set: true,
        clear_aca: false,
        clear_task_set: true,
        unit_reset: true,
        query_task: false,
        target_reset: true,
        query_event: false,
        query_task_set: false,
        nexus_reset: false,
    }
}
