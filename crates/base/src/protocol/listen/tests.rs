//! Ports and offsets.

use std::net::{IpAddr, Ipv4Addr};

use crate::protocol::ports::{ADMIN, NFS};

#[test]
fn the_offset_moves_every_port() {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(NFS.address(here, 10_000).unwrap().port(), 12_049);
    assert_eq!(ADMIN.address(here, 0).unwrap().port(), 215);
    assert!(NFS.address(here, u16::MAX - 2049).is_ok());
    assert!(NFS.address(here, u16::MAX - 2048).is_err());
}
