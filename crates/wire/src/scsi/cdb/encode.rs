//! From a command to bytes. Fields that are too large for a form lose bits here; the caller reads
//! the result and compares.

use super::*;

/// Operation codes of one command by its form: 6, 10, 12, 16 bytes, and the service action of the
/// form of 32 bytes. 0 where there is none.
struct Forms {
    six: u8,
    ten: u8,
    twelve: u8,
    sixteen: u8,
    action: u8,
}

const READ: Forms = Forms { six: 0x08, ten: 0x28, twelve: 0xa8, sixteen: 0x88, action: 0x09 };
const WRITE: Forms = Forms { six: 0x0a, ten: 0x2a, twelve: 0xaa, sixteen: 0x8a, action: 0x0b };
const WRITE_AND_VERIFY: Forms =
    Forms { six: 0, ten: 0x2e, twelve: 0xae, sixteen: 0x8e, action: 0x0c };
const VERIFY: Forms = Forms { six: 0, ten: 0x2f, twelve: 0xaf, sixteen: 0x8f, action: 0x0a };
const OR_WRITE: Forms = Forms { six: 0, ten: 0, twelve: 0, sixteen: 0x8b, action: 0 };
const COMPARE_AND_WRITE: Forms = Forms { six: 0, ten: 0, twelve: 0, sixteen: 0x89, action: 0 };
const PRE_FETCH: Forms = Forms { six: 0, ten: 0x34, twelve: 0, sixteen: 0x90, action: 0 };
const SYNCHRONIZE: Forms = Forms { six: 0, ten: 0x35, twelve: 0, sixteen: 0x91, action: 0 };
const WRITE_SAME: Forms = Forms { six: 0, ten: 0x41, twelve: 0, sixteen: 0x93, action: 0x0d };

/// A CDB that names blocks.
fn blocks(forms: &Forms, blocks: Blocks, flags: u8) -> Option<CdbBytes> {
    let mut cdb = CdbBytes::new(blocks.width as usize);
    let bytes = &mut cdb.bytes;
    let (lba, count) = (blocks.lba, blocks.count);
    let (group_at, flags_at) = match blocks.width {
        Width::Six => (None, None),
        Width::Ten => (Some(6), Some(1)),
        Width::Twelve => (Some(10), Some(1)),
        Width::Sixteen => (Some(14), Some(1)),
        Width::ThirtyTwo => (Some(6), Some(10)),
    };
    bytes[0] = match blocks.width {
        Width::Six => {
            put_at(bytes, 1, &(lba as u32 & 0x1f_ffff).to_be_bytes()[1..]);
            bytes[4] = count as u8;
            forms.six
        }
        Width::Ten => {
            put_at(bytes, 2, &(lba as u32).to_be_bytes());
            put_at(bytes, 7, &(count as u16).to_be_bytes());
            forms.ten
        }
        Width::Twelve => {
            put_at(bytes, 2, &(lba as u32).to_be_bytes());
            put_at(bytes, 6, &count.to_be_bytes());
            forms.twelve
        }
        Width::Sixteen => {
            put_at(bytes, 2, &lba.to_be_bytes());
            put_at(bytes, 10, &count.to_be_bytes());
            forms.sixteen
        }
        Width::ThirtyTwo => {
            bytes[7] = 0x18;
            bytes[9] = forms.action;
            put_at(bytes, 12, &lba.to_be_bytes());
            put_at(bytes, 28, &count.to_be_bytes());
            if forms.action == 0 { 0 } else { VARIABLE_LENGTH }
        }
    };
    if bytes[0] == 0 {
        return None;
    }
    if let Some(at) = group_at {
        set_at(bytes, at, blocks.group & 0x3f, true);
    }
    if let Some(at) = flags_at {
        set_at(bytes, at, flags, true);
    }
    Some(cdb)
}

