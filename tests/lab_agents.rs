//! Load agents on other machines as their users have them, with real processes: what goes wrong is
//! named, with its exit code; their messages are read by no other process.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use e2e::lab::{Agent, command, lines};
use e2e::process;
use e2e::scratch::Scratch;
use serde_json::Value;

/// How long anything may take on a busy machine.
const WAIT: Duration = e2e::patience(90);
/// A code that no agent has.
const WRONG: &str = "00000-11111-22222-33333";
/// A password of a target.
const PASSWORD: &str = "a-password-of-the-test";
/// Exit codes, as `lab run --help` has them.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const DEGRADED: i32 = 3;
const REFUSED: i32 = 4;
const VERSION: i32 = 5;
const SILENT: i32 = 6;

/// What a short run has printed and how it has ended.
struct Ended {
    code: i32,
    said: String,
}

impl Ended {
    /// The exit code must be this, and the output have all these words.
    #[track_caller]
    fn check(&self, code: i32, words: &[&str]) {
        // A step that was not steady on a busy machine is no failure here.
        let done = code == DONE && self.code == DEGRADED;
        assert!(done || self.code == code, "exit {} for {code}: {}", self.code, self.said);
        for word in words {
            assert!(self.said.contains(word), "no {word:?}: {}", self.said);
        }
    }
}

/// A run in progress.
struct Run {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    out: Scratch,
}

impl Run {
    fn start(target: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        let out = Scratch::new("agents");
        let mut command = command();
        command.args(["run", "iops-4k", "--target", target]);
        let sets = ["schedule=[[9,1],[9,2]]", "step_max_ms=600", "warmup_ms=50", "window_ms=50"];
        command.args(sets.iter().flat_map(|set| ["--set", set]));
        command.args(["--set", "file_size=1m", "--out"]).arg(out.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().expect("a run");
        let lines = lines(child.stderr.take().expect("a pipe"));
        Self { child, lines, said: Vec::new(), out }
    }

    /// Waits for a line with this in it.
    fn wait_for(&mut self, word: &str) {
        while !self.said.iter().any(|line| line.contains(word)) {
            match self.lines.recv_timeout(WAIT) {
                Ok(line) => self.said.push(line),
                Err(_) => panic!("no {word:?}; it said:\n{}", self.said.join("\n")),
            }
        }
    }

    fn end(mut self) -> Ended {
        let status = process::wait(&mut self.child, WAIT).expect("its end");
        self.said.extend(self.lines.iter());
        Ended { code: status.code().unwrap_or(-1), said: self.said.join("\n") }
    }
}

/// A short run with these agents, each with this code.
fn run(target: &str, agents: &[&Agent], code: &str) -> Ended {
    start(target, agents, code, &[]).end()
}

fn start(target: &str, agents: &[&Agent], code: &str, more: &[&str]) -> Run {
    let addresses: Vec<&str> = agents.iter().map(|agent| agent.address.as_str()).collect();
    let addresses = addresses.join(",");
    let code = code.to_owned();
    let mut run = Run::start(target, |command| {
        command.args(["--agents", &addresses, "--code-file", "-"]).args(more);
        command.stdin(Stdio::piped());
    });
    let mut stdin = run.child.stdin.take().expect("a pipe");
    stdin.write_all(code.as_bytes()).expect("the code");
    run
}

fn agent(arguments: &[&str]) -> Agent {
    Agent::start(|command| {
        command.args(arguments);
    })
}

/// An agent that serves more than one run; the codes that it prints later.
fn lasting() -> (Agent, Receiver<String>) {
    Agent::lasting(|_| ())
}

#[test]
fn a_wrong_a_used_and_an_expired_code_are_named() {
    let (agent, codes) = lasting();
    let refused = run("null:", &[&agent], WRONG);
    refused.check(REFUSED, &["agent 0", &agent.address, "wrong join code", "--code-file"]);
    // A wrong one does not use up the right one.
    run("null:", &[&agent], &agent.code).check(DONE, &[]);
    run("null:", &[&agent], &agent.code).check(REFUSED, &["the join code has been used"]);
    // The agent has printed the next one.
    let next: Value = serde_json::from_str(&codes.recv_timeout(WAIT).expect("a line")).unwrap();
    run("null:", &[&agent], next["code"].as_str().expect("a code")).check(DONE, &[]);
    let agent = self::agent(&["--code-life", "0"]);
    run("null:", &[&agent], &agent.code).check(REFUSED, &["the join code has expired"]);
}

#[test]
fn a_code_is_no_argument() {
    let ended = Run::start("null:", |command| {
        command.args(["--agents", &format!("127.0.0.1:2150={WRONG}")]);
    })
    .end();
    ended.check(USAGE, &["visible to all users", "--code-file FILE"]);
    let ended = Run::start("null:", |command| {
        command.args(["--agents", "127.0.0.1:2150"]);
    })
    .end();
    ended.check(USAGE, &["a join code is required", "--code-file FILE"]);
}

#[test]
fn another_version_is_named() {
    let agent = Agent::start(|command| {
        command.env("PLIMSOLL_TEST_AGENT_VERSIONS", "77-78");
    });
    let ended = run("null:", &[&agent], &agent.code);
    ended.check(VERSION, &["speaks 77 to 78", "use the same version of the program"]);
    // A version before TLS, or another service: it sends other bytes.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let _gone = socket.write_all(b"220 another service\r\n");
        let _end = socket.read(&mut [0; 4096]);
    });
    let ended = with_address("null:", &address);
    ended.check(VERSION, &[&address, "another service, or a version of the program before TLS"]);
}

