//! What comes of how much memory.

use base::limits::{
    BUFFERED_BYTES_MAX, BUFFERED_CORE_MIN, RECORDER_BYTES, RPC_RECORD_MAX, SMALL_RECORDS_PART,
};
use host::memory::{Bound, Memory};

use super::{FULL, Sizes};

const MIB: u64 = 1 << 20;

fn of(mib: u64, cores: usize) -> Sizes {
    Sizes::of(Some(&Memory { bytes: mib * MIB, bound: Bound::Machine }), cores)
}

#[test]
fn enough_memory_reduces_nothing() {
    for mib in [4096, 1 << 20] {
        assert_eq!(of(mib, 2), FULL);
        assert_eq!(of(mib, 2).reduced(), None);
    }
    assert_eq!(Sizes::of(None, 2), FULL);
}

#[test]
fn less_memory_reduces_all_that_grows_with_it() {
    let small = of(256, 2);
    assert_eq!(small, Sizes { recorder: 32 << 20, buffered: 16 << 20 });
    let said = small.reduced().unwrap();
    assert!(said.contains("recorder has 32 MiB instead of 256 MiB"), "{said}");
    assert!(said.contains("each service have 16 MiB instead of 256 MiB"), "{said}");
    let said = of(2048, 2).reduced().unwrap();
    assert!(!said.contains("recorder"), "{said}");
}

#[test]
fn what_may_be_held_stays_below_the_memory() {
    for mib in [256, 512, 1024, 2048, 4096, 8192] {
        let sizes = of(mib, 4);
        let most = sizes.recorder + 4 * sizes.buffered;
        assert!(most as u64 <= mib * MIB / 2, "{mib}: {most}");
    }
}

#[test]
fn each_core_can_take_one_large_record() {
    let tiny = of(16, 8);
    assert_eq!(tiny.buffered, 8 * BUFFERED_CORE_MIN);
    let for_large = BUFFERED_CORE_MIN - BUFFERED_CORE_MIN / SMALL_RECORDS_PART;
    assert!(for_large >= RPC_RECORD_MAX);
    let many = of(16, 1 << 20);
    assert_eq!(many.buffered, BUFFERED_BYTES_MAX);
    assert!(many.recorder < RECORDER_BYTES);
}
