//! Live frames to subscribers: each has a bounded queue, and a slow one loses the oldest.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::clock::Deadline;
use base::limits::{SUBSCRIBER_QUEUE_MAX, SUBSCRIBERS_MAX};

use crate::model::Frame;

#[derive(Default)]
struct Queue {
    frames: VecDeque<Arc<Frame>>,
    lost: u64,
    waker: Option<Waker>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The sending side.
#[derive(Default)]
pub struct Bus {
    subscribers: Mutex<Vec<Weak<Shared>>>,
}

/// What a subscriber is given.
#[derive(Debug, Clone)]
pub struct Tick {
    /// The newest second that it has not seen.
    pub frame: Arc<Frame>,
    /// Seconds lost before it, because the subscriber was slow.
    pub lost: u64,
}

/// The receiving side; dropping it ends the subscription.
pub struct Ticks(Arc<Shared>);

impl Bus {
    fn subscribers(&self) -> MutexGuard<'_, Vec<Weak<Shared>>> {
        self.subscribers.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A new subscriber; `None` when there are [`SUBSCRIBERS_MAX`] already.
    pub fn subscribe(&self) -> Option<Ticks> {
        let mut subscribers = self.subscribers();
        subscribers.retain(|s| s.strong_count() > 0);
        if subscribers.len() >= SUBSCRIBERS_MAX {
            return None;
        }
        let shared = Arc::new(Shared::default());
        subscribers.push(Arc::downgrade(&shared));
        Some(Ticks(shared))
    }

    /// Hands a frame to every subscriber, without waiting; returns how many frames were lost.
    pub fn publish(&self, frame: &Arc<Frame>) -> u64 {
        let mut lost = 0;
        self.each(|queue| {
            if queue.frames.len() >= SUBSCRIBER_QUEUE_MAX {
                queue.frames.pop_front();
                queue.lost += 1;
                lost += 1;
            }
            queue.frames.push_back(frame.clone());
        });
        lost
    }

    /// Ends the stream of every subscriber.
    pub fn close(&self) {
        self.each(|queue| queue.closed = true);
    }

    fn each(&self, mut change: impl FnMut(&mut Queue)) {
        for shared in self.subscribers().iter().filter_map(Weak::upgrade) {
            let mut queue = shared.queue();
            change(&mut queue);
            let waker = queue.waker.take();
            drop(queue);
            shared.arrived.notify_one();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Ends the seconds of one subscriber.
pub struct Closer(Weak<Shared>);

impl Closer {
    /// Nothing more comes, and a wait ends.
    pub fn close(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.queue().closed = true;
            shared.arrived.notify_all();
        }
    }
}

impl Ticks {
    /// What ends them, for another thread.
    pub fn closer(&self) -> Closer {
        Closer(Arc::downgrade(&self.0))
    }

    /// For async callers: the next second, `None` at the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Tick>> {
        let mut queue = self.0.queue();
        if let Some(tick) = take(&mut queue) {
            return Poll::Ready(Some(tick));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next second, `None` at the end.
    pub async fn next(&mut self) -> Option<Tick> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// For threads: the next second; `None` at the end or when none came within `wait`.
    pub fn recv_timeout(&mut self, wait: Duration) -> Option<Tick> {
        let until = Deadline::after(wait);
        let mut queue = self.0.queue();
        loop {
            if let Some(tick) = take(&mut queue) {
                return Some(tick);
            }
            let left = until.left()?;
            if queue.closed {
                return None;
            }
            queue = match self.0.arrived.wait_timeout(queue, left) {
                Ok((queue, _)) => queue,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

fn take(queue: &mut Queue) -> Option<Tick> {
    let frame = queue.frames.pop_front()?;
    Some(Tick { frame, lost: std::mem::take(&mut queue.lost) })
}

#[cfg(test)]
mod tests;
