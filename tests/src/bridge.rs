//! `plimsoll bridge` as a test drives it, between two network namespaces of the test's own, and the
//! independent tools by which it is measured: ping and iperf3.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::Value;

use crate::lab::lines;
use crate::netns::Namespace;
use crate::scratch::Scratch;
use crate::{process, server};

/// Address of the first end.
pub const FIRST: &str = "10.9.0.1";
/// Address of the second end.
pub const SECOND: &str = "10.9.0.2";
/// How long it may take to start, on a busy machine.
const START: Duration = crate::patience(30);
/// How often a measurement is repeated that the bridge itself has reported as spoiled.
const ATTEMPTS: usize = 5;

/// Two networks that know nothing of each other.
pub struct Networks {
    /// That of the first end.
    pub first: Namespace,
    /// That of the second.
    pub second: Namespace,
}

impl Networks {
    /// Makes them. Needs root and `ip`.
    ///
    /// # Errors
    /// What is missing, for a SKIP line.
    pub fn new() -> Result<Self, String> {
        let missing = ["ip", "unshare", "ping", "iperf3"].into_iter().find(|p| !crate::has(p));
        match missing {
            _ if !crate::is_root() => return Err("needs root".to_owned()),
            Some(program) => return Err(format!("{program} is missing")),
            None if !std::path::Path::new("/dev/net/tun").exists() => {
                return Err("no /dev/net/tun".to_owned());
            }
            None => {}
        }
        let end =
            || Namespace::with("ip link set lo up\n").map_err(|e| format!("no namespace: {e}"));
        Ok(Self { first: end()?, second: end()? })
    }

    /// Adds the options with which a bridge joins them.
    fn join(&self, command: &mut Command, options: &[&str]) {
        let (first, second) = (self.first.pid(), self.second.pid());
        command.arg("--between").arg(format!("pid:{first}@{FIRST}/24"));
        command.arg("--and").arg(format!("pid:{second}@{SECOND}/24")).args(options);
    }
}

/// A bridge that runs. Dropping it kills it.
pub struct Bridge {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    socket: PathBuf,
    _dir: Scratch,
}

/// How a bridge ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code: 0 good, 3 spoiled.
    pub code: i32,
    /// Its last status.
    pub status: Value,
    /// Its standard error.
    pub said: String,
}

impl Bridge {
    /// Starts one between the two networks; `options` as on its command line.
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn start(networks: &Networks, options: &[&str]) -> Self {
        let mut bridge = Self::begin(|command| networks.join(command, options));
        bridge.wait_ready();
        bridge
    }

    /// The same, with its socket where servers of root look for bridges. Needs root.
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn start_seen(networks: &Networks, name: &str, options: &[&str]) -> Self {
        let socket = PathBuf::from(format!("/run/plimsoll/bridges/{name}.sock"));
        let prepare = |command: &mut Command| {
            networks.join(command.args(["--name", name]), options);
        };
        let mut bridge = Self::begin_at(socket, Scratch::new("bridge"), prepare);
        bridge.wait_ready();
        bridge
    }

    /// Starts one with the options that `prepare` adds, and does not wait.
    ///
    /// # Panics
    /// When there is no such program.
    pub fn begin(prepare: impl FnOnce(&mut Command)) -> Self {
        let dir = Scratch::new("bridge");
        Self::begin_at(dir.path().join("run/bridge.sock"), dir, prepare)
    }

