//! Connections of TCP that may carry data, by cookie, with what statistics are made of.

use std::collections::HashMap;
use std::io;
use std::net::Ipv6Addr;
use std::ops::ControlFlow;

use crate::socket_diagnosis::{CONNECTIONS_MAX, Message, SocketDiagnosis, TRANSFERRING, messages};

/// In `struct tcp_info`: round-trip time; retransmits, segments out of order; time with data to
/// send, limited by the receiver's window, by the send buffer.
const RTT: usize = 68;
const EVENTS: [usize; 2] = [100, 224];
const LIMITED: [usize; 3] = [168, 176, 184];

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The other end.
    pub peer: Ipv6Addr,
    /// Segments retransmitted, segments received out of order.
    pub events: [u32; 2],
    /// Microseconds with data to send; of these limited by the receiver, by the send buffer.
    pub limited_us: [u64; 3],
    /// Smoothed round-trip time.
    pub rtt_us: u32,
}

impl Default for Connection {
    fn default() -> Self {
        Self { peer: Ipv6Addr::UNSPECIFIED, events: [0; 2], limited_us: [0; 3], rtt_us: 0 }
    }
}

/// All connections of the namespace of this thread, by cookie.
///
/// # Errors
/// The kernel has no such sockets, or does not answer.
pub fn connections() -> io::Result<HashMap<u64, Connection>> {
    let mut seen = HashMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        SocketDiagnosis::open()?.dump(family, TRANSFERRING, &mut |message| {
            seen.extend(connection(message));
            match seen.len() < CONNECTIONS_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
    }
    Ok(seen)
}

/// Keeps the connections of one answer.
pub fn collect(answer: &[u8], seen: &mut HashMap<u64, Connection>) {
    let _last = messages(answer, &mut |message| {
        seen.extend(connection(message));
        ControlFlow::Continue(())
    });
}

fn connection(message: Message<'_>) -> Option<(u64, Connection)> {
    let info = message.info()?;
    let peer = message.peer()?;
    let events = EVENTS.map(|at| info.u32_at(at).unwrap_or(0));
    let limited_us = LIMITED.map(|at| info.u64_at(at).unwrap_or(0));
    let rtt_us = info.u32_at(RTT).unwrap_or(0);
    Some((message.cookie()?, Connection { peer, events, limited_us, rtt_us }))
}

#[cfg(test)]
mod tests;
