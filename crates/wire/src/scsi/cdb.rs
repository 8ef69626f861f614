//! Command descriptor blocks (SPC-5 §4.2, §6; SBC-4 §5): commands of 6, 10, 12, 16 and 32 bytes as
//! one type for each operation.
//!
//! Protection information is not had: its fields are checked to be zero.

use super::ScsiError;
use super::fields::{bit_at, put_at, set_at, u8_at, u16_at, u24_at, u32_at, u64_at};
use super::opcodes::{self, Command, VARIABLE_LENGTH};

mod encode;
mod parse;

/// Which form a command has, by the bytes of its CDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 21 bits of address, 8 of length, of which 0 means 256.
    Six = 6,
    /// 32 bits of address, 16 of length.
    Ten = 10,
    /// 32 bits of both.
    Twelve = 12,
    /// 64 bits of address, 32 of length.
    Sixteen = 16,
    /// The same, in a CDB of variable length.
    ThirtyTwo = 32,
}

/// Blocks that a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// Form of the command.
    pub width: Width,
    /// First block.
    pub lba: u64,
    /// How many. 0 is none; of PRE-FETCH and SYNCHRONIZE CACHE all that follow.
    pub count: u32,
    /// Group number: the group of the command in statistics.
    pub group: u8,
}

/// A transfer of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Io {
    /// Which.
    pub blocks: Blocks,
    /// DPO: they need not stay in the cache.
    pub no_cache: bool,
    /// FUA: they come from, or are on, the medium before the command ends.
    pub force_unit_access: bool,
}

/// What is compared (SBC-4 §5.43, BYTCHK).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Nothing: only that the medium can be read.
    Nothing = 0,
    /// Each block with one that is sent.
    Each = 1,
    /// All blocks with one that is sent.
    AllWithOne = 3,
}

/// A verification of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VerifyIo {
    /// Which.
    pub blocks: Blocks,
    /// DPO.
    pub no_cache: bool,
    /// With what they are compared.
    pub compare: Compare,
}

/// A range for PRE-FETCH or SYNCHRONIZE CACHE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheRange {
    /// Which blocks.
    pub blocks: Blocks,
    /// IMMED: the status does not wait for the end.
    pub immediate: bool,
}

/// WRITE SAME.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WriteSame {
    /// Which blocks; a count of 0 is all that follow, if WSNZ allows that.
    pub blocks: Blocks,
    /// They may be unmapped instead.
    pub unmap: bool,
    /// NDOB: no block is sent, zeros are written. Not in the form of 10 bytes.
    pub no_data: bool,
}

/// MODE SENSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModeSense {
    /// Form: 6 or 10.
    pub width: Width,
    /// LLBAA: block descriptors may have long addresses. Only in the form of 10 bytes.
    pub long_lba: bool,
    /// DBD: without block descriptors.
    pub no_block_descriptors: bool,
    /// PC: 0 current, 1 changeable, 2 default, 3 saved values.
    pub control: u8,
    /// Page code; 3Fh for all.
    pub page: u8,
    /// Subpage code; FFh for all.
    pub subpage: u8,
    /// Most bytes of the answer; of the form of 6 bytes at most 255.
    pub allocation: u16,
}

/// MODE SELECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModeSelect {
    /// Form: 6 or 10.
    pub width: Width,
    /// PF: what is sent are pages.
    pub page_format: bool,
    /// SP: the pages are kept over a restart.
    pub save: bool,
    /// Bytes that are sent; of the form of 6 bytes at most 255.
    pub list_length: u16,
}

/// READ DEFECT DATA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReadDefectData {
    /// Form: 10 or 12.
    pub width: Width,
    /// REQ_PLIST: the defects from the manufacture.
    pub primary: bool,
    /// REQ_GLIST: those that have come since.
    pub grown: bool,
    /// Format of addresses: 3 bits.
    pub format: u8,
    /// First descriptor wanted, in the form of 12 bytes.
    pub index: u32,
    /// Most bytes of the answer.
    pub allocation: u32,
}

/// START STOP UNIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StartStop {
    /// IMMED.
    pub immediate: bool,
    /// Modifier of the power condition: 4 bits.
    pub modifier: u8,
    /// Power condition: 4 bits; 0 if `start` and `load_eject` count.
    pub power_condition: u8,
    /// NO_FLUSH.
    pub no_flush: bool,
    /// LOEJ.
    pub load_eject: bool,
    /// START.
    pub start: bool,
}

/// The service actions of PERSISTENT RESERVE IN (SPC-5 §6.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReserveIn {
    /// All registered keys.
    ReadKeys = 0,
    /// The reservation.
    ReadReservation = 1,
    /// Capabilities of persistent reservations.
    ReportCapabilities = 2,
    /// All registrations with their ports.
    ReadFullStatus = 3,
}

