//! One connection: receives frames, has them carried out, sends what is answered. The only file
//! that waits for the socket.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::clock::{Deadline, stamp};
use base::limits::{
    RECEIVE_BUFFER, SMB_FLIGHT_BYTES, SMB_MESSAGE_MAX, SMB_REQUESTS_MAX, SMB_SIGN_IN_TIME_MAX,
    SMB_UNSIGNED_MESSAGE_MAX, STALL_PAUSE, TURN_OPS_MAX,
};
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use wire::smb::codec::SmbError;
use wire::smb::crypto::Preauth;
use wire::smb::frame::{PREFIX, length};

use super::compound;
use super::receive::{Broken, Taken};
use super::server::Server;
use super::state::connection::Connection;
use crate::files::Core;
use crate::transport::listener::Accepted;
use crate::transport::pace::SlowPeerBudget;
use crate::transport::send::{self, SendError};
use crate::transport::tasks::Ending;

/// Why a connection has ended.
#[derive(Debug, Error)]
pub enum Ended {
    /// The peer closed it, or nothing more can be received.
    #[error("closed by the peer")]
    Gone,
    /// Nothing more can be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// What came is no frame: the peer is at fault.
    #[error("no frame: {0}")]
    Frame(#[from] SmbError),
    /// It broke a rule of the protocol.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// Nobody has signed in in time.
    #[error("nobody has signed in")]
    Unsigned,
    /// A request panicked: we are at fault.
    #[error("a request failed to end")]
    Panicked,
}

/// Serves one client to its end.
pub async fn serve(server: Arc<Server>, core: Rc<Core>, accepted: Accepted, mut ending: Ending) {
    let Accepted { stream, peer, permit: _permit } = accepted;
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let Ok(local) = stream.local_addr() else { return };
    let client = core.engine.hub.clients().intern(peer.ip());
    let settings = server.settings();
    let conn = Rc::new(Connection {
        core: Rc::clone(&core),
        server,
        settings,
        peer: (peer, client),
        local,
        negotiated: RefCell::default(),
        preauth: Cell::new(Preauth::default()),
        setups: RefCell::default(),
        sessions: RefCell::default(),
        credits: RefCell::default(),
        cancels: RefCell::default(),
        outbox: RefCell::default(),
        has_mail: Notify::new(),
        held: Cell::new(0),
    });
    let pace = core.engine.budgets.limits().pace;
    let socket = Socket { stream, pace, inbox: Vec::new(), at: 0 };
    let mut exchange = Exchange { conn: Rc::clone(&conn), socket, tasks: JoinSet::new() };
    tokio::select! {
        // Why it has ended is nobody's concern but the peer's, who knows.
        _ = exchange.run() => {}
        _ = ending.wait_for(|end| *end) => {}
    }
    exchange.tasks.shutdown().await;
    conn.close_all().await;
}

/// A socket, and what has come and was not taken.
struct Socket {
    stream: TcpStream,
    pace: SlowPeerBudget,
    inbox: Vec<u8>,
    at: usize,
}

impl Socket {
    fn rest(&self) -> &[u8] {
        self.inbox.get(self.at..).unwrap_or_default()
    }

    /// The next frame, if it is whole.
    fn frame(&mut self, max: usize) -> Result<Option<Vec<u8>>, SmbError> {
        let Some((head, rest)) = self.rest().split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let size = length(*head, max)?;
        let Some(frame) = rest.get(..size) else { return Ok(None) };
        let frame = frame.to_vec();
        self.at += PREFIX + size;
        Ok(Some(frame))
    }

