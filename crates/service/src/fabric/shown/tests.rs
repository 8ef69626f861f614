//! A simulated fabric as the tree shows it.

use std::time::Duration;

use host_fabric::fake::{Fake, host, switch};
use host_fabric::monitor::Monitor;

use super::*;

fn text<'a>(state: &'a State, name: &str) -> &'a str {
    let found = state.iter().find(|(one, _)| *one == name);
    found.and_then(|(_, value)| value.as_text()).unwrap_or("-")
}

fn monitor() -> (Monitor<Fake>, Report) {
    let mut monitor = Monitor::new(Fake::new(2, 6, 1));
    let report = monitor.pass().expect("a transport");
    (monitor, report)
}

#[test]
fn a_port_shows_its_link_and_its_counters_in_bytes() {
    let (mut monitor, _) = monitor();
    let port = monitor.transport().port((host(2), 1)).expect("a port");
    port.counters.words = [10, 25];
    port.narrow.errors[0] = 3;
    monitor.transport().advance(Duration::from_secs(10));
    let report = monitor.pass().expect("a transport");
    let state = port_state(&report, "host2:1");
    let shown = ["lid", "state", "physical", "width", "speed", "peer", "counters"];
    let expected = ["2", "active", "link up", "4x of 4x", "QDR of QDR", "sw1:2", "64 bits"];
    assert_eq!(shown.map(|name| text(&state, name)), expected);
    let number = |name: &str| {
        let found = state.iter().find(|(one, _)| *one == name);
        found.and_then(|(_, value)| value.as_integer())
    };
    assert_eq!((number("bytes_in"), number("bytes_out")), (Some(40), Some(100)));
    assert!(state.contains(&("errors", Value::texts(["symbol: 3"]))));
    assert_eq!(problems(&[Arc::new(report)]).len(), 1);
}

fn port_state(report: &Report, name: &str) -> State {
    port(report, name).expect("a port of this name")
}

#[test]
fn a_port_without_counters_shows_why() {
    let (_, report) = monitor();
    assert_eq!(text(&port_state(&report, "host2:2"), "counters"), "no link");
    assert_eq!(text(&port_state(&report, "host2:2"), "physical"), "polling");
}

#[test]
fn nodes_and_links_are_items_with_their_names() {
    let (_, report) = monitor();
    let switch_name = report.names[&switch(2)].clone();
    let state = node(&report, &switch_name).expect("a switch");
    assert_eq!((text(&state, "kind"), text(&state, "lid")), ("switch", "1002"));
    assert_eq!(text(&state, "route"), "1, 33");
    let state = link(&report, "sw1:33").expect("a link");
    assert_eq!((text(&state, "to"), text(&state, "width")), ("sw2:35", "4x of 4x"));
    assert!(link(&report, "sw9:1").is_none() && port(&report, "host1:999").is_none());
}

#[test]
fn the_overview_has_a_reason_without_a_fabric() {
    let state = overview(&[], "no device".to_owned());
    assert_eq!((text(&state, "state"), text(&state, "reason")), ("unavailable", "no device"));
    let state = overview(&[Arc::new(monitor().1)], String::new());
    assert_eq!((text(&state, "state"), text(&state, "reason")), ("observed", ""));
    assert_eq!(text(&state, "subnet_manager"), "host1:1: LID 1");
    assert!(state.contains(&("pkeys", Value::texts(["0xffff (full) at host1:1"]))));
}
