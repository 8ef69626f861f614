//! Messages to and from bytes.

use super::super::codec::{Put, Reader, Result};
use super::{AuthRequest, Extensions, KexInit, Message, Strings, number};

impl<'a> Message<'a> {
    /// Reads the message that `payload` is.
    ///
    /// # Errors
    /// When a field is cut off, too long or senseless, or something follows.
    pub fn decode(payload: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(payload);
        let message = match r.byte("message number")? {
            known @ ..=49 => Self::decode_transport(known, &mut r)?,
            known @ 50..=79 => Self::decode_auth(known, &mut r)?,
            known => Self::decode_connection(known, &mut r)?,
        };
        if !matches!(message, Self::Unknown(_)) {
            r.end()?;
        }
        Ok(message)
    }

    fn decode_transport(known: u8, r: &mut Reader<'a>) -> Result<Self> {
        Ok(match known {
            number::DISCONNECT => {
                let (reason, description) = (r.u32("reason")?, r.string("description")?);
                // Some leave the language out.
                r.take_rest();
                Self::Disconnect { reason, description }
            }
            number::IGNORE => Self::Ignore(r.take_rest()),
            number::UNIMPLEMENTED => Self::Unimplemented { sequence: r.u32("sequence")? },
            number::DEBUG => {
                let (display, message) = (r.boolean("display")?, r.string("message")?);
                r.take_rest();
                Self::Debug { display, message }
            }
            number::SERVICE_REQUEST => Self::ServiceRequest(r.name("service")?),
            number::SERVICE_ACCEPT => Self::ServiceAccept(r.name("service")?),
            number::EXT_INFO => {
                let (count, body) = (r.u32("extensions")?, r.rest());
                // Each takes eight bytes at least, so this ends with the packet.
                for _ in 0..count {
                    r.name("extension name")?;
                    r.string("extension value")?;
                }
                let used = body.len() - r.rest().len();
                Self::ExtInfo(Extensions { count, body: body.get(..used).unwrap_or_default() })
            }
            number::KEXINIT => Self::KexInit(KexInit::decode(r)?),
            number::NEWKEYS => Self::NewKeys,
            number::KEX_ECDH_INIT => Self::KexEcdhInit(r.string("client share")?),
            number::KEX_ECDH_REPLY => Self::KexEcdhReply {
                host_key: r.string("host key")?,
                share: r.string("server share")?,
                signature: r.string("signature")?,
            },
            other => Self::Unknown(other),
        })
    }

    fn decode_auth(known: u8, r: &mut Reader<'a>) -> Result<Self> {
        Ok(match known {
            number::USERAUTH_REQUEST => Self::UserauthRequest(AuthRequest::decode(r)?),
            number::USERAUTH_FAILURE => Self::UserauthFailure {
                methods: r.names("methods that can continue")?,
                partial: r.boolean("partial success")?,
            },
            number::USERAUTH_SUCCESS => Self::UserauthSuccess,
            number::USERAUTH_BANNER => Self::UserauthBanner {
                message: r.string("banner")?,
                language: r.string("language")?,
            },
            number::USERAUTH_60 => Self::Userauth60(r.take_rest()),
            number::USERAUTH_INFO_RESPONSE => {
                let (count, body) = (r.u32("responses")?, r.rest());
                for _ in 0..count {
                    r.string("response")?;
                }
                let used = body.len() - r.rest().len();
                let body = body.get(..used).unwrap_or_default();
                Self::UserauthInfoResponse(Strings { count, body })
            }
            other => Self::Unknown(other),
        })
    }

