//! A block, then nothing until all of it is acknowledged: what the source's directory synchroniser
//! did. It exists to draw that curve.
//!
//! Several at once begin one after the other, a block's time apart. Those that begin together stay
//! together, all wait at the same time, and nobody uses the link meanwhile.

use super::limiter::Tcp;
use super::plan::{At, Plan};
use super::sockets::{self, Pair, Probe};
use super::transport::{Carried, SweepError, Transport, tried};
use crate::agent::clock::{mono_ns, sleep_until};
use crate::bridge::scene::Scene;
use crate::tcp_info::TcpInfo;
use base::limits::{LAB_STREAM_BUFFER, SWEEP_BLOCKS};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct StopAndWait;

/// What all instances of a point share.
struct Common {
    block: u64,
    /// Time of a block on the link.
    block_ns: u64,
    /// Time in which each has its turn once.
    cycle_ns: u64,
    warm_ns: u64,
    measured_ns: u64,
    instances: u32,
    /// All are warm.
    warm: Barrier,
    /// Those whose time is not over: the others go on meanwhile, so that nobody has it easier.
    left: AtomicU32,
    failed: AtomicBool,
}

/// What one instance carried.
struct Done {
    bytes_s: f64,
    tcp: Option<Tcp>,
}

impl Transport for StopAndWait {
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError> {
        let mut probe = Probe::new(plan, at, link)?;
        let pairs = sockets::open(plan, at, link, at.instances)?;
        let common = Common::new(plan, at, probe.rtt_s());
        let done = std::thread::scope(|scope| {
            let common = &common;
            let work = pairs.into_iter().zip(0..).map(|(pair, number)| {
                let Pair { sender, receiver } = pair;
                scope.spawn(move || answer(receiver, common.block));
                scope.spawn(move || common.send(sender, number))
            });
            let work: Vec<_> = work.collect();
            let joined = work.into_iter().map(|thread| match thread.join() {
                Ok(done) => done,
                Err(_) => Err(io::Error::other("a thread panicked")),
            });
            joined.collect::<Vec<_>>()
        });
        let done = done.into_iter().collect::<io::Result<Vec<Done>>>();
        let done = done.map_err(tried("send a block and wait for its acknowledgement"))?;
        // What else the machine does now is what it did for the blocks.
        probe.measure()?;
        let (rtt_s, bytes_s) = (probe.rtt_s(), done.iter().map(|done| done.bytes_s).sum());
        Ok(Carried { bytes_s, rtt_s, tcp: Tcp::sum(done.into_iter().map(|done| done.tcp)) })
    }
}

impl Common {
    fn new(plan: &Plan, at: &At, rtt_s: f64) -> Self {
        let (warm_ns, measured_ns) = plan.times_ns(at);
        let ns = |bytes: f64, rate: f64| (bytes / rate * 1e9) as u64;
        let all = at.window as f64 * f64::from(at.instances);
        Self {
            block: at.window,
            block_ns: ns(at.window as f64, plan.carries(at)),
            cycle_ns: ns(all, plan.predicted(at, rtt_s)),
            warm_ns,
            measured_ns,
            instances: at.instances,
            warm: Barrier::new(at.instances as usize),
            left: AtomicU32::new(at.instances),
            failed: AtomicBool::new(false),
        }
    }

    /// One instance, from its first block until all have ended.
    fn send(&self, mut socket: TcpStream, number: u32) -> io::Result<Done> {
        let warmed = self.until(&mut socket, mono_ns() + self.warm_ns);
        self.failed.fetch_or(warmed.is_err(), Ordering::SeqCst);
        self.warm.wait();
        let done = warmed.and_then(|_| self.measure(&mut socket, number));
        self.failed.fetch_or(done.is_err(), Ordering::SeqCst);
        self.left.fetch_sub(1, Ordering::SeqCst);
        while done.is_ok() && self.left.load(Ordering::SeqCst) > 0 && !self.is_failed() {
            self.block(&mut socket)?;
        }
        let _gone = socket.shutdown(Shutdown::Both);
        done
    }

    fn measure(&self, socket: &mut TcpStream, number: u32) -> io::Result<Done> {
        let base = mono_ns();
        sleep_until(base + self.block_ns * u64::from(number));
        // Until all have begun, and each has had its turn.
        let begun = base + self.block_ns * u64::from(self.instances) + self.cycle_ns;
        self.until(socket, begun)?;
        let (before, begin_ns) = (TcpInfo::of(socket), mono_ns());
        let mut blocks = self.until(socket, begin_ns + self.measured_ns)?;
        while (blocks as f64) < SWEEP_BLOCKS && !self.is_failed() {
            self.block(socket)?;
            blocks += 1;
        }
        let (after, ns) = (TcpInfo::of(socket), mono_ns() - begin_ns);
        let tcp = before.zip(after).and_then(|(before, after)| Tcp::between(&before, &after, ns));
        let bytes = blocks * self.block;
        Ok(Done { bytes_s: bytes as f64 / (ns as f64 / 1e9), tcp })
    }

    /// Blocks one after the other until it is that late; how many, one at least.
    fn until(&self, socket: &mut TcpStream, end_ns: u64) -> io::Result<u64> {
        let mut blocks = 0;
        while blocks == 0 || (mono_ns() < end_ns && !self.is_failed()) {
            self.block(socket)?;
            blocks += 1;
        }
        Ok(blocks)
    }

    fn block(&self, socket: &mut TcpStream) -> io::Result<()> {
        static CONTENT: [u8; LAB_STREAM_BUFFER] = [0x5a; LAB_STREAM_BUFFER];
        let mut left = self.block;
        while left > 0 {
            let now = left.min(CONTENT.len() as u64);
            socket.write_all(&CONTENT[..now as usize])?;
            left -= now;
        }
        socket.read_exact(&mut [0])
    }

    fn is_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

/// The other end: one byte for each block, until nothing more comes.
fn answer(mut socket: TcpStream, block: u64) {
    let mut room = vec![0; LAB_STREAM_BUFFER];
    let mut got = 0;
    while let Ok(bytes @ 1..) = socket.read(&mut room) {
        got += bytes as u64;
        while got >= block {
            got -= block;
            // Who sends notices a connection that is gone.
            let _gone = socket.write_all(&[1]);
        }
    }
}
