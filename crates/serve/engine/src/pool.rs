//! A bounded pool of threads for operations that block, fair to clients.
//!
//! Each client has a queue of its own; threads take from them in turn, so that one client with
//! thousands of waiting operations does not delay another's first; within it so do the connections
//! of the client, each in its own order. Nor do operations that take long: a client never has all
//! threads ([`POOL_CLIENT_LEAVES`]). A place is reserved before anything is done for the operation,
//! so a full pool has no side effects. What may wait for a place gets it in the same order and the
//! same turns ([`place`]).

pub mod place;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar};
use std::task::Waker;
use std::thread::JoinHandle;

use base::limits::{
    POOL_CLIENT_LEAVES, POOL_CLIENT_PART, POOL_QUEUE_MAX, POOL_THREADS_MAX, POOL_THREADS_PER_CORE,
};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};
use base::peer;

use self::place::{SlotWait, Waiting};
use self::turns::InTurn;

/// The number of a client in the pool: the same over all services, or one that uses two of them
/// would have two parts. It is the address, or the network of one of version 6.
pub fn client(address: IpAddr) -> u64 {
    match peer::network(address) {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 | 1 << 63,
    }
}

/// What a pool thread runs.
pub type Job = Box<dyn FnOnce() + Send>;

/// How big a pool is.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Threads.
    pub threads: usize,
    /// Operations that may wait, over all clients.
    pub queue: usize,
    /// Operations of one client that may wait.
    pub per_client: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: (cores * POOL_THREADS_PER_CORE).min(POOL_THREADS_MAX),
            queue: POOL_QUEUE_MAX,
            per_client: POOL_QUEUE_MAX / POOL_CLIENT_PART,
        }
    }
}

impl PoolLimits {
    /// Threads that operations of one client may have at once: all of them in a pool with a queue
    /// that one client may fill, or of one client alone ([`Pool::set_exclusive`]).
    fn threads_per_client(self, is_alone: bool) -> usize {
        if is_alone || self.per_client >= self.queue {
            return self.threads.max(1);
        }
        self.threads.saturating_sub(self.threads.div_ceil(POOL_CLIENT_LEAVES)).max(1)
    }
}

/// The pool. Dropping the last reference runs what is queued and ends the threads.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    limits: PoolLimits,
    queues: OrderedMutex<Queues>,
    work: Condvar,
    /// A thread has nothing to do.
    rest: Condvar,
}

#[derive(Default)]
struct Queues {
    clients: HashMap<u64, Client>,
    /// Clients with something to do, in the order of their turns; each once. Those that have their
    /// part of the threads come back when one of these has ended.
    turns: VecDeque<u64>,
    /// Waiting or reserved, over all clients.
    used: usize,
    idle: usize,
    waiting: Waiting,
    ending: bool,
    /// One client alone has all threads.
    is_alone: bool,
}

#[derive(Default)]
struct Client {
    jobs: InTurn<Job>,
    /// Waiting or reserved.
    used: usize,
    /// Threads at work for it.
    running: usize,
    /// It is among those that take turns.
    has_turn: bool,
}

impl Client {
    /// Whether it takes its turn, being in the list from now on.
    fn takes_turn(&mut self, threads: usize) -> bool {
        let takes = !self.has_turn && !self.jobs.is_empty() && self.running < threads;
        self.has_turn |= takes;
        takes
    }

    fn is_gone(&self) -> bool {
        self.used == 0 && self.jobs.is_empty() && self.running == 0
    }
}

/// A reserved place in the queue; given back when dropped without a job.
pub struct Slot {
    shared: Arc<Shared>,
    client: u64,
    connection: u64,
    open: bool,
}

impl Pool {
    /// Starts the threads.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(limits: PoolLimits) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared {
            limits,
            queues: OrderedMutex::new(ranks::POOL, Queues::default()),
            work: Condvar::new(),
            rest: Condvar::new(),
        });
        let mut threads = Vec::new();
        for n in 0..limits.threads.max(1) {
            let shared = Arc::clone(&shared);
            threads.push(std::thread::Builder::new().name(format!("pool-{n}")).spawn(
                move || {
                    vfs::host::dedicate_thread();
                    shared.work_off();
                },
            )?);
        }
        Ok(Arc::new(Self { shared, threads }))
    }

    /// A place in the queue of `client`, if there is one for which none waits, for what is of none
    /// of its connections.
    pub fn reserve(&self, client: u64) -> Option<Slot> {
        self.reserve_of((client, 0))
    }

    /// The same for an operation of a connection, which begins in the turn of that.
    pub fn reserve_of(&self, (client, connection): (u64, u64)) -> Option<Slot> {
        let mut queues = self.shared.lock();
        let is_free = !queues.waiting.has(client) && queues.take_place(client, self.shared.limits);
        is_free.then(|| self.shared.slot((client, connection)))
    }

    /// A place in the queue of a client, once there is one, in the turn of its connection.
    pub fn place(&self, (client, connection): (u64, u64)) -> SlotWait {
        SlotWait::new(&self.shared, (client, connection))
    }

    /// Whether there is one client alone, which has all threads then. As many as it may have with
    /// others are left to it when there is another one, as its operations end.
    pub fn set_exclusive(&self, is_alone: bool) {
        let mut queues = self.shared.lock();
        queues.is_alone = is_alone;
        let threads = self.shared.limits.threads_per_client(is_alone);
        queues.take_turns(threads);
        drop(queues);
        self.shared.work.notify_all();
    }

    /// How big it is.
    pub fn limits(&self) -> PoolLimits {
        self.shared.limits
    }

    /// Threads that are at work.
    pub fn busy(&self) -> usize {
        self.threads.len().saturating_sub(self.shared.lock().idle)
    }

    /// Waits until everything that was queued is done. For the end of a process: jobs without a
    /// completion, such as removing the temporary file of an aborted upload, are done too.
    pub fn wait_idle(&self) {
        let mut queues = self.shared.lock();
        while queues.used > 0 || queues.idle < self.threads.len() {
            queues = queues.wait(&self.shared.rest);
        }
    }

    /// Operations that wait for a place.
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting.count()
    }

    /// Operations that wait for a thread.
    pub fn queued(&self) -> usize {
        self.shared.lock().used
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queues = self.shared.lock();
        queues.ending = true;
        let wakers = queues.waiting.take_all();
        drop(queues);
        wakers.into_iter().for_each(Waker::wake);
        self.shared.work.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last reference may be held by a job of this pool.
            if thread.thread().id() != this {
                // A panic was the job's own and has been dealt with there.
                let _ = thread.join();
            }
        }
    }
}

