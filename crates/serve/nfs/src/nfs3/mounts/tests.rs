//! Which mounts are forgotten.

use super::*;

#[test]
fn mounts_of_one_address_do_not_evict_those_of_others() {
    let mut mounts = Mounts::default();
    let other = IpAddr::from([192, 0, 2, 1]);
    mounts.add(other, b"/export/other");
    for n in 0..2 * MOUNTS_MAX {
        // All of a /64 are one.
        let client = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n as u16]);
        mounts.add(client, format!("/export/{n}").as_bytes());
    }
    assert_eq!(mounts.known.len(), MOUNTS_MAX);
    assert!(mounts.known.iter().any(|(client, _)| *client == other));
    let last = format!("/export/{}", 2 * MOUNTS_MAX - 1);
    assert_eq!(mounts.known.back().map(|(_, path)| path.as_slice()), Some(last.as_bytes()));
}
