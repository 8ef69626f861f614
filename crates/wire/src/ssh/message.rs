//! The messages of transport, authentication and connection protocol (RFC 4250, section 4.1).

use super::codec::{Malformed, Names, Put, Reader, Result};

/// Why a connection is ended (RFC 4253, section 11.1).
pub mod reason {
    /// Something that the protocol does not allow.
    pub const PROTOCOL_ERROR: u32 = 2;
    /// No algorithm in common, or a key that does not fit.
    pub const KEY_EXCHANGE_FAILED: u32 = 3;
    /// What arrived was changed on the way.
    pub const MAC_ERROR: u32 = 5;
    /// A service that is not offered.
    pub const SERVICE_NOT_AVAILABLE: u32 = 7;
    /// Another version of the protocol.
    pub const PROTOCOL_VERSION_NOT_SUPPORTED: u32 = 8;
    /// The host key is not the known one.
    pub const HOST_KEY_NOT_VERIFIABLE: u32 = 9;
    /// The application has ended the connection.
    pub const BY_APPLICATION: u32 = 11;
    /// The limit of connections is reached.
    pub const TOO_MANY_CONNECTIONS: u32 = 12;
    /// Nothing is left to try for authentication.
    pub const NO_MORE_AUTH_METHODS: u32 = 14;
}

/// Why a channel is not opened (RFC 4254, section 5.1).
pub mod open_reason {
    /// Not allowed here.
    pub const ADMINISTRATIVELY_PROHIBITED: u32 = 1;
    /// No such kind of channel.
    pub const UNKNOWN_CHANNEL_TYPE: u32 = 3;
    /// As many as there may be are there.
    pub const RESOURCE_SHORTAGE: u32 = 4;
}

/// Numbers of messages.
pub mod number {
    #![allow(missing_docs)]
    pub const DISCONNECT: u8 = 1;
    pub const IGNORE: u8 = 2;
    pub const UNIMPLEMENTED: u8 = 3;
    pub const DEBUG: u8 = 4;
    pub const SERVICE_REQUEST: u8 = 5;
    pub const SERVICE_ACCEPT: u8 = 6;
    pub const EXT_INFO: u8 = 7;
    pub const KEXINIT: u8 = 20;
    pub const NEWKEYS: u8 = 21;
    pub const KEX_ECDH_INIT: u8 = 30;
    pub const KEX_ECDH_REPLY: u8 = 31;
    pub const USERAUTH_REQUEST: u8 = 50;
    pub const USERAUTH_FAILURE: u8 = 51;
    pub const USERAUTH_SUCCESS: u8 = 52;
    pub const USERAUTH_BANNER: u8 = 53;
    /// PK_OK, INFO_REQUEST or PASSWD_CHANGEREQ, depending on the method in progress.
    pub const USERAUTH_60: u8 = 60;
    pub const USERAUTH_INFO_RESPONSE: u8 = 61;
    pub const GLOBAL_REQUEST: u8 = 80;
    pub const REQUEST_SUCCESS: u8 = 81;
    pub const REQUEST_FAILURE: u8 = 82;
    pub const CHANNEL_OPEN: u8 = 90;
    pub const CHANNEL_OPEN_CONFIRMATION: u8 = 91;
    pub const CHANNEL_OPEN_FAILURE: u8 = 92;
    pub const CHANNEL_WINDOW_ADJUST: u8 = 93;
    pub const CHANNEL_DATA: u8 = 94;
    pub const CHANNEL_EXTENDED_DATA: u8 = 95;
    pub const CHANNEL_EOF: u8 = 96;
    pub const CHANNEL_CLOSE: u8 = 97;
    pub const CHANNEL_REQUEST: u8 = 98;
    pub const CHANNEL_SUCCESS: u8 = 99;
    pub const CHANNEL_FAILURE: u8 = 100;
}