/// What PERSISTENT RESERVE OUT does (SPC-5 §6.17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReserveOut {
    /// Register or unregister a key.
    Register = 0,
    /// Reserve.
    Reserve = 1,
    /// End the reservation.
    Release = 2,
    /// End the reservation and all registrations.
    Clear = 3,
    /// Take over, and end registrations of others.
    Preempt = 4,
    /// The same, and end their tasks.
    PreemptAndAbort = 5,
    /// Register, whatever key there is.
    RegisterAndIgnore = 6,
    /// Register another initiator and give it the reservation.
    RegisterAndMove = 7,
}

/// PERSISTENT RESERVE OUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PersistentReserveOut {
    /// What to do.
    pub action: ReserveOut,
    /// Scope: 4 bits; 0 is the logical unit.
    pub scope: u8,
    /// Type of the reservation: 4 bits, by its number in SPC-5 §6.16.3.4.
    pub kind: u8,
    /// Bytes that are sent.
    pub list_length: u32,
}

/// The service actions of RECEIVE COPY RESULTS (SPC-4 §6.24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiveCopy {
    /// How far a copy is.
    Status = 0,
    /// Data that a copy has kept.
    Data = 1,
    /// Operating parameters of copies.
    OperatingParameters = 3,
    /// Why a copy failed.
    FailureDetails = 4,
}

/// Which commands REPORT SUPPORTED OPERATION CODES requests (SPC-5 §6.34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpcodeQuery {
    /// All.
    All,
    /// One that has no service actions.
    One(u8),
    /// One with its service action.
    OneAction(u8, u16),
    /// One, with a service action if it has any.
    OneAny(u8, u16),
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cdb {
    /// TEST UNIT READY.
    TestUnitReady,
    /// REQUEST SENSE.
    RequestSense {
        /// DESC: in the descriptor format.
        descriptor: bool,
        /// Most bytes of the answer.
        allocation: u8,
    },
    /// READ.
    Read(Io),
    /// WRITE.
    Write(Io),
    /// WRITE AND VERIFY.
    WriteAndVerify(VerifyIo),
    /// VERIFY.
    Verify(VerifyIo),
    /// ORWRITE: what is written is combined with what is there.
    OrWrite(Io),
    /// COMPARE AND WRITE: at most 255 blocks.
    CompareAndWrite(Io),
    /// PRE-FETCH.
    PreFetch(CacheRange),
    /// SYNCHRONIZE CACHE.
    SynchronizeCache(CacheRange),
    /// WRITE SAME.
    WriteSame(WriteSame),
    /// UNMAP.
    Unmap {
        /// Group number.
        group: u8,
        /// Bytes that are sent.
        list_length: u16,
    },
    /// READ CAPACITY(10).
    ReadCapacity10,
    /// READ CAPACITY(16).
    ReadCapacity16 {
        /// Most bytes of the answer.
        allocation: u32,
    },
    /// GET LBA STATUS.
    GetLbaStatus {
        /// First block.
        lba: u64,
        /// Most bytes of the answer.
        allocation: u32,
    },
    /// READ DEFECT DATA.
    ReadDefectData(ReadDefectData),
    /// INQUIRY.
    Inquiry {
        /// A page of vital product data instead of the standard data.
        page: Option<u8>,
        /// Most bytes of the answer.
        allocation: u16,
    },
    /// REPORT LUNS.
    ReportLuns {
        /// Which: 0 without well known units, 1 only those, 2 all.
        select: u8,
        /// Most bytes of the answer.
        allocation: u32,
    },
    /// MODE SENSE.
    ModeSense(ModeSense),
    /// MODE SELECT.
    ModeSelect(ModeSelect),
    /// RESERVE(6).
    Reserve6,
    /// RELEASE(6).
    Release6,
    /// START STOP UNIT.
    StartStop(StartStop),
    /// PREVENT ALLOW MEDIUM REMOVAL.
    PreventAllow {
        /// 0 allows, 1 prevents.
        prevent: u8,
    },
    /// PERSISTENT RESERVE IN.
    PersistentReserveIn {
        /// What is requested.
        action: ReserveIn,
        /// Most bytes of the answer.
        allocation: u16,
    },
    /// PERSISTENT RESERVE OUT.
    PersistentReserveOut(PersistentReserveOut),
    /// EXTENDED COPY(LID1).
    ExtendedCopy {
        /// Bytes that are sent.
        list_length: u32,
    },
    /// RECEIVE COPY RESULTS.
    ReceiveCopyResults {
        /// What is requested.
        action: ReceiveCopy,
        /// Of which copy.
        list_id: u8,
        /// Most bytes of the answer.
        allocation: u32,
    },
    /// REPORT TARGET PORT GROUPS.
    ReportTargetPortGroups {
        /// Format of the answer: 0 with the length only, 1 with the time of a transition.
        format: u8,
        /// Most bytes of the answer.
        allocation: u32,
    },
    /// REPORT SUPPORTED OPERATION CODES.
    ReportOpcodes {
        /// RCTD: with timeouts.
        timeouts: bool,
        /// Which.
        query: OpcodeQuery,
        /// Most bytes of the answer.
        allocation: u32,
    },
    /// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS.
    ReportTmf {
        /// REPD: in the long form.
        extended: bool,
        /// Most bytes of the answer.
        allocation: u32,
    },
}

