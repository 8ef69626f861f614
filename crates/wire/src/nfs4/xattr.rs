//! Extended attributes (RFC 8276 §8.4).

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::NFS4_LIST_MAX;

use super::types::{ChangeInfo4, Component4};
use crate::xdr::Seq;

/// `setxattr_option4`.
pub mod setxattr4 {
    pub const EITHER: u32 = 0;
    pub const CREATE: u32 = 1;
    pub const REPLACE: u32 = 2;
}

xdr_structs! {
    /// `GETXATTR4args`.
    #[derive(Copy)]
    GetxattrArgs4<'a> { name: Component4<'a> }
    /// `GETXATTR4resok`.
    #[derive(Copy)]
    GetxattrResOk4<'a> { value: &'a [u8] }
    /// `SETXATTR4args`.
    #[derive(Copy)]
    SetxattrArgs4<'a> { option: u32, key: Component4<'a>, value: &'a [u8] }
    /// `SETXATTR4resok`.
    #[derive(Copy)]
    SetxattrResOk4 { info: ChangeInfo4 }
    /// `LISTXATTRS4args`.
    #[derive(Copy)]
    ListxattrsArgs4 { cookie: u64, maxcount: u32 }
    /// `LISTXATTRS4resok`.
    ListxattrsResOk4<'a> {
        cookie: u64, names: Seq<Component4<'a>, NFS4_LIST_MAX>, eof: bool,
    }
    /// `REMOVEXATTR4args`.
    #[derive(Copy)]
    RemovexattrArgs4<'a> { name: Component4<'a> }
    /// `REMOVEXATTR4resok`.
    #[derive(Copy)]
    RemovexattrResOk4 { info: ChangeInfo4 }
}
