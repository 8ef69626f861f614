//! Server CPU per operation and per GB: this server, nfs-ganesha and the bare loops in turn, in
//! one run, so that whatever else the machine does concerns all of them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use lab::workload::Kind;

use crate::bare::{self, Way};
use crate::load::{self, Case, Figure};
use crate::stats::median;
use crate::{Cli, cpu, servers};

/// First ports of the two servers; out of the way of everything usual.
const PLIMSOLL_OFFSET: u16 = 27_000;
const GANESHA_PORT: u16 = 28_100;
/// File of each connection for small reads: all of it stays in the page cache.
const SMALL_FILE: u64 = 16 << 20;
/// File of each connection for streams.
const STREAM_FILE: u64 = 64 << 20;

fn cases() -> Vec<Case> {
    let small = |name, kind, block, connections, depth| Case {
        name,
        kind,
        block,
        file_size: SMALL_FILE,
        connections,
        depth,
    };
    let stream = |name, kind, depth| Case {
        name,
        kind,
        block: 1 << 20,
        file_size: STREAM_FILE,
        connections: 8,
        depth,
    };
    vec![
        small("NULL 8x16", Kind::Null, 1, 8, 16),
        small("GETATTR 8x16", Kind::Getattr, 1, 8, 16),
        small("READ 4K 8x16", Kind::RandRead, 4096, 8, 16),
        small("NULL 16x1", Kind::Null, 1, 16, 1),
        small("GETATTR 16x1", Kind::Getattr, 1, 16, 1),
        small("READ 4K 16x1", Kind::RandRead, 4096, 16, 1),
        small("CREATE+REMOVE 8x5", Kind::Create, 1, 8, 5),
        stream("read 1M 8x5", Kind::SeqRead, 5),
        stream("write 1M 8x1", Kind::SeqWrite, 1),
    ]
}

type Table = BTreeMap<(usize, &'static str), Vec<Figure>>;

/// Runs and prints the comparison.
///
/// # Errors
/// When a server does not start or a load fails.
pub fn run(cli: &Cli, rounds: usize, seconds: f64) -> io::Result<()> {
    let time = Duration::from_secs_f64(seconds);
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    let cleanup = Cleanup(base.clone());
    for dir in ["plimsoll", "ganesha", "bare", "state"] {
        std::fs::create_dir_all(base.join(dir))?;
    }
    let mut servers = vec![servers::plimsoll(
        &cli.binary,
        &base.join("plimsoll"),
        &base.join("state"),
        PLIMSOLL_OFFSET,
    )?];
    match servers::ganesha(&base.join("ganesha"), &base.join("ganesha.d"), GANESHA_PORT)? {
        Some(server) => servers.push(server),
        None => eprintln!("bench: nfs-ganesha is not installed; no ratios to it"),
    }
    let (cases, mut table) = (cases(), Table::new());
    for (n, case) in cases.iter().enumerate() {
        for server in &servers {
            let mut ready = load::ready(&server.url, case)?;
            // The first stretch warms caches and is not counted.
            ready.run(server.pid, time / 2)?;
            for _ in 0..rounds {
                let figure = ready.run(server.pid, time)?;
                table.entry((n, server.name)).or_default().push(figure);
            }
            ready.clean();
        }
        let way = match case.kind {
            Kind::SeqRead => Some(Way::Send),
            Kind::SeqWrite => Some(Way::Receive),
            _ => None,
        };
        if let Some(way) = way {
            for _ in 0..rounds {
                let figure = bare_figure(way, &base.join("bare"), case, time)?;
                table.entry((n, "bare")).or_default().push(figure);
            }
        }
        eprintln!("bench: {} done", case.name);
    }
    for server in &servers {
        println!("{}: {}", server.name, server.version);
    }
    print(&cases, &table);
    if let Some(out) = &cli.out {
        let rows: Vec<_> = table
            .iter()
            .map(|((n, server), figures)| {
                serde_json::json!({"case": cases[*n].name, "server": server, "runs": figures})
            })
            .collect();
        std::fs::write(out, serde_json::to_string_pretty(&rows)?)?;
    }
    drop(cleanup);
    Ok(())
}

struct Cleanup(std::path::PathBuf);

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Bare(Child);

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn bare_figure(way: Way, dir: &Path, case: &Case, time: Duration) -> io::Result<Figure> {
    let name = if way == Way::Send { "bare-send" } else { "bare-receive" };
    let mut child = Bare(
        Command::new(std::env::current_exe()?)
            .arg("--scratch")
            .arg(dir)
            .arg(name)
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let out = child.0.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let port: u16 = line.trim().parse().map_err(io::Error::other)?;
    let to = ([127, 0, 0, 1], port).into();
    let (streams, depth) = (case.connections as usize, case.depth as usize);
    bare::drive(to, way, streams, depth, time / 2)?;
    let pid = child.0.id();
    let (start, before, own) = (monotonic_ns(), cpu::of(pid)?, cpu::own()?);
    let bytes = bare::drive(to, way, streams, depth, time)?;
    let (used, own) = (cpu::of(pid)? - before, cpu::own()? - own);
    let ops = bytes as f64 / bare::BLOCK as f64;
    let wall = (monotonic_ns() - start) as f64 / NS_PER_S as f64;
    Ok(Figure {
        ops_s: ops / wall,
        bytes_s: bytes as f64 / wall,
        server_us_op: used * 1e6 / ops,
        server_s_gb: used * 1e9 / bytes as f64,
        client_us_op: own * 1e6 / ops,
    })
}

fn print(cases: &[Case], table: &Table) {
    println!();
    println!("| case | server | ops/s | MB/s | server CPU | spread | to ganesha | to bare |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    for (n, case) in cases.iter().enumerate() {
        let stream = case.kind.is_stream();
        let cost = |f: &Figure| if stream { f.server_s_gb } else { f.server_us_op };
        let middle = |server| {
            let figures = table.get(&(n, server))?;
            Some(median(&figures.iter().map(cost).collect::<Vec<_>>()))
        };
        for server in ["plimsoll", "ganesha", "bare"] {
            let (Some(figures), Some(mid)) = (table.get(&(n, server)), middle(server)) else {
                continue;
            };
            let costs: Vec<f64> = figures.iter().map(cost).collect();
            let of = |f: fn(&Figure) -> f64| median(&figures.iter().map(f).collect::<Vec<_>>());
            let ratio = |to| match middle(to) {
                Some(other) if to != server => format!("{:.2}", mid / other),
                _ => String::new(),
            };
            println!(
                "| {} | {server} | {:.0} | {:.0} | {mid:.3} {} | {:.3}-{:.3} | {} | {} |",
                case.name,
                of(|f| f.ops_s),
                of(|f| f.bytes_s) / 1e6,
                if stream { "s/GB" } else { "µs/op" },
                costs.iter().copied().fold(f64::INFINITY, f64::min),
                costs.iter().copied().fold(0.0, f64::max),
                ratio("ganesha"),
                ratio("bare"),
            );
        }
    }
}
