//! Whether clients of some protocol may be reclaiming what they held before the server restarted.
//! While one protocol's clients may, no protocol gives out anything new: what a client of NFSv4
//! was given now, a client of NLM may be about to reclaim.
//!
//! Who may reclaim, and for how long, is each protocol's own affair.

use std::sync::atomic::Ordering;

use super::{LockTable, Protocol};

const fn bit(protocol: Protocol) -> u32 {
    1 << protocol as u8
}

impl LockTable {
    /// Clients of this protocol may reclaim from now on.
    pub fn begin_grace(&self, protocol: Protocol) {
        self.grace.fetch_or(bit(protocol), Ordering::SeqCst);
    }

    /// They may not any more, until the protocol's service begins again.
    pub fn end_grace(&self, protocol: Protocol) {
        if self.grace.load(Ordering::Relaxed) & bit(protocol) != 0 {
            self.grace.fetch_and(!bit(protocol), Ordering::SeqCst);
        }
    }

    /// Whether clients of any protocol may reclaim: nothing new may be given out.
    pub fn in_grace(&self) -> bool {
        self.grace.load(Ordering::SeqCst) != 0
    }

    /// Whether clients of a protocol other than this one may reclaim.
    pub fn in_grace_beside(&self, protocol: Protocol) -> bool {
        self.grace.load(Ordering::SeqCst) & !bit(protocol) != 0
    }
}
