//! `plimsoll lab net`.

use super::agents::AgentsArgs;
use super::exit::EXIT_DEGRADED;
use super::{Outcome, end_with_stdin, own_words, print_line, print_text, progress};
use crate::conduct::agents::{Source, lab_command};
use crate::conduct::line;
use crate::net::built_in;
use crate::net::record::NetResult;
use crate::net::run::{self, NetOptions};
use crate::report::{self, Figures};
use base::out::note;
use base::text::{visible, visible_lines};
use clap::Args;
use lab_net::limits::{HOSTS_MAX, TEXT_MAX};
use lab_net::profile::Profile;
use lab_net::read::{ProfileError, Variables, read};
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `lab net`.
#[derive(Debug, Args)]
pub(super) struct NetArgs {
    /// Profile of uperf (XML file), a built-in job (lso-stream-64k, lso-request, lso-request-1,
    /// lso-stream-1k, lso-many), or a short form: stream, request, connect
    profile: String,
    /// Value of a variable of the profile, for example h=10.0.0.2 or proto=tcp [default: from the
    /// environment; built-in profiles and short forms have values for threads, size, request,
    /// duration, proto and connections]
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    agents: AgentsArgs,
    /// Read the profile, print what is ignored and its hosts, and exit
    #[arg(long)]
    check: bool,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    /// json: print progress on stderr as JSON, one object per line
    #[arg(long, value_name = "FORMAT", value_parser = ["json"], conflicts_with = "quiet")]
    progress: Option<String>,
    /// Exit when standard input is closed
    #[arg(long)]
    while_stdin: bool,
}

/// Exit codes.
pub(super) const HELP: &str = "\
Both ends of all connections run: the near end, which the profile describes, on this machine, and a
far end for each remotehost. Without --agents these are processes of this machine, and a host
without a value is an address of it (127.0.0.11 and up). With --agents they are agents (lab agent)
in the order in which the profile names its hosts.

Exit codes: 0 success; 1 failure: a thread ended early, or both ends differ by more than 0.1 % of
the bytes; 2 the profile or an option is refused; 3 degraded: an agent was lost, whatever failed
with it, or paused, or throughput was not steady; 4 refused; 5 another version; 6 no reply.";

/// Runs the command.
///
/// # Errors
/// What keeps it from measuring anything.
pub(super) fn net(args: &NetArgs) -> Outcome {
    let profile = match load(args) {
        Ok(profile) => profile,
        Err(what) => {
            note(&format!("plimsoll lab net: {}", visible(&what)));
            return Ok(ExitCode::from(2));
        }
    };
    if args.check {
        print_line(&format!(
            "{}: {} groups, {} threads; hosts: {}",
            visible(&profile.name),
            profile.groups.len(),
            profile.threads(),
            visible(&profile.hosts().join(", "))
        ))?;
        for what in &profile.notes {
            print_line(&visible(what))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.while_stdin {
        end_with_stdin();
    }
    let hosts = profile.hosts().len();
    let far = match args.agents.roster(args.quiet)? {
        Some(roster) => Source::Remote(roster),
        None => Source::Local { clients: hosts as u32, command: lab_command("agent") },
    };
    let options = NetOptions { profile, far, agent: lab_command("agent"), command: own_words() };
    let mut progress = progress(args.quiet, args.progress.is_some());
    let result = run::run(&options, &mut |text| line(&mut progress, text.to_owned()))?;
    write(args, &result)?;
    for what in result.failed.iter().chain(&result.degraded) {
        note(&format!("net: {}", visible(what)));
    }
    Ok(match (&result.failed, result.degraded.is_empty()) {
        (Some(_), _) => ExitCode::FAILURE,
        (None, false) => ExitCode::from(EXIT_DEGRADED),
        (None, true) => ExitCode::SUCCESS,
    })
}

fn write(args: &NetArgs, result: &NetResult) -> Result<(), Box<dyn Error>> {
    report::write_files(&report::net_files(result)?, &args.out)?;
    if args.json {
        print_line(&serde_json::to_string(result)?)?;
    } else {
        print_text(&visible_lines(&Figures::of_net(result).text()))?;
        print_line(&format!("report: {}", args.out.join("report.html").display()))?;
    }
    Ok(())
}

/// The profile, all variables replaced.
fn load(args: &NetArgs) -> Result<Profile, String> {
    let mut variables = Variables::of(&args.settings)?;
    variables.environment = true;
    variables.local_hosts = !args.agents.is_used();
    let (agents, number) = args.agents.named();
    if number > HOSTS_MAX {
        return Err(format!("{number} agents, and a profile names at most {HOSTS_MAX} hosts"));
    }
    let text = match built_in::text(&args.profile, number) {
        Some(text) => {
            built_in::defaults(&mut variables);
            for n in 0..number {
                // One that calls is reached where it calls from.
                let caller = || format!("agent-{}", n + 1);
                let host = || agents.get(n).map_or_else(caller, |agent| host_of(agent).to_owned());
                variables.set.entry(format!("h{}", n + 1)).or_insert_with(host);
            }
            text
        }
        None => file(&args.profile)?,
    };
    read(&args.profile, &text, &variables).map_err(|e: ProfileError| e.to_string())
}

/// The host of HOST:PORT.
fn host_of(agent: &str) -> &str {
    let host = agent.rsplit_once(':').map_or(agent, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The text of a file; of a longer one more than a profile may have.
fn file(path: &str) -> Result<String, String> {
    let fail = |e: std::io::Error| {
        format!("cannot read {path}: {e}; use a file, a built-in job or stream, request, connect")
    };
    let file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(TEXT_MAX as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    String::from_utf8(bytes).map_err(|_| format!("{path}: not a text in UTF-8"))
}
