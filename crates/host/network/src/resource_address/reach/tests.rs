//! Hosts that answer and hosts that do not, a link with a carrier and without, in a namespace; and
//! packets that are no replies.

use std::process::Command;

use e2e::netns::Namespace;
use e2e::{is_root, patience, skip};

use super::*;

/// Two ends of a link; the other end is in a namespace that is made for it.
const SETUP: &str = "set -e
ip link set lo up
ip link add near type veth peer name far
ip addr add 10.99.0.1/24 dev near
ip link set near up
ip link set far up
";

#[test]
fn carriers_and_hosts_are_found_by_trying() {
    if !is_root() {
        skip!("reach", "network namespaces need root");
    }
    let namespace = match Namespace::with(SETUP) {
        Ok(namespace) => namespace,
        Err(why) => skip!("reach", "{why}"),
    };
    let look = namespace.spawn(|| {
        let mut reach = Reach::open().expect("the network");
        assert_eq!(reach.has_carrier("near"), Ok(true));
        assert!(reach.has_carrier("none").is_err());
        let mut answers = |link: &str, host: &str, time| {
            reach.answers(link, host.parse().expect("an address"), time).map_err(|e| e.kind())
        };
        assert_eq!(answers("lo", "127.0.0.1", patience(10)), Ok(true));
        // Unless the kernel has no IPv6.
        assert_ne!(answers("lo", "::1", patience(10)), Ok(false));
        // Nothing has this address.
        let missing = answers("near", "10.99.0.9", Duration::from_millis(50));
        assert_eq!(missing, Ok(false));
        let status = Command::new("ip").args(["link", "set", "far", "down"]).status();
        assert!(status.expect("ip").success());
        assert_eq!(reach.has_carrier("near"), Ok(false));
    });
    look.join().expect("looked");
}

#[test]
fn only_the_reply_to_the_request_counts() {
    let mut reply = [&[0x45; 1][..], &[0; 19], &[0, 0, 9, 9, 1, 2, 3, 4]].concat();
    assert!(is_reply(true, &reply, 0x0102, 0x0304));
    assert!(!is_reply(true, &reply, 0x0102, 0x0305), "another sequence");
    assert!(!is_reply(true, &reply, 0x0103, 0x0304), "another sender");
    assert!(!is_reply(false, &reply, 0x0102, 0x0304), "another family");
    for length in 0..reply.len() {
        assert!(!is_reply(true, &reply[..length], 0x0102, 0x0304), "{length} bytes");
    }
    reply[20] = 8;
    assert!(!is_reply(true, &reply, 0x0102, 0x0304), "a request");
    let six = [129, 0, 0, 0, 1, 2, 3, 4];
    assert!(is_reply(false, &six, 0x0102, 0x0304));
}

#[test]
fn the_checksum_of_a_request_is_that_of_rfc_1071() {
    for (id, sequence) in [(0, 0), (0xffff, 0xffff), (0x1234, 0xfedc)] {
        let words = request(true, id, sequence);
        let mut sum: u32 = 0;
        for word in words.as_chunks::<2>().0 {
            sum += u32::from(u16::from_be_bytes(*word));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!(sum, 0xffff, "{id} {sequence}");
    }
}
