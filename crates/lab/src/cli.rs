//! `plimsoll lab …`: run, limits, repeat, sweep, net, agent, list, report, ab, compare.
//!
//! Results go to stdout, progress to stderr. Exit codes are in [`exit`].

mod ab;
mod agents;
mod api;
pub(crate) mod exit;
mod iozone;
mod limits;
mod local_server;
mod make;
mod net;
mod output;
mod over;
mod program;
mod repeat;
pub mod share;
pub(crate) mod sizes;
mod suite;

use self::ab::AbArgs;
use self::agents::{AgentArgs, RemoteArgs, run_agent};
use self::limits::LimitsArgs;
use self::local_server::LocalServerArgs;
use self::make::Retry;
use self::repeat::RepeatArgs;
use crate::agent::with_sources;
use crate::archive;
use crate::archive::request::{self, NamedTarget};
use crate::client::service::at::without_password;
use crate::client::{ClientError, Target, scratch};
use crate::conduct::agents::{Source, lab_command};
use crate::conduct::network::Subnet;
use crate::conduct::{ObserveRun, RunEvent, RunOptions};
use crate::iozone::over::record::OverResult;
use crate::iozone::record::IozoneResult;
use crate::job::{BUILT_IN, Job};
use crate::limits::summary::Summary;
use crate::measure::Until;
use crate::net::built_in;
use crate::net::record::NetResult;
use crate::programs::{self, record::ProgramResult};
use crate::prove;
use crate::record::{self, RunResult};
use crate::report::{self, Figures};
use crate::suite::record::SuiteResult;
use crate::sweep::Sweep;
use crate::sweep::cli::{SweepArgs, sweep};
use crate::transfer::run::ComparisonRequest;
use crate::transfer::{self, Comparison, Plan};
use crate::verdict::prove::Selection;
use base::limits::LAB_ROUNDS_MAX;
use base::out::note;
use base::text::{visible, visible_lines};
use clap::{Args, Parser, Subcommand};
pub use exit::EXIT_DEGRADED;
pub(crate) use output::{print_line, print_text};
use share::{Find, ShareArgs, ShareTargets};
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Find the load limit of a target and the resource that sets it
#[derive(Debug, Parser)]
#[command(name = "plimsoll lab", version, disable_help_subcommand = true)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Run one job: raise clients × threads step by step until throughput levels off
    #[command(after_help = exit::HELP)]
    Run(RunArgs),
    /// Run the jobs of the Performance Limit Summary, with a column for each target
    #[command(after_help = exit::HELP)]
    Limits(LimitsArgs),
    /// Run sequential reads: block sizes from 1 byte to 1 MB by threads of each client
    #[command(after_help = exit::SUITE_HELP)]
    Seqread(suite::SeqreadArgs),
    /// Run a table of Filebench workloads: streams, random reads, synchronous writes, file creation
    #[command(after_help = exit::SUITE_HELP, mut_arg("clients", |arg| arg.default_value("18")))]
    FilebenchSuite(suite::FilebenchArgs),
    /// Run the tests of IOzone's throughput mode, with its options and its output
    #[command(after_help = iozone::HELP)]
    Iozone(iozone::IozoneArgs),
    /// Repeat a result of `run`, `limits` or `ab` with the same seeds, and compare
    Repeat(RepeatArgs),
    /// Measure throughput over round-trip time and window on emulated links, compared with a model
    Sweep(SweepArgs),
    /// Run a network profile of uperf: both ends of its connections, here or at agents
    #[command(after_help = net::HELP)]
    Net(net::NetArgs),
    /// Run a load agent, controlled from another machine
    #[command(after_help = exit::AGENT_HELP)]
    Agent(AgentArgs),
    /// Remove the scratch folder left by an interrupted run
    Clean(CleanArgs),
    /// List the built-in jobs
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Regenerate the report of a result
    Report {
        /// result.json or its directory
        result: PathBuf,
        /// Print all figures of a result of `run`, `limits` or `ab` instead: text, csv, markdown or
        /// json
        #[arg(long, value_name = "FORM", value_parser = ["text", "csv", "markdown", "json"])]
        figures: Option<String>,
    },
    /// Compare two targets or builds: run after run in the order A B B A, until the interval of the
    /// ratio is narrow enough
    Ab(AbArgs),
    /// Take a core from a server until standard input ends; a run with --prove starts this
    #[command(name = prove::cores::GUARD, hide = true)]
    RestrictCores {
        /// Its process
        pid: u32,
    },
    /// Compare two results, or two summaries cell by cell
    Compare {
        /// First result: result.json or summary.json, its directory, or a directory of several runs
        a: PathBuf,
        /// Second result
        b: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What `run` and `limits` share.
#[derive(Debug, Args)]
struct Common {
    /// Number of client processes on this machine
    #[arg(long, value_name = "N", default_value_t = 8, conflicts_with = "agents")]
    clients: u32,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Override a value of the job, for example block=8k or schedule=[[1,1],[8,4]]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    #[command(flatten)]
    local: LocalServerArgs,
    /// Remove the test files afterwards
    #[arg(long)]
    clean: bool,
    /// Connect all clients from the machine's own address instead of 127.0.0.11 and up
    #[arg(long)]
    no_bind: bool,
    /// Network of clients, and the server's address there, for example 10.1.0.0/24=10.1.0.1;
    /// repeatable. Local clients are spread over the networks, with addresses from the eleventh on;
    /// agents are in the network of their address
    #[arg(long = "subnet", value_name = "NETWORK=SERVER")]
    subnets: Vec<Subnet>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Prove the limiter: run the best step again with twice the clients, half the block, against
    /// nothing, without encryption, and with one core less for the server; or only those of
    /// twice-clients, half-block, null-target, cipher-off, one-core-less that are listed, with
    /// commas between
    #[arg(long, value_name = "CHANGES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all")]
    prove: Option<Selection>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    /// json: print progress on stderr as JSON, one object per line
    #[arg(long, value_name = "FORMAT", value_parser = ["json"], conflicts_with = "quiet")]
    progress: Option<String>,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Job name (see `lab list`), TOML file, or program in the language of Filebench (FILE.f)
    job: String,
    /// Target URL, for example nfs3://host:port/export/x. Schemes: nfs3, nfs3+rdma, nfs4; ftp,
    /// ftps, sftp, http, https, webdav, webdavs, smb (user@host:port/share); iscsi; path:/dir;
    /// null:. A comparison takes several
    #[arg(long = "target", value_name = "URL", required_unless_present = "share")]
    targets: Vec<String>,
    #[command(flatten)]
    common: Common,
    /// Create this folder on the target, work inside it, and remove it afterwards
    #[arg(long, value_name = "NAME")]
    scratch: Option<String>,
    /// Exit when standard input is closed
    #[arg(long)]
    while_stdin: bool,
    /// Resume a comparison: keep the rounds already in the result in --out
    #[arg(long)]
    resume: bool,
    /// until: run after run until the 95 % interval of the figure over runs is narrower than --to
    #[arg(long, value_name = "until", value_parser = ["until"])]
    repeat: Option<String>,
    /// Width of that interval in percent of the figure
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, requires = "repeat")]
    to: f64,
    /// Maximum number of runs; fewer than 6 have no interval
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = rounds())]
    #[arg(requires = "repeat")]
    rounds: u32,
    #[command(flatten)]
    retry: Retry,
    /// Time of a program, instead of the one that it states
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    seconds: Option<u64>,
    /// Seed of a program [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    own: ShareArgs,
}

