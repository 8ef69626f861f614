//! The pool is bounded, fair, and survives a panicking job.

use std::sync::mpsc;
use std::time::Duration;

use super::*;

const WAIT: Duration = Duration::from_secs(40);

fn pool(threads: usize, queue: usize, per_client: usize) -> Arc<Pool> {
    Pool::start(PoolLimits { threads, queue, per_client }).unwrap()
}

/// Occupies the only thread until the returned sender is dropped.
fn hold(pool: &Pool) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (started, is_started) = mpsc::channel();
    pool.reserve(0).unwrap().run(
        0,
        Box::new(move |_| {
            started.send(()).unwrap();
            let _ = held.recv();
        }),
    );
    is_started.recv_timeout(WAIT).unwrap();
    release
}

#[test]
fn clients_take_turns() {
    let pool = pool(1, 100, 100);
    let release = hold(&pool);
    let (done, order) = mpsc::channel();
    for (client, n) in [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)] {
        let done = done.clone();
        let job = Box::new(move |_| done.send((client, n)).unwrap());
        pool.reserve(client).unwrap().run(0, job);
    }
    drop(release);
    let got: Vec<_> = (0..6).map(|_| order.recv_timeout(WAIT).unwrap()).collect();
    assert_eq!(got, [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]);
}

#[test]
fn one_client_cannot_fill_the_queue() {
    let pool = pool(1, 5, 3);
    let release = hold(&pool);
    let slots: Vec<_> = (0..3).map(|_| pool.reserve(1).unwrap()).collect();
    assert!(pool.reserve(1).is_none(), "its share is used up");
    let others = (pool.reserve(2).unwrap(), pool.reserve(3).unwrap());
    assert!(pool.reserve(4).is_none(), "the whole is used up");
    assert_eq!(pool.queued(), 5);
    drop((slots, others));
    assert_eq!(pool.queued(), 0, "reservations without a job are given back");
    drop(release);
}

#[test]
fn a_panicking_job_costs_no_thread() {
    let pool = pool(1, 10, 10);
    pool.reserve(1).unwrap().run(0, Box::new(|_| panic!("planted")));
    let (done, is_done) = mpsc::channel();
    pool.reserve(1).unwrap().run(0, Box::new(move |_| done.send(()).unwrap()));
    is_done.recv_timeout(WAIT).unwrap();
}

#[test]
fn dropping_runs_what_is_queued() {
    let pool = pool(1, 10, 10);
    let (done, is_done) = mpsc::channel();
    for n in 0..5 {
        let done = done.clone();
        pool.reserve(1).unwrap().run(0, Box::new(move |_| done.send(n).unwrap()));
    }
    drop((pool, done));
    assert_eq!(is_done.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn who_waits_for_the_end_sees_everything_done() {
    let pool = pool(2, 100, 100);
    let release = hold(&pool);
    let (done, order) = mpsc::channel();
    for n in 0..20 {
        let done = done.clone();
        pool.reserve(1).unwrap().run(0, Box::new(move |_| done.send(n).unwrap()));
    }
    let waiting = Arc::clone(&pool);
    let waiter = std::thread::spawn(move || waiting.wait_idle());
    for _ in 0..20 {
        order.recv_timeout(WAIT).unwrap();
    }
    assert!(!waiter.is_finished(), "a thread is still at work");
    drop(release);
    waiter.join().unwrap();
    assert_eq!((pool.busy(), pool.queued()), (0, 0));
}
