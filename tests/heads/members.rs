//! Three members of etcd itself, each in a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use e2e::netns::Namespace;

/// Where they listen: for clients, and for each other.
const ADDRESS: &str = "10.77.0.1";
const PORTS: [(u16, u16); 3] = [(23_790, 23_800), (23_791, 23_801), (23_792, 23_802)];

/// The members; they end with this value.
pub struct Members {
    program: PathBuf,
    folder: PathBuf,
    running: [Option<Child>; 3],
}

impl Members {
    /// Starts all three in a namespace.
    pub fn start(program: &Path, namespace: &Namespace, folder: &Path) -> Self {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut members = Self { program, folder, running: [None, None, None] };
        for n in 0..PORTS.len() {
            members.begin(n, namespace);
        }
        members
    }

    /// Their URLs for clients.
    pub fn urls() -> [String; 3] {
        PORTS.map(|(client, _)| format!("http://{ADDRESS}:{client}"))
    }

    /// Starts one, with the data that it had.
    pub fn begin(&mut self, n: usize, namespace: &Namespace) {
        let (client, peer) = PORTS[n];
        let all: Vec<_> = PORTS
            .iter()
            .enumerate()
            .map(|(n, (_, peer))| format!("m{n}=http://{ADDRESS}:{peer}"))
            .collect();
        let log = self.folder.join(format!("etcd{n}.log"));
        let log = File::options().create(true).append(true).open(log).expect("a log");
        let mut command = Command::new(&self.program);
        command.args(["--name", &format!("m{n}"), "--data-dir"]);
        command.arg(self.folder.join(format!("etcd{n}")));
        let own = |port| format!("http://{ADDRESS}:{port}");
        command.args(["--listen-client-urls", &own(client)]);
        command.args(["--advertise-client-urls", &own(client)]);
        command.args(["--listen-peer-urls", &own(peer)]);
        command.args(["--initial-advertise-peer-urls", &own(peer)]);
        command.args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        namespace.enter(&mut command);
        self.running[n] = Some(command.spawn().expect("etcd"));
    }

    /// Kills one.
    pub fn kill(&mut self, n: usize) {
        if let Some(mut member) = self.running[n].take() {
            member.kill().expect("killed");
            member.wait().expect("its end");
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        (0..PORTS.len()).for_each(|n| self.kill(n));
    }
}
