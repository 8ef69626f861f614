//! TCP streams with a window that is set at their receiver.

use super::limiter::Tcp;
use super::plan::{At, Plan};
use super::sockets::{self, Pair, Probe};
use super::transport::{Carried, SweepError, Transport, tried};
use crate::agent::clock::{mono_ns, sleep_until};
use crate::bridge::scene::Scene;
use base::limits::LAB_STREAM_BUFFER;
use base::tcp_info::TcpInfo;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Stream;

impl Transport for Stream {
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError> {
        let rtt_s = Probe::new(plan, at, link)?.rtt_s();
        let pairs = sockets::open(plan, at, link, at.instances)?;
        let (stop, came) = (AtomicBool::new(false), AtomicU64::new(0));
        let senders = pairs.iter().map(|pair| pair.sender.try_clone()).collect::<Result<_, _>>();
        let senders: Vec<TcpStream> = senders.map_err(tried("watch a connection"))?;
        std::thread::scope(|scope| {
            for Pair { sender, receiver } in pairs {
                let (stop, came, window) = (&stop, &came, at.window);
                scope.spawn(move || send(sender, stop));
                scope.spawn(move || receive(receiver, window, came));
            }
            let infos = || senders.iter().map(TcpInfo::of).collect::<Vec<_>>();
            let came = || Some(came.load(Ordering::Relaxed));
            let carried = counted(plan, at, rtt_s, &came, &infos);
            stop.store(true, Ordering::Relaxed);
            for sender in &senders {
                let _gone = sender.shutdown(Shutdown::Both);
            }
            carried
        })
    }
}

/// Counts what arrives while the point's time lasts, once it is warm. `came` returns the bytes so
/// far, `infos` the TCP statistics of each sending end, if available.
///
/// # Errors
/// [`SweepError::Nothing`]
pub(super) fn counted(
    plan: &Plan,
    at: &At,
    rtt_s: f64,
    came: &dyn Fn() -> Option<u64>,
    infos: &dyn Fn() -> Vec<Option<TcpInfo>>,
) -> Result<Carried, SweepError> {
    let (warm_ns, measured_ns) = plan.times_ns(at);
    // Windows arrive once in a round trip: whole ones of those are all alike.
    let rtt_ns = ((rtt_s * 1e9) as u64).max(1);
    let measured_ns = measured_ns.div_ceil(rtt_ns) * rtt_ns;
    sleep_until(mono_ns() + warm_ns);
    let (before, first, begin_ns) = (infos(), came(), mono_ns());
    sleep_until(begin_ns + measured_ns);
    let (last, end_ns, after) = (came(), mono_ns(), infos());
    let ns = end_ns - begin_ns;
    let bytes = last.zip(first).map_or(0, |(last, first)| last.saturating_sub(first));
    if bytes == 0 {
        return Err(SweepError::Nothing);
    }
    let tcp = before.into_iter().zip(after);
    let tcp = tcp.map(|(before, after)| Tcp::between(&before?, &after?, ns));
    Ok(Carried { bytes_s: bytes as f64 / (ns as f64 / 1e9), rtt_s, tcp: Tcp::sum(tcp) })
}

fn send(mut socket: TcpStream, stop: &AtomicBool) {
    let content = vec![0x5a; LAB_STREAM_BUFFER];
    // A connection that breaks is seen by what does not come.
    while !stop.load(Ordering::Relaxed) && socket.write_all(&content).is_ok() {}
}

fn receive(mut socket: TcpStream, window: u64, came: &AtomicU64) {
    let mut room = vec![0; LAB_STREAM_BUFFER];
    let _kept = sockets::clamp(&socket, window);
    while let Ok(bytes @ 1..) = socket.read(&mut room) {
        came.fetch_add(bytes as u64, Ordering::Relaxed);
        let _kept = sockets::clamp(&socket, window);
    }
}
