//! One client's part of a queue, and the order of those that wait.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn client(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Option<QueuePermit>> + 'a>>;

fn poll(waiting: &mut Waiting<'_>) -> Poll<Option<QueuePermit>> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn starts<'a>(queue: &'a ClientQueue, n: u8) -> (Waiting<'a>, Poll<Option<QueuePermit>>) {
    let mut waiting: Waiting<'a> = Box::pin(queue.wait(client(n)));
    let polled = poll(&mut waiting);
    (waiting, polled)
}

#[test]
fn one_client_has_a_part_of_the_queue() {
    let queue = ClientQueue::new((1, 1), (8, 4));
    let first: Vec<_> = (0..4).map(|_| starts(&queue, 1)).collect();
    assert!(matches!(first[0].1, Poll::Ready(Some(_))));
    assert!(first[1..].iter().all(|(_, polled)| polled.is_pending()));
    assert!(matches!(starts(&queue, 1).1, Poll::Ready(None)), "no more of this client");
    assert!(starts(&queue, 2).1.is_pending(), "but of another");
    drop(first);
    assert!(matches!(starts(&queue, 2).1, Poll::Ready(Some(_))));
}

#[test]
fn another_client_does_not_wait_for_all_requests_of_one() {
    let queue = ClientQueue::new((1, 1), (64, 32));
    let mut first: Vec<_> = (0..32).map(|_| starts(&queue, 1)).collect();
    let (mut other, polled) = starts(&queue, 2);
    assert!(polled.is_pending());
    first[0].1 = Poll::Pending;
    assert!(poll(&mut other).is_ready(), "after the one that has run");
}

#[test]
fn one_client_leaves_a_part_of_what_runs() {
    let queue = ClientQueue::new((3, 2), (64, 32));
    let first: Vec<_> = (0..5).map(|_| starts(&queue, 1)).collect();
    assert_eq!(first.iter().filter(|(_, polled)| polled.is_ready()).count(), 2);
    assert!(matches!(starts(&queue, 2).1, Poll::Ready(Some(_))));
}
