//! A run has a limit, an address has one, all runs have one, and what is dropped is given back.

use super::*;

const MIB: u64 = 1 << 20;

fn shared(account: &Arc<AddressBytes>, last: u8) -> Arc<RunMemory> {
    let address = IpAddr::from([127, 0, 0, last]);
    RunMemory::shared(128 * MIB, Arc::clone(account), address, (512 * MIB, 384 * MIB))
}

#[test]
fn a_run_has_a_limit_over_all_that_it_holds() {
    let memory = RunMemory::new(100_000);
    let (mut names, mut links) = (memory.reserve(), memory.reserve());
    names.grow(60_000).expect("room");
    assert_eq!(links.grow(60_000), Err(MemoryFull::Run(100_000)));
    // A step does not fit any more, but what is asked for does.
    links.grow(34_000).expect("room");
    assert_eq!(links.grow(1_000_000), Err(MemoryFull::Run(100_000)));
    drop(names);
    links.grow(60_000).expect("room again");
    assert_eq!(links.used(), 94_000);
}

#[test]
fn what_is_not_used_any_more_is_given_back() {
    let memory = RunMemory::new(100 * MIB);
    let mut held = memory.reserve();
    for _ in 0..1_000 {
        held.grow(100_000).expect("room");
        held.shrink(100_000);
    }
    assert!(memory.held.load(Relaxed) <= 3 * DSYNC_RESERVE_STEP);
    held.shrink(u64::MAX);
    drop(held);
    assert_eq!(memory.held.load(Relaxed), 0);
}

#[test]
fn a_quarter_is_left_to_other_addresses() {
    let account = Arc::<AddressBytes>::default();
    let fill = |last| {
        let mut held = shared(&account, last).reserve();
        let full = loop {
            if let Err(full) = held.grow(MIB) {
                break full;
            }
        };
        (held, full)
    };
    let runs: Vec<_> = (0..12).map(|_| fill(1)).collect();
    let used =
        |runs: &[(Reserved, MemoryFull)]| -> u64 { runs.iter().map(|(held, _)| held.used()).sum() };
    assert_eq!(used(&runs), 384 * MIB);
    assert_eq!(runs.last().expect("a run").1, MemoryFull::Account);
    let (other, full) = fill(2);
    assert_eq!((other.used(), full), (128 * MIB, MemoryFull::Run(128 * MIB)));
    assert_eq!(account.taken(), 512 * MIB);
    drop((runs, other));
    assert_eq!((account.taken(), account.of([127, 0, 0, 1].into())), (0, 0));
}
