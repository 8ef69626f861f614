//! READ3resok as a server writes it: the header first, the data read straight into its place (or
//! sent from elsewhere), and count and end-of-file patched when they are known.

use std::ops::Range;

use super::attr::{FATTR3_LEN, Fattr3, PostOpAttr};
use super::status::Nfsstat3;
use crate::xdr::{Encode, Writer, padding};

/// What is known of a READ's reply before the data is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadResOkHead {
    /// The file's attributes; a placeholder will do when [`ReadResOkOpen::set_attr`] follows.
    pub attr: PostOpAttr,
    /// Most bytes that will be read, already cut to what the server gives at once.
    pub count_max: u32,
}

/// A READ reply with its data being read.
#[derive(Debug)]
#[must_use = "a reply that is neither finished nor aborted is not valid"]
pub struct ReadResOkOpen {
    start: usize,
    has_attr: bool,
    data: Range<usize>,
}

impl ReadResOkHead {
    /// Writes NFS3_OK and everything up to the data, and makes `count_max` zero bytes for it.
    pub fn begin(&self, w: &mut Writer<'_>) -> ReadResOkOpen {
        let start = w.len();
        let count_max = self.count_max as usize;
        w.reserve(4 + 4 + FATTR3_LEN + 12 + count_max + 3);
        head(w, self.attr.as_ref(), 0, false);
        let data = w.zeros(count_max);
        ReadResOkOpen { start, has_attr: self.attr.is_some(), data }
    }

    /// Writes the reply up to the data when the data itself (`count` bytes) is sent from
    /// elsewhere. Gives the zero bytes (0 to 3) that must be sent after it; both together are the
    /// tail of the record ([`crate::rpc::end_record_with_tail`]).
    pub fn encode_detached(w: &mut Writer<'_>, attr: PostOpAttr, count: u32, eof: bool) -> usize {
        head(w, attr.as_ref(), count, eof);
        padding(count as usize)
    }
}

fn head(w: &mut Writer<'_>, attr: Option<&Fattr3>, count: u32, eof: bool) {
    Nfsstat3::OK.encode(w);
    w.bool(attr.is_some());
    if let Some(attr) = attr {
        attr.encode(w);
    }
    w.u32(count);
    w.bool(eof);
    w.u32(count);
}

impl ReadResOkOpen {
    /// Where in the buffer the data goes: [`Writer::slice_mut`].
    pub fn data(&self) -> Range<usize> {
        self.data.clone()
    }

    /// Replaces the attributes by those after the read. False if none were announced.
    pub fn set_attr(&self, w: &mut Writer<'_>, attr: &Fattr3) -> bool {
        if self.has_attr {
            w.patch(self.start + 8, &attr.to_xdr());
        }
        self.has_attr
    }

    /// Ends the reply: `count` bytes were read, at most as many as there was room for.
    pub fn finish(self, w: &mut Writer<'_>, count: u32, eof: bool) {
        let room = self.data.len();
        debug_assert!(count as usize <= room, "more read than there was room for");
        let count = (count as usize).min(room);
        w.truncate(self.data.start + count);
        w.raw(&[0; 3][..padding(count)]);
        w.patch_u32(self.data.start - 12, count as u32);
        w.patch_u32(self.data.start - 8, u32::from(eof));
        w.patch_u32(self.data.start - 4, count as u32);
    }

    /// Takes everything back, so that a failure can be written instead.
    pub fn abort(self, w: &mut Writer<'_>) {
        w.truncate(self.start);
    }
}
