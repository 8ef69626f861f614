//! SCSI Command and SCSI Response (RFC 7143 §11.3, §11.4), with the additional header segments of
//! a command (§11.2.2): a CDB longer than 16 bytes, the length of a bidirectional read.

use base::limits::SCSI_CDB_MAX;

use super::Serial;
use super::bhs::{Bhs, FINAL, InitiatorSn, Opcode, PduError, TargetSn};
use super::digest::pad;
use super::frame::{Head, PutPdu};

/// Name of the PDU in errors.
const COMMAND: &str = "SCSI Command";
/// Name of the PDU in errors.
const RESPONSE: &str = "SCSI Response";
/// Bytes of the CDB in the basic header.
const CDB_IN_BHS: usize = 16;
/// Type of the additional header with the rest of a CDB (§11.2.2.3).
const AHS_EXTENDED_CDB: u8 = 1;
/// Type of the additional header with the length of a bidirectional read (§11.2.2.4).
const AHS_READ_LENGTH: u8 = 2;

/// How a task is queued (§11.3.1; SAM-5 §8.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TaskAttribute(pub u8);

impl TaskAttribute {
    /// None is given: SIMPLE.
    pub const UNTAGGED: Self = Self(0);
    /// SIMPLE.
    pub const SIMPLE: Self = Self(1);
    /// ORDERED.
    pub const ORDERED: Self = Self(2);
    /// HEAD OF QUEUE.
    pub const HEAD_OF_QUEUE: Self = Self(3);
    /// ACA.
    pub const ACA: Self = Self(4);
}

/// A CDB as a PDU carries it: the first 16 bytes, and the rest if it is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CdbParts<'a> {
    /// The first 16 bytes; zeros follow a shorter CDB.
    pub first: [u8; CDB_IN_BHS],
    /// What follows them.
    pub rest: &'a [u8],
}

impl CdbParts<'_> {
    /// Bytes of the CDB: 16 or more.
    pub const fn len(&self) -> usize {
        CDB_IN_BHS + self.rest.len()
    }

    /// Never: there are 16 bytes at least.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The whole CDB, put together in `buffer` if it is longer than 16 bytes. `None` if it is
    /// longer than any CDB may be.
    pub fn join<'b>(&'b self, buffer: &'b mut [u8; SCSI_CDB_MAX]) -> Option<&'b [u8]> {
        if self.rest.is_empty() {
            return Some(&self.first);
        }
        let (first, rest) = buffer.split_first_chunk_mut::<CDB_IN_BHS>()?;
        *first = self.first;
        rest.get_mut(..self.rest.len())?.copy_from_slice(self.rest);
        buffer.get(..self.len())
    }
}

impl<'a> From<&'a [u8]> for CdbParts<'a> {
    fn from(cdb: &'a [u8]) -> Self {
        let (start, rest) = cdb.split_at_checked(CDB_IN_BHS).unwrap_or((cdb, &[]));
        let mut first = [0; CDB_IN_BHS];
        if let Some(place) = first.get_mut(..start.len()) {
            place.copy_from_slice(start);
        }
        Self { first, rest }
    }
}

/// SCSI Command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiCommand<'a> {
    /// Whether it is handled out of the order of CmdSN.
    pub immediate: bool,
    /// No unsolicited Data-Out follows.
    pub is_final: bool,
    /// Data is expected by the initiator.
    pub read: bool,
    /// Data is sent by the initiator.
    pub write: bool,
    /// How it is queued.
    pub attribute: TaskAttribute,
    /// Logical unit.
    pub lun: u64,
    /// Initiator task tag.
    pub itt: u32,
    /// Bytes that the initiator sends, or takes if it only reads (§11.3.4).
    pub expected_length: u32,
    /// Bytes that the initiator takes if it also writes (§11.2.2.4).
    pub read_length: Option<u32>,
    /// Sequence numbers.
    pub sn: InitiatorSn,
    /// The command.
    pub cdb: CdbParts<'a>,
    /// Immediate data.
    pub data: &'a [u8],
}

