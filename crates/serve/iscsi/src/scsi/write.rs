//! WRITE and WRITE AND VERIFY (SBC-4 §5.40 to §5.52).

use vfs::fs::Flush;
use wire::scsi::cdb::{Compare, Io, VerifyIo};

use super::miscompare::{difference, miscompare};
use super::{Done, Fail, Outcome, Request, bytes_of, changed, read_failed, writable, write_failed};
use crate::unit::Unit;

/// WRITE. The initiator may have sent less than the command has; then so much is written (the
/// residual count reports it, RFC 7143 §11.4.5.1).
pub(super) fn write(request: &Request, io: Io, data: &[u8], may_block: bool) -> Outcome {
    let unit = &request.unit;
    writable(unit)?;
    let (offset, length) = bytes_of(unit, io.blocks)?;
    let flush = put(request, offset, data, io.force_unit_access, may_block)?;
    Ok(Done { flush, ..Done::good(length) })
}

/// Writes into the cache, or to disk with `durable` or without a write cache. Gives what remains to
/// be flushed.
pub(super) fn put(
    request: &Request,
    offset: u64,
    data: &[u8],
    durable: bool,
    may_block: bool,
) -> Result<Flush, Fail> {
    let unit = &request.unit;
    let durable = must_be_durable(unit, durable, may_block)?;
    if data.is_empty() {
        return Ok(Flush::NONE);
    }
    let _guard = request.hold(unit, (offset, data.len() as u64), may_block)?;
    put_held(request, offset, data, durable, may_block)
}

/// Whether a write goes to disk: by FUA, or without a write cache. On a connection's thread it
/// would block then.
pub(super) fn must_be_durable(unit: &Unit, asked: bool, may_block: bool) -> Result<bool, Fail> {
    match asked || !unit.write_cache() {
        true if !may_block => Err(Fail::WouldBlock),
        durable => Ok(durable),
    }
}

/// As [`put`], for a caller that holds the range. What is written into a cache that has been
/// switched off meanwhile remains to be flushed: the flush at that change may have been before.
pub(super) fn put_held(
    request: &Request,
    offset: u64,
    data: &[u8],
    durable: bool,
    may_block: bool,
) -> Result<Flush, Fail> {
    let medium = &request.unit.medium;
    let (done, written) = medium.ledger().noted(|| match durable {
        true => medium.write_durable(offset, data),
        false => medium.write(offset, data, may_block),
    });
    match done {
        Ok(()) if durable => Ok(Flush::NONE),
        Ok(()) => Ok(changed(request, written, 0).flush),
        Err(failure) => {
            request.nexus.wrote(written);
            Err(write_failed(failure))
        }
    }
}

/// WRITE AND VERIFY: what was written is read again. It comes from the medium only as far as the
/// kernel has not kept it.
pub(super) fn write_and_verify(
    request: &Request,
    io: VerifyIo,
    data: &[u8],
    may_block: bool,
) -> Outcome {
    let unit = &request.unit;
    writable(unit)?;
    let (offset, length) = bytes_of(unit, io.blocks)?;
    if !may_block {
        return Err(Fail::WouldBlock);
    }
    put(request, offset, data, true, may_block)?;
    let mut back = vec![0; data.len()];
    unit.medium.read(offset, &mut back, may_block).map_err(read_failed)?;
    if io.compare == Compare::Each
        && let Some(at) = difference(&back, data)
    {
        return Err(miscompare(at));
    }
    Ok(Done::good(length))
}
