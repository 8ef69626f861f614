//! What the record of an operation says of a caller and a file. Only `conn.rs` and the dispatch of
//! a protocol use it.

use base::clock::stamp;
use probe::op::flag;

use super::caller::{Caller, Reached};
use super::core::Core;
use super::node::Node;
use crate::exec::Span;

impl Span {
    /// Who it is by: known only once he has signed in, which may be the operation itself.
    pub fn by(&mut self, who: &Caller) {
        self.facts.client = who.client;
        self.facts.user = who.person.cred.uid;
    }

    /// It is on this share.
    pub fn on(&mut self, reached: &Reached) {
        self.facts.share = reached.share.id;
    }

    /// It is of this file.
    pub fn of(&mut self, node: &Node) {
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
        crate::exec::Core::begin(self, self.files.service.protocol(), client, op, arrived_ns)
    }
}
