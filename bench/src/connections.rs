//! What connections cost: the server's CPU per operation over 1, 8, 64 and 1 024 connections with
//! the same number of requests in flight in all, and the same bytes of files in all.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::time::Duration;

use lab::workload::{Kind, Shape};

use crate::echo::Echo;
use crate::load::Figure;
use crate::many::{Lanes, Wanted};
use crate::servers::{self, Version};
use crate::stats::median;
use crate::{Cli, bare, cpu, peers};

/// First port of the server under load.
const OFFSET: u16 = 27_300;
/// Requests in flight in all: 64 for each of 1 024 connections, the slots that a Linux client's
/// session has; 16 for each, as many as one session of NFSv4.1 has at most; and fewer.
const IN_FLIGHT: [u32; 4] = [65_536, 16_384, 1024, 128];
/// Connections; at most as many as requests, of which each then has an equal share. A session of
/// NFSv4.1 has 128 slots, so that 512 of them are the fewest for the most requests.
const CONNECTIONS: [u32; 6] = [1, 8, 64, 128, 512, 1024];
/// Bytes of all files together: in the page cache, and beyond the processor's own.
const FILES: u64 = 256 << 20;
/// The most expensive row of a group may cost this many times the cheapest.
const GOAL: f64 = 1.3;

/// One row: how many connections, and their figures.
type Row = (u32, Vec<Figure>);

/// Runs and prints the comparison.
///
/// # Errors
/// When the server does not start or a load fails.
pub fn run(cli: &Cli, load: &peers::Wanted<'_>) -> io::Result<()> {
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    std::fs::create_dir_all(base.join("share"))?;
    let server = servers::plimsoll(&cli.binary, &base.join("share"), &base.join("state"), OFFSET)?;
    println!(
        "| version | operation | in flight | connections | ops/s | server µs/op | spread \
         | to cheapest | to bare |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let (mut worst, mut floors) = (0.0f64, BTreeMap::new());
    let mut raw = Vec::new();
    for version in Version::ALL {
        for (name, kind, block) in
            [("READ 4K", Kind::RandRead, 4096), ("GETATTR", Kind::Getattr, 1)]
        {
            for in_flight in IN_FLIGHT {
                let label = format!("{} | {name} | {in_flight}", version.name());
                let url = server.url(version);
                let group = Group { name, version: version.name(), url, kind, block, in_flight };
                if let Entry::Vacant(first) = floors.entry((name, in_flight)) {
                    let rows = group.bare(load)?;
                    print(&format!("bare | {name} | {in_flight}"), &rows, &[]);
                    first.insert(rows);
                }
                let floor = floors.get(&(name, in_flight)).map_or(&[][..], |rows| rows);
                let rows = group.run(server.pid, load)?;
                worst = worst.max(print(&label, &rows, floor));
                raw.push(serde_json::json!({"version": version.name(), "operation": name,
                    "in_flight": in_flight, "connections": rows}));
            }
        }
    }
    println!();
    println!("dearest to cheapest of any group: {worst:.2} (goal: {GOAL})");
    if let Some(out) = &cli.out {
        std::fs::write(out, serde_json::to_string_pretty(&raw)?)?;
    }
    let used = cpu::of(server.pid)?;
    eprintln!("bench: the server used {used:.1} s of CPU in all");
    drop(server);
    std::fs::remove_dir_all(&base)
}

/// Rows that are compared with each other.
struct Group<'a> {
    name: &'a str,
    version: &'a str,
    url: &'a str,
    kind: Kind,
    block: u32,
    in_flight: u32,
}

impl Group<'_> {
    /// The same over the bare server: what the machine itself takes.
    fn bare(&self, load: &peers::Wanted<'_>) -> io::Result<Vec<Row>> {
        let data = if self.kind == Kind::RandRead { self.block as usize } else { 0 };
        let ready = |connections| {
            let shape = (connections, self.in_flight / connections);
            Ok((connections, Echo::ready(shape, bare::HEAD + data)?))
        };
        let rows: io::Result<Vec<_>> = self.shares("bare", load.only).map(ready).collect();
        in_turn(&mut rows?, load, |echo, time| echo.run(time))
    }

    /// The numbers of connections that are wanted.
    fn shares<'s>(&'s self, server: &'s str, only: &'s str) -> impl Iterator<Item = u32> + 's {
        let (op, all) = (self.name, self.in_flight);
        let name = move |n| format!("{server} {op} {n}x{} of {all}", all / n);
        let wanted = move |n: &u32| *n <= self.in_flight && name(*n).contains(only);
        CONNECTIONS.into_iter().filter(wanted)
    }

    fn run(&self, server: u32, load: &peers::Wanted<'_>) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut first = 0;
        for connections in self.shares(self.version, load.only) {
            let wanted = Wanted {
                url: self.url,
                shape: Shape {
                    kind: self.kind,
                    block: self.block,
                    files: 1,
                    file_size: FILES / u64::from(connections),
                    own_files: false,
                },
                connections,
                depth: self.in_flight / connections,
                first,
            };
            match Lanes::ready(&wanted) {
                Ok(lanes) => rows.push((connections, lanes)),
                // A session has fewer slots than one connection would need here.
                Err(error) if error.to_string().contains("slots") => {
                    eprintln!("bench: {connections} x {}: {error}", wanted.depth);
                }
                Err(error) => return Err(error),
            }
            first += connections;
        }
        let measured = in_turn(&mut rows, load, |lanes, time| lanes.run(server, time));
        rows.into_iter().for_each(|(_, lanes)| lanes.clean());
        measured
    }
}

/// All rows in turn, round by round, so that other load of the machine affects all of them.
fn in_turn<T>(
    rows: &mut [(u32, T)],
    load: &peers::Wanted<'_>,
    run: impl Fn(&mut T, Duration) -> io::Result<Figure>,
) -> io::Result<Vec<Row>> {
    let time = Duration::from_secs_f64(load.seconds);
    let mut measured: Vec<Row> =
        rows.iter().map(|(connections, _)| (*connections, Vec::new())).collect();
    for round in 0..=load.rounds {
        for ((_, one), (_, figures)) in rows.iter_mut().zip(&mut measured) {
            let figure = run(one, if round == 0 { time / 2 } else { time })?;
            // The first stretch warms up and is not counted.
            if round > 0 {
                figures.push(figure);
            }
        }
    }
    Ok(measured)
}

/// Cost of a row, µs for each operation.
fn cost(row: &Row) -> f64 {
    median(&row.1.iter().map(|f| f.server_us_op).collect::<Vec<_>>())
}

/// Prints a group next to the bare server's; returns the ratio of its most expensive row to its
/// cheapest.
fn print(label: &str, rows: &[Row], floor: &[Row]) -> f64 {
    let least = rows.iter().map(cost).fold(f64::INFINITY, f64::min);
    for row in rows {
        let bare = floor.iter().find(|bare| bare.0 == row.0);
        let costs = row.1.iter().map(|f| f.server_us_op);
        println!(
            "| {label} | {} | {:.0} | {:.3} | {:.3}-{:.3} | {:.2} | {} |",
            row.0,
            median(&row.1.iter().map(|f| f.ops_s).collect::<Vec<_>>()),
            cost(row),
            costs.clone().fold(f64::INFINITY, f64::min),
            costs.fold(0.0, f64::max),
            cost(row) / least,
            bare.map_or(String::new(), |bare| format!("{:.2}", cost(row) / cost(bare))),
        );
    }
    rows.iter().map(cost).fold(0.0, f64::max) / least
}
