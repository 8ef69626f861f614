//! From bytes to a command. The bits were checked already; what is left are values.

use super::*;

/// The fields of a CDB that names blocks, by its form.
fn blocks(cdb: &[u8]) -> Blocks {
    match u8_at(cdb, 0) {
        VARIABLE_LENGTH => Blocks {
            width: Width::ThirtyTwo,
            lba: u64_at(cdb, 12),
            count: u32_at(cdb, 28),
            group: u8_at(cdb, 6) & 0x3f,
        },
        0x00..=0x1f => Blocks {
            width: Width::Six,
            lba: u64::from(u24_at(cdb, 1) & 0x1f_ffff),
            count: match u8_at(cdb, 4) {
                0 => 256,
                count => u32::from(count),
            },
            group: 0,
        },
        0x20..=0x5f => Blocks {
            width: Width::Ten,
            lba: u64::from(u32_at(cdb, 2)),
            count: u32::from(u16_at(cdb, 7)),
            group: u8_at(cdb, 6) & 0x3f,
        },
        0xa0..=0xbf => Blocks {
            width: Width::Twelve,
            lba: u64::from(u32_at(cdb, 2)),
            count: u32_at(cdb, 6),
            group: u8_at(cdb, 10) & 0x3f,
        },
        _ => Blocks {
            width: Width::Sixteen,
            lba: u64_at(cdb, 2),
            count: u32_at(cdb, 10),
            group: u8_at(cdb, 14) & 0x3f,
        },
    }
}

/// Where the flags of a CDB that names blocks are.
fn flags_at(cdb: &[u8]) -> usize {
    if u8_at(cdb, 0) == VARIABLE_LENGTH { 10 } else { 1 }
}

fn io(cdb: &[u8]) -> Io {
    let (blocks, at) = (blocks(cdb), flags_at(cdb));
    // The form of 6 bytes has its address there.
    let has_flags = blocks.width != Width::Six;
    Io {
        blocks,
        no_cache: has_flags && bit_at(cdb, at, 0x10),
        force_unit_access: has_flags && bit_at(cdb, at, 0x08),
    }
}

fn verify(cdb: &[u8]) -> Result<VerifyIo, ScsiError> {
    let at = flags_at(cdb);
    let compare = match u8_at(cdb, at) >> 1 & 3 {
        0 => Compare::Nothing,
        1 => Compare::Each,
        3 => Compare::AllWithOne,
        _ => return Err(ScsiError::cdb(at as u16, 2)),
    };
    Ok(VerifyIo { blocks: blocks(cdb), no_cache: bit_at(cdb, at, 0x10), compare })
}

/// The verification of WRITE AND VERIFY: there is no "all with one" (SBC-4 §5.56).
fn write_and_verify(cdb: &[u8]) -> Result<VerifyIo, ScsiError> {
    let io = verify(cdb)?;
    match io.compare {
        Compare::AllWithOne => Err(ScsiError::cdb(flags_at(cdb) as u16, 2)),
        _ => Ok(io),
    }
}

fn range(cdb: &[u8]) -> CacheRange {
    CacheRange { blocks: blocks(cdb), immediate: bit_at(cdb, 1, 2) }
}

fn write_same(cdb: &[u8]) -> WriteSame {
    let at = flags_at(cdb);
    WriteSame { blocks: blocks(cdb), unmap: bit_at(cdb, at, 8), no_data: bit_at(cdb, at, 1) }
}

