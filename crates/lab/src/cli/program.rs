//! `plimsoll lab run FILE.f`: a program in the language of Filebench.

use super::{
    Common, EXIT_DEGRADED, Outcome, RunArgs, folder_name, own_words, print_line, print_text, usage,
};
use crate::agent::with_sources;
use crate::archive::request::{Kind, NamedTarget, Request, WmlRequest};
use crate::archive::{Archive, Measured, TEXT};
use crate::client::{Target, scratch};
use crate::conduct::agents::Source;
use crate::conduct::watch::Watch;
use crate::programs::conduct;
use crate::programs::record::ProgramResult;
use crate::programs::run::{Checked, ProgramError, ProgramRequest};
use crate::report::{self, Figures};
use base::limits::LAB_CLEAN_MAX;
use base::out::note;
use base::text::{visible, visible_lines};
use std::error::Error;
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
    let name = args.scratch.as_deref().map(folder_name).transpose()?;
    let wml = WmlRequest {
        file: args.job.clone(),
        settings: common.settings.clone(),
        seconds: args.seconds,
        seed: args.seed.unwrap_or(SEED),
    };
    let checked = match Checked::new(&wml.request(target, common.clean, name.as_deref())) {
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
    let url = Target::parse(target)?.to_string();
    let asked = vec![NamedTarget { name: String::new(), url }];
    let mut request = common.request(Kind::Program, asked, Vec::new(), own_words());
    (request.wml, request.scratch) = (Some(wml), name);
    let result = match made(&checked, &request, target, common, &common.out) {
        Err(error) if is_usage(&*error) => return Ok(usage(&*error)),
        other => other?,
    };
    if common.json {
        print_line(&serde_json::to_string(&result)?)?;
    } else {
        print_text(&visible_lines(&Figures::of_program(&result).text()))?;
        print_line(&format!("report: {}", common.out.join("report.html").display()))?;
    }
    Ok(exit(&result))
}

/// Whether the user has to change the text or the command.
pub(super) fn is_usage(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(ProgramError::is_usage)
}

impl WmlRequest {
    /// The same for a target.
    pub(super) fn request<'a>(
        &'a self,
        target: &'a str,
        clean: bool,
        scratch: Option<&'a str>,
    ) -> ProgramRequest<'a> {
        ProgramRequest {
            file: Path::new(&self.file),
            settings: &self.settings,
            target,
            seconds: self.seconds,
            seed: self.seed,
            clean,
            scratch,
            command: own_words(),
        }
    }
}

/// Runs a program into an archive.
///
/// # Errors
/// The target or the agents fail, or nothing can be written.
pub(super) fn made(
    checked: &Checked,
    asked: &Request,
    target: &str,
    common: &Common,
    out: &Path,
) -> Result<ProgramResult, Box<dyn Error>> {
    let wml = asked.wml.as_ref().ok_or("the request has no program")?;
    let name = asked.scratch.as_deref();
    let request = wml.request(target, asked.clean && name.is_none(), name);
    let mut options = common.options(target, own_words())?;
    options.scratch = asked.scratch.clone();
    let mut archive = Archive::begin(out)?;
    let mut watch = Watch::of(&options)?;
    if let Some(name) = name {
        scratch::make(&options.target, name)?;
    }
    let mut progress = common.progress();
    let ran = match &options.source {
        Source::Local { .. } => checked.run(&request, &mut watch, &mut progress),
        source => conduct::run(checked, &request, source, &mut watch, &mut progress),
    };
    let left = name.and_then(|name| left(&options.target, name));
    let mut result = ran?;
    result.degraded.extend(left);
    for (name, text) in report::program_files(&result)? {
        archive.put(name, &text)?;
    }
    archive.put(TEXT, &checked.text)?;
    archive.seal_measured(asked, &[Measured::from(&result)])?;
    Ok(result)
}

/// Removes the folder of a run; why it may still be there.
pub(super) fn left(target: &Target, name: &str) -> Option<String> {
    let error = scratch::clear(target, name, LAB_CLEAN_MAX).err()?;
    Some(format!("the folder {name} was not removed: {}", with_sources(&error)))
}

/// An option of jobs that a program does not have.
fn without_effect(args: &RunArgs) -> Option<&'static str> {
    let common = &args.common;
    let options = [
        (common.prove.is_some(), "--prove"),
        (args.repeat.is_some(), "--repeat"),
        (args.resume, "--resume"),
        (args.own.share.is_some(), "--share"),
    ];
    options.into_iter().find(|(used, _)| *used).map(|(_, option)| option)
}

pub(super) fn exit(result: &ProgramResult) -> ExitCode {
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("{}: {}", result.file, visible(what)));
    }
    match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    }
}
