//! Where data connections are waited for.

use std::net::{IpAddr, Ipv4Addr};

use super::{kernel_ports, wait_at};

#[test]
fn a_full_range_is_reported() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (_any, port) = wait_at(local, None).unwrap();
        let range = port..=port;
        assert!(wait_at(local, Some(&range)).is_err());
        drop(_any);
        assert_eq!(wait_at(local, Some(&range)).unwrap().1, port);
    });
}

#[test]
fn without_a_range_it_is_a_port_by_chance_of_those_that_the_kernel_gives() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let range = kernel_ports().expect("Linux says which they are");
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let taken: Vec<_> = (0..32).map(|_| wait_at(local, None).unwrap()).collect();
        assert!(taken.iter().all(|(_, port)| range.contains(port)));
        // The kernel gives every second one, from one of its choice on: ours are of either kind.
        let odd = taken.iter().filter(|(_, port)| port % 2 == 1).count();
        assert!((1..32).contains(&odd), "{odd} of 32 are odd");
    });
}
