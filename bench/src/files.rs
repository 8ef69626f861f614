//! Whole files over FTP, FTPS, SFTP, HTTP and HTTPS: this server and today's servers in turn, with
//! one client for all of them, so that only the server differs.
//!
//! - [`case`]: size, direction and protocol. [`tree`]: the files. [`transfer`]: one turn.
//! - [`peers`], [`ours`]: how each is started. [`daemons`]: their configurations.
//! - [`builds`]: two builds of this server in turn.
//! - [`tools`]: the same by curl and OpenSSH's sftp. [`table`]: the figures, and the rows lost.

pub mod builds;
mod case;
mod daemons;
mod ours;
mod peers;
mod table;
mod tools;
mod transfer;
mod tree;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lab::client::service::at::Scheme;
use serde_json::json;

use crate::Cli;
use case::{Case, PROTOCOLS};
use peers::{Endpoint, Gap, Peer};
use transfer::Figure;
use tree::Tree;

/// The user that signs in, at every server.
const USER: &str = "bench";
/// Its password.
const PASSWORD: &str = "bench-password";
/// Name of the server under test, in tables.
const OURS: &str = "plimsoll";

/// What is run and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Wanted {
    /// Rounds; every round runs every server on every case.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Only cases that have this in their names, as in `https download` or `x8`.
    #[arg(long, default_value = "")]
    pub only: String,
    /// MiB of the large files of a transfer, all streams together.
    #[arg(long, default_value_t = 1024)]
    pub mib: u64,
    /// Small files of 4 KiB of a transfer, all streams together.
    #[arg(long, default_value_t = 10_000)]
    pub files: u32,
    /// Seconds after which no further small file is begun.
    #[arg(long, default_value_t = 1.5)]
    pub seconds: f64,
    /// Fewer and smaller: a test of the program; not for publishing.
    #[arg(long)]
    pub quick: bool,
    /// Omits the check with curl and OpenSSH's sftp.
    #[arg(long)]
    pub no_tools: bool,
    /// A folder with the peers' Debian packages unpacked in it (`bench/unpack-peers`); programs
    /// that it lacks are looked for on the machine.
    #[arg(long)]
    pub peers: Option<PathBuf>,
}

impl Wanted {
    fn settled(&self) -> Self {
        let mut it = self.clone();
        if it.quick {
            (it.rounds, it.mib, it.files, it.seconds) = (1, 128, 1000, 0.3);
        }
        it
    }
}

