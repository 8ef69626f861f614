//! What has come over a link and is not used yet, and what is to leave.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use base::limits::RECEIVE_BUFFER;
use tokio::io::ReadBuf;

use super::Ended;
use engine::transport::budget::Need;
use engine::transport::buffers::ReplyBuf;
use engine::transport::link::Link;
use engine::transport::pace::SlowPeerBudget;
use files::Core;

/// A link with its buffers, which are the core's as long as there is nothing in them.
pub struct Wire {
    pub link: Link,
    core: Rc<Core>,
    input: Vec<u8>,
    at: usize,
    pub out: ReplyBuf,
}

impl Wire {
    pub fn new(link: Link, core: Rc<Core>) -> Self {
        Self { link, core, input: Vec::new(), at: 0, out: ReplyBuf::default() }
    }

    /// How slow its peer may be.
    pub fn pace(&self) -> SlowPeerBudget {
        self.core.engine.budgets.limits().pace
    }

    /// What has come and is not used.
    pub fn input(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// When what was consumed last had come.
    pub fn arrived(&mut self) -> u64 {
        let behind = self.input().len();
        self.link.arrived(behind)
    }

    /// Whether there is something of that.
    pub fn holds(&self) -> bool {
        self.at < self.input.len()
    }

    /// So much of it has been used.
    pub fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.input.len());
        if self.at == self.input.len() {
            self.forget();
        }
    }

    /// Nothing of it is of use.
    pub fn forget(&mut self) {
        self.input.clear();
        self.at = 0;
    }

    /// Gives the buffers back if there is nothing in them.
    pub fn rest(&mut self) {
        if !self.holds() && self.input.capacity() > 0 {
            self.core.buffers.give_receive(std::mem::take(&mut self.input));
            self.core.budget.give_bytes(RECEIVE_BUFFER);
        }
        if self.out.is_empty() && self.out.capacity() > 0 {
            self.core.buffers.give_reply(std::mem::take(&mut self.out));
        }
        self.link.rest((&self.core.buffers, &*self.core.budget));
    }

    /// Ready when something has come, or the end.
    pub async fn ready(&self) -> io::Result<()> {
        poll_fn(|cx| self.link.poll_ready(cx)).await
    }

    /// Receives behind what is there, which must be less than a buffer. Returns how many bytes;
    /// 0 is the end.
    pub async fn receive(&mut self) -> Result<usize, Ended> {
        if self.input.capacity() == 0 {
            // Others are done soon; what waits for a person to do something holds no buffer.
            let budget = &self.core.budget;
            let take = || {
                let has_room = budget.has_bytes(2 * RECEIVE_BUFFER);
                has_room.then(|| budget.take_bytes(RECEIVE_BUFFER))
            };
            let need = Need::bytes(2 * RECEIVE_BUFFER);
            // Without a patience it ends with room only.
            let _ = budget.room(None, need, take).await;
            self.input = self.core.buffers.take_receive();
        }
        if self.at > 0 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        let core = (&self.core.buffers, &*self.core.budget);
        let room = self.input.capacity() - self.input.len();
        let count = receive(&mut self.link, core, &mut self.input, room).await?;
        Ok(count)
    }

    /// Receives up to `room` bytes behind `into`, past the buffer, in which there must be nothing.
    pub async fn receive_into(&mut self, into: &mut Vec<u8>, room: usize) -> Result<usize, Ended> {
        let core = (&self.core.buffers, &*self.core.budget);
        into.reserve(room);
        receive(&mut self.link, core, into, room).await
    }

    /// Sees that there is a buffer for what is to leave.
    pub fn begin(&mut self) {
        if self.out.capacity() == 0 {
            self.out = self.core.buffers.take_reply();
        }
    }

    /// Sends what is to leave.
    pub async fn flush(&mut self, more: bool) -> Result<(), Ended> {
        if !self.out.is_empty() {
            // It is in memory already; but while there is no room nothing more is made.
            let bytes = self.out.capacity();
            let (budget, room) = (&self.core.budget, bytes.min(2 * RECEIVE_BUFFER));
            let take = || budget.has_bytes(room).then(|| budget.hold(bytes));
            let _held = budget.room(None, Need::bytes(room), take).await;
            self.link.send(self.out.as_slice(), more, &self.core.buffers).await?;
            self.out.truncate(0);
        }
        Ok(())
    }

    /// Ends it, and gives everything back.
    pub fn close(&mut self) {
        self.forget();
        self.rest();
        self.link.close((&self.core.buffers, &*self.core.budget));
    }
}

type Buffers<'a> =
    (&'a engine::transport::buffers::CoreBuffers, &'a engine::transport::budget::CoreBudget);

async fn receive(
    link: &mut Link,
    core: Buffers<'_>,
    into: &mut Vec<u8>,
    room: usize,
) -> Result<usize, Ended> {
    loop {
        poll_fn(|cx| link.poll_ready(cx)).await?;
        // What completes a TLS record is always received: without it the connection would stall.
        link.make_room(core, true);
        let old = into.len();
        let spare = into.spare_capacity_mut();
        let room = room.min(spare.len());
        let mut buf = ReadBuf::uninit(spare.get_mut(..room).unwrap_or_default());
        let polled = poll_fn(|cx| Poll::Ready(link.poll_receive(cx, &mut buf))).await;
        let count = buf.filled().len();
        match polled {
            Poll::Pending => continue,
            Poll::Ready(received) => received?,
        }
        // SAFETY: `poll_receive` has filled, and so initialised, `count` bytes of the spare
        // capacity.
        unsafe { into.set_len(old + count) };
        return Ok(count);
    }
}
