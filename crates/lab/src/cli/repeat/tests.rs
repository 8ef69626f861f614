//! The exit code of several repeats, and which cells of a summary had other operations.

use super::*;
use crate::client::Op;
use crate::operations::{Given, Operations};
use crate::report::tests::made_up;
use base::random::{Random, SystemRandom};
use std::collections::BTreeMap;

#[test]
fn a_failed_repeat_counts_more_than_a_degraded_one_in_any_order() {
    let (done, failed) = (ExitCode::SUCCESS, ExitCode::FAILURE);
    let degraded = ExitCode::from(EXIT_DEGRADED);
    for (codes, expected) in [
        ([done, done, done], done),
        ([done, degraded, done], degraded),
        ([degraded, failed, done], failed),
        ([failed, degraded, done], failed),
    ] {
        assert_eq!(codes.into_iter().fold(done, worse), expected, "{codes:?}");
    }
}

/// A run on this target in which a client has read these blocks.
fn run_of(target: &str, blocks: &[u64]) -> RunResult {
    let mut given = Given::default();
    for block in blocks {
        given.add(0, Op::Read { file: 0, offset: block * 4096, len: 4096 });
    }
    let operations = Operations::of(BTreeMap::from([(0, given.lanes())]));
    RunResult { target: target.to_owned(), operations, ..made_up() }
}

#[test]
fn cells_are_compared_with_those_of_other_targets() {
    let name = format!("plimsoll-repeat-{:016x}", SystemRandom.next_u64());
    let top = std::env::temp_dir().join(name);
    let [archive, out] = ["archive", "out"].map(|dir| top.join(dir));
    let cell =
        |below: &str| Cell { report: Some(format!("{below}/report.html")), ..Cell::default() };
    let column = |name: &str| Column { name: name.to_owned(), ..Column::default() };
    let row = |job: &str, below: [&str; 2]| Row {
        job: job.to_owned(),
        cells: below.map(cell).into(),
        ..Row::default()
    };
    let recorded = Summary {
        columns: ["a", "b"].map(column).into(),
        rows: vec![row("reads", ["a/reads", "b/reads"]), row("gone", ["a/gone", "b/gone"])],
        ..Summary::default()
    };
    for (below, blocks) in [("a/reads", [1, 2]), ("b/reads", [3, 4])] {
        run_of("path:/one", &blocks).write(&archive.join(below)).expect("a result");
    }
    for (below, blocks) in [("a/reads", [1, 2]), ("b/reads", [4, 3])] {
        run_of("path:/other", &blocks).write(&out.join(below)).expect("a result");
    }
    let different = different([&archive, &out], &recorded);
    std::fs::remove_dir_all(top).expect("removed");
    assert_eq!(
        different,
        ["reads, b: different operations within the first 1 of each of 1 sequences"]
    );
}
