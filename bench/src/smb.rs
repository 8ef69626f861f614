//! Server CPU of SMB compared with Samba's smbd: both in turn in one run, on one directory in
//! memory. Whole files by smbclient, with which the goals were set; random reads and streams by the
//! lab's client, compared with Plimsoll's NFSv4.1.
//!
//! - [`servers`]: how each is started. [`files`]: transfers by smbclient.

mod files;
pub mod servers;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use lab::workload::Kind;
use serde::Serialize;

use self::files::{Transfer, Work};
use self::servers::{NFS4, Server};
use crate::Cli;
use crate::load::{self, Case, Ready};
use crate::stats::median;

/// Plimsoll alone, with a share in `base` and its state in `base/state`.
///
/// # Errors
/// It does not start, or refuses its settings.
pub fn ours(binary: &Path, base: &Path) -> io::Result<Server> {
    let share = servers::share(base)?;
    servers::our_server(binary, base, &share)
}

/// What is run and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Rounds; every round runs every server on every case.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each stretch of the lab's client.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// MiB of the large file that smbclient transfers.
    #[arg(long, default_value_t = 1024)]
    mib: u64,
    /// Files of 16 KiB that it transfers.
    #[arg(long, default_value_t = 2000)]
    files: u32,
    /// Only cases that have this in their names, as in `get` or `READ 4K`.
    #[arg(long, default_value = "")]
    only: String,
}

/// How messages are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protection {
    Plain,
    Signed,
    Encrypted,
}

impl Protection {
    const ALL: [Self; 3] = [Self::Plain, Self::Signed, Self::Encrypted];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Signed => "signed",
            Self::Encrypted => "encrypted",
        }
    }

    /// Of smbclient.
    fn option(self) -> &'static str {
        match self {
            Self::Plain => "--client-protection=off",
            Self::Signed => "--client-protection=sign",
            Self::Encrypted => "--client-protection=encrypt",
        }
    }

    /// Of the lab's client.
    fn query(self) -> &'static str {
        match self {
            Self::Plain => "?signing=off",
            Self::Signed => "?signing=aes-gmac",
            Self::Encrypted => "?cipher=aes128-gcm",
        }
    }
}

/// What is measured.
enum Measurement {
    /// smbclient transfers files.
    Smbclient(Transfer),
    /// The lab's client makes load.
    Lab(Case),
}

/// A case, and its goal: our CPU to that of smbd, or of our NFSv4.1, at most.
struct Row {
    name: String,
    protection: Protection,
    what: Measurement,
    most: Option<f64>,
    /// The server that ours is compared with.
    peer: &'static str,
}

fn rows(arguments: &Arguments) -> Vec<Row> {
    let large = (arguments.mib << 20, 1);
    let small = (16 << 10, arguments.files);
    let (get, put) = (Work::Get, Work::Put);
    let mut rows = Vec::new();
    for (work, (size, files), most) in [
        (get, large, [0.62, 0.79, 0.78]),
        (put, large, [0.83, 0.79, 0.73]),
        (get, small, [0.26, f64::NAN, f64::NAN]),
        (put, small, [0.33, f64::NAN, f64::NAN]),
    ] {
        for (protection, most) in Protection::ALL.into_iter().zip(most) {
            if most.is_nan() {
                continue;
            }
            let transfer = Transfer { work, size, files };
            let name = format!("{} {}", transfer.name(), protection.name());
            let (what, most) = (Measurement::Smbclient(transfer), Some(most));
            rows.push(Row { name, protection, what, most, peer: "smbd" });
        }
    }
    let loads = [
        ("READ 4K 8x16", Kind::RandRead, 4096, 16 << 20, (8, 16)),
        ("read 1M 1x8", Kind::SeqRead, 1 << 20, 256 << 20, (1, 8)),
        ("write 1M 1x8", Kind::SeqWrite, 1 << 20, 256 << 20, (1, 8)),
    ];
    for (name, kind, block, file_size, (connections, depth)) in loads {
        for protection in Protection::ALL {
            let name = format!("{name} {}", protection.name());
            let is_small = kind == Kind::RandRead;
            let most = match protection {
                Protection::Plain => Some(2.0),
                Protection::Signed => Some(2.6),
                Protection::Encrypted => None,
            };
            let case = Case { name: name.clone(), kind, block, file_size, connections, depth };
            let peer = if is_small { NFS4 } else { "smbd" };
            let most = most.filter(|_| is_small);
            rows.push(Row { name, protection, what: Measurement::Lab(case), most, peer });
        }
    }
    rows
}

/// The results of one server in one round.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Cost {
    /// CPU time of the server, in the unit of the row.
    cpu: f64,
    /// Operations, files, or 10^9 bytes, for each second.
    rate: f64,
}

