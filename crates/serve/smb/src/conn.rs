//! One connection: receives frames, has them carried out, sends what is answered. The only file
//! that waits for the socket.

mod input;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};

use base::clock::{Deadline, stamp};
use base::limits::{
    LARGE_RECORD, RECORD_LOOK, SEND_BATCH_MAX, SEND_PARTS_MAX, SMB_FLIGHT_BYTES, SMB_LOOK,
    SMB_MESSAGE_MAX, SMB_REQUESTS_MAX, SMB_SIGN_IN_TIME_MAX, SMB_UNSIGNED_MESSAGE_MAX,
    TURN_OPS_MAX, TURN_TIME_MAX,
};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Interval;
use wire::smb::codec::SmbError;
use wire::smb::crypto::Preauth;
use wire::smb::frame::prefix;

use self::input::{Input, Received};
use super::broken::Broken;
use super::close;
use super::compound;
use super::connection::{Answer, Connection};
use super::frame::Frame;
use super::receive::FrameOutcome;
use super::server::Server;
use super::tree;
use engine::exec::Span;
use engine::exec::accept::Local;
use engine::transport::budget::{Need, NextRoom, ServicePermit};
use engine::transport::listener::Accepted;
use engine::transport::send::{self, Peer, SendError};
use engine::transport::tasks::{Ending, common_interval};
use files::Core;

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
    /// No user has signed in in time.
    #[error("nobody has signed in")]
    Unsigned,
    /// Nothing has come for long, and nothing is open.
    #[error("idle")]
    Idle,
    /// A frame was begun and not finished.
    #[error("the peer is too slow")]
    TooSlow,
    /// It is continued on another core, with this frame.
    #[error("handed over")]
    HandOver(usize, Vec<u8>),
    /// A request panicked: we are at fault.
    #[error("a request failed to end")]
    Panicked,
}

/// Serves one client to its end.
pub async fn serve(
    server: Arc<Server>,
    core: Rc<Core>,
    (accepted, begun): (Accepted, Option<Vec<u8>>),
    mut ending: Ending,
) {
    let Accepted { stream, peer: from, permit } = accepted;
    let peer = SocketAddr::new(from.ip().to_canonical(), from.port());
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
        channels: RefCell::default(),
        client: RefCell::default(),
        leaving: RefCell::default(),
        credits: RefCell::default(),
        cancels: RefCell::default(),
        outbox: RefCell::default(),
        outgoing: Cell::new(0),
        in_turn: Cell::new(false),
        now_ns: Cell::new(0),
        has_mail: Arc::new(Notify::new()),
        mailbox: Arc::default(),
        mail_places: RefCell::default(),
        granting: RefCell::default(),
        held_mail: RefCell::default(),
        held: Cell::new(0),
        waiting: Cell::default(),
        listings: Rc::default(),
        broken: Cell::new(None),
    });
    let peer = Peer::new(&stream, core.engine.budgets.limits().pace);
    let input = begun.map_or_else(Input::default, |begun| Input::begun(&core, begun));
    let socket = Socket { stream, peer, input };
    let mut exchange = Exchange {
        conn: Rc::clone(&conn),
        socket,
        tasks: JoinSet::new(),
        waiting: None,
        sending: Vec::new(),
        spans: Vec::new(),
        look: common_interval(SMB_LOOK),
        room: NextRoom::default(),
        receives: true,
        retries: false,
    };
    let ended = tokio::select! {
        ended = exchange.run() => ended,
        _ = ending.wait_for(|end| *end) => Ok(()),
    };
    // The peer knows why it has ended; nothing else needs the reason.
    if let Err(Ended::HandOver(to, begun)) = ended {
        return exchange.socket.hand_over(&conn, (to, begun), (from, permit));
    }
    exchange.socket.input.put_back(&core);
    exchange.tasks.shutdown().await;
    exchange.count_unsent();
    conn.close_all().await;
}

/// A socket, and what has come and was not taken.
struct Socket {
    stream: TcpStream,
    peer: Peer,
    input: Input,
}

impl Socket {
    /// Has another core continue the connection, which has sent this frame.
    fn hand_over(
        mut self,
        conn: &Connection,
        (to, frame): (usize, Vec<u8>),
        (peer, permit): (SocketAddr, ServicePermit),
    ) {
        let mut begun = prefix(frame.len()).unwrap_or_default().to_vec();
        begun.extend_from_slice(&frame);
        begun.extend_from_slice(self.input.rest());
        self.input.put_back(&conn.core);
        if let Ok(stream) = self.stream.into_std() {
            hand_over(&conn.server, to, Accepted { stream, peer, permit }, begun);
        }
    }
}

