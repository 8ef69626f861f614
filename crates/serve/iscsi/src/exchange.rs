//! An exchange of text that goes over several PDUs.

use engine::transport::budget::ReservedBytes;
use wire::iscsi::pairs::Collector;

/// An exchange of text that goes over several PDUs.
pub(super) struct Exchange {
    pub(super) tag: u32,
    pub(super) collector: Collector,
    /// The answer.
    pub(super) answer: Vec<u8>,
    /// Bytes of it that were sent.
    pub(super) sent: usize,
    /// The memory of both texts.
    pub(super) held: ReservedBytes,
}

impl Exchange {
    /// Whether all of the answer was sent.
    pub(super) fn is_sent(&self) -> bool {
        self.sent >= self.answer.len()
    }

    /// Takes account of what is held now.
    pub(super) fn account(&mut self) {
        self.held.set(self.collector.bytes() + self.answer.capacity());
    }
}