impl<'a> ScsiCommand<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (is_final, write) = (b.bit(1, FINAL), b.bit(1, 0x20));
        if !is_final && !write {
            return Err(PduError::Rule { pdu: COMMAND, rule: "F or W is set" });
        }
        if !write && !data.is_empty() {
            return Err(PduError::Rule { pdu: COMMAND, rule: "only a write has data" });
        }
        let attribute = b.u8(1) & 7;
        if attribute > TaskAttribute::ACA.0 {
            let got = u32::from(attribute);
            return Err(PduError::BadField { pdu: COMMAND, field: "ATTR", got });
        }
        let (rest, read_length) = additional(head.ahs)?;
        Ok(Self {
            immediate: b.is_immediate(),
            is_final,
            read: b.bit(1, 0x40),
            write,
            attribute: TaskAttribute(attribute),
            lun: b.lun(),
            itt: b.itt(),
            expected_length: b.u32(20),
            read_length,
            sn: b.initiator_sn(),
            cdb: CdbParts { first: b.bytes(32), rest },
            data,
        })
    }
}

impl PutPdu for ScsiCommand<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::SCSI_COMMAND
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_immediate(self.immediate);
        b.set_u8(1, self.attribute.0 & 7);
        b.set_bit(1, FINAL, self.is_final);
        b.set_bit(1, 0x40, self.read);
        b.set_bit(1, 0x20, self.write);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.expected_length);
        b.set_initiator_sn(self.sn);
        b.set_bytes(32, self.cdb.first);
    }

    fn put_ahs(&self, out: &mut Vec<u8>) {
        let rest = self.cdb.rest;
        if !rest.is_empty() {
            debug_assert!(self.cdb.len() <= SCSI_CDB_MAX, "a CDB of {} bytes", self.cdb.len());
            out.extend_from_slice(&(rest.len() as u16 + 1).to_be_bytes());
            out.extend_from_slice(&[AHS_EXTENDED_CDB, 0]);
            out.extend_from_slice(rest);
            out.extend_from_slice(pad(rest.len()));
        }
        if let Some(length) = self.read_length {
            out.extend_from_slice(&[0, 5, AHS_READ_LENGTH, 0]);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}

/// The additional headers of a command: the rest of its CDB, and the length of its read. Headers of
/// unknown types are ignored.
fn additional(mut ahs: &[u8]) -> Result<(&[u8], Option<u32>), PduError> {
    let (mut rest, mut read_length): (Option<&[u8]>, _) = (None, None);
    let short = PduError::Short { pdu: COMMAND, what: "additional header" };
    while let Some(([high, low, kind], after)) = ahs.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let body = after.get(..length).ok_or(short)?;
        let is_again = match (*kind, body) {
            (AHS_EXTENDED_CDB, [_, more @ ..]) if !more.is_empty() => rest.replace(more).is_some(),
            (AHS_READ_LENGTH, [_, a, b, c, d]) => {
                read_length.replace(u32::from_be_bytes([*a, *b, *c, *d])).is_some()
            }
            (AHS_EXTENDED_CDB | AHS_READ_LENGTH, _) => {
                let (field, got) = ("AHSLength", length as u32);
                return Err(PduError::BadField { pdu: COMMAND, field, got });
            }
            _ => false,
        };
        if is_again {
            let rule = "an additional header comes once";
            return Err(PduError::Rule { pdu: COMMAND, rule });
        }
        // Length, type and body are padded together; the last padding is there by the total.
        ahs = ahs.get((3 + length).next_multiple_of(4)..).unwrap_or_default();
    }
    let rest = rest.unwrap_or_default();
    if CDB_IN_BHS + rest.len() > SCSI_CDB_MAX {
        return Err(PduError::BadField {
            pdu: COMMAND,
            field: "AHSLength",
            got: rest.len() as u32,
        });
    }
    Ok((rest, read_length))
}

/// How much less or more data there was than the initiator expected (§11.4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residual {
    /// Exactly as much.
    #[default]
    None,
    /// This many bytes less.
    Underflow(u32),
    /// This many bytes were not transferred, as the initiator expected fewer.
    Overflow(u32),
}

impl Residual {
    /// What is left of `expected` bytes when the command has `actual`; beyond 32 bits it is cut.
    pub fn of(expected: u32, actual: u64) -> Self {
        let whole = u64::from(expected);
        if actual > whole {
            Self::Overflow(u32::try_from(actual - whole).unwrap_or(u32::MAX))
        } else if actual < whole {
            Self::Underflow((whole - actual) as u32)
        } else {
            Self::None
        }
    }

