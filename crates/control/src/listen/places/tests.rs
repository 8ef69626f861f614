//! Which connection gets a permit, and which one loses its own.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::limits::{ADMIN_CONNECTIONS_CLIENT_MAX, ADMIN_CONNECTIONS_MAX, CONNECTIONS_CLOSING_PART};

use super::{ConnectionLimits, ConnectionPermit};

fn places() -> Arc<ConnectionLimits> {
    Arc::new(ConnectionLimits::new(ADMIN_CONNECTIONS_MAX, ADMIN_CONNECTIONS_CLIENT_MAX))
}

fn v4(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

fn v6(site: u16, host: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, site, 0, 0, 0, host))
}

fn is_revoked(place: &ConnectionPermit) -> bool {
    let waiting = std::pin::pin!(place.revoked());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    waiting.poll(&mut context).is_ready()
}

#[test]
fn one_client_gives_its_own_oldest_place_away() {
    let places = places();
    let other = places.take(v4(2)).unwrap();
    let mut own: Vec<ConnectionPermit> = Vec::new();
    for _ in 0..300 {
        own.push(places.take(v4(1)).expect("a newcomer gets a place"));
        own.retain(|place| !is_revoked(place));
    }
    assert_eq!(places.taken(), ADMIN_CONNECTIONS_CLIENT_MAX + 1);
    assert!(!is_revoked(&other), "a client's flood ends only its own connections");
    assert_eq!(own.len(), ADMIN_CONNECTIONS_CLIENT_MAX);
    assert_eq!(places.ended(), 300 - ADMIN_CONNECTIONS_CLIENT_MAX as u64);
    drop(own);
    assert_eq!(places.taken(), 1);
}

#[test]
fn many_clients_give_the_oldest_place_away() {
    let places = places();
    let idle: Vec<ConnectionPermit> =
        (0..ADMIN_CONNECTIONS_MAX).map(|n| places.take(v4(n as u8)).unwrap()).collect();
    let _newcomer = places.take(v6(1, 1)).unwrap();
    assert!(is_revoked(&idle[0]));
    assert!(!is_revoked(&idle[1]));
    assert_eq!(places.taken(), ADMIN_CONNECTIONS_MAX);
}

#[test]
fn new_connections_wait_while_many_are_closing() {
    let places = places();
    let closing = ADMIN_CONNECTIONS_MAX / CONNECTIONS_CLOSING_PART;
    let idle: Vec<_> = (0..ADMIN_CONNECTIONS_MAX + closing)
        .map(|n| places.take(v6(n as u16, 1)).expect("a permit"))
        .collect();
    assert!(places.take(v4(1)).is_none(), "no more may be closing");
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut waiting = std::pin::pin!(places.can_evict());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(idle);
        waiting.await;
    });
    assert!(places.take(v4(1)).is_some());
}

#[test]
fn a_flood_from_many_clients_takes_its_own_places() {
    let places = places();
    let mut flood: Vec<ConnectionPermit> =
        (0..ADMIN_CONNECTIONS_MAX).map(|n| places.take(v4((n % 64) as u8)).unwrap()).collect();
    let honest = places.take(v4(200)).unwrap();
    // Each is opened again as soon as it has ended.
    for n in 0..2 * ADMIN_CONNECTIONS_MAX {
        flood.retain(|place| !is_revoked(place));
        flood.push(places.take(v4((n % 64) as u8)).unwrap());
        assert!(!is_revoked(&honest));
    }
}

#[test]
fn a_signed_in_user_keeps_the_place() {
    let places = places();
    let own: Vec<ConnectionPermit> =
        (0..ADMIN_CONNECTIONS_CLIENT_MAX).map(|_| places.take(v4(1)).unwrap()).collect();
    own[1..].iter().for_each(|place| assert!(place.key().keep()));
    let newer = places.take(v4(1)).unwrap();
    assert!(is_revoked(&own[0]));
    assert!(newer.key().keep());
    assert!(places.take(v4(1)).is_none(), "all are signed in");
    assert_eq!(places.ended(), 2);
    assert!(places.take(v4(2)).is_some());
}

#[test]
fn one_site_of_ipv6_is_one_client() {
    let places = places();
    let mut site: Vec<ConnectionPermit> = Vec::new();
    for n in 0..300 {
        site.push(places.take(v6(7, n)).unwrap());
        site.retain(|place| !is_revoked(place));
    }
    assert_eq!(places.taken(), ADMIN_CONNECTIONS_CLIENT_MAX);
    drop(site);
    assert_eq!(places.taken(), 0);
}