/// Reads a CDB with the row of its command.
pub(super) fn parse(command: &Command, cdb: &[u8]) -> Result<Cdb, ScsiError> {
    Ok(match command.opcode() {
        0x08 | 0x28 | 0x88 | 0xa8 => Cdb::Read(io(cdb)),
        0x0a | 0x2a | 0x8a | 0xaa => Cdb::Write(io(cdb)),
        0x2e | 0x8e | 0xae => Cdb::WriteAndVerify(write_and_verify(cdb)?),
        0x2f | 0x8f | 0xaf => Cdb::Verify(verify(cdb)?),
        0x8b => Cdb::OrWrite(io(cdb)),
        0x89 => {
            let mut io = io(cdb);
            io.blocks.count = u32::from(u8_at(cdb, 13));
            Cdb::CompareAndWrite(io)
        }
        0x34 | 0x90 => Cdb::PreFetch(range(cdb)),
        0x35 | 0x91 => Cdb::SynchronizeCache(range(cdb)),
        0x41 | 0x93 => Cdb::WriteSame(write_same(cdb)),
        0x42 => Cdb::Unmap { group: u8_at(cdb, 6) & 0x3f, list_length: u16_at(cdb, 7) },
        VARIABLE_LENGTH => match u16_at(cdb, 8) {
            0x09 => Cdb::Read(io(cdb)),
            0x0a => Cdb::Verify(verify(cdb)?),
            0x0b => Cdb::Write(io(cdb)),
            0x0c => Cdb::WriteAndVerify(write_and_verify(cdb)?),
            0x0d => Cdb::WriteSame(write_same(cdb)),
            _ => return Err(ScsiError::cdb(8, 7)),
        },
        0x25 => Cdb::ReadCapacity10,
        0x37 | 0xb7 => Cdb::ReadDefectData(read_defect_data(cdb)),
        0x5e | 0x5f | 0x83 | 0x84 | 0x9e | 0xa3 => return with_action(cdb),
        _ => return primary(cdb),
    })
}

fn read_defect_data(cdb: &[u8]) -> ReadDefectData {
    let (width, at) = match u8_at(cdb, 0) {
        0x37 => (Width::Ten, 2),
        _ => (Width::Twelve, 1),
    };
    let flags = u8_at(cdb, at);
    ReadDefectData {
        width,
        primary: flags & 0x10 != 0,
        grown: flags & 0x08 != 0,
        format: flags & 7,
        index: if width == Width::Ten { 0 } else { u32_at(cdb, 2) },
        allocation: if width == Width::Ten { u16_at(cdb, 7).into() } else { u32_at(cdb, 6) },
    }
}

/// Commands that have a service action.
fn with_action(cdb: &[u8]) -> Result<Cdb, ScsiError> {
    let unknown = ScsiError::cdb(1, 4);
    let action = u8_at(cdb, 1) & 0x1f;
    Ok(match (u8_at(cdb, 0), action) {
        (0x5e, _) => Cdb::PersistentReserveIn {
            action: reserve_in(action).ok_or(unknown)?,
            allocation: u16_at(cdb, 7),
        },
        (0x5f, _) => Cdb::PersistentReserveOut(PersistentReserveOut {
            action: reserve_out(action).ok_or(unknown)?,
            scope: u8_at(cdb, 2) >> 4,
            kind: u8_at(cdb, 2) & 0xf,
            list_length: u32_at(cdb, 5),
        }),
        (0x83, 0) => Cdb::ExtendedCopy { list_length: u32_at(cdb, 10) },
        (0x84, _) => Cdb::ReceiveCopyResults {
            action: receive_copy(action).ok_or(unknown)?,
            list_id: u8_at(cdb, 2),
            allocation: u32_at(cdb, 10),
        },
        (0x9e, 0x10) => Cdb::ReadCapacity16 { allocation: u32_at(cdb, 10) },
        (0x9e, 0x12) => Cdb::GetLbaStatus { lba: u64_at(cdb, 2), allocation: u32_at(cdb, 10) },
        (0xa3, 0x0a) => {
            let format = u8_at(cdb, 1) >> 5;
            if format > 1 {
                return Err(ScsiError::cdb(1, 7));
            }
            Cdb::ReportTargetPortGroups { format, allocation: u32_at(cdb, 6) }
        }
        (0xa3, 0x0c) => Cdb::ReportOpcodes {
            timeouts: bit_at(cdb, 2, 0x80),
            query: query(cdb)?,
            allocation: u32_at(cdb, 6),
        },
        (0xa3, 0x0d) => {
            Cdb::ReportTmf { extended: bit_at(cdb, 2, 0x80), allocation: u32_at(cdb, 6) }
        }
        _ => return Err(unknown),
    })
}

