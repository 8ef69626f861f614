//! COMPARE AND WRITE, ORWRITE and VERIFY (SBC-4 §5.2, §5.11, §5.43): what reads before it writes,
//! or only reads.

use base::limits::LUN_BUFFER;
use wire::scsi::Asc;
use wire::scsi::cdb::{Compare, Io, VerifyIo};

use super::miscompare::{difference, miscompare};
use super::write::{must_be_durable, put_held};
use super::{Done, Fail, Outcome, Request, bad_field, bytes_of, illegal, read_failed, writable};

/// The smallest page of the kernel's cache: a write that may not wait stops between two of them, if
/// at all.
const PAGE: u64 = 4096;

/// COMPARE AND WRITE: no other write takes place between the comparison and the write.
pub(super) fn compare_and_write(
    request: &Request,
    io: Io,
    data: &[u8],
    may_block: bool,
) -> Outcome {
    let unit = &request.unit;
    writable(unit)?;
    let (offset, length) = bytes_of(unit, io.blocks)?;
    if u32::from(base::limits::ISCSI_COMPARE_BLOCKS_MAX) < io.blocks.count {
        return Err(bad_field(13));
    }
    // What is there and what is to be there: neither less nor more may be sent.
    if u64::from(request.limit) != 2 * length || data.len() as u64 != 2 * length {
        return Err(bad_field(13));
    }
    let durable = must_be_durable(unit, io.force_unit_access, may_block)?;
    let (expect, new) = data.split_at_checked(length as usize).unwrap_or((data, &[]));
    if new.is_empty() {
        return Ok(Done::good(0));
    }
    if !may_block && offset / PAGE != (offset + length - 1) / PAGE {
        // Repeated after a part of its write, it would compare with what it has written itself.
        return Err(Fail::WouldBlock);
    }
    let _guard = request.hold(unit, (offset, length), may_block)?;
    let mut there = vec![0; expect.len()];
    unit.medium.read(offset, &mut there, may_block).map_err(read_failed)?;
    if let Some(at) = difference(&there, expect) {
        return Err(miscompare(at));
    }
    let flush = put_held(request, offset, new, durable, may_block)?;
    Ok(Done { flush, ..Done::good(2 * length) })
}

/// ORWRITE: stored data and sent data are combined atomically.
pub(super) fn or_write(request: &Request, io: Io, data: &[u8], may_block: bool) -> Outcome {
    let unit = &request.unit;
    writable(unit)?;
    let (offset, length) = bytes_of(unit, io.blocks)?;
    if data.len() as u64 != length {
        return Err(illegal(Asc::INVALID_FIELD_IN_INFORMATION_UNIT));
    }
    let durable = must_be_durable(unit, io.force_unit_access, may_block)?;
    if data.is_empty() {
        return Ok(Done::good(0));
    }
    let _guard = request.hold(unit, (offset, length), may_block)?;
    let mut there = vec![0; data.len()];
    unit.medium.read(offset, &mut there, may_block).map_err(read_failed)?;
    there.iter_mut().zip(data).for_each(|(byte, with)| *byte |= with);
    let flush = put_held(request, offset, &there, durable, may_block)?;
    Ok(Done { flush, ..Done::good(length) })
}

/// VERIFY: reads, and compares with what is sent.
pub(super) fn verify(request: &Request, io: VerifyIo, data: &[u8], may_block: bool) -> Outcome {
    let unit = &request.unit;
    let (offset, length) = bytes_of(unit, io.blocks)?;
    let block = unit.identity.block as usize;
    let sent = match io.compare {
        Compare::Nothing => 0,
        Compare::Each => length,
        Compare::AllWithOne => (block as u64).min(length),
    };
    if (data.len() as u64) < sent {
        return Err(illegal(Asc::INVALID_FIELD_IN_INFORMATION_UNIT));
    }
    if !may_block && length > LUN_BUFFER as u64 {
        return Err(Fail::WouldBlock);
    }
    let mut there = vec![0; (length as usize).min(LUN_BUFFER)];
    let mut done = 0;
    while done < length as usize {
        let count = (length as usize - done).min(LUN_BUFFER);
        let piece = there.get_mut(..count).unwrap_or_default();
        unit.medium.read(offset + done as u64, piece, may_block).map_err(read_failed)?;
        let differs = match io.compare {
            Compare::Nothing => None,
            Compare::Each => difference(piece, data.get(done..done + count).unwrap_or_default()),
            Compare::AllWithOne => piece.chunks(block).enumerate().find_map(|(n, one)| {
                Some(n * block + difference(one, data.get(..block).unwrap_or_default())?)
            }),
        };
        if let Some(at) = differs {
            return Err(miscompare(done + at));
        }
        done += count;
    }
    Ok(Done::good(sent))
}
