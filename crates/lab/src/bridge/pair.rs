//! The other host of a pair: frames over UDP, under keys that both have agreed on.
//!
//! Each host emulates the direction that leaves it. One calls, the other answers; the caller calls
//! again when it has received nothing for a while. An answer takes effect once a frame under its
//! keys has come, so that a replayed call disturbs nothing.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::clock::monotonic_ns;
use base::limits::{
    BRIDGE_CALL_EVERY, BRIDGE_DATAGRAM_MAX, BRIDGE_PACKET_MAX, BRIDGE_SILENCE_MAX,
    BRIDGE_SOCKET_BUFFER,
};
use wire::bridge::{
    Answered, FRAME_HEAD, FRAME_TAG, FrameHead, GREETING, Greeted, Greeting, KEY, Opener, Refused,
    Role, Sealer, SessionKeys,
};

use super::device::Device;
use super::device::written;
use super::gso;
use super::shape::nanos;
use super::shared::Common;
use super::sys;
use super::tally::{Tally, add};

/// Largest packet that fits into a frame.
pub const MTU_MAX: u32 = (BRIDGE_DATAGRAM_MAX - FRAME_HEAD - FRAME_TAG - gso::HEADER) as u32;

/// The way to the other host.
#[derive(Debug)]
pub struct Peer {
    socket: UdpSocket,
    sending: Mutex<Sending>,
}

#[derive(Debug, Default)]
struct Sending {
    sealer: Option<Sealer>,
    to: Option<SocketAddr>,
}

impl Peer {
    /// Over this socket, without a peer yet.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let options = socket2::SockRef::from(&socket);
        // More than the kernel gives is not needed for less than 1 Gbit/s.
        let _less = options.set_recv_buffer_size(BRIDGE_SOCKET_BUFFER);
        let _less = options.set_send_buffer_size(BRIDGE_SOCKET_BUFFER);
        Ok(Self { socket, sending: Mutex::default() })
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a session.
    pub fn is_met(&self) -> bool {
        self.sending().sealer.is_some()
    }

    /// Seals a packet and sends it, with a bit turned if one is to be; whether it left. `frame` is
    /// room for it.
    pub fn send(&self, packet: &[u8], flip: Option<u64>, frame: &mut Vec<u8>) -> bool {
        frame.clear();
        let mut sending = self.sending();
        let Sending { sealer: Some(sealer), to: Some(to) } = &mut *sending else { return false };
        let to = *to;
        if sealer.seal(packet, frame).is_err() {
            return false;
        }
        drop(sending);
        if let Some(flip) = flip {
            gso::turn_bit(frame, flip);
        }
        self.socket.send_to(frame, to).is_ok()
    }

    fn meet(&self, sealer: Sealer, to: SocketAddr) {
        *self.sending() = Sending { sealer: Some(sealer), to: Some(to) };
    }
}

/// An answer that is not confirmed by a frame under its keys yet.
struct Pending {
    call: [u8; KEY],
    answer: [u8; GREETING],
    keys: SessionKeys,
}

/// What comes from the other host, and the agreement with it.
pub struct Receiver {
    peer: Arc<Peer>,
    device: Arc<Device>,
    tally: Arc<Tally>,
    common: Arc<Common>,
    secret: [u8; KEY],
    /// The address to call; the answering side has none, and waits.
    call_at: Option<SocketAddr>,
    call: Option<Greeted>,
    pending: Option<Pending>,
    opener: Option<(u32, Opener)>,
    heard_ns: u64,
    said_ns: u64,
    room: Vec<u8>,
}

impl Receiver {
    /// Of frames that go to `device`; calls if there is an address to call.
    pub fn new(
        (peer, device): (Arc<Peer>, Arc<Device>),
        tally: Arc<Tally>,
        common: Arc<Common>,
        secret: [u8; KEY],
        call_at: Option<SocketAddr>,
    ) -> Self {
        Self {
            peer,
            device,
            tally,
            common,
            secret,
            call_at,
            call: None,
            pending: None,
            opener: None,
            heard_ns: 0,
            said_ns: 0,
            room: Vec::new(),
        }
    }

