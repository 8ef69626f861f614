//! REPORT TARGET PORT GROUPS (SPC-5 §6.36), REPORT SUPPORTED OPERATION CODES (§6.34) and REPORT
//! SUPPORTED TASK MANAGEMENT FUNCTIONS (§6.35).

use base::limits::SCSI_LIST_MAX;

use super::ResponseError;
use super::fields::{bit_at, end_list_u32, set_at, slice_at, u8_at, u16_at, u32_at};
use super::opcodes::Command;

/// How a group of ports can reach a unit (SPC-5 §5.18.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AccessState(pub u8);

impl AccessState {
    /// Active/optimized.
    pub const ACTIVE_OPTIMIZED: Self = Self(0);
    /// Active/non-optimized.
    pub const ACTIVE_NON_OPTIMIZED: Self = Self(1);
    /// Standby.
    pub const STANDBY: Self = Self(2);
    /// Unavailable.
    pub const UNAVAILABLE: Self = Self(3);
}

/// A group of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortGroup {
    /// PREF: it is the preferred one.
    pub is_preferred: bool,
    /// State (4 bits).
    pub state: AccessState,
    /// States that there are: 1 active/optimized, 2 active/non-optimized, 4 standby, 8 unavailable.
    pub supported: u8,
    /// Number of the group.
    pub group: u16,
    /// Why the state has last changed: 0 nothing, 1 by a command, 2 by the target.
    pub status: u8,
    /// Relative identifiers of its ports: at most 255.
    pub ports: Vec<u16>,
}

/// Appends the data of REPORT TARGET PORT GROUPS, in format 1 with the seconds of a transition.
pub fn put_port_groups(groups: &[PortGroup], transition: Option<u8>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if let Some(seconds) = transition {
        out.extend_from_slice(&[0x10, seconds, 0, 0]);
    }
    for group in groups {
        debug_assert!(group.ports.len() <= 255);
        let preferred = if group.is_preferred { 0x80 } else { 0 };
        let [high, low] = group.group.to_be_bytes();
        let (state, count) = (preferred | group.state.0 & 0xf, group.ports.len() as u8);
        out.extend_from_slice(&[state, group.supported, high, low, 0, group.status, 0, count]);
        for port in &group.ports {
            let [high, low] = port.to_be_bytes();
            out.extend_from_slice(&[0, 0, high, low]);
        }
    }
    end_list_u32(out.get_mut(start..).unwrap_or_default(), 0, 4);
}

/// The groups in the data of REPORT TARGET PORT GROUPS, as far as they are whole; `with_head` if
/// format 1 was asked for.
///
/// # Errors
/// [`ResponseError`].
pub fn port_groups(data: &[u8], with_head: bool) -> Result<Vec<PortGroup>, ResponseError> {
    let what = "target port groups";
    if data.len() < 4 {
        return Err(ResponseError::Short { what });
    }
    let list = slice_at(data, 4, u32_at(data, 0) as usize);
    let mut rest = list.get(if with_head { 4 } else { 0 }..).unwrap_or_default();
    let mut groups = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let Some((ports, after)) = after.split_at_checked(4 * usize::from(head[7])) else { break };
        if groups.len() == SCSI_LIST_MAX {
            return Err(ResponseError::TooLong { what, max: SCSI_LIST_MAX });
        }
        groups.push(PortGroup {
            is_preferred: head[0] & 0x80 != 0,
            state: AccessState(head[0] & 0xf),
            supported: head[1],
            group: u16_at(head, 2),
            status: head[5],
            ports: ports.chunks_exact(4).map(|port| u16_at(port, 2)).collect(),
        });
        rest = after;
    }
    Ok(groups)
}

/// Timeouts of a command, in seconds: 0 for not reported (SPC-5 §6.34.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeouts {
    /// Nominal time.
    pub nominal: u32,
    /// Recommended timeout.
    pub recommended: u32,
}

fn put_timeouts(timeouts: Option<Timeouts>, out: &mut Vec<u8>) {
    if let Some(Timeouts { nominal, recommended }) = timeouts {
        out.extend_from_slice(&[0, 10, 0, 0]);
        out.extend_from_slice(&nominal.to_be_bytes());
        out.extend_from_slice(&recommended.to_be_bytes());
    }
}

/// Appends the list of all commands.
pub fn put_all_commands<'c>(
    commands: impl Iterator<Item = &'c Command>,
    timeouts: Option<Timeouts>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for command in commands {
        let [high, low] = command.action.unwrap_or(0).to_be_bytes();
        let with_timeouts = if timeouts.is_some() { 2 } else { 0 };
        let flags = with_timeouts | u8::from(command.action.is_some());
        let length = command.length() as u8;
        out.extend_from_slice(&[command.opcode(), 0, high, low, 0, flags, 0, length]);
        put_timeouts(timeouts, out);
    }
    end_list_u32(out.get_mut(start..).unwrap_or_default(), 0, 4);
}

