//! One direction of a running bridge: a thread that reads a device, passes each packet to the link,
//! and writes the packets that are due.

use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::monotonic_ns;
use base::limits::{BRIDGE_BATCH, BRIDGE_PACKET_MAX, BRIDGE_TICK, BRIDGE_TRAIN};
use base::random::SeededRandom;
use wire::bridge::{Opener, Sealer};

use super::device::{Device, written};
use super::flight::Flight;
use super::gso::{self, Packet};
use super::link::{Arrival, Link, PacketOutcome};
use super::pair::Peer;
use super::shape::nanos;
use super::shared::Common;
use super::sys;
use super::tally::{Tally, add};

/// Priority among threads that go first: above what has none, below what the system needs.
pub const PRIORITY: i32 = 20;

/// Which of the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// From the first end to the second.
    Forth,
    /// Back.
    Back,
}

/// Where what has crossed the link goes.
pub enum Exit {
    /// To the other device; sealed in between, if that is wanted.
    Device(Arc<Device>, Option<Box<(Sealer, Opener)>>),
    /// To the other host.
    Peer(Arc<Peer>),
}

/// A piece in flight.
struct Piece {
    first_due_ns: u64,
    due_ns: u64,
    segments: u64,
    bytes: u64,
    body: Body,
}

enum Body {
    /// Some segments of a packet, and where a bit is turned.
    Plain { packet: Rc<Packet>, from: usize, flip: Option<u64> },
    /// The same, sealed.
    Sealed(Vec<u8>),
}

/// Segments of one packet that leave together.
struct Train {
    from: usize,
    count: usize,
    first_due_ns: u64,
    due_ns: u64,
}

/// One direction.
pub struct Direction {
    which: Which,
    entry: Arc<Device>,
    exit: Exit,
    common: Arc<Common>,
    tally: Arc<Tally>,
    link: Link<SeededRandom>,
    flight: Flight<Piece>,
    generation: u64,
    tolerance_ns: u64,
    scratch: Vec<u8>,
    clear: Vec<u8>,
}

impl Direction {
    /// A direction that has not begun; all its chance comes from `seed`.
    pub fn new(
        which: Which,
        (entry, exit): (Arc<Device>, Exit),
        common: Arc<Common>,
        tally: Arc<Tally>,
        seed: u64,
    ) -> Self {
        let shapes = common.wanted.get();
        let shape = if which == Which::Forth { &shapes.forth } else { &shapes.back };
        let link = Link::new(shape.clone(), shapes.rtt_ns(), SeededRandom::new(seed));
        let (flight, tolerance_ns) = (Flight::default(), shapes.tolerance_ns());
        let (scratch, clear) = (Vec::new(), Vec::new());
        let generation = 1;
        Self {
            which,
            entry,
            exit,
            common,
            tally,
            link,
            flight,
            generation,
            tolerance_ns,
            scratch,
            clear,
        }
    }

    /// Runs until it is stopped.
    ///
    /// # Errors
    /// The device is gone.
    pub fn run(mut self) -> std::io::Result<()> {
        if sys::go_first(PRIORITY).is_err() {
            self.common.ordinary.fetch_add(1, Ordering::Relaxed);
        }
        let mut buffer = vec![0; gso::HEADER + BRIDGE_PACKET_MAX];
        let mut awake_ns = monotonic_ns();
        while !self.common.stop.load(Ordering::Relaxed) {
            let begun_ns = monotonic_ns();
            self.notice(begun_ns.saturating_sub(awake_ns));
            self.take_changes(begun_ns);
            let mut more = self.deliver();
            more |= self.take_in(&mut buffer)?;
            let now_ns = monotonic_ns();
            self.notice(now_ns - begun_ns);
            self.ebb(now_ns);
            let tick_ns = now_ns + nanos(BRIDGE_TICK);
            awake_ns = self.flight.next_due_ns().unwrap_or(u64::MAX).clamp(now_ns, tick_ns);
            if !more && awake_ns > now_ns {
                sys::wait([self.entry.file.as_raw_fd()], awake_ns - now_ns)?;
            }
        }
        Ok(())
    }

    /// A time in which this thread was not let run, if it is one that counts.
    fn notice(&self, pause_ns: u64) {
        if pause_ns > self.tolerance_ns {
            self.tally.paused(pause_ns);
        }
    }

    /// A queue grows shorter although no packet comes that would update the count.
    fn ebb(&self, now_ns: u64) {
        if self.tally.queue_bytes.load(Ordering::Relaxed) > 0 {
            self.tally.queue_bytes.store(self.link.waiting(now_ns), Ordering::Relaxed);
        }
    }

    fn take_changes(&mut self, now_ns: u64) {
        let generation = self.common.wanted.generation.load(Ordering::Acquire);
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        let shapes = self.common.wanted.get();
        (self.tolerance_ns, self.generation) = (shapes.tolerance_ns(), generation);
        let rtt_ns = shapes.rtt_ns();
        let shape = if self.which == Which::Forth { shapes.forth } else { shapes.back };
        self.link.change(shape, rtt_ns, now_ns);
    }

