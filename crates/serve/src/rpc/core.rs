//! What the connections of one core share: budget, buffers, the core's probe; and the core's own
//! task, which takes accepted sockets, aggregates in idle moments, and ends the connections in the
//! end.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use base::clock::stamp;
use base::limits::{CORE_BURST_OPS, CORE_TICK, DRAIN_TIME_MAX, RECORD_LOOK};
use probe::hub::Hub;
use probe::op::flag;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::conn;
use super::dispatch::Service;
use super::later::{Letter, Span};
use crate::transport::budget::CoreBudget;
use crate::transport::buffers::CoreBuffers;
use crate::transport::listener::Accepted;
use crate::transport::mailbox::Mailbox;
use crate::transport::meter::Meter;
use crate::transport::tasks::Ending;

/// One core's state.
pub(super) struct Core {
    /// The core's number.
    pub(super) id: u8,
    pub(super) service: Arc<Service>,
    pub(super) budget: CoreBudget,
    pub(super) buffers: CoreBuffers,
    meter: Meter,
    since_idle: Cell<usize>,
    /// When somebody last found a budget used up.
    pressed_ns: Cell<u64>,
}

impl Core {
    /// Core `id` of `cores`.
    pub(super) fn new(id: usize, cores: usize, service: Arc<Service>, hub: Arc<Hub>) -> Self {
        Self {
            id: id as u8,
            budget: CoreBudget::new(service.budgets.limits(), cores),
            meter: Meter::of(&hub, id),
            service,
            buffers: CoreBuffers::default(),
            since_idle: Cell::new(0),
            pressed_ns: Cell::new(0),
        }
    }

    /// Where operations are written down.
    pub(super) fn hub(&self) -> &Arc<Hub> {
        self.meter.hub()
    }

    /// Notes, and counts, that a connection is left unread because a budget is used up.
    pub(super) fn press(&self) {
        self.pressed_ns.set(stamp());
        self.service.budgets.stalls.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether that has just happened.
    pub(super) fn is_pressed(&self, now_ns: u64) -> bool {
        let since = now_ns.saturating_sub(self.pressed_ns.get());
        self.pressed_ns.get() > 0 && since < RECORD_LOOK.as_nanos() as u64
    }

    /// Writes down operations whose replies have just left.
    pub(super) fn finish(&self, spans: &mut Vec<Span>) {
        let done_ns = stamp();
        let mut probe = self.meter.probe();
        let count = spans.len();
        for span in spans.drain(..) {
            let mut record = span.facts;
            record.done_ns = done_ns;
            record.latency_ns = done_ns.saturating_sub(span.arrived_ns);
            if record.flags & flag::REPLAY != 0 {
                self.budget.count_replay();
            }
            probe.finish(&record);
        }
        let mut since = self.since_idle.get() + count;
        while since >= CORE_BURST_OPS {
            since -= CORE_BURST_OPS;
            probe.idle(done_ns);
        }
        self.since_idle.set(since);
    }

    fn idle(&self) {
        self.since_idle.set(0);
        self.meter.idle();
        self.budget.publish(&self.service.budgets);
        if self.id == 0 {
            self.service.show(self.hub().gauges());
        }
    }
}

/// Runs a core until `ending` turns true and its connections have ended, or their time is up.
/// Returns whether they ended by themselves.
pub(super) async fn run(
    core: Rc<Core>,
    mut accepted: mpsc::Receiver<Accepted>,
    mut ending: Ending,
) -> bool {
    let mut connections = JoinSet::new();
    let mut mailboxes: HashMap<tokio::task::Id, Weak<Mailbox<Letter>>> = HashMap::new();
    let mut tick = tokio::time::interval(CORE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => core.idle(),
            Some(socket) = accepted.recv() => {
                let mailbox = Arc::new(Mailbox::default());
                let known = Arc::downgrade(&mailbox);
                let task = conn::serve(Rc::clone(&core), socket, mailbox);
                mailboxes.insert(connections.spawn_local(task).id(), known);
            }
            Some(ended) = connections.join_next_with_id() => {
                core.service.budgets.count_panic(&ended);
                mailboxes.remove(&ended.map_or_else(|e| e.id(), |(id, ())| id));
            }
            _ = ending.wait_for(|end| *end) => break,
        }
    }
    mailboxes.values().filter_map(Weak::upgrade).for_each(|mailbox| mailbox.close());
    drop(accepted);
    let all = async {
        while let Some(ended) = connections.join_next().await {
            core.service.budgets.count_panic(&ended);
        }
    };
    let drained = tokio::time::timeout(DRAIN_TIME_MAX, all).await.is_ok();
    // The core's writing end must be free when the service starts again.
    connections.shutdown().await;
    // What was cut off could not give back what it held.
    core.budget.clear();
    core.idle();
    drained
}
