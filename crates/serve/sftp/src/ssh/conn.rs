//! One connection: bytes from and to the socket, timeouts, and wakeups.
//!
//! A receive is processed completely, then the channels run, and their replies leave in one send.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use base::clock::{Clock, SystemClock};
use base::limits::{
    DRAIN_TIME_MAX, SSH_BACKLOG_MAX, SSH_BUFFERS_KEPT, SSH_HANDSHAKE_TIME, SSH_KEEPALIVE,
    SSH_KEEPALIVES_MAX, SSH_LOGIN_TIME, SSH_PENALTY_LATE, SSH_PENALTY_NOBODY, SSH_RECEIVE_BUFFER,
    SSH_REKEY_PATIENCE,
};
use base::random::SystemRandom;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use vfs::identity::Person;
use vfs::transfers::Security;
use wire::ssh::kex::Chosen;
use wire::ssh::message::{Message, channel_data, reason};
use wire::ssh::transport::{Error, Received, Side, Transport};

use super::auth::{Auth, Outcome};
use super::session::{Begin, Session, Shared};
use super::unsigned::UnsignedPermit;
use super::{Ssh, Started, pipe};
use engine::transport::acks::OpenAcks;
use engine::transport::budget::{CoreBudget, Need, NextRoom, ReservedBytes};
use engine::transport::listener::Accepted;
use engine::transport::pace::SlowPeerBudget;
use engine::transport::send::{adapt_unsent, in_kernel};
use engine::transport::tasks::{Ending, common_interval};

thread_local! {
    /// Unused receive buffers of this core.
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Why a connection ends.
enum End {
    /// The peer has gone, or the socket is broken.
    Socket,
    /// The peer did what it may not.
    Protocol(Error),
    /// We end it: the reason code and the description.
    Ours(u32, &'static str),
    /// We end it because the peer is too slow.
    Late,
    /// The service ends.
    Over,
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Protocol(error)
    }
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Socket
    }
}

/// Serves one connection until it ends, or should: `start` runs the SFTP server on each channel and
/// returns its exit status.
pub async fn serve<S, F>(
    ssh: Arc<Ssh>,
    budget: Rc<CoreBudget>,
    accepted: Accepted,
    ending: Ending,
    start: S,
) where
    S: Fn(Started) -> F,
    F: Future<Output = u32> + 'static,
{
    let from = accepted.peer.ip().to_canonical();
    let now = SystemClock.monotonic_ns();
    let Ok(stream) = TcpStream::from_std(accepted.stream) else { return };
    let Some(unsigned) = ssh.unsigned.enter(from, now, budget.revoke_signal()) else {
        // The text of OpenSSH: lines may come before the version (RFC 4253, section 4.2).
        let _ = stream.try_write(b"Not allowed at this time\r\n");
        return ssh.budgets.refuse();
    };
    let side = Side::Server(Arc::clone(&ssh.setup));
    let Ok(mut transport) = Transport::new(side, Box::new(SystemRandom)) else { return };
    transport.set_renewable(false);
    let session = Rc::new(RefCell::new(Session::new(transport, Rc::clone(&budget))));
    let acks = OpenAcks::new(&stream);
    session.borrow_mut().acks = Some(Rc::clone(acks.get()));
    let wake = Rc::clone(&session.borrow().wake);
    let pace = ssh.budgets.limits().pace;
    let mut connection = Connection {
        ssh,
        from,
        stream,
        acks,
        session,
        wake,
        start,
        channels: JoinSet::new(),
        unsigned: Some(unsigned),
        auth: Auth::new(from),
        person: None,
        generation: 0,
        input: Vec::new(),
        held: [budget.hold(0), budget.hold(0)],
        budget,
        begun_ns: now,
        heard_ns: now,
        asked: 0,
        exchange_ns: None,
        paces: [pace; 2],
        received: 0,
        taken: 0,
        written: 0,
        looked_ns: now,
        is_full: false,
        room: NextRoom::default(),
    };
    let end = connection.run(ending).await;
    connection.close(end).await;
}

