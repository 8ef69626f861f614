//! Server CPU of a logical unit per command and per GB, compared with tgt, a target in user space
//! in common use: both in turn in one run, by the lab's initiator, with and without digests.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::workload::Kind;

use crate::Cli;
use crate::load::{self, Case, Figure};
use crate::peers::Wanted;
use crate::programs::{Program, Programs, made};
use crate::servers::{Server, await_that, plimsoll_with};
use crate::stats::median;

/// First ports of the two servers, outside of the usual ranges.
const PLIMSOLL_OFFSET: u16 = 26_000;
const TGT_PORT: u16 = 29_700;
/// Number of tgt's control socket.
const TGT_CONTROL: &str = "97";
/// The standard port of iSCSI.
const ISCSI_PORT: u16 = 3260;
/// Bytes of a unit.
pub const UNIT: u64 = 256 << 20;
/// Name of tgt's target.
const TGT_TARGET: &str = "iqn.2009-09.peer:disk";

/// A case, with the digests that it goes with and the goal: our CPU to tgt's, at most.
struct Row {
    case: Case,
    digests: bool,
    most: f64,
}

fn rows() -> Vec<Row> {
    let cases = [
        ("READ 4K 1x32", Kind::RandRead, 4096, 32, [0.30, 0.30]),
        ("WRITE 4K 1x32", Kind::SeqWrite, 4096, 32, [0.30, 0.30]),
        ("read 1M 1x8", Kind::SeqRead, 1 << 20, 8, [0.36, 0.55]),
        ("write 1M 1x8", Kind::SeqWrite, 1 << 20, 8, [0.55, 0.55]),
    ];
    let row = |(name, kind, block, depth, most): (&str, _, _, _, [f64; 2])| {
        [false, true].map(|digests| {
            let (file_size, connections) = (UNIT / 2, 1);
            let name = format!("{name}{}", if digests { " digests" } else { "" });
            let case = Case { name, kind, block, file_size, connections, depth };
            Row { case, digests, most: most[usize::from(digests)] }
        })
    };
    cases.into_iter().flat_map(row).collect()
}

/// Small commands cost by number, large ones by their bytes.
fn cost(case: &Case, figure: &Figure) -> (f64, &'static str) {
    match case.block < 1 << 20 {
        true => (figure.server_us_op, "µs/op"),
        false => (figure.server_s_gb, "s/GB"),
    }
}

/// Runs and prints the comparison. `unpacked` is where packages were unpacked that are not
/// installed.
///
/// # Errors
/// A server does not start, or a load fails.
pub fn run(cli: &Cli, wanted: &Wanted<'_>, unpacked: Option<&Path>) -> io::Result<()> {
    let time = Duration::from_secs_f64(wanted.seconds);
    cli.in_scratch(|base| compare(cli, wanted, &start(cli, base, unpacked)?, time))
}

fn compare(cli: &Cli, wanted: &Wanted<'_>, servers: &[Server], time: Duration) -> io::Result<()> {
    for server in servers {
        println!("{}: {}", server.name, server.version);
    }
    println!("\n| case | server | ops/s | MB/s | server CPU | spread | to tgt | goal | met |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|---|");
    let mut raw = Vec::new();
    for row in rows().into_iter().filter(|row| row.case.name.contains(wanted.only)) {
        let mut figures = vec![Vec::new(); servers.len()];
        let mut ready = Vec::new();
        for server in servers {
            let digests = if row.digests { "header,data" } else { "none" };
            let mut one = load::ready(&format!("{}?digests={digests}", server.url), &row.case)?;
            // The first stretch warms caches and is not counted.
            one.run(server.pid, time / 2)?;
            ready.push(one);
        }
        for _ in 0..wanted.rounds {
            for ((server, one), figures) in servers.iter().zip(&mut ready).zip(&mut figures) {
                figures.push(one.run(server.pid, time)?);
            }
        }
        ready.into_iter().for_each(load::Ready::clean);
        print(&row, servers, &figures);
        for (server, runs) in servers.iter().zip(figures) {
            let (case, server) = (&row.case.name, server.name);
            raw.push(serde_json::json!({"case": case, "server": server, "runs": runs}));
        }
    }
    if let Some(out) = &cli.out {
        fs::write(out, serde_json::to_string_pretty(&raw)?)?;
    }
    Ok(())
}

