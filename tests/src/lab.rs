//! `plimsoll lab` as a test drives it: short jobs, agents started by hand, the record read back.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::netns::Namespace;
use crate::process;
use crate::scratch::Scratch;
use crate::server::{self, Options, Server};

/// How long a short job may take on a busy machine.
const JOB: Duration = crate::patience(90);
/// How long an agent may take to report where it listens.
const START: Duration = crate::patience(30);

/// `plimsoll lab`.
pub fn command() -> Command {
    let mut command = Command::new(server::binary());
    command.arg("lab").stdin(Stdio::null()).env_remove("PLIMSOLL_AGENT_CODE_FILE");
    command
}

/// A server to be driven. Dropping it kills it.
pub struct Target {
    server: Server,
    state: Scratch,
    /// URL of its share.
    pub url: String,
}

impl Target {
    /// Serves `dir` at `address`, in `namespace` if one is given, with its state in memory.
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn start(dir: &Path, address: &str, namespace: Option<&Namespace>) -> Self {
        let state = Scratch::below(Path::new("/dev/shm"), "state");
        let options = Options { address, namespace, ..Options::new(dir, state.path()) };
        let server = Server::start(&options);
        let url = format!("nfs3://{address}:{}{}", server.nfs_port(), server.export());
        Self { server, state, url }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Its state directory.
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// URL of its API.
    ///
    /// # Panics
    /// When it announced none.
    pub fn admin_url(&self) -> String {
        let url = self.server.announced["admin"].as_str().expect("a URL");
        url.trim_end_matches('/').to_owned()
    }

    /// Its local socket, for its statistics.
    pub fn socket(&self) -> PathBuf {
        self.state.path().join("plimsoll.sock")
    }
}

/// An agent that a test started. Dropping it kills it.
pub struct Agent {
    child: Child,
    /// Where it listens.
    pub address: String,
    /// Its join code.
    pub code: String,
}

impl Agent {
    /// Starts one; `prepare` may change how.
    ///
    /// # Panics
    /// When it does not report where it listens.
    pub fn start(prepare: impl FnOnce(&mut Command)) -> Self {
        Self::at("127.0.0.1:0", prepare)
    }

    /// Starts one that listens at this address.
    ///
    /// # Panics
    /// When it does not print where it listens.
    pub fn at(listen: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let once = |command: &mut Command| {
            command.arg("--once");
            prepare(command);
        };
        Self::listening(listen, once).0
    }

    /// Starts one that serves more than one run; with the lines that it prints later.
    ///
    /// # Panics
    /// When it does not print where it listens.
    pub fn lasting(prepare: impl FnOnce(&mut Command)) -> (Self, Receiver<String>) {
        Self::listening("127.0.0.1:0", prepare)
    }

    /// The same, listening at this address.
    ///
    /// # Panics
    /// When it does not print where it listens.
    pub fn lasting_at(listen: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        Self::listening(listen, prepare).0
    }

