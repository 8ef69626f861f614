//! A share of the limit for each origin; unconfirmed clients are evicted first.

use std::collections::HashSet;

use base::peer::network as origin;

use super::*;

fn host(n: u8) -> IpAddr {
    [192, 0, 2, n].into()
}

#[test]
fn an_origin_has_its_part_and_no_more() {
    let mut quota = Quota::new(10, 3);
    let all = |_| true;
    for id in 0..3 {
        assert_eq!(quota.room(host(1), all), QuotaConflict::Free);
        quota.add(id, host(1), all);
    }
    assert_eq!(quota.room(host(1), all), QuotaConflict::Instead(0));
    assert_eq!(quota.room(host(2), all), QuotaConflict::Free);
    // The next oldest that is still there and not confirmed.
    assert_eq!(quota.room(host(1), |id| id == 2), QuotaConflict::Instead(2));
    assert_eq!(quota.room(host(1), |_| false), QuotaConflict::None);
    quota.remove(host(1));
    assert_eq!(quota.room(host(1), |_| false), QuotaConflict::Free);
}

#[test]
fn when_all_are_used_the_oldest_unconfirmed_one_of_any_address_is_evicted() {
    let mut quota = Quota::new(4, 3);
    for id in 0..4 {
        quota.add(id, host(id as u8 % 2), |_| true);
    }
    assert_eq!(quota.room(host(9), |id| id > 0), QuotaConflict::Instead(1));
    assert_eq!(quota.room(host(9), |_| false), QuotaConflict::None);
}

#[test]
fn records_that_come_and_go_leave_nothing() {
    let mut quota = Quota::new(100, 50);
    let mut there = HashSet::new();
    for id in 0..10_000 {
        there.insert(id);
        quota.add(id, host(1), |id| there.contains(&id));
        there.remove(&id);
        quota.remove(host(1));
    }
    assert!(quota.unconfirmed.0.len() <= 2 + QUEUE_SLACK && quota.parts.is_empty());
}

#[test]
fn a_network_of_ipv6_is_one_origin_and_a_mapped_address_is_what_it_maps() {
    let v6 = |text: &str| text.parse::<IpAddr>().expect("an address");
    assert_eq!(origin(v6("2001:db8::1")), origin(v6("2001:db8::ffff:2")));
    assert_ne!(origin(v6("2001:db8::1")), origin(v6("2001:db8:0:1::1")));
    assert_eq!(origin(v6("::ffff:192.0.2.1")), host(1));
}
