//! An exchange of text that goes over several PDUs.

use wire::iscsi::pairs::Collector;

/// An exchange of text that goes over several PDUs.
pub(super) struct Exchange {
    pub(super) tag: u32,
    pub(super) collector: Collector,
    /// What is still to be sent.
    pub(super) rest: Vec<u8>,
}