/// What REPORT SUPPORTED OPERATION CODES is about. Which fields count depends on the option; those
/// that do not are not looked at.
fn query(cdb: &[u8]) -> Result<OpcodeQuery, ScsiError> {
    let (opcode, action) = (u8_at(cdb, 3), u16_at(cdb, 4));
    match u8_at(cdb, 2) & 7 {
        0 => Ok(OpcodeQuery::All),
        1 => Ok(OpcodeQuery::One(opcode)),
        2 => Ok(OpcodeQuery::OneAction(opcode, action)),
        3 => Ok(OpcodeQuery::OneAny(opcode, action)),
        _ => Err(ScsiError::cdb(2, 2)),
    }
}

const fn reserve_in(action: u8) -> Option<ReserveIn> {
    Some(match action {
        0 => ReserveIn::ReadKeys,
        1 => ReserveIn::ReadReservation,
        2 => ReserveIn::ReportCapabilities,
        3 => ReserveIn::ReadFullStatus,
        _ => return None,
    })
}

const fn reserve_out(action: u8) -> Option<ReserveOut> {
    Some(match action {
        0 => ReserveOut::Register,
        1 => ReserveOut::Reserve,
        2 => ReserveOut::Release,
        3 => ReserveOut::Clear,
        4 => ReserveOut::Preempt,
        5 => ReserveOut::PreemptAndAbort,
        6 => ReserveOut::RegisterAndIgnore,
        7 => ReserveOut::RegisterAndMove,
        _ => return None,
    })
}

const fn receive_copy(action: u8) -> Option<ReceiveCopy> {
    Some(match action {
        0 => ReceiveCopy::Status,
        1 => ReceiveCopy::Data,
        3 => ReceiveCopy::OperatingParameters,
        4 => ReceiveCopy::FailureDetails,
        _ => return None,
    })
}

/// The rest of SPC.
fn primary(cdb: &[u8]) -> Result<Cdb, ScsiError> {
    let opcode = u8_at(cdb, 0);
    Ok(match opcode {
        0x00 => Cdb::TestUnitReady,
        0x03 => Cdb::RequestSense { descriptor: bit_at(cdb, 1, 1), allocation: u8_at(cdb, 4) },
        0x12 => {
            let (has_page, page) = (bit_at(cdb, 1, 1), u8_at(cdb, 2));
            if !has_page && page != 0 {
                return Err(ScsiError::cdb(2, 7));
            }
            Cdb::Inquiry { page: has_page.then_some(page), allocation: u16_at(cdb, 3) }
        }
        0x15 | 0x55 => Cdb::ModeSelect(ModeSelect {
            width: if opcode == 0x15 { Width::Six } else { Width::Ten },
            page_format: bit_at(cdb, 1, 0x10),
            save: bit_at(cdb, 1, 1),
            list_length: if opcode == 0x15 { u8_at(cdb, 4).into() } else { u16_at(cdb, 7) },
        }),
        0x1a | 0x5a => Cdb::ModeSense(ModeSense {
            width: if opcode == 0x1a { Width::Six } else { Width::Ten },
            long_lba: opcode == 0x5a && bit_at(cdb, 1, 0x10),
            no_block_descriptors: bit_at(cdb, 1, 8),
            control: u8_at(cdb, 2) >> 6,
            page: u8_at(cdb, 2) & 0x3f,
            subpage: u8_at(cdb, 3),
            allocation: if opcode == 0x1a { u8_at(cdb, 4).into() } else { u16_at(cdb, 7) },
        }),
        0x16 => Cdb::Reserve6,
        0x17 => Cdb::Release6,
        0x1b => Cdb::StartStop(StartStop {
            immediate: bit_at(cdb, 1, 1),
            modifier: u8_at(cdb, 3) & 0xf,
            power_condition: u8_at(cdb, 4) >> 4,
            no_flush: bit_at(cdb, 4, 4),
            load_eject: bit_at(cdb, 4, 2),
            start: bit_at(cdb, 4, 1),
        }),
        0x1e => Cdb::PreventAllow { prevent: u8_at(cdb, 4) & 3 },
        0xa0 => Cdb::ReportLuns { select: u8_at(cdb, 2), allocation: u32_at(cdb, 6) },
        _ => return Err(ScsiError::UnknownOpcode(opcode)),
    })
}
