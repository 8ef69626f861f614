//! Takes requests from a channel and sends the replies: the only part that does I/O.
//!
//! What can be answered without waiting is answered in place; everything else is a separate task on
//! the same thread. The channel is not read while it has too many requests in progress, nor while
//! the peer does not take its replies.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use base::limits::{
    RECEIVE_BUFFER, SEND_BATCH_MAX, SFTP_PACKET_MAX, SFTP_REQUESTS_MAX, TURN_OPS_MAX,
};
use thiserror::Error;
use tokio::task::JoinSet;
use wire::sftp::PacketType;
use wire::sftp::packet::{Hello, Packet, cut};
use wire::xdr::{DecodeError, decode_all};

use super::channel::{Gone, Input, Output};
use super::dispatch::{self, Answer, Job, RequestOutcome};
use super::order::{Footprint, Order, Ticket};
use super::state::Session;
use engine::transport::budget::{Need, NextRoom};

/// Why a channel has ended before its end of data.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Ended {
    /// It was cut off.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// What came is no packet: the peer is at fault.
    #[error("no SFTP packet: {0}")]
    Packet(#[from] DecodeError),
    /// The first packet must be INIT, and no other may be: the peer is at fault.
    #[error("unexpected packet of type {0}")]
    Unexpected(u8),
    /// A request panicked: we are at fault.
    #[error("a request did not complete")]
    Panicked,
}

/// Bytes that have come.
#[derive(Default)]
struct Inbox {
    bytes: Vec<u8>,
    at: usize,
}

impl Inbox {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Room for more: what was taken is forgotten, but not so often that moving up the begin of a
    /// large packet costs as much as the data in it.
    fn room(&mut self) -> &mut Vec<u8> {
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        } else if self.at >= SFTP_PACKET_MAX {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        &mut self.bytes
    }

    /// There is nothing to do for the channel: it keeps no more memory than most requests need.
    fn shrink(&mut self) {
        if self.at == self.bytes.len() && self.bytes.capacity() > RECEIVE_BUFFER {
            *self = Self::default();
        }
    }
}

/// The requests of a channel, and their answers.
struct Exchange {
    session: Rc<Session>,
    order: Order<Job>,
    tasks: JoinSet<(Ticket, Answer)>,
    /// WRITEs that could begin, but the next packet may continue them.
    gathering: Option<(Ticket, Job)>,
    answers: Vec<Answer>,
    /// Bytes of the answers.
    size: usize,
}

/// Serves a channel to its end. To be called within a `LocalSet`.
///
/// # Errors
/// By [`Ended`]. Uploads that were not closed are abandoned.
pub async fn serve<I: Input, O: Output>(
    session: Rc<Session>,
    mut input: I,
    mut output: O,
) -> Result<(), Ended> {
    let mut inbox = Inbox::default();
    while !hello(&mut inbox)? {
        if input.receive(inbox.room()).await? == 0 {
            return Ok(());
        }
    }
    output.send(&[&dispatch::version()]).await?;
    let mut exchange = Exchange {
        session,
        order: Order::default(),
        tasks: JoinSet::new(),
        gathering: None,
        answers: Vec::new(),
        size: 0,
    };
    let (mut open, mut room) = (true, NextRoom::default());
    loop {
        exchange.take(&mut inbox, &mut input).await?;
        exchange.collect().await?;
        if !exchange.answers.is_empty() {
            exchange.send(&mut output).await?;
            tokio::task::yield_now().await;
            continue;
        }
        if exchange.order.len() == 0 {
            if !open {
                return Ok(());
            }
            inbox.shrink();
        }
        let (reads, waits) = (open && exchange.may_take(), !exchange.tasks.is_empty());
        let budget = &exchange.session.core.budget;
        match reads || waits {
            true => room.clear(),
            // The memory of this core is with others.
            false => room.wait_for(budget, Need::bytes(SFTP_PACKET_MAX)),
        }
        tokio::select! {
            got = input.receive(inbox.room()), if reads => open = got? > 0,
            done = exchange.tasks.join_next(), if waits => exchange.joined(done).await?,
            () = poll_fn(|cx| room.poll(cx)) => {}
        }
    }
}

/// Takes INIT; false if it has not come yet. Whatever version the client has, ours is 3.
fn hello(inbox: &mut Inbox) -> Result<bool, Ended> {
    match cut(inbox.rest())? {
        Ok(Packet { kind: PacketType::INIT, body, consumed }) => {
            decode_all::<Hello<'_>>(body)?;
            inbox.at += consumed;
            Ok(true)
        }
        Ok(packet) => Err(Ended::Unexpected(packet.kind.0)),
        Err(_) => Ok(false),
    }
}