/// A run with something at this address that is no agent.
fn with_address(target: &str, address: &str) -> Ended {
    let mut run = Run::start(target, |command| {
        command.args(["--agents", address, "--code-file", "-"]).stdin(Stdio::piped());
    });
    run.child.stdin.take().expect("a pipe").write_all(WRONG.as_bytes()).expect("the code");
    run.end()
}

#[test]
fn a_clock_that_is_off_is_named() {
    let dir = Scratch::new("skew");
    let file = dir.path().join("skew");
    fs::write(&file, "3000").expect("the skew");
    let agent = Agent::start(|command| {
        command.env("PLIMSOLL_TEST_CLOCK_SKEW_FILE", &file);
    });
    let ended = run("null:", &[&agent], &agent.code);
    ended.check(DEGRADED, &["client 0: its wall clock is off by", "3"]);
}

#[test]
fn silent_absent_and_paused_agents_are_named() {
    // One that accepts and sends nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let silent = thread::spawn(move || with_address("null:", &address));
    let agent = self::agent(&[]);
    agent.signal(libc::SIGSTOP);
    let paused = run("null:", &[&agent], &agent.code);
    paused.check(SILENT, &["agent 0", &agent.address, "does not reply within 10s", "paused"]);
    silent.join().expect("a run").check(SILENT, &["does not reply within 10s"]);
    drop(listener);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    with_address("null:", &free.to_string()).check(SILENT, &["cannot connect to", "refused"]);
}

#[test]
fn agents_that_are_killed_or_paused_during_a_run_are_named() {
    for (signal, word) in [(libc::SIGKILL, "lost client 1"), (libc::SIGSTOP, "paused")] {
        let agents = [agent(&[]), agent(&[])];
        let codes = agents.iter().map(|a| format!("{} {}\n", a.address, a.code));
        let codes: String = codes.collect();
        let sets = ["--set", "lost_after_ms=3000", "--set", "schedule=[[2,1],[2,2],[2,4]]"];
        let mut run = start("null:", &[&agents[0], &agents[1]], &codes, &sets);
        run.wait_for(" × ");
        agents[1].signal(signal);
        run.end().check(DEGRADED, &["client 1", word]);
    }
}

#[test]
fn a_second_controller_is_refused_in_a_sentence() {
    let (agent, codes) = lasting();
    let long = [
        "--set",
        "schedule=[[1,1]]",
        "--set",
        "step_max_ms=60000",
        "--set",
        "steady.windows=10000",
    ];
    let mut first = start("null:", &[&agent], &agent.code, &long);
    first.wait_for("iops-4k");
    let next: Value = serde_json::from_str(&codes.recv_timeout(WAIT).expect("a line")).unwrap();
    let code = next["code"].as_str().expect("a code");
    let second = run("null:", &[&agent], code);
    second.check(REFUSED, &["the agent is in use by another controller"]);
    // That did not use its code up, and the first one is served still.
    assert!(matches!(first.child.try_wait(), Ok(None)), "{:?}", first.said);
    first.child.kill().expect("a signal");
    first.end();
    run("null:", &[&agent], code).check(DONE, &[]);
}

/// From the start of a run to its first words, which it has when all agents are there.
fn until_served(agent: &Agent, code: &str) -> Duration {
    let begun = Instant::now();
    let mut run = start("null:", &[agent], code, &[]);
    run.wait_for("iops-4k");
    let served = begun.elapsed();
    run.end().check(DONE, &[]);
    served
}

