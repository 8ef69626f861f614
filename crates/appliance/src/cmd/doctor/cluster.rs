//! `plimsoll doctor cluster`: whether two mounts of one file system may be served by two heads.

use std::process::ExitCode;

use head::mounts::{self, Report};

use crate::cli::DoctorClusterArgs;
use crate::out::{self, Failure, OrFailure};

/// Runs the command. The exit code states whether the file system is fit.
///
/// # Errors
/// The directories cannot be used, or the output.
pub fn run(args: &DoctorClusterArgs) -> Result<ExitCode, Failure> {
    let tried = format!("compare {} and {}", args.a.display(), args.b.display());
    let report = mounts::compare(&args.a, &args.b).or_failure(&tried)?;
    out::print(&if args.json { out::json(&report) } else { table(&report) })?;
    Ok(if report.fit { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(report: &Report) -> String {
    let [a, b] = report.directories.each_ref().map(|path| path.display());
    let mut text = format!("{a} and {b}, {}\n\n", report.file_system);
    for finding in &report.findings {
        let mark = if finding.fit { "ok" } else { "--" };
        text += &format!("  {mark}  {:<16} {}\n", finding.id, finding.found);
    }
    text += match report.fit {
        true => "\nTwo heads may serve resources on this file system.\n",
        false => "\nTwo heads must not serve resources on this file system.\n",
    };
    report.advice.map_or(text.clone(), |advice| text + "Remedy: " + advice + ".\n")
}
