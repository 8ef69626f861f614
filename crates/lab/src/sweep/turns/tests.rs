//! The blocks of each sender are counted over its own time, and one failure ends all.

use super::*;
use crate::sweep::plan::Carrier;
use crate::sweep::transport::tried;
use std::io;

/// Carries a block in a time of its own; may fail at one.
struct Made {
    block_ns: u64,
    blocks: u64,
    fails_at: Option<u64>,
}

impl BlockTransfer for Made {
    fn block(&mut self) -> Result<(), SweepError> {
        self.blocks += 1;
        if self.fails_at.is_some_and(|at| self.blocks >= at) {
            return Err(tried("carry")(io::Error::other("planted")));
        }
        sleep_until(mono_ns() + self.block_ns);
        Ok(())
    }

    fn info(&self) -> Option<TcpInfo> {
        None
    }
}

fn point() -> (Plan, At) {
    let mut plan = Plan::figure(5, 100_000_000).unwrap();
    plan.carrier = Carrier::NfsRead;
    let at = At { window: 65_536, rtt_ms: 2.0, instances: 2, ..plan.points()[0].clone() };
    (plan, at)
}

#[test]
fn the_rates_of_all_are_added() {
    let (plan, at) = point();
    let one = || Made { block_ns: 5_000_000, blocks: 0, fails_at: None };
    let sum = run(&plan, &at, 0.002, vec![one(), one()]).unwrap();
    let most = 2.0 * 65_536.0 / 0.005;
    // However late a busy machine wakes them, they are never early.
    assert!(sum.bytes_s > 0.0 && sum.bytes_s <= most * 1.01, "{sum:?} of {most}");
    assert_eq!(sum.tcp, None, "nobody has seen it");
}

#[test]
fn one_failure_is_the_end_of_all() {
    let (plan, at) = point();
    for fails_at in [1, 150] {
        let one = |fails_at| Made { block_ns: 5_000_000, blocks: 0, fails_at };
        let failed = run(&plan, &at, 0.002, vec![one(None), one(Some(fails_at))]);
        assert!(failed.is_err_and(|error| error.to_string().contains("carry")), "at {fails_at}");
    }
}