fn io(forms: &Forms, io: &Io) -> Option<CdbBytes> {
    let fua = if io.force_unit_access { 8 } else { 0 };
    blocks(forms, io.blocks, fua | if io.no_cache { 0x10 } else { 0 })
}

fn verify(forms: &Forms, io: &VerifyIo) -> Option<CdbBytes> {
    blocks(forms, io.blocks, (io.compare as u8) << 1 | if io.no_cache { 0x10 } else { 0 })
}

fn range(forms: &Forms, range: &CacheRange) -> Option<CdbBytes> {
    blocks(forms, range.blocks, if range.immediate { 2 } else { 0 })
}

pub(super) fn encode(cdb: &Cdb) -> Option<CdbBytes> {
    match cdb {
        Cdb::Read(read) => io(&READ, read),
        Cdb::Write(write) => io(&WRITE, write),
        Cdb::WriteAndVerify(write) => verify(&WRITE_AND_VERIFY, write),
        Cdb::Verify(io) => verify(&VERIFY, io),
        Cdb::OrWrite(write) => io(&OR_WRITE, write),
        Cdb::CompareAndWrite(write) => {
            let mut cdb = io(&COMPARE_AND_WRITE, write)?;
            put_at(&mut cdb.bytes, 10, &[0, 0, 0, write.blocks.count as u8]);
            Some(cdb)
        }
        Cdb::PreFetch(blocks) => range(&PRE_FETCH, blocks),
        Cdb::SynchronizeCache(blocks) => range(&SYNCHRONIZE, blocks),
        Cdb::WriteSame(same) => {
            let flags = if same.unmap { 8 } else { 0 } | u8::from(same.no_data);
            blocks(&WRITE_SAME, same.blocks, flags)
        }
        _ => {
            let mut bytes = [0; 32];
            primary(cdb, &mut bytes);
            let length = opcodes::find(&bytes).ok()?.length();
            Some(CdbBytes { bytes, length: length as u8 })
        }
    }
}

/// Everything that names no blocks.
fn primary(cdb: &Cdb, b: &mut [u8; 32]) {
    match *cdb {
        Cdb::RequestSense { descriptor, allocation } => {
            put_at(b, 0, &[0x03, u8::from(descriptor), 0, 0, allocation]);
        }
        Cdb::Inquiry { page, allocation } => {
            let [high, low] = allocation.to_be_bytes();
            let flag = u8::from(page.is_some());
            put_at(b, 0, &[0x12, flag, page.unwrap_or(0), high, low]);
        }
        Cdb::ReadCapacity10 => b[0] = 0x25,
        Cdb::ReadCapacity16 { allocation } => {
            put_at(b, 0, &[0x9e, 0x10]);
            put_at(b, 10, &allocation.to_be_bytes());
        }
        Cdb::GetLbaStatus { lba, allocation } => {
            put_at(b, 0, &[0x9e, 0x12]);
            put_at(b, 2, &lba.to_be_bytes());
            put_at(b, 10, &allocation.to_be_bytes());
        }
        Cdb::Unmap { group, list_length } => {
            b[0] = 0x42;
            b[6] = group & 0x3f;
            put_at(b, 7, &list_length.to_be_bytes());
        }
        Cdb::ReportLuns { select, allocation } => {
            put_at(b, 0, &[0xa0, 0, select]);
            put_at(b, 6, &allocation.to_be_bytes());
        }
        Cdb::ReadDefectData(read) => defect(&read, b),
        Cdb::ModeSense(sense) => mode_sense(&sense, b),
        Cdb::ModeSelect(select) => mode_select(&select, b),
        Cdb::Reserve6 => b[0] = 0x16,
        Cdb::Release6 => b[0] = 0x17,
        Cdb::StartStop(start) => {
            let bits = u8::from(start.no_flush) << 2
                | u8::from(start.load_eject) << 1
                | u8::from(start.start);
            let power = start.power_condition << 4 | bits;
            put_at(b, 0, &[0x1b, u8::from(start.immediate), 0, start.modifier & 0xf, power]);
        }
        Cdb::PreventAllow { prevent } => put_at(b, 0, &[0x1e, 0, 0, 0, prevent & 3]),
        _ => with_action(cdb, b),
    }
}

