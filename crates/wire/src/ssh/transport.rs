//! The transport of one connection, for both sides (RFC 4253), without any I/O: bytes received go
//! in, payloads of packets come out, and what is to be sent collects in a buffer, sealed.
//!
//! Key exchange, the first and all later ones, happens in here. While one is in progress nothing
//! else may be sent: short replies wait in here, and data is not taken
//! ([`Transport::may_send_data`]).

use std::sync::Arc;

use base::limits::{
    SSH_HELD_MAX, SSH_LINES_MAX, SSH_REKEY_PACKETS, SSH_REKEY_TIME, SSH_VERSION_MAX,
};
use base::random::Random;

use super::codec::Malformed;
use super::host_key::HostKey;
use super::kex::{self, NothingInCommon, Policy};
use super::message::{Message, number, number_of, reason};
use super::packet::{Broken, Opened, Opener};

mod exchange;
mod output;

use exchange::Exchange;
use output::Output;

/// Why a connection must end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The peer does not support SSH 2.
    #[error("the peer does not support SSH 2")]
    Version,
    /// The peer sent a message that cannot be read.
    #[error("the peer sent a message that cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// The peer sent what it may not send now.
    #[error("the peer sent {0}")]
    Protocol(&'static str),
    /// The peer can do nothing that we can.
    #[error("algorithm negotiation: {0}")]
    Negotiation(#[from] NothingInCommon),
    /// A packet cannot be opened or sealed.
    #[error("{0}")]
    Packet(#[from] Broken),
    /// The key exchange has failed.
    #[error("the key exchange with the peer has failed")]
    KeyExchange,
    /// The server's key is not the one that was expected.
    #[error("the server's host key does not match: {0}")]
    HostKey(String),
    /// The peer has ended the connection.
    #[error("the peer has ended the connection ({reason}): {description}")]
    Disconnected {
        /// Its reason (RFC 4253, section 11.1).
        reason: u32,
        /// Its description.
        description: String,
    },
}

impl Error {
    /// The reason of the DISCONNECT for the peer, if one is sent.
    pub fn reason(&self) -> Option<u32> {
        Some(match self {
            Self::Version => reason::PROTOCOL_VERSION_NOT_SUPPORTED,
            Self::Malformed(_) | Self::Protocol(_) => reason::PROTOCOL_ERROR,
            Self::Negotiation(_) | Self::KeyExchange => reason::KEY_EXCHANGE_FAILED,
            Self::Packet(_) => reason::MAC_ERROR,
            Self::HostKey(_) => reason::HOST_KEY_NOT_VERIFIABLE,
            Self::Disconnected { .. } => return None,
        })
    }
}

/// What a server brings along.
#[derive(Debug)]
pub struct ServerSetup {
    /// Name and version of the software, as in `SSH-2.0-NAME`: no blanks or dashes.
    pub software: String,
    /// What may be used.
    pub policy: Policy,
    /// Its keys, the preferred first. Without one no connection comes about.
    pub host_keys: Vec<Arc<HostKey>>,
}

/// What a client brings along.
#[derive(Debug)]
pub struct ClientSetup {
    /// As [`ServerSetup::software`].
    pub software: String,
    /// What may be used.
    pub policy: Policy,
    /// The server's key; without it any is taken, and to be looked at before one signs in.
    pub host_key: Option<Vec<u8>>,
}

/// Which side one is.
#[derive(Clone)]
pub enum Side {
    /// The server.
    Server(Arc<ServerSetup>),
    /// The client.
    Client(Arc<ClientSetup>),
}

/// The result of received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// No complete packet yet: at least this many bytes are needed from the first one on.
    Need(usize),
    /// This many bytes were for the transport itself.
    Handled(usize),
    /// A packet of this many bytes with a message for another layer.
    Packet(usize, &'a [u8]),
}

/// The transport of a connection.
pub struct Transport {
    side: Side,
    random: Box<dyn Random>,
    opener: Opener,
    output: Output,
    /// The version lines, ours and theirs, without their ends.
    versions: [Vec<u8>; 2],
    lines: usize,
    /// The key exchange in progress.
    exchange: Option<Exchange>,
    /// The hash of the first exchange.
    session: Option<[u8; 32]>,
    strict: bool,
    /// The first exchange is not over.
    initial: bool,
    /// The peer may begin another key exchange.
    renewable: bool,
    /// The client takes EXT_INFO.
    ext_info: bool,
    host_key: Vec<u8>,
    chosen: Option<kex::Chosen>,
    /// When the keys were made, once the time is known.
    keyed_ns: Option<u64>,
    /// Messages that wait for the end of a key exchange.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
}

impl Transport {
    /// A connection that begins; its first bytes are ready to be sent.
    ///
    /// # Errors
    /// [`Error::Packet`] when the library fails.
    pub fn new(side: Side, random: Box<dyn Random>) -> Result<Self, Error> {
        let software = match &side {
            Side::Server(setup) => &setup.software,
            Side::Client(setup) => &setup.software,
        };
        let ours = format!("SSH-2.0-{software}").into_bytes();
        let mut it = Self {
            side,
            random,
            opener: Opener::plain(),
            output: Output::new(),
            versions: [ours, Vec::new()],
            lines: 0,
            exchange: None,
            session: None,
            strict: false,
            initial: true,
            renewable: true,
            ext_info: false,
            host_key: Vec::new(),
            chosen: None,
            keyed_ns: None,
            held: Vec::new(),
            held_bytes: 0,
        };
        let [ours, _] = &it.versions;
        it.output.raw(&[ours, b"\r\n".as_slice()].concat());
        it.begin_exchange()?;
        Ok(it)
    }

    fn is_server(&self) -> bool {
        matches!(self.side, Side::Server(_))
    }

    /// The identifier of the session, once there are keys.
    pub fn session(&self) -> Option<&[u8; 32]> {
        self.session.as_ref()
    }

    /// The server's key, once there are keys.
    pub fn host_key(&self) -> &[u8] {
        &self.host_key
    }

    /// What was agreed on, once there are keys.
    pub fn chosen(&self) -> Option<&kex::Chosen> {
        self.chosen.as_ref()
    }

    /// The peer's version, without `SSH-2.0-`, once it is known.
    pub fn peer_version(&self) -> &[u8] {
        let [_, theirs] = &self.versions;
        theirs.get(8..).unwrap_or_default()
    }

    /// Whether the peer may begin another key exchange. Each costs a server a signature and more
    /// than the peer has to do for it: strangers have no need of a second one.
    pub fn set_renewable(&mut self, renewable: bool) {
        self.renewable = renewable;
    }

    /// Whether a key exchange is in progress.
    pub fn is_exchanging(&self) -> bool {
        self.exchange.is_some()
    }

    /// Looks at the front of `input`, which must begin with the same bytes again after
    /// [`Received::Need`]. Packets are opened where they lie.
    ///
    /// # Errors
    /// The connection must end; [`Transport::disconnect`] sends the reason to the peer.
    pub fn receive<'a>(&mut self, input: &'a mut [u8]) -> Result<Received<'a>, Error> {
        let [_, theirs] = &self.versions;
        if theirs.is_empty() {
            return self.receive_line(input);
        }
        let (payload, consumed) = match self.opener.open(input)? {
            Opened::Need(n) => return Ok(Received::Need(n)),
            Opened::Packet(payload, consumed) => (payload, consumed),
        };
        let payload = input.get(payload).unwrap_or_default();
        let known = number_of(payload)?;
        if known >= 50 && self.session.is_some() && !self.awaits_exchange() {
            return Ok(Received::Packet(consumed, payload));
        }
        if self.receive_own(known, payload)? {
            return Ok(Received::Handled(consumed));
        }
        Ok(Received::Packet(consumed, payload))
    }

    /// Whether the peer may send only what belongs to the key exchange: it has begun its own part.
    fn awaits_exchange(&self) -> bool {
        self.exchange.as_ref().is_some_and(Exchange::has_theirs)
    }

    /// A message that may be the transport's own; returns whether it is.
    fn receive_own(&mut self, known: u8, payload: &[u8]) -> Result<bool, Error> {
        match known {
            number::DISCONNECT => return Err(disconnected(payload)?),
            number::KEXINIT => self.receive_init(payload)?,
            number::KEX_ECDH_INIT..=49 if self.exchange.is_some() => self.receive_share(payload)?,
            number::NEWKEYS => self.receive_new_keys(payload)?,
            // What may be changed or left out unseen, before there are keys, must not be there
            // (OpenSSH, PROTOCOL, section 1.9).
            _ if self.strict && self.initial => {
                return Err(Error::Protocol("unexpected message during the key exchange"));
            }
            number::IGNORE | number::UNIMPLEMENTED | number::DEBUG => {
                Message::decode(payload)?;
            }
            _ if self.session.is_none() || self.awaits_exchange() => {
                return Err(Error::Protocol("unexpected message during the key exchange"));
            }
            number::EXT_INFO if !self.is_server() => return Ok(false),
            number::EXT_INFO => {
                Message::decode(payload)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn receive_line<'a>(&mut self, input: &'a mut [u8]) -> Result<Received<'a>, Error> {
        let Some(end) = input.iter().take(SSH_VERSION_MAX).position(|b| *b == b'\n') else {
            let enough = input.len() >= SSH_VERSION_MAX;
            // The line cannot become a version: scanners receive an error at once.
            let wrong = self.is_server() && !input.iter().zip(b"SSH-").all(|(a, b)| a == b);
            return if enough || wrong {
                Err(Error::Version)
            } else {
                Ok(Received::Need(input.len() + 1))
            };
        };
        let line = input.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"SSH-2.0-") || line.starts_with(b"SSH-1.99-") {
            let [_, theirs] = &mut self.versions;
            *theirs = line.to_vec();
        } else if self.is_server() || line.starts_with(b"SSH-") || self.lines == SSH_LINES_MAX {
            return Err(Error::Version);
        }
        self.lines += 1;
        Ok(Received::Handled(end + 1))
    }

    /// Sends a message, which `write` appends: at once, or after the key exchange in progress.
    ///
    /// # Errors
    /// When too much waits already, or the library fails.
    pub fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        if self.may_send_data() {
            return Ok(self.output.packet(write)?);
        }
        let mut message = Vec::new();
        write(&mut message);
        self.held_bytes += message.len();
        if self.held_bytes > SSH_HELD_MAX {
            return Err(Error::Protocol("too many requests during a key exchange"));
        }
        self.held.push(message);
        Ok(())
    }

    /// As [`Transport::send`].
    ///
    /// # Errors
    /// As there.
    pub fn send_message(&mut self, message: &Message<'_>) -> Result<(), Error> {
        self.send(|out| message.encode(out))
    }

    /// Answers the packet that came last as an unknown one (RFC 4253, section 11.4).
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub fn unimplemented(&mut self) -> Result<(), Error> {
        let sequence = self.opener.sequence.wrapping_sub(1);
        self.send_message(&Message::Unimplemented { sequence })
    }

    /// Says why the connection ends. Nothing may be sent after it.
    pub fn disconnect(&mut self, reason: u32, description: &str) {
        let description = description.as_bytes();
        let message = Message::Disconnect { reason, description };
        // The connection ends in any case.
        let _ = self.output.packet(|out| message.encode(out));
    }

    /// Whether data is taken: there are keys, and our side has no exchange of new ones in progress.
    pub fn may_send_data(&self) -> bool {
        self.session.is_some() && self.exchange.as_ref().is_none_or(Exchange::has_sent_keys)
    }

    /// Appends data of the peer's channel `recipient`, in packets of at most `packet_max` bytes.
    /// What does not fill a packet waits for more until something else is sent or
    /// [`Transport::output`] is asked for. The channel's window must have room, and
    /// [`Transport::may_send_data`] hold.
    ///
    /// # Errors
    /// When the library fails.
    pub fn send_data(
        &mut self,
        recipient: u32,
        packet_max: usize,
        data: &[u8],
    ) -> Result<(), Error> {
        debug_assert!(self.may_send_data());
        Ok(self.output.data(recipient, packet_max, data)?)
    }

    /// The bytes to be sent.
    ///
    /// # Errors
    /// When the library fails.
    pub fn output(&mut self) -> Result<&[u8], Error> {
        Ok(self.output.bytes()?)
    }

    /// How many bytes wait to be sent.
    pub fn backlog(&self) -> usize {
        self.output.len()
    }

    /// The first `n` bytes of [`Transport::output`] were sent.
    pub fn sent(&mut self, n: usize) {
        self.output.sent(n);
    }

    /// Begins to make new keys when those that there are have served long enough. `now_ns` is the
    /// time of a clock that does not jump.
    ///
    /// # Errors
    /// When the library fails.
    pub fn renew(&mut self, now_ns: u64) -> Result<(), Error> {
        if self.exchange.is_some() || self.session.is_none() {
            return Ok(());
        }
        let since = *self.keyed_ns.get_or_insert(now_ns);
        let used = |(packets, bytes): (u64, u64), way: usize| {
            let ciphers = self.chosen.as_ref().map(|chosen| chosen.ciphers);
            let cipher = ciphers.and_then(|both| both.get(way).copied());
            packets >= SSH_REKEY_PACKETS || cipher.is_some_and(|c| bytes >= c.bytes_max())
        };
        let (incoming, outgoing) = if self.is_server() { (0, 1) } else { (1, 0) };
        if used(self.opener.used, incoming)
            || used(self.output.used(), outgoing)
            || now_ns.saturating_sub(since) >= SSH_REKEY_TIME.as_nanos() as u64
        {
            self.begin_exchange()?;
        }
        Ok(())
    }

    /// Gives memory back that a connection without work does not need.
    pub fn idle(&mut self) {
        self.output.shrink();
    }

    /// Begins a key exchange now, unless one is in progress.
    ///
    /// # Errors
    /// When the library fails.
    pub fn renew_now(&mut self) -> Result<(), Error> {
        if self.exchange.is_none() { self.begin_exchange() } else { Ok(()) }
    }
}

fn disconnected(payload: &[u8]) -> Result<Error, Malformed> {
    let Message::Disconnect { reason, description } = Message::decode(payload)? else {
        return Err(Malformed::Value("message number"));
    };
    let mut description = String::from_utf8_lossy(description).into_owned();
    // For a log: a line, not a novel.
    description.retain(|c| !c.is_control());
    let end = description.char_indices().nth(200).map_or(description.len(), |(at, _)| at);
    description.truncate(end);
    Ok(Error::Disconnected { reason, description })
}

#[cfg(test)]
mod tests;
