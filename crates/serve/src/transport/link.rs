//! A connection's socket, in the clear or with TLS over it (RFC 9289).
//!
//! In the clear a link is its socket. With TLS the bytes pass through a [`Session`]: received into
//! a buffer of the core's, decrypted there; encrypted into another, and sent from it. Both are
//! given back as soon as they are empty.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use base::limits::{RECEIVE_BUFFER, TLS_SEND_PIECE};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::TcpStream;
use vfs::mapped::Slice;
use vfs::share::rules::Transport;

use super::budget::CoreBudget;
use super::buffers::{CoreBuffers, ReplyBuf};
use super::send::{self, SendError};
use super::tls::session::{Session, Step};
use super::tls::{Tls, TlsError};

/// Receives in a row that may bring nothing but parts of records, or empty ones, before others get
/// their turn.
const EMPTY_READS_MAX: usize = 16;

/// A socket, and the session on it if there is one.
pub struct Link {
    stream: TcpStream,
    tls: Option<Box<Secured>>,
}

struct Secured {
    session: Session,
    /// What the session has to say by itself: it goes with the next reply.
    owed: Vec<u8>,
    /// Whether its buffer is held above the budget.
    overdraft: bool,
}

/// Why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The session has ended.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Link {
    /// A socket in the clear.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, tls: None }
    }

    /// How what is said on it is protected.
    pub fn transport(&self) -> Transport {
        match &self.tls {
            None => Transport::Plain,
            Some(tls) if tls.session.certificate().is_some() => Transport::Mtls,
            Some(_) => Transport::Tls,
        }
    }

    /// The peer's certificate, which was verified.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.tls.as_ref().and_then(|tls| tls.session.certificate())
    }

    /// Ready when there is something to receive, or the end.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.tls {
            Some(tls) if tls.session.has_more() => Poll::Ready(Ok(())),
            _ => self.stream.poll_read_ready(cx),
        }
    }

    /// Whether something came that is not delivered.
    pub fn holds(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.holds())
    }

    /// Makes room to receive into, and sees that there is as much again for what is decrypted: who
    /// took one and waited for the other could keep everybody from both. False when the budget has
    /// none; `begun` says that the caller holds a part of a record, which must be able to end.
    pub fn make_room(&mut self, core: (&CoreBuffers, &CoreBudget), begun: bool) -> bool {
        let Some(tls) = &mut self.tls else { return true };
        let (buffers, budget) = core;
        if !tls.session.has_buffer() {
            if !begun && !budget.has_bytes(2 * RECEIVE_BUFFER) {
                if !budget.take_overdraft() {
                    return false;
                }
                tls.overdraft = true;
            }
            tls.session.lend(buffers.take_receive());
            budget.take_bytes(RECEIVE_BUFFER);
        }
        true
    }

    /// Gives the room back if there is nothing in it.
    pub fn rest(&mut self, core: (&CoreBuffers, &CoreBudget)) {
        if let Some(tls) = &mut self.tls
            && let Some(buffer) = tls.session.take_back()
        {
            give_back(buffer, &mut tls.overdraft, core);
        }
    }

    /// Receives what is there. Nothing but `Ok` means the end.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), ReceiveError>> {
        let Self { stream, tls } = self;
        let Some(tls) = tls else {
            return Pin::new(stream).poll_read(cx, into).map_err(ReceiveError::Io);
        };
        let mut out = ReplyBuf::default();
        for _ in 0..EMPTY_READS_MAX {
            let step = tls.session.deliver(into, &mut out);
            if !out.is_empty() {
                tls.owed.append(out.vec());
            }
            if step? != Step::Starved || !into.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            let room = tls.session.room()?;
            if ready!(pin!(stream.read_buf(room)).poll(cx))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        // The socket is still readable, which is found out at once.
        Poll::Pending
    }

    /// Sends everything; a peer may take its time, but not stand still. With `more` the kernel may
    /// wait for what follows before it fills a packet.
    ///
    /// # Errors
    /// When it cannot be sent to the end.
    pub async fn send(
        &mut self,
        bytes: &[u8],
        more: bool,
        buffers: &CoreBuffers,
    ) -> Result<(), SendError> {
        let Some(tls) = &mut self.tls else {
            return send::bytes(&self.stream, bytes, more).await;
        };
        let mut out = buffers.take_reply();
        for piece in bytes.chunks(TLS_SEND_PIECE) {
            out.vec().append(&mut tls.owed);
            tls.session.encrypt(piece, &mut out)?;
            send::bytes(&self.stream, out.as_slice(), more).await?;
            out.truncate(0);
        }
        buffers.give_reply(out);
        Ok(())
    }

    /// Sends a part of a file from the page cache, in the clear only; `more` as above.
    ///
    /// # Errors
    /// When it cannot be sent to the end.
    pub async fn send_slice(&mut self, slice: &Slice, more: bool) -> Result<(), SendError> {
        match &self.tls {
            None => send::slice(&self.stream, slice, more).await,
            // Not asked for: what is mapped may vanish under the cipher.
            Some(_) => Err(SendError::Tls(TlsError::State)),
        }
    }

    /// Sets up a session as the server; nothing of what was received may be left over.
    ///
    /// # Errors
    /// The peer does not speak TLS as we want it, or not RPC over it, or has gone. It is told why.
    pub async fn secure(
        &mut self,
        tls: &Tls,
        core: (&CoreBuffers, &CoreBudget),
    ) -> Result<(), TlsError> {
        let session = Session::new(tls.config())?;
        let tls =
            self.tls.insert(Box::new(Secured { session, owed: Vec::new(), overdraft: false }));
        tls.session.lend(core.0.take_receive());
        core.1.take_bytes(RECEIVE_BUFFER);
        let mut out = core.0.take_reply();
        let done = handshake(&mut self.stream, &mut tls.session, &mut out).await;
        core.0.give_reply(out);
        done
    }

    /// Says that nothing more comes, as far as that needs no waiting, and gives everything back.
    pub fn close(&mut self, core: (&CoreBuffers, &CoreBudget)) {
        if let Some(mut tls) = self.tls.take() {
            let mut out = ReplyBuf::default();
            tls.session.end(&mut out);
            // A peer whose window is shut learns it from the end of the connection.
            let _ = self.stream.try_write(out.as_slice());
            if let Some(buffer) = tls.session.give_up() {
                give_back(buffer, &mut tls.overdraft, core);
            }
        }
    }
}

