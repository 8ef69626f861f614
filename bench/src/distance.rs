//! Files over a distance: dsync and other common programs for transfers, in turn, from one network
//! namespace to another over `plimsoll bridge`, through sshd at the far end.
//!
//! - [`data`]: the content. [`link`]: the namespaces and the bridge. [`far`]: sshd.
//! - [`leftovers`]: cleanup after a run that ends early.
//! - [`peers`]: the programs. [`turn`]: one turn. [`flow`]: its rate in between. [`table`],
//!   [`chart`], [`record`]: the figures.

mod chart;
mod data;
mod far;
mod flow;
mod leftovers;
mod link;
mod peers;
mod record;
mod table;
mod turn;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lab::bridge::shape::Shapes;
use serde::{Deserialize, Serialize};

use crate::Cli;
use crate::programs::Programs;
use data::{Data, Job};
use far::Far;
use link::{Kind, Networks, Point};
use peers::Peer;
use turn::{Figure, Scene};

/// What is run and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Wanted {
    /// Round trips, in milliseconds.
    #[arg(long, value_delimiter = ',', default_value = "0,2,10,20,100,200")]
    pub rtt: Vec<f64>,
    /// What the link does in addition: plain, encrypted (all that crosses it is sealed), loss (0.1
    /// %).
    #[arg(long, value_delimiter = ',', default_value = "plain,encrypted,loss")]
    pub link: Vec<String>,
    /// The link's rate, of whole IP packets.
    #[arg(long, default_value = "1Gbit")]
    pub rate: String,
    /// Bytes of the large file, as 64M or 4G (powers of two).
    #[arg(long, default_value = "4G", value_parser = size)]
    pub size: u64,
    /// Small files, of 16 KiB each.
    #[arg(long, default_value_t = 20_000)]
    pub files: u32,
    /// What is done: big, tree, change.
    #[arg(long, value_delimiter = ',', default_value = "big,tree,change")]
    pub jobs: Vec<String>,
    /// Programs: dsync, rsync, rsync-x4 (several in parallel), scp, rclone.
    #[arg(long, value_delimiter = ',', default_value = "dsync,rsync,rsync-x4,scp,rclone")]
    pub peers: Vec<String>,
    /// Rounds; every round runs every program at every point.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds after which a turn is abandoned.
    #[arg(long, default_value_t = 900)]
    pub most: u64,
    /// How often a turn is repeated if the bridge condemns it each time.
    #[arg(long, default_value_t = 3)]
    pub attempts: usize,
    /// A folder with Debian packages unpacked in it (`bench/unpack-peers`); programs that it lacks
    /// are looked for on the machine.
    #[arg(long)]
    pub unpacked: Option<PathBuf>,
    /// Continues with the figures in the file of `--out` of earlier runs on this machine with the
    /// same settings, and measures the missing ones.
    #[arg(long)]
    pub go_on: bool,
    /// Where the page with the charts is written.
    #[arg(long)]
    pub html: Option<PathBuf>,
}

fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K') => (text.trim_end_matches('K'), 10),
        Some(b'M') => (text.trim_end_matches('M'), 20),
        Some(b'G') => (text.trim_end_matches('G'), 30),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is no size, as 64M"))?;
    number.checked_shl(shift).filter(|size| size >> shift == number).ok_or("too large".to_owned())
}

/// A row of the table: point and job by their index in the lists, and program.
type Row = (usize, Job, &'static str);

/// Why there is no figure.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Gap {
    why: String,
    /// The program has been run and did not finish in time, so it is not run over a longer or worse
    /// link.
    late: bool,
}

