//! `plimsoll lab ab`: two targets, run after run in the order A B B A.

use super::{Common, Outcome, own_words, print_line, print_text, usage};
use crate::ab::record::{AbResult, folder, sample};
use crate::ab::{NextRun, Rule, Session, Side};
use crate::cli::exit::EXIT_DEGRADED;
use crate::job::Job;
use crate::{conduct, report};
use base::limits::LAB_ROUNDS_MAX;
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use std::error::Error;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct AbArgs {
    /// Job names (see `lab list`) or TOML files, comma-separated: a row each
    #[arg(value_name = "JOB", value_delimiter = ',', required = true)]
    jobs: Vec<String>,
    /// Target URL, twice: A, then B. See `lab run --help` for schemes
    #[arg(long = "target", value_name = "URL", required = true)]
    targets: Vec<String>,
    /// End a row when the 95 % interval of its ratio is narrower than this
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    to: f64,
    /// Maximum number of rounds, each a run of A and a run of B
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = rounds())]
    rounds: u32,
    #[command(flatten)]
    common: Common,
}

fn rounds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(LAB_ROUNDS_MAX))
}

/// Runs the command. Exit codes: 0 done, 1 a run failed, 2 wrong usage, 3 a row was disturbed to
/// the last.
pub(super) fn ab(args: &AbArgs) -> Outcome {
    let common = &args.common;
    let jobs: Result<Vec<Job>, _> =
        args.jobs.iter().map(|name| Job::load(name, &common.settings)).collect();
    let jobs = match jobs {
        Ok(jobs) => jobs,
        Err(error) => return Ok(usage(&error)),
    };
    let [a, b] = args.targets.as_slice() else {
        return Err("a comparison requires two targets: --target A --target B".into());
    };
    let options = [common.options(a, own_words())?, common.options(b, own_words())?];
    let rule = Rule { to: args.to / 100.0, rounds: args.rounds };
    let targets = [options[0].target.to_string(), options[1].target.to_string()];
    let mut result = AbResult::new(targets, rule, own_words());
    let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let mut session = Session::new(&names, rule);
    while let Some(next) = session.next_run() {
        let job = &jobs[next.row];
        let side = usize::from(next.side == Side::B);
        if !common.quiet {
            note(&announced(&job.name, next, rule));
        }
        let run = conduct::run(job, &options[side], &mut common.progress())?;
        run.write(&common.out.join(folder(&job.name, next)))?;
        report::write(&run, &common.out.join(folder(&job.name, next)))?;
        if let Some(why) = &run.failed {
            result.failed = Some(format!("{}: {why}", result.targets[side]));
            break;
        }
        session.record(sample(&run));
        result.take(&session);
        result.write(&common.out)?;
    }
    end(&result, common)
}

fn announced(job: &str, next: NextRun, rule: Rule) -> String {
    let repeat = if next.attempt > 0 { ", repeated because it was disturbed" } else { "" };
    format!("{job}: round {} of {}: {:?}{repeat}", next.round + 1, rule.rounds, next.side)
}

/// Writes and prints the result.
fn end(result: &AbResult, common: &Common) -> Result<ExitCode, Box<dyn Error>> {
    result.write(&common.out)?;
    if common.json {
        print_line(&serde_json::to_string(result)?)?;
    } else {
        print_text(&visible_lines(&result.text()))?;
        print_line(&format!("result: {}", common.out.join("result.json").display()))?;
    }
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("ab: {}", visible(what)));
    }
    Ok(match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    })
}