fn give_back(buffer: Vec<u8>, overdraft: &mut bool, core: (&CoreBuffers, &CoreBudget)) {
    let (buffers, budget) = core;
    budget.give_bytes(RECEIVE_BUFFER);
    buffers.give_receive(buffer);
    if std::mem::take(overdraft) {
        budget.give_overdraft();
    }
}

/// From ClientHello to Finished, and what both have agreed on.
async fn handshake(
    stream: &mut TcpStream,
    session: &mut Session,
    out: &mut ReplyBuf,
) -> Result<(), TlsError> {
    loop {
        match session.step(&mut ReadBuf::new(&mut []), out)? {
            Step::Again => {}
            Step::Closed => return Err(TlsError::Gone),
            Step::Flush | Step::Wrote => {
                flush(stream, out).await?;
            }
            Step::Starved if session.is_handshaking() => {
                flush(stream, out).await?;
                if stream.read_buf(session.room()?).await? == 0 {
                    return Err(TlsError::Gone);
                }
            }
            Step::Starved => break,
        }
    }
    flush(stream, out).await?;
    if session.speaks_rpc() { Ok(()) } else { Err(TlsError::Alpn) }
}

async fn flush(stream: &TcpStream, out: &mut ReplyBuf) -> Result<(), TlsError> {
    let sent = send::bytes(stream, out.as_slice(), false).await;
    out.truncate(0);
    match sent {
        Err(SendError::Io(e)) => Err(TlsError::Io(e)),
        Err(SendError::TooSlow) => Err(TlsError::TooSlow),
        Err(_) => Err(TlsError::Gone),
        Ok(()) => Ok(()),
    }
}