fn print(row: &Row, servers: &[Server], figures: &[Vec<Figure>]) {
    let costs = |runs: &[Figure]| -> Vec<f64> {
        runs.iter().map(|figure| cost(&row.case, figure).0).collect()
    };
    let peer = servers.iter().position(|server| server.name == "tgt");
    let peer = peer.map(|at| median(&costs(&figures[at])));
    for (server, runs) in servers.iter().zip(figures) {
        let (all, unit) = (costs(runs), cost(&row.case, &Figure::default()).1);
        let of = |f: fn(&Figure) -> f64| median(&runs.iter().map(f).collect::<Vec<_>>());
        let ratio = peer.filter(|_| server.name != "tgt").map(|peer| median(&all) / peer);
        let [ratio, goal, met] = ratio.map_or_else(Default::default, |ratio| {
            let met = if ratio <= row.most { "yes" } else { "NO" };
            [format!("{ratio:.2}"), format!("{:.2}", row.most), met.to_owned()]
        });
        println!(
            "| {} | {} | {:.0} | {:.0} | {:.3} {unit} | {:.3}-{:.3} | {ratio} | {goal} | {met} |",
            row.case.name,
            server.name,
            of(|f| f.ops_s),
            of(|f| f.bytes_s) / 1e6,
            median(&all),
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(0.0, f64::max),
        );
    }
}

/// Our server with a share and a unit in `base`, and the unit as a target of the laboratory.
///
/// # Errors
/// The server does not start.
pub fn ours(binary: &Path, base: &Path, offset: u16) -> io::Result<(Server, String)> {
    let (share, state) = (base.join("share"), base.join("state"));
    for dir in [&share, &state] {
        fs::create_dir_all(dir)?;
    }
    let unit = format!("disk={UNIT}");
    let server = plimsoll_with(binary, &share, &state, offset, &["--lun", &unit])?;
    let text = |name: &str| -> io::Result<String> {
        Ok(fs::read_to_string(state.join("luns").join(name))?.trim().to_owned())
    };
    let (secret, target) = (text("secret")?, text("target")?);
    let port = ISCSI_PORT + offset;
    Ok((server, format!("iscsi://plimsoll%{secret}@127.0.0.1:{port}/{target}/0")))
}

fn start(cli: &Cli, base: &Path, unpacked: Option<&Path>) -> io::Result<Vec<Server>> {
    let (mut ours, url) = ours(&cli.binary, base, PLIMSOLL_OFFSET)?;
    ours.url = url;
    let mut all = vec![ours];
    let programs = Programs::new(unpacked);
    match (programs.find("tgtd"), programs.find("tgtadm")) {
        (Some(daemon), Some(admin)) => all.push(tgt(&daemon, &admin, base)?),
        _ => eprintln!("bench: tgt is not there; no ratios to it (bench/unpack-peers DIR tgtd)"),
    }
    Ok(all)
}

/// Starts tgt with one unit in a file that has its space, and the settings that suit it best.
fn tgt(daemon: &Program, admin: &Program, base: &Path) -> io::Result<Server> {
    let words = |program: &Program| {
        let all = program.command();
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]);
        command
    };
    let portal = format!("portal=127.0.0.1:{TGT_PORT}");
    let child = words(daemon)
        .args(["-f", "-C", TGT_CONTROL, "-t", "4", "--iscsi", &portal])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = child.id();
    let url = format!("iscsi://127.0.0.1:{TGT_PORT}/{TGT_TARGET}/1");
    let version = daemon.version("-V");
    let children = vec![child];
    let server = Server { name: "tgt", version, url, url4: String::new(), pid, children };
    await_that("tgt's port", || TcpStream::connect(("127.0.0.1", TGT_PORT)).is_ok())?;
    let image = base.join("tgt.img").display().to_string();
    made("fallocate", &["-l", &UNIT.to_string(), &image])?;
    let target = ["--op", "new", "--mode", "target", "--tid", "1", "-T", TGT_TARGET];
    let unit = ["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", &image];
    let bind = ["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"];
    let mut steps = vec![target.to_vec(), unit.to_vec()];
    for (name, value) in [
        ("MaxRecvDataSegmentLength", "262144"),
        ("MaxXmitDataSegmentLength", "262144"),
        ("FirstBurstLength", "262144"),
        ("MaxBurstLength", "1048576"),
        ("ImmediateData", "Yes"),
        ("InitialR2T", "No"),
        ("HeaderDigest", "CRC32C,None"),
        ("DataDigest", "CRC32C,None"),
    ] {
        let target = ["--op", "update", "--mode", "target", "--tid", "1"];
        steps.push([&target[..], &["--name", name, "--value", value]].concat());
    }
    steps.push(bind.to_vec());
    for step in steps {
        let said = words(admin).args(["-C", TGT_CONTROL, "--lld", "iscsi"]).args(&step).output()?;
        if !said.status.success() {
            let why = String::from_utf8_lossy(&said.stderr).trim().to_owned();
            return Err(io::Error::other(format!("tgtadm {}: {why}", step.join(" "))));
        }
    }
    Ok(server)
}