struct Connection<S> {
    ssh: Arc<Ssh>,
    from: IpAddr,
    stream: TcpStream,
    acks: OpenAcks,
    session: Shared,
    wake: Rc<Notify>,
    start: S,
    /// The SFTP servers: channel and exit status.
    channels: JoinSet<(u32, u32)>,
    unsigned: Option<UnsignedPermit>,
    auth: Auth,
    person: Option<Arc<Person>>,
    /// Of the users, when the person was looked at last.
    generation: u64,
    input: Vec<u8>,
    budget: Rc<CoreBudget>,
    /// What of the account the receive buffer has, and what is to be sent.
    held: [ReservedBytes; 2],
    begun_ns: u64,
    heard_ns: u64,
    /// Questions whether the peer is there that it has not answered.
    asked: u32,
    /// Since when keys are being made.
    exchange_ns: Option<u64>,
    /// How slow the peer may be to send a packet that it has begun, and to take what is sent.
    paces: [SlowPeerBudget; 2],
    /// Bytes received since the last look.
    received: u64,
    /// Bytes given to the kernel, and those of them that the peer had taken at the last look.
    written: u64,
    taken: u64,
    looked_ns: u64,
    /// Whether the socket has taken nothing when it was tried last.
    is_full: bool,
    /// Room in the budget to receive.
    room: NextRoom,
}

