//! Sections of a comparison of builds or targets: the verdict by row, and every round.

use super::{NONE, Section};
use crate::ab::record::AbResult;
use crate::ab::{Pair, RowOutcome, RowRuns};
use base::units::count;

/// All of them.
pub(super) fn sections(result: &AbResult) -> Vec<Section> {
    let [a, b] = &result.targets;
    let rule = format!(
        "a row ends with a 95 % interval of its ratio narrower than {:.1} %, or after {} rounds",
        result.rule.to * 100.0,
        result.rule.rounds
    );
    let degraded = result.degraded.iter().map(|what| format!("degraded: {what}"));
    let failed = result.failed.iter().map(|why| format!("failed: {why}"));
    let verdict = Section::new("verdict", "Verdict by row")
        .with_sentences([format!("A: {a}"), format!("B: {b}"), rule])
        .with_sentences(failed.chain(degraded))
        .table(
            ["row", "verdict", "rounds", "repeated", "B ÷ A", "95 % interval", "p", "p corrected"],
            result.outcome.rows.iter().map(outcome).collect(),
        );
    let round = |row: &RowRuns| -> Vec<[String; 5]> {
        let each = row.pairs.iter().enumerate();
        each.map(|(n, pair)| line(&format!("{}, round {}", row.job, n + 1), pair)).collect()
    };
    let rounds = Section::new("rounds", "Rounds").table(
        ["round", "A", "B", "B ÷ A", "other processes"],
        result.rows.iter().flat_map(round).collect(),
    );
    let command =
        Section::new("command", "Command").with_sentences([result.provenance.command.join(" ")]);
    vec![verdict, rounds, command]
}

fn outcome(row: &RowOutcome) -> [String; 8] {
    let interval = row.low.zip(row.high).map(|(low, high)| format!("{low:.3} to {high:.3}"));
    [
        row.job.clone(),
        row.sentence(),
        row.rounds.to_string(),
        row.repeated.to_string(),
        format!("{:.3}", row.ratio),
        interval.unwrap_or_else(|| NONE.into()),
        format!("{:.4}", row.p),
        format!("{:.4}", row.p_corrected),
    ]
}

fn line(name: &str, pair: &Pair) -> [String; 5] {
    [
        name.to_owned(),
        format!("{}/s", count(pair.a.figure)),
        format!("{}/s", count(pair.b.figure)),
        format!("{:.3}", pair.log_ratio().exp()),
        format!("{:.0} %", pair.others() * 100.0),
    ]
}
