//! The link of a point: a bridge as a process of its own, between two namespaces that it makes and
//! removes. It is begun anew for each point, so that its verdict is about that point alone.

use super::plan::{At, Plan};
use super::transport::{SweepError, tried};
use crate::bridge::control::{Request, ask};
use crate::bridge::device::Place;
use base::limits::SWEEP_LINK_MAX;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Address of the first end: nobody else is in these networks.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// Address of the second end.
pub const SECOND: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Whether a window that was let lie begins small again. Here it lies while a block is waited for.
const AFTER_IDLE: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";

/// A link that is up. Dropping it ends it.
#[derive(Debug)]
pub struct Link {
    child: Child,
    out: BufReader<ChildStdout>,
    socket: PathBuf,
    /// Where the sender is.
    pub first: Place,
    /// Where the receiver is.
    pub second: Place,
}

impl Link {
    /// Makes the namespaces and the link of a point; waits until packets pass. Its socket is in
    /// `dir`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn start(plan: &Plan, at: &At, dir: &Path) -> Result<Self, SweepError> {
        let own = std::process::id();
        let [first, second] = ["a", "b"].map(|end| format!("sweep-{own}-{end}"));
        let socket = dir.join("link.sock");
        let program = std::env::current_exe().map_err(tried("find this program"))?;
        let mut command = Command::new(program);
        command.args(["bridge", "run", "--json", "--make-namespaces", "--name", "sweep"]);
        command.args(["--between", &format!("ns:{first}@{FIRST}/24")]);
        command.args(["--and", &format!("ns:{second}@{SECOND}/24")]);
        command.args(["--rtt", &format!("{}ms", at.rtt_ms)]);
        command.args(["--rate", &format!("{}bit", plan.rate)]);
        command.args(["--queue", &plan.queue(at).to_string()]);
        command.args(["--seed", &plan.seed.to_string()]);
        command.args(["--for", &format!("{}s", SWEEP_LINK_MAX.as_secs())]);
        command.args(at.encrypt.then_some("--encrypt")).arg("--socket").arg(&socket);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(tried("start the emulated link"))?;
        let Some(out) = child.stdout.take() else {
            return Err(SweepError::Link("it has no output".to_owned()));
        };
        let (first, second) = (Place::Named(first), Place::Named(second));
        let mut link = Self { child, out: BufReader::new(out), socket, first, second };
        link.wait_ready()?;
        link.first.within(|| {
            // Where settings are read-only, blocks after a pause are slower; the figures say so.
            let _as_it_was = std::fs::write(AFTER_IDLE, "0");
            Ok(())
        })?;
        Ok(link)
    }

    fn wait_ready(&mut self) -> Result<(), SweepError> {
        let mut line = String::new();
        self.out.read_line(&mut line).map_err(tried("read from the emulated link"))?;
        match event(&line)["event"] == "ready" {
            true => Ok(()),
            false => Err(SweepError::Link(self.said())),
        }
    }

    /// What it says on standard error, when it has ended or is ended now.
    fn said(&mut self) -> String {
        let _gone = self.child.kill();
        let mut text = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            let _some = err.read_to_string(&mut text);
        }
        match text.trim() {
            "" => "it has ended without a word".to_owned(),
            text => text.lines().map(str::trim).collect::<Vec<_>>().join("; "),
        }
    }

    /// Ends it; why what was measured over it means nothing, if that is so.
    ///
    /// # Errors
    /// It ended otherwise, before.
    pub fn end(mut self) -> Result<Vec<String>, SweepError> {
        let asked = ask(&self.socket, &Request::Stop);
        let mut text = String::new();
        if asked.is_err() {
            return Err(SweepError::Link(self.said()));
        }
        self.out.read_to_string(&mut text).map_err(tried("read from the emulated link"))?;
        let _code = self.child.wait().map_err(tried("wait for the emulated link"))?;
        let last = event(text.lines().last().unwrap_or_default());
        if last["event"] != "end" {
            return Err(SweepError::Link(self.said()));
        }
        let why = last["why"].as_array().into_iter().flatten();
        Ok(why.filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // By asking, so that it takes its namespaces with it.
        if matches!(self.child.try_wait(), Ok(None)) && ask(&self.socket, &Request::Stop).is_err() {
            let _gone = self.child.kill();
        }
        let _reaped = self.child.wait();
    }
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}
