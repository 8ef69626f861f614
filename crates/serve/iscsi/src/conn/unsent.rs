//! Commands that are answered and of which the responses are not yet sent: the latency of a command
//! ends when the last byte of its response was handed to the socket.

use std::collections::VecDeque;
use std::rc::Rc;

use base::clock::stamp;
use probe::op::OpRecord;

use crate::core::Core;

/// Records of such commands, in the order of their responses. There is one for each response that
/// is queued, so the limits on those are the limits on these.
pub(super) struct Unsent {
    core: Rc<Core>,
    /// The arrival of the command, and how many queued bytes end with the last of its response.
    pub(super) records: VecDeque<(u64, usize, OpRecord)>,
}

impl Unsent {
    pub(super) fn new(core: &Rc<Core>) -> Self {
        Self { core: Rc::clone(core), records: VecDeque::new() }
    }

    /// A response ends with this byte of what is queued.
    pub(super) fn add(&mut self, arrived_ns: u64, end: usize, record: OpRecord) {
        self.records.push_back((arrived_ns, end, record));
    }

    /// This number of the queued bytes was handed to the socket.
    pub(super) fn sent(&mut self, bytes: usize) {
        let count = self.records.iter().take_while(|(_, end, _)| *end <= bytes).count();
        if count == 0 {
            return;
        }
        let done_ns = stamp();
        for (arrived_ns, _, record) in self.records.drain(..count) {
            let latency_ns = done_ns.saturating_sub(arrived_ns);
            self.core.record_message(&OpRecord { done_ns, latency_ns, ..record });
        }
    }
}

impl Drop for Unsent {
    /// What was carried out counts, also where the connection ends before the response is sent.
    fn drop(&mut self) {
        self.sent(usize::MAX);
    }
}
