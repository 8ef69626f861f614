//! The mean size of segments from the counters of IP: what it sent in bytes, less the headers, by
//! how often. Acknowledgements without data and datagrams of others are in it, so it fits a machine
//! that mostly sends over TCP.

use crate::Root;
use crate::counters::protocol_counter;

/// Headers of IPv4 and IPv6, with TCP's and its timestamps.
const HEADERS: [u64; 2] = [52, 72];

/// What IP has sent since the namespace began: IPv4, IPv6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    requests: [u64; 2],
    bytes: [u64; 2],
}

impl Sent {
    /// As counted now.
    pub fn read(root: &Root) -> Self {
        let text = |name: &str| root.read(name).unwrap_or_default();
        Self::parse(&text("proc/net/snmp"), &text("proc/net/netstat"), &text("proc/net/snmp6"))
    }

    /// From the three files.
    pub fn parse(snmp: &str, netstat: &str, snmp6: &str) -> Self {
        let requests = protocol_counter(snmp, "Ip", "OutRequests");
        let bytes = protocol_counter(netstat, "IpExt", "OutOctets");
        let six = |name: &str| {
            let line = snmp6.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Self {
            requests: [requests.unwrap_or(0), six("Ip6OutRequests").unwrap_or(0)],
            bytes: [bytes.unwrap_or(0), six("Ip6OutOctets").unwrap_or(0)],
        }
    }

    /// Mean bytes of payload between two readings; `None` if nothing was sent.
    pub fn mean_since(self, before: Self) -> Option<f64> {
        let (mut requests, mut bytes) = (0u64, 0u64);
        for (n, headers) in HEADERS.into_iter().enumerate() {
            let sent = self.requests[n].saturating_sub(before.requests[n]);
            let all = self.bytes[n].saturating_sub(before.bytes[n]);
            requests += sent;
            bytes += all.saturating_sub(sent.saturating_mul(headers));
        }
        (requests > 0).then(|| bytes as f64 / requests as f64)
    }
}

#[cfg(test)]
mod tests;