/// Figures by case and server.
type Table = BTreeMap<(usize, &'static str), Vec<Figure>>;

/// The results.
struct Outcome {
    cases: Vec<Case>,
    table: Table,
    gaps: Vec<Gap>,
    /// What was negotiated, by protocol and server.
    ciphers: BTreeMap<(Scheme, &'static str), String>,
    checks: Vec<tools::Check>,
}

/// Whether `ssh` has started this program as its askpass program; then it has the password.
pub fn is_asked() -> bool {
    tools::answer()
}

/// Runs and prints the comparison.
///
/// # Errors
/// When Plimsoll does not start or fails; a peer that fails is a gap in the table.
pub fn run(cli: &Cli, wanted: &Wanted) -> io::Result<()> {
    let wanted = &wanted.settled();
    let base = cli.scratch.join(format!("bench.{}", std::process::id()));
    let tree = Tree::make(&base, wanted)?;
    let cases: Vec<_> =
        case::all(wanted).into_iter().filter(|c| c.name().contains(&wanted.only)).collect();
    let (mut peers, gaps) = start(cli, wanted, &tree, &cases)?;
    let mut outcome =
        Outcome { table: Table::new(), gaps, ciphers: BTreeMap::new(), checks: Vec::new(), cases };
    for n in 0..outcome.cases.len() {
        turns(n, wanted, &tree, &peers, &mut outcome)?;
    }
    if !wanted.no_tools {
        outcome.checks = tools::run(&tree, wanted, &peers)?;
    }
    peers.sort_by_key(|peer| peer.name);
    table::print(wanted, &peers, &outcome);
    if let Some(out) = &cli.out {
        std::fs::write(out, serde_json::to_string_pretty(&as_json(wanted, &peers, &outcome))?)?;
    }
    Ok(())
}

fn start(
    cli: &Cli,
    wanted: &Wanted,
    tree: &Tree,
    cases: &[Case],
) -> io::Result<(Vec<Peer>, Vec<Gap>)> {
    let protocols: Vec<Scheme> =
        PROTOCOLS.into_iter().filter(|p| cases.iter().any(|c| c.protocol == *p)).collect();
    let mut all = vec![
        ours::start(&cli.binary, tree, ours::Uploads::Whole)?,
        ours::start(&cli.binary, tree, ours::Uploads::InPlace)?,
    ];
    let (peers, gaps) = peers::start(wanted.peers.as_deref(), tree, &protocols)?;
    all.extend(peers);
    for gap in &gaps {
        eprintln!("bench: {} has no figures for {}: {}", gap.name, gap.about(), gap.why);
    }
    Ok((all, gaps))
}

/// All rounds of one case. In each the servers run in another order.
fn turns(
    n: usize,
    wanted: &Wanted,
    tree: &Tree,
    peers: &[Peer],
    outcome: &mut Outcome,
) -> io::Result<()> {
    let Some(case) = outcome.cases.get(n).cloned() else { return Ok(()) };
    let mut servers: Vec<(&Peer, &Endpoint)> =
        peers.iter().filter_map(|peer| Some((peer, peer.way(&case)?))).collect();
    let mut lost = Vec::new();
    for (peer, way) in &servers {
        // All content of both directions is compared once; nothing of it is counted.
        if let Err(why) = transfer::warm_up(&case, tree, peer, way) {
            lost.push((peer.name, why));
        }
    }
    servers.retain(|(peer, _)| lost.iter().all(|(name, _)| *name != peer.name));
    let time = Duration::from_secs_f64(wanted.seconds);
    for round in 0..wanted.rounds {
        if !servers.is_empty() {
            servers.rotate_left(usize::from(round > 0));
        }
        for (peer, way) in &servers {
            match transfer::run(&case, tree, peer, way, time) {
                Ok((figure, cipher)) => {
                    outcome.table.entry((n, peer.name)).or_default().push(figure);
                    if let Some(cipher) = cipher {
                        outcome.ciphers.insert((case.protocol, peer.name), cipher);
                    }
                }
                Err(why) => lost.push((peer.name, why)),
            }
        }
        servers.retain(|(peer, _)| lost.iter().all(|(name, _)| *name != peer.name));
    }
    for (name, why) in lost {
        if name.starts_with(OURS) {
            return Err(io::Error::other(format!("{}: {name}: {why}", case.name())));
        }
        // Half of the rounds would be no comparison.
        outcome.table.remove(&(n, name));
        eprintln!("bench: {}: {name} was given up: {why}", case.name());
        let case = Some(case.name());
        outcome.gaps.push(Gap { name, protocol: None, case, why: why.to_string() });
    }
    eprintln!("bench: {} done", case.name());
    Ok(())
}

fn as_json(wanted: &Wanted, peers: &[Peer], outcome: &Outcome) -> serde_json::Value {
    let rows: Vec<_> = outcome
        .table
        .iter()
        .filter_map(|((n, server), runs)| {
            let case = outcome.cases.get(*n)?;
            let cipher = outcome.ciphers.get(&(case.protocol, *server));
            Some(json!({"case": case.name(), "server": server, "cipher": cipher, "runs": runs}))
        })
        .collect();
    let gaps: Vec<_> = outcome
        .gaps
        .iter()
        .map(|gap| json!({"server": gap.name, "of": gap.about(), "why": gap.why}))
        .collect();
    let versions: BTreeMap<_, _> = peers.iter().map(|p| (p.name, p.version.as_str())).collect();
    json!({
        "machine": lab::proc::machine(),
        "settings": {"rounds": wanted.rounds, "mib": wanted.mib, "files": wanted.files,
            "seconds": wanted.seconds},
        "versions": versions,
        "rows": rows,
        "gaps": gaps,
        "tools": outcome.checks,
    })
}
