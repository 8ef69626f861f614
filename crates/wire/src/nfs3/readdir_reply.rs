//! READDIR3resok and READDIRPLUS3resok as a server writes them: entry by entry, as long as they
//! fit what the client allows (RFC 1813 §3.3.16, §3.3.17). The directory's attributes and
//! verifier, which are known after the listing, are patched in at the end.

use super::attr::{FATTR3_LEN, Fattr3, PostOpAttr};
use super::status::Nfsstat3;
use super::types::Cookieverf3;
use crate::xdr::{Encode, Writer, padding};

/// Closing "no more entries" flag and eof.
const CLOSE: usize = 8;
/// Attributes with their flag, and the cookie verifier.
const HEAD: usize = 4 + FATTR3_LEN + 8;

/// The part that both replies share.
#[derive(Debug)]
struct Listing<'w, 'b> {
    w: &'w mut Writer<'b>,
    start: usize,
    /// Where the XDR of the `resok` may end at most.
    end_max: usize,
    entries: usize,
}

impl<'w, 'b> Listing<'w, 'b> {
    fn begin(w: &'w mut Writer<'b>, count: u32) -> Self {
        let start = w.len();
        Nfsstat3::OK.encode(w);
        // The client's limit is on the resok structure, which begins after the status.
        let end_max = w.len().saturating_add(count as usize);
        w.bool(true);
        w.zeros(HEAD - 4);
        Self { w, start, end_max, entries: 0 }
    }

    /// Whether `bytes` more, and the close, still fit.
    fn fits(&self, bytes: usize) -> bool {
        self.w.len().saturating_add(bytes).saturating_add(CLOSE) <= self.end_max
    }

    fn put(&mut self, fileid: u64, name: &[u8], cookie: u64) {
        self.w.bool(true);
        self.w.u64(fileid);
        self.w.opaque(name);
        self.w.u64(cookie);
        self.entries += 1;
    }

    fn finish(self, dir: Option<&Fattr3>, verf: Cookieverf3, eof: bool) {
        self.w.bool(false);
        self.w.bool(eof);
        let attr = self.start + 4;
        self.w.patch(attr + 4 + FATTR3_LEN, &verf);
        match dir {
            Some(dir) => self.w.patch(attr + 4, &dir.to_xdr()),
            None => {
                self.w.patch_u32(attr, 0);
                self.w.remove(attr + 4..attr + 4 + FATTR3_LEN);
            }
        }
    }
}

/// Bytes of fileid, name and cookie of an entry in XDR.
fn plain_len(name: &[u8]) -> usize {
    8 + 4 + name.len() + padding(name.len()) + 8
}

/// Writes a successful READDIR reply.
#[derive(Debug)]
#[must_use = "a reply that is neither finished nor aborted is not valid"]
pub struct ReaddirEncoder<'w, 'b>(Listing<'w, 'b>);

impl<'w, 'b> ReaddirEncoder<'w, 'b> {
    /// Begins, with the client's `count` (cut to what the server gives at once).
    pub fn begin(w: &'w mut Writer<'b>, count: u32) -> Self {
        Self(Listing::begin(w, count))
    }

    /// Adds an entry. False, and nothing written, if it does not fit any more.
    #[inline]
    pub fn add(&mut self, fileid: u64, name: &[u8], cookie: u64) -> bool {
        let fits = self.0.fits(4 + plain_len(name));
        if fits {
            self.0.put(fileid, name, cookie);
        }
        fits
    }

    /// Entries so far. None before the end of the directory: abort, and answer NFS3ERR_TOOSMALL.
    pub fn entries(&self) -> usize {
        self.0.entries
    }

    /// Ends the reply. `eof`: the directory's last entry is in it, or was before it.
    pub fn finish(self, dir: Option<&Fattr3>, verf: Cookieverf3, eof: bool) {
        self.0.finish(dir, verf, eof);
    }

    /// Takes everything back, so that a failure can be written instead.
    pub fn abort(self) {
        self.0.w.truncate(self.0.start);
    }
}

/// Writes a successful READDIRPLUS reply.
#[derive(Debug)]
#[must_use = "a reply that is neither finished nor aborted is not valid"]
pub struct ReaddirplusEncoder<'w, 'b> {
    list: Listing<'w, 'b>,
    dircount_left: usize,
}

impl<'w, 'b> ReaddirplusEncoder<'w, 'b> {
    /// Begins, with the client's `dircount` and `maxcount` (cut to what the server gives at once).
    pub fn begin(w: &'w mut Writer<'b>, dircount: u32, maxcount: u32) -> Self {
        Self { list: Listing::begin(w, maxcount), dircount_left: dircount as usize }
    }

    /// Adds an entry. False, and nothing written, if it does not fit any more. The first entry
    /// may exceed `dircount`, which is a hint about effort: a client that sets it too low still
    /// gets on, one entry at a time.
    #[inline]
    pub fn add(
        &mut self,
        fileid: u64,
        name: &[u8],
        cookie: u64,
        attr: &PostOpAttr,
        handle: Option<&[u8]>,
    ) -> bool {
        let plain = plain_len(name);
        let more = 4
            + if attr.is_some() { FATTR3_LEN } else { 0 }
            + 4
            + handle.map_or(0, |handle| 4 + handle.len() + padding(handle.len()));
        let within = plain <= self.dircount_left || self.list.entries == 0;
        if !within || !self.list.fits(4 + plain + more) {
            return false;
        }
        self.dircount_left = self.dircount_left.saturating_sub(plain);
        self.list.put(fileid, name, cookie);
        attr.encode(self.list.w);
        self.list.w.bool(handle.is_some());
        if let Some(handle) = handle {
            self.list.w.opaque(handle);
        }
        true
    }

    /// Entries so far. None before the end of the directory: abort, and answer NFS3ERR_TOOSMALL.
    pub fn entries(&self) -> usize {
        self.list.entries
    }

    /// Ends the reply. `eof`: the directory's last entry is in it, or was before it.
    pub fn finish(self, dir: Option<&Fattr3>, verf: Cookieverf3, eof: bool) {
        self.list.finish(dir, verf, eof);
    }

    /// Takes everything back, so that a failure can be written instead.
    pub fn abort(self) {
        self.list.w.truncate(self.list.start);
    }
}
