//! Commands of SCSI carried out on a unit: plain synchronous functions that try at once and say if
//! they would have to wait, and what must be on disk before the initiator hears that it went well.
//!
//! - [`admit`]: what stands before every command: unit attentions, reservations, the CDB itself.
//! - [`attempt`]: tries one on the thread of its connection. [`execute`]: carries one out.
//!   [`target`]: commands that need no unit.
//! - `read`, `write`, `sync`, `unmap`, `same`, `compare`, [`copy`]: data. `inquiry`, `mode`,
//!   `report`, `ports`, `reserve`: everything else, by family.

use std::convert::Infallible;
use std::sync::Arc;

use base::limits::{ISCSI_TRANSFER_MAX, LUN_BUFFER};
use vfs::fs::Flush;
use vfs::lun::reservations::{Access, Port};
use vfs::lun::{RangeGuard, Written};
use vfs::mapped::Slice;
use vfs::status::Status as Failure;
use wire::scsi::cdb::{Blocks, Cdb};
use wire::scsi::sense::Format;
use wire::scsi::{Asc, Pointer, ScsiError, Sense, SenseKey, Status};

pub use self::fail::Fail;
use super::state::tasks::Mark;
use super::status;
use super::targets::Target;
use super::unit::{Nexus, Unit};
use engine::exec::DispatchResult;
use engine::transport::buffers::ReplyBuf;

mod compare;
pub mod copies;
pub mod copy;
mod fail;
mod inquiry;
mod miscompare;
mod mode;
mod ports;
mod read;
mod report;
mod reserve;
mod same;
mod sync;
pub mod target;
mod unmap;
mod write;

/// A command in progress.
#[derive(Clone)]
pub struct Request {
    /// The unit.
    pub unit: Arc<Unit>,
    /// The I_T nexus of the command.
    pub nexus: Arc<Nexus>,
    /// The target, for what concerns more than the unit.
    pub target: Arc<Target>,
    /// The command.
    pub cdb: Cdb,
    /// Bytes that the initiator sends, or takes.
    pub limit: u32,
    /// The task, once it has left its connection's thread: it may be aborted meanwhile.
    pub mark: Option<Arc<Mark>>,
}

impl Request {
    /// Bytes of memory that the command takes while it is executed, in addition to its data and
    /// what it sends.
    pub fn working_bytes(&self) -> usize {
        let block = u64::from(self.unit.identity.block);
        let bytes_of = |blocks: Blocks, most: usize| {
            usize::try_from(u64::from(blocks.count) * block).map_or(most, |bytes| bytes.min(most))
        };
        match self.cdb {
            Cdb::ExtendedCopy { .. } => LUN_BUFFER,
            // A count of 0 is all that follow.
            Cdb::WriteSame(same) if !same.no_data => LUN_BUFFER,
            Cdb::Verify(io) => bytes_of(io.blocks, LUN_BUFFER),
            // What is there, or has been written, is read; what is longer is refused.
            Cdb::OrWrite(io) | Cdb::CompareAndWrite(io) => bytes_of(io.blocks, ISCSI_TRANSFER_MAX),
            Cdb::WriteAndVerify(io) => bytes_of(io.blocks, ISCSI_TRANSFER_MAX),
            _ => 0,
        }
    }

    /// Takes a range of a unit to change it. What was aborted while it waited for that changes
    /// nothing: the next one that waits, such as a new session of its initiator, comes later. Nor
    /// does what has lost its right meanwhile: PREEMPT AND ABORT waits for the ranges that are held
    /// when the reservation has changed, and for no later one.
    ///
    /// # Errors
    /// To wait, if it may not; TASK ABORTED; RESERVATION CONFLICT.
    fn hold<'u>(
        &self,
        unit: &'u Unit,
        (offset, length): (u64, u64),
        may_block: bool,
    ) -> Result<RangeGuard<'u>, Fail> {
        let guard = unit.ranges.take(offset, length, may_block).map_err(write_failed)?;
        self.check_aborted()?;
        check_access(unit, &self.nexus.port, Access::Write)?;
        Ok(guard)
    }

    /// Whether the task continues: checked with its range held, and before each part of a long one.
    ///
    /// # Errors
    /// TASK ABORTED.
    fn check_aborted(&self) -> Result<(), Fail> {
        match self.mark.as_ref().and_then(|mark| mark.verdict()) {
            Some(_) => Err(Fail::Status(Status::TASK_ABORTED)),
            None => Ok(()),
        }
    }
}