    fn begin_at(socket: PathBuf, dir: Scratch, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(server::binary());
        command.args(["bridge", "run", "--json", "--socket"]).arg(&socket);
        prepare(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let out = lines(child.stdout.take().expect("a pipe"));
        let err = lines(child.stderr.take().expect("a pipe"));
        Self { child, out, err, socket, _dir: dir }
    }

    /// Waits until packets pass.
    ///
    /// # Panics
    /// When they do not.
    pub fn wait_ready(&mut self) {
        loop {
            match self.out.recv_timeout(START) {
                Ok(line) if event(&line)["event"] == "ready" => return,
                Ok(_) => {}
                Err(_) => {
                    let _gone = self.child.kill();
                    let said: Vec<String> = self.err.iter().collect();
                    panic!("the bridge does not get ready: {}", said.join("\n"));
                }
            }
        }
    }

    /// Runs `plimsoll bridge VERB …` for this one; what it answers.
    ///
    /// # Panics
    /// When it is refused.
    pub fn ask(&self, verb: &str, words: &[&str]) -> Value {
        let mut command = Command::new(server::binary());
        command.args(["bridge", verb, "--json", "--socket"]).arg(&self.socket).args(words);
        serde_json::from_slice(&process::succeed(&mut command)).expect("JSON")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it.
    ///
    /// # Panics
    /// When it does not end.
    pub fn end(mut self) -> Ended {
        process::signal(self.child.id(), libc::SIGTERM);
        let status = process::wait(&mut self.child, START).expect("the bridge does not end");
        let last = self.out.iter().last().unwrap_or_default();
        let said: Vec<String> = self.err.iter().collect();
        let code = status.code().unwrap_or(-1);
        Ended { code, status: event(&last), said: said.join("\n") }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Measures over a bridge until it reports one measurement as not spoiled.
///
/// # Panics
/// When all are spoiled, or one fails otherwise.
pub fn measured<T>(
    networks: &Networks,
    options: &[&str],
    measure: impl Fn(&Bridge) -> T,
) -> (T, Ended) {
    measured_if(networks, options, measure, |_| true)
}

/// The same, and its own report must be good enough for what is measured.
///
/// # Panics
/// When none is, or one fails otherwise.
pub fn measured_if<T>(
    networks: &Networks,
    options: &[&str],
    measure: impl Fn(&Bridge) -> T,
    is_enough: impl Fn(&Ended) -> bool,
) -> (T, Ended) {
    for attempt in 1..=ATTEMPTS {
        let bridge = Bridge::start(networks, options);
        let result = measure(&bridge);
        let ended = bridge.end();
        match ended.code {
            0 if is_enough(&ended) => return (result, ended),
            0 => println!("attempt {attempt} was not good enough: {}", ended.status),
            3 => println!("attempt {attempt} was spoiled: {}", ended.said),
            code => panic!("exit code {code}: {}", ended.said),
        }
    }
    panic!("the bridge was late in each of {ATTEMPTS} attempts");
}

/// Round trips in milliseconds, the shortest first, of `count` pings from the first network, one
/// each `every` seconds.
///
/// # Panics
/// When ping fails.
pub fn ping(networks: &Networks, count: u32, every: &str) -> Vec<f64> {
    let mut command = Command::new("ping");
    command.args(["-n", "-i", every, "-c", &count.to_string(), "-W", "3", SECOND]);
    networks.first.enter(&mut command);
    let out = process::run(&mut command, process::DEADLINE);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let time = |line: &str| line.split_once("time=")?.1.split_once(' ')?.0.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    assert!(!times.is_empty(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    times.sort_by(f64::total_cmp);
    times
}

/// The value below which `share` of the sorted values lie.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted[at.clamp(1, sorted.len()) - 1]
}

/// An iperf3 server in the second network. Dropping it kills it.
pub struct Iperf {
    child: Child,
}

impl Iperf {
    /// Starts it.
    ///
    /// # Panics
    /// When it does not listen.
    pub fn start(networks: &Networks) -> Self {
        let mut command = Command::new("iperf3");
        command.args(["-s", "--forceflush"]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        networks.second.enter(&mut command);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let out = lines(child.stdout.take().expect("a pipe"));
        loop {
            let line = out.recv_timeout(START).expect("iperf3 does not listen");
            if line.contains("listening") {
                break;
            }
        }
        // Later output is read, so that the server never blocks on its pipe.
        std::thread::spawn(move || out.iter().for_each(drop));
        Self { child }
    }

    /// A client in the first network, not yet started.
    pub fn client(networks: &Networks, options: &[&str]) -> Command {
        let mut command = Command::new("iperf3");
        command.args(["-c", SECOND, "-J"]).args(options);
        networks.first.enter(&mut command);
        command
    }

    /// Runs a client, with a server of its own: one that has done a test is busy for a moment, and
    /// then refuses the next. Returns the client's report.
    ///
    /// # Panics
    /// When it fails.
    pub fn run(networks: &Networks, options: &[&str]) -> Value {
        let _server = Self::start(networks);
        let out = process::succeed(&mut Self::client(networks, options));
        serde_json::from_slice(&out).expect("JSON of iperf3")
    }
}

impl Drop for Iperf {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}
