//! A connection's socket, unencrypted or with TLS over it (RFC 9289).
//!
//! Unencrypted a link is its socket. With TLS the bytes pass through a [`Session`]: received into
//! a buffer of the core, decrypted there; encrypted into another, and sent from it. Both are
//! given back as soon as they are empty.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::limits::{RECEIVE_BUFFER, SEND_LOOK, TLS_SEND_PIECE};
use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use vfs::fs::SendfileRange;
use vfs::mapped::Slice;
use vfs::share::rules::Transport;
use vfs::transfers::Security;

use super::acks::{Acks, OpenAcks};
use super::arrivals::Arrivals;
use super::budget::{CoreBudget, Need};
use super::buffers::{CoreBuffers, ReplyBuf};
use super::pace::SlowPeerBudget;
use super::send::{self, Peer, SendError};
use super::silence;
use super::tls::session::{Session, Step};
use super::tls::{Tls, TlsError};

/// Receives in a row that may bring nothing but parts of records, or empty ones, before others get
/// their turn.
const EMPTY_READS_MAX: usize = 16;

/// A socket, and the session on it if there is one.
pub struct Link {
    stream: TcpStream,
    peer: Peer,
    tls: Option<Box<Secured>>,
}

struct Secured {
    session: Session,
    /// Records that the session itself has to send: they leave with the next reply.
    owed: Vec<u8>,
    /// How much of that [`Link::poll_send`] has sent.
    sent: usize,
    /// Whether the socket took nothing of that.
    is_full: bool,
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
    /// An unencrypted socket, with the budget of time of its peer.
    pub fn new(stream: TcpStream, pace: SlowPeerBudget) -> Self {
        let peer = Peer::new(&stream, pace);
        Self { stream, peer, tls: None }
    }

    /// How its messages are protected.
    pub fn transport(&self) -> Transport {
        match &self.tls {
            None => Transport::Plain,
            Some(tls) if tls.session.certificate().is_some() => Transport::Mtls,
            Some(_) => Transport::Tls,
        }
    }

    /// With what; `None` if unencrypted.
    pub fn security(&self) -> Option<Security> {
        self.tls.as_ref().and_then(|tls| tls.session.security())
    }

    /// The protocol that was agreed on with TLS.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref().and_then(|tls| tls.session.alpn())
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

    /// Whether TLS is over the socket.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// What [`Link::make_room`] has found no room for.
    pub const NEED: Need = Need::bytes(2 * RECEIVE_BUFFER).or_overdraft();

