//! `plimsoll lab iozone`: IOzone's throughput mode on any target with files.

use super::agents::RemoteArgs;
use super::local_server::LocalServerArgs;
use super::over::{OverArgs, Tests};
use super::program::{is_usage, left};
use super::{
    Common, EXIT_DEGRADED, Outcome, folder_name, own_words, print_line, print_text, usage,
};
use crate::archive::request::{IozoneRequest, Kind, NamedTarget, Request};
use crate::archive::{Archive, Measured};
use crate::client::{Target, scratch};
use crate::conduct::watch::Watch;
use crate::iozone::flags::{self, STRIDE, Settings};
use crate::iozone::record::IozoneResult;
use crate::iozone::run;
use crate::programs::run::ProgramError;
use crate::report;
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `--help` has after the options.
pub(super) const HELP: &str = "\
Exit codes: 0 success; 1 failure; 2 usage error; 3 a child had a failure. Refused with the reason:
-a, -R, -b, -m, -H, -B, -+m.";

/// Bytes of a file, unless stated.
const SIZE: u64 = 64 << 20;

/// Options of IOzone with its letters.
#[derive(Debug, Args)]
pub(super) struct IozoneArgs {
    /// Target URL: path:/dir, nfs3, nfs3+rdma, nfs4, smb, null:
    #[arg(long, value_name = "URL", required_unless_present = "over")]
    target: Option<String>,
    #[command(flatten)]
    over: OverArgs,
    /// Children, each with a file and a connection of its own [default: 1; with --over a list:
    /// 1,2,4,8,16,32]
    #[arg(short = 't', value_name = "N", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Size of each file: 64m, 1g; kB without a unit [default: 64m; with --over what takes two
    /// seconds]
    #[arg(short = 's', value_name = "SIZE", value_parser = flags::size)]
    size: Option<u64>,
    /// Size of each record
    #[arg(short = 'r', value_name = "SIZE", default_value = "64k", value_parser = flags::size)]
    record: u64,
    /// Test, may be repeated: 0 write and rewrite, 1 read and re-read, 2 random, 3 reverse, 5
    /// stride, 6 fwrite, 7 fread, 8 mixed, 9 pwrite, 10 pread [default: all]
    #[arg(short = 'i', value_name = "TEST")]
    tests: Vec<u8>,
    /// -+n: no rewrite and no re-read
    #[arg(short = '+', value_name = "n")]
    plus: Vec<String>,
    /// Include a flush in the time
    #[arg(short = 'e')]
    flush: bool,
    /// Include the close in the time
    #[arg(short = 'c')]
    close: bool,
    /// Each write is stable
    #[arg(short = 'o')]
    sync: bool,
    /// Retain the files
    #[arg(short = 'w', conflicts_with = "scratch")]
    keep: bool,
    /// Without the stonewall: all children continue to their end
    #[arg(short = 'x')]
    no_stonewall: bool,
    /// Print what each child moved
    #[arg(short = 'C')]
    each: bool,
    /// Print operations instead of kB
    #[arg(short = 'O')]
    operations: bool,
    /// Records between two reads of the stride test
    #[arg(short = 'j', value_name = "N", default_value_t = STRIDE)]
    stride: u64,
    /// Options of IOzone that are refused with the reason.
    #[command(flatten)]
    refused: Refused,
    /// Seed of random records and contents
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Create this folder on the target, work inside it, and remove it afterwards
    #[arg(long, value_name = "NAME")]
    scratch: Option<String>,
    /// Exit when standard input is closed
    #[arg(long)]
    while_stdin: bool,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    local: LocalServerArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    /// json: print progress on stderr as JSON, one object per line
    #[arg(long, value_name = "FORMAT", value_parser = ["json"], conflicts_with = "quiet")]
    progress: Option<String>,
}

/// What the throughput mode on a server does not have.
#[derive(Debug, Args)]
struct Refused {
    #[arg(short = 'a', hide = true)]
    auto: bool,
    #[arg(short = 'R', hide = true)]
    excel: bool,
    #[arg(short = 'b', hide = true, value_name = "FILE")]
    sheet: Option<String>,
    #[arg(short = 'm', hide = true)]
    buffers: bool,
    #[arg(short = 'H', hide = true, value_name = "N")]
    posix: Option<String>,
    #[arg(short = 'B', hide = true)]
    mapped: bool,
    #[arg(long, hide = true, value_name = "N")]
    clients: Option<u32>,
}