    fn decode_connection(known: u8, r: &mut Reader<'a>) -> Result<Self> {
        let recipient = match known {
            number::CHANNEL_OPEN_CONFIRMATION..=number::CHANNEL_FAILURE => r.u32("recipient")?,
            _ => 0,
        };
        Ok(match known {
            number::GLOBAL_REQUEST => Self::GlobalRequest {
                name: r.name("request")?,
                want_reply: r.boolean("want reply")?,
                data: r.take_rest(),
            },
            number::REQUEST_SUCCESS => Self::RequestSuccess(r.take_rest()),
            number::REQUEST_FAILURE => Self::RequestFailure,
            number::CHANNEL_OPEN => Self::ChannelOpen {
                kind: r.name("channel type")?,
                sender: r.u32("sender channel")?,
                window: r.u32("initial window size")?,
                packet_max: r.u32("maximum packet size")?,
                data: r.take_rest(),
            },
            number::CHANNEL_OPEN_CONFIRMATION => {
                let (sender, window) = (r.u32("sender channel")?, r.u32("initial window size")?);
                let packet_max = r.u32("maximum packet size")?;
                r.take_rest();
                Self::ChannelOpenConfirmation { recipient, sender, window, packet_max }
            }
            number::CHANNEL_OPEN_FAILURE => {
                let (reason, description) = (r.u32("reason")?, r.string("description")?);
                r.take_rest();
                Self::ChannelOpenFailure { recipient, reason, description }
            }
            number::CHANNEL_WINDOW_ADJUST => {
                Self::ChannelWindowAdjust { recipient, bytes: r.u32("bytes to add")? }
            }
            number::CHANNEL_DATA => Self::ChannelData { recipient, data: r.string("data")? },
            number::CHANNEL_EXTENDED_DATA => Self::ChannelExtendedData {
                recipient,
                kind: r.u32("data type")?,
                data: r.string("data")?,
            },
            number::CHANNEL_EOF => Self::ChannelEof { recipient },
            number::CHANNEL_CLOSE => Self::ChannelClose { recipient },
            number::CHANNEL_REQUEST => Self::ChannelRequest {
                recipient,
                kind: r.name("request type")?,
                want_reply: r.boolean("want reply")?,
                data: r.take_rest(),
            },
            number::CHANNEL_SUCCESS => Self::ChannelSuccess { recipient },
            number::CHANNEL_FAILURE => Self::ChannelFailure { recipient },
            other => Self::Unknown(other),
        })
    }

