//! Many agents that call one controller, which is a process of its own: its memory and threads do
//! not grow with them, and it counts all that they report. The agents are simulated: they implement
//! the protocol and put load on nothing. `PLIMSOLL_LAB_AGENTS` sets their number.

use lab::agent::clock;
use lab::agent::code::{CodeFile, JoinCode, Role};
use lab::agent::connection::Connection;
use lab::agent::join::{Caller, JoinError};
use lab::agent::proto::{self, FromAgent, Start, StepEnd, ToAgent, Window};
use lab::agent::tls::Identity;
use lab::hist;
use lab::record::RunResult;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Agents in the gate.
const AGENTS: usize = 60;
/// Agents that join at the same time.
const JOINS: usize = 16;
/// How long a run may take.
const WAIT: Duration = Duration::from_secs(300);
/// Operations of one agent in one window.
const OPS: u64 = 1000;
/// What the controller may use.
const MEMORY_MAX: u64 = 512 << 20;
/// Threads of a controller that runs, whatever the number of its agents.
const THREADS_MAX: usize = 16;

pub fn many_agents() {
    let number = std::env::var("PLIMSOLL_LAB_AGENTS").ok().and_then(|n| n.parse().ok());
    let number = number.unwrap_or(AGENTS);
    let dir = super::scratch("many");
    let (file, out) = (dir.join("code"), dir.join("out"));
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut child = controller(number, &at, &file, &out);
    let agents = join_all(number, &at, &code(&file));
    let threads = simulate(agents, &mut child);
    let (code, memory) = end(&mut child);
    assert!(code == 0 || code == 3, "exit code {code}");
    let result = RunResult::read(&out).unwrap();
    assert_eq!(result.failed, None);
    let lost: Vec<_> = result.clients.iter().filter_map(|c| c.lost.as_ref()).collect();
    assert!(result.clients.len() == number && lost.is_empty(), "{lost:?}");
    for step in &result.steps {
        assert_eq!(step.by_client.len(), number);
        let (from, to) = step.used;
        assert!(to > from, "no windows in step {}", step.number);
        for window in &step.windows[from..to] {
            assert_eq!(window.ops, OPS * number as u64);
        }
    }
    eprintln!("{number} agents: {} MiB, {threads} threads", memory >> 20);
    assert!(memory < MEMORY_MAX, "{memory} bytes");
    assert!(threads <= THREADS_MAX, "{threads} threads");
    std::fs::remove_dir_all(dir).unwrap();
}

