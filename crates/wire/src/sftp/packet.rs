//! Packets (draft-ietf-secsh-filexfer-02 §3): cutting them out of the bytes of a channel, and
//! writing them.

use base::limits::{SFTP_EXTENSIONS_MAX, SFTP_PACKET_MAX};

use super::data::Str;
use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Bytes of the length word.
pub const LENGTH_BYTES: usize = 4;

/// What a packet is (§3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketType(pub u8);

macro_rules! packet_types {
    ($($(#[$meta:meta])* $name:ident = $number:literal;)*) => {
        impl PacketType {
            $($(#[$meta])* pub const $name: Self = Self($number);)*

            /// All types that have a name, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

packet_types! {
    /// The client's version and extensions.
    INIT = 1;
    /// The server's.
    VERSION = 2;
    /// Open a file.
    OPEN = 3;
    /// End with a handle.
    CLOSE = 4;
    /// Read from an open file.
    READ = 5;
    /// Write to an open file.
    WRITE = 6;
    /// Attributes by path; of a symbolic link itself.
    LSTAT = 7;
    /// Attributes of an open file.
    FSTAT = 8;
    /// Change attributes by path.
    SETSTAT = 9;
    /// Change attributes of an open file.
    FSETSTAT = 10;
    /// Open a directory.
    OPENDIR = 11;
    /// The next names of an open directory.
    READDIR = 12;
    /// Remove a file.
    REMOVE = 13;
    /// Make a directory.
    MKDIR = 14;
    /// Remove an empty directory.
    RMDIR = 15;
    /// A path in its full form.
    REALPATH = 16;
    /// Attributes by path, symbolic links followed.
    STAT = 17;
    /// Give a file another name, which must be free.
    RENAME = 18;
    /// Where a symbolic link leads.
    READLINK = 19;
    /// Make a symbolic link.
    SYMLINK = 20;
    /// How it went.
    STATUS = 101;
    /// A handle.
    HANDLE = 102;
    /// Data.
    DATA = 103;
    /// Names with attributes.
    NAME = 104;
    /// Attributes.
    ATTRS = 105;
    /// A request of an extension.
    EXTENDED = 200;
    /// A reply of an extension.
    EXTENDED_REPLY = 201;
}

/// A packet cut out of the bytes of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// What it is.
    pub kind: PacketType,
    /// What follows the type.
    pub body: &'a [u8],
    /// Bytes that it took, its length word included.
    pub consumed: usize,
}

/// The packet at the front of `bytes`, or how many bytes there must be to know more.
///
/// # Errors
/// A length of 0 or beyond [`SFTP_PACKET_MAX`]: where the next packet begins is then unknown.
pub fn cut(bytes: &[u8]) -> Result<Result<Packet<'_>, usize>, DecodeError> {
    let Some((head, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(Err(LENGTH_BYTES));
    };
    let got = u32::from_be_bytes(*head);
    let len = got as usize;
    if len > SFTP_PACKET_MAX {
        return Err(DecodeError::TooLong { what: "packet", max: SFTP_PACKET_MAX, got: len });
    }
    let Some((packet, _)) = rest.split_at_checked(len) else {
        return Ok(Err(LENGTH_BYTES + len));
    };
    match packet.split_first() {
        None => Err(DecodeError::BadValue { what: "packet length", got }),
        Some((kind, body)) => {
            Ok(Ok(Packet { kind: PacketType(*kind), body, consumed: LENGTH_BYTES + len }))
        }
    }
}

/// Begins a packet; the answer is for [`end_packet`].
pub fn begin_packet(w: &mut Writer<'_>, kind: PacketType) -> usize {
    let at = w.len();
    w.u32(0);
    w.raw(&[kind.0]);
    at
}

/// Ends a packet: its length is known now. `apart` bytes of its end are sent from elsewhere.
pub fn end_packet(w: &mut Writer<'_>, begun: usize, apart: usize) {
    let len = w.len() - begun - LENGTH_BYTES + apart;
    debug_assert!(len <= SFTP_PACKET_MAX, "a packet of {len} bytes");
    w.patch_u32(begun, len as u32);
}

/// INIT and VERSION (§4): a version, and pairs of an extension's name and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The highest version of the client; what the server has chosen.
    pub version: u32,
    /// Names of extensions, and the data of each.
    pub extensions: Vec<(Str<'a>, Str<'a>)>,
}

impl Encode for Hello<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.version);
        for (name, data) in &self.extensions {
            name.encode(w);
            data.encode(w);
        }
    }
}

impl<'a> Decode<'a> for Hello<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let version = r.u32("version")?;
        let (mut extensions, max) = (Vec::new(), SFTP_EXTENSIONS_MAX);
        while !r.rest().is_empty() {
            if extensions.len() == max {
                return Err(DecodeError::TooLong { what: "extensions", max, got: max + 1 });
            }
            extensions.push((Str::decode(r)?, Str::decode(r)?));
        }
        Ok(Self { version, extensions })
    }
}
