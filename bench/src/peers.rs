//! Server CPU per operation and per GB: this server, nfs-ganesha and the bare loops in turn, in one
//! run, so that other load of the machine affects all of them.

mod table;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use lab::workload::Kind;

use crate::bare::{self, Bare, Direction};
use crate::load::{self, Case, Figure};
use crate::servers::{self, Server, Version};
use crate::{Cli, cpu};

/// First ports of the two servers, outside of the usual ranges.
const PLIMSOLL_OFFSET: u16 = 27_000;
const GANESHA_PORT: u16 = 28_100;
/// File of each connection for small reads: all of it stays in the page cache.
const SMALL_FILE: u64 = 16 << 20;
/// File of each connection for streams.
const STREAM_FILE: u64 = 64 << 20;

fn cases() -> Vec<Case> {
    use Kind::{Create, Getattr, Lookup, Null, RandRead, SeqRead, SeqWrite, SyncWrite};
    let small = [
        ("NULL", Null, 1),
        ("GETATTR", Getattr, 1),
        ("LOOKUP", Lookup, 1),
        ("READ 1B", RandRead, 1),
        ("READ 4K", RandRead, 4096),
        ("READ 8K", RandRead, 8192),
        ("WRITE 4K stable", SyncWrite, 4096),
        ("CREATE+REMOVE", Create, 1),
    ];
    let mut cases = Vec::new();
    for (connections, depth) in [(8, 16), (16, 1)] {
        cases.extend(small.map(|(name, kind, block)| Case {
            name: format!("{name} {connections}x{depth}"),
            kind,
            block,
            file_size: SMALL_FILE,
            connections,
            depth,
        }));
    }
    for (name, kind, depth) in [("read 1M 8x5", SeqRead, 5), ("write 1M 8x1", SeqWrite, 1)] {
        let (block, file_size, connections) = (1 << 20, STREAM_FILE, 8);
        cases.push(Case { name: name.into(), kind, block, file_size, connections, depth });
    }
    cases
}

/// Figures by case, version (none for the bare loops), and server.
type Table = BTreeMap<(usize, Option<Version>, &'static str), Vec<Figure>>;

/// What is run and how long.
pub struct Wanted<'a> {
    /// Rounds; every round runs every server on every case.
    pub rounds: usize,
    /// Seconds of each stretch.
    pub seconds: f64,
    /// Only cases that have this in their names.
    pub only: &'a str,
}

/// Runs and prints the comparison.
///
/// # Errors
/// When a server does not start or a load fails.
pub fn run(cli: &Cli, wanted: &Wanted<'_>) -> io::Result<()> {
    let time = Duration::from_secs_f64(wanted.seconds);
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    let cleanup = Cleanup(base.clone());
    let servers = start(cli, &base)?;
    let cases: Vec<_> = cases().into_iter().filter(|c| c.name.contains(wanted.only)).collect();
    let mut table = Table::new();
    for (n, case) in cases.iter().enumerate() {
        for version in Version::ALL {
            for server in &servers {
                let mut ready = load::ready(server.url(version), case)?;
                // The first stretch warms caches and is not counted.
                ready.run(server.pid, time / 2)?;
                for _ in 0..wanted.rounds {
                    let figure = ready.run(server.pid, time)?;
                    table.entry((n, Some(version), server.name)).or_default().push(figure);
                }
                ready.clean();
            }
        }
        let way = match case.kind {
            Kind::SeqRead => Some(Direction::Send),
            Kind::SeqWrite => Some(Direction::Receive),
            _ => None,
        };
        if let Some(way) = way {
            for _ in 0..wanted.rounds {
                let figure = bare_figure(way, &base.join("bare"), case, time)?;
                table.entry((n, None, "bare")).or_default().push(figure);
            }
        }
        eprintln!("bench: {} done", case.name);
    }
    for server in &servers {
        println!("{}: {}", server.name, server.version);
    }
    table::print(&cases, &table);
    if let Some(out) = &cli.out {
        let row = |((n, version, server), figures): (&(usize, Option<Version>, &str), _)| {
            let version = version.map(Version::name);
            let case = &cases[*n].name;
            serde_json::json!({"case": case, "version": version, "server": server, "runs": figures})
        };
        let rows: Vec<_> = table.iter().map(row).collect();
        std::fs::write(out, serde_json::to_string_pretty(&rows)?)?;
    }
    drop(cleanup);
    Ok(())
}

fn start(cli: &Cli, base: &Path) -> io::Result<Vec<Server>> {
    for dir in ["plimsoll", "ganesha", "bare", "state"] {
        std::fs::create_dir_all(base.join(dir))?;
    }
    let (share, state) = (base.join("plimsoll"), base.join("state"));
    let mut all = vec![servers::plimsoll(&cli.binary, &share, &state, PLIMSOLL_OFFSET)?];
    match servers::ganesha(&base.join("ganesha"), &base.join("ganesha.d"), GANESHA_PORT)? {
        Some(server) => all.push(server),
        None => eprintln!("bench: nfs-ganesha is not installed; no ratios to it"),
    }
    Ok(all)
}

struct Cleanup(std::path::PathBuf);

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn bare_figure(way: Direction, dir: &Path, case: &Case, time: Duration) -> io::Result<Figure> {
    let name = if way == Direction::Send { "bare-send" } else { "bare-receive" };
    let (child, to) = Bare::start([OsStr::new("--scratch"), dir.as_os_str(), OsStr::new(name)])?;
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
