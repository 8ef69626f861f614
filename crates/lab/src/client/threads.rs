//! What blocks while it works: one system thread per slot, each with a worker of its own.

use super::{ClientError, Completion, Fault, Op};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Does one operation after another on one thread.
pub trait Worker: Send {
    /// Does one. The inner error is this operation's, the outer one the end of the worker.
    ///
    /// # Errors
    /// When nothing more can be done: the connection is gone.
    fn run(&mut self, op: Op) -> Result<Result<u32, Fault>, ClientError>;
}

/// Makes the worker of a slot, on that slot's thread.
pub type Maker = Box<dyn Fn() -> Result<Box<dyn Worker>, ClientError> + Send + Sync>;

/// The result of a slot's thread.
type SlotResult = Result<Completion, ClientError>;

/// The slots: threads that are started as they are needed and end with this.
pub struct Threads {
    maker: std::sync::Arc<Maker>,
    slots: Vec<Sender<Op>>,
    done: Receiver<SlotResult>,
    reply: Sender<SlotResult>,
    pending: Vec<(u32, Op)>,
}

impl Threads {
    /// No thread yet.
    pub fn new(maker: Maker) -> Self {
        let (reply, done) = channel();
        let maker = std::sync::Arc::new(maker);
        Self { maker, slots: Vec::new(), done, reply, pending: Vec::new() }
    }

    /// Keeps `op` for `slot` until [`Threads::push`].
    pub fn submit(&mut self, slot: u32, op: Op) {
        self.pending.push((slot, op));
    }

    /// Hands everything that was submitted to its threads.
    ///
    /// # Errors
    /// A thread has ended; [`Threads::wait`] returns the reason.
    pub fn push(&mut self) -> Result<(), ClientError> {
        for (slot, op) in std::mem::take(&mut self.pending) {
            if self.slot(slot).send(op).is_err() {
                // The error that ended it comes through the queue of results.
                return self.wait(Duration::from_secs(1), &mut Vec::new()).and(Err(Self::gone()));
            }
        }
        Ok(())
    }

    fn gone() -> ClientError {
        ClientError::Closed
    }

    /// As [`super::Client::wait`].
    ///
    /// # Errors
    /// Why a thread has ended.
    pub fn wait(
        &mut self,
        timeout: Duration,
        done: &mut Vec<Completion>,
    ) -> Result<(), ClientError> {
        match self.done.recv_timeout(timeout) {
            Ok(first) => done.push(first?),
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(ClientError::Closed),
        }
        for more in self.done.try_iter() {
            done.push(more?);
        }
        Ok(())
    }

    /// Ends all threads; the next operation starts new ones.
    pub fn end(&mut self) {
        self.slots.clear();
    }

    fn slot(&mut self, slot: u32) -> &Sender<Op> {
        while self.slots.len() <= slot as usize {
            let (sender, ops) = channel();
            let number = self.slots.len() as u32;
            let (maker, reply) = (std::sync::Arc::clone(&self.maker), self.reply.clone());
            // Ends when the client drops its sender.
            std::thread::spawn(move || work(&maker, number, &ops, &reply));
            self.slots.push(sender);
        }
        &self.slots[slot as usize]
    }
}

fn work(maker: &Maker, slot: u32, ops: &Receiver<Op>, reply: &Sender<SlotResult>) {
    let mut worker = match maker() {
        Ok(worker) => worker,
        Err(error) => return drop(reply.send(Err(error))),
    };
    while let Ok(op) = ops.recv() {
        let result = worker.run(op).map(|outcome| Completion { slot, outcome });
        let last = result.is_err();
        if reply.send(result).is_err() || last {
            return;
        }
    }
}