#[test]
fn silent_connections_delay_a_controller_by_less_than_a_second() {
    let (agent, codes) = lasting();
    let mut code = agent.code.clone();
    let mut least = |strangers: usize| {
        let each = (0..3).map(|_| {
            let silent: Vec<TcpStream> = (0..strangers)
                .map(|_| TcpStream::connect(&agent.address).expect("a connection"))
                .collect();
            let served = until_served(&agent, &code);
            drop(silent);
            let line = codes.recv_timeout(WAIT).expect("a line");
            let next: Value = serde_json::from_str(&line).unwrap();
            next["code"].as_str().expect("a code").clone_into(&mut code);
            served
        });
        each.min().expect("a run")
    };
    let (control, with) = (least(0), least(64));
    assert!(with < control + Duration::from_secs(1), "{with:?}, {control:?} without");
}

#[test]
fn folders_outside_the_list_are_refused() {
    let top = Scratch::new("listed");
    let [listed, other] = ["listed", "other"].map(|name| {
        let path = top.path().join(name);
        fs::create_dir(&path).expect("a folder");
        path
    });
    symlink(&other, listed.join("link")).expect("a link");
    let path = |path: &Path| format!("path:{}", path.display());
    let allow = listed.display().to_string();
    let refuses = |allow: &[&str], target: &str, word: &str| {
        let agent = agent(allow);
        run(target, &[&agent], &agent.code).check(FAILED, &[word]);
    };
    refuses(&[], &path(&listed), "--allow-path");
    refuses(&[], &format!("block:{}", listed.join("disk").display()), "--allow-block");
    let only = ["--allow-path", allow.as_str()];
    refuses(&only, &path(&other), "not listed by the agent's owner");
    refuses(&only, &path(&listed.join("../other")), "symbolic links");
    refuses(&only, &path(&listed.join("link")), "symbolic links");
    refuses(&["--allow-target", "10.0.0.0/8"], "nfs3://127.0.0.1/x", "--allow-target");
    assert_eq!(fs::read_dir(&other).expect("a folder").count(), 0, "a folder was left");
    let agent = self::agent(&only);
    run(&path(&listed), &[&agent], &agent.code).check(DONE, &[]);
    assert!(listed.join("plimsoll-lab.0").is_dir());
}

/// Passes on what two sides send, and records it.
struct Relay {
    address: SocketAddr,
    passed: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, to) = (listener.local_addr().expect("an address"), to.to_owned());
        let passed: Arc<Mutex<Vec<u8>>> = Arc::default();
        let shared = Arc::clone(&passed);
        thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let far = TcpStream::connect(&to).expect("the other side");
                let ends = |s: &TcpStream| s.try_clone().expect("a descriptor");
                for (mut from, mut to) in [(ends(&near), ends(&far)), (far, near)] {
                    let passed = Arc::clone(&shared);
                    thread::spawn(move || {
                        let mut buffer = vec![0; 16 << 10];
                        while let Ok(read @ 1..) = from.read(&mut buffer) {
                            passed.lock().unwrap().extend_from_slice(&buffer[..read]);
                            if to.write_all(&buffer[..read]).is_err() {
                                break;
                            }
                        }
                        let _gone = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, passed }
    }
}

fn has(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

/// All files below a folder.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Arguments and environments of all processes, without those of the test itself.
fn processes() -> BTreeSet<Vec<u8>> {
    let pids = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).ok();
    pids.filter(|pid| *pid != std::process::id()).filter_map(read).collect()
}