    fn listening(at: &str, prepare: impl FnOnce(&mut Command)) -> (Self, Receiver<String>) {
        let mut command = command();
        command.args(["agent", "--listen", at, "--announce", "json"]);
        command.stdout(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let lines = lines(child.stdout.take().expect("a pipe"));
        let mut agent = Self { child, address: String::new(), code: String::new() };
        let line = lines.recv_timeout(START).unwrap_or_default();
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        agent.address =
            said["listen"].as_str().unwrap_or_else(|| panic!("said {line:?}")).to_owned();
        said["code"].as_str().unwrap_or_default().clone_into(&mut agent.code);
        (agent, lines)
    }

    /// Has a run observe its server through this agent; it reads the code from standard input.
    ///
    /// # Panics
    /// When there is no file for the code.
    pub fn observes_for(&self, command: &mut Command) {
        command.args(["--observe", &self.address, "--code-file", "-"]);
        command.stdin(unnamed(&format!("{}\n", self.code)));
    }

    /// Has a run use these agents; it reads their codes from standard input.
    ///
    /// # Panics
    /// When there is no file for the codes.
    pub fn used_by(command: &mut Command, agents: &[Self]) {
        let addresses: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
        let lines = agents.iter().map(|agent| format!("{} {}\n", agent.address, agent.code));
        command.args(["--agents", &addresses.join(","), "--code-file", "-"]);
        command.stdin(unnamed(&lines.collect::<String>()));
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        process::signal(self.child.id(), signal);
    }

    /// Whether it ends before the deadline.
    pub fn ends_within(&mut self, deadline: Duration) -> bool {
        process::wait(&mut self.child, deadline).is_some()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A job that runs. Dropping it ends it.
pub struct Run {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    out: Scratch,
}

/// A job that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code.
    pub code: i32,
    /// `result.json`, or null.
    pub result: Value,
    /// Everything on standard error.
    pub said: String,
}

impl Run {
    /// Starts `job` against `target` with `settings`; `prepare` may change how.
    ///
    /// # Panics
    /// When the program does not start.
    pub fn start(
        job: &str,
        target: &Target,
        settings: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let out = Scratch::new("lab");
        let mut command = command();
        command.args(["run", job, "--target", &target.url, "--json", "--clean"]);
        // What is planted must not be repeated because others use the machine.
        command.args(["--retries", "0"]);
        command.arg("--out").arg(out.path()).arg("--server-socket").arg(target.socket());
        command.args(settings.iter().flat_map(|s| ["--set", s]));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let lines = lines(child.stderr.take().expect("a pipe"));
        Self { child, lines, said: Vec::new(), out }
    }

    /// Waits until it has reported `steps` finished steps.
    ///
    /// # Panics
    /// When it ends before, or does not get that far.
    pub fn wait_for_steps(&mut self, steps: usize) {
        let deadline = Instant::now() + JOB;
        while self.said.iter().filter(|line| line.contains(" × ")).count() < steps {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.said.push(line),
                Err(_) => panic!("no {steps} steps; it said:\n{}", self.said.join("\n")),
            }
        }
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end and reads its record.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn end(mut self) -> Ended {
        let Some(status) = process::wait(&mut self.child, JOB) else {
            panic!("it does not end; it said:\n{}", self.said.join("\n"));
        };
        self.said.extend(self.lines.iter());
        let result = read(self.out.path().join("result.json"));
        let code = status.code().unwrap_or(-1);
        Ended { code, result, said: self.said.join("\n") }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Its agents end with it: their conductor is gone.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Ended {
    /// What limited, as the record names it.
    pub fn limiter(&self) -> &str {
        self.result["limit"]["limiter"].as_str().unwrap_or("none")
    }

    /// The reasons in one text.
    pub fn why(&self) -> String {
        texts(&self.result["limit"]["why"])
    }

    /// The evidence of the step that is the result.
    pub fn evidence(&self) -> &Value {
        let best = self.result["best"].as_u64().unwrap_or(u64::MAX);
        &self.result["steps"][best as usize]["evidence"]
    }

    /// Why the run is degraded, in one text; empty when it is not.
    pub fn degraded(&self) -> String {
        texts(&self.result["degraded"])
    }

    /// The exit code must agree with the record: 1 failed, 3 degraded, 0 neither.
    ///
    /// # Panics
    /// When it does not.
    pub fn check_code(&self) {
        let expected = match (&self.result["failed"], self.degraded().is_empty()) {
            (Value::String(_), _) => 1,
            (_, false) => 3,
            (_, true) => 0,
        };
        assert_eq!(self.code, expected, "{}", self.said);
    }

    /// For the message of a failed check: what was judged and by what.
    pub fn summary(&self) -> String {
        let limit = &self.result["limit"];
        format!("{limit:#}\n{:#}\n{}", self.evidence(), self.said)
    }
}

fn texts(list: &Value) -> String {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join("\n")
}

fn read(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// A file without a name that has this text.
fn unnamed(text: &str) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_TMPFILE);
    let mut file = options.open(std::env::temp_dir()).expect("a file");
    file.write_all(text.as_bytes()).and_then(|()| file.rewind()).expect("the codes");
    file
}

/// Lines of a child's output as they come.
pub fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (say, hear) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if say.send(line).is_err() {
                return;
            }
        }
    });
    hear
}