/// Hands a connection to another core; what it has sent is `begun`. It is closed if that core does
/// not take it.
fn hand_over(server: &Arc<Server>, to: usize, accepted: Accepted, begun: Vec<u8>) {
    let of_run = Arc::clone(server);
    let run = move |core: Rc<Core>, ending| {
        let (of_core, begun) = (Rc::clone(&core), Some(begun));
        let served = |accepted| serve(of_run, of_core, (accepted, begun), ending);
        Box::pin(accepted.run(&core.budget, served)) as Local
    };
    if let Some(joins) = &*server.joins.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = joins.hand_to(to, Box::new(run));
    }
}

struct Exchange {
    conn: Rc<Connection>,
    socket: Socket,
    tasks: JoinSet<()>,
    /// A frame that waits for room for its answer, with the bytes that it holds.
    waiting: Option<(Frame, usize)>,
    /// Answers that are being sent.
    sending: Vec<Answer>,
    /// Spans to record once they have left.
    spans: Vec<Span>,
    /// When users and shares are looked at again.
    look: Interval,
    /// Room in the budget.
    room: NextRoom,
    /// Whether there was room to receive when it was tried last, or may be now.
    receives: bool,
    /// There may be, and that was not tried yet.
    retries: bool,
}

impl Exchange {
    async fn run(&mut self) -> Result<(), Ended> {
        let sign_in_by = Deadline::after(SMB_SIGN_IN_TIME_MAX);
        loop {
            let has_more = self.take()?;
            self.collect()?;
            if !self.conn.outbox.borrow().is_empty() {
                if self.socket.input.is_empty() {
                    // Sending may have to wait for the peer: others can use the buffer meanwhile.
                    self.socket.input.put_back(&self.conn.core);
                }
                self.room.clear();
                self.send().await?;
                if has_more {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            // What was answered before has left.
            if let Some(broken) = self.conn.broken.get() {
                return Err(broken.into());
            }
            if has_more {
                tokio::task::yield_now().await;
                continue;
            }
            self.end_sessions();
            let unsigned = self.conn.is_unsigned();
            if unsigned && sign_in_by.passed() {
                return Err(Ended::Unsigned);
            }
            if self.socket.input.is_empty() {
                self.socket.input.put_back(&self.conn.core);
            }
            self.wait_for_room();
            let reads = self.waiting.is_none() && self.has_room() && !self.room.waits();
            let waits = !self.tasks.is_empty();
            let has_begun = reads && !self.socket.input.is_empty();
            let Self { room, socket: Socket { stream, input, .. }, .. } = self;
            let core = &self.conn.core;
            tokio::select! {
                ready = stream.readable(), if reads => self.receive(ready)?,
                () = send::peer_ended(stream), if !reads => return Err(Ended::Gone),
                () = poll_fn(|cx| room.poll(cx)) => {
                    self.retries = !std::mem::replace(&mut self.receives, true);
                }
                () = tokio::time::sleep(RECORD_LOOK), if has_begun => {
                    if input.is_too_slow(core) {
                        return self.give_up();
                    }
                }
                done = self.tasks.join_next(), if waits => ended(&self.conn, done)?,
                () = self.conn.has_something() => {}
                _ = self.look.tick(), if !unsigned => {
                    self.look_again();
                    if self.is_idle() {
                        return Err(Ended::Idle);
                    }
                }
                () = tokio::time::sleep(sign_in_by.left().unwrap_or_default()), if unsigned => {}
            }
        }
    }

    /// Receives what has come.
    fn receive(&mut self, ready: io::Result<()>) -> Result<(), Ended> {
        let (Socket { stream, input, peer }, core) = (&mut self.socket, &self.conn.core);
        let received = ready.and_then(|()| input.receive(stream, peer, core));
        self.retries = false;
        match received.map_err(|_| Ended::Gone)? {
            Received::Some => Ok(()),
            // Requests that wait for a lock end too.
            Received::End => Err(Ended::Gone),
            Received::NoRoom if input.is_too_slow(core) => self.give_up(),
            Received::NoRoom => {
                core.note_backpressure();
                self.receives = false;
                Ok(())
            }
        }
    }

    /// Ends the connection of a peer that does not finish what it has begun.
    fn give_up(&self) -> Result<(), Ended> {
        self.conn.core.engine.budgets.give_up();
        Err(Ended::TooSlow)
    }

    /// Ends sessions that an administrator has ended, those of removed users, and opens of
    /// applications that have moved.
    fn end_sessions(&mut self) {
        self.conn.end_instances();
        let gone = self.conn.take_ended();
        if !gone.is_empty() {
            self.conn.leave_mail_places();
        }
        for session in gone {
            let ending = Box::pin(tree::end(Rc::clone(&self.conn), session));
            self.tasks.spawn_local(self.conn.core.budget.within(ending));
        }
    }

    /// Whether nothing has come for as long as a connection may be silent that has nothing open.
    fn is_idle(&self) -> bool {
        let rests_ns = stamp().saturating_sub(self.socket.input.arrived_ns);
        let is_silent = rests_ns >= self.conn.settings.idle.as_nanos() as u64;
        let has_opens = || self.conn.sessions.borrow().values().any(|one| one.has_opens());
        is_silent && self.tasks.is_empty() && !has_opens()
    }

    /// Closes what is open in shares that are not what they were.
    fn look_again(&self) {
        for (session, opens) in self.conn.take_lost() {
            close::release(&self.conn, &session.who, opens);
        }
    }

    /// Waits for room in the budget, if there is none for the frame that waits, for another one, or
    /// to receive.
    fn wait_for_room(&mut self) {
        let frame = self.waiting.as_ref().map(|(frame, holds)| (frame.held(), *holds));
        let need = match frame {
            Some((bytes, holds)) => {
                let is_large = bytes >= LARGE_RECORD;
                let need = if is_large { Need::large(bytes) } else { Need::bytes(bytes) };
                Some(need.or_small_only().holding(holds))
            }
            None if !self.has_room() && self.may_take() => Some(Need::bytes(SMB_MESSAGE_MAX)),
            None if !self.receives => Some(self.socket.input.need()),
            // It keeps its place until it has received.
            None if self.retries => return,
            None => None,
        };
        match need {
            Some(need) => self.room.wait_for(&self.conn.core.budget, need),
            None => self.room.clear(),
        }
    }

    /// Whether a frame may be executed that holds `bytes` bytes with its answer. One large one
    /// of a core always may while the others are small.
    fn admits(&self, bytes: usize) -> bool {
        let budget = &self.conn.core.budget;
        let has_room = match bytes < LARGE_RECORD {
            true => budget.has_bytes(bytes),
            false => budget.has_large(bytes),
        };
        has_room || budget.has_small_only()
    }

    /// Whether another frame may be taken. One always may next to those that wait for another
    /// client: the frame can be what ends their wait.
    fn has_room(&self) -> bool {
        let (_, bytes) = self.conn.waiting.get();
        self.conn.held.get().saturating_sub(bytes) == 0
            || (self.may_take() && self.conn.core.budget.has_bytes(SMB_MESSAGE_MAX))
    }

    /// Whether the connection has few enough requests in progress for another one.
    fn may_take(&self) -> bool {
        let (waiting, bytes) = self.conn.waiting.get();
        self.conn.held.get().saturating_sub(bytes) < SMB_FLIGHT_BYTES
            && self.tasks.len().saturating_sub(waiting) < SMB_REQUESTS_MAX
    }

    /// Takes received frames, and executes at once what need not wait; returns whether there are
    /// more.
    fn take(&mut self) -> Result<bool, Ended> {
        if self.socket.input.is_empty() && self.waiting.is_none() {
            return Ok(false);
        }
        // From here on nothing is received, and nothing is sent before it ends.
        let _turn = vfs::turn::ReadBatch::begin();
        self.conn.now_ns.set(stamp());
        let until = self.conn.now_ns.get() + TURN_TIME_MAX.as_nanos() as u64;
        self.conn.in_turn.set(true);
        let mut taken = Ok(true);
        for _ in 0..TURN_OPS_MAX {
            // What a request has broken is sent before the answers of later ones.
            self.conn.deliver();
            match self.take_one() {
                Ok(true) => {}
                ended => {
                    taken = ended;
                    break;
                }
            }
            let full = self.conn.outgoing.get() >= SEND_BATCH_MAX;
            if full || self.conn.now_ns.get() >= until {
                break;
            }
        }
        self.conn.in_turn.set(false);
        taken
    }

    /// Takes one frame; false if there is none, or no room for it.
    fn take_one(&mut self) -> Result<bool, Ended> {
        let frame = match self.waiting.take() {
            Some((frame, bytes)) => {
                self.conn.release(bytes);
                frame
            }
            None if !self.has_room() => return Ok(false),
            None => {
                let max = match self.conn.is_unsigned() {
                    true => SMB_UNSIGNED_MESSAGE_MAX,
                    false => SMB_MESSAGE_MAX,
                };
                let (conn, Socket { input, peer, .. }) = (&self.conn, &mut self.socket);
                let Some((bytes, from)) = input.take(max, &conn.core)? else {
                    return Ok(false);
                };
                let arrived_ns = peer.arrivals.at(input.unread());
                match conn.take(bytes, from, arrived_ns)? {
                    FrameOutcome::Frame(frame) => frame,
                    FrameOutcome::HandOver(core, frame) => {
                        return Err(Ended::HandOver(core, frame));
                    }
                    _ => return Ok(true),
                }
            }
        };
        let (conn, held) = (&self.conn, frame.held());
        if !self.admits(held) {
            let bytes = frame.bytes.len();
            conn.hold(bytes);
            conn.core.note_backpressure();
            self.waiting = Some((frame, bytes));
            return Ok(false);
        }
        conn.hold(held);
        let begun = compound::begin(conn, frame, held);
        if let Some(suspended) = begun.map_err(|_| Ended::Panicked)? {
            self.tasks.spawn_local(conn.core.budget.within(suspended));
        }
        Ok(true)
    }

    /// Forgets tasks that have ended, and posts breaks of leases behind their answers.
    fn collect(&mut self) -> Result<(), Ended> {
        while let Some(done) = self.tasks.try_join_next() {
            ended(&self.conn, Some(done))?;
        }
        self.conn.deliver();
        Ok(())
    }

    /// Sends what is answered, as much as there is at once, and writes it down.
    async fn send(&mut self) -> Result<(), Ended> {
        std::mem::swap(&mut self.sending, &mut *self.conn.outbox.borrow_mut());
        self.conn.outgoing.set(0);
        let (stream, peer) = (&self.socket.stream, &mut self.socket.peer);
        let mut rest = self.sending.as_slice();
        while let Some((one, behind)) = rest.split_first() {
            let alike = rest.iter().take(SEND_PARTS_MAX).take_while(|one| one.extent.is_none());
            let alike = alike.count();
            if alike > 1 {
                let (many, behind) = rest.split_at(alike);
                rest = behind;
                let mut parts: Vec<_> = many.iter().map(|one| IoSlice::new(one.bytes())).collect();
                send::parts(stream, &mut parts, peer).await?;
                continue;
            }
            rest = behind;
            // What is sent from a file stands behind its head.
            send::bytes(stream, one.bytes(), one.extent.is_some(), peer).await?;
            if let Some(extent) = &one.extent {
                send::slice(stream, &extent.data, false, peer).await?;
            }
        }
        let core = &self.conn.core;
        for answer in self.sending.drain(..) {
            let data = answer.extent.as_ref().map_or(0, |extent| extent.count);
            core.budget.count_moved(answer.bytes().len() + data);
            core.buffers.give_reply(answer.reply);
            self.conn.release(answer.held);
            for (mut span, status) in answer.spans {
                span.facts.status = status;
                core.budget.count_taken();
                self.spans.push(span);
            }
        }
        core.sent(&mut self.spans, self.socket.peer.acks.get());
        Ok(())
    }

    /// Records operations of which the response has not left.
    fn count_unsent(&mut self) {
        let outbox = std::mem::take(&mut *self.conn.outbox.borrow_mut());
        for (mut span, status) in
            self.sending.drain(..).chain(outbox).flat_map(|answer| answer.spans)
        {
            span.facts.status = status;
            self.spans.push(span);
        }
        self.conn.core.finish(&mut self.spans);
    }
}

fn ended(conn: &Connection, done: Option<Result<(), JoinError>>) -> Result<(), Ended> {
    let Some(done) = done else { return Ok(()) };
    conn.core.engine.budgets.count_panic(&done);
    done.map_err(|_| Ended::Panicked)
}
