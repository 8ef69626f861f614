//! A call of NLM in the hands of its operation.

use probe::op::OpRecord;
use vfs::handle::Handle;
use vfs::locks::FileKey;

use super::Nlm;
use crate::rpc::Caller;
use engine::transport::Budgets;

/// A call in the hands of its operation.
pub(super) struct Request<'a> {
    pub(super) nlm: &'a Nlm,
    pub(super) caller: &'a Caller,
    pub(super) may_block: bool,
    pub(super) facts: &'a mut OpRecord,
    /// Where an operation that panics is counted.
    pub(super) budgets: &'a Budgets,
}

/// A file that may be locked.
pub(super) struct File {
    pub(super) key: FileKey,
    pub(super) handle: Handle,
}
