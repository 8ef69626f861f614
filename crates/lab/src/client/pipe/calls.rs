//! Outstanding calls, and the transaction numbers that match their replies.

use crate::client::Op;

/// Bits of a transaction number that are the slot, at least; `LAB_SLOTS_MAX` fits. The others are
/// a serial number, which must not come around while a server may still replay.
const SLOT_BITS_MIN: u32 = 10;

/// An outstanding call.
#[derive(Debug, Clone, Copy)]
struct Pending {
    xid: u32,
    op: Op,
}

/// Outstanding calls, by slot.
pub struct CallTable {
    pending: Vec<Option<Pending>>,
    serial: u32,
    slot_bits: u32,
}

impl CallTable {
    /// None, with room for `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            pending: Vec::new(),
            // Not the same numbers as the last connection from this address: a server may
            // remember those and replay.
            serial: (base::clock::wall_ns() >> 10) as u32,
            slot_bits: SLOT_BITS_MIN.max(u32::BITS - slots.saturating_sub(1).leading_zeros()),
        }
    }

    /// A transaction number for `slot`, remembered with its operation.
    pub fn begin(&mut self, slot: u32, op: Op) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        let xid = self.serial << self.slot_bits | slot;
        if self.pending.len() <= slot as usize {
            self.pending.resize(slot as usize + 1, None);
        }
        self.pending[slot as usize] = Some(Pending { xid, op });
        xid
    }

    /// A transaction number of no slot.
    pub fn single(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.serial << self.slot_bits
    }

    /// The call that the reply with `xid` belongs to, if it is outstanding.
    #[inline]
    pub fn answered(&self, xid: u32) -> Option<(u32, Op)> {
        let slot = xid & ((1 << self.slot_bits) - 1);
        let pending = self.pending.get(slot as usize).copied().flatten()?;
        (pending.xid == xid).then_some((slot, pending.op))
    }

    /// The slot's call has ended.
    #[inline]
    pub fn end(&mut self, slot: u32) {
        if let Some(pending) = self.pending.get_mut(slot as usize) {
            *pending = None;
        }
    }

    /// Whether a call is outstanding.
    pub fn any(&self) -> bool {
        self.pending.iter().any(Option::is_some)
    }
}
