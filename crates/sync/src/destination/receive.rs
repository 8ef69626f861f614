//! What takes apart what comes over the control stream.

use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use base::limits::{DSYNC_PIECE, DSYNC_SCAN_WINDOW, DSYNC_SEND_BYTES, DSYNC_THREADS};
use wire::dsync::{Begin, Message, Role, frame};

use super::failed::{Failed, broken};
use super::files::Writing;
use super::{Item, Queues, Shared};
use crate::error::SyncError;
use crate::link::read_frame;
use crate::stop::lock;
use crate::tree::Tree;

/// The thread that takes apart what comes.
pub struct Sorter<T: Tree> {
    shared: Arc<Shared<T>>,
    items: Sender<Item>,
    queues: Queues,
    /// How many bytes are on their way to the plan.
    ahead: Arc<AtomicU64>,
    /// Files that have begun and not ended.
    begun: HashSet<u64>,
}

/// The thread that takes a message.
enum Taker {
    /// The plan.
    Plan,
    /// One of the threads that write.
    Writer(u64),
    /// None: it is taken already.
    Done,
}

impl<T: Tree> Sorter<T> {
    /// Nothing has come.
    pub(super) fn new(
        shared: &Arc<Shared<T>>,
        items: Sender<Item>,
        queues: Queues,
        ahead: &Arc<AtomicU64>,
    ) -> Self {
        let (shared, ahead) = (Arc::clone(shared), Arc::clone(ahead));
        Self { shared, items, queues, ahead, begun: HashSet::new() }
    }

    /// Takes what comes apart, until the link ends.
    pub(super) fn run(&mut self, read: Box<dyn Read + Send>) -> Result<(), Failed> {
        let mut read = BufReader::with_capacity(DSYNC_SEND_BYTES, read);
        while let Some(body) = read_frame(&mut read)? {
            let heard = match self.take(frame::message(&body)?)? {
                Taker::Plan => self.plan(body)?,
                Taker::Writer(number) => {
                    let queue = self.queues.get((number % DSYNC_THREADS as u64) as usize);
                    queue.is_some_and(|queue| queue.send(body).is_ok())
                }
                Taker::Done => true,
            };
            if !heard {
                return Ok(());
            }
        }
        Err(Failed::Run(SyncError::Gone))
    }

    /// Has the plan take a message; whether it still does.
    fn plan(&self, body: Vec<u8>) -> Result<bool, Failed> {
        let bytes = body.len() as u64;
        if self.ahead.fetch_add(bytes, Ordering::AcqRel) + bytes > DSYNC_SCAN_WINDOW {
            return broken("more entries than it had credit for");
        }
        Ok(self.items.send(Item::Message(body)).is_ok())
    }

    /// The thread that takes a message. All of a file goes to one thread, but for what is to be
    /// copied from the old one: that comes in any order, and is much work and few bytes.
    fn take(&mut self, message: Message<'_>) -> Result<Taker, Failed> {
        let shared = &self.shared;
        Ok(match message {
            Message::Directory(_)
            | Message::Entries(_)
            | Message::DirectoryEnd(_)
            | Message::ScanEnd(()) => Taker::Plan,
            Message::Begin(begin) => {
                self.begin(begin)?;
                Taker::Done
            }
            Message::Data(data) => Taker::Writer(data.id),
            Message::Whole(whole) => Taker::Writer(whole.id),
            Message::Copy(copy) => {
                Taker::Writer(copy.id.wrapping_add(copy.offset / DSYNC_PIECE as u64))
            }
            Message::Kept(kept) => Taker::Writer(kept.id),
            Message::Lent(lent) if shared.lends.is_some() => Taker::Writer(lent.id),
            Message::End(end) => {
                self.begun.remove(&end.id);
                Taker::Writer(end.id)
            }
            Message::Refused(refused) => {
                let why = String::from_utf8_lossy(&refused.why.0).into_owned();
                return Err(Failed::Run(SyncError::Refused(why)));
            }
            Message::Load(load) => {
                shared.meter.store(Role::SOURCE, load);
                Taker::Done
            }
            Message::Owner(owner) => {
                if shared.keep.owners && shared.options.names {
                    shared.owners.learn(&shared.tree, &owner)?;
                }
                Taker::Done
            }
            Message::Broken(broken) => {
                shared.abandon_stream(broken.stream)?;
                Taker::Done
            }
            _ => return broken("a message that only a destination sends"),
        })
    }

    /// A file begins, before any thread has a piece of it to take.
    fn begin(&mut self, begin: Begin) -> Result<(), Failed> {
        let (id, shared) = (begin.id, &self.shared);
        let wanted = shared.wanted_file(begin.meta)?;
        if self.begun.contains(&id)
            && let Some(file) = shared.files.get(id)
        {
            // It has changed while it was read, and is sent again.
            let mut writing = lock(&file);
            let turn = writing.restart(wanted);
            let size = writing.wanted.size;
            shared.try_aside(&mut writing, |aside| shared.tree.set_size(&aside.file, size));
            drop(writing);
            shared.files.turn(id, turn);
            return Ok(());
        }
        if self.begun.len() >= DSYNC_THREADS {
            return broken("more parallel files than threads");
        }
        let job = shared.begun(id, &wanted)?;
        self.begun.insert(id);
        let mut writing = Writing::new(job, wanted);
        shared.use_laid(id, &mut writing);
        shared.files.insert(id, writing)
    }
}
