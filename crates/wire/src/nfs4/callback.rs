//! Callbacks (RFC 7530 §16, RFC 8881 §20): CB_COMPOUND's header and the operations that a server
//! without pNFS and directory delegations sends.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::NFS4_SMALL_LIST_MAX;

use super::bitmap::Bitmap4;
use super::compound::Tag4;
use super::copy::WriteResponse4;
use super::status::Nfsstat4;
use super::types::{Fh4, Sessionid4, StateOwner4, Stateid4};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Seq, Writer};

xdr_structs! {
    /// `CB_COMPOUND4args` up to its operations: [`super::CbArgOp`] each.
    #[derive(Copy)]
    CbCompoundArgs<'a> { tag: Tag4<'a>, minorversion: u32, callback_ident: u32, count: u32 }
    /// `CB_COMPOUND4res` up to its results: [`super::CbResOp`] each.
    #[derive(Copy)]
    CbCompoundRes<'a> { status: Nfsstat4, tag: Tag4<'a>, count: u32 }
    /// `CB_GETATTR4args`.
    #[derive(Copy)]
    CbGetattrArgs4<'a> { fh: Fh4<'a>, attr_request: Bitmap4 }
    /// `CB_RECALL4args`.
    #[derive(Copy)]
    CbRecallArgs4<'a> { stateid: Stateid4, truncate: bool, fh: Fh4<'a> }
    /// `CB_RECALL_ANY4args`.
    #[derive(Copy)]
    CbRecallAnyArgs4 { objects_to_keep: u32, type_mask: Bitmap4 }
    /// `CB_RECALL_SLOT4args`.
    #[derive(Copy)]
    CbRecallSlotArgs4 { target_highest_slotid: u32 }
    /// `referring_call4`.
    #[derive(Copy)]
    ReferringCall4 { sequenceid: u32, slotid: u32 }
    /// `referring_call_list4`.
    ReferringCallList4 {
        sessionid: Sessionid4, referring_calls: Seq<ReferringCall4, NFS4_SMALL_LIST_MAX>,
    }
    /// `CB_SEQUENCE4args`.
    CbSequenceArgs4 {
        sessionid: Sessionid4, sequenceid: u32, slotid: u32, highest_slotid: u32,
        cachethis: bool, referring_call_lists: Seq<ReferringCallList4, NFS4_SMALL_LIST_MAX>,
    }
    /// `CB_SEQUENCE4resok`.
    #[derive(Copy)]
    CbSequenceResOk4 {
        sessionid: Sessionid4, sequenceid: u32, slotid: u32, highest_slotid: u32,
        target_highest_slotid: u32,
    }
    /// `CB_NOTIFY_LOCK4args`.
    #[derive(Copy)]
    CbNotifyLockArgs4<'a> { fh: Fh4<'a>, lock_owner: StateOwner4<'a> }
    /// `CB_OFFLOAD4args`.
    CbOffloadArgs4<'a> { fh: Fh4<'a>, stateid: Stateid4, info: OffloadInfo4 }
}

/// `offload_info4`: how an asynchronous copy ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OffloadInfo4 {
    /// NFS4_OK.
    Ok(WriteResponse4),
    /// Any other status, and the bytes that were copied.
    Fail(Nfsstat4, u64),
}

impl Encode for OffloadInfo4 {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Ok(response) => {
                Nfsstat4::OK.encode(w);
                response.encode(w);
            }
            Self::Fail(status, bytes) => {
                status.encode(w);
                w.u64(*bytes);
            }
        }
    }
}

impl Decode<'_> for OffloadInfo4 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match Nfsstat4::decode(r)? {
            Nfsstat4::OK => Self::Ok(WriteResponse4::decode(r)?),
            status => Self::Fail(status, r.u64("coa_bytes_copied")?),
        })
    }
}