#[derive(Debug, Args)]
struct CleanArgs {
    /// Target URL of the run
    #[arg(long, value_name = "URL")]
    target: String,
    /// Name of the folder
    #[arg(long, value_name = "NAME")]
    scratch: String,
}

type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Why there is nothing to compare.
enum NotCompared {
    /// Reported to the user already.
    Reported(ExitCode),
    /// A target is none.
    Usage(ClientError),
}

/// Runs `plimsoll lab` with the words after `lab`.
pub fn main<I, T>(words: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString>,
{
    let words =
        std::iter::once(OsString::from("plimsoll lab")).chain(words.into_iter().map(Into::into));
    match LabArgs::try_parse_from(words) {
        Ok(args) => run(args, &share::nowhere),
        Err(error) => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

/// Runs a parsed command; for a program that has `lab` among its own subcommands, and that may know
/// how to find a share.
pub fn run(args: LabArgs, find: Find<'_>) -> ExitCode {
    let outcome = match args.command {
        LabCommand::Run(args) => run_job(&args, find),
        LabCommand::Limits(args) => limits::limits(&args),
        LabCommand::Seqread(args) => suite::seqread(&args),
        LabCommand::FilebenchSuite(args) => suite::filebench(&args),
        LabCommand::Iozone(args) => iozone::run(&args),
        LabCommand::Repeat(args) => repeat::repeat(&args),
        LabCommand::Sweep(args) => sweep(&args, own_words()),
        LabCommand::Net(args) => net::net(&args),
        LabCommand::Agent(args) => run_agent(&args),
        LabCommand::Clean(args) => clean(&args),
        LabCommand::List { json } => list(json),
        LabCommand::Report { result, figures: Some(form) } => print_figures(&result, &form),
        LabCommand::Report { result, figures: None } => make_report(&result),
        LabCommand::Ab(args) => ab::ab(&args),
        LabCommand::RestrictCores { pid } => {
            prove::cores::guard(pid).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        LabCommand::Compare { a, b, json } => compare(&a, &b, json),
    };
    outcome.unwrap_or_else(|error| {
        note(&format!("plimsoll lab: {}", visible(&with_sources(&*error))));
        exit::of(&*error)
    })
}

impl Common {
    fn options(&self, target: &str, words: Vec<String>) -> Result<RunOptions, Box<dyn Error>> {
        let source = match self.remote.roster(self.quiet)? {
            None => Source::Local { clients: self.clients.max(1), command: lab_command("agent") },
            Some(roster) => Source::Remote(roster),
        };
        Ok(RunOptions {
            target: Target::parse(target)?,
            source,
            bind: !self.no_bind,
            subnets: self.subnets.clone(),
            server_socket: self.local.server_socket.clone(),
            server_pid: self.local.server_pids.first().copied(),
            observe: ObserveRun {
                agent: self.remote.observer()?,
                share_path: self.local.share_path.clone(),
                api: self.remote.server.api()?,
            },
            clean: self.clean,
            scratch: None,
            prove: self.prove.as_ref().map_or_else(Vec::new, |changes| changes.0.clone()),
            command: words,
        })
    }

    fn progress(&self) -> ShowProgress {
        progress(self.quiet, self.progress.is_some())
    }
}

/// Prints progress.
type ShowProgress = Box<dyn FnMut(&RunEvent)>;

/// Prints progress, for people or as JSON.
fn progress(quiet: bool, json: bool) -> ShowProgress {
    Box::new(move |event| match event {
        event if json => note(&serde_json::to_string(event).unwrap_or_default()),
        RunEvent::Running => {}
        event if !quiet => note(&visible_lines(&event.to_string())),
        _ => {}
    })
}

/// The words of the command line without passwords, as they were when they were first asked for.
fn own_words() -> Vec<String> {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    let words = || std::env::args_os().map(|word| without_password(&word.to_string_lossy()));
    WORDS.get_or_init(|| words().collect()).clone()
}

/// Words of the command line with a password, for a program that can hide them; what is recorded of
/// a run is the same after that.
pub fn secret_words() -> Vec<String> {
    let own = own_words();
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.zip(own).filter(|(word, own)| word != own).map(|(word, _)| word).collect()
}

fn run_job(args: &RunArgs, find: Find<'_>) -> Outcome {
    let common = &args.common;
    if programs::run::is_program(&args.job) {
        return program::run(args);
    }
    match Plan::load(&args.job, &common.settings) {
        Ok(Some(plan)) => return run_comparison(&plan, args, find),
        Ok(None) => {}
        Err(error) => return Ok(usage(&error)),
    }
    let job = match Job::load(&args.job, &common.settings) {
        Ok(job) => job,
        Err(error) => return Ok(usage(&error)),
    };
    if args.seconds.is_some() || args.seed.is_some() {
        return Err("--seconds and --seed are of programs; use --set row.seconds=N, seed=N".into());
    }
    if args.while_stdin {
        end_with_stdin();
    }
    let target = match args.targets.as_slice() {
        [one] => one,
        [] => return Err("--share requires a comparison: `lab run secure-protocols`".into()),
        _ => return Err("several targets require a comparison: `lab run secure-protocols`".into()),
    };
    let mut options = common.options(target, own_words())?;
    if let Some(name) = &args.scratch {
        options.scratch = Some(folder_name(name)?);
        options.clean = true;
    }
    let asked = vec![NamedTarget { name: String::new(), url: options.target.to_string() }];
    let mut request = common.request(request::Kind::Run, asked, vec![job], own_words());
    request.scratch.clone_from(&options.scratch);
    request.clean = options.clean;
    request.retries = args.retry.retries;
    request.until = args.until();
    let result = make::run(&request, &options, common, &common.out)?;
    if common.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&report::text(&result))?;
        print_line(&format!("report: {}", common.out.join("report.html").display()))?;
    }
    Ok(exit(&[&result]))
}

impl RunArgs {
    /// When run after run ends.
    fn until(&self) -> Option<Until> {
        self.repeat.as_ref().map(|_| Until { to: self.to / 100.0, rounds: self.rounds })
    }
}

/// How many runs a command may make.
fn rounds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(LAB_ROUNDS_MAX))
}

