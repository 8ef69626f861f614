//! The operations of parallel NFS (RFC 8881 §18.40 to §18.44, RFC 7862 §15.6, §15.7), as far as a
//! server needs them that does not offer it: arguments, so that it can answer NFS4ERR_NOTSUPP.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::NFS4_SMALL_LIST_MAX;

use super::bitmap::Bitmap4;
use super::types::{Nfstime4, Stateid4, Verifier4};
use crate::xdr::Seq;

xdr_structs! {
    /// `GETDEVICEINFO4args`.
    GetdeviceinfoArgs4 {
        device_id: [u8; 16], layout_type: u32, maxcount: u32, notify_types: Bitmap4,
    }
    /// `GETDEVICELIST4args`.
    GetdevicelistArgs4 {
        layout_type: u32, maxdevices: u32, cookie: u64, cookieverf: Verifier4,
    }
    /// `layoutupdate4`.
    Layoutupdate4<'a> { kind: u32, body: &'a [u8] }
    /// `LAYOUTCOMMIT4args`.
    LayoutcommitArgs4<'a> {
        offset: u64, length: u64, reclaim: bool, stateid: Stateid4,
        last_write_offset: Option<u64>, time_modify: Option<Nfstime4>,
        layoutupdate: Layoutupdate4<'a>,
    }
    /// `LAYOUTGET4args`.
    LayoutgetArgs4 {
        signal_layout_avail: bool, layout_type: u32, iomode: u32, offset: u64, length: u64,
        minlength: u64, stateid: Stateid4, maxcount: u32,
    }
    /// `layoutreturn_file4`.
    LayoutreturnFile4<'a> { offset: u64, length: u64, stateid: Stateid4, body: &'a [u8] }
    /// `LAYOUTRETURN4args`.
    LayoutreturnArgs4<'a> {
        reclaim: bool, layout_type: u32, iomode: u32, layoutreturn: Layoutreturn4<'a>,
    }
    /// `device_error4`.
    DeviceError4 { device_id: [u8; 16], status: super::Nfsstat4, opnum: u32 }
    /// `LAYOUTERROR4args`.
    LayouterrorArgs4 {
        offset: u64, length: u64, stateid: Stateid4,
        errors: Seq<DeviceError4, NFS4_SMALL_LIST_MAX>,
    }
    /// `LAYOUTSTATS4args`.
    LayoutstatsArgs4<'a> {
        offset: u64, length: u64, stateid: Stateid4, read: IoInfo4, write: IoInfo4,
        device_id: [u8; 16], layoutupdate: Layoutupdate4<'a>,
    }
    /// `io_info4`.
    IoInfo4 { count: u64, bytes: u64 }
}

xdr_union! {
    /// `layoutreturn4`.
    Layoutreturn4<'a> "layoutreturn_type4" { 1 File(LayoutreturnFile4<'a>), 2 Fsid(()), 3 All(()) }
}
