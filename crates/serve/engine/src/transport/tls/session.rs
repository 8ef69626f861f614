//! One TLS session, pure: bytes of the wire in, bytes of calls out, and the other way round.
//!
//! What came is decrypted where it lies, in one buffer that the session holds only while there is
//! something in it; a session without traffic costs its keys.

use std::sync::Arc;

use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};
use rustls::{HandshakeKind, ProtocolVersion, ServerConfig};
use tokio::io::ReadBuf;
use vfs::transfers::Security;

use super::TlsError;
use crate::transport::buffers::ReplyBuf;

/// Bytes of plaintext in a record at most (RFC 8446 §5.1).
const RECORD: usize = 1 << 14;
/// Room that a record needs beyond its plaintext: header, type, tag; and something for a change of
/// keys in front of it.
const RECORD_EXTRA: usize = 64;
/// Room that must be free behind what came before more is received: a whole record fits.
const ROOM_MIN: usize = RECORD + 512;
/// Initial room for a message of the handshake; it grows if the message needs more.
const HANDSHAKE_ROOM: usize = 4 << 10;
/// Steps without anything from outside: alert, close, and some more; beyond it something is wrong.
const STEPS_MAX: usize = 64;

/// A session and what it holds.
pub struct Session {
    tls: UnbufferedServerConnection,
    /// What came and is not decrypted, from `start` on.
    incoming: Vec<u8>,
    start: usize,
    /// What is decrypted and did not fit where it should go, from `plain_at` on.
    plain: Vec<u8>,
    plain_at: usize,
    /// There may be more to deliver without anything coming.
    more: bool,
    /// The peer has sent close_notify.
    closed: bool,
    /// It is of no use any more.
    failed: bool,
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Take another.
    Again,
    /// What was put out must be sent.
    Flush,
    /// No progress without more bytes from the peer.
    Starved,
    /// The peer has closed.
    Closed,
    /// What there was to write is written.
    Wrote,
}

