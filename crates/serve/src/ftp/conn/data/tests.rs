//! Where data connections are waited for.

use std::net::{IpAddr, Ipv4Addr};

use super::wait_at;

#[test]
fn a_range_that_is_full_is_said_to_be() {
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