impl IozoneArgs {
    /// An option that is refused, and why.
    fn refusal(&self) -> Option<String> {
        let of = &self.refused;
        let options = [
            (of.auto, "-a has no throughput mode: use -t, -s, -r and -i"),
            (
                of.excel || of.sheet.is_some(),
                "-R and -b write a spreadsheet: use result.csv in --out",
            ),
            (of.buffers, "-m has no effect over a protocol: omit it"),
            (of.posix.is_some(), "-H is asynchronous I/O of one process: use more children (-t)"),
            (of.clients.is_some(), "--clients is of jobs: use -t"),
            (of.mapped, "-B maps files, which no protocol does: omit it"),
        ];
        let refused = options.into_iter().find(|(is_used, _)| *is_used);
        let plus = self.plus.iter().find(|plus| *plus != "n").map(|plus| match plus.as_str() {
            "m" => "-+m starts children on other machines: use one `lab iozone` on each".to_owned(),
            other => format!("-+{other} is not an option: -+n is"),
        });
        refused.map(|(_, why)| why.to_owned()).or(plus)
    }

    fn settings(&self) -> Settings {
        Settings {
            threads: self.threads.first().copied().unwrap_or(1),
            size: self.size.unwrap_or(SIZE),
            record: self.record,
            tests: self.tests.clone(),
            no_retest: !self.plus.is_empty(),
            flush: self.flush,
            close: self.close,
            sync: self.sync,
            keep: self.keep,
            no_stonewall: self.no_stonewall,
            stride: self.stride,
        }
    }
}

pub(super) fn run(args: &IozoneArgs) -> Outcome {
    if let Some(why) = args.refusal() {
        return Ok(usage(&ProgramError::Refused(why)));
    }
    if args.over.is_used() {
        let threads = args.threads.as_slice();
        let tests = Tests { threads, record: args.record, size: args.size, seed: args.seed };
        let common = args.common();
        let mut request = common.request(Kind::Iozone, Vec::new(), Vec::new(), own_words());
        request.iozone =
            Some(IozoneRequest { seed: args.seed, settings: args.settings(), over: None });
        return args.over.run(&tests, &request, &common);
    }
    if args.threads.len() > 1 {
        let why = "-t is a list with --over alone: use one number of children";
        return Ok(usage(&ProgramError::Refused(why.into())));
    }
    let settings = args.settings();
    let url = args.target.clone().unwrap_or_default();
    if let Err(why) = settings.check() {
        return Ok(usage(&ProgramError::Refused(why)));
    }
    let target = match Target::parse(&url) {
        Ok(target) => target,
        Err(error) => return Ok(usage(&error)),
    };
    let name = args.scratch.as_deref().map(folder_name).transpose()?;
    if args.while_stdin {
        super::end_with_stdin();
    }
    let common = args.common();
    let asked = vec![NamedTarget { name: String::new(), url: target.to_string() }];
    let mut request = common.request(Kind::Iozone, asked, Vec::new(), own_words());
    let seed = args.seed;
    (request.iozone, request.scratch) = (Some(IozoneRequest { seed, settings, over: None }), name);
    let result = match made(&request, &url, &common, &args.out) {
        Err(error) if is_usage(&*error) => return Ok(usage(&*error)),
        other => other?,
    };
    if args.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&visible_lines(&result.text(args.each, args.operations)))?;
        print_line(&format!("report: {}", args.out.join("report.html").display()))?;
    }
    Ok(exit(&result))
}

impl IozoneArgs {
    /// What is common to all commands.
    fn common(&self) -> Common {
        Common {
            clients: 1,
            remote: self.remote.with(self.remote.agents().to_vec()),
            subnets: Vec::new(),
            settings: Vec::new(),
            out: self.out.clone(),
            local: self.local.clone(),
            clean: !self.keep,
            no_bind: true,
            json: self.json,
            prove: None,
            quiet: self.quiet,
            progress: self.progress.clone(),
        }
    }
}

/// Runs the tests into an archive.
///
/// # Errors
/// The target or the agents fail, or nothing can be written.
pub(super) fn made(
    asked: &Request,
    target: &str,
    common: &Common,
    out: &Path,
) -> Result<IozoneResult, Box<dyn Error>> {
    let tests = asked.iozone.as_ref().ok_or("the request has no tests")?;
    let mut options = common.options(target, own_words())?;
    options.scratch.clone_from(&asked.scratch);
    let base = options.target.clone();
    let place = asked.scratch.as_ref().map_or_else(|| base.clone(), |name| base.below(name));
    let run = run::IozoneRequest {
        settings: &tests.settings,
        target: &base,
        place: &place,
        seed: tests.seed,
        command: own_words(),
        source: &options.source,
    };
    run.check()?;
    let mut archive = Archive::begin(out)?;
    let mut watch = Watch::of(&options)?;
    if let Some(name) = &asked.scratch {
        scratch::make(&base, name)?;
    }
    let ran = run::run(&run, &mut watch, &mut common.progress());
    let left = asked.scratch.as_ref().and_then(|name| left(&base, name));
    let mut result = ran?;
    result.degraded.extend(left);
    for (name, text) in report::iozone_files(&result)? {
        archive.put(name, &text)?;
    }
    archive.seal_measured(asked, &[Measured::from(&result)])?;
    Ok(result)
}

pub(super) fn exit(result: &IozoneResult) -> ExitCode {
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("iozone: {}", visible(what)));
    }
    match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    }
}
