//! Which connection gets a permit, and which one loses its own.

use super::*;

const LIMITS: PermitLimits = PermitLimits { all: 1_600, sure: 100, client_max: 900, closing: 200 };

fn client(n: u16) -> IpAddr {
    IpAddr::from([192, 0, (n >> 8) as u8, n as u8])
}

struct One {
    id: u64,
    signal: Arc<RevokeSignal>,
}

impl One {
    fn is_revoked(&self) -> bool {
        self.signal.poll_revoked(&Context::from_waker(Waker::noop())).is_ready()
    }
}

fn take(permits: &mut PermitTable, service: usize, n: u16, limits: PermitLimits) -> Option<One> {
    let signal = Arc::<RevokeSignal>::default();
    let taken = permits.take(service, client(n), limits, Arc::clone(&signal))?;
    Some(One { id: taken.id, signal })
}

fn take_in_use(permits: &mut PermitTable, service: usize, n: u16) -> Option<One> {
    let one = take(permits, service, n, LIMITS)?;
    assert!(permits.keep(one.id));
    Some(one)
}

/// As a server does: what has lost its permit ends at once.
fn end_given_away(permits: &mut PermitTable, held: &mut Vec<One>) {
    let (gone, left) = std::mem::take(held).into_iter().partition(One::is_revoked);
    *held = left;
    let gone: Vec<One> = gone;
    gone.iter().for_each(|one| permits.give(one.id));
}

#[test]
fn idle_connections_of_one_client_make_room_for_its_own_new_ones() {
    let mut permits = PermitTable::new(4);
    let other = take(&mut permits, 0, 2, LIMITS).expect("a permit");
    let mut own = Vec::new();
    for _ in 0..1_000 {
        own.push(take(&mut permits, 0, 1, LIMITS).expect("a permit"));
        end_given_away(&mut permits, &mut own);
    }
    assert!(!other.is_revoked());
    assert_eq!((own.len(), own[0].id, own[899].id), (900, 101, 1_000), "the newest stay");
    assert_eq!((permits.of(client(1)), permits.taken()), (900, 901));
    own.iter().chain([&other]).for_each(|one| permits.give(one.id));
    assert_eq!((permits.taken(), permits.clients(), permits.closing), (0, 0, 0));
}

#[test]
fn idle_connections_of_many_clients_make_room_at_every_service() {
    let mut permits = PermitTable::new(4);
    let mut idle = Vec::new();
    for n in 0..2_000 {
        idle.push(take(&mut permits, 1, 10 + n, LIMITS).expect("a permit"));
        end_given_away(&mut permits, &mut idle);
    }
    assert_eq!(idle.len(), 1_300, "all but what three services are sure of");
    for service in 0..4 {
        for n in 0..150 {
            let one = take_in_use(&mut permits, service, 3_000 + n);
            assert!(one.is_some(), "{n} at {service}");
            end_given_away(&mut permits, &mut idle);
        }
    }
    assert_eq!(permits.taken(), LIMITS.all, "no more than there are");
    assert_eq!(idle.len(), LIMITS.all - 600);
}

#[test]
fn the_client_with_most_idle_connections_loses_the_oldest() {
    let limits = PermitLimits::new(100, 60);
    let mut permits = PermitTable::new(1);
    let single = take(&mut permits, 0, 1, limits).expect("a permit");
    let many: Vec<One> = (0..50).map(|_| take(&mut permits, 0, 2, limits).expect("one")).collect();
    let few: Vec<One> = (0..49).map(|_| take(&mut permits, 0, 3, limits).expect("one")).collect();
    let _new = take(&mut permits, 0, 4, limits).expect("the permit of another");
    assert!(many[0].is_revoked() && !many[1].is_revoked());
    assert!(!single.is_revoked() && few.iter().all(|one| !one.is_revoked()));
}

#[test]
fn connections_in_use_keep_their_permits() {
    let mut permits = PermitTable::new(4);
    let used: Vec<One> = (0..2_000).filter_map(|_| take_in_use(&mut permits, 0, 1)).collect();
    assert_eq!(used.len(), 900, "three quarters of what no service is sure of");
    assert!(take(&mut permits, 0, 1, LIMITS).is_none());
    let others: Vec<One> =
        (0..2_000).filter_map(|n| take_in_use(&mut permits, 0, 10 + n)).collect();
    assert_eq!(others.len(), 400);
    assert!(permits.is_common_full(LIMITS));
    assert!(take(&mut permits, 0, 5_000, LIMITS).is_none(), "none is idle");
    for service in 1..4 {
        let sure: Vec<One> =
            (0..200).filter_map(|n| take_in_use(&mut permits, service, 10 + n)).collect();
        assert_eq!(sure.len(), 100, "what the service is sure of");
    }
}

#[test]
fn those_that_are_closing_at_once_are_limited() {
    let limits = PermitLimits::new(80, 80).limiting();
    let mut permits = PermitTable::new(1);
    let held: Vec<One> = (0..80).map(|n| take(&mut permits, 0, n, limits).expect("one")).collect();
    let new = (0..80).filter_map(|n| take(&mut permits, 0, 100 + n, limits)).count();
    assert_eq!(new, 80 / CONNECTIONS_CLOSING_PART, "as many as may be closing");
    let gone = held.iter().find(|one| one.is_revoked()).expect("one");
    assert!(!permits.keep(gone.id), "too late");
    permits.give(gone.id);
    assert!(take(&mut permits, 0, 300, limits).is_some(), "one of them has ended");
}
