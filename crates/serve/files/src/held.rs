//! What clients hold between two of their requests: entries of listings that they have not
//! continued, responses of pipes that they have not read. Each client has a part of the core's
//! bytes for it. Entries of listings can be read again from where the listing is, so those that
//! have been idle for longest are dropped where there is no room: for another listing of the same
//! client, or, where all parts together are too much, of any client.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::{Rc, Weak};

use base::limits::{HELD_CLIENT_MIN, HELD_CLIENT_PART, HELD_PART};
use engine::transport::budget::{CoreBudget, ReservedBytes};

/// The account of one core.
pub struct HeldBetween {
    budget: Rc<CoreBudget>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    clients: HashMap<u64, Client>,
    /// Bytes of all.
    total: usize,
    /// What can be dropped, the longest idle first, with its client.
    idle: BTreeMap<u64, u64>,
    next: u64,
}

#[derive(Default)]
struct Client {
    bytes: usize,
    idle: BTreeMap<u64, Weak<dyn Discard>>,
}

/// What can be dropped, and be read again.
trait Discard {
    /// Drops it.
    fn discard(&self);
}

/// Bytes that a client holds, given back when dropped.
pub struct HeldBytes {
    all: Rc<HeldBetween>,
    client: u64,
    bytes: ReservedBytes,
}

impl State {
    fn client(&mut self, client: u64) -> &mut Client {
        self.clients.entry(client).or_default()
    }

    /// What has been idle for longest, of one client or of all; it is idle no more.
    fn take_oldest(&mut self, of: Option<u64>) -> Option<Weak<dyn Discard>> {
        let (number, client) = match of {
            Some(client) => (*self.clients.get(&client)?.idle.first_key_value()?.0, client),
            None => self.idle.first_key_value().map(|(number, client)| (*number, *client))?,
        };
        self.take_idle(client, number)
    }

    fn take_idle(&mut self, client: u64, number: u64) -> Option<Weak<dyn Discard>> {
        self.idle.remove(&number);
        let idle = self.clients.get_mut(&client)?.idle.remove(&number);
        self.forget_empty(client);
        idle
    }

    fn forget_empty(&mut self, client: u64) {
        if self.clients.get(&client).is_some_and(|one| one.bytes == 0 && one.idle.is_empty()) {
            self.clients.remove(&client);
        }
    }

    fn change(&mut self, client: u64, (less, more): (usize, usize)) {
        self.total = self.total.saturating_sub(less) + more;
        let one = self.client(client);
        one.bytes = one.bytes.saturating_sub(less) + more;
        self.forget_empty(client);
    }

    fn bytes_of(&self, client: u64) -> usize {
        self.clients.get(&client).map_or(0, |one| one.bytes)
    }
}

impl HeldBetween {
    /// Nothing is held.
    pub fn new(budget: &Rc<CoreBudget>) -> Rc<Self> {
        Rc::new(Self { budget: Rc::clone(budget), state: RefCell::default() })
    }

    /// Takes bytes for a client; `None` if there is no room and nothing that can be dropped. One
    /// that holds nothing is not in its own way, nor in that of others.
    pub fn take(self: &Rc<Self>, client: u64, bytes: usize) -> Option<HeldBytes> {
        self.has_room(client, bytes).then(|| self.hold(client, bytes))
    }

    fn hold(self: &Rc<Self>, client: u64, bytes: usize) -> HeldBytes {
        self.state.borrow_mut().change(client, (0, bytes));
        HeldBytes { all: Rc::clone(self), client, bytes: self.budget.hold(bytes) }
    }

    /// Whether there is room, once what is idle has been dropped.
    fn has_room(&self, client: u64, bytes: usize) -> bool {
        let all = self.budget.bytes_max();
        let own = (all / HELD_CLIENT_PART).max(HELD_CLIENT_MIN);
        loop {
            let (has, total) = (self.bytes_of(client), self.state.borrow().total);
            // What it lacks of its own part of the budget, others cannot give.
            let of = if has > 0 && has + bytes > own || !self.budget.client_has_bytes(bytes) {
                Some(client)
            } else if has > 0 && total + bytes > all / HELD_PART || !self.budget.has_bytes(bytes) {
                None
            } else {
                return true;
            };
            // It borrows the state itself when it gives back what it holds.
            let oldest = self.state.borrow_mut().take_oldest(of);
            let Some(oldest) = oldest else { return false };
            if let Some(idle) = oldest.upgrade() {
                idle.discard();
            }
        }
    }

