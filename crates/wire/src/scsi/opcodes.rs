//! The supported commands, and the defined bits of each (the CDB usage data of SPC-5 §6.34.3): what
//! decoding checks against and what REPORT SUPPORTED OPERATION CODES returns.

use super::fields::{u8_at, u16_at};
use super::{Pointer, ScsiError};

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name in SPC or SBC.
    pub name: &'static str,
    /// Service action, of commands that have one.
    pub action: Option<u16>,
    /// For each byte of the CDB, the bits that mean something; the first byte is the operation
    /// code, and the service action is in its place.
    pub usage: &'static [u8],
    /// It is for units with protection information of type 2 only (SBC-4 §4.21): all others answer
    /// INVALID COMMAND OPERATION CODE.
    pub is_type2_only: bool,
}

/// The operation code of CDBs of variable length (SPC-5 §4.2.3).
pub const VARIABLE_LENGTH: u8 = 0x7f;

impl Command {
    /// Its operation code.
    pub fn opcode(&self) -> u8 {
        u8_at(self.usage, 0)
    }

    /// Bytes of its CDB.
    pub const fn length(&self) -> usize {
        self.usage.len()
    }

    /// Refuses a CDB that is too short, or has a reserved bit set.
    fn check(&self, cdb: &[u8]) -> Result<(), ScsiError> {
        if cdb.len() < self.length() {
            return Err(ScsiError::CdbField(Pointer { byte: cdb.len() as u16, bit: None }));
        }
        for (at, (byte, usage)) in cdb.iter().zip(self.usage).enumerate().skip(1) {
            let mask = match at {
                1 if self.action.is_some() && self.opcode() != VARIABLE_LENGTH => usage | 0x1f,
                7..=9 if self.opcode() == VARIABLE_LENGTH => 0xff,
                _ => *usage,
            };
            let extra = byte & !mask;
            if extra != 0 {
                return Err(ScsiError::cdb(at as u16, 7 - extra.leading_zeros() as u8));
            }
        }
        Ok(())
    }
}

/// The command of a CDB; its bits were checked.
///
/// # Errors
/// [`ScsiError::UnknownOpcode`]; [`ScsiError::CdbField`] for a service action that is not
/// supported, a reserved bit, or a CDB that ends too early.
pub fn find(cdb: &[u8]) -> Result<&'static Command, ScsiError> {
    let opcode = u8_at(cdb, 0);
    let first = FIRST.get(usize::from(opcode)).copied().unwrap_or(NOT_THERE);
    let rows = COMMANDS.get(usize::from(first)..).filter(|_| !cdb.is_empty());
    let rows = rows.ok_or(ScsiError::UnknownOpcode(opcode))?;
    let action = match opcode {
        VARIABLE_LENGTH => u16_at(cdb, 8),
        _ => u16::from(u8_at(cdb, 1) & 0x1f),
    };
    let mut own = rows.iter().take_while(|row| row.opcode() == opcode);
    let fits = |row: &&Command| row.action.is_none_or(|its| its == action);
    let command = own.find(fits).ok_or(match opcode {
        VARIABLE_LENGTH => ScsiError::cdb(8, 7),
        _ => ScsiError::cdb(1, 4),
    })?;
    command.check(cdb)?;
    if opcode == VARIABLE_LENGTH && usize::from(u8_at(cdb, 7)) + 8 != command.length() {
        return Err(ScsiError::cdb(7, 7));
    }
    Ok(command)
}

/// All commands with this operation code, in the order of their service actions.
pub fn with_opcode(opcode: u8) -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(move |command| command.opcode() == opcode)
}

/// In [`FIRST`]: no command has this operation code.
const NOT_THERE: u8 = u8::MAX;

/// For each operation code the index of its first command.
const FIRST: [u8; 256] = {
    let mut first = [NOT_THERE; 256];
    let mut at = COMMANDS.len();
    while at > 0 {
        at -= 1;
        first[COMMANDS[at].usage[0] as usize] = at as u8;
    }
    first
};