/// How a command has ended, if what it still has to bring to disk gets there.
pub struct Done {
    /// Its status.
    pub status: Status,
    /// Why, with CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Bytes that the command has to send, or takes, whatever the initiator expects.
    pub length: u64,
    /// What must be on disk before the initiator hears of it.
    pub flush: Flush,
    /// Writes with an outcome that this response reports to the initiator.
    pub settles: Option<(Arc<Nexus>, Written)>,
    /// Initiator ports of which all tasks end with this one (PREEMPT AND ABORT).
    pub aborts: Vec<Port>,
}

/// Outcome of a command.
pub type Outcome = Result<Done, Fail>;

impl Done {
    /// GOOD, with this number of bytes.
    pub const fn good(length: u64) -> Self {
        Self {
            status: Status::GOOD,
            sense: None,
            length,
            flush: Flush::NONE,
            settles: None,
            aborts: Vec::new(),
        }
    }

    /// As a failure has it.
    pub fn failed(fail: Fail) -> Self {
        let (status, sense) = match fail {
            Fail::Sense(sense) => (Status::CHECK_CONDITION, Some(sense)),
            Fail::Status(status) => (status, None),
            Fail::WouldBlock => (Status::BUSY, None),
        };
        Self { status, sense, ..Self::good(0) }
    }
}

/// A field of the CDB that cannot be, by its first byte.
const fn bad_field(byte: u16) -> Fail {
    Fail::Sense(ScsiError::CdbField(Pointer { byte, bit: None }).sense())
}

/// ILLEGAL REQUEST with this code.
const fn illegal(asc: Asc) -> Fail {
    Fail::Sense(Sense::new(SenseKey::ILLEGAL_REQUEST, asc))
}

/// The format in which a unit's sense data is sent.
pub fn format(unit: &Unit) -> Format {
    match unit.mode.descriptor_sense.load(std::sync::atomic::Ordering::Acquire) {
        true => Format::Descriptor,
        false => Format::Fixed,
    }
}

/// Checks before a command is executed: whether a unit attention condition is pending, whether the
/// CDB is valid, and whether it conflicts with a reservation.
///
/// # Errors
/// [`Fail`], never to wait.
pub fn admit(unit: &Unit, nexus: &Nexus, cdb: &[u8]) -> Result<Cdb, Fail> {
    let parsed = Cdb::decode(cdb);
    let is_exempt = matches!(
        parsed,
        Ok(Cdb::Inquiry { .. } | Cdb::ReportLuns { .. } | Cdb::RequestSense { .. })
    );
    if !is_exempt && let Some(asc) = nexus.take_unit_attention() {
        return Err(Fail::Sense(Sense::new(SenseKey::UNIT_ATTENTION, asc)));
    }
    if let Ok(row) = wire::scsi::opcodes::find(cdb)
        && row.is_type2_only
    {
        return Err(illegal(Asc::INVALID_COMMAND_OPERATION_CODE));
    }
    let parsed = parsed?;
    if matches!(parsed, Cdb::StartStop(_) | Cdb::PreventAllow { .. }) && !has(&parsed) {
        return Err(illegal(Asc::INVALID_COMMAND_OPERATION_CODE));
    }
    check_reservation(unit, nexus, &parsed)?;
    Ok(parsed)
}

/// Whether there is this command, of those that the codec knows.
fn has(cdb: &Cdb) -> bool {
    // Nothing can be removed, so that nothing can be prevented from it.
    !matches!(cdb, Cdb::PreventAllow { .. })
}

/// What a command does, as persistent reservations see it; `None` if they let it through (SPC-5
/// §5.14.1, SBC-4 §4.17).
const fn access(cdb: &Cdb) -> Option<Access> {
    match cdb {
        Cdb::Read(_)
        | Cdb::Verify(_)
        | Cdb::PreFetch(_)
        | Cdb::GetLbaStatus { .. }
        | Cdb::ReadDefectData(_)
        | Cdb::ModeSense(_) => Some(Access::Read),
        Cdb::Write(_)
        | Cdb::WriteAndVerify(_)
        | Cdb::OrWrite(_)
        | Cdb::CompareAndWrite(_)
        | Cdb::SynchronizeCache(_)
        | Cdb::WriteSame(_)
        | Cdb::Unmap { .. }
        | Cdb::ModeSelect(_)
        | Cdb::ExtendedCopy { .. }
        | Cdb::PreventAllow { .. } => Some(Access::Write),
        // To start what is started is nothing.
        Cdb::StartStop(command) if !command.start || command.power_condition != 0 => {
            Some(Access::Write)
        }
        _ => None,
    }
}

