//! READ, WRITE, COMMIT, READLINK, ACCESS (RFC 8881 §18.1, §18.3, §18.22, §18.24, §18.32) and a
//! READ's reply as a server writes it.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use std::ops::Range;

use super::status::Nfsstat4;
use super::types::{Linktext4, Stateid4, Verifier4};
use crate::xdr::{Encode, Writer, padding};

/// `stable_how4`: the numbers of version 3.
pub use crate::nfs3::StableHow as StableHow4;

xdr_structs! {
    /// `ACCESS4args`.
    #[derive(Copy)]
    AccessArgs4 { access: u32 }
    /// `ACCESS4resok`.
    #[derive(Copy)]
    AccessResOk4 { supported: u32, access: u32 }
    /// `READ4args`.
    #[derive(Copy)]
    ReadArgs4 { stateid: Stateid4, offset: u64, count: u32 }
    /// `READ4resok`.
    #[derive(Copy)]
    ReadResOk4<'a> { eof: bool, data: &'a [u8] }
    /// `WRITE4args`.
    #[derive(Copy)]
    WriteArgs4<'a> { stateid: Stateid4, offset: u64, stable: StableHow4, data: &'a [u8] }
    /// `WRITE4resok`.
    #[derive(Copy)]
    WriteResOk4 { count: u32, committed: StableHow4, writeverf: Verifier4 }
    /// `COMMIT4args`.
    #[derive(Copy)]
    CommitArgs4 { offset: u64, count: u32 }
    /// `COMMIT4resok`.
    #[derive(Copy)]
    CommitResOk4 { writeverf: Verifier4 }
    /// `READLINK4resok`.
    #[derive(Copy)]
    ReadlinkResOk4<'a> { link: Linktext4<'a> }
}

/// Rights of ACCESS (§18.1; RFC 8276 §8.5).
pub mod access4 {
    pub const READ: u32 = 0x01;
    pub const LOOKUP: u32 = 0x02;
    pub const MODIFY: u32 = 0x04;
    pub const EXTEND: u32 = 0x08;
    pub const DELETE: u32 = 0x10;
    pub const EXECUTE: u32 = 0x20;
    pub const XAREAD: u32 = 0x40;
    pub const XAWRITE: u32 = 0x80;
    pub const XALIST: u32 = 0x100;
}

/// A READ's successful result with its data being read: header first, the data straight into its
/// place, length and end-of-file patched when they are known.
#[derive(Debug)]
#[must_use = "a result that is neither finished nor aborted is not valid"]
pub struct ReadOpen4 {
    start: usize,
    data: Range<usize>,
}

impl ReadOpen4 {
    /// Writes NFS4_OK and what precedes the data, and makes `count_max` zero bytes for it.
    pub fn begin(w: &mut Writer<'_>, count_max: u32) -> Self {
        let start = w.len();
        w.reserve(12 + count_max as usize + 3);
        Nfsstat4::OK.encode(w);
        w.bool(false);
        w.u32(0);
        let data = w.zeros(count_max as usize);
        Self { start, data }
    }

    /// Where in the buffer the data goes: [`Writer::slice_mut`].
    pub fn data(&self) -> Range<usize> {
        self.data.clone()
    }

    /// Ends the result: `count` bytes were read, at most as many as there was room for.
    pub fn finish(self, w: &mut Writer<'_>, count: usize, eof: bool) {
        debug_assert!(count <= self.data.len(), "more read than there was room for");
        let count = count.min(self.data.len());
        w.truncate(self.data.start + count);
        w.raw(&[0; 3][..padding(count)]);
        w.patch_u32(self.start + 4, u32::from(eof));
        w.patch_u32(self.start + 8, count as u32);
    }

    /// Takes everything back, so that a failure can be written instead.
    pub fn abort(self, w: &mut Writer<'_>) {
        w.truncate(self.start);
    }
}
