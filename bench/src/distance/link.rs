//! Two network namespaces, and the bridge that joins them for one turn: so each turn has a verdict
//! of its own.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::programs::made;

/// Address of the near end.
const NEAR: &str = "10.9.0.1";
/// Address of the far end.
pub const FAR: &str = "10.9.0.2";
/// What a turn leaves behind is not to help or hinder the next: the kernel would remember round
/// trips and windows of an address.
const SETTINGS: &str = "net.ipv4.tcp_no_metrics_save=1";

/// Two networks that know nothing of each other; gone with the value.
pub struct Networks {
    /// The namespace in which a turn's program is started.
    pub near: String,
    /// The namespace of the other side.
    pub far: String,
}

impl Networks {
    /// Makes them.
    ///
    /// # Errors
    /// No root, or no `ip`.
    pub fn make() -> io::Result<Self> {
        let name = |end: &str| format!("plimsoll-bench-{}-{end}", std::process::id());
        let networks = Self { near: name("near"), far: name("far") };
        for namespace in [&networks.near, &networks.far] {
            made("ip", &["netns", "add", namespace])?;
            made("ip", &["-n", namespace, "link", "set", "lo", "up"])?;
            made("ip", &["netns", "exec", namespace, "sysctl", "-q", "-w", SETTINGS])?;
        }
        Ok(networks)
    }

    /// What starts a program in a namespace.
    pub fn within(namespace: &str) -> Vec<String> {
        ["ip", "netns", "exec", namespace].map(str::to_owned).to_vec()
    }

    /// A setting of the kernel in the near namespace.
    pub fn setting(&self, name: &str) -> String {
        let said =
            Command::new("ip").args(["netns", "exec", &self.near, "sysctl", "-n", name]).output();
        said.map(|s| String::from_utf8_lossy(&s.stdout).trim().to_owned()).unwrap_or_default()
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for namespace in [&self.near, &self.far] {
            let _ = Command::new("ip").args(["netns", "del", namespace]).status();
        }
    }
}

/// What is between the two: how far, and what it does to packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Round trip in milliseconds.
    pub rtt_ms: f64,
    /// Plain, sealed, or losing packets.
    pub kind: Kind,
}

/// What the link does beside taking its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// Everything that crosses it is sealed.
    Encrypted,
    /// One of a thousand packets is lost, each way.
    Loss,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Encrypted, Self::Loss];

    /// Its name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Encrypted => "encrypted",
            Self::Loss => "loss",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[],
            Self::Encrypted => &["--encrypt"],
            Self::Loss => &["--loss", "0.1%"],
        }
    }
}

/// A bridge that runs. Dropping it ends it.
pub struct Bridge {
    child: Child,
    /// Reads what it tells each second, so that it never waits for us, and keeps the last.
    told: Option<JoinHandle<String>>,
}

impl Bridge {
    /// Joins the two networks at this rate, as the bridge takes it; packets pass when it returns.
    ///
    /// # Errors
    /// It does not get ready.
    pub fn start(
        program: &Path,
        networks: &Networks,
        (point, rate): (&Point, &str),
        socket: PathBuf,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(["bridge", "run", "--json", "--socket"]).arg(socket);
        command.arg("--between").arg(format!("ns:{}@{NEAR}/24", networks.near));
        command.arg("--and").arg(format!("ns:{}@{FAR}/24", networks.far));
        command.args(["--rate", rate, "--rtt", &format!("{}ms", point.rtt_ms)]);
        command.args(point.kind.options());
        // Its verdict comes with its last line, too.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let out = child.stdout.take();
        let (first, ready): (_, Receiver<String>) = sync_channel(1);
        let told = out.map(|out| std::thread::spawn(move || keep_last(out, &first)));
        let bridge = Self { child, told };
        match ready.recv() {
            Ok(line) if event(&line)["event"] == "ready" => Ok(bridge),
            _ => Err(io::Error::other("the bridge does not get ready")),
        }
    }

    /// Ends it; how it stood.
    ///
    /// # Errors
    /// It had ended before.
    pub fn end(mut self) -> io::Result<Value> {
        self.signal();
        let last = self.told.take().and_then(|told| told.join().ok());
        let last = event(&last.unwrap_or_default());
        if last["event"] != "end" {
            return Err(io::Error::other("the bridge has ended by itself"));
        }
        Ok(last)
    }

    fn signal(&mut self) {
        if let (Ok(None), Ok(pid)) = (self.child.try_wait(), i32::try_from(self.child.id())) {
            // SAFETY: a signal to a child that was not waited for yet.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.signal();
        let _ = self.child.wait();
    }
}

/// Hands the first line over and reads on; the last one.
fn keep_last(out: ChildStdout, first: &SyncSender<String>) -> String {
    let mut last = String::new();
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        // Nobody hears the others.
        let _heard = first.try_send(line.clone());
        last = line;
    }
    last
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}
