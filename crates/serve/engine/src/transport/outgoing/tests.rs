//! Room is taken before bytes are there, and given back with the last of them.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::super::budget::{Budgets, CoreBudget, Limits};
use super::{Outgoing, OutgoingPart};

fn budget(bytes: usize) -> Rc<CoreBudget> {
    Rc::new(CoreBudget::new(Limits { bytes, ..Limits::default() }, 1))
}

fn part(budget: &Rc<CoreBudget>, max: usize) -> OutgoingPart {
    Rc::new(Outgoing::new(budget, max)).part()
}

fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(room) => Some(room),
        Poll::Pending => None,
    }
}

#[test]
fn a_connection_has_a_limit_and_gets_room_back_with_the_last_byte() {
    let budget = budget(1000);
    let out = part(&budget, 100);
    let mut bytes = now(out.hold(60)).expect("there is room").fill(vec![1; 60]);
    assert!(now(out.hold(60)).is_none(), "the connection has its part");
    let front = bytes.split_to(10);
    drop(bytes);
    assert!(now(out.hold(60)).is_none(), "the front has not left");
    drop(front);
    let large = now(out.hold(5000)).expect("what is larger than the limit goes alone");
    assert!(now(out.hold(1)).is_none());
    drop(large);
    assert!(now(out.hold(100)).is_some());
}

#[test]
fn a_response_has_left_with_its_last_byte() {
    let budget = budget(1000);
    let whole = Rc::new(Outgoing::new(&budget, 100));
    let (one, other) = (whole.part(), whole.part());
    assert!(now(one.left()).is_some(), "it has nothing to send");
    let mut bytes = now(one.hold(60)).expect("there is room").fill(vec![1; 60]);
    let _others = now(other.hold(40)).expect("there is room");
    let front = bytes.split_to(10);
    drop(bytes);
    assert!(now(one.left()).is_none(), "the front has not left");
    drop(front);
    assert!(now(one.left()).is_some(), "whatever others have to send");
    assert!(now(other.left()).is_none());
}

#[tokio::test(flavor = "current_thread")]
async fn the_account_of_the_core_is_waited_for() {
    let budget = budget(100);
    let (one, other) = (part(&budget, 80), part(&budget, 80));
    let room = one.hold(80).await;
    let mut waiting = pin!(other.hold(80));
    assert!(tokio::time::timeout(Duration::from_millis(20), waiting.as_mut()).await.is_err());
    drop(room);
    // As the core does.
    budget.something_returned().await;
    budget.look_again();
    let room = waiting.await;
    let all = Budgets::new(Limits::default());
    budget.publish(&all);
    assert_eq!(all.bytes(), 80);
    // Dropped on another thread.
    std::thread::spawn(move || drop(room.fill(vec![0; 80]))).join().unwrap();
    budget.publish(&all);
    assert_eq!(all.bytes(), 0);
}
