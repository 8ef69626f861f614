//! File handles and names: PUTFH and GETFH, LOOKUP, CREATE, LINK, REMOVE, RENAME, OPENATTR,
//! SECINFO and SECINFO_NO_NAME (RFC 8881 §18).

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::{NFS4_SMALL_LIST_MAX, RPC_AUTH_MAX};

use super::attr::Fattr4;
use super::bitmap::Bitmap4;
use super::types::{ChangeInfo4, Component4, Fh4, Ftype4, Linktext4, Specdata4};
use crate::xdr::{Decode, DecodeError, Encode, Reader, Seq, Writer};

xdr_structs! {
    /// `PUTFH4args`.
    #[derive(Copy)]
    PutfhArgs4<'a> { object: Fh4<'a> }
    /// `GETFH4resok`.
    #[derive(Copy)]
    GetfhResOk4<'a> { object: Fh4<'a> }
    /// `LOOKUP4args`.
    #[derive(Copy)]
    LookupArgs4<'a> { objname: Component4<'a> }
    /// `CREATE4args`.
    CreateArgs4<'a> {
        objtype: Createtype4<'a>, objname: Component4<'a>, createattrs: Fattr4<'a>,
    }
    /// `CREATE4resok`.
    #[derive(Copy)]
    CreateResOk4 { cinfo: ChangeInfo4, attrset: Bitmap4 }
    /// `LINK4args`.
    #[derive(Copy)]
    LinkArgs4<'a> { newname: Component4<'a> }
    /// `LINK4resok`.
    #[derive(Copy)]
    LinkResOk4 { cinfo: ChangeInfo4 }
    /// `REMOVE4args`.
    #[derive(Copy)]
    RemoveArgs4<'a> { target: Component4<'a> }
    /// `REMOVE4resok`.
    #[derive(Copy)]
    RemoveResOk4 { cinfo: ChangeInfo4 }
    /// `RENAME4args`.
    #[derive(Copy)]
    RenameArgs4<'a> { oldname: Component4<'a>, newname: Component4<'a> }
    /// `RENAME4resok`.
    #[derive(Copy)]
    RenameResOk4 { source_cinfo: ChangeInfo4, target_cinfo: ChangeInfo4 }
    /// `OPENATTR4args`.
    #[derive(Copy)]
    OpenattrArgs4 { createdir: bool }
    /// `SECINFO4args`.
    #[derive(Copy)]
    SecinfoArgs4<'a> { name: Component4<'a> }
    /// `SECINFO_NO_NAME4args`: 0 is the current file, 1 its parent.
    #[derive(Copy)]
    SecinfoNoNameArgs4 { style: u32 }
    /// `rpcsec_gss_info`.
    #[derive(Copy)]
    RpcsecGssInfo<'a> { oid: SecOid4<'a>, qop: u32, service: u32 }
}

xdr_bytes! {
    /// `sec_oid4`.
    pub struct SecOid4, RPC_AUTH_MAX, "sec_oid4"
}

/// `createtype4`. Kinds that CREATE cannot make are for the server to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Createtype4<'a> {
    /// A symbolic link with its target.
    Link(Linktext4<'a>),
    /// A block device.
    Block(Specdata4),
    /// A character device.
    Character(Specdata4),
    /// A directory, socket, named pipe, or what cannot be made (void in the RFC).
    Other(Ftype4),
}

impl Encode for Createtype4<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Link(text) => {
                Ftype4::LNK.encode(w);
                text.encode(w);
            }
            Self::Block(device) => {
                Ftype4::BLK.encode(w);
                device.encode(w);
            }
            Self::Character(device) => {
                Ftype4::CHR.encode(w);
                device.encode(w);
            }
            Self::Other(kind) => kind.encode(w),
        }
    }
}

impl<'a> Decode<'a> for Createtype4<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match Ftype4::decode(r)? {
            Ftype4::LNK => Self::Link(Linktext4::decode(r)?),
            Ftype4::BLK => Self::Block(Specdata4::decode(r)?),
            Ftype4::CHR => Self::Character(Specdata4::decode(r)?),
            kind => Self::Other(kind),
        })
    }
}

/// `secinfo4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secinfo4<'a> {
    /// RPCSEC_GSS with its mechanism.
    Gss(RpcsecGssInfo<'a>),
    /// Any other flavour.
    Flavor(u32),
}

/// Flavour number of RPCSEC_GSS.
const RPCSEC_GSS: u32 = 6;

impl Encode for Secinfo4<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Gss(info) => {
                w.u32(RPCSEC_GSS);
                info.encode(w);
            }
            Self::Flavor(flavor) => w.u32(*flavor),
        }
    }
}

impl<'a> Decode<'a> for Secinfo4<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match r.u32("secinfo4.flavor")? {
            RPCSEC_GSS => Self::Gss(RpcsecGssInfo::decode(r)?),
            flavor => Self::Flavor(flavor),
        })
    }
}

xdr_structs! {
    /// `SECINFO4resok`.
    SecinfoResOk4<'a> { flavors: Seq<Secinfo4<'a>, NFS4_SMALL_LIST_MAX> }
}
