//! Persistent handles of before the start that no client has continued yet: they deny to others
//! what they did.

use std::sync::Arc;

use super::opens::{Entry, ParkedOpen};
use super::parked::DurableId;
use super::replays::Numbered;
use crate::handles::PersistentHandle;
use crate::handles::record::Record;

/// One of them.
pub(crate) struct Restored {
    /// What is known of it.
    pub record: Arc<Record>,
    /// Its entry in the table of locks.
    pub entry: Entry,
    /// It is recorded.
    pub handle: PersistentHandle,
    /// Its number for ever.
    pub id: DurableId<ParkedOpen>,
    /// Its CREATE, which may be sent again.
    pub number: Option<Numbered>,
}
