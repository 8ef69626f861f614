//! Budgets refuse at their limit and add up over cores.

use std::future::Future;

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
    assert!(ftp.take_data_permit(from(1)).is_none(), "a connection for data is one, too");
    http.give_up();
    assert_eq!(ftp.over_all(), (64, 136, 1));
    drop((held, other));
    assert_eq!((ftp.over_all().0, ftp.clients()), (0, 0));
    assert!(ftp.take_data_permit(from(1)).is_some());
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
    let budgets = Budgets::new(Limits::default());
    let cut = tokio::spawn(std::future::pending::<()>());
    cut.abort();
    budgets.count_panic(&cut.await);
    budgets.count_panic(&tokio::spawn(async {}).await);
    assert_eq!(budgets.panics.load(Relaxed), 0);
    budgets.count_panic(&tokio::spawn(async { panic!("as a test wants it") }).await);
    assert_eq!(budgets.panics.load(Relaxed), 1);
}

/// Runs `with` as a connection of this client does.
fn of(core: &Rc<CoreBudget>, client: u8, with: impl FnOnce(&CoreBudget) + 'static) {
    let (from, of_core) = (IpAddr::from([192, 0, 2, client]), Rc::clone(core));
    let done = core.scoped(from, None, async move { with(&of_core) });
    let mut done = std::pin::pin!(done);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(done.as_mut().poll(&mut context).is_ready());
}

#[test]
fn one_client_leaves_half_to_others() {
    let limits = Limits { requests: 4, bytes: 64 << 20, ..Limits::default() };
    let core = Rc::new(CoreBudget::new(limits, 1));
    let half = 32 << 20;
    of(&core, 1, move |core| {
        core.take_bytes(half);
        assert!(core.has_bytes(0) && !core.has_bytes(1) && !core.has_large(1));
        (0..2).for_each(|_| core.take_request());
        assert!(!core.has_request());
        let overdrafts = (0..OVERDRAFTS_MAX).filter(|_| core.take_overdraft()).count();
        assert_eq!(overdrafts, OVERDRAFTS_MAX / 2);
    });
    of(&core, 2, move |core| {
        assert!(core.has_large(half / 2) && !core.has_large(half / 2 + 1));
        assert!(core.has_request() && core.take_overdraft());
    });
}

/// The part of a client may be taken by what it has sent, before any of that has begun.
#[test]
fn one_operation_of_each_client_is_let_in() {
    let limits = Limits { requests: 8, bytes: 64 << 20, ..Limits::default() };
    let core = Rc::new(CoreBudget::new(limits, 1));
    let half = 32 << 20;
    of(&core, 1, CoreBudget::take_request);
    of(&core, 2, move |core| {
        core.take_bytes(half);
        assert!(core.has_room(half) && !core.has_room(half + 1), "as far as the core has room");
        core.take_request();
        assert!(!core.has_room(1) && !core.has_bytes(1), "others of it wait");
    });
}

#[test]
fn what_a_client_holds_is_given_back_to_its_part_wherever_it_is_dropped() {
    let limits = Limits { bytes: 64 << 20, ..Limits::default() };
    let core = Rc::new(CoreBudget::new(limits, 1));
    let half = 32 << 20;
    let kept: Rc<RefCell<Option<ReservedBytes>>> = Rc::default();
    let (held, of_core) = (Rc::clone(&kept), Rc::clone(&core));
    // The client is known for as long as it has a connection.
    let stays = Rc::clone(&core);
    let connection = core.scoped(IpAddr::from([192, 0, 2, 1]), None, async move {
        stays.take_bytes(0);
        std::future::pending::<()>().await;
    });
    let mut connection = std::pin::pin!(connection);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(connection.as_mut().poll(&mut context).is_pending());
    of(&core, 1, move |_| *held.borrow_mut() = Some(of_core.hold(half)));
    of(&core, 1, |core| assert!(!core.has_bytes(1)));
    let there = kept.take().map(ReservedBytes::into_send);
    std::thread::spawn(move || drop(there)).join().expect("a thread that drops them");
    of(&core, 1, move |core| assert!(core.has_bytes(half)));
}

#[test]
fn where_there_is_least_memory_one_client_has_room_for_the_largest_record() {
    let limits = Limits { bytes: BUFFERED_CORE_MIN, ..Limits::default() };
    let core = Rc::new(CoreBudget::new(limits, 1));
    of(&core, 1, |core| assert!(core.has_large(base::limits::RPC_RECORD_MAX)));
}