    pub(super) fn decode(
        pdu: &'static str,
        over: bool,
        under: bool,
        count: u32,
    ) -> Result<Self, PduError> {
        match (over, under) {
            (false, false) => Ok(Self::None),
            (true, false) => Ok(Self::Overflow(count)),
            (false, true) => Ok(Self::Underflow(count)),
            (true, true) => Err(PduError::Rule { pdu, rule: "O and U exclude each other" }),
        }
    }

    /// Whether it is an overflow, whether it is an underflow, and of how many bytes.
    pub(super) const fn parts(self) -> (bool, bool, u32) {
        match self {
            Self::None => (false, false, 0),
            Self::Underflow(count) => (false, true, count),
            Self::Overflow(count) => (true, false, count),
        }
    }
}

/// The response of a target about the delivery of a command (§11.4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ServiceResponse(pub u8);

impl ServiceResponse {
    /// Command completed at target: there is a status.
    pub const COMPLETED: Self = Self(0);
    /// Target failure: there is none.
    pub const TARGET_FAILURE: Self = Self(1);
}

/// SCSI Response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScsiResponse<'a> {
    /// Whether the target could carry out the command at all.
    pub response: ServiceResponse,
    /// SCSI status (SAM-5 §5.3.1; [`crate::scsi::Status`]).
    pub status: u8,
    /// Initiator task tag.
    pub itt: u32,
    /// SNACK tag, of error recovery levels that we do not have.
    pub snack_tag: u32,
    /// Sequence numbers.
    pub sn: TargetSn,
    /// DataSN after the last Data-In or R2T of the command.
    pub exp_data_sn: Serial,
    /// Of the write, or of the read if it is the only one.
    pub residual: Residual,
    /// Of the read of a bidirectional command.
    pub read_residual: Residual,
    /// Sense data.
    pub sense: &'a [u8],
    /// What follows the sense data.
    pub response_data: &'a [u8],
}

impl<'a> ScsiResponse<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (sense, response_data) = sense(RESPONSE, data)?;
        Ok(Self {
            response: ServiceResponse(b.u8(2)),
            status: b.u8(3),
            itt: b.itt(),
            snack_tag: b.u32(20),
            sn: b.target_sn(),
            exp_data_sn: b.serial(36),
            residual: Residual::decode(RESPONSE, b.bit(1, 4), b.bit(1, 2), b.u32(44))?,
            read_residual: Residual::decode(RESPONSE, b.bit(1, 16), b.bit(1, 8), b.u32(40))?,
            sense,
            response_data,
        })
    }
}

impl PutPdu for ScsiResponse<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::SCSI_RESPONSE
    }

    fn fields(&self, b: &mut Bhs) {
        let (over, under, count) = self.residual.parts();
        let (read_over, read_under, read_count) = self.read_residual.parts();
        b.set_u8(1, FINAL);
        b.set_bit(1, 16, read_over);
        b.set_bit(1, 8, read_under);
        b.set_bit(1, 4, over);
        b.set_bit(1, 2, under);
        b.set_u8(2, self.response.0);
        b.set_u8(3, self.status);
        b.set_itt(self.itt);
        b.set_u32(20, self.snack_tag);
        b.set_target_sn(self.sn);
        b.set_u32(36, self.exp_data_sn.0);
        b.set_u32(40, read_count);
        b.set_u32(44, count);
    }

    fn data_len(&self) -> usize {
        sense_len(self.sense, self.response_data)
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        put_sense(self.sense, self.response_data, out);
    }
}

/// A data segment of sense data and what follows it (§11.4.7): both are empty, or the length of
/// the sense data comes first.
pub(super) fn sense<'a>(
    pdu: &'static str,
    data: &'a [u8],
) -> Result<(&'a [u8], &'a [u8]), PduError> {
    let short = PduError::Short { pdu, what: "sense data" };
    match data.split_first_chunk() {
        None if data.is_empty() => Ok((data, data)),
        None => Err(short),
        Some((length, rest)) => {
            rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(short)
        }
    }
}

/// Bytes of such a segment.
pub(super) fn sense_len(sense: &[u8], rest: &[u8]) -> usize {
    if sense.is_empty() && rest.is_empty() { 0 } else { 2 + sense.len() + rest.len() }
}

/// Appends such a segment.
pub(super) fn put_sense(sense: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    debug_assert!(u16::try_from(sense.len()).is_ok());
    if sense_len(sense, rest) > 0 {
        out.extend_from_slice(&(sense.len() as u16).to_be_bytes());
        out.extend_from_slice(sense);
        out.extend_from_slice(rest);
    }
}
