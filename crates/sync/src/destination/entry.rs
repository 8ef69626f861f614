//! An entry about which is decided.

use wire::dsync::Meta;

use super::link_table::LinkOutcome;
use crate::tree::ScannedEntry;

/// An entry, and what has its name here.
pub(super) struct EntryDecision {
    pub name: Vec<u8>,
    pub path: Vec<u8>,
    pub wanted: Meta,
    pub own: Option<ScannedEntry>,
    pub fate: LinkOutcome,
    /// Whether what is here belongs to other names, too, that the source has as other files.
    pub shared_elsewhere: bool,
}