    /// Makes room to receive into, and checks that there is as much again for what is decrypted:
    /// holding one and waiting for the other could keep both from all. False when the budget has
    /// none; with `begun` the caller holds a part of a record, which must be able to end.
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
        let Self { stream, tls, peer } = self;
        let Some(tls) = tls else {
            let before = into.filled().len();
            ready!(Pin::new(stream).poll_read(cx, into))?;
            peer.arrivals.received(into.filled().len() - before);
            return Poll::Ready(Ok(()));
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
            let count = ready!(pin!(stream.read_buf(room)).poll(cx))?;
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            peer.arrivals.received(count);
        }
        // The socket is still readable, which is found out at once.
        Poll::Pending
    }

    /// When the byte had come that lies `behind` bytes before the end of what was received. With
    /// TLS it is some byte of the same records, or of one that came a moment later.
    #[inline]
    pub fn arrived(&mut self, behind: usize) -> u64 {
        self.peer.arrivals.at(behind)
    }

    /// As [`Link::poll_receive`], of a peer that may send urgent data (RFC 854, Synch). The kernel
    /// stops at its mark; that there is more behind it is announced only once.
    pub fn poll_receive_past_mark(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), ReceiveError>> {
        if self.tls.is_some() {
            return self.poll_receive(cx, into);
        }
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(into.initialize_unfilled()) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e.into())),
                Ok(n) => {
                    into.advance(n);
                    self.peer.arrivals.received(n);
                    return Poll::Ready(Ok(()));
                }
            }
        }
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
            return send::bytes(&self.stream, bytes, more, &mut self.peer).await;
        };
        let mut out = buffers.take_reply();
        for piece in bytes.chunks(TLS_SEND_PIECE) {
            out.vec().append(&mut tls.owed);
            tls.session.encrypt(piece, &mut out)?;
            send::bytes(&self.stream, out.as_slice(), more, &mut self.peer).await?;
            out.truncate(0);
        }
        buffers.give_reply(out);
        Ok(())
    }

    /// Takes what it can of `bytes` to send, for callers that do not wait for its end, as
    /// [`Link::send`] does; not to be mixed with it. Ready with how many it took once what it took
    /// before has been sent.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.tls.is_none() {
            let sent = Pin::new(&mut self.stream).poll_write(cx, bytes);
            if let Poll::Ready(Ok(count)) = sent {
                self.peer.acks.get().count(count);
            }
            return sent;
        }
        ready!(self.poll_flush(cx))?;
        let Some(tls) = &mut self.tls else { return Poll::Ready(Ok(0)) };
        let piece = bytes.get(..TLS_SEND_PIECE).unwrap_or(bytes);
        let mut out = ReplyBuf::default();
        std::mem::swap(out.vec(), &mut tls.owed);
        let done = tls.session.encrypt(piece, &mut out);
        tls.owed = out.into_vec();
        done.map_err(io::Error::other)?;
        // What cannot be sent now is sent before anything else.
        let _ = self.poll_flush(cx)?;
        Poll::Ready(Ok(piece.len()))
    }

    /// Ready when everything that [`Link::poll_send`] took has been sent.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = &mut self.tls else { return Poll::Ready(Ok(())) };
        while let Some(rest) = tls.owed.get(tls.sent..).filter(|rest| !rest.is_empty()) {
            let polled = Pin::new(&mut self.stream).poll_write(cx, rest);
            let was_full = std::mem::replace(&mut tls.is_full, polled.is_pending());
            if was_full && !tls.is_full {
                send::adapt_unsent(&self.stream);
            }
            match ready!(polled)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => {
                    tls.sent += n;
                    self.peer.acks.get().count(n);
                }
            }
        }
        tls.owed.clear();
        tls.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Sends a part of a file from the page cache, unencrypted only; `more` as above.
    ///
    /// # Errors
    /// When it cannot be sent to the end.
    pub async fn send_slice(&mut self, slice: &Slice, more: bool) -> Result<(), SendError> {
        match &self.tls {
            None => send::slice(&self.stream, slice, more, &mut self.peer).await,
            // Not asked for: what is mapped may vanish under the cipher.
            Some(_) => Err(SendError::Tls(TlsError::State)),
        }
    }

    /// Waits until the socket takes something. To be called before checking whether parts of files
    /// are in memory: a peer may take its time.
    ///
    /// # Errors
    /// The peer takes nothing more, or too little.
    pub async fn has_room(&mut self) -> Result<(), SendError> {
        send::has_room(&self.stream, &mut self.peer).await
    }

    /// Has the kernel send what the socket takes now of a part of a file, unencrypted only.
    /// Returns the number of bytes; none if there is no room.
    ///
    /// # Errors
    /// [`SendError::Shrunk`] if the file has become shorter; when nothing can be sent any more.
    pub fn send_file(&mut self, part: &SendfileRange) -> Result<usize, SendError> {
        match &self.tls {
            None => send::file(&self.stream, part).inspect(|n| self.peer.acks.get().count(*n)),
            Some(_) => Err(SendError::Tls(TlsError::State)),
        }
    }

    /// Whether the session resumed one that was before.
    pub fn has_resumed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.has_resumed())
    }

    /// Sets up a session for RPC as the server; nothing of what was received may be left over.
    ///
    /// # Errors
    /// No TLS as required, no RPC over it, or the peer is gone. An alert was sent.
    pub async fn secure(
        &mut self,
        tls: &Tls,
        core: (&CoreBuffers, &CoreBudget),
    ) -> Result<(), TlsError> {
        self.secure_as(tls.config(), core).await?;
        if self.alpn().is_none() && tls.needs_alpn() { Err(TlsError::Alpn) } else { Ok(()) }
    }

    /// As [`Link::secure`], for any application protocol.
    ///
    /// # Errors
    /// No TLS as required, or the peer is gone. An alert was sent.
    pub async fn secure_as(
        &mut self,
        config: Arc<ServerConfig>,
        core: (&CoreBuffers, &CoreBudget),
    ) -> Result<(), TlsError> {
        let session = Session::new(config)?;
        let tls = self.tls.insert(Box::new(Secured {
            session,
            owed: Vec::new(),
            sent: 0,
            is_full: false,
            overdraft: false,
        }));
        tls.session.lend(core.0.take_receive());
        core.1.take_bytes(RECEIVE_BUFFER);
        let mut out = core.0.take_reply();
        let arrivals = &mut self.peer.arrivals;
        let done = handshake((&mut self.stream, arrivals), &mut tls.session, &mut out).await;
        core.0.give_reply(out);
        done
    }

    /// What the peer has of what was sent.
    pub fn acks(&self) -> &Rc<Acks> {
        self.peer.acks.get()
    }

    /// Ends the sending side, and gives all buffers back; what is left is the socket, until the
    /// peer has acknowledged what is in flight.
    pub fn into_closing(mut self, core: (&CoreBuffers, &CoreBudget)) -> (TcpStream, OpenAcks) {
        self.close(core);
        self.end_sending();
        (self.stream, self.peer.acks)
    }

    /// A second handle that is notified when the peer closes.
    ///
    /// # Errors
    /// No descriptor is available.
    pub fn disconnect_watch(&self) -> io::Result<DisconnectWatch> {
        self.stream.as_fd().try_clone_to_owned().map(DisconnectWatch)
    }

    /// What looks for the peer's end while this link is in use elsewhere, at most as long as the
    /// link is open: without a descriptor of its own.
    pub fn watch(&self) -> EndWatch {
        EndWatch(self.stream.as_raw_fd())
    }

    /// Waits for the end of the peer; what has come until then is not taken.
    pub async fn peer_ended(&self) {
        send::peer_ended(&self.stream).await;
    }

    /// Closes its sending side, as far as that needs no waiting, while the peer may still send.
    pub fn finish(&mut self) {
        self.end_tls();
        self.end_sending();
    }

    /// Sends the end of the TLS session, if there is one.
    fn end_tls(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        let mut out = ReplyBuf::default();
        tls.session.end(&mut out);
        if !silence::is_on() {
            // A peer with a full window sees the end of the connection instead.
            let _ = self.stream.try_write(out.as_slice());
        }
    }

    fn end_sending(&self) {
        if !silence::is_on() {
            // The peer may be gone already.
            let _ = SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write);
        }
    }

    /// Says that nothing more comes, as far as that needs no waiting, and gives everything back.
    pub fn close(&mut self, core: (&CoreBuffers, &CoreBudget)) {
        self.end_tls();
        if let Some(mut tls) = self.tls.take()
            && let Some(buffer) = tls.session.give_up()
        {
            give_back(buffer, &mut tls.overdraft, core);
        }
    }
}