    /// Reads a batch; whether there may be more.
    fn take_in(&mut self, buffer: &mut [u8]) -> std::io::Result<bool> {
        for _ in 0..BRIDGE_BATCH {
            let length = match (&self.entry.file).read(buffer) {
                Ok(length) => length,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let bytes = buffer.get(..length).unwrap_or_default().to_vec();
            if let Some(packet) = Packet::new(bytes) {
                self.admit(&Rc::new(packet), monotonic_ns());
            }
        }
        Ok(true)
    }

    /// Puts a packet on the link, segment by segment.
    fn admit(&mut self, packet: &Rc<Packet>, now_ns: u64) {
        let mut train: Option<Train> = None;
        let most = if matches!(self.exit, Exit::Peer(_)) { 1 } else { usize::MAX };
        for at in 0..packet.segments() {
            let bytes = packet.segment_bytes(at) as u64;
            add(&self.tally.packets_in, 1);
            add(&self.tally.bytes_in, bytes);
            let arrival = match self.link.offer(now_ns, bytes) {
                PacketOutcome::Arrives(arrival) => arrival,
                dropped => {
                    let counter = match dropped {
                        PacketOutcome::QueueFull => &self.tally.queue_full,
                        _ => &self.tally.lost,
                    };
                    add(counter, 1);
                    self.depart(packet, train.take());
                    continue;
                }
            };
            if arrival.held || arrival.twice || arrival.flip.is_some() {
                self.depart(packet, train.take());
                self.depart_marked(packet, at, &arrival);
                continue;
            }
            let due_ns = arrival.due_ns;
            match &mut train {
                Some(t) if t.count < most && due_ns <= t.first_due_ns + nanos(BRIDGE_TRAIN) => {
                    (t.count, t.due_ns) = (t.count + 1, due_ns);
                }
                _ => {
                    self.depart(packet, train.take());
                    train = Some(Train { from: at, count: 1, first_due_ns: due_ns, due_ns });
                }
            }
        }
        self.depart(packet, train);
        let waiting = self.link.waiting(now_ns);
        self.tally.queue_bytes.store(waiting, Ordering::Relaxed);
        self.tally.queue_bytes_max.fetch_max(waiting, Ordering::Relaxed);
    }

    /// A segment that is delayed, duplicated or damaged: it is sent separately.
    fn depart_marked(&mut self, packet: &Rc<Packet>, at: usize, arrival: &Arrival) {
        let count = |counter: &AtomicU64, on: bool| add(counter, u64::from(on));
        count(&self.tally.held, arrival.held);
        count(&self.tally.twice, arrival.twice);
        count(&self.tally.damaged, arrival.flip.is_some());
        let due_ns = arrival.due_ns;
        for _ in 0..=u8::from(arrival.twice) {
            let train = Train { from: at, count: 1, first_due_ns: due_ns, due_ns };
            self.depart_with(packet, train, arrival.flip);
        }
    }

    fn depart(&mut self, packet: &Rc<Packet>, train: Option<Train>) {
        if let Some(train) = train {
            self.depart_with(packet, train, None);
        }
    }

    fn depart_with(&mut self, packet: &Rc<Packet>, train: Train, flip: Option<u64>) {
        let Train { from, count, first_due_ns, due_ns } = train;
        let sizes = (from..from + count).map(|at| packet.segment_bytes(at) as u64);
        let (segments, bytes) = (count as u64, sizes.sum());
        let body = match &mut self.exit {
            Exit::Device(_, Some(cover)) => {
                packet.piece(from, count, &mut self.scratch);
                let mut sealed = Vec::new();
                if cover.0.seal(&self.scratch, &mut sealed).is_err() {
                    return add(&self.tally.refused, segments);
                }
                if let Some(flip) = flip {
                    gso::turn_bit(&mut sealed, flip);
                }
                Body::Sealed(sealed)
            }
            _ => Body::Plain { packet: packet.clone(), from, flip },
        };
        let piece = Piece { first_due_ns, due_ns, segments, bytes, body };
        if self.flight.push(due_ns, bytes, piece) {
            add(&self.tally.under_way, segments);
        } else {
            add(&self.tally.no_room, segments);
        }
    }

    /// Writes a batch of what is due; whether there may be more.
    fn deliver(&mut self) -> bool {
        for _ in 0..BRIDGE_BATCH {
            let Some(piece) = self.flight.pop(monotonic_ns()) else { return false };
            self.tally.under_way.fetch_sub(piece.segments, Ordering::Relaxed);
            if self.hand_over(&piece) {
                let now_ns = monotonic_ns();
                add(&self.tally.packets_out, piece.segments);
                add(&self.tally.bytes_out, piece.bytes);
                let span_ns = piece.due_ns - piece.first_due_ns;
                for at in 0..piece.segments {
                    let due_ns = piece.first_due_ns + span_ns * at / piece.segments.max(1);
                    self.tally.arrived(now_ns.saturating_sub(due_ns), self.tolerance_ns);
                }
            } else {
                add(&self.tally.refused, piece.segments);
            }
        }
        true
    }

    /// Whether the other side took it.
    fn hand_over(&mut self, piece: &Piece) -> bool {
        let (out, count) = (&mut self.scratch, piece.segments as usize);
        match (&mut self.exit, &piece.body) {
            (Exit::Peer(peer), Body::Plain { packet, from, flip }) => {
                packet.piece(*from, count, out);
                self.clear.clear();
                peer.send(out, *flip, &mut self.clear)
            }
            (Exit::Device(device, _), Body::Plain { packet, from, flip }) => {
                if *from == 0 && count == packet.segments() && flip.is_none() {
                    return written(&device.file, packet.whole());
                }
                packet.piece(*from, count, out);
                if let Some(flip) = flip {
                    gso::complete(out);
                    gso::turn_bit(gso::behind_header(out), *flip);
                }
                written(&device.file, out)
            }
            (Exit::Device(device, Some(cover)), Body::Sealed(sealed)) => {
                out.clear();
                out.extend_from_slice(sealed);
                cover.1.open(out).is_ok_and(|packet| written(&device.file, packet))
            }
            // Only what crosses to a device under cover is sealed on the way.
            (Exit::Device(_, None) | Exit::Peer(_), Body::Sealed(_)) => false,
        }
    }
}
