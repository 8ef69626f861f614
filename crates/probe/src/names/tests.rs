//! Numbers lead back to names, mapped addresses are one client, and a full table returns `other`.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

#[test]
fn a_mapped_address_is_the_same_client() {
    let clients = Clients::default();
    let v4 = Ipv4Addr::new(10, 0, 0, 7);
    let number = clients.intern(v4.into());
    assert_ne!(number, OTHER_CLIENT);
    assert_eq!(clients.intern(v4.to_ipv6_mapped().into()), number);
    assert_ne!(clients.intern(Ipv6Addr::LOCALHOST.into()), number);
    assert_eq!(clients.name_of(number), "10.0.0.7");
}

#[test]
fn a_full_table_gives_other() {
    let clients = Clients::default();
    for n in 0..CLIENT_NAMES_MAX as u32 {
        assert_ne!(clients.intern(Ipv4Addr::from(n).into()), OTHER_CLIENT);
    }
    let number = clients.intern(Ipv4Addr::BROADCAST.into());
    assert_eq!(number, OTHER_CLIENT);
    assert_eq!(clients.name_of(number), "other");
    assert_eq!(clients.intern(Ipv4Addr::from(5).into()), 6);
}

#[test]
fn shares_have_numbers_from_one() {
    let shares = Shares::default();
    assert_eq!(shares.intern("tank"), 1);
    assert_eq!(shares.intern("home"), 2);
    assert_eq!(shares.intern("tank"), 1);
    assert_eq!(shares.name_of(2).as_deref(), Some("home"));
    assert_eq!(shares.name_of(NO_SHARE), None);
}

#[test]
fn a_client_has_the_name_that_its_machine_sends() {
    let clients = Clients::default();
    let one = clients.intern("10.0.0.7".parse().expect("an address"));
    assert_eq!(clients.label_of(one), None);
    clients.label(one, b"an\x1bna");
    clients.label(one, b"anna");
    assert_eq!(clients.label_of(one).as_deref(), Some("10.0.0.7 (anna)"));
    clients.label(one, b"bert");
    clients.label(one, b"anna");
    assert_eq!(clients.label_of(one).as_deref(), Some("10.0.0.7 (anna and others)"));
    // No label for a client without a row, no empty label, and none that is too long.
    clients.label(OTHER_CLIENT, b"eve");
    assert_eq!(clients.label_of(OTHER_CLIENT), None);
    let two = clients.intern("10.0.0.8".parse().expect("an address"));
    clients.label(two, b"");
    assert_eq!(clients.label_of(two), None);
    clients.label(two, "\u{00e4}".repeat(200).as_bytes());
    assert!(clients.label_of(two).is_some_and(|l| l.len() <= LABEL_MAX + 20));
}
