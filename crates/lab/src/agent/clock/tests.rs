//! Offsets from planted exchanges.

use super::*;

#[test]
fn the_least_disturbed_exchange_decides() {
    let exchange = |sent_ns: u64, out: u64, theirs_offset: i64, back: u64| Exchange {
        sent_ns,
        theirs_ns: (sent_ns + out).saturating_add_signed(theirs_offset),
        received_ns: sent_ns + out + back,
    };
    let all = [
        exchange(1_000_000, 900_000, -5_000, 10_000),
        exchange(9_000_000, 11_000, -5_000, 9_000),
        exchange(20_000_000, 10_000, -5_000, 400_000),
    ];
    let found = offset(&all).unwrap();
    assert_eq!(found.rtt_ns, 20_000);
    assert!((found.offset_ns + 5_000).unsigned_abs() <= found.error_ns, "{found:?}");
    assert_eq!(found.to_ours(found.to_theirs(77_000_000)), 77_000_000);
    assert_eq!(offset(&[]), None);
}

#[test]
fn a_wait_ends_after_its_time_and_not_before() {
    let at = mono_ns() + 2_000_000;
    sleep_until(at);
    assert!(mono_ns() >= at);
}
