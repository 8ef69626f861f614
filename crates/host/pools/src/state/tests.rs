//! States of a pool: healthy only when each chunk has its copies.

use super::{Member, Space, State, state};
use crate::profile::Profile;
use crate::record::Repair;

const DATA: u64 = 1;
const RAID1: u64 = 16;

fn members(missing: &[u64]) -> Vec<Member> {
    let one = |devid| Member { devid, missing: missing.contains(&devid), ..Member::default() };
    (1..=2).map(one).collect()
}

fn space(flags: u64) -> Space {
    Space { flags, total: 64 << 20, used: 1 }
}

#[test]
fn a_mirror_is_healthy_only_without_a_single_chunk() {
    let mirrored = [space(DATA | RAID1), space(4 | RAID1)];
    let of = |members: &[Member], spaces: &[Space], repair, runs| {
        state(Profile::Mirror, members, spaces, repair, runs)
    };
    assert_eq!(of(&members(&[]), &mirrored, None, false), (State::Healthy, None));
    let single = [mirrored[0], mirrored[1], space(DATA)];
    let (is, sentence) = of(&members(&[]), &single, None, false);
    assert_eq!(is, State::Degraded);
    assert!(sentence.expect("a sentence").contains("64 MiB"));
    assert_eq!(of(&members(&[]), &single, None, true).0, State::Repairing);
    assert_eq!(of(&members(&[2]), &mirrored, None, false).0, State::Degraded);
    assert_eq!(of(&members(&[1, 2]), &mirrored, None, false).0, State::Failed);
    for repair in [Repair::Scrub, Repair::Convert] {
        assert_eq!(of(&members(&[]), &mirrored, Some(repair), false).0, State::Degraded);
        assert_eq!(of(&members(&[]), &mirrored, Some(repair), true).0, State::Repairing);
    }
}

#[test]
fn a_stripe_without_a_disk_has_failed() {
    let spaces = [space(DATA)];
    assert_eq!(state(Profile::Stripe, &members(&[]), &spaces, None, false).0, State::Healthy);
    assert_eq!(state(Profile::Stripe, &members(&[1]), &spaces, None, false).0, State::Failed);
}