impl Slot {
    /// Queues the job.
    pub fn run(mut self, job: Job) {
        self.open = false;
        let mut queues = self.shared.lock();
        let threads = self.shared.limits.threads_per_client(queues.is_alone);
        let Some(client) = queues.clients.get_mut(&self.client) else { return };
        client.jobs.push(self.connection, job);
        if client.takes_turn(threads) {
            queues.turns.push_back(self.client);
        }
        let wake = queues.idle > 0;
        drop(queues);
        if wake {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.open {
            self.shared.give_back(self.client);
        }
    }
}

impl Queues {
    /// Takes a place for a client, if there is one.
    fn take_place(&mut self, client: u64, limits: PoolLimits) -> bool {
        if self.ending || self.used >= limits.queue {
            return false;
        }
        let entry = self.clients.entry(client).or_default();
        if entry.used >= limits.per_client {
            return false;
        }
        entry.used += 1;
        self.used += 1;
        true
    }

    /// Frees one place of `client`.
    fn give_back(&mut self, client: u64) {
        self.used = self.used.saturating_sub(1);
        if let Some(entry) = self.clients.get_mut(&client) {
            entry.used = entry.used.saturating_sub(1);
            if entry.is_gone() {
                self.clients.remove(&client);
            }
        }
    }

    /// The next job in turn, and the client that it is of; that has at most `threads` of them.
    fn next(&mut self, threads: usize) -> Option<(u64, Job)> {
        let client = self.turns.pop_front()?;
        let entry = self.clients.get_mut(&client)?;
        entry.has_turn = false;
        let job = entry.jobs.pop()?;
        entry.running += 1;
        if entry.takes_turn(threads) {
            self.turns.push_back(client);
        }
        self.give_back(client);
        Some((client, job))
    }

    /// Clients take turns that may have more threads than before.
    fn take_turns(&mut self, threads: usize) {
        let Self { clients, turns, .. } = self;
        let taking =
            clients.iter_mut().filter_map(|(id, one)| one.takes_turn(threads).then_some(*id));
        turns.extend(taking);
    }

    /// A job of a client has ended.
    fn ended(&mut self, client: u64, threads: usize) {
        let Some(entry) = self.clients.get_mut(&client) else { return };
        entry.running = entry.running.saturating_sub(1);
        if entry.takes_turn(threads) {
            self.turns.push_back(client);
        } else if entry.is_gone() {
            self.clients.remove(&client);
        }
    }
}

impl Shared {
    /// A place that was taken.
    fn slot(self: &Arc<Self>, (client, connection): (u64, u64)) -> Slot {
        Slot { shared: Arc::clone(self), client, connection, open: true }
    }

    /// Frees a place, for the next that waits.
    fn give_back(&self, client: u64) {
        let mut queues = self.lock();
        queues.give_back(client);
        let next = queues.grant(self.limits);
        drop(queues);
        next.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> OrderedGuard<'_, Queues> {
        self.queues.lock()
    }

    fn work_off(&self) {
        let mut queues = self.lock();
        loop {
            let threads = self.limits.threads_per_client(queues.is_alone);
            if let Some((client, job)) = queues.next(threads) {
                let next = queues.grant(self.limits);
                drop(queues);
                next.into_iter().for_each(Waker::wake);
                // What a job answers for it has caught itself; a panic past that must not cost
                // the pool a thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                queues = self.lock();
                let threads = self.limits.threads_per_client(queues.is_alone);
                queues.ended(client, threads);
            } else if queues.ending {
                // What a client at its limit has left is done by the threads that it has.
                return;
            } else {
                queues.idle += 1;
                self.rest.notify_all();
                queues = queues.wait(&self.work);
                queues.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