/// The unit of a row's CPU time.
fn unit(row: &Row) -> &'static str {
    match &row.what {
        Measurement::Smbclient(transfer) if transfer.files > 1 => "µs/file",
        Measurement::Lab(case) if !case.kind.is_stream() => "µs/op",
        _ => "s/GB",
    }
}

/// Runs and prints the comparison.
///
/// # Errors
/// Our server does not start, or a load fails.
pub fn run(cli: &Cli, arguments: &Arguments) -> io::Result<()> {
    cli.in_scratch(|base| compare(cli, arguments, base, &servers::start(cli, base)?))
}

fn compare(cli: &Cli, arguments: &Arguments, base: &Path, servers: &[Server]) -> io::Result<()> {
    for server in servers {
        println!("{}: {}", server.name, server.version);
    }
    println!("\n| case | server | rate/s | server CPU | spread | ratio | to | goal | met |");
    println!("|---|---|---:|---:|---:|---:|---|---:|---|");
    let mut raw = Vec::new();
    for row in rows(arguments).into_iter().filter(|row| row.name.contains(&arguments.only)) {
        let measured = match &row.what {
            Measurement::Smbclient(transfer) => by_files(arguments, base, servers, &row, transfer)?,
            Measurement::Lab(case) => by_load(arguments, servers, &row, case)?,
        };
        print(&row, &measured);
        for (server, runs) in measured {
            let (case, unit) = (&row.name, unit(&row));
            raw.push(serde_json::json!({"case": case, "server": server, "unit": unit,
                "runs": runs}));
        }
    }
    if let Some(out) = &cli.out {
        fs::write(out, serde_json::to_string_pretty(&raw)?)?;
    }
    Ok(())
}

/// The results of the servers in all rounds.
type Measured = Vec<(&'static str, Vec<Cost>)>;

fn by_files(
    arguments: &Arguments,
    base: &Path,
    servers: &[Server],
    row: &Row,
    transfer: &Transfer,
) -> io::Result<Measured> {
    transfer.prepare(base)?;
    let mut measured: Measured = Vec::new();
    let protection = row.protection.option();
    for server in servers {
        // The first one warms caches and is not counted.
        transfer.run(base, server, protection)?;
        measured.push((server.name, Vec::new()));
    }
    for _ in 0..arguments.rounds {
        for (server, (_, costs)) in servers.iter().zip(&mut measured) {
            costs.push(transfer.run(base, server, protection)?);
        }
    }
    transfer.clean(base)?;
    Ok(measured)
}

fn by_load(
    arguments: &Arguments,
    servers: &[Server],
    row: &Row,
    case: &Case,
) -> io::Result<Measured> {
    let time = Duration::from_secs_f64(arguments.seconds);
    let mut ready: Vec<(&'static str, &Server, Ready)> = Vec::new();
    for server in servers {
        let url = format!("{}{}", server.url, row.protection.query());
        ready.push((server.name, server, load::ready(&url, case)?));
        if let Some(url) = server.url4.as_ref().filter(|_| row.peer == NFS4) {
            ready.push((NFS4, server, load::ready(url, case)?));
        }
    }
    let mut measured: Measured = ready.iter().map(|one| (one.0, Vec::new())).collect();
    for round in 0..=arguments.rounds {
        for ((_, server, one), (_, costs)) in ready.iter_mut().zip(&mut measured) {
            let figure = one.run_by(&|| server.group.cpu(), time)?;
            let cost = match case.kind.is_stream() {
                true => Cost { cpu: figure.server_s_gb, rate: figure.bytes_s / 1e9 },
                false => Cost { cpu: figure.server_us_op, rate: figure.ops_s },
            };
            // The first one warms caches and is not counted.
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    ready.into_iter().for_each(|(_, _, one)| one.clean());
    Ok(measured)
}

fn print(row: &Row, measured: &Measured) {
    let of =
        |runs: &[Cost], which: fn(&Cost) -> f64| -> Vec<f64> { runs.iter().map(which).collect() };
    let peer = measured.iter().find(|one| one.0 == row.peer);
    let peer = peer.map(|one| median(&of(&one.1, |cost| cost.cpu)));
    for (server, runs) in measured {
        let all = of(runs, |cost| cost.cpu);
        let mid = median(&all);
        let ours = *server == servers::OURS;
        let ratio = peer.filter(|_| ours).map(|peer| mid / peer);
        let formatted =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
        let goal = row.most.filter(|_| ours);
        let met = match (ratio, goal) {
            (Some(ratio), Some(goal)) if ratio <= goal => "yes",
            (Some(_), Some(_)) => "NO",
            _ => "",
        };
        println!(
            "| {} | {server} | {:.2} | {mid:.3} {} | {:.3}-{:.3} | {} | {} | {} | {met} |",
            row.name,
            median(&of(runs, |cost| cost.rate)),
            unit(row),
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(0.0, f64::max),
            formatted(ratio),
            if ours { row.peer } else { "" },
            formatted(goal),
        );
    }
}