/// The targets of a comparison, and their servers' processes as far as they are known.
fn compared(plan: &Plan, args: &RunArgs, find: Find<'_>) -> Result<ShareTargets, NotCompared> {
    let given = &args.common.local.server_pids;
    if let Some(name) = &args.own.share {
        let mut found = find(name, &args.own, plan).map_err(NotCompared::Reported)?;
        if !given.is_empty() {
            found.pids.clone_from(given);
        }
        return Ok(found);
    }
    let service = |url: &String| match Target::parse(url)? {
        Target::Service(at) => Ok(at),
        other => {
            let why = "cannot be compared; use ftp, ftps, sftp, http, https, webdav, webdavs";
            Err(ClientError::Target(other.to_string(), why))
        }
    };
    let targets = args.targets.iter().map(service).collect::<Result<_, _>>();
    Ok(ShareTargets { targets: targets.map_err(NotCompared::Usage)?, pids: given.clone() })
}

/// The comparison of protocols: from this process, over all targets.
fn run_comparison(plan: &Plan, args: &RunArgs, find: Find<'_>) -> Outcome {
    let common = &args.common;
    if common.remote.is_used() || args.scratch.is_some() {
        return Err("a comparison runs on this machine in its own folder: omit --agents and \
            --scratch"
            .into());
    }
    let ShareTargets { targets, pids } = match compared(plan, args, find) {
        Ok(found) => found,
        Err(NotCompared::Reported(code)) => return Ok(code),
        Err(NotCompared::Usage(error)) => return Ok(usage(&error)),
    };
    if args.while_stdin {
        end_with_stdin();
    }
    let earlier = if args.resume { Comparison::read(&common.out).ok().flatten() } else { None };
    let wanted = ComparisonRequest {
        plan,
        targets: &targets,
        server_pids: &pids,
        command: own_words(),
        earlier,
    };
    let mut kept = Ok(());
    let result = transfer::run::run(&wanted, &mut |so_far, round| {
        kept = so_far.write(&common.out);
        if !common.quiet {
            note(&format!("round {} of {}", round + 1, so_far.plan.rounds));
        }
    });
    kept?;
    result.write(&common.out)?;
    report::write_comparison(&result, &common.out)?;
    if common.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&result.text())?;
        print_line(&format!("report: {}", common.out.join("report.html").display()))?;
    }
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("{}: {}", plan.name, visible(what)));
    }
    Ok(match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    })
}

