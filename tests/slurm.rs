//! Load agents under Slurm: a controller waits, `srun` starts an agent on each of four nodes, which
//! are four daemons of one machine (`slurmd -N`). Needs root and the packages slurmctld, slurmd,
//! slurm-client and munge; `make test-long NAME=slurm`.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::random::{Random, SystemRandom};
use e2e::scratch::Scratch;
use e2e::{is_root, lab, process, skip};
use serde_json::Value;

const NODES: usize = 4;
/// How long anything may take on a busy machine.
const WAIT: Duration = e2e::patience(180);

/// A daemon; it ends with this value.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        process::signal(self.0.id(), libc::SIGTERM);
        if process::wait(&mut self.0, Duration::from_secs(10)).is_none() {
            let _gone = self.0.kill();
            let _reaped = self.0.wait();
        }
    }
}

/// A program of the packages, as root has it.
fn program(name: &str) -> Option<PathBuf> {
    let dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    dirs.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists())
}

/// A cluster of one machine.
struct Cluster {
    dir: Scratch,
    // The last one ends first: the nodes, the controller, munged.
    daemons: Vec<Daemon>,
}

impl Cluster {
    fn new(programs: &[PathBuf; 3]) -> Self {
        let [munged, slurmctld, slurmd] = programs;
        let mut cluster = Self { dir: Scratch::new("slurm"), daemons: Vec::new() };
        let at = |name: &str| cluster.dir.path().join(name);
        let mut key = [0; 128];
        SystemRandom.fill(&mut key);
        fs::write(at("munge.key"), key).expect("a key");
        fs::set_permissions(at("munge.key"), fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::create_dir(at("state")).expect("a folder");
        fs::write(at("slurm.conf"), cluster.configuration()).expect("the configuration");
        let mut munge = Command::new(munged);
        munge.args(["--foreground", "--force"]);
        for (option, name) in [
            ("--key-file", "munge.key"),
            ("--socket", "munge.socket"),
            ("--pid-file", "munge.pid"),
            ("--log-file", "munge.log"),
            ("--seed-file", "munge.seed"),
        ] {
            munge.arg(format!("{option}={}", at(name).display()));
        }
        let socket = at("munge.socket");
        cluster.start(munge);
        wait_until("munged listens", || socket.exists());
        let mut controller = Command::new(slurmctld);
        controller.args(["-D", "-c"]);
        cluster.start(controller);
        for node in 1..=NODES {
            let mut daemon = Command::new(slurmd);
            daemon.args(["-D", "-N", &format!("n{node}")]);
            cluster.start(daemon);
        }
        cluster
    }

    fn configuration(&self) -> String {
        let port =
            || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().unwrap().port();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let (host, dir) = (host.trim(), self.dir.path().display());
        let mut text = format!(
            "ClusterName=lab\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={dir}/munge.socket\nCredType=cred/munge\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool-%n\n\
             SlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/slurmd-%n.pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\nSlurmdLogFile={dir}/slurmd-%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             ReturnToService=2\nSlurmdParameters=config_overrides\n",
            port()
        );
        for node in 1..=NODES {
            let port = port();
            text += &format!(
                "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n"
            );
        }
        text + "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    }

    fn start(&mut self, mut command: Command) {
        self.environment(&mut command);
        let file = self.dir.path().join("daemons.log");
        let log = fs::File::options().create(true).append(true).open(file).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        self.daemons.insert(0, Daemon(child));
    }

    fn environment(&self, command: &mut Command) {
        command.env("SLURM_CONF", self.dir.path().join("slurm.conf"));
    }

    /// Standard output of a command of Slurm.
    fn output(&self, words: &[&str]) -> String {
        let mut command = Command::new(words[0]);
        self.environment(&mut command);
        let out = command.args(&words[1..]).output().expect("it starts");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// The logs, for a failure.
    fn logs(&self) -> String {
        let names = fs::read_dir(self.dir.path()).expect("a folder").flatten();
        let logs = names.map(|entry| entry.path());
        let logs = logs.filter(|path| path.extension().is_some_and(|end| end == "log"));
        logs.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < WAIT, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "long: make test-long NAME=slurm"]
fn four_agents_call_their_controller_under_slurm() {
    if !is_root() {
        skip!("slurm", "needs root");
    }
    let names = ["munged", "slurmctld", "slurmd"];
    let [Some(munged), Some(slurmctld), Some(slurmd)] = names.map(program) else {
        skip!("slurm", "needs the packages slurmctld, slurmd, slurm-client and munge");
    };
    let cluster = Cluster::new(&[munged, slurmctld, slurmd]);
    wait_until("all nodes are idle", || {
        let states = cluster.output(&["sinfo", "-h", "-N", "-o", "%N %T"]);
        let idle = states.lines().filter(|line| line.ends_with(" idle")).count() == NODES;
        if !idle && std::env::var_os("PLIMSOLL_SLURM_SHOW").is_some() {
            eprintln!("{states}{}", cluster.logs());
        }
        idle
    });
    let (file, out) = (cluster.dir.path().join("code"), cluster.dir.path().join("result"));
    let at = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().unwrap().to_string();
    let mut run = lab::command();
    run.args(["run", "iops-4k", "--target", "null:", "--agents", &NODES.to_string()]);
    run.args(["--listen-agents", &at, "--code-file"]).arg(&file).arg("--out").arg(&out);
    for set in ["schedule=[[4,1],[4,4]]", "step_max_ms=2000", "window_ms=100", "warmup_ms=100"] {
        run.args(["--set", set]);
    }
    let mut run = run.stdout(Stdio::null()).spawn().expect("a run");
    let mut srun = Command::new("srun");
    cluster.environment(&mut srun);
    srun.args([format!("-N{NODES}"), format!("-n{NODES}"), "--mpi=none".into()]);
    srun.arg(e2e::server::binary()).args(["lab", "agent", "--join", &at, "--code-file"]).arg(&file);
    let mut srun = srun.stdin(Stdio::null()).spawn().expect("srun");
    let ended = process::wait(&mut run, WAIT);
    if ended.is_none() {
        let _gone = run.kill();
    }
    let agents = process::wait(&mut srun, WAIT);
    let (ended, agents) = (ended.and_then(|s| s.code()), agents.and_then(|s| s.code()));
    assert!(
        matches!(ended, Some(0 | 3)) && agents == Some(0),
        "{ended:?} {agents:?} {}",
        cluster.logs()
    );
    let result = fs::read(out.join("result.json")).expect("a result");
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    let clients = result["clients"].as_array().expect("clients");
    assert_eq!(clients.len(), NODES);
    let steps = result["steps"].as_array().expect("steps");
    for step in steps {
        assert_eq!(step["by_client"].as_array().map(Vec::len), Some(NODES), "{step:#}");
    }
    let mut said = std::io::stderr();
    let line =
        format!("slurm: {NODES} agents, {} steps, exit {ended:?}, srun {agents:?}\n", steps.len());
    said.write_all(line.as_bytes()).expect("a line");
    assert!(!file.exists(), "the code is left");
}
