//! Commands that are answered and of which the responses are not yet sent: the latency of a command
//! ends once the last byte of its response was handed to the socket.

use std::collections::VecDeque;
use std::rc::Rc;

use engine::exec::Span;
use engine::transport::acks::Acks;

use crate::core::Core;

/// Records of such commands, in the order of their responses. There is one for each response that
/// is queued, so the limits on those are the limits on these.
pub(super) struct Unsent {
    core: Rc<Core>,
    /// Each with the number of queued bytes that end with the last of its response.
    pub(super) records: VecDeque<(usize, Span)>,
    /// Those of which the response was sent just now.
    sent: Vec<Span>,
}

impl Unsent {
    pub(super) fn new(core: &Rc<Core>) -> Self {
        Self { core: Rc::clone(core), records: VecDeque::new(), sent: Vec::new() }
    }

    /// A response ends with this byte of what is queued.
    pub(super) fn add(&mut self, end: usize, span: Span) {
        self.records.push_back((end, span));
    }

    /// This number of the queued bytes was handed to the socket.
    pub(super) fn sent(&mut self, bytes: usize, acks: &Rc<Acks>) {
        if self.take(bytes) {
            self.core.sent(&mut self.sent, acks);
        }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let count = self.records.iter().take_while(|(end, _)| *end <= bytes).count();
        self.sent.extend(self.records.drain(..count).map(|(_, span)| span));
        (0..count).for_each(|_| self.core.budget.count_taken());
        count > 0
    }
}

impl Drop for Unsent {
    /// What was carried out counts, also where the connection ends before the response is sent.
    fn drop(&mut self) {
        if self.take(usize::MAX) {
            self.core.finish(&mut self.sent);
        }
    }
}
