//! What limited a point, from TCP's own accounting. Pure.

use super::plan::Carrier;
use base::tcp_info::TcpInfo;
use serde::{Deserialize, Serialize};

/// From this share of the link on, the link is the limit.
const LINK_FULL: f64 = 0.93;
/// From this share of the time on, the reason why TCP waited is the limit.
const MOST: f64 = 0.5;
/// Segments sent again, as a part of all, that are loss rather than an accident.
const LOSS: f64 = 0.000_5;

/// TCP's accounting of a time, of one connection or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Tcp {
    /// Connections.
    pub connections: u32,
    /// The time, µs, of all connections together; the next three are parts of it.
    pub elapsed_us: u64,
    /// With data to send, or sent and not acknowledged.
    pub busy_us: u64,
    /// Stalled by the receiver's window.
    pub rwnd_limited_us: u64,
    /// Stalled by the own send buffer.
    pub sndbuf_limited_us: u64,
    /// Bytes that congestion control allowed in the end, all together.
    pub cwnd_bytes: u64,
    /// Least round trip seen, µs.
    pub min_rtt_us: u32,
    /// Segments sent.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Whether the program had no more to send when TCP last looked, on any of them.
    pub app_limited: bool,
}

impl Tcp {
    /// TCP's accounting of a connection between two samples, `ns` apart; `None` when the kernel's
    /// `tcp_info` lacks one of the fields.
    pub fn between(before: &TcpInfo, after: &TcpInfo, ns: u64) -> Option<Self> {
        let more = |at| Some(after.u64_at(at)?.saturating_sub(before.u64_at(at)?));
        let count = |at| Some(u64::from(after.u32_at(at)?.saturating_sub(before.u32_at(at)?)));
        Some(Self {
            connections: 1,
            elapsed_us: ns / 1000,
            busy_us: more(168)?,
            rwnd_limited_us: more(176)?,
            sndbuf_limited_us: more(184)?,
            cwnd_bytes: u64::from(after.u32_at(80)?) * u64::from(after.u32_at(16)?),
            min_rtt_us: after.u32_at(148)?,
            segments: count(136)?,
            retransmits: count(100)?,
            app_limited: after.u8_at(7)? & 1 == 1,
        })
    }

    /// Several connections together; `None` when one of them is not seen.
    pub fn sum(each: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let add = |a: Self, b: Self| Self {
            connections: a.connections + b.connections,
            elapsed_us: a.elapsed_us + b.elapsed_us,
            busy_us: a.busy_us + b.busy_us,
            rwnd_limited_us: a.rwnd_limited_us + b.rwnd_limited_us,
            sndbuf_limited_us: a.sndbuf_limited_us + b.sndbuf_limited_us,
            cwnd_bytes: a.cwnd_bytes + b.cwnd_bytes,
            min_rtt_us: a.min_rtt_us.min(b.min_rtt_us),
            segments: a.segments + b.segments,
            retransmits: a.retransmits + b.retransmits,
            app_limited: a.app_limited || b.app_limited,
        };
        let all = each.collect::<Option<Vec<Self>>>()?;
        all.into_iter().reduce(add)
    }

    /// A part of the time.
    fn share(&self, us: u64) -> f64 {
        us as f64 / self.elapsed_us.max(1) as f64
    }
}

/// What limited a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The link was full.
    Link,
    /// The sender waited for acknowledgements of its own protocol.
    Acknowledgements,
    /// The receiver's window.
    ReceiveWindow,
    /// The sender's buffer.
    SendBuffer,
    /// Segments were lost and sent again.
    Loss,
    /// Congestion control allowed no more.
    CongestionWindow,
    /// TCP's accounting does not say.
    Unknown,
}

impl Limiter {
    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Link => "the link's rate",
            Self::Acknowledgements => "waiting for acknowledgements",
            Self::ReceiveWindow => "the receiver's window",
            Self::SendBuffer => "the sender's buffer",
            Self::Loss => "loss",
            Self::CongestionWindow => "the congestion window",
            Self::Unknown => "not clear",
        }
    }
}

/// Names what limited a point that carried `bytes_s` over a link of `link`.
pub fn judge(carrier: Carrier, tcp: Option<&Tcp>, bytes_s: f64, link: f64) -> Limiter {
    if bytes_s >= link * LINK_FULL {
        return Limiter::Link;
    }
    let Some(tcp) = tcp else { return Limiter::Unknown };
    if tcp.retransmits as f64 > tcp.segments as f64 * LOSS {
        return Limiter::Loss;
    }
    if tcp.share(tcp.rwnd_limited_us) >= MOST {
        return Limiter::ReceiveWindow;
    }
    if tcp.share(tcp.sndbuf_limited_us) >= MOST {
        return Limiter::SendBuffer;
    }
    // Bytes that were in flight on average, against what was allowed.
    let under_way = bytes_s * f64::from(tcp.min_rtt_us) / 1e6;
    match carrier.waits() {
        true => Limiter::Acknowledgements,
        false if tcp.app_limited => Limiter::Unknown,
        false if under_way >= tcp.cwnd_bytes as f64 * MOST => Limiter::CongestionWindow,
        false => Limiter::Unknown,
    }
}

#[cfg(test)]
mod tests;
