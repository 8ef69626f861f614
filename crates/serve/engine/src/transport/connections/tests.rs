//! Permits of connections in use; those of idle ones are in `base::permits`.

use super::*;

fn client(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

/// A permit of a connection that is in use at once.
fn take(places: &Arc<ConnectionLimits>, service: usize, from: IpAddr) -> Option<ConnectionPermit> {
    places.take(service, from).filter(ConnectionPermit::keep)
}

/// Takes all that a client gets at a service.
fn take_all(places: &Arc<ConnectionLimits>, service: usize, from: IpAddr) -> Vec<ConnectionPermit> {
    std::iter::from_fn(|| take(places, service, from)).collect()
}

#[test]
fn one_client_leaves_places_to_others_at_every_service() {
    let places = Arc::new(ConnectionLimits::new(1600, 4));
    let held: Vec<_> = (0..4).flat_map(|service| take_all(&places, service, client(1))).collect();
    assert_eq!(held.len(), 900, "three quarters of what nobody is sure of");
    for service in 0..4 {
        let other = take_all(&places, service, client(2));
        assert!(other.len() >= 300, "{} at {service}", other.len());
    }
    drop(held);
    assert_eq!((places.taken(), places.lock().clients()), (0, 0));
}

#[test]
fn a_flood_of_one_service_leaves_connections_of_the_others() {
    let places = Arc::new(ConnectionLimits::new(1600, 4));
    let flood: Vec<_> = (0..200).flat_map(|n| take_all(&places, 1, client(n))).collect();
    assert_eq!(flood.len(), 1300, "all but what the other three are sure of");
    assert!(places.is_full());
    assert!(take(&places, 1, client(250)).is_none());
    let others: Vec<_> = [0, 2, 3].map(|service| take_all(&places, service, client(250))).into();
    assert!(others.iter().all(|held| held.len() == 100));
    assert_eq!(places.taken(), places.all());
    drop(flood);
    assert!(!places.is_full() && take(&places, 1, client(250)).is_some());
}

#[test]
fn a_site_of_ipv6_is_one_client() {
    let places = Arc::new(ConnectionLimits::new(1600, 4));
    let of = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, n]);
    let held: Vec<_> = (0..2_000).filter_map(|n| take(&places, 1, of(n))).collect();
    assert_eq!(held.len(), 900);
    assert!(take(&places, 1, IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1])).is_some());
}

#[test]
fn idle_connections_of_many_clients_are_evicted_at_every_service() {
    let places = Arc::new(ConnectionLimits::new(10_000, 8));
    let idle = |n: u16| places.take(0, IpAddr::from([10, 1, (n >> 8) as u8, n as u8]));
    let held: Vec<_> = (0..6_000).filter_map(idle).collect();
    assert_eq!(held.len(), 6_000, "the oldest are evicted for the last ones");
    assert_eq!(places.taken(), 5_625, "all but what seven services are sure of");
    let new: Vec<_> = (0..8).filter_map(|service| take(&places, service, client(1))).collect();
    assert_eq!(new.len(), 8, "one at each service");
    let evicted = held.iter().take_while(|permit| !permit.keep()).count();
    assert_eq!(evicted, 6_000 - 5_625 + 1, "one more, at the service that is full");
}