/// Whether the command conflicts with a reservation of another initiator.
///
/// # Errors
/// RESERVATION CONFLICT.
fn check_reservation(unit: &Unit, nexus: &Nexus, cdb: &Cdb) -> Result<(), Fail> {
    if !unit.is_reserved() {
        return Ok(());
    }
    let conflict = Err(Fail::Status(Status::RESERVATION_CONFLICT));
    let passes_simple = matches!(
        cdb,
        Cdb::Inquiry { .. } | Cdb::ReportLuns { .. } | Cdb::RequestSense { .. } | Cdb::Release6
    );
    if !passes_simple && unit.simple_holder().is_some_and(|holder| holder != nexus.port) {
        return conflict;
    }
    match access(cdb) {
        Some(access) if !unit.with_reservations(|all| all.permits(&nexus.port, access)) => conflict,
        _ => Ok(()),
    }
}

/// Whether an initiator port may access a unit in spite of reservations of others: without one, a
/// look at a flag.
///
/// # Errors
/// RESERVATION CONFLICT.
fn check_access(unit: &Unit, port: &Port, access: Access) -> Result<(), Fail> {
    if !unit.is_reserved() {
        return Ok(());
    }
    let simple = unit.simple_holder().is_some_and(|holder| holder != *port);
    if simple || !unit.with_reservations(|all| all.permits(port, access)) {
        return Err(Fail::Status(Status::RESERVATION_CONFLICT));
    }
    Ok(())
}

/// Carries a command out, with the data that the initiator has sent. What it sends is appended to
/// `out`.
///
/// # Errors
/// [`Fail`]; with `may_block` it never has to wait.
pub fn execute(request: &Request, data: &[u8], may_block: bool, out: &mut ReplyBuf) -> Outcome {
    check_reservation(&request.unit, &request.nexus, &request.cdb)?;
    match request.cdb {
        Cdb::TestUnitReady => Ok(Done::good(0)),
        Cdb::Read(io) => read::read(request, io, may_block, out),
        Cdb::PreFetch(range) => read::pre_fetch(request, range),
        Cdb::Verify(io) => compare::verify(request, io, data, may_block),
        Cdb::Write(io) => write::write(request, io, data, may_block),
        Cdb::WriteAndVerify(io) => write::write_and_verify(request, io, data, may_block),
        Cdb::OrWrite(io) => compare::or_write(request, io, data, may_block),
        Cdb::CompareAndWrite(io) => compare::compare_and_write(request, io, data, may_block),
        Cdb::SynchronizeCache(range) => sync::synchronize(request, range),
        Cdb::WriteSame(same) => same::write_same(request, same, data, may_block),
        Cdb::Unmap { .. } => unmap::unmap(request, data, may_block),
        Cdb::GetLbaStatus { lba, allocation } => {
            unmap::lba_status(request, (lba, allocation), may_block, out)
        }
        Cdb::ExtendedCopy { .. } => copy::extended_copy(request, data, may_block),
        Cdb::ReceiveCopyResults { action, list_id, allocation } => {
            copy::results(request, (action, list_id), allocation, out)
        }
        Cdb::PersistentReserveIn { action, allocation } => {
            reserve::report(request, action, allocation, out)
        }
        Cdb::PersistentReserveOut(command) => reserve::change(request, command, data, may_block),
        Cdb::Reserve6 => reserve::reserve(request),
        Cdb::Release6 => {
            request.unit.release_simple(Some(&request.nexus.port));
            Ok(Done::good(0))
        }
        Cdb::ModeSense(sense) => mode::sense(request, sense, out),
        Cdb::ModeSelect(select) => mode::select(request, select, data),
        Cdb::StartStop(command) => sync::start_stop(request, command),
        Cdb::PreventAllow { .. } => Err(illegal(Asc::INVALID_COMMAND_OPERATION_CODE)),
        _ => report::execute(request, out),
    }
}

/// What a command comes to on the thread of its connection.
pub type Attempt = DispatchResult<Infallible, Infallible, Slice>;