impl<S, F> Connection<S>
where
    S: Fn(Started) -> F,
    F: Future<Output = u32> + 'static,
{
    async fn run(&mut self, mut ending: Ending) -> End {
        // Often enough for all timeouts here, and for users that are no longer valid.
        let mut tick = common_interval(SSH_KEEPALIVE / 12);
        loop {
            let interest = match self.flush() {
                Ok(interest) => interest,
                Err(end) => return end,
            };
            // Without room for it nothing is received; the end of the peer shows nowhere else then.
            let reads = interest.is_readable() && !self.room.waits();
            let waits_for = match (reads, interest.is_writable()) {
                (true, _) => interest,
                (false, true) => Interest::WRITABLE | Interest::PRIORITY,
                (false, false) => Interest::PRIORITY,
            };
            let room = &mut self.room;
            let turn = tokio::select! {
                biased;
                _ = ending.wait_for(|end| *end) => {
                    Err(End::Over)
                }
                ready = self.stream.ready(waits_for) => match ready {
                    Ok(_) if reads => self.receive().await,
                    Ok(ready) if ready.is_writable() => Ok(()),
                    Ok(_) => Err(End::Socket),
                    Err(e) => Err(e.into()),
                },
                () = poll_fn(|cx| room.poll(cx)) => self.receive().await,
                () = self.wake.notified() => Ok(()),
                Some(ended) = self.channels.join_next() => self.finish(ended),
                _ = tick.tick() => self.look(),
            };
            if let Err(end) = turn {
                return end;
            }
        }
    }

    /// Sends what the socket takes. Returns what to wait for.
    fn flush(&mut self) -> Result<Interest, End> {
        let mut session = self.session.borrow_mut();
        if let Some(error) = session.failed.take() {
            return Err(error.into());
        }
        session.transport.renew(SystemClock.monotonic_ns())?;
        while session.transport.backlog() > 0 {
            match self.stream.try_write(session.transport.output()?) {
                Ok(n) => {
                    self.acks.get().count(n);
                    session.sent(n);
                    self.written += n as u64;
                    if std::mem::take(&mut self.is_full) {
                        adapt_unsent(&self.stream);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.is_full = true;
                    break;
                }
                Err(e) => return Err(e.into()),
            }
        }
        session.drained();
        let [_, sending] = &mut self.held;
        sending.set(session.transport.backlog());
        Ok(match session.transport.backlog() {
            0 => Interest::READABLE,
            // No more requests are read from a peer that does not take replies.
            SSH_BACKLOG_MAX.. => Interest::WRITABLE,
            _ => Interest::READABLE | Interest::WRITABLE,
        })
    }

    /// Receives once and takes all complete packets.
    async fn receive(&mut self) -> Result<(), End> {
        if self.input.capacity() == 0 {
            if !self.budget.has_bytes(SSH_RECEIVE_BUFFER) {
                // What is there stays in the kernel until others have given room back.
                count(&self.ssh.budgets.stalls);
                self.room.wait_for(&self.budget, Need::bytes(SSH_RECEIVE_BUFFER));
                return Ok(());
            }
            self.room.clear();
            let [receiving, _] = &mut self.held;
            receiving.set(SSH_RECEIVE_BUFFER);
            self.input = BUFFERS
                .with_borrow_mut(Vec::pop)
                .unwrap_or_else(|| Vec::with_capacity(SSH_RECEIVE_BUFFER));
        }
        match self.stream.try_read_buf(&mut self.input) {
            Ok(0) => return Err(End::Socket),
            Ok(n) => {
                self.heard_ns = SystemClock.monotonic_ns();
                self.received += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.rest();
                return Ok(());
            }
            Err(e) => return Err(e.into()),
        }
        self.asked = 0;
        let mut input = std::mem::take(&mut self.input);
        let taken = self.take(&mut input).await;
        self.input = input;
        self.input.drain(..taken?);
        self.rest();
        // What woke has its turn before anything is sent.
        yield_once().await;
        Ok(())
    }

    /// Gives the receive buffer back if there is nothing in it.
    fn rest(&mut self) {
        if self.input.is_empty() {
            give_back(std::mem::take(&mut self.input));
            let [receiving, _] = &mut self.held;
            receiving.set(0);
        }
    }

    /// Takes all complete packets; returns how many bytes they were.
    async fn take(&mut self, input: &mut [u8]) -> Result<usize, End> {
        let mut at = 0;
        loop {
            let rest = input.get_mut(at..).unwrap_or_default();
            let (n, outcome) = {
                let mut session = self.session.borrow_mut();
                let (n, payload) = match session.transport.receive(rest)? {
                    Received::Need(_) => return Ok(at),
                    Received::Handled(n) => {
                        session.drained();
                        at += n;
                        continue;
                    }
                    Received::Packet(n, payload) => (n, payload),
                };
                if let Some(person) = &self.person {
                    at += n;
                    if let Some((id, data)) = channel_data(payload) {
                        session.receive_data(id, data)?;
                        continue;
                    }
                    let begin = session.receive(Message::decode(payload).map_err(Error::from)?)?;
                    drop(session);
                    if let Some(begin) = begin {
                        self.begin(begin, Arc::clone(person));
                    }
                    continue;
                }
                let message = Message::decode(payload).map_err(Error::from)?;
                let now_s = SystemClock.wall_ns() / 1_000_000_000;
                let transport = &mut session.transport;
                (n, self.auth.receive(&self.ssh, transport, now_s, message)?)
            };
            at += n;
            self.sign_in(outcome).await?;
        }
    }

    /// The result of an attempt to sign in; later messages of the client wait.
    async fn sign_in(&mut self, mut outcome: Outcome) -> Result<(), End> {
        if let Outcome::Judge(user, password) = outcome {
            let (sign_ins, identity) = (&self.ssh.sign_ins, &self.ssh.identity);
            let judged = sign_ins.password(identity, self.from, &user, &password).await;
            let transport = &mut self.session.borrow_mut().transport;
            outcome = self.auth.judged(&self.ssh, transport, judged)?;
        }
        match outcome {
            Outcome::Answered | Outcome::Judge(..) => Ok(()),
            Outcome::Enough(reason, why) => Err(End::Ours(reason, why)),
            Outcome::Signed(person) => {
                self.generation = self.ssh.identity.generation();
                self.person = Some(person);
                self.unsigned = None;
                self.budget.keep_connection();
                self.session.borrow_mut().transport.set_renewable(true);
                Ok(())
            }
        }
    }

    /// Begins a server on a channel.
    fn begin(&mut self, begin: Begin, person: Arc<Person>) {
        let subsystem = begin.subsystem;
        let (input, output) = pipe::halves(&self.session, begin.id, &begin.signals);
        let (software, security) = {
            let session = self.session.borrow();
            let transport = &session.transport;
            (transport.peer_version().to_vec(), transport.chosen().map(security))
        };
        let server = (self.start)(Started { subsystem, person, software, security, input, output });
        let id = begin.id;
        let server = async move { (id, server.await) };
        self.channels.spawn_local(self.budget.within(Box::pin(server)));
    }

    /// An SFTP server has ended.
    fn finish(&mut self, ended: Result<(u32, u32), tokio::task::JoinError>) -> Result<(), End> {
        self.ssh.budgets.count_panic(&ended);
        let Ok((id, status)) = ended else {
            return Err(End::Ours(reason::BY_APPLICATION, "internal error"));
        };
        Ok(self.session.borrow_mut().finish(id, status)?)
    }

    /// What is to be seen to from time to time.
    fn look(&mut self) -> Result<(), End> {
        let now = SystemClock.monotonic_ns();
        if !self.meets_rate(now) {
            return Err(End::Late);
        }
        let longer =
            |since: u64, than: Duration| now.saturating_sub(since) >= than.as_nanos() as u64;
        let mut session = self.session.borrow_mut();
        let exchanging = session.transport.is_exchanging();
        self.exchange_ns = exchanging.then(|| self.exchange_ns.unwrap_or(now));
        let late = if session.transport.session().is_none() {
            longer(self.begun_ns, SSH_HANDSHAKE_TIME)
        } else if self.person.is_none() {
            longer(self.begun_ns, SSH_LOGIN_TIME)
        } else {
            self.exchange_ns.is_some_and(|since| longer(since, SSH_REKEY_PATIENCE))
        };
        if late {
            return Err(End::Late);
        }
        let Some(person) = &self.person else { return Ok(()) };
        let generation = self.ssh.identity.generation();
        if generation != self.generation {
            self.generation = generation;
            if !self.ssh.identity.stands(person) {
                return Err(End::Ours(reason::BY_APPLICATION, "the account is no longer valid"));
            }
        }
        let silent = u64::from(self.asked + 1) * SSH_KEEPALIVE.as_nanos() as u64;
        if now.saturating_sub(self.heard_ns) < silent {
            return Ok(());
        }
        if self.asked == SSH_KEEPALIVES_MAX {
            self.ssh.budgets.give_up();
            return Err(End::Ours(reason::BY_APPLICATION, "nobody answers"));
        }
        self.asked += 1;
        session.idle();
        let name = "keepalive@openssh.com";
        let message = Message::GlobalRequest { name, want_reply: true, data: b"" };
        Ok(session.transport.send_message(&message)?)
    }

    /// Whether the peer is fast enough: with a packet that it has begun, which holds a buffer, and
    /// with what waits for it.
    fn meets_rate(&mut self, now_ns: u64) -> bool {
        let time = Duration::from_nanos(now_ns.saturating_sub(self.looked_ns));
        self.looked_ns = now_ns;
        let [sending, taking] = &mut self.paces;
        let received = std::mem::take(&mut self.received);
        sending.waited(if self.input.is_empty() { Duration::ZERO } else { time }, received);
        let taken = self.written.saturating_sub(in_kernel(&self.stream));
        let came = taken.saturating_sub(std::mem::replace(&mut self.taken, taken));
        let waits = self.session.borrow().transport.backlog() > 0;
        taking.waited(if waits { time } else { Duration::ZERO }, came);
        sending.left().is_some() && taking.left().is_some()
    }

    /// Charges the client for a connection that ends without sign-in.
    fn charge(&self, end: &End) {
        if matches!(end, End::Late) {
            self.ssh.budgets.give_up();
        }
        let penalty = match end {
            End::Over => return,
            End::Late => SSH_PENALTY_LATE,
            _ => SSH_PENALTY_NOBODY,
        };
        if let Some(unsigned) = &self.unsigned {
            unsigned.charge(penalty, SystemClock.monotonic_ns());
        }
    }

    /// Reports a client that has no algorithm in common: its own error does not show the reason.
    fn note_mismatch(&self, error: &wire::ssh::transport::Error) {
        let wire::ssh::transport::Error::Negotiation(why) = error else { return };
        let session = self.session.borrow();
        let client = (self.from, session.transport.peer_version());
        self.ssh.mismatches.note(client, why, SystemClock.monotonic_ns());
    }

    /// Ends the connection: the SFTP servers abandon what is in progress, and the peer receives the
    /// reason.
    async fn close(mut self, end: End) {
        self.session.borrow_mut().end();
        self.charge(&end);
        // They see the end and put their files in order.
        let all = async { while self.channels.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN_TIME_MAX / 2, all).await;
        self.channels.shutdown().await;
        let disconnection = match &end {
            End::Socket => None,
            End::Late => Some((reason::BY_APPLICATION, "timeout".to_owned())),
            End::Over => Some((reason::BY_APPLICATION, "the service is stopping".to_owned())),
            End::Ours(reason, why) => Some((*reason, (*why).to_owned())),
            End::Protocol(error) => {
                self.note_mismatch(error);
                if error.reason().is_some() {
                    count(&self.ssh.budgets.bad_records);
                }
                error.reason().map(|reason| (reason, error.to_string()))
            }
        };
        if let Some((reason, why)) = disconnection {
            let mut session = self.session.borrow_mut();
            session.transport.disconnect(reason, &why);
            if let Ok(output) = session.transport.output() {
                // Whether it is taken is the peer's affair.
                let _ = self.stream.try_write(output);
            }
        }
        give_back(std::mem::take(&mut self.input));
    }
}

/// What the data of an upload is protected with; that of a download may differ in theory.
fn security(chosen: &Chosen) -> Security {
    let [cipher, _] = chosen.ciphers;
    Security { version: "SSH-2.0", cipher: cipher.name() }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Returns a receive buffer to the pool of its core.
fn give_back(mut buffer: Vec<u8>) {
    BUFFERS.with_borrow_mut(|buffers| {
        if buffer.capacity() >= SSH_RECEIVE_BUFFER && buffers.len() < SSH_BUFFERS_KEPT {
            buffer.clear();
            buffers.push(buffer);
        }
    });
}

/// Lets the tasks that are ready on this thread run.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
