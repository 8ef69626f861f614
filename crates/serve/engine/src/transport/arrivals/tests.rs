//! Requests have the time at which they were seen to have come, others that at which they were
//! received.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use super::*;

#[test]
fn what_is_received_at_once_came_then() {
    let mut arrivals = Arrivals::default();
    let before = stamp();
    arrivals.received(300);
    let first = arrivals.at(200);
    assert!(first >= before);
    assert_eq!([arrivals.at(100), arrivals.at(0)], [first; 2]);
    arrivals.received(100);
    assert!(arrivals.at(0) > first);
}

#[test]
fn what_waited_came_when_it_was_seen() {
    let mut arrivals = Arrivals::default();
    arrivals.received(100);
    let zero = arrivals.at(0);
    // Two requests of 100 bytes each are seen one after the other, of a third one half.
    arrivals.came(100);
    arrivals.came(100);
    let between = stamp();
    arrivals.came(250);
    let seen = stamp();
    arrivals.received(250);
    let first = arrivals.at(150);
    assert!(zero < first && first < between, "{zero} {first} {between}");
    let second = arrivals.at(50);
    assert!(between < second && second < seen, "{between} {second} {seen}");
    let rest = stamp();
    arrivals.received(50);
    assert!(arrivals.at(0) >= rest, "its end came later");
    assert!(arrivals.marks.is_empty(), "none is left");
}

#[test]
fn there_is_a_limit_on_what_is_noted() {
    let mut arrivals = Arrivals::default();
    for bytes in 1..=2 * ARRIVALS_MAX {
        arrivals.came(bytes);
    }
    assert_eq!(arrivals.marks.len(), ARRIVALS_MAX);
    for _ in 0..2 * ARRIVALS_MAX {
        arrivals.received(1);
        assert!(arrivals.marks.len() <= ARRIVALS_MAX);
    }
    assert!(arrivals.at(0) <= stamp());
}

#[test]
fn the_kernel_has_the_number_of_bytes_to_receive() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let at = listener.local_addr().expect("its address");
    let mut client = TcpStream::connect(at).expect("a connection");
    let (server, _) = listener.accept().expect("its other end");
    let mut arrivals = Arrivals::default();
    arrivals.look(&server);
    assert!(arrivals.marks.is_empty(), "nothing has come");
    client.write_all(&[0; 100]).expect("sent");
    server.peek(&mut [0; 100]).expect("it has come");
    arrivals.look(&server);
    arrivals.look(&server);
    assert_eq!(arrivals.marks.len(), 1);
    assert_eq!(arrivals.marks[0].0, 100);
}