/// Tries a command where it may not wait: how it has ended, if what is left to be done for that
/// succeeds. One that would have to wait, or has failed, has appended nothing to `out`. With `maps`
/// what it sends may leave from the page cache. It is `Suspended` until tasks that it aborts are
/// over.
pub fn attempt(request: &Request, data: &[u8], maps: bool, out: &mut ReplyBuf) -> (Done, Attempt) {
    if maps && let Some((slice, done)) = send_mapped(request) {
        return (done, Attempt::Extent(slice));
    }
    match execute(request, data, false, out) {
        Ok(mut done) if !done.flush.is_empty() => {
            let flush = std::mem::take(&mut done.flush);
            (done, Attempt::Durable(flush, None))
        }
        Ok(done) if !done.aborts.is_empty() => (done, Attempt::Suspended),
        Ok(done) => (done, Attempt::Done),
        Err(fail) => {
            out.truncate(0);
            match fail {
                Fail::WouldBlock => (Done::good(0), Attempt::WouldBlock(None)),
                fail => (Done::failed(fail), Attempt::Done),
            }
        }
    }
}

/// What a command sends, and how it has ended, if that can leave from the page cache; `None` if it
/// has to be carried out by [`execute`]. It never waits.
fn send_mapped(request: &Request) -> Option<(Slice, Done)> {
    match request.cdb {
        Cdb::Read(io) if !request.unit.is_reserved() => read::mapped(request, io),
        _ => None,
    }
}

/// Whether these blocks are all there.
///
/// # Errors
/// LOGICAL BLOCK ADDRESS OUT OF RANGE.
fn check_range(unit: &Unit, lba: u64, count: u64) -> Result<(), Fail> {
    let blocks = unit.blocks();
    if lba > blocks || count > blocks - lba {
        return Err(illegal(Asc::LBA_OUT_OF_RANGE));
    }
    Ok(())
}

/// Byte offset and bytes of blocks that are there and no more than one command may move.
///
/// # Errors
/// [`check_range`]'s; INVALID FIELD IN CDB for more than the block limits allow.
fn bytes_of(unit: &Unit, blocks: Blocks) -> Result<(u64, u64), Fail> {
    check_range(unit, blocks.lba, blocks.count.into())?;
    let block = u64::from(unit.identity.block);
    let length = u64::from(blocks.count) * block;
    if length > ISCSI_TRANSFER_MAX as u64 {
        return Err(bad_field(blocks.count_at()));
    }
    Ok((blocks.lba * block, length))
}

/// Where a CDB has its field for the number of blocks.
trait CountAt {
    fn count_at(&self) -> u16;
}

impl CountAt for Blocks {
    fn count_at(&self) -> u16 {
        use wire::scsi::cdb::Width;
        match self.width {
            Width::Six => 4,
            Width::Ten => 7,
            Width::Twelve => 6,
            Width::Sixteen => 10,
            Width::ThirtyTwo => 28,
        }
    }
}

/// Whether the unit may be written.
///
/// # Errors
/// WRITE PROTECTED.
fn writable(unit: &Unit) -> Result<(), Fail> {
    match unit.is_write_protected() {
        true => Err(Fail::Sense(Sense::new(SenseKey::DATA_PROTECT, Asc::WRITE_PROTECTED))),
        false => Ok(()),
    }
}

/// A failure of the medium while something is changed.
fn write_failed(failure: Failure) -> Fail {
    status::of(failure, Asc::WRITE_ERROR)
}

/// A failure of the medium while something is read.
fn read_failed(failure: Failure) -> Fail {
    status::of(failure, Asc::UNRECOVERED_READ_ERROR)
}

/// What a change that has no FUA leaves to be done: nothing with the write cache on, a flush of it
/// otherwise.
fn changed(request: &Request, written: Written, length: u64) -> Done {
    let mut done = Done::good(length);
    if request.unit.write_cache() {
        request.nexus.wrote(written);
    } else {
        done.flush = request.unit.flush(vfs::flush::FlushSite::LunChange, written);
    }
    done
}

/// Cuts what was appended since `start` to what the initiator has asked for.
fn answer(out: &mut ReplyBuf, start: usize, allocation: u32) -> Done {
    let length = (out.len() - start).min(allocation as usize);
    out.truncate(start + length);
    Done::good(length as u64)
}

#[cfg(test)]
pub(crate) mod tests;
