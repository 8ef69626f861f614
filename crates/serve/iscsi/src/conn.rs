//! One connection: receives PDUs, has them handled, sends what is answered. The only file that
//! waits for the socket.

pub(super) mod stream;
mod unsent;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;

use base::clock::{Deadline, monotonic_ns, stamp};
use base::limits::{
    ISCSI_DATA_MAX, ISCSI_LOGIN_DATA_MAX, ISCSI_LOGIN_TIME_MAX, ISCSI_LOGOUT_TIME_MAX,
    RECEIVE_BUFFER, SEND_BATCH_MAX, TURN_OPS_MAX,
};
use tokio::net::TcpStream;
use tokio::sync::watch;
use wire::iscsi::frame::Framed;

use self::stream::Wire;
use super::core::Core;
use super::ended::Ended;
use super::login;
use super::session::{Event, Session};
use super::state::sessions::Order;
use engine::transport::budget::{Need, NextRoom};
use engine::transport::listener::Accepted;
use engine::transport::pace::SlowPeerBudget;
use engine::transport::tasks::Ending;

/// Serves one initiator to its end.
pub async fn serve(core: Rc<Core>, accepted: Accepted, ending: Ending) {
    let Accepted { stream, peer, permit: _permit } = accepted;
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let Ok(local) = stream.local_addr() else { return };
    let mut wire = Wire::new(&core, stream, ISCSI_LOGIN_DATA_MAX);
    let login = login::run(&core, &mut wire, (peer, local));
    let Ok(Ok(session)) = tokio::time::timeout(ISCSI_LOGIN_TIME_MAX, login).await else {
        return;
    };
    wire.set(session.digests(), ISCSI_DATA_MAX);
    let (order, pace) = (session.order(), core.engine.budgets.limits().pace);
    let rooms = <[NextRoom; 2]>::default();
    let mut conn = Conn { core, wire, session, order, ending, pace, leave_by: None, rooms };
    // The peer knows why it has ended; nothing else needs the reason.
    let _ = conn.run().await;
    conn.session.end();
}

/// Waits until another login has taken the place of the session.
async fn replaced(order: &mut watch::Receiver<Order>) {
    if order.wait_for(|order| *order == Order::Replaced).await.is_err() {
        // The sender is gone, so no order can come.
        std::future::pending::<()>().await;
    }
}

struct Conn {
    core: Rc<Core>,
    wire: Wire,
    session: Session,
    order: watch::Receiver<Order>,
    ending: Ending,
    /// How fast data comes that was asked for: commands that wait for it hold memory.
    pace: SlowPeerBudget,
    /// Until when it must have logged out, once it was asked to.
    leave_by: Option<Deadline>,
    /// Room in the budget: to receive, and for the commands that wait for memory.
    rooms: [NextRoom; 2],
}

impl Conn {
    async fn run(&mut self) -> Result<(), Ended> {
        let mut open = true;
        loop {
            // Nothing more of it is carried out: the next session may have begun.
            if *self.order.borrow() == Order::Replaced {
                return Err(Ended::Replaced);
            }
            let taken = self.take();
            // What was queued before the end is still sent.
            if self.wire.size() > 0 {
                // It may have to wait for the peer: others can have the room meanwhile.
                self.rooms.iter_mut().for_each(NextRoom::clear);
                tokio::select! {
                    // Most of the time all of it is taken at once.
                    biased;
                    sent = self.wire.send() => sent?,
                    // A peer that takes nothing must not delay the session that replaces it.
                    () = replaced(&mut self.order) => return Err(Ended::Replaced),
                }
                taken?;
                tokio::task::yield_now().await;
                continue;
            }
            let has_more = taken?;
            if self.session.leaves {
                return Err(Ended::LoggedOut);
            }
            if has_more {
                tokio::task::yield_now().await;
                continue;
            }
            if !open {
                return Err(Ended::Gone);
            }
            self.wire.rest();
            open = self.wait().await?;
        }
    }