    /// Bytes that a client holds.
    pub fn bytes_of(&self, client: u64) -> usize {
        self.state.borrow().bytes_of(client)
    }

    /// Bytes that all clients hold.
    pub fn bytes(&self) -> usize {
        self.state.borrow().total
    }
}

impl HeldBytes {
    /// How many they are.
    pub fn bytes(&self) -> usize {
        self.bytes.bytes()
    }

    /// Sets their number, whether there is room or not.
    pub fn set(&mut self, bytes: usize) {
        self.all.state.borrow_mut().change(self.client, (self.bytes.bytes(), bytes));
        self.bytes.set(bytes);
    }

    /// Sets their number if there is room; whether there was.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes.bytes());
        let has_room = self.all.has_room(self.client, more);
        if has_room {
            self.set(bytes);
        }
        has_room
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.state.borrow_mut().change(self.client, (self.bytes.bytes(), 0));
    }
}

/// Entries of a listing that were read and not yet taken. While the listing is idle they may be
/// dropped; it is continued then behind the last one that was taken.
pub struct ReadAhead<T> {
    kept: Rc<Buffer<T>>,
    /// Its number, and its client, while it is idle.
    idle: Cell<Option<(u64, u64)>>,
    core: RefCell<Option<Rc<HeldBetween>>>,
    /// Where the listing continues behind the last one that was taken.
    cookie: Cell<u64>,
}

struct Buffer<T> {
    entries: RefCell<VecDeque<(u64, T)>>,
    held: RefCell<Option<HeldBytes>>,
    dropped: Cell<bool>,
}

impl<T> Discard for Buffer<T> {
    fn discard(&self) {
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        self.dropped.set(!entries.is_empty());
        let held = self.held.borrow_mut().take();
        drop((entries, held));
    }
}

impl<T> Default for ReadAhead<T> {
    fn default() -> Self {
        let (entries, held, dropped) = Default::default();
        let kept = Rc::new(Buffer { entries, held, dropped });
        Self { kept, idle: Cell::default(), core: RefCell::default(), cookie: Cell::new(0) }
    }
}

impl<T: 'static> ReadAhead<T> {
    /// A request uses it: it is idle no more. Where the listing is to be continued, if what had
    /// been read of it was dropped.
    pub fn begin(&self) -> Option<u64> {
        self.end_idle();
        self.kept.dropped.take().then(|| self.cookie.get())
    }

    /// The request has ended.
    pub fn rest(&self) {
        if self.kept.entries.borrow().is_empty() {
            *self.kept.held.borrow_mut() = None;
            return;
        }
        let held = self.kept.held.borrow();
        let Some(held) = held.as_ref() else { return };
        let kept: Rc<dyn Discard> = Rc::clone(&self.kept) as _;
        let mut state = held.all.state.borrow_mut();
        let number = state.next;
        state.next += 1;
        state.idle.insert(number, held.client);
        state.client(held.client).idle.insert(number, Rc::downgrade(&kept));
        self.idle.set(Some((held.client, number)));
        *self.core.borrow_mut() = Some(Rc::clone(&held.all));
    }

    /// More entries, each with where the listing continues behind it, and what they take.
    pub fn put(&self, entries: impl Iterator<Item = (u64, T)>, held: Option<HeldBytes>) {
        self.kept.entries.borrow_mut().extend(entries);
        *self.kept.held.borrow_mut() = held;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kept.entries.borrow().is_empty()
    }

    /// Takes the next one if `fits`; whether it did, `None` if there is none.
    pub fn take_if(&self, fits: impl FnOnce(&T) -> bool) -> Option<bool> {
        let mut entries = self.kept.entries.borrow_mut();
        let (cookie, entry) = entries.front()?;
        let does_fit = fits(entry);
        if does_fit {
            self.cookie.set(*cookie);
            entries.pop_front();
        }
        Some(does_fit)
    }
}

impl<T> ReadAhead<T> {
    fn end_idle(&self) {
        if let Some((client, number)) = self.idle.take()
            && let Some(core) = self.core.borrow_mut().take()
        {
            core.state.borrow_mut().take_idle(client, number);
        }
    }
}

impl<T> Drop for ReadAhead<T> {
    fn drop(&mut self) {
        self.end_idle();
    }
}

#[cfg(test)]
mod tests;
