//! `plimsoll lab iozone`: IOzone's throughput mode on any target with files.

use super::{EXIT_DEGRADED, Outcome, own_words, print_line, print_text, usage};
use crate::client::Target;
use crate::iozone::flags::{self, STRIDE, Settings};
use crate::iozone::run::{self, IozoneRequest};
use crate::programs::run::ProgramError;
use crate::report;
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `--help` has after the options.
pub(super) const HELP: &str = "\
Exit codes: 0 success; 1 failure; 2 usage error; 3 a child had a failure. Refused with the reason:
-a, -R, -b, -m, -H, -B, -+m.";

/// Options of IOzone with its letters.
#[derive(Debug, Args)]
pub(super) struct IozoneArgs {
    /// Target URL: path:/dir, nfs3, nfs3+rdma, nfs4, smb, null:
    #[arg(long, value_name = "URL")]
    target: String,
    /// Children, each with a file and a connection of its own
    #[arg(short = 't', value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Size of each file: 64m, 1g; kB without a unit
    #[arg(short = 's', value_name = "SIZE", default_value = "64m", value_parser = flags::size)]
    size: u64,
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
    #[arg(short = 'w')]
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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
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
            threads: self.threads,
            size: self.size,
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
    let target = match Target::parse(&args.target) {
        Ok(target) => target,
        Err(error) => return Ok(usage(&error)),
    };
    let settings = args.settings();
    let (command, seed) = (own_words(), args.seed);
    let request = IozoneRequest { settings: &settings, target: &target, seed, command };
    let mut progress = |title: &str| {
        if !args.quiet {
            note(title);
        }
    };
    let result = match run::run(&request, &mut progress) {
        Err(error) if error.is_usage() => return Ok(usage(&error)),
        other => other?,
    };
    report::write_iozone(&result, &args.out)?;
    if args.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&visible_lines(&result.text(args.each, args.operations)))?;
        print_line(&format!("report: {}", args.out.join("report.html").display()))?;
    }
    for what in &result.degraded {
        note(&format!("iozone: {}", visible(what)));
    }
    Ok(match result.degraded.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(EXIT_DEGRADED),
    })
}