impl Session {
    /// A session that waits for its ClientHello.
    ///
    /// # Errors
    /// The library does not take the configuration.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        Ok(Self {
            tls: UnbufferedServerConnection::new(config)?,
            incoming: Vec::new(),
            start: 0,
            plain: Vec::new(),
            plain_at: 0,
            more: false,
            closed: false,
            failed: false,
        })
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// The protocol that both sides have agreed on; one of those that were offered.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// The version and the cipher suite that both sides have agreed on.
    pub fn security(&self) -> Option<Security> {
        let version = match self.tls.protocol_version()? {
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            _ => return None,
        };
        let cipher = self.tls.negotiated_cipher_suite()?.suite().as_str()?;
        Some(Security { version, cipher })
    }

    /// Whether it resumed one that was before.
    pub fn has_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The peer's certificate, which was verified.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.tls.peer_certificates().and_then(<[_]>::first).map(AsRef::as_ref)
    }

    /// Whether it has a buffer to receive into.
    pub fn has_buffer(&self) -> bool {
        self.incoming.capacity() > 0
    }

    /// Gives it one.
    pub fn lend(&mut self, buffer: Vec<u8>) {
        self.incoming = buffer;
        self.start = 0;
    }

    /// Its buffer, if there is nothing in it.
    pub fn take_back(&mut self) -> Option<Vec<u8>> {
        if self.holds() || !self.has_buffer() {
            return None;
        }
        self.plain = Vec::new();
        self.plain_at = 0;
        self.start = 0;
        Some(std::mem::take(&mut self.incoming))
    }

    /// Gives its buffer up, whatever is in it.
    pub fn give_up(&mut self) -> Option<Vec<u8>> {
        self.has_buffer().then(|| std::mem::take(&mut self.incoming))
    }

    /// Whether it holds something that came.
    pub fn holds(&self) -> bool {
        self.start < self.incoming.len() || self.plain_at < self.plain.len()
    }

    /// Whether [`Session::deliver`] has something without anything coming.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Where to receive to.
    ///
    /// # Errors
    /// What came does not fit, and makes no whole: only a handshake can be so long.
    pub fn room(&mut self) -> Result<&mut Vec<u8>, TlsError> {
        if self.start > 0 && self.incoming.capacity() - self.incoming.len() < ROOM_MIN {
            self.incoming.drain(..self.start);
            self.start = 0;
        }
        if self.incoming.len() == self.incoming.capacity() {
            return Err(TlsError::TooLong);
        }
        Ok(&mut self.incoming)
    }

    /// Delivers what is decrypted or can be. `Starved` when nothing more can be had, `Again` when
    /// `into` is full.
    ///
    /// # Errors
    /// What came is not TLS, or was changed on the way.
    pub fn deliver(
        &mut self,
        into: &mut ReadBuf<'_>,
        out: &mut ReplyBuf,
    ) -> Result<Step, TlsError> {
        loop {
            self.deliver_plain(into);
            if into.remaining() == 0 {
                self.more = true;
                return Ok(Step::Again);
            }
            if self.closed {
                // To be found out again, once what was delivered is done with.
                self.more = true;
                return Ok(Step::Closed);
            }
            match self.step(into, out)? {
                // What is pending is sent with the next reply; the peer does not wait for it.
                Step::Again | Step::Flush => {}
                step => {
                    self.more = false;
                    return Ok(step);
                }
            }
        }
    }

    fn deliver_plain(&mut self, into: &mut ReadBuf<'_>) {
        let rest = self.plain.get(self.plain_at..).unwrap_or_default();
        let fits = rest.len().min(into.remaining());
        into.put_slice(rest.get(..fits).unwrap_or_default());
        self.plain_at += fits;
        if self.plain_at >= self.plain.len() {
            self.plain.clear();
            self.plain_at = 0;
        }
    }

    /// One step: plaintext goes to `into` as far as it has room, the rest is kept; what is for the
    /// wire goes behind `out`.
    ///
    /// # Errors
    /// What came is not TLS, or not as we want it.
    pub fn step(&mut self, into: &mut ReadBuf<'_>, out: &mut ReplyBuf) -> Result<Step, TlsError> {
        self.advance(into, out, None)
    }

    fn advance(
        &mut self,
        into: &mut ReadBuf<'_>,
        out: &mut ReplyBuf,
        write: Option<Write<'_>>,
    ) -> Result<Step, TlsError> {
        let Self { tls, incoming, start, plain, closed, more, .. } = self;
        let came = incoming.get_mut(*start..).unwrap_or_default();
        let UnbufferedStatus { mut discard, state } = tls.process_tls_records(came);
        let step = match state {
            Err(error) => Err(error.into()),
            Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                match traffic.next_record() {
                    None => break Ok(Step::Again),
                    Some(Err(error)) => break Err(error.into()),
                    Some(Ok(record)) => {
                        discard += record.discard;
                        let fits = record.payload.len().min(into.remaining());
                        let (now, later) = record.payload.split_at(fits);
                        into.put_slice(now);
                        plain.extend_from_slice(later);
                        *more |= !later.is_empty();
                    }
                }
            },
            Ok(ConnectionState::EncodeTlsData(mut data)) => put(out, HANDSHAKE_ROOM, |room| {
                data.encode(room).map_err(|e| match e {
                    EncodeError::InsufficientSize(e) => Some(e),
                    EncodeError::AlreadyEncoded => None,
                })
            }),
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Ok(Step::Flush)
            }
            Ok(ConnectionState::PeerClosed) => {
                (*closed, *more) = (true, true);
                Ok(Step::Again)
            }
            Ok(ConnectionState::Closed) => Ok(Step::Closed),
            Ok(ConnectionState::WriteTraffic(mut traffic)) => match write {
                None => Ok(Step::Starved),
                Some(Write { size, how }) => put(out, size, |room| {
                    how(&mut traffic, room).map_err(|e| match e {
                        EncryptError::InsufficientSize(e) => Some(e),
                        EncryptError::EncryptExhausted => None,
                    })
                })
                .map(|_| Step::Wrote),
            },
            Ok(ConnectionState::BlockedHandshake) => Ok(Step::Starved),
            // Early data is not allowed (RFC 9289 §5.1.1), and so not offered.
            Ok(_) => Err(TlsError::State),
        };
        self.failed |= step.is_err();
        self.start += discard;
        if self.start >= self.incoming.len() {
            self.incoming.clear();
            self.start = 0;
        }
        step
    }

    /// Encrypts `bytes` behind `out`.
    ///
    /// # Errors
    /// The session is at its end.
    pub fn encrypt(&mut self, bytes: &[u8], out: &mut ReplyBuf) -> Result<(), TlsError> {
        let size = bytes.len() + (bytes.len() / RECORD + 1) * RECORD_EXTRA;
        self.write(size, out, &mut |traffic, room| traffic.encrypt(bytes, room))
    }

    /// Says behind `out` that nothing more comes from us, or why the session failed.
    pub fn end(&mut self, out: &mut ReplyBuf) {
        let mut nowhere = ReadBuf::new(&mut []);
        if !self.failed && !self.is_handshaking() {
            // Without a session there is no close_notify to send.
            let close =
                &mut |traffic: &mut Traffic<'_>, room: &mut [u8]| traffic.queue_close_notify(room);
            let _ = self.write(RECORD_EXTRA, out, close);
            return;
        }
        // After a failure the alert comes first, before the library looks at what came. It must not
        // look again: a second failure, or missing bytes, would be reported as a fault of
        // this program.
        let steps = if self.failed { 1 } else { STEPS_MAX };
        for _ in 0..steps {
            if self.step(&mut nowhere, out).ok() != Some(Step::Again) {
                return;
            }
        }
    }

    fn write(
        &mut self,
        size: usize,
        out: &mut ReplyBuf,
        how: &mut How<'_>,
    ) -> Result<(), TlsError> {
        let mut nowhere = ReadBuf::new(&mut []);
        for _ in 0..STEPS_MAX {
            let write = Some(Write { size, how: &mut *how });
            if self.advance(&mut nowhere, out, write)? == Step::Wrote {
                return Ok(());
            }
        }
        Err(TlsError::State)
    }
}

type Traffic<'c> = WriteTraffic<'c, ServerConnectionData>;
type How<'a> = dyn FnMut(&mut Traffic<'_>, &mut [u8]) -> Result<usize, EncryptError> + 'a;

/// What to write as soon as the session lets us, and how much room it takes.
struct Write<'a> {
    size: usize,
    how: &'a mut How<'a>,
}

/// Appends to `out` what `how` writes, which is expected to have `size` bytes, and grows it if that
/// is not enough.
fn put(
    out: &mut ReplyBuf,
    mut size: usize,
    mut how: impl FnMut(&mut [u8]) -> Result<usize, Option<InsufficientSizeError>>,
) -> Result<Step, TlsError> {
    let start = out.len();
    // The second time with the size that it has reported.
    for _ in 0..2 {
        let at = out.extend_stale(size);
        let wrote = how(out.vec().get_mut(at..).unwrap_or_default());
        out.truncate(start + wrote.as_ref().map_or(0, |n| *n));
        match wrote {
            Ok(_) => return Ok(Step::Again),
            Err(Some(InsufficientSizeError { required_size })) => size = required_size,
            Err(None) => break,
        }
    }
    Err(TlsError::State)
}
