//! What Analytics costs: all breakdowns on and off in turn, within one server process, as pairs.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use lab::workload::Kind;

use crate::load::{self, Case};
use crate::stats::mean_95;
use crate::{Cli, cpu, servers, smb};

/// First port of the server under load.
const OFFSET: u16 = 27_700;

/// Runs and prints the comparison.
///
/// # Errors
/// When the server does not start, does not switch, or a load fails.
pub fn run(cli: &Cli, pairs: usize, seconds: f64) -> io::Result<()> {
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    let (share, state) = (base.join("share"), base.join("state"));
    std::fs::create_dir_all(&share)?;
    let nfs = servers::plimsoll(&cli.binary, &share, &state, OFFSET)?;
    let smb = smb::ours(&cli.binary, &base.join("smb"))?;
    println!("| case | on µs/op | off µs/op | more CPU with all breakdowns (95 %) |");
    println!("|---|---:|---:|---:|");
    let time = Duration::from_secs_f64(seconds);
    let smb_url = format!("{}?signing=off", smb.url);
    for (name, kind, block, url) in [
        ("NULL 8x16", Kind::Null, 1, &nfs.url),
        ("GETATTR 8x16", Kind::Getattr, 1, &nfs.url),
        ("READ 4K 8x16", Kind::RandRead, 4096, &nfs.url),
        ("SMB READ 4K 8x16", Kind::RandRead, 4096, &smb_url),
    ] {
        let is_smb = *url == smb_url;
        let used = || if is_smb { smb.group.cpu() } else { cpu::of(nfs.pid) };
        let state = if is_smb { base.join("smb/state") } else { state.clone() };
        let case = Case {
            name: name.to_owned(),
            kind,
            block,
            file_size: 16 << 20,
            connections: 8,
            depth: 16,
        };
        let mut ready = load::ready(url, &case)?;
        ready.run_by(&used, time)?;
        let (mut on_sum, mut off_sum, mut more) = (0.0, 0.0, Vec::new());
        for pair in 0..pairs {
            // Which half comes first changes, so that a drift of the machine cancels out.
            let mut cost = [0.0; 2];
            for half in [pair % 2, (pair + 1) % 2] {
                switch(&state, half == 1)?;
                cost[half] = ready.run_by(&used, time)?.server_us_op;
            }
            (off_sum, on_sum) = (off_sum + cost[0], on_sum + cost[1]);
            more.push((cost[1] / cost[0] - 1.0) * 100.0);
        }
        ready.clean();
        let (mean, half) = mean_95(&more);
        let n = pairs as f64;
        println!("| {name} | {:.3} | {:.3} | {mean:+.2} % ± {half:.2} |", on_sum / n, off_sum / n);
    }
    drop((nfs, smb));
    std::fs::remove_dir_all(&base)
}

/// `POST /api/v1/analytics/collect` on the local socket.
fn switch(state: &Path, on: bool) -> io::Result<()> {
    let mut socket = UnixStream::connect(state.join("plimsoll.sock"))?;
    let body = format!("{{\"on\":{on}}}");
    write!(
        socket,
        "POST /api/v1/analytics/collect HTTP/1.1\r\nHost: local\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    match answer.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(()),
        _ => Err(io::Error::other(format!(
            "could not switch: {}",
            answer.lines().next().unwrap_or("")
        ))),
    }
}