/// The end of standard input ends this program, and so its agents: their controller is gone.
fn end_with_stdin() {
    std::thread::spawn(|| {
        let _end = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

/// One part of a path, which leads nowhere else.
fn folder_name(name: &str) -> Result<String, Box<dyn Error>> {
    match name {
        "" | "." | ".." => Err(format!("--scratch {name:?} is not a folder name").into()),
        name if name.contains('/') => {
            Err(format!("--scratch {name:?} is a path; give the target as --target").into())
        }
        name => Ok(name.to_owned()),
    }
}

fn clean(args: &CleanArgs) -> Outcome {
    let (target, name) = (Target::parse(&args.target)?, folder_name(&args.scratch)?);
    scratch::clear(&target, &name, base::limits::LAB_CLEAN_MAX / 2)?;
    Ok(ExitCode::SUCCESS)
}

fn usage(error: &dyn Error) -> ExitCode {
    note(&format!("plimsoll lab: {}", visible(&with_sources(error))));
    ExitCode::from(2)
}

/// 1 when a run failed, 3 when one is degraded, else 0.
fn exit(results: &[&RunResult]) -> ExitCode {
    for result in results {
        for what in result.failed.iter().chain(&result.degraded) {
            note(&format!("{}: {}", result.job.name, visible(what)));
        }
    }
    if results.iter().any(|r| r.failed.is_some()) {
        ExitCode::FAILURE
    } else if results.iter().any(|r| r.is_degraded()) {
        ExitCode::from(EXIT_DEGRADED)
    } else {
        ExitCode::SUCCESS
    }
}

fn list(json: bool) -> Outcome {
    let jobs: Result<Vec<Job>, _> =
        BUILT_IN.iter().map(|(name, text)| Job::parse(name, text, &[])).collect();
    let jobs = jobs?;
    if json {
        print_line(&serde_json::to_string(&jobs)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for job in jobs {
        print_line(&format!("{:<18} {}", job.name, job.answers))?;
    }
    for (name, answers, _) in built_in::BUILT_IN {
        print_line(&format!("{name:<18} {answers} (lab net)"))?;
    }
    for (name, text) in transfer::plan::BUILT_IN {
        print_line(&format!("{name:<18} {}", Plan::parse(name, text, &[])?.answers))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn make_report(path: &Path) -> Outcome {
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    if let Some(suite) = SuiteResult::read(path)? {
        record::write_file(dir, "index.html", &suite.page())?;
        archive::renew(dir, "index.html")?;
        print_line(&dir.join("index.html").display().to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(program) = ProgramResult::read(path)? {
        return renew_page(&report::program_files(&program)?, dir);
    }
    if let Some(result) = NetResult::read(path)? {
        report::write_files(&report::net_files(&result)?, dir)?;
        print_line(&dir.join("report.html").display().to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(tests) = IozoneResult::read(path)? {
        return renew_page(&report::iozone_files(&tests)?, dir);
    }
    if let Some(tests) = OverResult::read(path)? {
        return renew_page(&report::over_files(&tests)?, dir);
    }
    match (Comparison::read(path)?, Sweep::read(path)?) {
        (Some(mut comparison), _) => {
            // One of an earlier version has no sentences yet.
            comparison.derive();
            report::write_comparison(&comparison, dir)?;
        }
        (None, Some(sweep)) => report::write_sweep(&sweep, dir)?,
        (None, None) => report::write(&RunResult::read(path)?, dir)?,
    }
    archive::renew(dir, "report.html")?;
    print_line(&dir.join("report.html").display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a result.
fn renew_page(files: &report::Files, dir: &Path) -> Outcome {
    report::write_page(files, dir)?;
    archive::renew(dir, "report.html")?;
    print_line(&dir.join("report.html").display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// All figures, as the browser shows them.
fn print_figures(path: &Path, form: &str) -> Outcome {
    let figures = Figures::read(path)?;
    let text = match form {
        "csv" => figures.csv(),
        "markdown" => figures.markdown(),
        "json" => serde_json::to_string(&figures)? + "\n",
        _ => figures.text(),
    };
    print_text(&visible_lines(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether there is a summary.
fn is_summary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "summary.json")
        || path.join("summary.json").is_file()
}

fn compare(a: &Path, b: &Path, json: bool) -> Outcome {
    if is_summary(a) && is_summary(b) {
        let change = report::compare_summaries(&Summary::read(a)?, &Summary::read(b)?);
        if json {
            print_line(&serde_json::to_string(&change)?)?;
        } else {
            print_text(&visible_lines(&change.text()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (a, b) = (report::read_runs(a)?, report::read_runs(b)?);
    let comparison = report::compare(&a, &b).ok_or("there is no run to compare")?;
    if json {
        print_line(&serde_json::to_string(&comparison)?)?;
    } else {
        print_text(&comparison.text())?;
    }
    Ok(ExitCode::SUCCESS)
}