    /// Appends the message. [`Message::Unknown`] is only its number.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_byte(self.number());
        match self {
            Self::NewKeys | Self::UserauthSuccess | Self::RequestFailure | Self::Unknown(_) => {}
            Self::Disconnect { reason, description } => {
                out.put_u32(*reason);
                out.put_string(description);
                out.put_string(b"");
            }
            Self::Ignore(data) | Self::RequestSuccess(data) | Self::Userauth60(data) => {
                out.put_raw(data);
            }
            Self::Unimplemented { sequence } => out.put_u32(*sequence),
            Self::Debug { display, message } => {
                out.put_bool(*display);
                out.put_string(message);
                out.put_string(b"");
            }
            Self::ServiceRequest(name) | Self::ServiceAccept(name) => {
                out.put_string(name.as_bytes());
            }
            Self::ExtInfo(Extensions { count, body })
            | Self::UserauthInfoResponse(Strings { count, body }) => {
                out.put_u32(*count);
                out.put_raw(body);
            }
            Self::KexInit(init) => init.encode(out),
            Self::KexEcdhInit(share) => out.put_string(share),
            Self::KexEcdhReply { host_key, share, signature } => {
                [host_key, share, signature].iter().for_each(|part| out.put_string(part));
            }
            Self::UserauthRequest(request) => {
                out.pop();
                request.encode(out);
            }
            Self::UserauthFailure { methods, partial } => {
                out.put_string(methods.0.as_bytes());
                out.put_bool(*partial);
            }
            Self::UserauthBanner { message, language } => {
                out.put_string(message);
                out.put_string(language);
            }
            _ => self.encode_connection(out),
        }
    }

    fn encode_connection(&self, out: &mut Vec<u8>) {
        match *self {
            Self::GlobalRequest { name, want_reply, data } => {
                out.put_string(name.as_bytes());
                out.put_bool(want_reply);
                out.put_raw(data);
            }
            Self::ChannelOpen { kind, sender, window, packet_max, data } => {
                out.put_string(kind.as_bytes());
                [sender, window, packet_max].iter().for_each(|n| out.put_u32(*n));
                out.put_raw(data);
            }
            Self::ChannelOpenConfirmation { recipient, sender, window, packet_max } => {
                [recipient, sender, window, packet_max].iter().for_each(|n| out.put_u32(*n));
            }
            Self::ChannelOpenFailure { recipient, reason, description } => {
                out.put_u32(recipient);
                out.put_u32(reason);
                out.put_string(description);
                out.put_string(b"");
            }
            Self::ChannelWindowAdjust { recipient, bytes } => {
                out.put_u32(recipient);
                out.put_u32(bytes);
            }
            Self::ChannelData { recipient, data } => {
                out.put_u32(recipient);
                out.put_string(data);
            }
            Self::ChannelExtendedData { recipient, kind, data } => {
                out.put_u32(recipient);
                out.put_u32(kind);
                out.put_string(data);
            }
            Self::ChannelRequest { recipient, kind, want_reply, data } => {
                out.put_u32(recipient);
                out.put_string(kind.as_bytes());
                out.put_bool(want_reply);
                out.put_raw(data);
            }
            Self::ChannelEof { recipient }
            | Self::ChannelClose { recipient }
            | Self::ChannelSuccess { recipient }
            | Self::ChannelFailure { recipient } => out.put_u32(recipient),
            _ => {}
        }
    }

    /// Its number.
    pub fn number(&self) -> u8 {
        match self {
            Self::Disconnect { .. } => number::DISCONNECT,
            Self::Ignore(_) => number::IGNORE,
            Self::Unimplemented { .. } => number::UNIMPLEMENTED,
            Self::Debug { .. } => number::DEBUG,
            Self::ServiceRequest(_) => number::SERVICE_REQUEST,
            Self::ServiceAccept(_) => number::SERVICE_ACCEPT,
            Self::ExtInfo(_) => number::EXT_INFO,
            Self::KexInit(_) => number::KEXINIT,
            Self::NewKeys => number::NEWKEYS,
            Self::KexEcdhInit(_) => number::KEX_ECDH_INIT,
            Self::KexEcdhReply { .. } => number::KEX_ECDH_REPLY,
            Self::UserauthRequest(_) => number::USERAUTH_REQUEST,
            Self::UserauthFailure { .. } => number::USERAUTH_FAILURE,
            Self::UserauthSuccess => number::USERAUTH_SUCCESS,
            Self::UserauthBanner { .. } => number::USERAUTH_BANNER,
            Self::Userauth60(_) => number::USERAUTH_60,
            Self::UserauthInfoResponse(_) => number::USERAUTH_INFO_RESPONSE,
            Self::GlobalRequest { .. } => number::GLOBAL_REQUEST,
            Self::RequestSuccess(_) => number::REQUEST_SUCCESS,
            Self::RequestFailure => number::REQUEST_FAILURE,
            Self::ChannelOpen { .. } => number::CHANNEL_OPEN,
            Self::ChannelOpenConfirmation { .. } => number::CHANNEL_OPEN_CONFIRMATION,
            Self::ChannelOpenFailure { .. } => number::CHANNEL_OPEN_FAILURE,
            Self::ChannelWindowAdjust { .. } => number::CHANNEL_WINDOW_ADJUST,
            Self::ChannelData { .. } => number::CHANNEL_DATA,
            Self::ChannelExtendedData { .. } => number::CHANNEL_EXTENDED_DATA,
            Self::ChannelEof { .. } => number::CHANNEL_EOF,
            Self::ChannelClose { .. } => number::CHANNEL_CLOSE,
            Self::ChannelRequest { .. } => number::CHANNEL_REQUEST,
            Self::ChannelSuccess { .. } => number::CHANNEL_SUCCESS,
            Self::ChannelFailure { .. } => number::CHANNEL_FAILURE,
            Self::Unknown(other) => *other,
        }
    }
}
