//! One connection: receives and executes lines, sends the responses and records them. The only file
//! of this folder that does I/O.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::clock::{Deadline, stamp};
use base::limits::{ECHO_RECEIVE, ECHO_SIGN_IN_TIME_MAX, TURN_OPS_MAX};
use probe::op::Protocol;
use probe::phases::Phase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use vfs::identity::Person;
use wire::echo::{Op, Status, answer, cut};

use super::Core;
use super::dispatch::{self, Outcome};
use crate::exec::{DispatchResult, Span};
use crate::transport::budget::ReservedBytes;
use crate::transport::listener::Accepted;
use crate::transport::tasks::Ending;

/// The connection has ended, or is of no use any more.
struct Disconnected;

struct Conn {
    core: Rc<Core>,
    stream: TcpStream,
    from: IpAddr,
    /// The client's number in the statistics.
    client: u32,
    /// The signed-in user, and the generation of the users in which it was last found valid.
    who: Option<(Arc<Person>, u64)>,
    /// The deadline of the sign-in.
    sign_in: Deadline,
    /// What was received and not processed yet.
    input: Vec<u8>,
    /// The memory of `input` and of its responses.
    _held: ReservedBytes,
}

/// Serves one client until its connection ends.
pub(super) async fn serve(core: Rc<Core>, accepted: Accepted, ending: Ending) {
    let Accepted { stream, peer, permit: _permit } = accepted;
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let Some(held) = core.budget.try_hold(2 * ECHO_RECEIVE) else {
        return core.engine.budgets.refuse();
    };
    let from = peer.ip().to_canonical();
    let mut conn = Conn {
        stream,
        from,
        client: core.engine.hub.clients().intern(from),
        who: None,
        sign_in: Deadline::after(ECHO_SIGN_IN_TIME_MAX),
        input: Vec::with_capacity(ECHO_RECEIVE),
        _held: held,
        core,
    };
    // A client that has disconnected needs nothing more.
    let _ = conn.run(ending).await;
}

impl Conn {
    async fn run(&mut self, mut ending: Ending) -> Result<(), Disconnected> {
        loop {
            while self.take().await? {
                tokio::task::yield_now().await;
            }
            tokio::select! {
                biased;
                _ = ending.wait_for(|end| *end) => return Ok(()),
                received = self.receive() => received?,
            }
        }
    }

    /// How long the client may be idle, or take to receive a response.
    fn patience(&self) -> Duration {
        match self.who {
            Some(_) => self.core.server.idle(),
            None => self.sign_in.left().unwrap_or_default(),
        }
    }

    /// Receives something. A line fits, so there is room: `take` leaves less than a line.
    async fn receive(&mut self) -> Result<(), Disconnected> {
        let (patience, room) = (self.patience(), ECHO_RECEIVE - self.input.len());
        let mut input = (&mut self.stream).take(room as u64);
        match timeout(patience, input.read_buf(&mut self.input)).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(_) => Err(Disconnected),
            Err(_) => {
                self.core.engine.budgets.give_up();
                Err(Disconnected)
            }
        }
    }

    /// Executes lines that have arrived, as many as one turn may have; whether there may be more.
    async fn take(&mut self) -> Result<bool, Disconnected> {
        let arrived_ns = stamp();
        let mut now_ns = arrived_ns;
        let input = std::mem::take(&mut self.input);
        let (mut rest, mut out, mut spans) = (&input[..], Vec::new(), Vec::new());
        let mut goes_on = true;
        while goes_on && spans.len() < TURN_OPS_MAX {
            let line = match cut(rest) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(_) => {
                    self.core.engine.budgets.bad_records.fetch_add(1, Relaxed);
                    goes_on = false;
                    break;
                }
            };
            rest = rest.get(line.len()..).unwrap_or_default();
            let before = out.len();
            let outcome = self.answer(line, &mut out).await?;
            // After the sign-in, a line fails alone.
            goes_on = outcome.status == Status::Ok || outcome.op == Op::Echo;
            let mut span = self.span(&outcome, out.len() - before, arrived_ns);
            span.clock.resume(now_ns);
            now_ns = stamp();
            span.clock.spent(Phase::Inline, now_ns);
            spans.push(span);
        }
        let has_more = spans.len() == TURN_OPS_MAX;
        let left = input.len() - rest.len();
        self.input = input;
        self.input.drain(..left);
        self.send(&out, &mut spans).await?;
        if goes_on { Ok(has_more) } else { Err(Disconnected) }
    }

    async fn answer(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<Outcome, Disconnected> {
        if self.who.is_none() {
            let outcome = dispatch::sign_in(&self.core, self.from, line, out).await;
            let generation = self.core.server.identity.generation();
            self.who = outcome.person.clone().map(|person| (person, generation));
            return Ok(outcome);
        }
        let (core, before) = (Rc::clone(&self.core), out.len());
        let echo = || self.is_welcome().then(|| dispatch::echo(line, out));
        let status = match core.engine.attempt(echo) {
            Ok(None) => return Err(Disconnected),
            Ok(Some(DispatchResult::Done)) => Status::Ok,
            // Nothing in it waits: there is no operation for the pool or a flush.
            Ok(Some(_)) | Err(_) => {
                out.truncate(before);
                out.extend_from_slice(answer(false));
                Status::Fault
            }
        };
        Ok(Outcome { person: None, op: Op::Echo, status })
    }

    /// Whether the signed-in user is still valid: checked again when the users have changed.
    fn is_welcome(&mut self) -> bool {
        let identity = &self.core.server.identity;
        let Some((person, seen)) = &mut self.who else { return false };
        let now = identity.generation();
        // It is checked again after a panic.
        let stands = *seen == now || identity.stands(person);
        if stands {
            *seen = now;
        }
        stands
    }

    fn span(&self, outcome: &Outcome, sent: usize, arrived_ns: u64) -> Span {
        let core = &self.core;
        let mut span = core.begin(Protocol::Echo, self.client, outcome.op as u8, arrived_ns);
        if let Some((person, _)) = &self.who {
            span.facts.user = person.cred.uid;
        }
        span.facts.status = outcome.status as u16;
        if outcome.op == Op::Echo && outcome.status == Status::Ok {
            span.moved(sent);
        }
        span
    }

    /// Sends responses, and records their operations when they have left.
    async fn send(&mut self, out: &[u8], spans: &mut Vec<Span>) -> Result<(), Disconnected> {
        if out.is_empty() {
            return Ok(());
        }
        let patience = self.core.server.idle();
        let sent = timeout(patience, self.stream.write_all(out)).await;
        self.core.finish(spans);
        if matches!(sent, Ok(Ok(()))) { Ok(()) } else { Err(Disconnected) }
    }
}
