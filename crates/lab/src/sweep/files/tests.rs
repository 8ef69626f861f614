//! A file outlasts its point.

use super::*;
use crate::sweep::plan::Carrier;

#[test]
fn a_file_is_larger_than_what_can_come_meanwhile() {
    for rate in [10_000_000, 1_000_000_000] {
        let mut plan = Plan::figure(5, rate).unwrap();
        plan.carrier = Carrier::Https;
        for at in plan.points() {
            let (warm, measured) = plan.times_ns(&at);
            let most = plan.link() * (warm + measured) as f64 / 1e9;
            assert!(file_size(&plan, &at) as f64 > most * 1.5, "{at:?}");
        }
    }
}
