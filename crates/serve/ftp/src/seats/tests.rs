//! Places, given back when their client has gone.

use std::net::IpAddr;
use std::sync::Arc;

use super::SessionLimits;
use crate::Settings;

#[test]
fn places_in_all_and_for_each_address() {
    let seats: Arc<SessionLimits> = Arc::default();
    let settings = Settings { connections_max: 3, per_address_max: 2, ..Settings::default() };
    let [a, b] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
    let first = seats.take(a, &settings);
    let second = seats.take(a, &settings);
    assert!(first.is_some() && second.is_some() && seats.take(a, &settings).is_none());
    let third = seats.take(b, &settings);
    assert!(third.is_some() && seats.take(b, &settings).is_none());
    drop(first);
    assert_eq!(seats.taken(), 2);
    assert!(seats.take(a, &settings).is_some());
    drop((second, third));
    assert_eq!(seats.taken(), 0);
    assert!(seats.lock().addresses() == 0);
}
