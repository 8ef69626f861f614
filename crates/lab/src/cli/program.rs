//! `plimsoll lab run FILE.f`: a program in the language of Filebench.

use super::{EXIT_DEGRADED, Outcome, RunArgs, own_words, print_line, print_text, usage};
use crate::conduct::agents::Source;
use crate::programs::conduct;
use crate::programs::record::ProgramResult;
use crate::programs::run::{Checked, ProgramError, ProgramRequest};
use crate::report::{self, Figures};
use base::out::note;
use base::text::{visible, visible_lines};
use std::path::Path;
use std::process::ExitCode;

/// Of programs that differ in nothing else, unless the command states another one.
const SEED: u64 = 1;

pub(super) fn run(args: &RunArgs) -> Outcome {
    let common = &args.common;
    if let Some(option) = without_effect(args) {
        let why = format!("{option} has no effect on a program: omit it");
        return Ok(usage(&ProgramError::Refused(why)));
    }
    let [target] = args.targets.as_slice() else {
        return Ok(usage(&ProgramError::Refused("a program has one --target".into())));
    };
    let request = ProgramRequest {
        file: Path::new(&args.job),
        settings: &common.settings,
        target,
        seconds: args.seconds,
        seed: args.seed.unwrap_or(SEED),
        clean: common.clean,
        command: own_words(),
    };
    let checked = match Checked::new(&request) {
        Ok(checked) => checked,
        Err(error) => return Ok(usage(&error)),
    };
    if args.while_stdin {
        super::end_with_stdin();
    }
    if !common.quiet {
        let lines = checked.messages.iter().chain(&checked.notes);
        lines.for_each(|line| note(&visible_lines(line)));
    }
    let agents = common.remote.roster(common.quiet)?;
    let result = match agents {
        Some(roster) => conduct::run(&checked, &request, &Source::Remote(roster)),
        None => checked.run(&request),
    };
    let result = match result {
        Err(error) if error.is_usage() => return Ok(usage(&error)),
        other => other?,
    };
    report::write_program(&result, &common.out)?;
    if common.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&visible_lines(&Figures::of_program(&result).text()))?;
        print_line(&format!("report: {}", common.out.join("report.html").display()))?;
    }
    Ok(exit(&result))
}

/// An option of jobs that a program does not have.
fn without_effect(args: &RunArgs) -> Option<&'static str> {
    let common = &args.common;
    let options = [
        (common.prove.is_some(), "--prove"),
        (args.scratch.is_some(), "--scratch"),
        (args.repeat.is_some(), "--repeat"),
        (args.resume, "--resume"),
        (args.own.share.is_some(), "--share"),
    ];
    options.into_iter().find(|(used, _)| *used).map(|(_, option)| option)
}

fn exit(result: &ProgramResult) -> ExitCode {
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("{}: {}", result.file, visible(what)));
    }
    match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    }
}
