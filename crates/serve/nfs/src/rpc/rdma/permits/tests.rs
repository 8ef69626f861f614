//! Permits for connections: what one address may have of them, and which idle one is evicted.

use base::limits::{RDMA_CONNECTION_BYTES_MAX, RDMA_IDLE_MIN};

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Permits at a given time.
struct Bench {
    permits: Arc<RdmaPermits>,
    now_ns: u64,
}

impl Bench {
    fn new() -> Self {
        Self { permits: RdmaPermits::new(RDMA_IDLE_MIN), now_ns: 1_000 * SECOND }
    }

    fn take(&self, host: u8) -> Option<RdmaPermit> {
        self.permits.take([192, 0, 2, host].into(), self.now_ns)
    }

    /// All permits: those of host 1, then those of host 2, a millisecond apart.
    fn full(&mut self) -> Vec<RdmaPermit> {
        let mut open = Vec::new();
        for n in 0..RDMA_CONNECTIONS_MAX {
            let host = if n < RDMA_CONNECTIONS_CLIENT_MAX { 1 } else { 2 };
            open.push(self.take(host).expect("a permit is left"));
            self.now_ns += SECOND / 1_000;
        }
        open
    }
}

fn is_evicted(permit: &RdmaPermit) -> bool {
    let context = Context::from_waker(std::task::Waker::noop());
    permit.activity.poll_evicted(&context).is_ready()
}

fn evicted(open: &[RdmaPermit]) -> Vec<usize> {
    (0..open.len()).filter(|n| is_evicted(&open[*n])).collect()
}

#[test]
fn one_address_leaves_permits_to_others() {
    let mut bench = Bench::new();
    let mut open = bench.full();
    assert!(bench.take(1).is_none(), "it has its part");
    assert!(bench.take(3).is_none(), "there are no more");
    open.remove(0);
    assert!(bench.take(1).is_some());
    drop(open);
    assert_eq!(bench.permits.lock().open.len(), 0);
}

#[test]
fn addresses_of_one_network_of_ipv6_are_one() {
    let bench = Bench::new();
    let take = |host: u16| {
        let from = [0xfd00, 0, 0, 0, 0, 0, 0, host].into();
        bench.permits.take(from, bench.now_ns)
    };
    let open: Vec<_> = (0..512).map_while(take).collect();
    assert_eq!(open.len(), RDMA_CONNECTIONS_CLIENT_MAX);
}

/// Its peer has vanished, or needs it no more.
#[test]
fn the_connection_that_is_idle_for_longest_is_evicted() {
    let mut bench = Bench::new();
    let mut open = bench.full();
    bench.now_ns += RDMA_IDLE_MIN.as_nanos() as u64 - SECOND;
    assert!(bench.take(3).is_none(), "none is idle for long enough");
    open[0].activity.note(false, bench.now_ns);
    open[1].activity.note(true, bench.now_ns);
    bench.now_ns += SECOND;
    let new = bench.take(3).expect("an idle one is evicted");
    assert!(new.has_evicted);
    // The first has requests in progress, the second had one a second ago.
    assert_eq!(evicted(&open), [2]);
    let _more = bench.take(2).expect("of all addresses");
    assert_eq!(evicted(&open), [2, 3]);
    assert_eq!(bench.permits.lock().open.len(), RDMA_CONNECTIONS_MAX);
    drop(open.remove(3));
    assert_eq!(bench.permits.lock().closing, 1);
    drop(open);
    assert_eq!(bench.permits.lock().closing, 0);
    assert_eq!(bench.permits.lock().open.len(), 2);
    assert!(!is_evicted(&new));
}

#[test]
fn an_address_with_its_part_evicts_its_own() {
    let mut bench = Bench::new();
    // The others are idle for longer.
    let others: Vec<_> = (0..10).map(|_| bench.take(2).expect("a permit")).collect();
    bench.now_ns += SECOND;
    let own: Vec<_> =
        (0..RDMA_CONNECTIONS_CLIENT_MAX).map(|_| bench.take(1).expect("a permit")).collect();
    bench.now_ns += RDMA_IDLE_MIN.as_nanos() as u64;
    let _new = bench.take(1).expect("an idle one is evicted");
    assert_eq!((evicted(&others), evicted(&own).len()), (vec![], 1));
}

#[test]
fn only_some_are_closing_at_once() {
    let mut bench = Bench::new();
    let open = bench.full();
    bench.now_ns += 2 * RDMA_IDLE_MIN.as_nanos() as u64;
    let new: Vec<_> = (0..RDMA_CONNECTIONS_MAX).map_while(|_| bench.take(3)).collect();
    assert_eq!((new.len(), evicted(&open).len()), (RDMA_CLOSING_MAX, RDMA_CLOSING_MAX));
    drop(open);
    assert!(bench.take(3).is_some());
}

#[test]
fn connections_of_one_address_have_one_part_of_registered_memory() {
    let bench = Bench::new();
    let (one, another) = (bench.take(1).unwrap(), bench.take(1).unwrap());
    one.data.take(2 * RDMA_CONNECTION_BYTES_MAX);
    another.data.take(RDMA_CONNECTION_BYTES_MAX);
    assert!(!one.data.has_room(1), "both have taken the part of the address");
    assert!(bench.take(2).unwrap().data.has_room(RDMA_CONNECTION_BYTES_MAX), "another address");
    // What a connection holds counts as long as one of the address is open.
    drop(another);
    assert!(!bench.take(1).unwrap().data.has_room(1));
    one.data.give(RDMA_CONNECTION_BYTES_MAX);
    assert!(one.data.has_room(RDMA_CONNECTION_BYTES_MAX));
    drop(one);
    assert!(bench.permits.lock().data.is_empty());
}
