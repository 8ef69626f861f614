//! Groups of disks and their capacity.

use super::{Options, capacity, check_record_size, data, group, others, profile_of};
use crate::profile::Profile;
use crate::zfs::Role;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("d{at}")).collect()
}

#[test]
fn mirrors_are_pairs() {
    let arguments = data(Profile::Mirror, &names(4)).expect("divided");
    assert_eq!(arguments.join(" "), "mirror d0 d1 mirror d2 d3");
    let refused = data(Profile::Mirror, &names(3)).expect_err("odd");
    assert!(refused.contains("mirrors of 2"), "{refused}");
    assert_eq!(data(Profile::Stripe, &names(2)).expect("divided").join(" "), "d0 d1");
}

#[test]
fn parity_has_one_group_or_several_of_equal_width() {
    assert_eq!(data(Profile::Parity2, &names(4)).expect("divided").join(" "), "raidz2 d0 d1 d2 d3");
    for (profile, disks, expected) in [
        (Profile::Parity1, 3, Ok(3)),
        (Profile::Parity2, 12, Ok(12)),
        (Profile::Parity2, 24, Ok(12)),
        (Profile::Parity3, 22, Ok(11)),
        (Profile::Parity3, 4, Err(())),
        (Profile::Parity2, 23, Err(())),
        (Profile::Parity1, 13, Err(())),
    ] {
        assert_eq!(group(profile, disks).map_err(drop), expected, "{profile:?} {disks}");
    }
}

#[test]
fn other_roles_have_their_words() {
    assert_eq!(others(Role::Log, true, &names(2)).join(" "), "log mirror d0 d1");
    assert_eq!(others(Role::Log, false, &names(2)).join(" "), "log d0 d1");
    assert_eq!(others(Role::Spare, false, &names(1)).join(" "), "spare d0");
    assert!(others(Role::Cache, false, &[]).is_empty());
    let alone = Options { log: names(1), log_mirror: true, ..Options::default() };
    assert!(alone.check().is_err());
}

#[test]
fn the_smallest_disk_of_a_group_decides_its_capacity() {
    assert_eq!(capacity(Profile::Mirror, &[100, 90, 50, 60]), 140);
    assert_eq!(capacity(Profile::Parity2, &[100, 90, 100, 100]), 180);
    assert_eq!(capacity(Profile::Stripe, &[100, 90]), 190);
    assert_eq!(capacity(Profile::Copies3, &[100, 90]), 0);
}

#[test]
fn record_sizes_are_powers_of_two() {
    for bytes in [4_096, 8_192, 131_072] {
        assert_eq!(check_record_size(bytes), Ok(()));
    }
    for bytes in [0, 512, 5_000, 1 << 20] {
        assert!(check_record_size(bytes).is_err(), "{bytes}");
    }
}

#[test]
fn the_weakest_group_is_the_profile_of_a_pool() {
    let of = |groups: &[(&str, usize)]| {
        profile_of(&groups.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>())
    };
    assert_eq!(of(&[("raidz2-0", 6), ("raidz2-1", 6)]), Profile::Parity2);
    assert_eq!(of(&[("mirror-0", 3), ("mirror-1", 2)]), Profile::Mirror);
    assert_eq!(of(&[("mirror-0", 2), ("", 1)]), Profile::Stripe);
    assert_eq!(of(&[]), Profile::Stripe);
}
