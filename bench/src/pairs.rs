//! Two variants in turn, as pairs, so that other load of the machine affects both: the measurement
//! of a row, its ratio, and the table. Server CPU, not throughput, is compared.

use std::io;
use std::path::Path;
use std::time::Duration;

use lab::workload::Kind;
use serde_json::Value;

use crate::load::{self, Case, Ready};
use crate::servers::{Server, Version};
use crate::stats::{mean_95, median};

/// How many pairs, of which rows, and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Extent {
    /// Pairs of each row, at least 10.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..))]
    pub pairs: u32,
    /// Seconds of each half.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only rows that have this in their names, as in `v3 READ 4K`.
    #[arg(long, default_value = "")]
    pub only: String,
}

/// The result of a row.
pub struct Outcome {
    name: String,
    /// Mean cost of the first and of the second half.
    costs: [f64; 2],
    unit: &'static str,
    /// Natural logarithms of the ratios, one for each pair.
    ratios: Vec<f64>,
}

impl Outcome {
    /// Ratio of the costs, with its 95 % interval: lowest, mean, highest.
    pub fn interval(&self) -> [f64; 3] {
        interval(&self.ratios)
    }

    /// The middle of the ratios.
    fn median(&self) -> f64 {
        median(&self.ratios).exp()
    }
}

fn interval(logarithms: &[f64]) -> [f64; 3] {
    let (mean, half) = mean_95(logarithms);
    [mean - half, mean, mean + half].map(f64::exp)
}

/// Where load goes, and the process of which the CPU time counts.
pub struct Target {
    /// `nfs3://…`.
    pub nfs3: String,
    /// `nfs4://…`.
    pub nfs4: String,
    /// The process.
    pub pid: u32,
}

impl From<&Server> for Target {
    fn from(server: &Server) -> Self {
        let url = |version| server.url(version).to_owned();
        Self { nfs3: url(Version::V3), nfs4: url(Version::V41), pid: server.pid }
    }
}

impl Target {
    fn url(&self, version: Version) -> &str {
        match version {
            Version::V3 => &self.nfs3,
            Version::V41 => &self.nfs4,
        }
    }
}

/// A row of NFS with eight connections.
pub fn row(version: Version, name: &str, kind: Kind, block: u32, depth: u32) -> (Version, Case) {
    // Small ones stay in the page cache as a whole.
    let file_size = if block < 1 << 20 { 16 << 20 } else { 64 << 20 };
    let name = format!("{} {name} 8x{depth}", version.name());
    (version, Case { name, kind, block, file_size, connections: 8, depth })
}

/// Rows of NFS on two targets in turn.
///
/// # Errors
/// When a load fails.
pub fn nfs(
    extent: &Extent,
    rows: Vec<(Version, Case)>,
    targets: &[Target; 2],
) -> io::Result<Vec<Outcome>> {
    let mut all = Vec::new();
    for (version, case) in rows {
        let at = targets.each_ref().map(|target| (target.url(version), target.pid));
        all.extend(load(extent, &case, at)?);
    }
    Ok(all)
}

/// A row of the laboratory's client on two targets in turn, if it is asked for: where load goes,
/// and the process of which the CPU time counts.
///
/// # Errors
/// When a load fails.
pub fn load(
    extent: &Extent,
    case: &Case,
    targets: [(&str, u32); 2],
) -> io::Result<Option<Outcome>> {
    if !case.name.contains(&extent.only) {
        return Ok(None);
    }
    let mut ready: Vec<(Ready, u32)> = Vec::new();
    for (url, pid) in targets {
        let mut one = load::ready(url, case)?;
        one.run(pid, Duration::from_secs_f64(extent.seconds / 2.0))?;
        ready.push((one, pid));
    }
    let row = run(extent, case.name.clone(), "µs/op", |half, time| {
        let (one, pid) = ready.get_mut(half).ok_or_else(|| io::Error::other("two targets"))?;
        Ok(one.run(*pid, time)?.server_us_op)
    });
    ready.into_iter().for_each(|(one, _)| one.clean());
    row.map(Some)
}

/// All pairs of a row; which half comes first changes, so that a drift of the machine cancels out.
///
/// # Errors
/// Those of `cost`, which measures a half.
pub fn run(
    extent: &Extent,
    name: String,
    unit: &'static str,
    mut cost: impl FnMut(usize, Duration) -> io::Result<f64>,
) -> io::Result<Outcome> {
    let time = Duration::from_secs_f64(extent.seconds);
    let (mut sums, mut ratios) = ([0.0; 2], Vec::new());
    for pair in 0..extent.pairs as usize {
        let mut halves = [0.0; 2];
        for half in [pair % 2, (pair + 1) % 2] {
            if let Some(slot) = halves.get_mut(half) {
                *slot = cost(half, time)?;
            }
        }
        let [first, second] = halves;
        sums = [sums[0] + first, sums[1] + second];
        ratios.push((second / first).ln());
    }
    eprintln!("bench: {name} done");
    let costs = sums.map(|sum| sum / f64::from(extent.pairs));
    Ok(Outcome { name, costs, unit, ratios })
}

/// Prints how many rows cost at most `most` times; an interval that includes that needs a quieter
/// machine.
pub fn judge(all: &[Outcome], most: f64) {
    let within = all.iter().filter(|row| row.interval()[2] <= most).count();
    let above = all.iter().filter(|row| row.interval()[0] > most).count();
    let unknown = all.len() - within - above;
    println!("at most {most} times: {within} rows are, {above} are not, {unknown} are undecided");
}

/// Prints the table; `names` are those of the two halves.
pub fn print(all: &[Outcome], names: [&str; 2]) {
    let [first, second] = names;
    println!("| row | {first} | {second} | {second} / {first} (95 %) | median |");
    println!("|---|---:|---:|---:|---:|");
    for row in all {
        let ([low, ratio, high], [before, after]) = (row.interval(), row.costs);
        let (name, unit, median) = (&row.name, row.unit, row.median());
        println!(
            "| {name} | {before:.3} {unit} | {after:.3} | {ratio:.3} ({low:.3}-{high:.3}) | \
             {median:.3} |"
        );
    }
    let ratios: Vec<f64> = all.iter().flat_map(|row| row.ratios.iter().copied()).collect();
    let [low, mean, high] = interval(&ratios);
    println!();
    println!("geometric mean of {} rows: {mean:.3} ({low:.3}-{high:.3})", all.len());
}

/// Writes the raw figures, if a file is wanted.
///
/// # Errors
/// The operating system's.
pub fn write(all: &[Outcome], out: Option<&Path>) -> io::Result<()> {
    let Some(out) = out else { return Ok(()) };
    let row = |row: &Outcome| {
        let ratios: Vec<f64> = row.ratios.iter().map(|one| one.exp()).collect();
        serde_json::json!({"row": row.name, "unit": row.unit, "costs": row.costs,
            "ratio": row.interval(), "median": row.median(), "ratios": ratios})
    };
    let rows: Vec<Value> = all.iter().map(row).collect();
    std::fs::write(out, serde_json::to_string_pretty(&rows)?)
}
