//! Capacities against a simulation of the allocator, and copies of chunks.

use super::{Profile, RAID1, RAID1C3};

/// Gives unit chunks one by one, each to the disks with the most free space.
fn simulated(sizes: &[u64], copies: usize) -> u64 {
    let mut free = sizes.to_vec();
    let mut chunks = 0;
    loop {
        free.sort_unstable_by(|a, b| b.cmp(a));
        if free.len() < copies || free[copies - 1] == 0 {
            return chunks;
        }
        free[..copies].iter_mut().for_each(|one| *one -= 1);
        chunks += 1;
    }
}

#[test]
fn the_capacity_is_that_of_the_allocator() {
    let sets: [&[u64]; 8] = [
        &[],
        &[10],
        &[10, 10],
        &[100, 10],
        &[5, 7, 9],
        &[1, 1, 50],
        &[8, 8, 8, 3],
        &[20, 9, 5, 2, 1],
    ];
    for sizes in sets {
        for profile in Profile::ALL.into_iter().filter(|one| one.is_of_btrfs()) {
            let expected = simulated(sizes, profile.copies());
            assert_eq!(profile.capacity(sizes), expected, "{profile:?} {sizes:?}");
        }
    }
}

#[test]
fn a_single_chunk_has_fewer_copies_than_a_mirror_promises() {
    assert!(!Profile::Mirror.is_kept_by(1));
    assert!(Profile::Mirror.is_kept_by(1 | RAID1));
    assert!(!Profile::Copies3.is_kept_by(1 | RAID1));
    assert!(Profile::Copies3.is_kept_by(4 | RAID1C3));
    assert!(Profile::Stripe.is_kept_by(1));
}

#[test]
fn names_lead_back_to_their_profile() {
    for profile in Profile::ALL.into_iter().filter(|one| one.is_of_btrfs()) {
        assert_eq!(Profile::of(profile.name()), Some(profile));
    }
    assert_eq!(Profile::of("raid5"), None);
}
