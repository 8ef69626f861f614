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
use crate::suite::request::{Name, SuiteRequest};
use crate::suite::rows::{self, THREADS};
use crate::suite::{self, Plan};
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use std::process::ExitCode;

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
    /// Exit when standard input is closed
    #[arg(long)]
    while_stdin: bool,
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
    let asked = SuiteRequest {
        quick: args.quick,
        sizes: args.sizes.clone(),
        threads: args.threads.clone(),
        size: args.file_size,
        settings: args.suite.common.settings.clone(),
        ..SuiteRequest::new(Name::Seqread)
    };
    run(&asked, &args.suite)
}

/// Runs `filebench-suite`.
pub(super) fn filebench(args: &FilebenchArgs) -> Outcome {
    let asked = SuiteRequest {
        quick: args.quick,
        rows: args.rows.clone(),
        size: args.set_size,
        seconds: [args.seconds, args.write_seconds],
        settings: args.suite.common.settings.clone(),
        ..SuiteRequest::new(Name::FilebenchSuite)
    };
    run(&asked, &args.suite)
}

/// Clients of this machine, or agents.
fn clients(common: &Common) -> u32 {
    match common.remote.number() {
        0 => common.clients.max(1),
        agents => agents,
    }
}

fn run(asked: &SuiteRequest, args: &SuiteArgs) -> Outcome {
    let (common, name) = (&args.common, asked.name.text());
    let (rows, scale) = match asked.rows(clients(common)) {
        Ok(planned) => planned,
        Err(error) => return Ok(usage(&error)),
    };
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
    if args.while_stdin {
        super::end_with_stdin();
    }
    let options = common.options(&args.target, own_words())?;
    let targets = vec![NamedTarget { name: name.to_owned(), url: target.to_string() }];
    let jobs = rows.iter().map(|row| row.job.clone()).collect();
    let mut request = common.request(Kind::Run, targets, jobs, own_words());
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
