//! How many connections are made for callbacks.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::*;

#[test]
fn one_address_is_dialed_only_so_often() {
    let runtimes = Runtimes::start(1).expect("a runtime");
    let listener = TcpListener::bind("127.0.0.77:0").expect("a port");
    let at = listener.local_addr().expect("bound");
    let lines: Vec<_> = (0..DIALS_PER_ADDRESS_MAX).map(|_| dial(&runtimes, at)).collect();
    assert!(lines.iter().all(|line| line.is_open()));
    assert!(!dial(&runtimes, at).is_open(), "it has its part");
    let elsewhere = TcpListener::bind("127.0.0.78:0").expect("a port");
    let other = dial(&runtimes, elsewhere.local_addr().expect("bound"));
    assert!(other.is_open());
    // The first one ends: there is a place again.
    drop(listener.accept().expect("it is dialed"));
    let until = Instant::now() + Duration::from_secs(60);
    while !dial(&runtimes, at).is_open() {
        assert!(Instant::now() < until, "its place is never free");
        std::thread::yield_now();
    }
}