/// The results.
struct Outcome {
    /// Those that are measured, and then those of earlier runs only.
    points: Vec<Point>,
    jobs: Vec<Job>,
    /// Good turns; those that the bridge condemned each time too, which are marked.
    rows: BTreeMap<Row, Vec<Figure>>,
    /// Why a program has no figures there.
    gaps: BTreeMap<Row, Gap>,
    /// Turns that were condemned and measured again.
    condemned: usize,
    /// The link's rate in bits per second.
    rate: f64,
    /// Bytes of each job.
    bytes: BTreeMap<Job, u64>,
    /// Names and versions, in the order of the tables.
    programs: Vec<(&'static str, String)>,
    /// Further information: settings, versions, CPU time taken by the host.
    notes: Vec<(&'static str, String)>,
}

impl Outcome {
    /// The order of all points in tables and charts: by link, then by round trip.
    fn in_order(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.points.iter().enumerate().collect();
        all.sort_by(|(_, one), (_, other)| {
            one.kind.cmp(&other.kind).then(one.rtt_ms.total_cmp(&other.rtt_ms))
        });
        all.into_iter().map(|(n, _)| n).collect()
    }
}

/// Runs and prints the comparison.
///
/// # Errors
/// Something that all need is missing; a program that fails is a gap in the table.
pub fn run(cli: &Cli, wanted: &Wanted) -> io::Result<()> {
    if wanted.go_on && cli.out.is_none() {
        return Err(io::Error::other("--go-on needs --out, a file that has what was measured"));
    }
    leftovers::sweep(&cli.scratch);
    leftovers::watch(&cli.scratch)?;
    let base = leftovers::folder(&cli.scratch, std::process::id());
    let programs = Programs::new(wanted.unpacked.as_deref());
    let (peers, missing) = peers::find(&wanted.peers, &cli.binary, &programs)?;
    for name in missing {
        eprintln!("bench: {name} is not installed and has no figures");
    }
    let data = Data::make(&base, wanted.size, wanted.files)?;
    let networks = Networks::make()?;
    let far = Far::start(&base, &networks, &programs)?;
    let mut outcome = prepared(wanted, &data, &peers, &networks)?;
    outcome.notes.push(("ssh", far.version.clone()));
    let plimsoll = cli.binary.canonicalize()?;
    let most = Duration::from_secs(wanted.most);
    let (rate, plimsoll) = (wanted.rate.as_str(), plimsoll.as_path());
    let scene = Scene { networks: &networks, far: &far, data: &data, plimsoll, rate, most };
    let (points, jobs) = (outcome.points.len(), outcome.jobs.clone());
    if let Some(out) = cli.out.as_deref().filter(|_| wanted.go_on) {
        record::resume(out, wanted, &mut outcome)?;
    }
    for round in 0..wanted.rounds {
        for n in 0..points {
            for job in &jobs {
                turns((n, *job, round), (&scene, wanted.attempts), &peers, &mut outcome)?;
                // A whole run takes hours, and its results so far are worth saving.
                write(cli, wanted, &outcome)?;
            }
        }
    }
    table::print(&outcome);
    write(cli, wanted, &outcome)
}

fn prepared(
    wanted: &Wanted,
    data: &Data,
    peers: &[Peer],
    networks: &Networks,
) -> io::Result<Outcome> {
    let unknown = |what: &str| io::Error::other(format!("{what}: not one of those"));
    let named = |all: &[&str], given: &[String]| -> io::Result<Vec<usize>> {
        given.iter().map(|g| all.iter().position(|n| n == g).ok_or_else(|| unknown(g))).collect()
    };
    named(&peers::NAMES, &wanted.peers)?;
    let kinds = named(&Kind::ALL.map(Kind::name), &wanted.link)?;
    let jobs = named(&Job::ALL.map(Job::name), &wanted.jobs)?;
    let jobs: Vec<Job> = jobs.into_iter().filter_map(|n| Job::ALL.get(n).copied()).collect();
    let kinds = kinds.into_iter().filter_map(|n| Kind::ALL.get(n).copied());
    let points =
        kinds.flat_map(|kind| wanted.rtt.iter().map(move |&rtt_ms| Point { rtt_ms, kind }));
    let mut shapes = Shapes::default();
    shapes.change(&[format!("rate={}", wanted.rate)]).map_err(io::Error::other)?;
    let settings = ["net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
    let settings = settings.map(|name| (name, networks.setting(name).replace('\t', " ")));
    Ok(Outcome {
        points: points.collect(),
        bytes: jobs.iter().map(|job| (*job, data.bytes(*job))).collect(),
        jobs,
        rows: BTreeMap::new(),
        gaps: BTreeMap::new(),
        condemned: 0,
        rate: shapes.forth.rate.unwrap_or(u64::MAX) as f64,
        programs: peers.iter().map(|peer| (peer.name, peer.version.clone())).collect(),
        notes: settings.to_vec(),
    })
}

/// All programs at a point, with a job; in each round another one is the first.
///
/// # Errors
/// The run was requested to end; a failure of a program is a gap.
fn turns(
    (n, job, round): (usize, Job, usize),
    (scene, attempts): (&Scene, usize),
    peers: &[Peer],
    outcome: &mut Outcome,
) -> io::Result<()> {
    let Some(point) = outcome.points.get(n).cloned() else { return Ok(()) };
    let mut order: Vec<&Peer> = peers.iter().collect();
    if !order.is_empty() {
        let first = round % order.len();
        order.rotate_left(first);
    }
    for peer in order {
        let row = (n, job, peer.name);
        let has = outcome.rows.get(&row).map_or(0, Vec::len);
        if has > round || outcome.gaps.contains_key(&row) {
            continue;
        }
        if let Some(gap) = hopeless(outcome, &row) {
            outcome.gaps.insert(row, gap);
            continue;
        }
        let at =
            format!("{} ms, {}, {}, {}", point.rtt_ms, point.kind.name(), job.name(), peer.name);
        let figure = until_good((scene, attempts), (&point, peer, job), &mut outcome.condemned);
        // The outcome of an aborted turn does not matter.
        leftovers::ended()?;
        match figure {
            Ok(figure) => {
                eprintln!("bench: {at}: {:.3} s{}", figure.seconds, late(&figure));
                outcome.rows.entry(row).or_default().push(figure);
            }
            Err(why) => {
                eprintln!("bench: {at}: given up: {why}");
                // Half of the rounds would be no comparison.
                outcome.rows.remove(&row);
                let late = why.kind() == io::ErrorKind::TimedOut;
                outcome.gaps.insert(row, Gap { why: why.to_string(), late });
            }
        }
    }
    Ok(())
}

/// Rows that are not started: the program did not finish in time over a link that is no longer and
/// no worse.
fn hopeless(outcome: &Outcome, (n, job, program): &Row) -> Option<Gap> {
    let here = outcome.points.get(*n)?;
    let better = |point: &Point| {
        point.rtt_ms <= here.rtt_ms && (point.kind == Kind::Plain || point.kind == here.kind)
    };
    let late =
        outcome.gaps.iter().filter(|((_, of, name), gap)| of == job && name == program && gap.late);
    let mut places = late.filter_map(|((m, ..), gap)| Some((outcome.points.get(*m)?, gap)));
    let (point, gap) = places.find(|(point, _)| better(point))?;
    let why = format!("{} over {} ms, {}", gap.why, point.rtt_ms, point.kind.name());
    Some(Gap { why, late: false })
}

fn late(figure: &Figure) -> String {
    match figure.spoiled.first() {
        Some(why) => format!(" (condemned: {why})"),
        None => String::new(),
    }
}

/// A turn that the bridge has not spoiled, or the last attempt.
fn until_good(
    (scene, attempts): (&Scene, usize),
    (point, peer, job): (&Point, &Peer, Job),
    condemned: &mut usize,
) -> io::Result<Figure> {
    let mut figure = scene.turn(point, peer, job)?;
    for _ in 1..attempts {
        if figure.spoiled.is_empty() {
            break;
        }
        leftovers::ended()?;
        *condemned += 1;
        figure = scene.turn(point, peer, job)?;
    }
    Ok(figure)
}

fn write(cli: &Cli, wanted: &Wanted, outcome: &Outcome) -> io::Result<()> {
    if let Some(out) = &cli.out {
        std::fs::write(out, serde_json::to_string_pretty(&record::as_json(wanted, outcome))?)?;
    }
    if let Some(html) = &wanted.html {
        std::fs::write(html, chart::page(outcome))?;
    }
    Ok(())
}