    /// Runs until it is stopped.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn run(mut self, priority: i32) -> io::Result<()> {
        if sys::go_first(priority).is_err() {
            self.common.ordinary.fetch_add(1, Ordering::Relaxed);
        }
        let mut buffer = vec![0; FRAME_HEAD + gso::HEADER + BRIDGE_PACKET_MAX + FRAME_TAG];
        while !stopped(&self.common.stop) {
            self.send_keepalive(monotonic_ns());
            match self.peer.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    let frame = buffer.get_mut(..length).unwrap_or_default();
                    self.take(frame, from);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    sys::wait([self.peer.socket.as_raw_fd()], nanos(BRIDGE_CALL_EVERY) / 4)?;
                }
                // That no process listens there yet is reported as an error of this side.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends a keepalive when one is due, preceded by a greeting if this side calls and has no
    /// peer.
    fn send_keepalive(&mut self, now_ns: u64) {
        if self.said_ns != 0 && now_ns - self.said_ns < nanos(BRIDGE_CALL_EVERY) {
            return;
        }
        self.said_ns = now_ns;
        let silent = now_ns.saturating_sub(self.heard_ns) > nanos(BRIDGE_SILENCE_MAX);
        if let Some(at) = self.call_at
            && (self.opener.is_none() || silent)
        {
            if self.call.is_none() {
                self.call = Greeted::call(&self.secret).ok();
            }
            if let Some(call) = &self.call {
                let _lost = self.peer.socket.send_to(&call.greeting(), at);
            }
        }
        self.peer.send(&[], None, &mut self.room);
    }

    fn take(&mut self, frame: &mut [u8], from: SocketAddr) {
        if let Ok(greeting) = Greeting::decode(frame) {
            let met = if greeting.answer {
                self.take_answer(&greeting, from)
            } else {
                self.take_call(&greeting, from)
            };
            if met.is_err() {
                add(&self.tally.refused, 1);
            }
            return;
        }
        match self.open(frame, from) {
            // Only a sign of life.
            Ok(0) => {}
            Ok(bytes) => {
                add(&self.tally.packets_out, 1);
                add(&self.tally.bytes_out, bytes as u64);
            }
            Err(_) => add(&self.tally.refused, 1),
        }
    }

    fn take_call(&mut self, call: &Greeting, from: SocketAddr) -> Result<(), Refused> {
        if self.call_at.is_some() {
            return Err(Refused::Format);
        }
        let again = self.pending.as_ref().filter(|pending| pending.call == call.half);
        if again.is_none() {
            let Answered { greeting, keys } = Answered::to(&self.secret, call)?;
            self.pending = Some(Pending { call: call.half, answer: greeting, keys });
        }
        if let Some(pending) = &self.pending {
            let _lost = self.peer.socket.send_to(&pending.answer, from);
        }
        Ok(())
    }

    fn take_answer(&mut self, answer: &Greeting, from: SocketAddr) -> Result<(), Refused> {
        let call = self.call.as_ref().ok_or(Refused::Session)?;
        let keys = call.answered(&self.secret, answer)?;
        let (sealer, opener) = keys.sides(Role::Caller)?;
        self.call = None;
        self.opener = Some((keys.session(), opener));
        self.heard_ns = monotonic_ns();
        self.peer.meet(sealer, from);
        // The first frame is what makes the other side believe.
        self.peer.send(&[], None, &mut self.room);
        Ok(())
    }

    /// Opens a frame and hands it to the device; bytes of the packet in it.
    fn open(&mut self, frame: &mut [u8], from: SocketAddr) -> Result<usize, Refused> {
        let head = FrameHead::decode(frame)?;
        let known = self.opener.as_ref().is_some_and(|(session, _)| *session == head.session);
        if !known {
            return self.open_first(frame, head.session, from);
        }
        let (_, opener) = self.opener.as_mut().ok_or(Refused::Session)?;
        let packet = opener.open(frame)?;
        self.heard_ns = monotonic_ns();
        self.tally.lost.store(opener.missing(), Ordering::Relaxed);
        deliver(&self.device, packet)
    }

    /// A frame that may be the first of a new session.
    fn open_first(
        &mut self,
        frame: &mut [u8],
        session: u32,
        from: SocketAddr,
    ) -> Result<usize, Refused> {
        let pending = self.pending.as_ref().filter(|pending| pending.keys.session() == session);
        let (sealer, mut opener) = pending.ok_or(Refused::Session)?.keys.sides(Role::Answerer)?;
        let packet = opener.open(frame)?;
        self.heard_ns = monotonic_ns();
        let handed = deliver(&self.device, packet);
        self.peer.meet(sealer, from);
        (self.opener, self.pending) = (Some((session, opener)), None);
        handed
    }
}

fn deliver(device: &Device, packet: &[u8]) -> Result<usize, Refused> {
    match packet.len().checked_sub(gso::HEADER) {
        _ if packet.is_empty() => Ok(0),
        Some(bytes) if written(&device.file, packet) => Ok(bytes),
        _ => Err(Refused::Format),
    }
}

fn stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}