/// The commands in such a list, as far as they are whole: operation code, service action if it has
/// one, bytes of its CDB.
///
/// # Errors
/// [`ResponseError`].
pub fn all_commands(data: &[u8]) -> Result<Vec<(u8, Option<u16>, u16)>, ResponseError> {
    let what = "supported operation codes";
    if data.len() < 4 {
        return Err(ResponseError::Short { what });
    }
    let mut rest = slice_at(data, 4, u32_at(data, 0) as usize);
    let mut list = Vec::new();
    while let Some((one, after)) = rest.split_first_chunk::<8>() {
        if list.len() == SCSI_LIST_MAX {
            return Err(ResponseError::TooLong { what, max: SCSI_LIST_MAX });
        }
        let action = (one[5] & 1 != 0).then(|| u16_at(one, 2));
        list.push((one[0], action, u16_at(one, 6)));
        rest = after.get(if one[5] & 2 != 0 { 12 } else { 0 }..).unwrap_or_default();
    }
    Ok(list)
}

/// Appends the data of one command: nothing, or its CDB usage data.
pub fn put_one_command(command: Option<&Command>, timeouts: Option<Timeouts>, out: &mut Vec<u8>) {
    let Some(command) = command else {
        out.extend_from_slice(&[0, 1, 0, 0]);
        return;
    };
    let with_timeouts = if timeouts.is_some() { 0x80 } else { 0 };
    out.extend_from_slice(&[0, with_timeouts | 3, 0, command.length() as u8]);
    let start = out.len();
    out.extend_from_slice(command.usage);
    if let (Some(action), 0x7f) = (command.action, command.opcode()) {
        let usage = out.get_mut(start..).unwrap_or_default();
        super::fields::put_at(usage, 8, &action.to_be_bytes());
    }
    put_timeouts(timeouts, out);
}

/// The CDB usage data of one command, if it is supported.
///
/// # Errors
/// [`ResponseError`].
pub fn one_command(data: &[u8]) -> Result<Option<&[u8]>, ResponseError> {
    let what = "supported operation code";
    if data.len() < 4 {
        return Err(ResponseError::Short { what });
    }
    let usage = slice_at(data, 4, usize::from(u16_at(data, 2)));
    Ok(matches!(u8_at(data, 1) & 7, 3 | 5).then_some(usage))
}

/// Which task management functions there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskFunctions {
    /// ABORT TASK.
    pub abort_task: bool,
    /// ABORT TASK SET.
    pub abort_task_set: bool,
    /// CLEAR ACA.
    pub clear_aca: bool,
    /// CLEAR TASK SET.
    pub clear_task_set: bool,
    /// LOGICAL UNIT RESET.
    pub unit_reset: bool,
    /// QUERY TASK.
    pub query_task: bool,
    /// TARGET RESET.
    pub target_reset: bool,
    /// QUERY ASYNCHRONOUS EVENT.
    pub query_event: bool,
    /// QUERY TASK SET.
    pub query_task_set: bool,
    /// I_T NEXUS RESET.
    pub nexus_reset: bool,
}

impl TaskFunctions {
    /// Appends the data, in the long form without timeouts if `extended`.
    pub fn put(&self, extended: bool, out: &mut Vec<u8>) {
        let mut b = [0; 16];
        for (mask, on) in [
            (0x80, self.abort_task),
            (0x40, self.abort_task_set),
            (0x20, self.clear_aca),
            (0x10, self.clear_task_set),
            (0x08, self.unit_reset),
            (0x04, self.query_task),
            (0x02, self.target_reset),
        ] {
            set_at(&mut b, 0, mask, on);
        }
        set_at(&mut b, 1, 4, self.query_event);
        set_at(&mut b, 1, 2, self.query_task_set);
        set_at(&mut b, 1, 1, self.nexus_reset);
        if extended {
            b[3] = 12;
        }
        out.extend_from_slice(b.get(..if extended { 16 } else { 4 }).unwrap_or_default());
    }

    /// Reads the data.
    ///
    /// # Errors
    /// [`ResponseError::Short`].
    pub fn decode(b: &[u8]) -> Result<Self, ResponseError> {
        if b.len() < 4 {
            return Err(ResponseError::Short { what: "task management functions" });
        }
        Ok(Self {
            abort_task: bit_at(b, 0, 0x80),
            abort_task_set: bit_at(b, 0, 0x40),
            clear_aca: bit_at(b, 0, 0x20),
            clear_task_set: bit_at(b, 0, 0x10),
            unit_reset: bit_at(b, 0, 0x08),
            query_task: bit_at(b, 0, 0x04),
            target_reset: bit_at(b, 0, 0x02),
            query_event: bit_at(b, 1, 4),
            query_task_set: bit_at(b, 1, 2),
            nexus_reset: bit_at(b, 1, 1),
        })
    }
}