/// Starts the controller before this process has grown: its peak begins with that of this one.
fn controller(number: usize, at: &str, file: &Path, out: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["lab", "run", "iops-4k", "--target", "null:", "--quiet"]);
    command.args(["--agents", &number.to_string(), "--listen-agents", at]);
    command.arg("--code-file").arg(file).arg("--out").arg(out);
    let schedule = format!("schedule=[[{number},1],[{number},4]]");
    let sets = [&schedule, "window_ms=250", "warmup_ms=250", "step_max_ms=3000"];
    command.args(sets.iter().flat_map(|set| ["--set", set]));
    command.args(["--set", "lost_after_ms=20000"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// The code that the controller has written.
fn code(file: &Path) -> JoinCode {
    let begun = Instant::now();
    loop {
        if let Ok(codes) = CodeFile::read(file) {
            return codes.code("").unwrap();
        }
        assert!(begun.elapsed() < WAIT, "no code");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn join_all(number: usize, at: &str, code: &JoinCode) -> Vec<Connection> {
    let joined = Mutex::new(Vec::new());
    let left = Mutex::new(0..number);
    std::thread::scope(|scope| {
        for _ in 0..JOINS {
            scope.spawn(|| {
                while { left.lock().unwrap().next() }.is_some() {
                    let connection = join(at, code);
                    joined.lock().unwrap().push(connection);
                }
            });
        }
    });
    joined.into_inner().unwrap()
}

fn join(at: &str, code: &JoinCode) -> Connection {
    let identity = Identity::new().unwrap();
    let caller = Caller { role: Role::Agent, identity: &identity, code, pinned: None };
    let begun = Instant::now();
    loop {
        match caller.call(at) {
            Ok(joined) => return joined.connection(),
            Err(JoinError::Connect(..) | JoinError::Closed(_) | JoinError::Silent(..))
                if begun.elapsed() < WAIT => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A message for one of them; `None` at its end.
type Inbox = Receiver<(usize, Option<ToAgent>)>;

/// A step that one of them runs.
struct Running {
    start: Start,
    until_ns: u64,
    index: u32,
}

struct Simulated {
    connection: Connection,
    running: Option<Running>,
    /// Whether it has replied to the greeting: beats follow it.
    greeted: bool,
    ended: bool,
}

/// Speaks for all of them until all have ended; the most threads that the controller had in a step.
fn simulate(connections: Vec<Connection>, child: &mut Child) -> usize {
    let (sender, inbox) = channel();
    for (number, connection) in connections.iter().enumerate() {
        read(number, connection.clone(), sender.clone());
    }
    let mut agents: Vec<Simulated> = connections
        .into_iter()
        .map(|connection| Simulated { connection, running: None, greeted: false, ended: false })
        .collect();
    let latency = Arc::new(latency());
    let (begun, mut beat_ns, mut threads) = (Instant::now(), 0, 0);
    while agents.iter().any(|agent| !agent.ended) {
        assert!(begun.elapsed() < WAIT, "the run does not end");
        take(&inbox, &mut agents);
        let now = clock::mono_ns();
        for agent in agents.iter_mut().filter(|agent| !agent.ended) {
            agent.turn(now, &latency);
        }
        if now >= beat_ns {
            beat_ns = now + 200_000_000;
            for agent in agents.iter_mut().filter(|agent| agent.greeted && !agent.ended) {
                agent.send(&FromAgent::Beat { mono_ns: now });
            }
            if agents.iter().all(|agent| agent.running.is_some()) {
                let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
                threads = threads.max(tasks.map_or(0, Iterator::count));
            }
        }
    }
    threads
}

fn read(number: usize, mut from: Connection, sender: Sender<(usize, Option<ToAgent>)>) {
    let builder = std::thread::Builder::new().stack_size(256 << 10);
    builder
        .spawn(move || {
            loop {
                let message = proto::receive::<ToAgent>(&mut from).ok();
                let last = message.is_none();
                if sender.send((number, message)).is_err() || last {
                    return;
                }
            }
        })
        .unwrap();
}

fn take(inbox: &Inbox, agents: &mut [Simulated]) {
    let mut wait = Duration::from_millis(5);
    loop {
        match inbox.recv_timeout(wait) {
            Ok((number, message)) => agents[number].obey(message),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
        wait = Duration::ZERO;
    }
}

/// A thousand different latencies.
fn latency() -> String {
    let mut hist = hist::new();
    (1..=OPS).for_each(|n| hist.saturating_record(n * n * 50));
    hist::to_text(&hist)
}

impl Simulated {
    fn send(&mut self, message: &FromAgent) {
        self.ended |= proto::send(&mut self.connection, message).is_err();
    }

    fn obey(&mut self, message: Option<ToAgent>) {
        let now = clock::mono_ns();
        match message {
            None | Some(ToAgent::Bye) => self.ended = true,
            Some(ToAgent::Hello { .. }) => {
                self.greeted = true;
                self.send(&proto::hello(proto::VERSIONS.1));
            }
            Some(ToAgent::Ping { id }) => {
                self.send(&FromAgent::Pong { id, mono_ns: now, wall_ns: clock::wall_ns() });
            }
            Some(ToAgent::Prepare(_)) => {
                self.send(&FromAgent::Prepared { seconds: 0.0, granted: None, source: None });
            }
            Some(ToAgent::Start(start)) => {
                let until_ns = start.until_ns;
                self.running = Some(Running { start, until_ns, index: 0 });
            }
            Some(ToAgent::Stop { at_ns }) => {
                if let Some(running) = &mut self.running {
                    running.until_ns = at_ns;
                }
            }
            Some(ToAgent::Disconnect) => self.send(&FromAgent::Disconnected { calls: 0 }),
            // What is left of the messages of this run.
            Some(_) => self.send(&FromAgent::Cleaned),
        }
    }

    /// Reports the windows that have ended, and the end of the step.
    fn turn(&mut self, now: u64, latency: &str) {
        let Some(mut running) = self.running.take() else { return };
        let Running { start, until_ns, index } = &mut running;
        while now >= start.at_ns + u64::from(*index + 1) * start.window_ns {
            let window = Window {
                step: start.step,
                index: *index,
                ops: OPS,
                bytes: OPS * 4096,
                latency: latency.to_owned(),
                in_flight: f64::from(start.threads),
                ..Window::default()
            };
            *index += 1;
            self.send(&FromAgent::Window(Box::new(window)));
        }
        if now < *until_ns {
            self.running = Some(running);
            return;
        }
        let ops = u64::from(*index) * OPS;
        let end = StepEnd {
            step: start.step,
            first_op_ns: start.at_ns,
            last_op_ns: now,
            ops,
            ..StepEnd::default()
        };
        self.send(&FromAgent::StepEnd(end));
    }
}

/// Waits for the end of the controller: its exit code, and its peak of resident memory in bytes.
fn end(child: &mut Child) -> (i32, u64) {
    // SAFETY: plain data, for which all zeros is a value.
    let (mut status, mut usage): (i32, libc::rusage) = (0, unsafe { std::mem::zeroed() });
    // SAFETY: a child of this process that is not reaped yet; both are written by the kernel.
    let pid = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    assert_eq!(pid, child.id() as i32);
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 };
    (code, usage.ru_maxrss as u64 * 1024)
}
