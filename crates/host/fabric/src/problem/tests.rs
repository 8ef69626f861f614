//! Problems of a simulated fabric come and go.

use std::time::Duration;

use crate::fake::{Fake, host, switch};
use crate::monitor::Monitor;

fn ids(monitor: &mut Monitor<Fake>) -> Vec<String> {
    monitor.transport().advance(Duration::from_secs(10));
    let report = monitor.pass().expect("a transport");
    report.problems.into_iter().map(|problem| problem.id).collect()
}

fn monitor() -> Monitor<Fake> {
    let mut monitor = Monitor::new(Fake::new(2, 6, 1));
    assert_eq!(ids(&mut monitor), [""; 0]);
    monitor
}

#[test]
fn symbol_errors_are_a_problem_while_they_grow() {
    let mut monitor = monitor();
    monitor.transport().port((host(2), 1)).expect("a port").narrow.errors[0] = 5;
    assert_eq!(ids(&mut monitor), ["fabric-symbol-errors-host2:1"]);
    assert_eq!(ids(&mut monitor), [""; 0]);
}

#[test]
fn a_link_that_is_narrower_than_both_ends_is_a_problem() {
    let mut monitor = monitor();
    for id in [(host(2), 1), (switch(1), 2)] {
        monitor.transport().port(id).expect("a port").info.width_active = 1;
    }
    assert_eq!(ids(&mut monitor), ["fabric-narrow-host2:1"]);
    // One end cannot do more.
    monitor.transport().port((host(2), 1)).expect("a port").info.width_supported = 1;
    assert_eq!(ids(&mut monitor), [""; 0]);
    // It can, and is limited to that by an administrator.
    let info = &mut monitor.transport().port((host(2), 1)).expect("a port").info;
    (info.width_supported, info.width_enabled) = (3, 1);
    assert_eq!(ids(&mut monitor), [""; 0]);
    // A slow one.
    let info = &mut monitor.transport().port((host(3), 1)).expect("a port").info;
    info.speed_active = 1;
    assert_eq!(ids(&mut monitor), ["fabric-narrow-host3:1"]);
}

#[test]
fn a_fabric_without_subnet_manager_has_a_problem() {
    let mut monitor = monitor();
    monitor.transport().manager = None;
    assert_eq!(ids(&mut monitor), ["fabric-no-subnet-manager-host1:1"]);
    monitor.transport().manager = Some(3);
    assert_eq!(ids(&mut monitor), [""; 0]);
    monitor.transport().port((host(1), 1)).expect("a port").info.sm_lid = 0;
    assert_eq!(ids(&mut monitor), ["fabric-no-subnet-manager-host1:1"]);
}

#[test]
fn a_node_that_does_not_reply_is_a_problem_of_its_link() {
    let mut monitor = monitor();
    monitor.transport().silent.insert(host(6));
    assert_eq!(ids(&mut monitor), ["fabric-no-reply-sw2:3"]);
}