/// A message. Strings borrow from the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Message<'a> {
    Disconnect {
        reason: u32,
        description: &'a [u8],
    },
    Ignore(&'a [u8]),
    Unimplemented {
        sequence: u32,
    },
    Debug {
        display: bool,
        message: &'a [u8],
    },
    ServiceRequest(&'a str),
    ServiceAccept(&'a str),
    ExtInfo(Extensions<'a>),
    KexInit(KexInit<'a>),
    NewKeys,
    /// The client's part of the key exchange (RFC 5656, section 4).
    KexEcdhInit(&'a [u8]),
    /// The server's part: its key, its share, and its signature of the exchange.
    KexEcdhReply {
        host_key: &'a [u8],
        share: &'a [u8],
        signature: &'a [u8],
    },
    UserauthRequest(AuthRequest<'a>),
    UserauthFailure {
        methods: Names<'a>,
        partial: bool,
    },
    UserauthSuccess,
    UserauthBanner {
        message: &'a [u8],
        language: &'a [u8],
    },
    /// The body of message 60; see [`PkOk`] and [`InfoRequest`].
    Userauth60(&'a [u8]),
    /// The answers to an [`InfoRequest`].
    UserauthInfoResponse(Strings<'a>),
    GlobalRequest {
        name: &'a str,
        want_reply: bool,
        data: &'a [u8],
    },
    RequestSuccess(&'a [u8]),
    RequestFailure,
    ChannelOpen {
        kind: &'a str,
        sender: u32,
        window: u32,
        packet_max: u32,
        data: &'a [u8],
    },
    ChannelOpenConfirmation {
        recipient: u32,
        sender: u32,
        window: u32,
        packet_max: u32,
    },
    ChannelOpenFailure {
        recipient: u32,
        reason: u32,
        description: &'a [u8],
    },
    ChannelWindowAdjust {
        recipient: u32,
        bytes: u32,
    },
    ChannelData {
        recipient: u32,
        data: &'a [u8],
    },
    ChannelExtendedData {
        recipient: u32,
        kind: u32,
        data: &'a [u8],
    },
    ChannelEof {
        recipient: u32,
    },
    ChannelClose {
        recipient: u32,
    },
    ChannelRequest {
        recipient: u32,
        kind: &'a str,
        want_reply: bool,
        data: &'a [u8],
    },
    ChannelSuccess {
        recipient: u32,
    },
    ChannelFailure {
        recipient: u32,
    },
    /// A number that we know nothing of.
    Unknown(u8),
}

/// What each side is willing to use (RFC 4253, section 7.1), the preferred first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct KexInit<'a> {
    pub cookie: [u8; 16],
    pub kex: Names<'a>,
    pub host_key: Names<'a>,
    /// Ciphers: client to server, server to client. So with the two that follow.
    pub cipher: [Names<'a>; 2],
    pub mac: [Names<'a>; 2],
    pub compression: [Names<'a>; 2],
    pub languages: [Names<'a>; 2],
    /// A guessed key exchange packet follows.
    pub follows: bool,
}

/// A request for authentication (RFC 4252, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AuthRequest<'a> {
    pub user: &'a str,
    pub service: &'a str,
    pub method: Method<'a>,
}

/// The method of an authentication request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method<'a> {
    None,
    /// RFC 4252, section 8. `new` is there when the password is to be changed.
    Password {
        password: &'a [u8],
        new: Option<&'a [u8]>,
    },
    /// RFC 4252, section 7; without a signature it is a question whether the key would do.
    PublicKey {
        algorithm: &'a str,
        key: &'a [u8],
        signature: Option<&'a [u8]>,
    },
    /// RFC 4256.
    KeyboardInteractive {
        language: &'a [u8],
        submethods: &'a [u8],
    },
    /// A method that we know nothing of.
    Other(&'a str),
}

/// Pairs of names and values in EXT_INFO (RFC 8308, section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extensions<'a> {
    count: u32,
    body: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// The pairs in order; a broken tail was refused when it was decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let mut r = Reader::new(self.body);
        (0..self.count).map_while(move |_| Some((r.name("name").ok()?, r.string("value").ok()?)))
    }
}

/// Strings after their number (RFC 4256, section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strings<'a> {
    count: u32,
    body: &'a [u8],
}

impl<'a> Strings<'a> {
    /// The strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut r = Reader::new(self.body);
        (0..self.count).map_while(move |_| r.string("response").ok())
    }
}

/// The key would do (message 60, RFC 4252, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PkOk<'a> {
    pub algorithm: &'a str,
    pub key: &'a [u8],
}

impl<'a> PkOk<'a> {
    /// Reads the body of message 60.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(body);
        let it = Self { algorithm: r.name("algorithm")?, key: r.string("key")? };
        r.end()?;
        Ok(it)
    }

    /// Appends the whole message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_byte(number::USERAUTH_60);
        out.put_string(self.algorithm.as_bytes());
        out.put_string(self.key);
    }
}

/// Prompts for the user (message 60, RFC 4256, section 3.2); ours has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct InfoRequest<'a> {
    pub name: &'a [u8],
    pub instruction: &'a [u8],
    /// The question, if there is one, and whether the answer may be shown.
    pub prompt: Option<(&'a [u8], bool)>,
}

impl<'a> InfoRequest<'a> {
    /// Reads the body of message 60; of several questions, the first.
    ///
    /// # Errors
    /// When it is none.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(body);
        let (name, instruction) = (r.string("name")?, r.string("instruction")?);
        r.string("language")?;
        let prompt = match r.u32("prompts")? {
            0 => None,
            _ => Some((r.string("prompt")?, r.boolean("echo")?)),
        };
        Ok(Self { name, instruction, prompt })
    }

    /// Appends the whole message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_byte(number::USERAUTH_60);
        out.put_string(self.name);
        out.put_string(self.instruction);
        out.put_string(b"");
        out.put_u32(u32::from(self.prompt.is_some()));
        if let Some((prompt, echo)) = self.prompt {
            out.put_string(prompt);
            out.put_bool(echo);
        }
    }
}

/// Appends the answers to an [`InfoRequest`] as a whole message.
pub fn put_info_response(out: &mut Vec<u8>, answers: &[&[u8]]) {
    out.put_byte(number::USERAUTH_INFO_RESPONSE);
    out.put_u32(answers.len() as u32);
    answers.iter().for_each(|answer| out.put_string(answer));
}

/// Appends what the server is able to, as a whole message EXT_INFO.
pub fn put_ext_info(out: &mut Vec<u8>, pairs: &[(&str, &[u8])]) {
    out.put_byte(number::EXT_INFO);
    out.put_u32(pairs.len() as u32);
    for (name, value) in pairs {
        out.put_string(name.as_bytes());
        out.put_string(value);
    }
}

impl<'a> KexInit<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self> {
        let it = Self {
            cookie: r.array("cookie")?,
            kex: r.names("kex_algorithms")?,
            host_key: r.names("server_host_key_algorithms")?,
            cipher: [r.names("encryption_algorithms")?, r.names("encryption_algorithms")?],
            mac: [r.names("mac_algorithms")?, r.names("mac_algorithms")?],
            compression: [r.names("compression_algorithms")?, r.names("compression_algorithms")?],
            languages: [r.names("languages")?, r.names("languages")?],
            follows: r.boolean("first_kex_packet_follows")?,
        };
        r.u32("reserved")?;
        Ok(it)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_raw(&self.cookie);
        out.put_string(self.kex.0.as_bytes());
        out.put_string(self.host_key.0.as_bytes());
        for both in [&self.cipher, &self.mac, &self.compression, &self.languages] {
            both.iter().for_each(|names| out.put_string(names.0.as_bytes()));
        }
        out.put_bool(self.follows);
        out.put_u32(0);
    }
}

