//! What the load generator itself costs: the lab's client, and a C client on the same target.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lab::workload::Kind;

use crate::load::{self, Case};
use crate::stats::median;
use crate::{Cli, servers};

/// First port of the server under load.
const OFFSET: u16 = 27_500;

/// Runs and prints the comparison.
///
/// # Errors
/// When the server does not start or a load fails.
pub fn run(cli: &Cli, c: Option<&Path>, rounds: usize, seconds: f64) -> io::Result<()> {
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    std::fs::create_dir_all(base.join("share"))?;
    let server = servers::plimsoll(&cli.binary, &base.join("share"), &base.join("state"), OFFSET)?;
    println!("| case | lab µs/op | C client µs/op | ratio | lab over v4.1 µs/op |");
    println!("|---|---:|---:|---:|---:|");
    for (name, kind, block, op) in [
        ("NULL 8x16", Kind::Null, 1, "null"),
        ("GETATTR 8x16", Kind::Getattr, 1, "getattr"),
        ("READ 4K 8x16", Kind::RandRead, 4096, "read"),
        ("WRITE 4K FILE_SYNC 8x16", Kind::SyncWrite, 4096, "write"),
    ] {
        let case = Case {
            name: name.to_owned(),
            kind,
            block,
            file_size: 16 << 20,
            connections: 8,
            depth: 16,
        };
        let mut ready = load::ready(&server.url, &case)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(ready.run(server.pid, Duration::from_secs_f64(seconds))?.client_us_op);
            if let Some(c) = c {
                theirs.push(c_client(c, &server.url, op, block, seconds)?);
            }
        }
        ready.clean();
        let mut ready = load::ready(&server.url4, &case)?;
        let mut later = Vec::new();
        for _ in 0..rounds {
            later.push(ready.run(server.pid, Duration::from_secs_f64(seconds))?.client_us_op);
        }
        ready.clean();
        let (ours, theirs, later) = (median(&ours), median(&theirs), median(&later));
        println!("| {name} | {ours:.2} | {theirs:.2} | {:.2} | {later:.2} |", ours / theirs);
    }
    drop(server);
    std::fs::remove_dir_all(&base)
}

fn c_client(binary: &Path, url: &str, op: &str, block: u32, seconds: f64) -> io::Result<f64> {
    let out = Command::new(binary)
        .args(["--url", &url.replacen("nfs3://", "nfs://", 1), "--op", op])
        .args(["--bs", &block.to_string(), "--conns", "8", "--depth", "16"])
        .args(["--secs", &seconds.to_string(), "--file-mb", "16", "--rand", "--stable"])
        .output()?;
    let said: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    let figure = |key: &str| said[key].as_f64().ok_or_else(|| io::Error::other("no figure"));
    Ok(figure("client_cpu")? * 1e6 / figure("ops")?)
}
