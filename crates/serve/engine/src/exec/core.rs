//! A service's state on one core: its part of the budgets, buffers, its end of the probe, and the
//! connections that must hear when the service ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::clock::stamp;
use base::limits::{CORE_TICK, RECORD_LOOK};
use tokio::sync::Notify;

use super::Engine;
use super::completion::{Close, CompletionQueue};
use super::meter::Meter;
use crate::pool::Slot;
use crate::pool::place::NextSlot;
use crate::transport::acks::AckWatch;
use crate::transport::budget::{CoreBudget, Need};
use crate::transport::buffers::CoreBuffers;

/// Queues known before those of ended connections are dropped for the first time.
const QUEUES_KEPT: usize = 16;

/// One core's state for one service. It stays on its thread.
pub struct Core {
    /// The core's number.
    pub id: u8,
    /// What executes operations.
    pub engine: Arc<Engine>,
    /// The core's part of what may be in use.
    pub budget: Rc<CoreBudget>,
    /// Buffers used again.
    pub buffers: CoreBuffers,
    pub(super) meter: Meter,
    /// Operations recorded since the last idle moment.
    pub(super) since_idle: Cell<usize>,
    /// Whether there were operations since the last idle moment.
    is_active: Cell<bool>,
    /// Whether it waits for longer than a tick.
    rests: Cell<bool>,
    /// Ends that.
    pub(super) stirred: Notify,
    /// When a budget was last found used up.
    backpressure_ns: Cell<u64>,
    queues: RefCell<Queues>,
    /// Operations of which the reply has left and not arrived.
    pub(super) acks: Rc<AckWatch>,
}

/// The completion queues of connections that are open, or were a while ago.
#[derive(Default)]
struct Queues {
    open: Vec<Weak<dyn Close>>,
    /// How many there may be before those of connections that have ended are forgotten.
    most: usize,
}

impl Core {
    /// Core `id` of `cores`. To be called on its thread.
    pub fn new(id: usize, cores: usize, engine: Arc<Engine>) -> Self {
        Self {
            id: id as u8,
            budget: Rc::new(CoreBudget::new(engine.budgets.limits(), cores)),
            buffers: CoreBuffers::default(),
            meter: Meter::of(&engine.hub, id),
            engine,
            since_idle: Cell::new(0),
            is_active: Cell::new(true),
            rests: Cell::new(false),
            stirred: Notify::new(),
            backpressure_ns: Cell::new(0),
            queues: RefCell::default(),
            acks: Rc::default(),
        }
    }

    /// Where connections wait that have ended but for the acknowledgement of their last bytes.
    pub fn acks(&self) -> &AckWatch {
        &self.acks
    }

    /// A place on the pool for an operation of `client` that holds `bytes`: its request, and the
    /// bound of its reply. `None` when a budget or the pool has no room for it now; for the pool
    /// `next` waits then.
    #[inline]
    pub fn reserve(&self, next: &mut NextSlot, client: u64, bytes: usize) -> Option<Slot> {
        if !self.budget.has_room(bytes) {
            // Others can have it meanwhile.
            next.clear();
            return None;
        }
        next.take(&self.engine.pool, client)
    }

    /// Waits until `take` takes what it needs of the budget, which is `need`, for at most
    /// `patience` if that is given; counts a stall if that is not at once.
    pub async fn room<T>(
        &self,
        patience: Option<Duration>,
        need: Need,
        mut take: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(taken) = take() {
            return Some(taken);
        }
        self.engine.budgets.stalls.fetch_add(1, Relaxed);
        self.budget.room(patience, need, take).await
    }

    /// A place on the pool for an operation of `client`, after those that wait for one already;
    /// counts a stall if there is none now. `None` if there is none for so long.
    pub async fn place(&self, client: u64, patience: Duration) -> Option<Slot> {
        let of = (client, self.budget.connection());
        if let Some(slot) = self.engine.pool.reserve_of(of) {
            return Some(slot);
        }
        self.engine.budgets.stalls.fetch_add(1, Relaxed);
        let place = self.engine.pool.place(of);
        tokio::time::timeout(patience, place).await.ok()?
    }

    /// An operation leaves its connection's thread, and holds `bytes` until its reply has left.
    pub fn take_up(&self, bytes: usize) {
        self.stir();
        self.budget.take_request();
        self.budget.take_bytes(bytes);
    }

    /// Notes, and counts, that a connection is left unread because a budget is used up.
    pub fn note_backpressure(&self) {
        self.stir();
        self.backpressure_ns.set(stamp());
        self.engine.budgets.stalls.fetch_add(1, Relaxed);
    }

    /// Whether that has just happened, or some wait for room still.
    pub fn under_backpressure(&self, now_ns: u64) -> bool {
        let last = self.backpressure_ns.get();
        let is_new = last > 0 && now_ns.saturating_sub(last) < RECORD_LOOK.as_nanos() as u64;
        is_new || self.budget.has_line() || self.engine.pool.waiting() > 0
    }

    /// The completion queue of a new connection, closed when the service ends.
    pub fn completion_queue<T: 'static>(&self) -> Arc<CompletionQueue<T>> {
        let queue = Arc::<CompletionQueue<T>>::default();
        let mut queues = self.queues.borrow_mut();
        if queues.open.len() >= queues.most {
            queues.open.retain(|queue| queue.strong_count() > 0);
            queues.most = QUEUES_KEPT.max(2 * queues.open.len());
        }
        let known: Weak<CompletionQueue<T>> = Arc::downgrade(&queue);
        queues.open.push(known);
        queue
    }

    /// The service ends: connections finish their operations.
    pub(super) fn close_queues(&self) {
        let open = std::mem::take(&mut self.queues.borrow_mut().open);
        open.iter().filter_map(Weak::upgrade).for_each(|queue| queue.close());
    }

    /// Something has happened that an idle moment has to look at.
    #[inline]
    pub(super) fn stir(&self) {
        self.is_active.set(true);
        if self.rests.take() {
            self.stirred.notify_one();
        }
    }

    /// What is done every now and then, and at the end. Returns after how long it has to be done
    /// again, unless [`Self::stirred`] is notified before.
    pub(super) fn idle(&self) -> Duration {
        self.since_idle.set(0);
        self.finish_arrived();
        let more = self.meter.idle();
        self.budget.publish(&self.engine.budgets);
        if self.is_active.take() || more {
            return CORE_TICK;
        }
        self.rests.set(true);
        self.meter.rest()
    }
}
