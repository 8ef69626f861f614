//! The connection protocol (RFC 4254) of one connection: channels, their windows and requests. It
//! does no I/O: output collects in the transport, and the tasks concerned are woken.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use base::clock::stamp;
use base::limits::{
    SSH_CHANNELS_MAX, SSH_DATA_MAX, SSH_SEND_BATCH, SSH_WINDOW, SSH_WINDOW_BEGIN, SSH_WINDOWS_MAX,
};
use tokio::sync::Notify;
use wire::ssh::codec::{Put, Reader};
use wire::ssh::flow::Flow;
use wire::ssh::message::{Message, open_reason};
use wire::ssh::transport::{Error, Transport};

use super::Subsystem;
use engine::transport::acks::Acks;
use engine::transport::arrivals::Arrivals;
use engine::transport::budget::{CoreBudget, ReservedBytes};

/// A session, shared by its connection and its channels, all on one thread.
/// What is done once something was handed to the socket.
type Done = Box<dyn FnOnce(Option<&Rc<Acks>>)>;

pub(super) type Shared = Rc<RefCell<Session>>;

/// The channel ended before its end of data.
pub(super) struct SessionEnded;

/// What a channel's halves wait for.
#[derive(Default)]
pub(super) struct Signals {
    /// There are bytes, or there will be no more.
    pub(super) readable: Notify,
    /// There is room, or there will be no more.
    pub(super) writable: Notify,
}

/// A channel.
struct Channel {
    remote: u32,
    flow: Flow,
    inbound: Vec<u8>,
    /// What that takes of the account.
    held: ReservedBytes,
    arrivals: Arrivals,
    /// The window has its full size.
    is_wide: bool,
    /// The peer sends no more.
    eof: bool,
    /// CLOSE was sent, or came.
    closed: (bool, bool),
    /// A server was begun on it.
    started: bool,
    /// A writer waits for room.
    waiting: bool,
    signals: Rc<Signals>,
}

/// All of a connection but its socket.
pub(super) struct Session {
    pub(super) transport: Transport,
    budget: Rc<CoreBudget>,
    channels: Vec<Option<Channel>>,
    /// Bytes handed to the socket, and what is to be called when more of them are.
    sent: u64,
    unsent: VecDeque<(u64, Done)>,
    /// What the peer has of what was sent; `None` before there is a socket.
    pub(super) acks: Option<Rc<Acks>>,
    /// Notifies the connection of output to send.
    pub(super) wake: Rc<Notify>,
    /// The connection is over.
    ended: bool,
    /// Something that the transport refused while a channel was sending or receiving.
    pub(super) failed: Option<Error>,
    /// An answer to our question whether the peer is there.
    pub(super) answered: bool,
}

/// A channel on which a server is to begin.
pub(super) struct Begin {
    pub(super) id: u32,
    pub(super) subsystem: Subsystem,
    pub(super) signals: Rc<Signals>,
}

impl Session {
    pub(super) fn new(transport: Transport, budget: Rc<CoreBudget>) -> Self {
        Self {
            transport,
            budget,
            channels: Vec::new(),
            sent: 0,
            unsent: VecDeque::new(),
            acks: None,
            wake: Rc::default(),
            ended: false,
            failed: None,
            answered: false,
        }
    }

    fn channel(&mut self, id: u32) -> Option<&mut Channel> {
        self.channels.get_mut(id as usize)?.as_mut()
    }

    fn open_channel(&mut self, id: u32) -> Result<&mut Channel, Error> {
        self.channel(id).ok_or(Error::Protocol("message for a channel that is not open"))
    }

    /// Data from the peer: the message that matters for speed.
    pub(super) fn receive_data(&mut self, id: u32, data: &[u8]) -> Result<(), Error> {
        let channel = self.open_channel(id)?;
        channel.flow.received(data.len()).map_err(|_| Error::Protocol("too much data"))?;
        if channel.eof || channel.closed.1 {
            return Err(Error::Protocol("data after end of file"));
        }
        if channel.closed.0 {
            return Ok(());
        }
        channel.inbound.extend_from_slice(data);
        channel.held.set(channel.inbound.len());
        channel.arrivals.came(channel.inbound.len());
        channel.signals.readable.notify_one();
        Ok(())
    }

