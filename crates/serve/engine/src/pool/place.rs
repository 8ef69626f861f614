//! Waiting for a place in a pool that is full: in order within a connection, in turn among the
//! connections of a client, and in turn among clients.
//! A place that is freed belongs at once to the one that waits next: what comes later never has it
//! before.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use super::turns::InTurn;
use super::{Pool, PoolLimits, Queues, Shared, Slot};

/// A place in the queue of a client, once there is one; `None` if the pool ends before. Dropped, it
/// does not wait any more.
pub struct SlotWait {
    shared: Arc<Shared>,
    client: u64,
    connection: u64,
    /// Its number among those that wait.
    number: Option<u64>,
}

/// A number for a connection, or whatever has its turns as one.
pub fn connection_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// Those that wait. Bounded by the operations that may be in progress, of which each waits once.
#[derive(Default)]
pub(super) struct Waiting {
    clients: HashMap<u64, InTurn<(u64, Waker)>>,
    /// Clients for which something waits, in the order of their turns; each once.
    turns: VecDeque<u64>,
    /// Those for which a place was taken, which they have not looked at yet.
    granted: HashSet<u64>,
    next: u64,
}

impl Waiting {
    /// Whether something waits for a place of this client.
    pub fn has(&self, client: u64) -> bool {
        self.clients.contains_key(&client)
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.clients.values().map(InTurn::len).sum()
    }

    fn add(&mut self, (client, connection): (u64, u64), waker: Waker) -> u64 {
        let number = self.next;
        self.next += 1;
        let own = self.clients.entry(client).or_default();
        if own.is_empty() {
            self.turns.push_back(client);
        }
        own.push(connection, (number, waker));
        number
    }

    fn set_waker(&mut self, (client, connection): (u64, u64), number: u64, waker: &Waker) {
        let Some(own) = self.clients.get_mut(&client) else { return };
        if let Some((_, known)) = own.of(connection).find(|(one, _)| *one == number) {
            known.clone_from(waker);
        }
    }

    /// Takes the first that waits for this client, which has the turn.
    fn take_first(&mut self, client: u64) -> Option<Waker> {
        let (number, waker) = self.clients.get_mut(&client)?.pop()?;
        self.granted.insert(number);
        self.forget_empty(client);
        Some(waker)
    }

    fn remove(&mut self, (client, connection): (u64, u64), number: u64) {
        if let Some(own) = self.clients.get_mut(&client) {
            own.retain(connection, |(one, _)| *one != number);
            self.forget_empty(client);
        }
    }

    fn forget_empty(&mut self, client: u64) {
        if self.clients.get(&client).is_some_and(InTurn::is_empty) {
            self.clients.remove(&client);
            self.turns.retain(|one| *one != client);
        }
    }

    /// Takes all, as the pool ends.
    pub fn take_all(&mut self) -> Vec<Waker> {
        self.turns.clear();
        self.clients.drain().flat_map(|(_, own)| own.into_all()).map(|(_, waker)| waker).collect()
    }
}

impl Queues {
    /// Takes places for those that wait next, as far as there are any; they are to be woken once
    /// the lock is free.
    pub(super) fn grant(&mut self, limits: PoolLimits) -> Vec<Waker> {
        let mut wakers = Vec::new();
        // Clients that have all places which they may have keep their turn.
        let mut tries = self.waiting.turns.len();
        while tries > 0 && self.used < limits.queue {
            let Some(client) = self.waiting.turns.pop_front() else { break };
            self.waiting.turns.push_back(client);
            if self.take_place(client, limits) {
                wakers.extend(self.waiting.take_first(client));
                tries = self.waiting.turns.len();
            } else {
                tries -= 1;
            }
        }
        wakers
    }
}

impl SlotWait {
    pub(super) fn new(shared: &Arc<Shared>, (client, connection): (u64, u64)) -> Self {
        Self { shared: Arc::clone(shared), client, connection, number: None }
    }
}

impl Future for SlotWait {
    type Output = Option<Slot>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Slot>> {
        let shared = Arc::clone(&self.shared);
        let mut queues = shared.lock();
        let (client, of) = (self.client, (self.client, self.connection));
        match self.number {
            Some(number) if queues.waiting.granted.remove(&number) => {
                self.number = None;
                Poll::Ready(Some(shared.slot(of)))
            }
            _ if queues.ending => {
                self.number = None;
                Poll::Ready(None)
            }
            Some(number) => {
                queues.waiting.set_waker(of, number, cx.waker());
                Poll::Pending
            }
            None if !queues.waiting.has(client) && queues.take_place(client, shared.limits) => {
                Poll::Ready(Some(shared.slot(of)))
            }
            None => {
                self.number = Some(queues.waiting.add(of, cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl Drop for SlotWait {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut queues = self.shared.lock();
        if queues.waiting.granted.remove(&number) {
            drop(queues);
            self.shared.give_back(self.client);
        } else {
            queues.waiting.remove((self.client, self.connection), number);
        }
    }
}

/// The wait of a connection for a place, for what is next in its order: it is kept over its turns.
pub struct NextSlot {
    connection: u64,
    waits: Option<SlotWait>,
    slot: Option<Slot>,
}

impl Default for NextSlot {
    fn default() -> Self {
        Self { connection: connection_number(), waits: None, slot: None }
    }
}

impl NextSlot {
    /// A place that is free now, or that was waited for; begins to wait if there is none.
    pub fn take(&mut self, pool: &Pool, client: u64) -> Option<Slot> {
        if self.slot.is_none() && self.waits.is_none() {
            self.slot = pool.reserve_of((client, self.connection));
            self.waits = self.slot.is_none().then(|| pool.place((client, self.connection)));
        }
        self.slot.take()
    }

    /// What it is for does not need it, or not now.
    pub fn clear(&mut self) {
        (self.waits, self.slot) = (None, None);
    }

    /// Whether it waits.
    pub fn waits(&self) -> bool {
        self.waits.is_some()
    }

    /// Ready once there is a place, if it waits.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(place) = &mut self.waits else { return Poll::Pending };
        let Poll::Ready(slot) = Pin::new(place).poll(cx) else { return Poll::Pending };
        (self.waits, self.slot) = (None, slot);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
