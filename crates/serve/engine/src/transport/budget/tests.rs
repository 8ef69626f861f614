//! Budgets refuse at their limit and add up over cores.

use super::*;

#[test]
fn connection_over_the_limit_is_refused_and_counted() {
    let budgets = Arc::new(Budgets::new(Limits { connections: 2, ..Limits::default() }));
    let [here, there] = [1, 2].map(|n| IpAddr::from([192, 0, 2, n]));
    let (first, second) = (budgets.connect(here), budgets.connect(here));
    assert!(first.is_some() && second.is_some());
    assert!(budgets.connect(there).is_none());
    assert_eq!((budgets.connections(), budgets.refused.load(Relaxed)), (2, 1));
    assert_eq!((budgets.connections(), budgets.clients()), (2, 1));
    drop(first);
    let _third = budgets.connect(there).expect("a place");
    assert_eq!((budgets.connections(), budgets.clients()), (2, 2));
    drop(second);
    assert_eq!((budgets.connections(), budgets.clients()), (1, 1));
    assert!(budgets.connect(here).is_some());
}

#[test]
fn services_share_places_and_count_together() {
    let places = Arc::new(ConnectionLimits::new(64, 2));
    let one = |service| Arc::new(Budgets::sharing(Limits::default(), &places, service));
    let (ftp, http) = (one(0), one(1));
    let from = |n: u8| IpAddr::from([192, 0, 2, n]);
    let held: Vec<_> = (0..100).filter_map(|n| ftp.connect(from(n))).collect();
    assert_eq!((held.len(), ftp.over_all()), (60, (60, 40, 0)));
    let other: Vec<_> = (0..100).filter_map(|n| http.connect(from(n))).collect();
    assert_eq!((other.len(), http.connections()), (4, 4), "what it is sure of");
    assert!(ftp.take_permit(from(1)).is_none(), "a connection for data is one, too");
    http.give_up();
    assert_eq!(ftp.over_all(), (64, 136, 1));
    drop((held, other));
    assert_eq!((ftp.over_all().0, ftp.clients()), (0, 0));
    assert!(ftp.take_permit(from(1)).is_some());
}

#[test]
fn core_parts_add_up() {
    let limits = Limits { connections: 1, requests: 4, bytes: 100, ..Limits::default() };
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
    let core = CoreBudget::new(Limits { requests: 4, bytes: 400, ..Limits::default() }, 1);
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

#[tokio::test]
async fn what_panics_is_counted_and_what_is_cut_off_is_not() {
    let budgets = Budgets::default();
    let cut = tokio::spawn(std::future::pending::<()>());
    cut.abort();
    budgets.count_panic(&cut.await);
    budgets.count_panic(&tokio::spawn(async {}).await);
    assert_eq!(budgets.panics.load(Relaxed), 0);
    budgets.count_panic(&tokio::spawn(async { panic!("as a test wants it") }).await);
    assert_eq!(budgets.panics.load(Relaxed), 1);
}