    /// Any other message after sign-in. Returns a channel to begin on.
    pub(super) fn receive(&mut self, message: Message<'_>) -> Result<Option<Begin>, Error> {
        match message {
            Message::ChannelData { recipient, data } => self.receive_data(recipient, data)?,
            Message::ChannelExtendedData { recipient, data, .. } => {
                // A client has no use for standard error; the data is ignored.
                let channel = self.open_channel(recipient)?;
                channel.flow.received(data.len()).map_err(|_| Error::Protocol("too much data"))?;
                self.grant(recipient, data.len())?;
            }
            Message::ChannelWindowAdjust { recipient, bytes } => {
                let channel = self.open_channel(recipient)?;
                channel.flow.adjusted(bytes).map_err(|_| Error::Protocol("too large a window"))?;
                channel.wake_writer();
            }
            Message::ChannelOpen { kind, sender, window, packet_max, .. } => {
                self.open(kind, sender, window, packet_max)?;
            }
            Message::ChannelRequest { recipient, kind, want_reply, data } => {
                return self.request(recipient, kind, want_reply, data);
            }
            Message::ChannelEof { recipient } => {
                let channel = self.open_channel(recipient)?;
                channel.eof = true;
                channel.signals.readable.notify_one();
            }
            Message::ChannelClose { recipient } => self.close(recipient)?,
            Message::GlobalRequest { want_reply: true, .. } => {
                // None is known; but to say so is what a client's keep-alive waits for.
                self.transport.send_message(&Message::RequestFailure)?;
            }
            Message::GlobalRequest { want_reply: false, .. } => {}
            Message::RequestSuccess(_) | Message::RequestFailure => self.answered = true,
            Message::ChannelSuccess { .. } | Message::ChannelFailure { .. } => {}
            // A late request, after sign-in, is ignored (RFC 4252, 5.1).
            Message::UserauthRequest(_) => {}
            _ => self.transport.unimplemented()?,
        }
        Ok(None)
    }

    fn open(&mut self, kind: &str, sender: u32, window: u32, packet_max: u32) -> Result<(), Error> {
        let place = self.channels.iter().position(Option::is_none).unwrap_or(self.channels.len());
        let refused = match kind {
            _ if packet_max == 0 => {
                Some((open_reason::RESOURCE_SHORTAGE, "maximum packet size of zero"))
            }
            "session" if place < SSH_CHANNELS_MAX => None,
            "session" => Some((open_reason::RESOURCE_SHORTAGE, "too many channels")),
            "direct-tcpip" | "forwarded-tcpip" | "x11" | "direct-streamlocal@openssh.com" => {
                Some((open_reason::ADMINISTRATIVELY_PROHIBITED, "no forwarding"))
            }
            _ => Some((open_reason::UNKNOWN_CHANNEL_TYPE, "no such kind of channel")),
        };
        if let Some((reason, why)) = refused {
            let description = why.as_bytes();
            let message = Message::ChannelOpenFailure { recipient: sender, reason, description };
            return self.transport.send_message(&message);
        }
        let mut flow = Flow::new(SSH_WINDOW_BEGIN);
        flow.opened(window, packet_max.min(SSH_DATA_MAX));
        let channel = Channel {
            remote: sender,
            flow,
            inbound: Vec::new(),
            held: self.budget.hold(0),
            arrivals: Arrivals::default(),
            is_wide: false,
            eof: false,
            closed: (false, false),
            started: false,
            waiting: false,
            signals: Rc::default(),
        };
        match self.channels.get_mut(place) {
            Some(free) => *free = Some(channel),
            None => self.channels.push(Some(channel)),
        }
        self.transport.send_message(&Message::ChannelOpenConfirmation {
            recipient: sender,
            sender: place as u32,
            window: SSH_WINDOW_BEGIN,
            packet_max: SSH_DATA_MAX,
        })
    }

