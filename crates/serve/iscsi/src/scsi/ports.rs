//! REPORT TARGET PORT GROUPS (SPC-5 §6.36): there is one port, and it is always the best.

use wire::scsi::ports::{AccessState, PortGroup, put_port_groups};

use super::{Outcome, answer};
use engine::transport::buffers::ReplyBuf;

/// Relative identifier of the port.
pub const PORT: u16 = 1;
/// Number of its group.
pub const PORT_GROUP: u16 = 1;
/// Of all states there is only active/optimized.
const ACTIVE: u8 = 1;

/// REPORT TARGET PORT GROUPS.
pub(super) fn report(format: u8, allocation: u32, out: &mut ReplyBuf) -> Outcome {
    let group = PortGroup {
        is_preferred: false,
        state: AccessState::ACTIVE_OPTIMIZED,
        supported: ACTIVE,
        group: PORT_GROUP,
        status: 0,
        ports: vec![PORT],
    };
    let start = out.len();
    put_port_groups(&[group], (format == 1).then_some(0), out.vec());
    Ok(answer(out, start, allocation))
}
