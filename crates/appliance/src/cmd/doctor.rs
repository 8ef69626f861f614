//! `plimsoll doctor`: what this machine has, and what is used instead of what it lacks. Everything
//! is found by trying, not by versions or user ids; nothing is left behind.

mod checks;
mod cluster;
mod finding;
mod look;
mod ports;
mod rdma;

use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::protocol::Service;
use control::state::default_bases;
use serde::Serialize;

use crate::cli::{DoctorArgs, DoctorCommand};
use crate::out::{self, DEGRADED, Failure, OrFailure};
use checks::CHECKS;
use finding::{Finding, State};

/// All that was found.
#[derive(Debug, Serialize)]
struct Report {
    /// The directory that would be served.
    directory: PathBuf,
    /// Where the state would be, or the folder above.
    state: PathBuf,
    /// Whether something is missing that serving uses.
    degraded: bool,
    findings: Vec<Finding>,
}

/// Where it is looked.
struct Target<'a> {
    /// The directory that would be served.
    path: &'a Path,
    dir: &'a File,
    /// Where the state would be kept.
    state: &'a Path,
    /// What would be listened on.
    address: IpAddr,
    port_offset: u16,
}

/// Runs the command. The exit code shows whether something is missing that the server uses.
///
/// # Errors
/// Only if the directory or the output cannot be used: something missing is an answer.
pub fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    if let Some(DoctorCommand::Cluster(args)) = &args.command {
        return cluster::run(args);
    }
    let dir = File::open(&args.dir).or_failure(&format!("examine {}", args.dir.display()))?;
    let base = || default_bases().into_iter().next().unwrap_or_else(|| "/var/lib".into());
    let state = args.state.clone().unwrap_or_else(base);
    let (address, port_offset) = (args.address, args.port_offset);
    Service::EXPORTING[0].ports()[0].address(address, port_offset)?;
    let place = Target { path: &args.dir, dir: &dir, state: &state, address, port_offset };
    let findings: Vec<Finding> = CHECKS.iter().map(|check| check.finding(&place)).collect();
    let degraded = findings.iter().any(|finding| finding.degrades);
    let report = Report { directory: args.dir.clone(), state, degraded, findings };
    out::print(&if args.json { out::json(&report) } else { table(&report) })?;
    Ok(ExitCode::from(if degraded { DEGRADED } else { 0 }))
}

fn table(report: &Report) -> String {
    let mut text = format!("This machine, with {}\n\n", report.directory.display());
    for f in &report.findings {
        let mark = match f.state {
            State::Yes => "ok",
            State::No => "--",
            State::Unknown => "??",
        };
        text += &format!("  {mark}  {:<16} {}\n", f.id, f.found);
        if f.state != State::Yes {
            let lines = [("for", f.sentence), ("instead", f.instead), ("remedy", f.advice)];
            for (what, said) in lines.iter().filter(|(_, said)| !said.is_empty()) {
                text += &format!("      {:<16} {what}: {said}\n", "");
            }
        }
    }
    let missing: Vec<&str> = report.findings.iter().filter(|f| f.degrades).map(|f| f.id).collect();
    text + &match missing.as_slice() {
        [] => "\nAll features used by `serve` are available.\n".to_owned(),
        missing => format!("\nMissing features used by `serve`: {}.\n", missing.join(", ")),
    }
}

#[cfg(test)]
mod tests;