/// Reports whether the peer of a link has ended it, and takes nothing of what has come.
pub struct DisconnectWatch(OwnedFd);

impl DisconnectWatch {
    /// Whether nothing more can come. What came before the end may not have been received yet.
    pub fn is_disconnected(&self) -> bool {
        has_ended(self.0.as_raw_fd())
    }
}

/// Looks whether the peer of a link has ended it: [`Link::watch`].
#[derive(Debug, Clone, Copy)]
pub struct EndWatch(RawFd);

impl EndWatch {
    /// As [`DisconnectWatch::is_disconnected`].
    pub fn sees_end(self) -> bool {
        has_ended(self.0)
    }

    /// Waits for that, by a descriptor of its own; without one it looks now and then.
    pub async fn ended(self) {
        if let Some(own) = self.registered() {
            return send::peer_ended(&own).await;
        }
        while !self.sees_end() {
            tokio::time::sleep(SEND_LOOK).await;
        }
    }

    fn registered(self) -> Option<TcpStream> {
        // SAFETY: the descriptor is that of the link, which is open; it is used for this call only.
        let open = unsafe { BorrowedFd::borrow_raw(self.0) };
        TcpStream::from_std(open.try_clone_to_owned().ok()?.into()).ok()
    }
}

fn has_ended(fd: RawFd) -> bool {
    let events = libc::POLLRDHUP;
    let mut asked = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one entry, which lives as long as the call; a descriptor that is closed is no more
    // than reported.
    let found = unsafe { libc::poll(&raw mut asked, 1, 0) };
    found > 0 && asked.revents != 0
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
/// What is received with its end may have requests behind it: when that came is noted as well.
async fn handshake(
    (stream, arrivals): (&mut TcpStream, &mut Arrivals),
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
                let count = stream.read_buf(session.room()?).await?;
                if count == 0 {
                    return Err(TlsError::Gone);
                }
                arrivals.received(count);
            }
            Step::Starved => break,
        }
    }
    flush(stream, out).await
}

async fn flush(stream: &TcpStream, out: &mut ReplyBuf) -> Result<(), TlsError> {
    let sent = send::bytes(stream, out.as_slice(), false, &mut Peer::default()).await;
    out.truncate(0);
    match sent {
        Err(SendError::Io(e)) => Err(TlsError::Io(e)),
        Err(SendError::TooSlow) => Err(TlsError::TooSlow),
        Err(_) => Err(TlsError::Gone),
        Ok(()) => Ok(()),
    }
}
