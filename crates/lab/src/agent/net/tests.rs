//! Counters of interfaces, and what a controller may have an end do.

use super::*;
use crate::agent::allow::{Allowed, Owner};
use lab_net::engine::Ports;
use lab_net::profile::{Op, Profile};
use lab_net::read::{Variables, read};

#[test]
fn counters_of_interfaces_are_read() {
    let text = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
        lo: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\nveth0:7 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n";
    let lo =
        Interface { name: "lo".into(), rx_bytes: 100, rx_packets: 2, tx_bytes: 300, tx_packets: 4 };
    let read = parse_interfaces(text);
    assert_eq!((read.len(), &read[0]), (2, &lo));
    assert_eq!((read[1].rx_bytes, read[1].tx_bytes), (7, 9));
}

#[test]
fn both_ports_of_an_other_end_must_be_listed() {
    let targets = vec!["10.0.0.1:5000".to_owned()];
    let listed = Allowed::open(&Owner { targets, ..Owner::default() }).expect("a list");
    let origin = Origin::Tcp(listed);
    let of = |tcp, udp| {
        let address = "10.0.0.1".parse().expect("an address");
        allowed(&[Peer { host: 0, address, ports: Ports { tcp, udp } }], &origin)
    };
    assert_eq!(of(5000, 5000), Ok(()));
    for (tcp, udp) in [(5000, 53), (53, 5000)] {
        let why = of(tcp, udp).expect_err("a port that is not listed");
        assert!(why.starts_with("net://10.0.0.1:53: not listed"), "{why}");
    }
}

/// A far end of a profile with a write, after this change of it.
fn far_end(change: impl FnOnce(&mut Profile)) -> Setup {
    let text = "<profile name=\"p\"><group nthreads=\"2\"><transaction>\
                <flowop type=\"connect\" options=\"remotehost=h protocol=tcp\"/>\
                <flowop type=\"write\" options=\"size=1k\"/>\
                </transaction></group></profile>";
    let mut profile = read("p.xml", text, &Variables::default()).expect("a profile");
    change(&mut profile);
    Setup { profile, end: End::Far(0), secret: [0; 16], seed: 1, bind: None }
}

#[test]
fn a_profile_beyond_its_bounds_is_refused() {
    let of = |change: fn(&mut Profile)| {
        let tcp = permitted(&far_end(change), &Origin::Tcp(Allowed::default()));
        assert_eq!(permitted(&far_end(change), &Origin::Own), tcp);
        tcp.err().unwrap_or_default()
    };
    assert_eq!(of(|_| {}), "");
    let threads = of(|profile| profile.groups[0].threads = u32::MAX);
    assert_eq!(threads, "the profile has 4294967295 threads, more than 4096");
    // Their sum is 2 in 32 bits.
    let wrapped = of(|profile| {
        profile.groups = vec![profile.groups[0].clone(), profile.groups[0].clone()];
        (profile.groups[0].threads, profile.groups[1].threads) = (u32::MAX, 3);
    });
    assert!(wrapped.contains("4294967298 threads"), "{wrapped}");
    let hosts = of(|profile| {
        let flowops = &mut profile.groups[0].transactions[0].flowops;
        let connect = flowops[0].clone();
        flowops.extend((0..64).map(|n| {
            let mut connect = connect.clone();
            let Op::Connect(endpoint) = &mut connect.op else { panic!("{connect:?}") };
            endpoint.host = format!("h{n}");
            connect
        }));
    });
    assert_eq!(hosts, "the profile has 65 hosts, more than 64");
    let rate = of(|profile| profile.groups[0].transactions[0].rate = Some(0));
    assert!(rate.ends_with("rate or duration of the transaction"), "{rate}");
    let size = of(|profile| {
        let flowop = &mut profile.groups[0].transactions[0].flowops[1];
        let Op::Write(transfer) = &mut flowop.op else { panic!("{flowop:?}") };
        transfer.size.min = transfer.size.max + 1;
    });
    assert!(size.ends_with("count or size of the flowop"), "{size}");
}