    /// Receives something; false at the end. Nothing is lost if it is given up.
    async fn receive(&mut self) -> std::io::Result<bool> {
        if self.at == self.inbox.len() {
            self.inbox.clear();
            if self.inbox.capacity() > 2 * SMB_MESSAGE_MAX {
                self.inbox = Vec::new();
            }
            self.at = 0;
        } else if self.at >= RECEIVE_BUFFER {
            self.inbox.drain(..self.at);
            self.at = 0;
        }
        // A long frame is received in few steps.
        let missing = match self.rest().first_chunk::<PREFIX>() {
            Some(head) => length(*head, SMB_MESSAGE_MAX).unwrap_or(0) + PREFIX,
            None => 0,
        };
        let missing = missing.saturating_sub(self.inbox.len() - self.at);
        self.inbox.reserve(missing.max(RECEIVE_BUFFER));
        Ok(self.stream.read_buf(&mut self.inbox).await? > 0)
    }
}

struct Exchange {
    conn: Rc<Connection>,
    socket: Socket,
    tasks: JoinSet<()>,
}

impl Exchange {
    async fn run(&mut self) -> Result<(), Ended> {
        let sign_in_by = Deadline::after(SMB_SIGN_IN_TIME_MAX);
        let mut open = true;
        loop {
            let has_more = self.take()?;
            self.collect()?;
            if !self.conn.outbox.borrow().is_empty() {
                self.send().await?;
                tokio::task::yield_now().await;
                continue;
            }
            if has_more {
                tokio::task::yield_now().await;
                continue;
            }
            if !open && self.tasks.is_empty() {
                return Err(Ended::Gone);
            }
            let unsigned = self.conn.sessions.borrow().is_empty();
            if unsigned && sign_in_by.passed() {
                return Err(Ended::Unsigned);
            }
            let (reads, waits) = (open && self.has_room(), !self.tasks.is_empty());
            tokio::select! {
                got = self.socket.receive(), if reads => {
                    open = got.map_err(|_| Ended::Gone)?;
                }
                done = self.tasks.join_next(), if waits => ended(&self.conn, done)?,
                () = self.conn.has_mail.notified() => {}
                () = tokio::time::sleep(STALL_PAUSE), if !reads && !waits => {}
                () = tokio::time::sleep(sign_in_by.left().unwrap_or_default()), if unsigned => {}
            }
        }
    }

    /// Whether another frame may be taken. One always may.
    fn has_room(&self) -> bool {
        let held = self.conn.held.get();
        held == 0
            || (held < SMB_FLIGHT_BYTES
                && self.tasks.len() < SMB_REQUESTS_MAX
                && self.conn.core.budget.has_bytes(SMB_MESSAGE_MAX))
    }

    /// Takes frames that have come; tells whether there are more.
    fn take(&mut self) -> Result<bool, Ended> {
        let arrived_ns = stamp();
        for _ in 0..TURN_OPS_MAX {
            if !self.has_room() {
                return Ok(false);
            }
            let max = match self.conn.sessions.borrow().is_empty() {
                true => SMB_UNSIGNED_MESSAGE_MAX,
                false => SMB_MESSAGE_MAX,
            };
            let Some(frame) = self.socket.frame(max)? else { return Ok(false) };
            self.conn.core.budget.count_moved(frame.len());
            let held = frame.len();
            if let Taken::Frame(frame) = self.conn.take(frame, arrived_ns)? {
                self.conn.hold(held);
                self.tasks.spawn_local(compound::run(Rc::clone(&self.conn), frame, held));
            }
        }
        Ok(true)
    }

    /// Forgets tasks that have ended.
    fn collect(&mut self) -> Result<(), Ended> {
        while let Some(done) = self.tasks.try_join_next() {
            ended(&self.conn, Some(done))?;
        }
        Ok(())
    }

    /// Sends what is answered, and writes it down.
    async fn send(&mut self) -> Result<(), Ended> {
        let answers = std::mem::take(&mut *self.conn.outbox.borrow_mut());
        let last = answers.len().saturating_sub(1);
        for (number, answer) in answers.into_iter().enumerate() {
            let bytes = answer.reply.as_slice().get(answer.from..).unwrap_or_default();
            let (stream, pace) = (&self.socket.stream, &mut self.socket.pace);
            send::bytes(stream, bytes, number != last, pace).await?;
            let core = &self.conn.core;
            core.buffers.give_reply(answer.reply);
            self.conn.release(answer.held);
            for (span, status) in answer.spans {
                core.done(span, status);
            }
        }
        Ok(())
    }
}

fn ended(conn: &Connection, done: Option<Result<(), JoinError>>) -> Result<(), Ended> {
    let Some(done) = done else { return Ok(()) };
    conn.core.engine.budgets.count_panic(&done);
    done.map_err(|_| Ended::Panicked)
}