    /// Handles received PDUs, as far as there is room for responses and others get their turn;
    /// returns whether there is more.
    fn take(&mut self) -> Result<bool, Ended> {
        self.session.collect(&mut self.wire);
        self.session.now_ns = stamp();
        let (inbox, mut at, framer) = self.wire.lend();
        let (mut need, mut outcome) = (0, Ok(true));
        for _ in 0..TURN_OPS_MAX {
            if self.wire.size() >= SEND_BATCH_MAX {
                break;
            }
            match framer.next(inbox.get(at..).unwrap_or_default()) {
                Ok(Framed::Need(bytes)) => {
                    (need, outcome) = (bytes, Ok(false));
                    break;
                }
                Ok(Framed::Complete(pdu)) => {
                    at += pdu.consumed;
                    let arrived_ns = self.wire.arrived(inbox.len().saturating_sub(at));
                    if let Err(ended) = self.session.take(&mut self.wire, &pdu, arrived_ns) {
                        outcome = Err(ended);
                        break;
                    }
                }
                Err(error) => {
                    self.session.count_digest_error();
                    outcome = Err(error.into());
                    break;
                }
            }
        }
        self.wire.restore(inbox, at, need);
        outcome
    }

    /// Waits for something to happen; false when the peer will send nothing more.
    async fn wait(&mut self) -> Result<bool, Ended> {
        if self.leave_by.is_some_and(Deadline::passed) {
            return Err(Ended::TimeUp);
        }
        let order = *self.order.borrow();
        match order {
            // The loop ends.
            Order::Replaced => return Ok(true),
            Order::Logout => self.ask_to_leave(),
            Order::Stay if *self.ending.borrow() => self.ask_to_leave(),
            Order::Stay => {}
        }
        if self.wire.size() > 0 {
            return Ok(true);
        }
        // An initiator that owes data may send it. Without memory others get no more than a
        // receive buffer, so that task management and NOP-Out are still read.
        let owes = self.session.awaits_data();
        let reads = owes || self.core.budget.has_bytes(RECEIVE_BUFFER) || self.wire.is_small();
        self.wait_for_room(reads);
        let patience = self.pace.left().filter(|_| owes).unwrap_or_default();
        if owes && patience.is_zero() {
            self.core.engine.budgets.give_up();
            return Err(Ended::TooSlow);
        }
        let since = if owes { monotonic_ns() } else { 0 };
        let left = self.leave_by.and_then(Deadline::left);
        let is_leaving = left.is_some();
        let mut came = 0;
        let (wire, [to_receive, for_memory]) = (&mut self.wire, &mut self.rooms);
        let open = tokio::select! {
            received = wire.received_or_ended(reads) => {
                if !reads {
                    return Err(Ended::Gone);
                }
                self.session.note_received();
                let received = received.map_err(|_| Ended::Gone)?;
                came = received;
                received > 0
            }
            () = poll_fn(|cx| to_receive.poll(cx)) => true,
            () = poll_fn(|cx| for_memory.poll(cx)) => true,
            event = self.session.event() => {
                if let Event::Quiet = event {
                    self.session.ping(&mut self.wire)?;
                }
                true
            }
            // An order to go at once is heard at any time.
            _ = self.order.changed() => true,
            _ = self.ending.changed(), if !is_leaving => true,
            () = tokio::time::sleep(left.unwrap_or_default()), if is_leaving => true,
            () = tokio::time::sleep(patience), if owes => true,
        };
        if owes {
            self.pace.waited_since(since, came as u64);
        }
        Ok(open)
    }

    /// What has found no room in the budget waits for some.
    fn wait_for_room(&mut self, reads: bool) {
        let needs = [(!reads).then_some(RECEIVE_BUFFER), self.session.lacks_memory()];
        for (room, need) in self.rooms.iter_mut().zip(needs) {
            match need {
                Some(bytes) => room.wait_for(&self.core.budget, Need::bytes(bytes)),
                None => room.clear(),
            }
        }
    }

    fn ask_to_leave(&mut self) {
        if self.leave_by.is_none() {
            self.leave_by = Some(Deadline::after(ISCSI_LOGOUT_TIME_MAX));
            self.session.request_logout(&mut self.wire);
        }
    }
}