    fn request(
        &mut self,
        id: u32,
        kind: &str,
        want_reply: bool,
        data: &[u8],
    ) -> Result<Option<Begin>, Error> {
        let channel = self.open_channel(id)?;
        let recipient = channel.remote;
        let name = Reader::new(data).string("name").ok().filter(|_| kind == "subsystem");
        let begin = name.and_then(Subsystem::named);
        let begin = begin.filter(|_| !channel.started && !channel.closed.0);
        channel.started |= begin.is_some();
        let signals = Rc::clone(&channel.signals);
        if want_reply {
            self.transport.send_message(&if begin.is_some() {
                Message::ChannelSuccess { recipient }
            } else {
                Message::ChannelFailure { recipient }
            })?;
        }
        if begin.is_some() {
            self.widen(id)?;
        }
        Ok(begin.map(|subsystem| Begin { id, subsystem, signals }))
    }

    /// A server begins to read the channel: the peer may send more before that is taken.
    fn widen(&mut self, id: u32) -> Result<(), Error> {
        let wide = self.channels.iter().flatten().filter(|channel| channel.is_wide).count();
        let Some(channel) = self.channel(id).filter(|_| wide < SSH_WINDOWS_MAX) else {
            return Ok(());
        };
        let (recipient, bytes) = (channel.remote, SSH_WINDOW - SSH_WINDOW_BEGIN);
        channel.is_wide = true;
        channel.flow.grow(bytes);
        self.transport.send_message(&Message::ChannelWindowAdjust { recipient, bytes })
    }

    /// CLOSE from the peer.
    fn close(&mut self, id: u32) -> Result<(), Error> {
        let channel = self.open_channel(id)?;
        channel.closed.1 = true;
        let (recipient, started) = (channel.remote, channel.started);
        channel.signals.readable.notify_one();
        channel.wake_writer();
        if !channel.closed.0 {
            channel.closed.0 = true;
            self.transport.send_message(&Message::ChannelClose { recipient })?;
        }
        // While the SFTP server runs on it, the number is not given to another.
        if !started {
            self.forget(id);
        }
        Ok(())
    }

    /// The SFTP server on the channel has ended, with this status.
    pub(super) fn finish(&mut self, id: u32, status: u32) -> Result<(), Error> {
        let Some(channel) = self.channel(id) else { return Ok(()) };
        let recipient = channel.remote;
        channel.started = false;
        let (ours, theirs) = channel.closed;
        channel.closed.0 = true;
        if theirs {
            self.forget(id);
        }
        if ours {
            return Ok(());
        }
        let mut data = Vec::new();
        data.put_u32(status);
        let (kind, want_reply) = ("exit-status", false);
        self.transport.send_message(&Message::ChannelEof { recipient })?;
        let message = Message::ChannelRequest { recipient, kind, want_reply, data: &data };
        self.transport.send_message(&message)?;
        self.transport.send_message(&Message::ChannelClose { recipient })
    }

    fn forget(&mut self, id: u32) {
        if let Some(place) = self.channels.get_mut(id as usize) {
            *place = None;
        }
    }

    /// The connection is over: wakes all waiting tasks.
    pub(super) fn end(&mut self) {
        self.ended = true;
        for channel in self.channels.iter_mut().flatten() {
            channel.signals.readable.notify_one();
            channel.wake_writer();
        }
        let acks = self.acks.as_ref();
        self.unsent.drain(..).for_each(|(_, done)| done(acks));
    }

    /// Calls `done` when everything that is to be sent now was handed to the socket, at the latest
    /// when the session ends.
    pub(super) fn when_sent(&mut self, done: Done) {
        let end = self.sent + self.transport.backlog() as u64;
        if self.ended || end == self.sent {
            return done(self.acks.as_ref());
        }
        self.unsent.push_back((end, done));
    }

