//! The change attribute where change times are coarse.

use base::clock::NS_PER_S;

use super::*;

#[test]
fn the_last_state_of_a_coarse_time_has_a_number_of_its_own() {
    let coarse = Medium { fsid: 1, time_delta_ns: NS_PER_S as u32 };
    let fine = Medium { time_delta_ns: 1, ..coarse };
    let now = SystemClock.wall_ns();
    let second = now / NS_PER_S * NS_PER_S;
    let (over, ahead) = (second - 10 * NS_PER_S, second + 60 * NS_PER_S);
    // Changes within the second are counted from its begin on: fewer than it has nanoseconds.
    assert_eq!(coarse.change(over), over + NS_PER_S - 1);
    assert_eq!(coarse.change(ahead), ahead, "it may still be changed within it");
    assert!(coarse.change(over) < over + NS_PER_S, "below the next");
    assert_eq!((fine.change(over), fine.change(ahead)), (over, ahead));
}
