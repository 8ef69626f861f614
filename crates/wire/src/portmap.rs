//! Port mapper version 2 and rpcbind versions 3 and 4 (RFC 1833): which port serves which program.

use base::limits::RPCB_STRING_MAX;
use base::text::decimal;

use crate::mount3::List;

#[cfg(test)]
mod tests;

/// RPC program number of port mapper and rpcbind.
pub const PMAP_PROGRAM: u32 = 100_000;
/// Port mapper.
pub const PMAP_V2: u32 = 2;
/// rpcbind, first version.
pub const RPCB_V3: u32 = 3;
/// rpcbind, second version.
pub const RPCB_V4: u32 = 4;
/// Protocol number of TCP in a [`Mapping`].
pub const IPPROTO_TCP: u32 = 6;
/// Protocol number of UDP in a [`Mapping`].
pub const IPPROTO_UDP: u32 = 17;

xdr_enum! {
    /// Procedures of version 2. In versions 3 and 4 number 3 is GETADDR, the others up to 4 do
    /// the same.
    pub enum Proc {
        /// Do nothing.
        NULL = 0 "null",
        /// Register.
        SET = 1 "set",
        /// Take back.
        UNSET = 2 "unset",
        /// Find a port (GETADDR in versions 3 and 4).
        GETPORT = 3 "getport",
        /// List all.
        DUMP = 4 "dump",
    }
}

/// Procedures of versions 3 and 4 that version 2 has not, or has under another name.
pub mod rpcb {
    /// As GETPORT, with a universal address.
    pub const GETADDR: u32 = 3;
    /// The seconds since the epoch.
    pub const GETTIME: u32 = 6;
    /// As GETADDR, but of this version only (version 4).
    pub const GETVERSADDR: u32 = 9;
}

xdr_struct! {
    /// Which program is on which port (`mapping`): argument of SET, UNSET and GETPORT. GETPORT
    /// answers with a port as `u32`, 0 for none; SET and UNSET with a boolean.
    #[derive(Copy)]
    pub struct Mapping {
        /// Program.
        pub prog: u32,
        /// Version.
        pub vers: u32,
        /// Protocol: [`IPPROTO_TCP`] or [`IPPROTO_UDP`].
        pub prot: u32,
        /// Port.
        pub port: u32,
    }
}

/// Result of DUMP, version 2.
pub type DumpRes = List<Mapping>;

xdr_bytes! {
    /// A string of rpcbind: network identifier ("tcp"), universal address ("127.0.0.1.8.1"),
    /// owner. GETADDR answers with one, empty for none.
    pub struct RpcbString, RPCB_STRING_MAX, "rpcb string"
}

xdr_struct! {
    /// Which program is at which address (`rpcb`).
    #[derive(Copy)]
    pub struct Rpcb<'a> {
        /// Program.
        pub prog: u32,
        /// Version.
        pub vers: u32,
        /// Network identifier.
        pub netid: RpcbString<'a>,
        /// Universal address.
        pub addr: RpcbString<'a>,
        /// Owner.
        pub owner: RpcbString<'a>,
    }
}

/// The address and port of a universal address (RFC 1833 appendix, RFC 5665 §5.2.3.3): the address
/// as text, a dot, and the two bytes of the port. The address is not looked at.
pub fn uaddr_parts(text: &[u8]) -> Option<(&str, u16)> {
    let text = std::str::from_utf8(text).ok()?;
    let (rest, low) = text.rsplit_once('.')?;
    let (host, high) = rest.rsplit_once('.')?;
    let (high, low): (u8, u8) = (decimal(high)?, decimal(low)?);
    Some((host, u16::from_be_bytes([high, low])))
}

/// The universal address of `host`, an address as text, and a port.
pub fn uaddr(host: &str, port: u16) -> String {
    let [high, low] = port.to_be_bytes();
    format!("{host}.{high}.{low}")
}

/// Result of DUMP, versions 3 and 4.
pub type RpcbDumpRes<'a> = List<Rpcb<'a>>;
