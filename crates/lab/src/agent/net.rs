//! The part of an agent that is an end of a network profile.

pub mod message;
mod segments;

use super::clock;
use super::{Origin, Reply};
use crate::hist;
use lab_net::count::{Ended, FlowopCount};
use lab_net::engine::{Engine, Peer, Setup, Timing};
use lab_net::script::End;
pub use message::{ContextCount, FromNet, Interface, NetEnded, NetFlowop, Segments, ToNet};
use segments::SegmentCounter;
use std::sync::atomic::{AtomicU64, Ordering};

/// An end, once it is prepared.
#[derive(Default)]
pub(super) struct NetAgent {
    engine: Option<Engine>,
    interfaces: Vec<Interface>,
    /// Of the near end: it sends what profiles are about.
    segments: Option<SegmentCounter>,
}

impl NetAgent {
    /// Obeys; a running transaction ends when `stop` shows a time that has come.
    pub(super) fn obey(
        &mut self,
        message: ToNet,
        (reply, origin): (&Reply, &Origin),
        stop: &AtomicU64,
    ) -> Result<(), String> {
        let send = |message: FromNet| {
            let message = super::FromAgent::Net(Box::new(message));
            reply.send(&message).map_err(|e| super::with_sources(&e))
        };
        if let ToNet::Prepare(setup) = message {
            permitted(&setup, origin)?;
            let engine = Engine::new(&setup, clock::mono_ns).map_err(|e| format!("listen: {e}"))?;
            let ports = engine.ports();
            self.engine = Some(engine);
            self.segments = (setup.end == End::Near).then(SegmentCounter::start);
            return send(FromNet::Prepared { ports });
        }
        let engine = self.engine.as_mut().ok_or("no profile is prepared")?;
        match message {
            ToNet::Prepare(_) => Ok(()),
            ToNet::Meet { peers } => {
                allowed(&peers, origin)?;
                engine.meet(peers);
                send(FromNet::Met)
            }
            ToNet::Start { transaction, begin_ns, window_ns } => {
                self.interfaces = interfaces();
                self.segments.iter_mut().for_each(SegmentCounter::begin);
                let cpu_ns = clock::process_cpu_ns();
                let timing = Timing { transaction, begin_ns, window_ns: window_ns.max(1_000_000) };
                let shared = engine.stop_at();
                let mut ended = engine.run(&timing, &mut || {
                    shared.stop_ns.store(stop.load(Ordering::SeqCst), Ordering::SeqCst);
                });
                let cpu_ns = clock::process_cpu_ns().saturating_sub(cpu_ns);
                for (index, sums) in (0..).zip(std::mem::take(&mut ended.windows)) {
                    send(FromNet::Window { index, sums })?;
                }
                send(FromNet::Ended(Box::new(record(ended, cpu_ns))))
            }
            ToNet::Drain { sent } => {
                let counts = engine.drain(&sent);
                let interfaces = since(&self.interfaces);
                let segments = self.segments.as_ref().map(SegmentCounter::since);
                send(FromNet::Drained { counts, interfaces, segments })
            }
            ToNet::Close => send(FromNet::Closed { accounts: engine.close() }),
        }
    }
}

fn record(ended: Ended, cpu_ns: u64) -> NetEnded {
    let flowop = |count: FlowopCount| NetFlowop {
        group: count.group,
        flowop: count.flowop,
        calls: count.calls,
        failed: count.failed,
        bytes: count.bytes,
        latency: hist::to_text(&count.latency),
    };
    let Ended { begun_ns, ended_ns, counts, flowops, faults, windows: _ } = ended;
    let flowops = flowops.into_iter().map(flowop).collect();
    NetEnded { begun_ns, ended_ns, counts, flowops, faults, cpu_ns }
}

/// A controller over TCP makes an agent a far end, with the addresses that its owner permits. The
/// controller has read the profile within bounds; another program may send any.
fn permitted(setup: &Setup, origin: &Origin) -> Result<(), String> {
    setup.profile.check()?;
    match origin {
        Origin::Own => Ok(()),
        Origin::Tcp(allowed) if allowed.observe.is_some() => {
            Err("this agent only observes; start one without --observe for load".to_owned())
        }
        Origin::Tcp(_) if setup.end == End::Near => {
            Err("the near end of a profile runs on the controller's machine".to_owned())
        }
        Origin::Tcp(_) => Ok(()),
    }
}

/// Whether the owner permits what the other ends listen at, for connections and for datagrams.
fn allowed(peers: &[Peer], origin: &Origin) -> Result<(), String> {
    let Origin::Tcp(allowed) = origin else { return Ok(()) };
    peers.iter().try_for_each(|peer| {
        let host = peer.address.to_string();
        [peer.ports.tcp, peer.ports.udp].into_iter().try_for_each(|port| allowed.peer(&host, port))
    })
}

/// Counters of the interfaces of this network namespace (proc_pid_net(5)).
fn interfaces() -> Vec<Interface> {
    let text = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    parse_interfaces(&text)
}

fn parse_interfaces(text: &str) -> Vec<Interface> {
    let line = |line: &str| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
        Some(Interface {
            name: name.trim().to_owned(),
            rx_bytes: *numbers.first()?,
            rx_packets: *numbers.get(1)?,
            tx_bytes: *numbers.get(8)?,
            tx_packets: *numbers.get(9)?,
        })
    };
    text.lines().filter_map(line).collect()
}

/// What interfaces have counted since then; those without traffic are left out.
fn since(before: &[Interface]) -> Vec<Interface> {
    let mut now = interfaces();
    for interface in &mut now {
        let Some(old) = before.iter().find(|old| old.name == interface.name) else { continue };
        interface.rx_bytes = interface.rx_bytes.saturating_sub(old.rx_bytes);
        interface.rx_packets = interface.rx_packets.saturating_sub(old.rx_packets);
        interface.tx_bytes = interface.tx_bytes.saturating_sub(old.tx_bytes);
        interface.tx_packets = interface.tx_packets.saturating_sub(old.tx_packets);
    }
    now.retain(|interface| interface.rx_packets + interface.tx_packets > 0);
    now
}

#[cfg(test)]
mod tests;