/// The data of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Data {
    /// None.
    None,
    /// From the target, at most this many bytes.
    In(u64),
    /// To the target, exactly this many bytes.
    Out(u64),
}

impl Cdb {
    /// Reads a CDB. Bytes after its end are not looked at: iSCSI pads with zeros.
    ///
    /// # Errors
    /// [`ScsiError`] with exact sense data: the operation code, the service action, or the first
    /// invalid bit.
    pub fn decode(cdb: &[u8]) -> Result<Self, ScsiError> {
        parse::parse(opcodes::find(cdb)?, cdb)
    }

    /// The row of this command in [`opcodes::COMMANDS`]; `None` if it has no such form.
    pub fn command(&self) -> Option<&'static Command> {
        let cdb = self.encode()?;
        opcodes::find(cdb.bytes()).ok()
    }

    /// The CDB; `None` if it has no such form, or a field is too large for it.
    pub fn encode(&self) -> Option<CdbBytes> {
        let bytes = encode::encode(self)?;
        // A truncated value would have another meaning.
        (Self::decode(bytes.bytes()).as_ref() == Ok(self)).then_some(bytes)
    }

    /// What is transferred, with blocks of `block` bytes.
    pub fn data(&self, block: u32) -> Data {
        let bytes = |count: u32| u64::from(count) * u64::from(block);
        let some_out = |bytes| if bytes == 0 { Data::None } else { Data::Out(bytes) };
        match *self {
            Self::Read(io) if io.blocks.count > 0 => Data::In(bytes(io.blocks.count)),
            Self::Write(io) | Self::OrWrite(io) => some_out(bytes(io.blocks.count)),
            Self::WriteAndVerify(io) => some_out(bytes(io.blocks.count)),
            Self::Verify(io) => match io.compare {
                Compare::Nothing => Data::None,
                Compare::Each => some_out(bytes(io.blocks.count)),
                Compare::AllWithOne => some_out(bytes(io.blocks.count.min(1))),
            },
            Self::CompareAndWrite(io) => some_out(2 * bytes(io.blocks.count)),
            Self::WriteSame(same) => some_out(if same.no_data { 0 } else { bytes(1) }),
            Self::Unmap { list_length, .. } => some_out(list_length.into()),
            Self::ModeSelect(select) => some_out(select.list_length.into()),
            Self::PersistentReserveOut(out) => some_out(out.list_length.into()),
            Self::ExtendedCopy { list_length } => some_out(list_length.into()),
            Self::ReadCapacity10 => Data::In(8),
            _ => match self.allocation() {
                0 => Data::None,
                bytes => Data::In(bytes.into()),
            },
        }
    }

    /// Most bytes of an answer that has an allocation length.
    fn allocation(&self) -> u32 {
        match *self {
            Self::RequestSense { allocation, .. } => allocation.into(),
            Self::Inquiry { allocation, .. } | Self::PersistentReserveIn { allocation, .. } => {
                allocation.into()
            }
            Self::ModeSense(sense) => sense.allocation.into(),
            Self::ReadDefectData(read) => read.allocation,
            Self::ReadCapacity16 { allocation }
            | Self::GetLbaStatus { allocation, .. }
            | Self::ReportLuns { allocation, .. }
            | Self::ReceiveCopyResults { allocation, .. }
            | Self::ReportTargetPortGroups { allocation, .. }
            | Self::ReportOpcodes { allocation, .. }
            | Self::ReportTmf { allocation, .. } => allocation,
            _ => 0,
        }
    }
}

/// A CDB that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CdbBytes {
    bytes: [u8; 32],
    length: u8,
}

impl CdbBytes {
    fn new(length: usize) -> Self {
        Self { bytes: [0; 32], length: length.min(32) as u8 }
    }

    /// The CDB.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}
