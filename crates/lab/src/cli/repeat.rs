//! `plimsoll lab repeat`: an archive's run once more, with the same seeds in the same order, and
//! how it differs.

mod loads;

use super::ab::{self, Compared};
use super::agents::RemoteArgs;
use super::local_server::LocalServerArgs;
use super::{
    Common, EXIT_DEGRADED, Outcome, exit, limits, make, own_words, print_line, print_text,
};
use crate::ab::record::{AbResult, folder};
use crate::ab::{NextRun, Side};
use crate::archive;
use crate::archive::request::{Kind, NamedTarget, Request};
use crate::client::Target;
use crate::job::Job;
use crate::limits::summary::{Cell, Column, Row, Summary};
use crate::operations::Common as CommonOperations;
use crate::record::RunResult;
use crate::report::{self, Comparison};
use base::limits::LAB_ROUNDS_MAX;
use base::out::note;
use base::text::visible_lines;
use clap::Args;
use serde::Serialize;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(mut_arg("server_socket", |socket| socket.help(SERVER_SOCKET)))]
pub(super) struct RepeatArgs {
    /// Directory of the result. Its checksums are verified first
    archive: PathBuf,
    /// Target URL in place of the recorded one; of a summary all of them, in the order of its
    /// columns, of a comparison both
    #[arg(long = "target", value_name = "URL")]
    targets: Vec<String>,
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = times())]
    times: u32,
    /// Directory for results; several runs are in 001, 002 and so on below it
    #[arg(long, value_name = "DIR", default_value = "lab-repeat")]
    out: PathBuf,
    /// Number of client processes on this machine [default: as recorded]
    #[arg(long, value_name = "N")]
    clients: Option<u32>,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    local: LocalServerArgs,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
}

/// Help of the option that has another default here than in other commands.
const SERVER_SOCKET: &str = "Local socket of the server, STATE/plimsoll.sock, to record its \
                             statistics [default: as recorded]";

fn times() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(LAB_ROUNDS_MAX))
}

/// The outcome.
#[derive(Debug, Serialize)]
struct Repeated {
    /// Whether the operations were the same, for each repeat.
    operations: Vec<Option<CommonOperations>>,
    /// The recorded run next to the repeats.
    comparison: Option<Comparison>,
}

/// Runs the command. Exit codes: 0 done, 1 the archive was changed or a run failed, 2 wrong usage,
/// 3 a run is degraded or the operations are not the same.
pub(super) fn repeat(args: &RepeatArgs) -> Outcome {
    let mut request = archive::open(&args.archive)?;
    let common = args.common(&request);
    let inside = std::path::absolute(&args.out)?.starts_with(std::path::absolute(&args.archive)?);
    if inside {
        return Err("--out is in the archive: results there would change it".into());
    }
    if let Some(suite) = &request.suite {
        return Err(format!("repeat it with `plimsoll lab {suite}` and another --out").into());
    }
    request.command = own_words();
    (request.clients, request.agents) = (common.clients, common.remote.agents().to_vec());
    request.server_socket.clone_from(&common.local.server_socket);
    request.server = common.remote.server.api()?;
    match request.kind {
        Kind::Run => run(args, &request, &common),
        Kind::Limits => summary(args, &request, &common),
        Kind::Ab => repeat_ab(args, &request, &common),
        Kind::Program => loads::program(args, &request, &common),
        Kind::Iozone => loads::iozone(args, &request, &common),
        Kind::Net | Kind::Suite => {
            Err("this result has no archive to repeat: run its command again".into())
        }
    }
}

impl RepeatArgs {
    /// What is common to all commands, from the archive and what was given instead.
    fn common(&self, request: &Request) -> Common {
        let agents = match (self.remote.is_used(), self.clients) {
            (false, None) => request.agents.clone(),
            _ => self.remote.agents().to_vec(),
        };
        let mut local = self.local.clone();
        if !self.remote.server.is_given() {
            local.server_socket = local.server_socket.or_else(|| request.server_socket.clone());
        }
        Common {
            clients: self.clients.unwrap_or(request.clients),
            remote: self.remote.with(agents),
            settings: Vec::new(),
            out: self.out.clone(),
            local,
            clean: request.clean,
            prove: None,
            no_bind: !request.bind,
            subnets: request.subnets(),
            json: self.json,
            quiet: self.quiet,
            progress: None,
        }
    }

