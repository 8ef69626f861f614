//! What a change costs: the same ten rows on two builds of this server in turn, as pairs, so that
//! whatever else the machine does concerns both. Server CPU, not throughput, is compared.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::workload::Kind;

use crate::Cli;
use crate::files::builds::Builds;
use crate::load::{self, Case, Ready};
use crate::servers::{self, Server, Version};
use crate::stats::mean_95;

/// First ports of the two builds.
const OFFSETS: [u16; 2] = [26_700, 27_200];

/// What is run and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The build to compare with; `--binary` is the later one.
    #[arg(long)]
    before: PathBuf,
    /// Pairs of each row, at least 10.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..))]
    pairs: u32,
    /// Seconds of each half.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only rows whose names hold this, as in `v3 READ 4K`.
    #[arg(long, default_value = "")]
    only: String,
}

/// What a row came to.
struct Outcome {
    name: String,
    /// Mean cost of the earlier and of the later build.
    costs: [f64; 2],
    unit: &'static str,
    /// Natural logarithms of the ratios, one for each pair.
    ratios: Vec<f64>,
}

impl Outcome {
    /// Ratio of the costs, with its 95 % interval.
    fn interval(&self) -> [f64; 3] {
        let (mean, half) = mean_95(&self.ratios);
        [mean - half, mean, mean + half].map(f64::exp)
    }
}

/// The six rows of NFS.
fn nfs_rows() -> Vec<(Version, Case)> {
    use Kind::{Create, Getattr, RandRead, SeqRead, SyncWrite};
    let row = |version, name: &str, kind, block, file_size, depth| {
        let name = format!("{} {name} 8x{depth}", Version::name(version));
        (version, Case { name, kind, block, file_size, connections: 8, depth })
    };
    let (small, stream) = (16 << 20, 64 << 20);
    vec![
        row(Version::V3, "GETATTR", Getattr, 1, small, 16),
        row(Version::V3, "READ 4K", RandRead, 4096, small, 16),
        row(Version::V3, "WRITE 4K stable", SyncWrite, 4096, small, 16),
        row(Version::V3, "read 1M", SeqRead, 1 << 20, stream, 5),
        row(Version::V41, "READ 4K", RandRead, 4096, small, 16),
        row(Version::V41, "CREATE+REMOVE", Create, 1, small, 16),
    ]
}

/// Runs and prints the comparison.
///
/// # Errors
/// When a build does not start or a load fails.
pub fn run(cli: &Cli, arguments: &Arguments) -> io::Result<()> {
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    let done = rows(cli, arguments, &base);
    let _ = std::fs::remove_dir_all(&base);
    let all = done?;
    print(&all);
    if let Some(out) = &cli.out {
        let rows: Vec<_> = all
            .iter()
            .map(|row| {
                serde_json::json!({"row": row.name, "unit": row.unit, "costs": row.costs,
                    "ratio": row.interval()})
            })
            .collect();
        std::fs::write(out, serde_json::to_string_pretty(&rows)?)?;
    }
    Ok(())
}

fn rows(cli: &Cli, arguments: &Arguments, base: &Path) -> io::Result<Vec<Outcome>> {
    let mut all = nfs(cli, arguments, &base.join("nfs"))?;
    let names = Builds::rows();
    if names.iter().any(|name| name.contains(&arguments.only)) {
        let builds = Builds::start(&base.join("transfers"), &arguments.before, &cli.binary)?;
        for (row, name) in names.into_iter().enumerate() {
            if name.contains(&arguments.only) {
                builds.warm(row)?;
                let unit = if name.contains(" 4K ") { "µs/file" } else { "s/GB" };
                all.push(pairs(arguments, name, unit, |build, time| {
                    builds.cost(row, build, time)
                })?);
            }
        }
    }
    Ok(all)
}

fn nfs(cli: &Cli, arguments: &Arguments, base: &Path) -> io::Result<Vec<Outcome>> {
    let mut servers: Vec<Server> = Vec::new();
    for ((binary, name), offset) in
        [(&arguments.before, "before"), (&cli.binary, "after")].into_iter().zip(OFFSETS)
    {
        let (share, state) = (base.join(name), base.join(format!("{name}.state")));
        std::fs::create_dir_all(&share)?;
        servers.push(servers::plimsoll(binary, &share, &state, offset)?);
    }
    let mut all = Vec::new();
    for (version, case) in nfs_rows() {
        if !case.name.contains(&arguments.only) {
            continue;
        }
        let mut ready: Vec<Ready> = Vec::new();
        for server in &servers {
            let mut one = load::ready(server.url(version), &case)?;
            one.run(server.pid, Duration::from_secs_f64(arguments.seconds / 2.0))?;
            ready.push(one);
        }
        let row = pairs(arguments, case.name.clone(), "µs/op", |build, time| {
            let (Some(one), Some(server)) = (ready.get_mut(build), servers.get(build)) else {
                return Err(io::Error::other("two builds"));
            };
            Ok(one.run(server.pid, time)?.server_us_op)
        });
        ready.into_iter().for_each(Ready::clean);
        all.push(row?);
    }
    Ok(all)
}

/// All pairs of a row; which half comes first changes, so that a drift of the machine cancels out.
fn pairs(
    arguments: &Arguments,
    name: String,
    unit: &'static str,
    mut cost: impl FnMut(usize, Duration) -> io::Result<f64>,
) -> io::Result<Outcome> {
    let time = Duration::from_secs_f64(arguments.seconds);
    let (mut sums, mut ratios) = ([0.0; 2], Vec::new());
    for pair in 0..arguments.pairs as usize {
        let mut halves = [0.0; 2];
        for build in [pair % 2, (pair + 1) % 2] {
            if let Some(half) = halves.get_mut(build) {
                *half = cost(build, time)?;
            }
        }
        let [before, after] = halves;
        sums = [sums[0] + before, sums[1] + after];
        ratios.push((after / before).ln());
    }
    eprintln!("bench: {name} done");
    let costs = sums.map(|sum| sum / f64::from(arguments.pairs));
    Ok(Outcome { name, costs, unit, ratios })
}

fn print(all: &[Outcome]) {
    println!("| row | before | after | after / before (95 %) |");
    println!("|---|---:|---:|---:|");
    for row in all {
        let ([low, ratio, high], [before, after]) = (row.interval(), row.costs);
        let (name, unit) = (&row.name, row.unit);
        println!("| {name} | {before:.3} {unit} | {after:.3} | {ratio:.3} ({low:.3}-{high:.3}) |");
    }
    let mean = all.iter().map(|row| row.interval()[1].ln()).sum::<f64>() / all.len().max(1) as f64;
    println!();
    println!("geometric mean of {} rows: {:.3}", all.len(), mean.exp());
}
