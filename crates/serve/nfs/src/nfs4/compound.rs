//! How far a compound has got.

use std::cell::Cell;
use std::sync::Arc;

use base::limits::NFS4_REPLY_MAX;
use probe::op::OpRecord;
use vfs::fs::{Extent, Flush};
use vfs::locks::ClientKey;
use wire::nfs4::{CompoundArgs, Nfsstat4, Stateid4};

use super::Slot;
use super::peer::ShareGrant;
use super::state::Session;
use super::target::FileHandleTarget;

/// How far a compound has got. It owns what it needs, so it can wait for the pool together with
/// its message and the results so far.
pub struct CompoundState {
    /// Minor version.
    pub minor: u32,
    /// Operations in all.
    pub count: u32,
    /// Operations with a result so far.
    pub done: u32,
    /// The current file handle.
    pub current: Option<FileHandleTarget>,
    /// The saved one.
    pub saved: Option<FileHandleTarget>,
    /// The stateid that "current" stands for (4.1).
    pub current_stateid: Option<Stateid4>,
    /// The one saved with the saved file handle.
    pub saved_stateid: Option<Stateid4>,
    /// What the share of the current file grants.
    pub entered: Option<ShareGrant>,
    /// The slot it holds (4.1).
    pub slot: Option<Slot>,
    /// The session of that, looked up once.
    pub session: Option<Arc<Session>>,
    /// The client that it is done for, where that is known: its own delegations do not conflict.
    pub acting: Cell<Option<ClientKey>>,
    /// What must be on disk before the reply leaves.
    pub flush: Flush,
    /// The data of the last operation, sent from the file behind the results.
    pub extent: Option<Extent>,
    /// The facts of the operations so far.
    pub facts: Vec<OpRecord>,
    pub(super) status: Nfsstat4,
    /// Where in the message the next operation begins.
    pub(super) at: usize,
    /// Bytes of the message, from the tag on.
    pub(super) message: usize,
    /// Bytes of the tag, for the place of the number of results.
    pub(super) tag: usize,
    /// Most bytes of results.
    pub(super) reply_max: usize,
    pub(super) cached_max: Option<usize>,
    /// First operation with something to flush: its place in the results, and its index.
    pub(super) first_change: Option<(usize, u32, u8)>,
    /// Where the result of the operation at hand begins.
    pub(super) result_at: usize,
    /// The operation at hand was tried inline and would have blocked.
    pub(super) pooled: bool,
    /// An operation that changes something was begun.
    pub(super) changing: bool,
    /// An operation that changes a file or the client's state was carried out, or tried.
    pub(super) has_effect: bool,
    pub(super) ended: bool,
    /// The slot is the next request's.
    pub(super) slot_given_back: bool,
    /// Bytes that its COPYs have copied.
    pub(super) copied: u64,
}

impl CompoundState {
    pub(super) fn new(args: &CompoundArgs<'_>, at: usize, message: usize) -> Self {
        Self {
            minor: args.minorversion,
            count: args.count,
            done: 0,
            current: None,
            saved: None,
            current_stateid: None,
            saved_stateid: None,
            entered: None,
            slot: None,
            session: None,
            acting: Cell::new(None),
            flush: Flush::NONE,
            extent: None,
            facts: Vec::new(),
            status: Nfsstat4::OK,
            at,
            message,
            tag: args.tag.0.len(),
            reply_max: NFS4_REPLY_MAX,
            cached_max: None,
            first_change: None,
            result_at: 0,
            pooled: false,
            changing: false,
            has_effect: false,
            ended: false,
            slot_given_back: false,
            copied: 0,
        }
    }

    /// The status of the compound: that of its last operation.
    pub fn status(&self) -> Nfsstat4 {
        self.status
    }

    pub(super) fn note_change(&mut self, op: u8) {
        self.first_change.get_or_insert((self.result_at, self.done, op));
    }

    pub(super) fn hold_slot(&mut self, slot: Slot, reply_max: usize, cached_max: Option<usize>) {
        self.slot = Some(slot);
        self.reply_max = reply_max.min(NFS4_REPLY_MAX);
        self.cached_max = cached_max;
    }
}