    /// Where a repeat is kept.
    fn place(&self, n: u32) -> PathBuf {
        if self.times > 1 { self.out.join(format!("{:03}", n + 1)) } else { self.out.clone() }
    }
}

/// The exit code of several runs: one that failed counts more than one that is degraded, in any
/// order.
fn worse(before: ExitCode, now: ExitCode) -> ExitCode {
    if before == ExitCode::FAILURE || now == ExitCode::SUCCESS { before } else { now }
}

fn run(args: &RepeatArgs, request: &Request, common: &Common) -> Outcome {
    let mut request = request.clone();
    let url = match args.targets.as_slice() {
        [] => request.targets.first().map(|asked| asked.url.clone()).unwrap_or_default(),
        [one] => one.clone(),
        _ => return Err("this result has one target".into()),
    };
    let mut options = common.options(&url, own_words())?;
    options.scratch.clone_from(&request.scratch);
    request.targets.iter_mut().for_each(|asked| asked.url = options.target.to_string());
    let recorded = [RunResult::read(&args.archive)?];
    let mut runs = Vec::new();
    for n in 0..args.times {
        runs.push(make::run(&request, &options, common, &args.place(n))?);
    }
    let operations: Vec<_> =
        runs.iter().map(|run| recorded[0].operations.common(&run.operations)).collect();
    let comparison = report::compare(&recorded, &runs);
    let same = operations.iter().all(|common| common.is_none_or(|common| common.same));
    show(&Repeated { operations, comparison }, common)?;
    let code = exit(&runs.iter().collect::<Vec<_>>());
    Ok(if same || code != ExitCode::SUCCESS { code } else { ExitCode::from(EXIT_DEGRADED) })
}

fn show(found: &Repeated, common: &Common) -> Result<(), Box<dyn Error>> {
    if common.json {
        return print_line(&serde_json::to_string(found)?);
    }
    let mut text = found.comparison.as_ref().map(Comparison::text).unwrap_or_default();
    for common in &found.operations {
        let sentence =
            common.map_or("no hash of operations to compare".to_owned(), |c| c.sentence());
        text += &format!("{sentence}\n");
    }
    print_text(&visible_lines(&text))
}

fn summary(args: &RepeatArgs, request: &Request, common: &Common) -> Outcome {
    let mut request = request.clone();
    if !args.targets.is_empty() && args.targets.len() != request.targets.len() {
        let n = request.targets.len();
        return Err(format!("this summary has {n} columns: give as many targets").into());
    }
    for (asked, url) in request.targets.iter_mut().zip(&args.targets) {
        asked.url.clone_from(url);
    }
    let urls: Vec<String> =
        request.targets.iter().map(|asked| format!("{}={}", asked.name, asked.url)).collect();
    let recorded = Summary::read(&args.archive)?;
    let mut code = ExitCode::SUCCESS;
    for n in 0..args.times {
        let columns = limits::columns(&urls, common, None, &own_words())?;
        request.targets = columns.iter().map(|column| column.asked()).collect();
        let out = args.place(n);
        let (summary, _) = make::limits(&request, columns, common, &out)?;
        let change = report::compare_summaries(&recorded, &summary);
        if common.json {
            print_line(&serde_json::to_string(&change)?)?;
        } else {
            print_text(&visible_lines(&change.text()))?;
            print_line(&format!("report: {}", out.join("index.html").display()))?;
        }
        code = worse(code, limits::exit(&summary));
        for different in different([&args.archive, &out], &recorded) {
            note(&different);
            code = worse(code, ExitCode::from(EXIT_DEGRADED));
        }
    }
    Ok(code)
}

