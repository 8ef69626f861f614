//! `plimsoll head`: a head of a cluster, and what controls it.

mod etcd;

use std::io::ErrorKind;
use std::time::Duration;

use base::clock::Deadline;
use head::config::Config;
use head::local::{self, Command, Response, Status};
use head::supervisor::Supervisor;

use crate::cli::{HeadArgs, HeadClientArgs, HeadCommand};
use crate::out::{self, Failure, OrFailure};
use crate::sys;
use etcd::Gateway;

/// How often a takeover is looked at that is waited for.
const EVERY: Duration = Duration::from_millis(100);

/// Runs a head until SIGTERM or SIGINT, or controls the one that runs.
///
/// # Errors
/// The configuration is not valid, the head cannot run, or it refuses a command.
pub fn run(args: &HeadArgs) -> Result<(), Failure> {
    match &args.command {
        None => serve(args),
        Some(HeadCommand::Status(client)) => {
            let (config, command) = (config(client)?, Command::Status);
            print(client, &send_command("show the state of the head", &config, &command)?.status)
        }
        Some(HeadCommand::Drain(args)) => {
            let config = config(&args.client)?;
            let command = Command::Drain { on: !args.off };
            print(&args.client, &send_command("drain the head", &config, &command)?.status)
        }
        Some(HeadCommand::Takeover(args)) => {
            let config = config(&args.client)?;
            let to = args.to.clone().unwrap_or_else(|| config.name.clone());
            let command = Command::Takeover {
                resource: args.resource.clone(),
                to: args.to.clone(),
                unfenced: args.unfenced,
            };
            take_over(&config, &command, (&args.resource, &to), args.wait, &args.client)
        }
        Some(HeadCommand::Failback(args)) => {
            let config = config(&args.client)?;
            let to = config.resource(&args.resource).map(|one| one.preferred.clone());
            let command = Command::Failback { resource: args.resource.clone() };
            let target = (args.resource.as_str(), to.as_deref().unwrap_or_default());
            take_over(&config, &command, target, args.wait, &args.client)
        }
    }
}

fn config(client: &HeadClientArgs) -> Result<Config, Failure> {
    Config::read(&client.config).map_err(configuration)
}

fn configuration(error: head::config::ConfigError) -> Failure {
    let hint = "docs/howto/heads.md has an example; name the file with --config FILE";
    Failure::of("read the configuration of the head", &error).hint(hint)
}

fn serve(args: &HeadArgs) -> Result<(), Failure> {
    const TRIED: &str = "run the head";
    // Before the first thread, which would take the signals otherwise.
    sys::hold_signals();
    let config = Config::read(&args.config).map_err(configuration)?;
    let program = std::env::current_exe().or_failure(TRIED)?;
    let transport = Gateway::new(config.etcd.ca.as_deref())?;
    if let Err(why) = head::mounts::examine(&config) {
        let hint = "`plimsoll doctor cluster DIR_A DIR_B` shows what two mounts promise";
        return Err(Failure::new(TRIED, &why, hint));
    }
    let supervisor = Supervisor::new(config, Box::new(transport), program).map_err(|e| {
        Failure::of(TRIED, &e).hint("a head needs root: it adds addresses and starts resources")
    })?;
    let ender = supervisor.ender();
    let wait = move || {
        // SIGHUP has nothing to read again.
        while sys::wait_for_signal() {}
        ender.end();
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).or_failure(TRIED)?;
    super::serve::manager::notify("READY=1");
    supervisor.run();
    Ok(())
}

/// Sends a request to the head on this machine.
fn send_command(tried: &str, config: &Config, command: &Command) -> Result<Response, Failure> {
    let response = local::request(&config.socket(), command).map_err(|e| {
        let hint = match e.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                "no head runs here; start one with `plimsoll head --config FILE`"
            }
            ErrorKind::PermissionDenied => "only root may control the head",
            _ => "",
        };
        Failure::of(tried, &e).hint(hint)
    })?;
    match &response.error {
        Some(why) => {
            Err(Failure::new(tried, why, "`plimsoll head status` lists heads and resources"))
        }
        None => Ok(response),
    }
}

/// Requests a takeover, and waits until it is done.
fn take_over(
    config: &Config,
    command: &Command,
    (resource, to): (&str, &str),
    wait: u64,
    client: &HeadClientArgs,
) -> Result<(), Failure> {
    let tried = format!("move {resource} to {to}");
    let mut status = send_command(&tried, config, command)?.status;
    let deadline = Deadline::after(Duration::from_secs(wait));
    let is_done = |status: &Status| {
        let moved = status.resources.iter().find(|one| one.name == resource);
        !status.pending && moved.is_some_and(|one| is_served(status, one, to))
    };
    while !is_done(&status) && !deadline.passed() {
        std::thread::sleep(EVERY);
        status = send_command(&tried, config, &Command::Status)?.status;
    }
    if wait > 0 && !is_done(&status) {
        let one = status.resources.iter().find(|one| one.name == resource);
        let why = one.and_then(|one| one.why.clone());
        let failed = format!("it is not served there after {wait} seconds");
        return Err(Failure::new(&tried, &failed, &why.unwrap_or_default()));
    }
    print(client, &status)
}

/// Whether a head owns a resource: this one knows whether it serves, of another one only that it
/// has the key.
fn is_served(status: &Status, resource: &local::ResourceStatus, to: &str) -> bool {
    let owns = resource.owner.as_deref() == Some(to) && resource.target.as_deref() == Some(to);
    owns && (status.head != to || resource.state == "owner")
}

fn print(client: &HeadClientArgs, status: &Status) -> Result<(), Failure> {
    if client.json {
        let text = serde_json::to_string(status).or_failure("print the state of the head")?;
        return out::print(&(text + "\n"));
    }
    out::print(&table(status))
}

/// The state for people.
fn table(status: &Status) -> String {
    let lease = match &status.lease_s {
        Some(left) => format!("valid for {left} s"),
        None => "none".to_owned(),
    };
    let draining = if status.draining { ", draining" } else { "" };
    let mut text =
        format!("head {} of cluster {}{draining}; lease: {lease}\n", status.head, status.cluster);
    if let Some(why) = &status.etcd {
        text += &format!("etcd: {why}\n");
    }
    let members = status.members.iter();
    let members: Vec<_> = members
        .map(|(name, drains)| if *drains { format!("{name} (draining)") } else { name.clone() })
        .collect();
    text += &format!("members: {}\n\n", members.join(", "));
    text += &format!(
        "{:<16} {:<13} {:<12} {:<12} {:>6}  {}\n",
        "RESOURCE", "STATE HERE", "OWNER", "PREFERRED", "NUMBER", "ADDRESS"
    );
    for one in &status.resources {
        let owner = one.owner.as_deref().unwrap_or("-");
        text += &format!(
            "{:<16} {:<13} {owner:<12} {:<12} {:>6}  {}\n",
            one.name, one.state, one.preferred, one.number, one.address
        );
        if let Some(why) = &one.why {
            text += &format!("    {why}\n");
        }
        if let Some(why) = &one.cut {
            text += &format!("    clients do not reach it at this head: {why}\n");
        }
        if let Some(last) = &one.last {
            text += &format!("    {last}\n");
        }
    }
    text
}
