//! ALLOCATE, DEALLOCATE, COPY, CLONE, SEEK, READ_PLUS, WRITE_SAME, IO_ADVISE and the offload
//! operations (RFC 7862 §15).

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::{NFS4_LIST_MAX, NFS4_SMALL_LIST_MAX};

use super::bitmap::Bitmap4;
use super::io::StableHow4;
use super::status::Nfsstat4;
use super::types::{Clientaddr4, HasStatus, Nfstime4, Stateid4, Utf8str, Verifier4};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Seq, Writer};

xdr_union! {
    /// `netloc4`.
    Netloc4<'a> "netloc_type4" {
        1 Name(Utf8str<'a>), 2 Url(Utf8str<'a>), 3 Netaddr(Clientaddr4<'a>),
    }
}

/// Servers of COPY and COPY_NOTIFY.
pub type Netlocs4<'a> = Seq<Netloc4<'a>, NFS4_SMALL_LIST_MAX>;
/// `stateid4 <1>`.
pub type CallbackId4 = Option<Stateid4>;

xdr_structs! {
    /// `ALLOCATE4args` and `DEALLOCATE4args`.
    #[derive(Copy)]
    AllocateArgs4 { stateid: Stateid4, offset: u64, length: u64 }
    /// `COPY4args`.
    CopyArgs4<'a> {
        src_stateid: Stateid4, dst_stateid: Stateid4, src_offset: u64, dst_offset: u64,
        count: u64, consecutive: bool, synchronous: bool, source_server: Netlocs4<'a>,
    }
    /// `write_response4`.
    #[derive(Copy)]
    WriteResponse4 {
        callback_id: CallbackId4, count: u64, committed: StableHow4, writeverf: Verifier4,
    }
    /// `copy_requirements4`.
    #[derive(Copy)]
    CopyRequirements4 { consecutive: bool, synchronous: bool }
    /// `COPY4resok`.
    #[derive(Copy)]
    CopyResOk4 { response: WriteResponse4, requirements: CopyRequirements4 }
    /// `COPY_NOTIFY4args`.
    CopyNotifyArgs4<'a> { src_stateid: Stateid4, destination_server: Netloc4<'a> }
    /// `COPY_NOTIFY4resok`.
    CopyNotifyResOk4<'a> {
        lease_time: Nfstime4, stateid: Stateid4, source_server: Netlocs4<'a>,
    }
    /// `OFFLOAD_CANCEL4args` and `OFFLOAD_STATUS4args`.
    #[derive(Copy)]
    OffloadArgs4 { stateid: Stateid4 }
    /// `OFFLOAD_STATUS4resok`.
    #[derive(Copy)]
    OffloadStatusResOk4 { count: u64, complete: Option<Nfsstat4> }
    /// `IO_ADVISE4args`.
    #[derive(Copy)]
    IoAdviseArgs4 { stateid: Stateid4, offset: u64, count: u64, hints: Bitmap4 }
    /// `IO_ADVISE4resok`.
    #[derive(Copy)]
    IoAdviseResOk4 { hints: Bitmap4 }
    /// `READ_PLUS4args`.
    #[derive(Copy)]
    ReadPlusArgs4 { stateid: Stateid4, offset: u64, count: u32 }
    /// `data4`.
    #[derive(Copy)]
    Data4<'a> { offset: u64, data: &'a [u8] }
    /// `data_info4`: a hole.
    #[derive(Copy)]
    DataInfo4 { offset: u64, length: u64 }
    /// `read_plus_res4`.
    ReadPlusResOk4<'a> { eof: bool, contents: Seq<ReadPlusContent4<'a>, NFS4_LIST_MAX> }
    /// `SEEK4args`: `what` is 0 for data, 1 for a hole.
    #[derive(Copy)]
    SeekArgs4 { stateid: Stateid4, offset: u64, what: u32 }
    /// `seek_res4`.
    #[derive(Copy)]
    SeekResOk4 { eof: bool, offset: u64 }
    /// `app_data_block4`.
    #[derive(Copy)]
    AppDataBlock4<'a> {
        offset: u64, block_size: u64, block_count: u64, reloff_blocknum: u64, block_num: u32,
        reloff_pattern: u64, pattern: &'a [u8],
    }
    /// `WRITE_SAME4args`.
    #[derive(Copy)]
    WriteSameArgs4<'a> { stateid: Stateid4, stable: StableHow4, adb: AppDataBlock4<'a> }
    /// `CLONE4args`.
    #[derive(Copy)]
    CloneArgs4 {
        src_stateid: Stateid4, dst_stateid: Stateid4, src_offset: u64, dst_offset: u64,
        count: u64,
    }
}

xdr_union! {
    /// `read_plus_content`.
    ReadPlusContent4<'a> "data_content4" { 0 Data(Data4<'a>), 1 Hole(DataInfo4) }
}

/// `data_content4`, also SEEK's `what`.
pub mod content4 {
    pub const DATA: u32 = 0;
    pub const HOLE: u32 = 1;
}

/// `COPY4res`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyRes4 {
    /// NFS4_OK.
    Ok(CopyResOk4),
    /// NFS4ERR_OFFLOAD_NO_REQS, and what could be done.
    NoReqs(CopyRequirements4),
    /// Any other status.
    Fail(Nfsstat4),
}

impl HasStatus for CopyRes4 {
    fn status(&self) -> Nfsstat4 {
        match self {
            Self::Ok(_) => Nfsstat4::OK,
            Self::NoReqs(_) => Nfsstat4::OFFLOAD_NO_REQS,
            Self::Fail(status) => *status,
        }
    }
}

impl Encode for CopyRes4 {
    fn encode(&self, w: &mut Writer<'_>) {
        self.status().encode(w);
        match self {
            Self::Ok(ok) => ok.encode(w),
            Self::NoReqs(requirements) => requirements.encode(w),
            Self::Fail(_) => {}
        }
    }
}

impl Decode<'_> for CopyRes4 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match Nfsstat4::decode(r)? {
            Nfsstat4::OK => Self::Ok(CopyResOk4::decode(r)?),
            Nfsstat4::OFFLOAD_NO_REQS => Self::NoReqs(CopyRequirements4::decode(r)?),
            status => Self::Fail(status),
        })
    }
}
