//! `plimsoll demo`: the main job end to end, on a scratch share that is removed afterwards.
//!
//! It starts `plimsoll serve` and the lab's clients as processes of their own, as a user would, so
//! that each one's CPU time is its own. With a terminal it then continues to serve and prints the
//! addresses; without one it ends.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use base::random::{Random, SystemRandom};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cli::DemoArgs;
use crate::out::{self, Failure, OrFailure, note};

/// Serves a scratch share, finds its limits, prints the addresses.
///
/// # Errors
/// When the server does not start or the lab cannot run.
pub fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let scratch = Scratch::make(args.scratch.as_deref()).or_failure("create a scratch share")?;
    let mut server = Server::start(&scratch, args.port_offset).or_failure("start the server")?;
    note(&format!("demo: serving {} as {}", scratch.share().display(), server.target));
    note(&format!("demo: live view at {}", server.login));
    let code = outcome(limits(args, &server, &scratch));
    if args.once || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Ok(code);
    }
    out::offer(&format!(
        "still serving; press Ctrl-C to stop and remove the scratch share\n  \
         browser       {}\n  \
         command line  plimsoll analytics show 'nfs3.ops[client]' --state {}\n",
        server.admin,
        scratch.state().display()
    ))?;
    server.child.wait().or_failure("wait for the server")?;
    Ok(code)
}

/// A summary with reservations is complete: its first lines have them. One with a row that failed
/// is not.
fn outcome(code: ExitCode) -> ExitCode {
    if code == ExitCode::from(::lab::cli::EXIT_DEGRADED) { ExitCode::SUCCESS } else { code }
}

fn limits(args: &DemoArgs, server: &Server, scratch: &Scratch) -> ExitCode {
    let words: Vec<std::ffi::OsString> = vec![
        "limits".into(),
        "--target".into(),
        server.target.clone().into(),
        "--clients".into(),
        args.clients.to_string().into(),
        "--out".into(),
        args.out.clone().into(),
        "--server-socket".into(),
        scratch.state().join("plimsoll.sock").into(),
        "--server-pid".into(),
        server.child.id().to_string().into(),
    ];
    ::lab::cli::main(words)
}

/// A directory of our own with the share and the server's state in it; goes with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn make(below: Option<&Path>) -> io::Result<Self> {
        let below = below.map_or_else(std::env::temp_dir, Path::to_owned);
        // Other users can neither know the name beforehand nor look into it.
        let dir = below.join(format!("plimsoll-demo.{:016x}", SystemRandom.next_u64()));
        DirBuilder::new().mode(0o700).create(&dir)?;
        let made = Self(dir);
        fs::create_dir(made.share())?;
        Ok(made)
    }

    fn share(&self) -> PathBuf {
        self.0.join("demo")
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            note(&format!("demo: could not remove {}: {error}", self.0.display()));
        }
    }
}

/// The server as a process of its own; ends with the value.
struct Server {
    child: Child,
    target: String,
    admin: String,
    login: String,
}

impl Server {
    fn start(scratch: &Scratch, offset: u16) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg(scratch.share())
            .arg("--state")
            .arg(scratch.state())
            .args(["--announce", "json", "--port-offset", &offset.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
        let mut server =
            Self { child, target: String::new(), admin: String::new(), login: String::new() };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line)
            .map_err(|_| io::Error::other("the server exited; see its messages above"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        server.target = text(&said["shares"]["demo"]["nfs3"]);
        (server.admin, server.login) = (text(&said["admin"]), text(&said["login"]));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A child of this process that was not waited for.
        let pid = Pid::from_raw(self.child.id().cast_signed());
        let _ended = kill(pid, Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests;
