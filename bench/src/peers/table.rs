//! The table of a comparison, and whether the goals of the project are met by it.

use super::Table;
use crate::load::{Case, Figure};
use crate::servers::Version;
use crate::stats::median;

/// CPU time of the server for a cached READ of 4 KiB with 16 in flight, µs, at most.
const READ_4K_US: [(Version, f64); 2] = [(Version::V3, 3.0), (Version::V41, 4.0)];
/// The case that they are for.
const READ_4K: &str = "READ 4K 8x16";
/// CPU time of a stream to that of a bare loop, at most.
const STREAM_TO_BARE: f64 = 1.2;

/// Prints table and goals.
pub fn print(cases: &[Case], table: &Table) {
    println!();
    println!(
        "| case | version | server | ops/s | MB/s | server CPU | spread \
         | to ganesha | to bare | to v3 |"
    );
    println!("|---|---|---|---:|---:|---:|---:|---:|---:|---:|");
    for ((n, version, server), figures) in table {
        let Some(case) = cases.get(*n) else { continue };
        let costs: Vec<f64> = figures.iter().map(|f| cost(case, f)).collect();
        let of = |f: fn(&Figure) -> f64| median(&figures.iter().map(f).collect::<Vec<_>>());
        let mid = median(&costs);
        let ratio = |to: Option<f64>| to.map_or(String::new(), |to| format!("{:.2}", mid / to));
        let beside = |wanted: bool, version, name| {
            ratio(middle(cases, table, *n, version, name).filter(|_| wanted))
        };
        println!(
            "| {} | {} | {server} | {:.0} | {:.0} | {mid:.3} {} | {:.3}-{:.3} | {} | {} | {} |",
            case.name,
            version.map_or("", Version::name),
            of(|f| f.ops_s),
            of(|f| f.bytes_s) / 1e6,
            if case.kind.is_stream() { "s/GB" } else { "µs/op" },
            costs.iter().copied().fold(f64::INFINITY, f64::min),
            costs.iter().copied().fold(0.0, f64::max),
            beside(*server != "ganesha", *version, "ganesha"),
            beside(*server != "bare", None, "bare"),
            beside(*version == Some(Version::V41), Some(Version::V3), server),
        );
    }
    goals(cases, table);
}

fn cost(case: &Case, figure: &Figure) -> f64 {
    if case.kind.is_stream() { figure.server_s_gb } else { figure.server_us_op }
}

/// The median cost of a server in a case.
fn middle(
    cases: &[Case],
    table: &Table,
    n: usize,
    version: Option<Version>,
    server: &'static str,
) -> Option<f64> {
    let case = cases.get(n)?;
    let figures = table.get(&(n, version, server))?;
    Some(median(&figures.iter().map(|f| cost(case, f)).collect::<Vec<_>>()))
}

fn goals(cases: &[Case], table: &Table) {
    println!("\n| goal | figure | met |\n|---|---:|---|");
    let say = |goal: String, figure: f64, most: f64| {
        println!("| {goal} | {figure:.2} | {} |", if figure <= most { "yes" } else { "NO" });
    };
    for (n, case) in cases.iter().enumerate() {
        for (version, most) in READ_4K_US {
            let mine = |version| middle(cases, table, n, version, "plimsoll");
            let Some(cost) = mine(Some(version)) else { continue };
            let name = format!("{} {}", version.name(), case.name);
            if case.name == READ_4K {
                say(format!("{name}: at most {most:.0} µs"), cost, most);
            }
            if let Some(bare) = middle(cases, table, n, None, "bare") {
                let goal = format!("{name}: at most {STREAM_TO_BARE} of a bare loop");
                say(goal, cost / bare, STREAM_TO_BARE);
            }
            if let Some(peer) = middle(cases, table, n, Some(version), "ganesha") {
                say(format!("{name}: less than ganesha"), cost / peer, 1.0);
            }
        }
    }
}
