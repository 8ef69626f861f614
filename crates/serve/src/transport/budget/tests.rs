//! Budgets refuse at their limit and add up over cores.

use super::*;

#[test]
fn connection_over_the_limit_is_refused_and_counted() {
    let budgets = Budgets::new(Limits { connections: 2, ..Limits::default() });
    let [here, there] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
    assert!(budgets.connect(here) && budgets.connect(here));
    assert!(!budgets.connect(there));
    assert_eq!((budgets.connections(), budgets.refused.load(Relaxed)), (2, 1));
    assert_eq!((budgets.connections(), budgets.clients()), (2, 1));
    budgets.disconnect(here);
    assert!(budgets.connect(there));
    assert_eq!((budgets.connections(), budgets.clients()), (2, 2));
    budgets.disconnect(here);
    assert_eq!((budgets.connections(), budgets.clients()), (1, 1));
    assert!(budgets.connect(here));
}

#[test]
fn core_parts_add_up() {
    let limits = Limits { connections: 1, requests: 4, bytes: 100 };
    let all = Budgets::new(limits);
    let cores = [CoreBudget::new(limits, 2), CoreBudget::new(limits, 2)];
    cores[0].take_request();
    cores[0].take_request();
    assert!(!cores[0].has_request() && cores[1].has_request());
    cores[1].take_bytes(40);
    assert!(cores[1].has_bytes(10) && !cores[1].has_bytes(11));
    assert!(!cores[0].has_room(1) && cores[1].has_room(1000), "one is always let in");
    assert!((0..OVERDRAFTS_MAX).all(|_| cores[0].take_overdraft()));
    assert!(!cores[0].take_overdraft());
    cores[0].give_overdraft();
    assert!(cores[0].take_overdraft());
    cores.iter().for_each(|c| c.publish(&all));
    assert_eq!((all.requests(), all.bytes()), (2, 40));
    cores[0].give_request();
    cores[1].give_bytes(40);
    cores.iter().for_each(|c| c.publish(&all));
    assert_eq!((all.requests(), all.bytes()), (1, 0));
}

#[test]
fn large_records_leave_room_for_small_ones() {
    let core = CoreBudget::new(Limits { connections: 1, requests: 4, bytes: 400 }, 1);
    core.take_bytes(200);
    assert!(core.has_large(100) && !core.has_large(101));
    core.take_bytes(100);
    assert!(!core.has_large(1) && core.has_bytes(100));
}

#[test]
fn what_was_cut_off_is_held_no_more() {
    let all = Budgets::new(Limits::default());
    let core = CoreBudget::new(Limits::default(), 1);
    core.take_request();
    core.take_bytes(100);
    core.publish(&all);
    assert_eq!((all.requests(), all.bytes()), (1, 100));
    core.clear();
    core.publish(&all);
    assert_eq!((all.requests(), all.bytes()), (0, 0));
}
