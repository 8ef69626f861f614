//! Packets to a client of DHCP: no message, no reply, or a lease that no field of is out of bounds.

#![no_main]

use host_network::dhcp::message::{Reply, payload, reply};

/// The client and the transaction of the seeds.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const XID: u32 = 0x0102_0304;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let message = payload(data).unwrap_or(data);
    if let Some(Reply::Given(lease)) = reply(message, MAC, XID)
        && let Some(lease) = lease.sound()
    {
        assert!(lease.cidr.prefix <= 32 && lease.is_valid(lease.obtained));
        assert!(lease.routes.len() <= 32 && lease.dns.servers.len() <= 32);
        let plain = |domain: &String| !domain.contains(['\n', ' ']) && domain.len() <= 253;
        assert!(lease.dns.domains.iter().all(plain));
    }
});
