//! Each client has its part; what has been idle for longest is dropped, and continued.

use engine::transport::budget::Limits;

use super::*;

const MIB: usize = 1 << 20;
/// The part of one client of a core with 64 MiB.
const OWN: usize = 64 * MIB / HELD_CLIENT_PART;

fn core() -> Rc<HeldBetween> {
    let limits = Limits { bytes: 64 * MIB, ..Limits::default() };
    HeldBetween::new(&Rc::new(CoreBudget::new(limits, 1)))
}

/// A listing of a client with two entries left, which is idle.
fn listing(core: &Rc<HeldBetween>, client: u64, bytes: usize) -> ReadAhead<&'static str> {
    let entries = ReadAhead::default();
    let held = core.take(client, bytes).expect("room");
    entries.put([(11, "a"), (12, "b"), (13, "c")].into_iter(), Some(held));
    assert_eq!(entries.take_if(|entry| *entry == "a"), Some(true));
    assert_eq!(entries.take_if(|entry| *entry == "c"), Some(false));
    entries.rest();
    entries
}

#[test]
fn the_oldest_listing_of_a_client_gives_way_to_another() {
    let core = core();
    let all: Vec<_> = (0..100).map(|_| listing(&core, 1, MIB)).collect();
    assert!(core.bytes_of(1) <= OWN);
    let dropped = all.iter().filter_map(ReadAhead::begin).collect::<Vec<_>>();
    assert_eq!(dropped, vec![11; 100 - OWN / MIB], "they go on behind what was taken");
    // Those that are not idle stay, and the client waits for itself only.
    assert!(core.take(1, MIB).is_none());
    assert!(core.take(2, MIB).is_some());
    drop(all);
    assert_eq!((core.bytes(), core.budget.has_bytes(64 * MIB)), (0, true));
    assert!(core.state.borrow().clients.is_empty() && core.state.borrow().idle.is_empty());
}

#[test]
fn all_clients_leave_room_for_what_else_there_is() {
    let core = core();
    let all: Vec<_> = (0..1_000).map(|client| listing(&core, client, MIB)).collect();
    // One that holds nothing yet is let in beyond that.
    assert!(core.bytes() <= 64 * MIB);
    let more: Vec<_> = (0..1_000).map(|client| listing(&core, client, MIB)).collect();
    assert!(core.bytes() <= 64 * MIB);
    // A request that needs the bytes of the core gets them.
    let large = core.budget.hold(60 * MIB);
    assert!(core.take(5_000, MIB).is_some());
    assert!(core.bytes() <= 4 * MIB);
    drop((all, more, large));
    assert_eq!(core.bytes(), 0);
}

#[test]
fn a_listing_that_is_used_is_not_dropped() {
    let core = core();
    let used = listing(&core, 1, 3 * MIB);
    assert_eq!(used.begin(), None);
    let idle = listing(&core, 1, MIB);
    let third = listing(&core, 1, MIB);
    assert_eq!((used.begin(), idle.begin(), third.begin()), (None, Some(11), None));
    assert_eq!(used.take_if(|entry| *entry == "b"), Some(true));
    assert_eq!(used.take_if(|entry| *entry == "c"), Some(true));
    used.rest();
    assert_eq!(core.bytes_of(1), MIB, "one without entries holds nothing");
}

#[test]
fn what_cannot_be_dropped_is_refused() {
    let core = core();
    let mut pipe = core.take(1, 0).expect("nothing");
    assert!(pipe.grow(OWN - MIB));
    let idle = listing(&core, 1, MIB);
    assert!(pipe.grow(OWN));
    assert_eq!(idle.begin(), Some(11));
    assert!(!pipe.grow(OWN + 1));
    assert_eq!((pipe.bytes(), core.bytes_of(1)), (OWN, OWN));
    pipe.set(0);
    assert_eq!(core.bytes_of(1), 0);
}