const fn plain(name: &'static str, usage: &'static [u8]) -> Command {
    Command { name, action: None, usage, is_type2_only: false }
}

const fn action(name: &'static str, action: u16, usage: &'static [u8]) -> Command {
    Command { name, action: Some(action), usage, is_type2_only: false }
}

const fn type2(name: &'static str, action: u16, usage: &'static [u8]) -> Command {
    Command { name, action: Some(action), usage, is_type2_only: true }
}

/// CDB usage data of the 10-, 12-, 16- and 32-byte forms that name blocks: `$flags` of byte 1 (or
/// 10), a group number, all of address and length. Protection information is not supported, so that
/// its bits are reserved.
macro_rules! blocks {
    (10 $op:literal $flags:literal) => {
        &[$op, $flags, 255, 255, 255, 255, 0x3f, 255, 255, 0]
    };
    (12 $op:literal $flags:literal) => {
        &[$op, $flags, 255, 255, 255, 255, 255, 255, 255, 255, 0x3f, 0]
    };
    (16 $op:literal $flags:literal) => {
        &[$op, $flags, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x3f, 0]
    };
    (32 $sa:literal $flags:literal) => {
        &[
            0x7f, 0, 0, 0, 0, 0, 0x3f, 0x18, 0, $sa, $flags, 0, 255, 255, 255, 255, 255, 255, 255,
            255, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255,
        ]
    };
}

/// CDB usage data of RECEIVE COPY RESULTS.
macro_rules! receive {
    ($sa:literal) => {
        &[0x84, $sa, 255, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0]
    };
}

