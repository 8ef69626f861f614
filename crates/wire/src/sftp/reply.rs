//! What servers answer (draft-ietf-secsh-filexfer-02 §7), after the id of the request.

use base::limits::SFTP_PACKET_MAX;

use super::attrs::Attrs;
use super::data::{Data, HandleBytes, Str};
use super::names::Names;
use super::packet::{LENGTH_BYTES, PacketType, begin_packet, end_packet};
use crate::xdr::{Decode, DecodeError, Encode, Item, Reader, Writer};

xdr_enum! {
    /// How a request went (§7).
    pub enum StatusCode {
        /// It is done.
        OK = 0 "SSH_FX_OK",
        /// There are no more bytes, no more names.
        EOF = 1 "SSH_FX_EOF",
        /// There is no such file.
        NO_SUCH_FILE = 2 "SSH_FX_NO_SUCH_FILE",
        /// The caller's rights do not reach.
        PERMISSION_DENIED = 3 "SSH_FX_PERMISSION_DENIED",
        /// Anything else.
        FAILURE = 4 "SSH_FX_FAILURE",
        /// The packet does not match its type, or the handle is invalid.
        BAD_MESSAGE = 5 "SSH_FX_BAD_MESSAGE",
        /// A client's own: there is no connection.
        NO_CONNECTION = 6 "SSH_FX_NO_CONNECTION",
        /// A client's own: the connection was lost.
        CONNECTION_LOST = 7 "SSH_FX_CONNECTION_LOST",
        /// The server cannot do this.
        OP_UNSUPPORTED = 8 "SSH_FX_OP_UNSUPPORTED",
    }
}

xdr_structs! {
    /// STATUS. OpenSSH and all after it also send the words and their language.
    #[derive(Copy)]
    Status<'a> { code: StatusCode, message: Str<'a>, language: Str<'a> }
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<'a> {
    /// How it went.
    Status(Status<'a>),
    /// A handle.
    Handle(HandleBytes<'a>),
    /// Data.
    Data(Data<'a>),
    /// Names.
    Name(Names<'a>),
    /// Attributes.
    Attrs(Attrs),
    /// The reply of an extension; its format depends on the request.
    Extended(&'a [u8]),
}

impl<'a> Reply<'a> {
    /// The type of its packet.
    pub const fn kind(&self) -> PacketType {
        match self {
            Self::Status(_) => PacketType::STATUS,
            Self::Handle(_) => PacketType::HANDLE,
            Self::Data(_) => PacketType::DATA,
            Self::Name(_) => PacketType::NAME,
            Self::Attrs(_) => PacketType::ATTRS,
            Self::Extended(_) => PacketType::EXTENDED_REPLY,
        }
    }

    /// The reply of a packet of this type, `r` being after its id. `None` for a type that is no
    /// reply.
    ///
    /// # Errors
    /// [`DecodeError`]. Where the next packet begins is known all the same.
    pub fn decode(kind: PacketType, r: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        Ok(Some(match kind {
            PacketType::STATUS => Self::Status(status(r)?),
            PacketType::HANDLE => Self::Handle(HandleBytes::decode(r)?),
            PacketType::DATA => Self::Data(Data::decode(r)?),
            PacketType::NAME => Self::Name(Names::item(r, "names")?),
            PacketType::ATTRS => Self::Attrs(Attrs::decode(r)?),
            PacketType::EXTENDED_REPLY => {
                let rest = r.rest();
                *r = Reader::new(&[]);
                Self::Extended(rest)
            }
            _ => return Ok(None),
        }))
    }

    /// Appends the whole packet.
    pub fn put(&self, w: &mut Writer<'_>, id: u32) {
        let begun = begin_packet(w, self.kind());
        w.u32(id);
        self.encode(w);
        end_packet(w, begun, 0);
    }
}

/// Old servers send the number alone.
fn status<'a>(r: &mut Reader<'a>) -> Result<Status<'a>, DecodeError> {
    let code = StatusCode::decode(r)?;
    if r.rest().is_empty() {
        return Ok(Status { code, message: Str(b""), language: Str(b"") });
    }
    Ok(Status { code, message: Str::decode(r)?, language: Str::decode(r)? })
}

impl Encode for Reply<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Status(status) => status.encode(w),
            Self::Handle(handle) => handle.encode(w),
            Self::Data(data) => data.encode(w),
            Self::Name(names) => names.encode(w),
            Self::Attrs(attrs) => attrs.encode(w),
            Self::Extended(rest) => w.raw(rest),
        }
    }
}

/// Begins a DATA packet of `len` bytes, which the caller appends or sends from elsewhere.
pub fn data_head(w: &mut Writer<'_>, id: u32, len: usize) {
    let begun = begin_packet(w, PacketType::DATA);
    w.u32(id);
    w.u32(len as u32);
    end_packet(w, begun, len);
}

/// Bytes of what [`data_head`] writes.
pub const DATA_HEAD: usize = 13;

/// The id of the DATA packet that begins here, and how many bytes of data follow [`DATA_HEAD`], for
/// receivers that process data before the end of the packet. `None` for anything else, and for less
/// than that much of it.
pub fn data_begin(bytes: &[u8]) -> Option<(u32, usize)> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let r = &mut Reader::new(rest.strip_prefix(&[PacketType::DATA.0])?);
    let (id, count) = (r.u32("id").ok()?, r.u32("count").ok()? as usize);
    let length = u32::from_be_bytes(*length) as usize;
    let is_one = length <= SFTP_PACKET_MAX && length + LENGTH_BYTES == DATA_HEAD + count;
    is_one.then_some((id, count))
}

#[cfg(test)]
impl<'a> crate::arb::Arb<'a> for Reply<'a> {
    fn arb(g: &mut crate::arb::Gen<'a>) -> Self {
        match g.byte() % 6 {
            0 => Self::Status(g.arb()),
            1 => Self::Handle(g.arb()),
            2 => Self::Data(g.arb()),
            3 => Self::Name(g.arb()),
            4 => Self::Attrs(g.arb()),
            _ => Self::Extended(g.arb()),
        }
    }
}