impl<'a> AuthRequest<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self> {
        let (user, service) = (r.text("user name")?, r.name("service name")?);
        let method = match r.name("method name")? {
            "none" => Method::None,
            "password" => {
                let change = r.boolean("change")?;
                let password = r.string("password")?;
                let new = if change { Some(r.string("new password")?) } else { None };
                Method::Password { password, new }
            }
            "publickey" => {
                let signed = r.boolean("has signature")?;
                let (algorithm, key) = (r.name("algorithm")?, r.string("public key")?);
                let signature = if signed { Some(r.string("signature")?) } else { None };
                Method::PublicKey { algorithm, key, signature }
            }
            "keyboard-interactive" => Method::KeyboardInteractive {
                language: r.string("language")?,
                submethods: r.string("submethods")?,
            },
            other => {
                r.take_rest();
                Method::Other(other)
            }
        };
        Ok(Self { user, service, method })
    }

    /// Appends the whole message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_byte(number::USERAUTH_REQUEST);
        out.put_string(self.user.as_bytes());
        out.put_string(self.service.as_bytes());
        match self.method {
            Method::None => out.put_string(b"none"),
            Method::Password { password, new } => {
                out.put_string(b"password");
                out.put_bool(new.is_some());
                out.put_string(password);
                new.into_iter().for_each(|new| out.put_string(new));
            }
            Method::PublicKey { algorithm, key, signature } => {
                out.put_string(b"publickey");
                out.put_bool(signature.is_some());
                out.put_string(algorithm.as_bytes());
                out.put_string(key);
                signature.into_iter().for_each(|signature| out.put_string(signature));
            }
            Method::KeyboardInteractive { language, submethods } => {
                out.put_string(b"keyboard-interactive");
                out.put_string(language);
                out.put_string(submethods);
            }
            Method::Other(name) => out.put_string(name.as_bytes()),
        }
    }

    /// What a client signs to prove that it has the key (RFC 4252, section 7).
    pub fn to_be_signed(&self, session: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(session);
        if let Method::PublicKey { algorithm, key, .. } = self.method {
            out.put_byte(number::USERAUTH_REQUEST);
            out.put_string(self.user.as_bytes());
            out.put_string(self.service.as_bytes());
            out.put_string(b"publickey");
            out.put_bool(true);
            out.put_string(algorithm.as_bytes());
            out.put_string(key);
        }
        out
    }
}

mod convert;

/// The recipient of a channel's message, if `payload` is CHANNEL_DATA, and the data: the one that
/// matters for speed.
pub fn channel_data(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (head, data) = payload.split_first_chunk::<9>()?;
    let [number::CHANNEL_DATA, a, b, c, d, e, f, g, h] = *head else { return None };
    (u32::from_be_bytes([e, f, g, h]) as usize == data.len())
        .then_some((u32::from_be_bytes([a, b, c, d]), data))
}

/// The number of a message, without looking at the rest.
///
/// # Errors
/// [`Malformed::Short`] when the packet is empty.
pub fn number_of(payload: &[u8]) -> Result<u8> {
    payload.first().copied().ok_or(Malformed::Short("message number"))
}
