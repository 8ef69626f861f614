//! How many threads the clients of an address can have.

use super::*;

fn take(permits: &RunPermits, site: u16, host: u16) -> Option<RunPermit> {
    permits.take([0xfd00, 0, 0, site, 0, 0, 0, host].into())
}

#[test]
fn refused_runs_have_permits_as_well() {
    let permits = RunPermits::default();
    let mut held: Vec<_> = (0..999).map_while(|host| take(&permits, 1, host)).collect();
    let refused = held.iter().filter(|permit| permit.refused.is_some()).count();
    let each = DSYNC_SHARE_RUNS_CLIENT_MAX;
    assert_eq!((held.len(), refused), (2 * each, each));
    let other = take(&permits, 2, 1).expect("a permit is left for another address");
    assert_eq!(other.refused, None);
    held.retain(|permit| permit.refused.is_some());
    assert!(take(&permits, 1, 0).is_some_and(|permit| permit.refused.is_none()));
}
