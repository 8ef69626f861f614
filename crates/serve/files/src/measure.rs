//! The caller and the file in the record of an operation. Only `conn.rs` and the dispatch of a
//! protocol use it.

use base::clock::stamp;
use probe::op::flag;

use super::caller::{Caller, Reached};
use super::core::Core;
use super::node::Node;
use engine::exec::Span;

/// Sets in the record of an operation its user, share and file.
pub trait SpanFacts {
    /// The user it is by: known only after sign-in, which may be the operation itself.
    fn by(&mut self, who: &Caller);
    /// The share it is on.
    fn on(&mut self, reached: &Reached);
    /// The file it is of.
    fn of(&mut self, node: &Node);
}

impl SpanFacts for Span {
    fn by(&mut self, who: &Caller) {
        self.facts.client = who.client;
        self.facts.user = who.person.cred.uid;
    }

    fn on(&mut self, reached: &Reached) {
        self.facts.share = reached.share.id;
    }

    fn of(&mut self, node: &Node) {
        self.on(&node.reached);
        self.facts.file = node.file_id();
        self.facts.flags |= flag::HAS_FILE;
    }
}

impl Core {
    /// An operation has come from a client: number `op` of the protocol's list in `probe::labels`.
    pub fn begin(&self, client: u32, op: u8) -> Span {
        self.begin_at(client, op, stamp())
    }

    /// As [`Core::begin`], of one that came with others at `arrived_ns`.
    pub fn begin_at(&self, client: u32, op: u8, arrived_ns: u64) -> Span {
        engine::exec::Core::begin(self, self.files.service.protocol(), client, op, arrived_ns)
    }
}
