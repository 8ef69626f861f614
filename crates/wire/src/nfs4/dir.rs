//! READDIR (RFC 8881 §18.23): arguments, the reply as a client reads it, and the encoder that a
//! server writes it with.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use super::attr::Fattr4;
use super::bitmap::Bitmap4;
use super::status::Nfsstat4;
use super::types::{Component4, Verifier4};
use crate::nfs3::DirEntries;
use crate::xdr::{Encode, Writer};

xdr_structs! {
    /// `READDIR4args`.
    #[derive(Copy)]
    ReaddirArgs4 {
        cookie: u64, cookieverf: [u8; 8], dircount: u32, maxcount: u32,
        attr_request: Bitmap4,
    }
    /// `entry4`, without the link to the next.
    #[derive(Copy)]
    Entry4<'a> { cookie: u64, name: Component4<'a>, attrs: Fattr4<'a> }
    /// `READDIR4resok`, with `dirlist4` in line.
    #[derive(Copy)]
    ReaddirResOk4<'a> {
        cookieverf: [u8; 8], entries: DirEntries<'a, Entry4<'a>>, eof: bool,
    }
}

/// Closing "no more entries" flag and eof.
const CLOSE: usize = 8;

/// Writes a successful READDIR result entry by entry, as long as they fit.
#[derive(Debug)]
#[must_use = "a result that is neither finished nor aborted is not valid"]
pub struct ReaddirEncoder4<'w, 'b> {
    w: &'w mut Writer<'b>,
    start: usize,
    end_max: usize,
    entries: usize,
}

impl<'w, 'b> ReaddirEncoder4<'w, 'b> {
    /// Begins, with the client's `maxcount` (cut to what the server gives at once): the most
    /// bytes of READDIR4resok.
    pub fn begin(w: &'w mut Writer<'b>, maxcount: u32) -> Self {
        let start = w.len();
        Nfsstat4::OK.encode(w);
        let end_max = w.len().saturating_add(maxcount as usize);
        w.zeros(8);
        Self { w, start, end_max, entries: 0 }
    }

    /// Adds an entry; `attrs` writes its `fattr4`. False, and nothing written, if it does not fit.
    pub fn add(&mut self, cookie: u64, name: &[u8], attrs: impl FnOnce(&mut Writer<'_>)) -> bool {
        let before = self.w.len();
        self.w.bool(true);
        self.w.u64(cookie);
        self.w.opaque(name);
        attrs(self.w);
        let fits = self.w.len().saturating_add(CLOSE) <= self.end_max;
        if fits {
            self.entries += 1;
        } else {
            self.w.truncate(before);
        }
        fits
    }

    /// Entries so far. None before the end of the directory: abort, answer NFS4ERR_TOOSMALL.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Ends the result.
    pub fn finish(self, verifier: Verifier4, eof: bool) {
        self.w.bool(false);
        self.w.bool(eof);
        self.w.patch(self.start + 4, &verifier);
    }

    /// Takes everything back, so that a failure can be written instead.
    pub fn abort(self) {
        self.w.truncate(self.start);
    }
}