fn defect(read: &ReadDefectData, b: &mut [u8; 32]) {
    let flags = u8::from(read.primary) << 4 | u8::from(read.grown) << 3 | read.format & 7;
    if read.width == Width::Ten {
        put_at(b, 0, &[0x37, 0, flags]);
        put_at(b, 7, &(read.allocation as u16).to_be_bytes());
    } else {
        put_at(b, 0, &[0xb7, flags]);
        put_at(b, 2, &read.index.to_be_bytes());
        put_at(b, 6, &read.allocation.to_be_bytes());
    }
}

fn mode_sense(sense: &ModeSense, b: &mut [u8; 32]) {
    let flags = if sense.no_block_descriptors { 8 } else { 0 };
    let page = sense.control << 6 | sense.page & 0x3f;
    if sense.width == Width::Six {
        put_at(b, 0, &[0x1a, flags, page, sense.subpage, sense.allocation as u8]);
    } else {
        let long = if sense.long_lba { 0x10 } else { 0 };
        put_at(b, 0, &[0x5a, flags | long, page, sense.subpage]);
        put_at(b, 7, &sense.allocation.to_be_bytes());
    }
}

fn mode_select(select: &ModeSelect, b: &mut [u8; 32]) {
    let flags = if select.page_format { 0x10 } else { 0 } | u8::from(select.save);
    if select.width == Width::Six {
        put_at(b, 0, &[0x15, flags, 0, 0, select.list_length as u8]);
    } else {
        put_at(b, 0, &[0x55, flags]);
        put_at(b, 7, &select.list_length.to_be_bytes());
    }
}

fn with_action(cdb: &Cdb, b: &mut [u8; 32]) {
    match *cdb {
        Cdb::PersistentReserveIn { action, allocation } => {
            put_at(b, 0, &[0x5e, action as u8]);
            put_at(b, 7, &allocation.to_be_bytes());
        }
        Cdb::PersistentReserveOut(out) => {
            put_at(b, 0, &[0x5f, out.action as u8, out.scope << 4 | out.kind & 0xf]);
            put_at(b, 5, &out.list_length.to_be_bytes());
        }
        Cdb::ExtendedCopy { list_length } => {
            b[0] = 0x83;
            put_at(b, 10, &list_length.to_be_bytes());
        }
        Cdb::ReceiveCopyResults { action, list_id, allocation } => {
            put_at(b, 0, &[0x84, action as u8, list_id]);
            put_at(b, 10, &allocation.to_be_bytes());
        }
        Cdb::ReportTargetPortGroups { format, allocation } => {
            put_at(b, 0, &[0xa3, format << 5 | 0x0a]);
            put_at(b, 6, &allocation.to_be_bytes());
        }
        Cdb::ReportOpcodes { timeouts, query, allocation } => {
            let (option, opcode, action) = match query {
                OpcodeQuery::All => (0, 0, 0),
                OpcodeQuery::One(opcode) => (1, opcode, 0),
                OpcodeQuery::OneAction(opcode, action) => (2, opcode, action),
                OpcodeQuery::OneAny(opcode, action) => (3, opcode, action),
            };
            put_at(b, 0, &[0xa3, 0x0c, u8::from(timeouts) << 7 | option, opcode]);
            put_at(b, 4, &action.to_be_bytes());
            put_at(b, 6, &allocation.to_be_bytes());
        }
        Cdb::ReportTmf { extended, allocation } => {
            put_at(b, 0, &[0xa3, 0x0d, u8::from(extended) << 7]);
            put_at(b, 6, &allocation.to_be_bytes());
        }
        // TEST UNIT READY: all zero.
        _ => {}
    }
}
