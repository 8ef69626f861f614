//! One line for each client and interval; names are cut.

use std::net::Ipv4Addr;

use super::*;

fn client(n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n))
}

#[test]
fn a_client_has_one_line_in_an_interval_and_a_count_of_the_others() {
    let lines = ClientLines::new();
    let interval_ns = LOG_CLIENT_INTERVAL.as_nanos() as u64;
    assert_eq!(lines.take(client(1), 0), Some(0));
    for now in 1..1_000 {
        assert_eq!(lines.take(client(1), now), None);
    }
    assert_eq!(lines.take(client(2), 5), Some(0), "another client has its own");
    assert_eq!(lines.take(client(1), interval_ns), Some(999));
    assert_eq!(lines.take(client(1), 2 * interval_ns), Some(0));
}

#[test]
fn clients_beyond_the_limit_share_one_line() {
    let lines = ClientLines::new();
    let most = LOG_CLIENTS_MAX as u32;
    let logged = (0..2 * most).filter(|n| lines.take(client(*n), 0).is_some()).count();
    assert_eq!(logged, LOG_CLIENTS_MAX + 1);
    // An interval later those without anything left out make room.
    let interval_ns = LOG_CLIENT_INTERVAL.as_nanos() as u64;
    assert_eq!(lines.take(client(3 * most), interval_ns), Some(0));
    assert!(lines.clients.lock().unwrap().as_ref().unwrap().len() <= LOG_CLIENTS_MAX);
}

#[test]
fn names_are_cut_and_show_no_control_characters() {
    assert_eq!(name("share"), "share");
    let long = name(&"x".repeat(30_000));
    assert_eq!(long.chars().count(), LOG_NAME_MAX + 1);
    assert!(!name("a\n\u{1b}[31mb").contains(['\n', '\u{1b}']));
}

#[test]
fn a_line_of_the_log_is_cut_on_standard_error_too() {
    assert!(crate::log::line(&"y".repeat(100_000)).chars().count() <= crate::limits::LOG_LINE_MAX);
}