/// All commands, in the order of operation codes and service actions.
#[rustfmt::skip]
pub const COMMANDS: &[Command] = &[
    plain("TEST UNIT READY", &[0x00, 0, 0, 0, 0, 0]),
    plain("REQUEST SENSE", &[0x03, 1, 0, 0, 255, 0]),
    plain("READ(6)", &[0x08, 0x1f, 255, 255, 255, 0]),
    plain("WRITE(6)", &[0x0a, 0x1f, 255, 255, 255, 0]),
    plain("INQUIRY", &[0x12, 1, 255, 255, 255, 0]),
    plain("MODE SELECT(6)", &[0x15, 0x11, 0, 0, 255, 0]),
    plain("RESERVE(6)", &[0x16, 0, 0, 0, 0, 0]),
    plain("RELEASE(6)", &[0x17, 0, 0, 0, 0, 0]),
    plain("MODE SENSE(6)", &[0x1a, 8, 255, 255, 255, 0]),
    plain("START STOP UNIT", &[0x1b, 1, 0, 0x0f, 0xf7, 0]),
    plain("PREVENT ALLOW MEDIUM REMOVAL", &[0x1e, 0, 0, 0, 3, 0]),
    plain("READ CAPACITY(10)", &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    plain("READ(10)", blocks!(10 0x28 0x18)),
    plain("WRITE(10)", blocks!(10 0x2a 0x18)),
    plain("WRITE AND VERIFY(10)", blocks!(10 0x2e 0x16)),
    plain("VERIFY(10)", blocks!(10 0x2f 0x16)),
    plain("PRE-FETCH(10)", blocks!(10 0x34 0x02)),
    plain("SYNCHRONIZE CACHE(10)", blocks!(10 0x35 0x02)),
    plain("READ DEFECT DATA(10)", &[0x37, 0, 0x1f, 0, 0, 0, 0, 255, 255, 0]),
    plain("WRITE SAME(10)", blocks!(10 0x41 0x08)),
    plain("UNMAP", &[0x42, 0, 0, 0, 0, 0, 0x3f, 255, 255, 0]),
    plain("MODE SELECT(10)", &[0x55, 0x11, 0, 0, 0, 0, 0, 255, 255, 0]),
    plain("MODE SENSE(10)", &[0x5a, 0x18, 255, 255, 0, 0, 0, 255, 255, 0]),
    action("PERSISTENT RESERVE IN, READ KEYS", 0, &[0x5e, 0, 0, 0, 0, 0, 0, 255, 255, 0]),
    action("PERSISTENT RESERVE IN, READ RESERVATION", 1, &[0x5e, 1, 0, 0, 0, 0, 0, 255, 255, 0]),
    action("PERSISTENT RESERVE IN, REPORT CAPABILITIES", 2, &[0x5e, 2, 0, 0, 0, 0, 0, 255, 255, 0]),
    action("PERSISTENT RESERVE IN, READ FULL STATUS", 3, &[0x5e, 3, 0, 0, 0, 0, 0, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, REGISTER", 0, &[0x5f, 0, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, RESERVE", 1, &[0x5f, 1, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, RELEASE", 2, &[0x5f, 2, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, CLEAR", 3, &[0x5f, 3, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, PREEMPT", 4, &[0x5f, 4, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, PREEMPT AND ABORT", 5,
        &[0x5f, 5, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY", 6,
        &[0x5f, 6, 255, 0, 0, 255, 255, 255, 255, 0]),
    action("PERSISTENT RESERVE OUT, REGISTER AND MOVE", 7,
        &[0x5f, 7, 255, 0, 0, 255, 255, 255, 255, 0]),
    type2("READ(32)", 0x09, blocks!(32 0x09 0x18)),
    type2("VERIFY(32)", 0x0a, blocks!(32 0x0a 0x16)),
    type2("WRITE(32)", 0x0b, blocks!(32 0x0b 0x18)),
    type2("WRITE AND VERIFY(32)", 0x0c, blocks!(32 0x0c 0x16)),
    type2("WRITE SAME(32)", 0x0d, blocks!(32 0x0d 0x09)),
    action("EXTENDED COPY(LID1)", 0, &[0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0]),
    action("RECEIVE COPY STATUS(LID1)", 0, receive!(0)),
    action("RECEIVE COPY DATA(LID1)", 1, receive!(1)),
    action("RECEIVE COPY OPERATING PARAMETERS", 3, receive!(3)),
    action("RECEIVE COPY FAILURE DETAILS(LID1)", 4, receive!(4)),
    plain("READ(16)", blocks!(16 0x88 0x18)),
    plain(
        "COMPARE AND WRITE",
        &[0x89, 0x18, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 255, 0x3f, 0],
    ),
    plain("WRITE(16)", blocks!(16 0x8a 0x18)),
    plain("ORWRITE(16)", blocks!(16 0x8b 0x18)),
    plain("WRITE AND VERIFY(16)", blocks!(16 0x8e 0x16)),
    plain("VERIFY(16)", blocks!(16 0x8f 0x16)),
    plain("PRE-FETCH(16)", blocks!(16 0x90 0x02)),
    plain("SYNCHRONIZE CACHE(16)", blocks!(16 0x91 0x02)),
    plain("WRITE SAME(16)", blocks!(16 0x93 0x09)),
    action(
        "READ CAPACITY(16)",
        0x10,
        &[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0],
    ),
    action("GET LBA STATUS", 0x12,
        &[0x9e, 0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0]),
    plain("REPORT LUNS", &[0xa0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0]),
    action("REPORT TARGET PORT GROUPS", 0x0a, &[0xa3, 0xea, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0]),
    action("REPORT SUPPORTED OPERATION CODES", 0x0c,
        &[0xa3, 0x0c, 0x87, 255, 255, 255, 255, 255, 255, 255, 0, 0]),
    action("REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", 0x0d,
        &[0xa3, 0x0d, 0x80, 0, 0, 0, 255, 255, 255, 255, 0, 0]),
    plain("READ(12)", blocks!(12 0xa8 0x18)),
    plain("WRITE(12)", blocks!(12 0xaa 0x18)),
    plain("WRITE AND VERIFY(12)", blocks!(12 0xae 0x16)),
    plain("VERIFY(12)", blocks!(12 0xaf 0x16)),
    plain("READ DEFECT DATA(12)", &[0xb7, 0x1f, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0]),
];
