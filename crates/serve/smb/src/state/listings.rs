//! A listing in progress: what of a directory was read and not sent yet.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use base::limits::SMB_LISTINGS_MAX;
use base::refusals::Limit;
use wire::smb::dir::Entry;
use wire::smb::status::NtStatus;

use files::held::ReadAhead;
use files::list::Listing;

/// A listing in progress.
pub(crate) struct Listed {
    /// The pattern as the client has sent it.
    pub asked: Vec<u8>,
    /// Where it is in the directory.
    pub listing: Listing,
    /// Units of the pattern with which names are compared; none if all are listed.
    pub units: Option<usize>,
    /// Bytes of the names that were compared and not counted yet.
    pub compared_bytes: Arc<AtomicUsize>,
    /// The directory itself and the one above, which come first.
    pub first: VecDeque<Entry>,
    /// Entries behind them that were read and not returned yet; they may be dropped between two
    /// requests, and are read again then.
    pub ready: ReadAhead<Entry>,
    /// Whether a request was answered, with entries or without.
    pub answered: bool,
    /// The directory has no more entries.
    pub done: bool,
    /// It counts among those of its connection, until all is sent.
    pub counted: Option<Counted>,
}

/// One of the listings of a connection.
pub(crate) struct Counted(Rc<Cell<usize>>);

impl Counted {
    /// Another one.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES if there are too many.
    pub fn new(all: &Rc<Cell<usize>>) -> Result<Self, NtStatus> {
        if all.get() >= SMB_LISTINGS_MAX {
            Limit::SmbListings.count();
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        all.set(all.get() + 1);
        Ok(Self(Rc::clone(all)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