/// Cells with operations that are not the same in both directories. Columns keep their names,
/// whatever their targets are.
fn different(dirs: [&Path; 2], recorded: &Summary) -> Vec<String> {
    let of = |(row, column, cell): (&Row, &Column, &Cell)| {
        let below = Path::new(cell.report.as_ref()?).parent()?;
        let [before, now] = dirs.map(|dir| RunResult::read(&dir.join(below)).ok());
        let common = before?.operations.common(&now?.operations)?;
        (!common.same).then(|| format!("{}, {}: {}", row.job, column.name, common.sentence()))
    };
    recorded.cells().filter_map(of).collect()
}

/// The outcome of a comparison that was repeated.
#[derive(Debug, Serialize)]
struct RepeatedAb {
    recorded: AbResult,
    repeats: Vec<AbResult>,
    /// Whether the operations of each row and side were the same, for each repeat.
    operations: Vec<Option<CommonOperations>>,
}

/// What the first runs of each row and side have in common.
fn operations_of(archive: &Path, out: &Path, jobs: &[Job]) -> Vec<Option<CommonOperations>> {
    let sides = jobs.iter().flat_map(|job| [Side::A, Side::B].map(|side| (job, side)));
    let common = |(job, side): (&Job, Side)| {
        let first = folder(&job.name, NextRun { row: 0, round: 0, side, attempt: 0 });
        let [recorded, repeated] = [archive, out].map(|dir| RunResult::read(&dir.join(&first)));
        recorded.ok()?.operations.common(&repeated.ok()?.operations)
    };
    sides.map(common).collect()
}

fn repeat_ab(args: &RepeatArgs, request: &Request, common: &Common) -> Outcome {
    let mut request = request.clone();
    let builds = request.ab.as_ref().map(|ab| ab.builds.clone()).unwrap_or_default();
    let sides: Vec<Compared> = match (args.targets.as_slice(), builds.is_empty()) {
        ([], false) => builds.into_iter().map(Compared::Build).collect(),
        (_, false) => return Err("this comparison is of builds: it takes no --target".into()),
        (given, true) => {
            let n = given.len();
            if n != 0 && n != request.targets.len() {
                return Err("this comparison has two targets: give both or none".into());
            }
            for (asked, url) in request.targets.iter_mut().zip(given) {
                asked.url.clone_from(url);
            }
            let target = |asked: &NamedTarget| Target::parse(&asked.url).map(Compared::Target);
            request.targets.iter().map(target).collect::<Result<_, _>>()?
        }
    };
    let sides: [Compared; 2] = sides.try_into().map_err(|_| "a comparison has two sides")?;
    for (asked, side) in request.targets.iter_mut().zip(&sides) {
        // Without a password.
        asked.url = side.name();
    }
    let recorded = AbResult::read(&args.archive)?;
    let (mut repeats, mut operations, mut code) = (Vec::new(), Vec::new(), ExitCode::SUCCESS);
    for n in 0..args.times {
        let result = ab::made(&request, &sides, common, &args.place(n))?;
        code = worse(code, ab::exit(&result));
        repeats.push(result);
        operations.extend(operations_of(&args.archive, &args.place(n), &request.jobs));
    }
    let same = operations.iter().flatten().all(|common| common.same);
    if !same {
        code = worse(code, ExitCode::from(EXIT_DEGRADED));
    }
    if common.json {
        let found = RepeatedAb { recorded, repeats, operations };
        print_line(&serde_json::to_string(&found)?)?;
        return Ok(code);
    }
    let all = std::iter::once(("recorded", &recorded)).chain(repeats.iter().map(|r| ("repeat", r)));
    for (which, result) in all {
        print_text(&visible_lines(&format!("{which}\n{}\n", result.text())))?;
    }
    for common in operations {
        print_line(
            &common.map_or("no hash of operations to compare".to_owned(), |c| c.sentence()),
        )?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests;
