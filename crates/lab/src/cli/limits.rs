//! `plimsoll lab limits`: the Performance Limit Summary, a column for each target.

use super::make::{self, Retry};
use super::{
    Common, EXIT_DEGRADED, Outcome, end_with_stdin, folder_name, own_words, print_line, print_text,
    usage,
};
use crate::archive::request::Kind;
use crate::job::{Job, SUMMARY};
use crate::limits::{self, Cell, ColumnPlan, Summary};
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct LimitsArgs {
    /// Target URL, for example nfs3://host:port/export/x; repeatable, a column each. NAME=URL names
    /// the column. Schemes: nfs3, nfs3+rdma, nfs4; ftp, ftps, sftp, http, https, webdav, webdavs, smb
    /// (user@host:port/share); iscsi; path:/dir; null:. A single nfs3 target is also measured over
    /// RDMA if this machine has a device
    #[arg(long = "target", value_name = "URL", required = true)]
    targets: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// Run only these rows: job names, comma-separated
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    rows: Vec<String>,
    /// All rows and columns in less than four minutes: shorter steps, smaller files
    #[arg(long)]
    quick: bool,
    /// Work in this folder of each target, created if it is missing [default: a name made of the
    /// target]
    #[arg(long, value_name = "NAME")]
    scratch: Option<String>,
    /// Exit when standard input is closed
    #[arg(long)]
    while_stdin: bool,
    #[command(flatten)]
    retry: Retry,
}

/// The columns of these targets.
pub(super) fn columns(
    targets: &[String],
    common: &Common,
    scratch: Option<&str>,
    words: &[String],
) -> Result<Vec<ColumnPlan>, Box<dyn Error>> {
    let pids = &common.local.server_pids;
    let each = pids.len() == targets.len();
    let all = limits::columns(targets, |n, url| {
        let mut options = common.options(url, words.to_vec())?;
        // One process for several targets is the server of none in particular.
        options.server_pid = pids.get(n).copied().filter(|_| each);
        options.scratch = scratch.map(str::to_owned);
        Ok::<_, Box<dyn Error>>(options)
    })?;
    Ok(limits::with_rdma(all, limits::no_rdma))
}

/// Runs the command. Exit codes: 0 done, 1 nothing was measured, 2 wrong usage, 3 a cell was not
/// measured, disturbed or not steady.
pub(super) fn limits(args: &LimitsArgs) -> Outcome {
    let common = &args.common;
    let names: Vec<String> = if args.rows.is_empty() {
        SUMMARY.iter().map(|name| (*name).to_owned()).collect()
    } else {
        args.rows.clone()
    };
    let jobs: Result<Vec<Job>, _> =
        names.iter().map(|name| Job::load(name, &common.settings)).collect();
    let jobs = match jobs {
        Ok(jobs) => jobs,
        Err(error) => return Ok(usage(&error)),
    };
    let scratch = args.scratch.as_deref().map(folder_name).transpose()?;
    if args.while_stdin {
        end_with_stdin();
    }
    let columns = columns(&args.targets, common, scratch.as_deref(), &own_words())?;
    let asked = columns.iter().map(ColumnPlan::asked).collect();
    let mut request = common.request(Kind::Limits, asked, jobs, own_words());
    (request.retries, request.quick) = (args.retry.retries, args.quick);
    let (summary, _) = make::limits(&request, columns, common, &common.out)?;
    show(&summary, common, &common.out)?;
    Ok(exit(&summary))
}

/// Prints a summary.
pub(super) fn show(summary: &Summary, common: &Common, out: &Path) -> Result<(), Box<dyn Error>> {
    if common.json {
        print_line(&serde_json::to_string(summary)?)?;
    } else {
        print_text(&visible_lines(&summary.text()))?;
        print_line(&format!("report: {}", out.join("index.html").display()))?;
    }
    Ok(())
}

/// By what was measured.
pub(super) fn exit(summary: &Summary) -> ExitCode {
    for (row, column, cell) in summary.cells().filter(|(_, _, cell)| is_doubtful(cell)) {
        let why = if cell.failed { std::slice::from_ref(&cell.text) } else { &cell.doubts };
        for what in why {
            note(&format!("{}, {}: {}", row.job, column.name, visible(what)));
        }
    }
    if !summary.cells().any(|(_, _, cell)| cell.value.is_some()) {
        ExitCode::FAILURE
    } else if summary.cells().any(|(_, _, cell)| is_doubtful(cell)) {
        ExitCode::from(EXIT_DEGRADED)
    } else {
        ExitCode::SUCCESS
    }
}

fn is_doubtful(cell: &Cell) -> bool {
    cell.failed || !cell.doubts.is_empty()
}
