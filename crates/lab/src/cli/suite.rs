//! `plimsoll lab seqread` and `plimsoll lab filebench-suite`.

use super::sizes::some_size;
use super::{
    Common, EXIT_DEGRADED, Outcome, folder_name, own_words, print_line, print_text, usage,
};
use crate::ab::REPEATS;
use crate::archive::request::{Kind, NamedTarget};
use crate::client::{Target, unsupported};
use crate::job::JobError;
use crate::suite::record::State;
use crate::suite::rows::{self, FilebenchScale, RowPlan, SIZES, SeqreadScale, THREADS};
use crate::suite::{self, Plan};
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use std::process::ExitCode;

/// File of a thread in a quick run, bytes.
const QUICK_FILE: u64 = 1 << 20;
/// Set of a client in a quick run, bytes.
const QUICK_SET: u64 = 5 << 20;

/// What both suites share.
#[derive(Debug, Args)]
struct SuiteArgs {
    /// Target URL, for example nfs4://host:port/export/x. Schemes: nfs3, nfs3+rdma, nfs4; ftp,
    /// ftps, sftp, http, https, webdav, webdavs, smb (user@host:port/share); path:/dir; null:
    #[arg(long, value_name = "URL")]
    target: String,
    #[command(flatten)]
    common: Common,
    /// First part of the names of the folders on the target [default: a name made of the target]
    #[arg(long, value_name = "NAME")]
    scratch: Option<String>,
    /// Maximum repeats of a row in which other processes used 15 % of the CPU or more
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=i64::from(REPEATS)))]
    retries: u32,
}

/// Options of `seqread`.
#[derive(Debug, Args)]
pub(super) struct SeqreadArgs {
    #[command(flatten)]
    suite: SuiteArgs,
    /// Block sizes from 1 to 1m, comma-separated [default: 1,1k,4k,16k,64k,256k,1m]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = some_size)]
    sizes: Vec<u64>,
    /// Threads of each client, comma-separated; each reads a file of its own at its own position
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = THREADS)]
    threads: Vec<u32>,
    /// Size of each thread's file [default: 8m; with --quick 1m]
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    file_size: Option<u64>,
    /// Steps of half a second, smaller files
    #[arg(long)]
    quick: bool,
}

/// Options of `filebench-suite`.
#[derive(Debug, Args)]
pub(super) struct FilebenchArgs {
    #[command(flatten)]
    suite: SuiteArgs,
    /// Run only these rows: names, comma-separated
    #[arg(long, value_name = "ROW", value_delimiter = ',')]
    rows: Vec<String>,
    /// Size of a set of files of each client; the source had 20g [default: 160m; with --quick 5m]
    #[arg(long, value_name = "SIZE", value_parser = some_size)]
    set_size: Option<u64>,
    /// Time of each row that reads or creates files
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    #[arg(default_value_t = rows::SOURCE_SECONDS[0])]
    seconds: u32,
    /// Time of each row that writes
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    #[arg(default_value_t = rows::SOURCE_SECONDS[1])]
    write_seconds: u32,
    /// All rows in less than 60 s: rows of half a second, smaller sets
    #[arg(long)]
    quick: bool,
}

fn seconds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=3_600)
}

/// Runs `seqread`.
pub(super) fn seqread(args: &SeqreadArgs) -> Outcome {
    let common = &args.suite.common;
    let largest = args.sizes.iter().copied().max().unwrap_or(0).max(1);
    if largest > u64::from(base::limits::IO_SIZE_MAX) {
        let why = "the sizes are from 1 to 1m".to_owned();
        return Ok(usage(&JobError::Form("seqread".to_owned(), why)));
    }
    let scale = SeqreadScale {
        sizes: if args.sizes.is_empty() { SIZES.to_vec() } else { args.sizes.clone() },
        threads: args.threads.clone(),
        clients: clients(common),
        file_size: args.file_size.unwrap_or(if args.quick { QUICK_FILE } else { 8 << 20 }),
        quick: args.quick,
    };
    let sentence = format!(
        "scale: {} clients (source: 8), a file of {} for each thread; source: 56,378 reads of 4 KB \
         per second at 8 × 5 threads, over two subnets",
        scale.clients,
        base::units::bytes(scale.file_size as f64),
    );
    match rows::seqread(&scale, &common.settings) {
        Ok(rows) => run("seqread", rows, sentence, &args.suite),
        Err(error) => Ok(usage(&error)),
    }
}

/// Runs `filebench-suite`.
pub(super) fn filebench(args: &FilebenchArgs) -> Outcome {
    let common = &args.suite.common;
    let scale = FilebenchScale {
        clients: clients(common),
        set: args.set_size.unwrap_or(if args.quick { QUICK_SET } else { 160 << 20 }),
        seconds: [args.seconds, args.write_seconds],
        quick: args.quick,
    };
    match rows::filebench(&scale, &args.rows, &common.settings) {
        Ok(rows) => run("filebench-suite", rows, scale.sentence(), &args.suite),
        Err(error) => Ok(usage(&error)),
    }
}

/// Clients of this machine, or agents.
fn clients(common: &Common) -> u32 {
    match common.remote.number() {
        0 => common.clients.max(1),
        agents => agents,
    }
}

fn run(name: &str, rows: Vec<RowPlan>, scale: String, args: &SuiteArgs) -> Outcome {
    let common = &args.common;
    let wrong = |why: &str| Ok(usage(&JobError::Form(name.to_owned(), why.to_owned())));
    if common.prove.is_some() {
        return wrong("--prove is an option of run and limits");
    }
    let target = match Target::parse(&args.target) {
        Ok(target) => target,
        Err(error) => return Ok(usage(&error)),
    };
    if let Some(why) = rows.iter().find_map(|row| unsupported(&target, &row.job.shape())) {
        return wrong(&why);
    }
    let folder = args.scratch.as_deref().map(folder_name).transpose()?;
    let options = common.options(&args.target, own_words())?;
    let asked = vec![NamedTarget { name: name.to_owned(), url: target.to_string() }];
    let jobs = rows.iter().map(|row| row.job.clone()).collect();
    let mut request = common.request(Kind::Run, asked, jobs, own_words());
    (request.retries, request.suite) = (args.retries, Some(name.to_owned()));
    let plan = Plan {
        suite: name.to_owned(),
        rows,
        options,
        folder,
        scale,
        retries: args.retries,
        clean: common.clean,
    };
    let (suite, archive, results) = suite::run(&plan, &common.out, &mut common.progress())?;
    archive.seal(&request, &results.iter().collect::<Vec<_>>())?;
    if common.json {
        print_line(&serde_json::to_string(&suite)?)?;
    } else {
        print_text(&visible_lines(&suite.text()))?;
        print_line(&format!("report: {}", common.out.join("index.html").display()))?;
    }
    let doubts = suite.doubts();
    for what in &doubts {
        note(&format!("{name}: {}", visible(what)));
    }
    Ok(if suite.rows.iter().all(|row| row.state != State::Done) {
        ExitCode::FAILURE
    } else if !doubts.is_empty() || !suite.is_complete() {
        ExitCode::from(EXIT_DEGRADED)
    } else {
        ExitCode::SUCCESS
    })
}