    /// The first `count` bytes of the transport's output were handed to the socket.
    pub(super) fn sent(&mut self, count: usize) {
        self.transport.sent(count);
        self.sent += count as u64;
        while self.unsent.front().is_some_and(|(end, _)| *end <= self.sent) {
            let Some((_, done)) = self.unsent.pop_front() else { return };
            done(self.acks.as_ref());
        }
    }

    /// When the byte of a channel had come that lies `behind` bytes before the end of what was
    /// pulled.
    pub(super) fn arrived(&mut self, id: u32, behind: usize) -> u64 {
        self.channel(id).map_or_else(stamp, |channel| channel.arrivals.at(behind))
    }

    /// Data was sent: wakes the writers that wait for room, once there is enough of it.
    pub(super) fn drained(&mut self) {
        if self.batch_room() >= SSH_SEND_BATCH / 2 {
            let with_window = self.channels.iter_mut().flatten().filter(|c| c.flow.window() > 0);
            with_window.for_each(Channel::wake_writer);
        }
    }

    /// Gives memory back that a session without work does not need.
    pub(super) fn idle(&mut self) {
        self.transport.idle();
        for channel in self.channels.iter_mut().flatten().filter(|c| c.inbound.is_empty()) {
            channel.inbound = Vec::new();
        }
    }

    fn batch_room(&self) -> usize {
        if self.transport.may_send_data() {
            SSH_SEND_BATCH.saturating_sub(self.transport.backlog())
        } else {
            0
        }
    }

    /// Bytes that can be sent on the channel now.
    pub(super) fn room(&self, id: u32) -> usize {
        let channel = self.channels.get(id as usize).and_then(Option::as_ref);
        channel.map_or(0, |channel| channel.flow.window().min(self.batch_room()))
    }

    /// Sends the front of `data`; returns how much that was, or None if the channel or its
    /// connection has ended.
    pub(super) fn push(&mut self, id: u32, data: &[u8]) -> Option<usize> {
        let room = self.room(id);
        let ended = self.ended || self.failed.is_some();
        let channel = self.channel(id).filter(|c| !ended && c.closed == (false, false))?;
        let (now, _) = data.split_at_checked(room.min(data.len()))?;
        if now.is_empty() {
            channel.waiting = !data.is_empty();
            return Some(0);
        }
        channel.flow.sent(now.len());
        let (remote, packet_max) = (channel.remote, channel.flow.packet_max());
        if let Err(error) = self.transport.send_data(remote, packet_max, now) {
            self.failed = Some(error);
            return None;
        }
        Some(now.len())
    }

    /// What has come on the channel; None if there is nothing yet.
    ///
    /// # Errors
    /// When it has ended without an end of data.
    pub(super) fn pull(
        &mut self,
        id: u32,
        into: &mut Vec<u8>,
    ) -> Result<Option<usize>, SessionEnded> {
        let ended = self.ended || self.failed.is_some();
        let Some(channel) = self.channel(id) else { return Err(SessionEnded) };
        if channel.inbound.is_empty() {
            return match () {
                () if channel.eof => Ok(Some(0)),
                () if ended || channel.closed != (false, false) => Err(SessionEnded),
                () => Ok(None),
            };
        }
        let n = channel.inbound.len();
        channel.arrivals.received(n);
        if into.is_empty() {
            std::mem::swap(into, &mut channel.inbound);
        } else {
            into.append(&mut channel.inbound);
        }
        channel.held.set(0);
        if let Err(error) = self.grant(id, n) {
            self.failed = Some(error);
        }
        Ok(Some(n))
    }

    /// `n` bytes were taken: the peer may send more.
    fn grant(&mut self, id: u32, n: usize) -> Result<(), Error> {
        let Some(channel) = self.channel(id).filter(|c| !c.eof && !c.closed.0) else {
            return Ok(());
        };
        let Some(bytes) = channel.flow.taken(n) else { return Ok(()) };
        let recipient = channel.remote;
        self.transport.send_message(&Message::ChannelWindowAdjust { recipient, bytes })
    }
}

impl Channel {
    fn wake_writer(&mut self) {
        if std::mem::take(&mut self.waiting) {
            self.signals.writable.notify_one();
        }
    }
}