impl Exchange {
    /// Whether another request may be taken.
    fn may_take(&self) -> bool {
        self.order.len() < SFTP_REQUESTS_MAX && !self.order.is_moving() && self.session.has_room()
    }

    /// Takes requests that have come, until there is enough to send.
    async fn take(&mut self, inbox: &mut Inbox, input: &mut impl Input) -> Result<(), Ended> {
        let mut taken = 0;
        while taken < TURN_OPS_MAX && self.size < SEND_BATCH_MAX && self.may_take() {
            let Ok(packet) = cut(inbox.rest())? else { break };
            if packet.kind == PacketType::INIT {
                return Err(Ended::Unexpected(packet.kind.0));
            }
            let arrived_ns = input.arrived(inbox.rest().len().saturating_sub(packet.consumed));
            if packet.kind != PacketType::WRITE || !self.gather(packet, arrived_ns) {
                self.begin_gathered().await;
                match self.session.take(packet, arrived_ns) {
                    None => return Err(Ended::Unexpected(packet.kind.0)),
                    Some(RequestOutcome::Answer(answer)) => self.answered(answer),
                    Some(RequestOutcome::Job(footprint, job)) => self.enter(footprint, job).await,
                }
            }
            inbox.at += packet.consumed;
            taken += 1;
        }
        self.begin_gathered().await;
        Ok(())
    }

    async fn enter(&mut self, footprint: Footprint, job: Job) {
        match self.order.enter(footprint, job) {
            (ticket, Some(job @ Job::Write(_))) => self.gathering = Some((ticket, job)),
            (ticket, Some(job)) => self.begin(ticket, job).await,
            (_, None) => {}
        }
    }

    /// Adds a WRITE to those before it, if they have not begun and it continues them.
    fn gather(&mut self, packet: Packet<'_>, arrived_ns: u64) -> bool {
        let last = match &mut self.gathering {
            Some((_, job)) => Some(job),
            None => self.order.last_waiting(),
        };
        last.is_some_and(|last| self.session.gather(last, packet, arrived_ns))
    }

    async fn begin_gathered(&mut self) {
        if let Some((ticket, job)) = self.gathering.take() {
            self.begin(ticket, job).await;
        }
    }

    /// Begins a request, and those that waited only for it if it is done at once.
    async fn begin(&mut self, ticket: Ticket, job: Job) {
        let mut ready = vec![(ticket, job)];
        while let Some((ticket, job)) = ready.pop() {
            let mut running = job.start(&self.session);
            let first = poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await;
            match first {
                Poll::Ready(answer) => {
                    self.answered(answer);
                    ready.extend(self.order.leave(ticket));
                }
                Poll::Pending => {
                    let running = async move { (ticket, running.await) };
                    let budget = &self.session.core.budget;
                    self.tasks.spawn_local(budget.within(Box::pin(running)));
                }
            }
        }
    }

    fn answered(&mut self, answer: Answer) {
        self.size += answer.reply.len();
        self.answers.push(answer);
    }

    /// Takes the answers of tasks that have ended.
    async fn collect(&mut self) -> Result<(), Ended> {
        while self.size < SEND_BATCH_MAX
            && let Some(done) = self.tasks.try_join_next()
        {
            self.joined(Some(done)).await?;
        }
        Ok(())
    }

    async fn joined(
        &mut self,
        done: Option<Result<(Ticket, Answer), tokio::task::JoinError>>,
    ) -> Result<(), Ended> {
        if let Some(done) = &done {
            self.session.core.engine.budgets.count_panic(done);
        }
        match done {
            None => Ok(()),
            Some(Err(_)) => Err(Ended::Panicked),
            Some(Ok((ticket, answer))) => {
                self.answered(answer);
                for (ticket, job) in self.order.leave(ticket) {
                    self.begin(ticket, job).await;
                }
                Ok(())
            }
        }
    }

    /// Sends what is answered, and writes it down.
    async fn send<O: Output>(&mut self, output: &mut O) -> Result<(), Ended> {
        let parts: Vec<&[u8]> = self.answers.iter().map(|a| a.reply.as_slice()).collect();
        output.send(&parts).await?;
        let core = &self.session.core;
        let mut all = Vec::new();
        for Answer { reply, mut spans, held } in self.answers.drain(..) {
            core.buffers.give_reply(reply);
            self.session.release(held);
            all.append(&mut spans);
        }
        self.size = 0;
        let core = Rc::clone(core);
        output.when_sent(move |acks| core.all_sent(all, acks));
        Ok(())
    }
}

const _: () = assert!(SEND_BATCH_MAX >= SFTP_PACKET_MAX);
