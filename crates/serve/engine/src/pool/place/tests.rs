//! Places are given in order within a client and in turn among clients, and none is lost.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Wake;

use base::random::{Random, SeededRandom};

use super::super::Job;
use super::*;

/// A waker that counts.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// One that waits.
struct One {
    place: Pin<Box<SlotWait>>,
    woken: Arc<Woken>,
}

impl One {
    fn new(pool: &Pool, client: u64) -> Self {
        Self::of(pool, (client, 0))
    }

    fn of(pool: &Pool, connection: (u64, u64)) -> Self {
        Self { place: Box::pin(pool.place(connection)), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<Option<Slot>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.place.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// That it waits.
    fn waits(mut self) -> Self {
        assert!(self.poll().is_pending());
        self
    }

    fn wakes(&self) -> usize {
        self.woken.0.load(SeqCst)
    }

    /// Its place.
    fn take(&mut self) -> Slot {
        let Poll::Ready(Some(slot)) = self.poll() else { panic!("it has no place") };
        slot
    }
}

/// A pool of which the only thread stands still.
fn pool(queue: usize, per_client: usize) -> (Arc<Pool>, std::sync::mpsc::Sender<()>) {
    let pool = Pool::start(PoolLimits { threads: 1, queue, per_client }).unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (started, is_started) = std::sync::mpsc::channel();
    let job: Job = Box::new(move || {
        started.send(()).unwrap();
        let _ = held.recv();
    });
    pool.reserve(0).unwrap().run(job);
    is_started.recv().unwrap();
    (pool, release)
}

#[test]
fn places_go_in_order_within_a_client_and_in_turn_among_clients() {
    let (pool, _release) = pool(2, 2);
    let mut held: Vec<Slot> = [8, 9].map(|client| pool.reserve(client).unwrap()).into();
    let came = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)];
    let mut waiting: Vec<_> =
        came.into_iter().map(|which| (which, One::new(&pool, which.0).waits())).collect();
    assert!(pool.reserve(1).is_none() && pool.reserve(4).is_none(), "it is full");
    let mut order = Vec::new();
    while let Some(slot) = held.pop() {
        drop(slot);
        let Some(at) = waiting.iter().position(|(_, one)| one.wakes() > 0) else { continue };
        let (which, mut one) = waiting.remove(at);
        assert_eq!(one.wakes(), 1, "once");
        order.push(which);
        held.insert(0, one.take());
        assert!(waiting.iter().all(|(_, one)| one.wakes() == 0), "no other is woken");
    }
    assert_eq!(order, [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]);
    assert_eq!(pool.queued(), 0);
}

#[test]
fn what_comes_later_has_no_place_before_what_waits() {
    let (pool, _release) = pool(1, 1);
    let held = pool.reserve(1).unwrap();
    let mut first = One::new(&pool, 1).waits();
    drop(held);
    assert!(pool.reserve(1).is_none() && pool.reserve(2).is_none(), "it is the first's");
    let slot = first.take();
    drop(slot);
    assert!(pool.reserve(2).is_some());
}

#[test]
fn a_client_at_its_limit_does_not_hold_others_back() {
    let (pool, _release) = pool(4, 2);
    let own: Vec<_> = (0..2).map(|_| pool.reserve(1).unwrap()).collect();
    let mut others: Vec<_> = (0..2).map(|_| pool.reserve(2).unwrap()).collect();
    let mut first = One::new(&pool, 1).waits();
    let mut third = One::new(&pool, 3).waits();
    others.pop();
    assert_eq!((first.wakes(), third.wakes()), (0, 1));
    drop(third.take());
    drop(own);
    assert_eq!(first.wakes(), 1);
    first.take();
}

#[test]
fn what_ends_its_wait_passes_its_place_on() {
    let (pool, _release) = pool(1, 1);
    let held = pool.reserve(1).unwrap();
    let (first, second) = (One::new(&pool, 1).waits(), One::new(&pool, 1).waits());
    let (third, mut fourth) = (One::new(&pool, 2).waits(), One::new(&pool, 2).waits());
    // Before it has a place, and with one that it has not looked at.
    drop(third);
    drop(held);
    assert_eq!(first.wakes(), 1);
    drop(first);
    assert_eq!((second.wakes(), fourth.wakes()), (0, 1), "it is the turn of the other client");
    drop(fourth.take());
    assert_eq!(second.wakes(), 1);
    drop(second);
    assert_eq!(pool.queued(), 0);
    assert!(pool.reserve(3).is_some());
}

