//! Captured counters.

use super::*;

fn sent(requests: u64, bytes: u64, requests6: u64, bytes6: u64) -> Sent {
    let snmp = format!("Ip: Forwarding DefaultTTL OutRequests\nIp: 1 64 {requests}\n");
    let netstat = format!("TcpExt: A\nTcpExt: 1\nIpExt: InOctets OutOctets\nIpExt: 7 {bytes}\n");
    let snmp6 = format!("Ip6OutRequests        \t{requests6}\nIp6OutOctets          \t{bytes6}\n");
    Sent::parse(&snmp, &netstat, &snmp6)
}

#[test]
fn the_mean_leaves_headers_out() {
    let before = sent(10, 5000, 0, 0);
    let after = sent(12, 5000 + 65_160 + 376 + 2 * 52, 0, 0);
    assert_eq!(after.mean_since(before), Some(32_768.0));
    let six = sent(12, 5000 + 65_160 + 376 + 2 * 52, 2, 2 * (1000 + 72));
    assert_eq!(six.mean_since(before), Some((65_536.0 + 2000.0) / 4.0));
}

#[test]
fn nothing_sent_has_no_mean() {
    assert_eq!(sent(10, 5000, 1, 80).mean_since(sent(10, 5000, 1, 80)), None);
    assert_eq!(Sent::parse("", "", ""), Sent::default());
}
