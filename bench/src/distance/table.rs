//! The table of the comparison, and which rows are won.

use super::data::Job;
use super::turn::Figure;
use super::{Outcome, Row};
use crate::stats::median;

/// Name of the program that is measured for, in tables.
const OURS: &str = "dsync";
/// Ratios this near to 1 are even: repeated turns of one program differ by as much.
const EVEN: f64 = 0.03;

/// Medians of a row.
#[derive(Debug, Clone, Copy)]
pub struct Middle {
    /// Seconds.
    pub seconds: f64,
    /// Shortest and longest turn, seconds.
    pub spread: (f64, f64),
    /// 10^6 bytes of content per second; of a change the whole file's.
    pub mb_s: f64,
    /// Share of the link's rate that the content had; of a change there is none.
    pub share: Option<f64>,
    /// Share of the link's rate that whole packets had while they flowed, where that is known.
    pub flow: Option<f64>,
    /// CPU time at the near and at the far end, seconds.
    pub cpu_s: (f64, f64),
    /// 10^6 bytes on the line, both ways together.
    pub line_mb: f64,
    /// The bridge's p99 lateness, milliseconds.
    pub late_p99_ms: f64,
    /// Share of the processor that the host took.
    pub stolen: f64,
    /// How many of the turns the bridge has condemned each time.
    pub condemned: usize,
}

/// The medians of a row over its good turns, or over all where none is good.
pub fn middle(outcome: &Outcome, row: &Row) -> Option<Middle> {
    let all = outcome.rows.get(row)?;
    let good: Vec<&Figure> = all.iter().filter(|run| run.spoiled.is_empty()).collect();
    let condemned = all.len() - good.len();
    let runs: Vec<&Figure> = if good.is_empty() { all.iter().collect() } else { good };
    let of =
        |f: &dyn Fn(&Figure) -> f64| median(&runs.iter().map(|run| f(run)).collect::<Vec<_>>());
    let seconds = of(&|run| run.seconds);
    let times = || runs.iter().map(|run| run.seconds);
    let bytes = outcome.bytes.get(&row.1).copied().unwrap_or(0) as f64;
    Some(Middle {
        seconds,
        spread: (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max)),
        mb_s: bytes / 1e6 / seconds,
        share: (row.1 != Job::Change).then_some(bytes * 8.0 / seconds / outcome.rate),
        flow: flow(&runs).filter(|_| row.1 != Job::Change).map(|bits| bits / outcome.rate),
        cpu_s: (of(&|run| run.near_s), of(&|run| run.far_s)),
        line_mb: of(&|run| run.line_bytes.iter().sum::<u64>() as f64 / 1e6),
        late_p99_ms: of(&|run| run.late_p99_ms),
        stolen: of(&|run| run.stolen),
        condemned,
    })
}

/// The median of those that are known.
fn flow(runs: &[&Figure]) -> Option<f64> {
    let known: Vec<f64> = runs.iter().filter_map(|run| run.flow).collect();
    (!known.is_empty()).then(|| median(&known))
}

/// Prints everything.
pub fn print(outcome: &Outcome) {
    for (name, value) in outcome.programs.iter().chain(&outcome.notes) {
        println!("- {name}: {value}");
    }
    let bytes = |job| outcome.bytes.get(&job).map_or(0.0, |bytes| *bytes as f64 / 1e6);
    println!(
        "- big: {:.0} MB; tree: {:.0} MB; link: {:.0} Mbit/s",
        bytes(Job::Big),
        bytes(Job::Tree),
        outcome.rate / 1e6
    );
    println!("- {} turns were condemned by the bridge and measured anew", outcome.condemned);
    println!(
        "\n| RTT ms | link | job | program | s | spread | MB/s | of the link | while it flows \
         | CPU near s | CPU far s | line MB | late p99 ms | host took | to dsync |\n\
         |---:|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    for n in outcome.in_order() {
        for job in &outcome.jobs {
            for (program, _) in &outcome.programs {
                line(outcome, &(n, *job, program));
            }
        }
    }
    verdict(outcome);
}

fn line(outcome: &Outcome, row: &Row) {
    let Some(point) = outcome.points.get(row.0) else { return };
    let of = format!("| {} | {} | {} | {} |", point.rtt_ms, point.kind.name(), row.1.name(), row.2);
    let Some(mid) = middle(outcome, row) else {
        let why = outcome.gaps.get(row).map_or("", |gap| gap.why.as_str());
        println!("{of} {} | | | | | | | | | | |", why.replace(['|', '\n'], " "));
        return;
    };
    let ours = middle(outcome, &(row.0, row.1, OURS)).filter(|_| row.2 != OURS);
    let ratio = ours.map_or_else(String::new, |ours| format!("{:.2}", mid.seconds / ours.seconds));
    let percent =
        |of: Option<f64>| of.map_or_else(String::new, |of| format!("{:.1} %", of * 100.0));
    let (share, flow) = (percent(mid.share), percent(mid.flow));
    let marked =
        if mid.condemned > 0 { format!(" ({} late)", mid.condemned) } else { String::new() };
    println!(
        "{of} {:.2}{marked} | {:.2}-{:.2} | {:.1} | {share} | {flow} | {:.2} | {:.2} | {:.1} \
         | {:.2} | {:.0} % | {ratio} |",
        mid.seconds,
        mid.spread.0,
        mid.spread.1,
        mid.mb_s,
        mid.cpu_s.0,
        mid.cpu_s.1,
        mid.line_mb,
        mid.late_p99_ms,
        mid.stolen * 100.0,
    );
}

/// Rows in which dsync is ahead of every other program, even with the best, or behind one.
fn verdict(outcome: &Outcome) {
    let (mut won, mut even, mut lost) = (0, 0, Vec::new());
    for (n, point) in outcome.points.iter().enumerate() {
        for job in &outcome.jobs {
            let Some(ours) = middle(outcome, &(n, *job, OURS)) else { continue };
            let others = outcome.programs.iter().filter(|(name, _)| *name != OURS);
            let best = others
                .filter_map(|(name, _)| Some((*name, middle(outcome, &(n, *job, name))?.seconds)))
                .min_by(|one, other| one.1.total_cmp(&other.1));
            match best.map(|(name, seconds)| (name, seconds / ours.seconds)) {
                None => {}
                Some((_, ratio)) if ratio > 1.0 + EVEN => won += 1,
                Some((_, ratio)) if ratio >= 1.0 - EVEN => even += 1,
                Some((name, ratio)) => lost.push(format!(
                    "{} ms {} {}: {name} takes {ratio:.2} of the time",
                    point.rtt_ms,
                    point.kind.name(),
                    job.name()
                )),
            }
        }
    }
    println!("\n- dsync: {won} rows won, {even} even (within {EVEN}), {} lost", lost.len());
    for row in lost {
        println!("  - {row}");
    }
}