#[test]
fn the_end_of_the_pool_ends_the_wait() {
    let (pool, release) = pool(1, 1);
    let _held = pool.reserve(1).unwrap();
    let mut waiting = One::new(&pool, 1).waits();
    drop(release);
    drop(pool);
    assert_eq!(waiting.wakes(), 1);
    assert!(matches!(waiting.poll(), Poll::Ready(None)));
}

/// Random reservations, waits, looks and ends against counts; nothing is held afterwards.
#[test]
fn connections_of_one_client_take_turns_and_each_is_in_order() {
    let (pool, _release) = pool(1, 1);
    let mut held = pool.reserve(9).unwrap();
    // Each connection with all of its operations at once.
    let came: Vec<(u64, u64)> = (0..3).flat_map(|of| (0..3).map(move |n| (of, n))).collect();
    let mut waiting: Vec<_> =
        came.into_iter().map(|(of, n)| ((n, of), One::of(&pool, (1, of)).waits())).collect();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        drop(held);
        let at = waiting.iter().position(|(_, one)| one.wakes() > 0).expect("one is woken");
        let (which, mut one) = waiting.remove(at);
        order.push(which);
        held = one.take();
    }
    assert!(order.is_sorted(), "one of each, and in order: {order:?}");
    // One that gives up does not take the turn of its connection along.
    let mut waiting: Vec<_> = [1, 1, 2].map(|of| One::of(&pool, (1, of)).waits()).into();
    drop(waiting.remove(0));
    drop(held);
    assert_eq!(waiting.iter().map(One::wakes).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn random_waits_lose_no_place() {
    for seed in 0..20 {
        let mut random = SeededRandom::new(seed);
        let (pool, _release) = pool(5, 2);
        let (mut slots, mut waiting) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            let client = 1 + random.below(4);
            match random.below(5) {
                0 => slots.extend(pool.reserve(client)),
                1 if waiting.len() < 30 => {
                    let mut one = One::new(&pool, client);
                    match one.poll() {
                        Poll::Ready(slot) => slots.extend(slot),
                        Poll::Pending => waiting.push(one),
                    }
                }
                2 if !slots.is_empty() => {
                    slots.swap_remove(random.below(slots.len() as u64) as usize);
                }
                3 if !waiting.is_empty() => {
                    waiting.swap_remove(random.below(waiting.len() as u64) as usize);
                }
                _ => {
                    let woken = |one: &mut One| one.wakes() > 0;
                    for mut one in waiting.extract_if(.., woken) {
                        slots.push(one.take());
                    }
                }
            }
            assert!(pool.queued() <= 5 && slots.len() <= pool.queued(), "seed {seed}");
            let waits = pool.shared.lock().waiting.count();
            let granted = waiting.iter().filter(|one| one.wakes() > 0).count();
            assert_eq!(waits, waiting.len() - granted, "seed {seed}");
            assert_eq!(pool.queued(), slots.len() + granted, "seed {seed}");
        }
        slots.clear();
        waiting.clear();
        assert_eq!(pool.queued(), 0, "seed {seed}");
        assert!(pool.shared.lock().clients.len() <= 1, "but the one that has the thread");
    }
}

#[test]
fn a_connection_keeps_its_turn_over_its_looks() {
    let (pool, _release) = pool(1, 1);
    let held = pool.reserve(1).unwrap();
    let mut next = NextSlot::default();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let cx = &mut Context::from_waker(&waker);
    assert!(next.poll(cx).is_pending(), "it waits for nothing");
    assert!(next.take(&pool, 1).is_none() && next.waits());
    assert!(next.poll(cx).is_pending());
    let mut later = One::new(&pool, 1).waits();
    // It looks again for another reason.
    assert!(next.take(&pool, 1).is_none() && next.poll(cx).is_pending());
    drop(held);
    assert_eq!((woken.0.load(SeqCst), later.wakes()), (1, 0));
    assert!(next.poll(cx).is_ready() && !next.waits());
    drop(next.take(&pool, 1).expect("its place"));
    assert_eq!(later.wakes(), 1);
    drop(later.take());
    // What does not need it any more passes it on.
    let held = pool.reserve(1).unwrap();
    assert!(next.take(&pool, 1).is_none() && next.poll(cx).is_pending());
    drop(held);
    next.clear();
    assert_eq!(pool.queued(), 0);
}
