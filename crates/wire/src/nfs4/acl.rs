//! Access control lists (RFC 8881 §6.2): `nfsace4`, `acl`, `nfsacl41`.

#![allow(missing_docs, reason = "the RFC's member names are their documentation")]

use base::limits::NFS4_ACES_MAX;

use super::types::Utf8str;
use crate::xdr::Seq;

/// `fattr4_acl`.
pub type Acl4<'a> = Seq<Nfsace4<'a>, NFS4_ACES_MAX>;

xdr_structs! {
    /// `nfsace4`.
    #[derive(Copy)]
    Nfsace4<'a> { kind: u32, flag: u32, access_mask: u32, who: Utf8str<'a> }
    /// `nfsacl41`.
    Nfsacl41<'a> { flag: u32, aces: Acl4<'a> }
}

/// Kinds of entries (§6.2.1.1).
pub mod acetype4 {
    /// Allows.
    pub const ALLOWED: u32 = 0;
    /// Denies.
    pub const DENIED: u32 = 1;
    /// Notes.
    pub const AUDIT: u32 = 2;
    /// Alarms.
    pub const ALARM: u32 = 3;
}

/// What a server supports (`aclsupport`).
pub mod aclsupport4 {
    /// Entries that allow.
    pub const ALLOW: u32 = 1;
    /// Entries that deny.
    pub const DENY: u32 = 2;
}

/// Flags of entries (§6.2.1.4).
pub mod aceflag4 {
    pub const FILE_INHERIT: u32 = 0x01;
    pub const DIRECTORY_INHERIT: u32 = 0x02;
    pub const NO_PROPAGATE_INHERIT: u32 = 0x04;
    pub const INHERIT_ONLY: u32 = 0x08;
    pub const IDENTIFIER_GROUP: u32 = 0x40;
    pub const INHERITED: u32 = 0x80;
}

/// Rights in entries (§6.2.1.3).
pub mod acemask4 {
    pub const READ_DATA: u32 = 0x01;
    pub const WRITE_DATA: u32 = 0x02;
    pub const APPEND_DATA: u32 = 0x04;
    pub const READ_NAMED_ATTRS: u32 = 0x08;
    pub const WRITE_NAMED_ATTRS: u32 = 0x10;
    pub const EXECUTE: u32 = 0x20;
    pub const DELETE_CHILD: u32 = 0x40;
    pub const READ_ATTRIBUTES: u32 = 0x80;
    pub const WRITE_ATTRIBUTES: u32 = 0x100;
    pub const DELETE: u32 = 0x1_0000;
    pub const READ_ACL: u32 = 0x2_0000;
    pub const WRITE_ACL: u32 = 0x4_0000;
    pub const WRITE_OWNER: u32 = 0x8_0000;
    pub const SYNCHRONIZE: u32 = 0x10_0000;
}