#[test]
fn neither_packets_nor_processes_nor_results_have_a_secret() {
    let (agent, codes) = lasting();
    let relay = Relay::start(&agent.address);
    let between = relay.address.to_string();
    let mut code = agent.code.clone();
    let mut all = vec![code.clone()];
    let mut arguments = BTreeSet::new();
    // A run that works, and one with a password that the agent needs.
    let with_password = format!("ftp://user:{PASSWORD}@127.0.0.1:1/");
    for (target, ends) in [("null:", DONE), (with_password.as_str(), FAILED)] {
        let mut run = Run::start(target, |command| {
            command.args(["--agents", &between, "--code-file", "-"]).stdin(Stdio::piped());
        });
        run.child.stdin.take().expect("a pipe").write_all(code.as_bytes()).expect("the code");
        run.wait_for("iops-4k");
        arguments.extend(processes());
        let mut written = Vec::new();
        let status = process::wait(&mut run.child, WAIT).expect("its end");
        run.said.extend(run.lines.iter());
        let said = run.said.join("\n");
        Ended { code: status.code().unwrap_or(-1), said }.check(ends, &[]);
        files(run.out.path(), &mut written);
        assert!(written.len() >= 2, "{written:?}");
        let line = codes.recv_timeout(WAIT).expect("a line");
        let next: Value = serde_json::from_str(&line).unwrap();
        next["code"].as_str().expect("a code").clone_into(&mut code);
        for file in written {
            let bytes = fs::read(&file).expect("a file");
            for secret in all.iter().map(String::as_str).chain([PASSWORD]) {
                assert!(!has(&bytes, secret), "{secret} in {}", file.display());
            }
        }
        assert!(!has(run.said.join("\n").as_bytes(), PASSWORD), "{}", run.said.join("\n"));
        all.push(code.clone());
    }
    let passed = relay.passed.lock().unwrap();
    // TLS, and enough of it that messages of a run are there.
    assert!(passed.len() > 10_000 && passed.starts_with(&[22, 3]), "{}", passed.len());
    for secret in all.iter().map(String::as_str).chain([PASSWORD, "prepare", "machine"]) {
        assert!(!has(&passed, secret), "{secret} in packets");
        let plain = secret.replace('-', "");
        assert!(!has(&passed, &plain), "{plain} in packets");
    }
    assert!(arguments.iter().any(|line| has(line, "--code-file")), "the run was not seen");
    for line in &arguments {
        let shown = String::from_utf8_lossy(line);
        for secret in all.iter().map(String::as_str).chain([PASSWORD]) {
            assert!(!has(line, secret), "{secret} in {shown}");
        }
    }
}

#[test]
fn agents_that_call_serve_all_rows_and_end_with_their_controller() {
    let dir = Scratch::new("joined");
    let file = dir.path().join("code");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let at = free.to_string();
    // They may be first: neither the code nor the controller is there yet.
    let mut agents: Vec<Child> = (0..3)
        .map(|_| {
            let mut command = command();
            command.args(["agent", "--join", &at, "--code-file"]).arg(&file);
            command.stderr(Stdio::piped()).spawn().expect("an agent")
        })
        .collect();
    let mut limits = command();
    limits.args(["limits", "--target", "null:", "--rows", "iops-4k,iops-8k", "--agents", "3"]);
    limits.args(["--listen-agents", &at, "--code-file"]).arg(&file);
    let sets = ["schedule=[[3,1]]", "step_max_ms=600", "warmup_ms=50", "window_ms=50"];
    limits.args(sets.iter().flat_map(|set| ["--set", set]));
    limits.arg("--out").arg(dir.path().join("out")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = limits.spawn().expect("the rows");
    let said = lines(child.stderr.take().expect("a pipe"));
    let status = process::wait(&mut child, WAIT).expect("its end");
    let said: Vec<String> = said.iter().collect();
    assert!([0, DEGRADED].contains(&status.code().unwrap_or(-1)), "{}", said.join("\n"));
    assert!(!file.exists(), "the code is left");
    for agent in &mut agents {
        let status = process::wait(agent, WAIT).expect("its end");
        let mut text = String::new();
        agent.stderr.take().expect("a pipe").read_to_string(&mut text).expect("its words");
        assert_eq!(status.code(), Some(0), "{text}");
    }
    for row in ["iops-4k", "iops-8k"] {
        let file = dir.path().join("out/null").join(row).join("result.json");
        let result: Value = serde_json::from_slice(&fs::read(file).expect("a result")).unwrap();
        assert_eq!(result["clients"].as_array().map(Vec::len), Some(3));
    }
}

#[test]
fn an_agent_that_calls_with_a_wrong_code_reports_it() {
    let dir = Scratch::new("called");
    let file = dir.path().join("code");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let mut run = Run::start("null:", |command| {
        command.args(["--agents", "1", "--listen-agents", &free.to_string(), "--code-file"]);
        command.arg(&file);
    });
    run.wait_for("waiting for 1 agents");
    let wrong = dir.path().join("wrong");
    fs::write(&wrong, WRONG).expect("a file");
    let join = |file: &Path| {
        let mut command = command();
        command.args(["agent", "--join", &free.to_string(), "--code-file"]).arg(file);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("an agent");
        let status = process::wait(&mut child, WAIT).expect("its end");
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("its words");
        Ended { code: status.code().unwrap_or(-1), said }
    };
    join(&wrong).check(REFUSED, &["controller", "wrong join code"]);
    join(&file).check(DONE, &[]);
    run.end().check(DONE, &[]);
}
