//! Two networks that are isolated from the rest, joined by an emulated link, for as long as a
//! measurement runs over it: a bridge as a separate process, between two network namespaces that it
//! makes and removes, or existing ones.
//!
//! [`Scene::start`] makes it, [`Scene::between`] joins existing ones. [`NetworkNamespace::within`]
//! then opens sockets, or starts programs, at one of its ends, [`FIRST`] and [`SECOND`] being their
//! addresses. [`Scene::end`] returns whether the link was in time; if not, figures measured over it
//! are invalid.

use super::control::{AskError, Request, ask};
use super::device::{DeviceError, NetworkNamespace};
use super::folder::Folder;
use super::sys;
use base::limits::LAB_SILENCE_MAX;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

/// Address of the first end: these networks have no other hosts.
pub const FIRST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// Address of the second end.
pub const SECOND: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

/// Why there is no link, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum SceneError {
    /// The machine.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The error message of the bridge.
    #[error("the emulated link: {0}")]
    Link(String),
}

fn tried(what: &'static str) -> impl FnOnce(io::Error) -> SceneError {
    move |source| SceneError::Io { what, source }
}

/// How a link stood in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The complete status, as `plimsoll bridge run --json` prints it.
    pub status: Value,
    /// Why figures that were measured over it are invalid; empty when they are valid.
    pub why: Vec<String>,
}

/// Both networks and the link. Dropping it ends the link, and removes networks that it made.
#[derive(Debug)]
pub struct Scene {
    child: Child,
    /// Reads the reports of the bridge, and returns the last one.
    output: Option<JoinHandle<String>>,
    folder: Folder,
    /// The namespace of the first end.
    pub first: NetworkNamespace,
    /// That of the second.
    pub second: NetworkNamespace,
}

impl Scene {
    /// Makes two namespaces and joins them; packets pass when it returns. Needs root.
    ///
    /// `program` is plimsoll. `name` is what the link's devices are called, and with the number of
    /// this process the namespaces (`NAME-PID-a`, `NAME-PID-b`): one of a name at a time.
    /// `options` are those of `plimsoll bridge run` that say what the link does.
    ///
    /// # Errors
    /// Why there is none.
    pub fn start(program: &Path, name: &str, options: &[String]) -> Result<Self, SceneError> {
        let own = std::process::id();
        let ends = ["a", "b"].map(|end| NetworkNamespace::Named(format!("{name}-{own}-{end}")));
        let mut all = ["--make-namespaces", "--name", name].map(str::to_owned).to_vec();
        all.extend_from_slice(options);
        Self::between(program, ends, &all)
    }

    /// Joins two namespaces that are there and stay; packets pass when it returns. `program` and
    /// `options` as for [`Self::start`].
    ///
    /// # Errors
    /// Why there is no link.
    pub fn between(
        program: &Path,
        [first, second]: [NetworkNamespace; 2],
        options: &[String],
    ) -> Result<Self, SceneError> {
        let folder = Folder::new("link").map_err(tried("make a folder for temporary files"))?;
        let mut command = Command::new(program);
        command.args(["bridge", "run", "--json"]);
        command.arg("--between").arg(format!("{first}@{FIRST}/24"));
        command.arg("--and").arg(format!("{second}@{SECOND}/24"));
        command.arg("--socket").arg(folder.socket()).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(tried("start the emulated link"))?;
        let (said, hears) = mpsc::sync_channel(1);
        let out = child.stdout.take();
        let output = out.map(|out| std::thread::spawn(move || keep_last(out, said)));
        let mut scene = Self { child, output, folder, first, second };
        scene.wait_ready(&hears)?;
        Ok(scene)
    }

    fn wait_ready(&mut self, hears: &Receiver<String>) -> Result<(), SceneError> {
        match hears.recv_timeout(LAB_SILENCE_MAX) {
            Ok(line) if parse(&line)["event"] == "ready" => Ok(()),
            _ => Err(SceneError::Link(self.stderr_text())),
        }
    }

    /// Sends a request to the bridge, and returns its status.
    ///
    /// # Errors
    /// The bridge has ended, or refuses the request.
    pub fn ask(&self, request: &Request) -> Result<Value, AskError> {
        ask(&self.folder.socket(), request)
    }

    /// Ends it; how it stood.
    ///
    /// # Errors
    /// It had ended before.
    pub fn end(mut self) -> Result<Ended, SceneError> {
        self.stop();
        let output = self.output.take().and_then(|output| output.join().ok());
        let status = parse(&output.unwrap_or_default());
        if status["event"] != "end" {
            return Err(SceneError::Link(self.stderr_text()));
        }
        let why = status["why"].as_array().into_iter().flatten();
        let why = why.filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Ended { status, why })
    }

    /// Ends the process and waits for it.
    fn stop(&mut self) {
        // One that is gone, but was not waited for, still has its number.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = sys::end(self.child.id());
        }
        let _reaped = self.child.wait();
    }

    /// Its standard error output. The process has ended, or is ended for that.
    fn stderr_text(&mut self) -> String {
        self.stop();
        let mut text = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            let _some = err.read_to_string(&mut text);
        }
        match text.trim() {
            "" => "it exited without a message".to_owned(),
            text => text.lines().map(str::trim).collect::<Vec<_>>().join("; "),
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Hands the first line over, and reads on, since the bridge would wait for that; the last one.
fn keep_last(out: ChildStdout, first: SyncSender<String>) -> String {
    let mut last = String::new();
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        // The receiver takes only the first.
        let _heard = first.try_send(line.clone());
        last = line;
    }
    last
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}

/// Starts `command` in the network of `place`.
///
/// # Errors
/// No such namespace, or no such program.
pub fn spawn(place: &NetworkNamespace, command: &mut Command) -> Result<Child, DeviceError> {
    let what = format!("start {} in {place}", command.get_program().display());
    place.within(|| command.spawn().map_err(|source| DeviceError::Refused { what, source }))
}
