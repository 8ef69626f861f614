//! `plimsoll lab ab`: two targets or two builds, run after run in the order A B B A.

mod serve;

use super::{
    Common, Outcome, end_with_stdin, folder_name, own_words, print_line, print_text, rounds, usage,
};
use crate::ab::record::{AbResult, folder, sample};
use crate::ab::{NextRun, Rule, Session, Side};
use crate::archive::Archive;
use crate::archive::request::{AbRequest, Kind, NamedTarget, Request};
use crate::cli::exit::EXIT_DEGRADED;
use crate::client::Target;
use crate::conduct::{self, line};
use crate::job::Job;
use crate::limits::keep_own_api;
use crate::record::RunResult;
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use serve::Served;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct AbArgs {
    /// Job names (see `lab list`) or TOML files, comma-separated: a row each
    #[arg(value_name = "JOB", value_delimiter = ',', required = true)]
    jobs: Vec<String>,
    /// Target URL, twice: A, then B. See `lab run --help` for schemes
    #[arg(long = "target", value_name = "URL", required_unless_present = "builds")]
    targets: Vec<String>,
    /// Program to compare, twice: A, then B. Each run starts it as a server on a scratch share, and
    /// stops it
    #[arg(long = "serve", id = "builds", value_name = "PROGRAM", conflicts_with = "targets")]
    builds: Vec<PathBuf>,
    /// Protocol of these servers
    #[arg(long, value_name = "NAME", default_value = "nfs3", value_parser = ["nfs3", "nfs4"])]
    protocol: String,
    /// End a row when the 95 % interval of its ratio is narrower than this
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    to: f64,
    /// Maximum number of rounds, each a run of A and a run of B
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = rounds())]
    rounds: u32,
    /// For each run create this folder on its target, work inside it, and remove it afterwards
    #[arg(long, value_name = "NAME", conflicts_with = "builds")]
    scratch: Option<String>,
    /// Exit when standard input is closed
    #[arg(long)]
    while_stdin: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs the command. Exit codes: 0 done, 1 a run or operations of it failed, 2 wrong usage, 3 a row
/// was disturbed to the last.
pub(super) fn ab(args: &AbArgs) -> Outcome {
    let common = &args.common;
    let jobs: Result<Vec<Job>, _> =
        args.jobs.iter().map(|name| Job::load(name, &common.settings)).collect();
    let jobs = match jobs {
        Ok(jobs) => jobs,
        Err(error) => return Ok(usage(&error)),
    };
    let sides = args.sides()?;
    let scratch = args.scratch.as_deref().map(folder_name).transpose()?;
    if args.while_stdin {
        end_with_stdin();
    }
    let rule = Rule { to: args.to / 100.0, rounds: args.rounds };
    let mut request = common.request(Kind::Ab, Vec::new(), jobs, own_words());
    let mut asked = AbRequest { rule, builds: Vec::new(), protocol: args.protocol.clone() };
    for (side, name) in sides.iter().zip(["A", "B"]) {
        match side {
            Compared::Build(program) => asked.builds.push(std::path::absolute(program)?),
            Compared::Target(target) => {
                request.targets.push(NamedTarget { name: name.into(), url: target.to_string() });
            }
        }
    }
    (request.ab, request.scratch) = (Some(asked), scratch);
    let result = made(&request, &sides, common, &common.out)?;
    if common.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&visible_lines(&result.text()))?;
        print_line(&format!("result: {}", common.out.join("result.json").display()))?;
    }
    Ok(exit(&result))
}

/// Makes the comparison of a request into an archive.
///
/// # Errors
/// There are no agents, a build does not serve, or nothing can be written.
pub(super) fn made(
    request: &Request,
    sides: &[Compared; 2],
    common: &Common,
    out: &Path,
) -> Result<AbResult, Box<dyn Error>> {
    let asked = request.ab.as_ref().ok_or("the request is of no comparison")?;
    let names: Vec<String> = request.jobs.iter().map(|job| job.name.clone()).collect();
    let targets = sides.each_ref().map(Compared::name);
    let mut result = AbResult::new(targets, asked.rule, request.command.clone());
    let mut session = Session::new(&names, asked.rule);
    let mut archive = Archive::begin(out)?;
    // For the machines and the server's own data: the first runs of each side, and the last run.
    let mut ends: Vec<RunResult> = Vec::new();
    while let Some(next) = session.next_run() {
        let job = &request.jobs[next.row];
        let side = usize::from(next.side == Side::B);
        line(&mut common.progress(), announced(&job.name, next, asked.rule));
        let run = one(&sides[side], job, (request, asked), common)?;
        archive.put_run(&folder(&job.name, next).display().to_string(), &run)?;
        if let Some(why) = run.incomparable() {
            result.failed = Some(format!("{}: {why}", result.targets[side]));
            break;
        }
        session.record(sample(&run));
        result.take(&session);
        archive.put("result.json", &result.json()?)?;
        ends.truncate(2);
        ends.push(run);
    }
    archive.put("result.json", &result.json()?)?;
    archive.seal(request, &ends.iter().collect::<Vec<_>>())?;
    Ok(result)
}

/// Prints what went wrong; 1 when a run failed, 3 when a row was disturbed to the last, else 0.
pub(super) fn exit(result: &AbResult) -> ExitCode {
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("ab: {}", visible(what)));
    }
    match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    }
}

/// One of the two.
pub(super) enum Compared {
    /// A target.
    Target(Target),
    /// A build of the server.
    Build(PathBuf),
}

impl Compared {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Target(target) => target.to_string(),
            Self::Build(program) => program.display().to_string(),
        }
    }
}

impl AbArgs {
    /// A and B.
    fn sides(&self) -> Result<[Compared; 2], String> {
        let target = |url: &String| Target::parse(url).map(Compared::Target);
        match (self.targets.as_slice(), self.builds.as_slice()) {
            ([a, b], []) => {
                let sides = (target(a), target(b));
                Ok([sides.0.map_err(|e| e.to_string())?, sides.1.map_err(|e| e.to_string())?])
            }
            ([], [a, b]) => Ok([Compared::Build(a.clone()), Compared::Build(b.clone())]),
            ([], _) => Err("a comparison requires two programs: --serve OLD --serve NEW".into()),
            _ => Err("a comparison requires two targets: --target A --target B".into()),
        }
    }
}

/// One run.
fn one(
    side: &Compared,
    job: &Job,
    (request, asked): (&Request, &AbRequest),
    common: &Common,
) -> Result<RunResult, Box<dyn Error>> {
    let options = match side {
        Compared::Target(target) => {
            let mut options = common.options(&target.url(), own_words())?;
            keep_own_api(&mut options, target);
            if request.scratch.is_some() {
                (options.scratch, options.clean) = (request.scratch.clone(), true);
            }
            options
        }
        Compared::Build(program) => {
            let served = Served::start(program, &asked.protocol)?;
            let mut options = common.options(&served.url, own_words())?;
            options.server_pid = Some(served.pid());
            options.server_socket = Some(served.socket());
            return Ok(conduct::run(job, &options, &mut common.progress())?);
        }
    };
    Ok(conduct::run(job, &options, &mut common.progress())?)
}

fn announced(job: &str, next: NextRun, rule: Rule) -> String {
    let repeat = if next.attempt > 0 { ", repeated because it was disturbed" } else { "" };
    format!("{job}: round {} of {}: {:?}{repeat}", next.round + 1, rule.rounds, next.side)
}
