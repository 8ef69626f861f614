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
    pool.reserve(0).unwrap().run(Box::new(move || {
        started.send(()).unwrap();
        let _ = held.recv();
    }));
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
        let job = Box::new(move || done.send((client, n)).unwrap());
        pool.reserve(client).unwrap().run(job);
    }
    drop(release);
    let got: Vec<_> = (0..6).map(|_| order.recv_timeout(WAIT).unwrap()).collect();
    assert_eq!(got, [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]);
}

#[test]
fn connections_of_a_client_take_turns_each_in_order() {
    let pool = pool(1, 100, 100);
    let release = hold(&pool);
    let (done, order) = mpsc::channel();
    for (connection, n) in [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)] {
        let done = done.clone();
        let job = Box::new(move || done.send((connection, n)).unwrap());
        pool.reserve_of((7, connection)).unwrap().run(job);
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
fn one_client_alone_has_all_threads_until_there_is_another() {
    let pool = pool(4, 100, 99);
    let (started, is_started) = mpsc::channel();
    let start = |n: usize| {
        let ((release, held), started) = (mpsc::channel::<()>(), started.clone());
        let job = move || {
            started.send(n).unwrap();
            let _ = held.recv();
        };
        pool.reserve(1).unwrap().run(Box::new(job));
        release
    };
    let mut held: Vec<_> = (0..6).map(start).collect();
    let three: Vec<_> = (0..3).map(|_| is_started.recv_timeout(WAIT).unwrap()).collect();
    assert_eq!((three.len(), pool.shared.lock().clients[&1].running), (3, 3));
    pool.set_exclusive(true);
    is_started.recv_timeout(WAIT).expect("the fourth thread");
    pool.set_exclusive(false);
    let (done, is_done) = mpsc::channel();
    pool.reserve(2).unwrap().run(Box::new(move || done.send(()).unwrap()));
    drop(held.remove(0));
    is_done.recv_timeout(WAIT).expect("the first thread that is free");
    assert!(is_started.try_recv().is_err(), "a fourth thread of one client");
    drop(held);
    pool.wait_idle();
}

#[test]
fn one_client_never_has_all_threads() {
    let pool = pool(4, 100, 99);
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let (started, is_started) = mpsc::channel();
    for n in 0..20 {
        let (held, started) = (Arc::clone(&held), started.clone());
        let job = Box::new(move || {
            started.send(n).unwrap();
            // Its end is that of the sender.
            let _ = held.lock().unwrap().recv();
        });
        pool.reserve(1).unwrap().run(job);
    }
    let first: Vec<_> = (0..3).map(|_| is_started.recv_timeout(WAIT).unwrap()).collect();
    assert_eq!(first.len(), 3);
    // Another client is served although the first has 17 more that wait.
    for _ in 0..50 {
        let (done, is_done) = mpsc::channel();
        pool.reserve(2).unwrap().run(Box::new(move || done.send(()).unwrap()));
        is_done.recv_timeout(WAIT).unwrap();
    }
    assert!(is_started.try_recv().is_err(), "a fourth thread of one client");
    assert_eq!(pool.queued(), 17);
    drop(release);
    let rest: Vec<_> = (0..17).map(|_| is_started.recv_timeout(WAIT).unwrap()).collect();
    assert_eq!(rest, (3..20).collect::<Vec<_>>());
    pool.wait_idle();
    assert!(pool.shared.lock().clients.is_empty(), "what is over is not kept");
}

#[test]
fn dropping_runs_what_waits_for_its_clients_part() {
    let pool = pool(4, 100, 99);
    let (done, is_done) = mpsc::channel();
    for n in 0..40 {
        let done = done.clone();
        let job = Box::new(move || {
            std::thread::yield_now();
            done.send(n).unwrap();
        });
        pool.reserve(1).unwrap().run(job);
    }
    drop((pool, done));
    assert_eq!(is_done.iter().count(), 40);
}

#[test]
fn a_client_is_its_address_or_its_network() {
    let of = |text: &str| client(text.parse().unwrap());
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
    assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
}

#[test]
fn a_panicking_job_costs_no_thread() {
    let pool = pool(1, 10, 10);
    pool.reserve(1).unwrap().run(Box::new(|| panic!("planted")));
    let (done, is_done) = mpsc::channel();
    pool.reserve(1).unwrap().run(Box::new(move || done.send(()).unwrap()));
    is_done.recv_timeout(WAIT).unwrap();
}

#[test]
fn dropping_runs_what_is_queued() {
    let pool = pool(1, 10, 10);
    let (done, is_done) = mpsc::channel();
    for n in 0..5 {
        let done = done.clone();
        pool.reserve(1).unwrap().run(Box::new(move || done.send(n).unwrap()));
    }
    drop((pool, done));
    assert_eq!(is_done.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn waiting_for_the_end_leaves_nothing_undone() {
    let pool = pool(2, 100, 100);
    let release = hold(&pool);
    let (done, order) = mpsc::channel();
    for n in 0..20 {
        let done = done.clone();
        pool.reserve(1).unwrap().run(Box::new(move || done.send(n).unwrap()));
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
