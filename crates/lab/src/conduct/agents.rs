//! The agents of a run: started or reached, greeted, timed, told, listened to.

use crate::agent::clock::{self, Exchange, Offset};
use crate::agent::connection::Connection;
use crate::agent::proto::{self, FromAgent, ProtoError, ToAgent};
use crate::agent::token::{TOKEN_ENV, Token};
use base::clock::Deadline;
use base::limits::LAB_EVENTS_MAX;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Exchanges by which a clock is compared; the least disturbed one counts.
const PINGS: u64 = 16;
/// Many missed beats: something kept the agent from running. A machine on which every core is
/// fought over misses some.
const PAUSE_NS: u64 = 2_500_000_000;
/// Address of an agent that a run has started itself.
const HERE: &str = "this machine";
/// How long an agent may take to start, to greet, to answer a ping.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Why the agents cannot be had or kept.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// The program cannot be started.
    #[error("cannot start an agent with {0:?}")]
    Start(Vec<String>, #[source] std::io::Error),
    /// There is no program to start.
    #[error("no program for agents")]
    NoProgram,
    /// It cannot be reached.
    #[error("cannot reach the agent at {0}")]
    Reach(String, #[source] std::io::Error),
    /// The conversation failed.
    #[error("agent at {0}: {1}")]
    Proto(String, ProtoError),
    /// It said that it cannot.
    #[error("client {0}: {1}")]
    Failed(u32, String),
    /// No message came in time after the connection was made.
    #[error("the agent at {0} did not reply within {1:?}; it may serve another controller")]
    Mute(String, Duration),
    /// It does not answer.
    #[error("client {0} did not reply within {1:?}")]
    Silent(u32, Duration),
    /// One that is to observe cannot.
    #[error("the agent at {0}: {1}")]
    Observer(String, String),
    /// It is gone.
    #[error("client {0} is gone")]
    Gone(u32),
}

/// What came from an agent, stamped when it was read.
pub struct Event {
    /// Number of the agent.
    pub agent: u32,
    /// Controller's monotonic clock, ns.
    pub at_ns: u64,
    /// The message; `None` when the connection ended.
    pub message: Option<FromAgent>,
}

/// One agent as the conductor knows it.
pub struct Agent {
    /// Its number, which is its client's.
    pub number: u32,
    /// Where it was reached, or that it was started here.
    pub address: String,
    /// The address its client connects from.
    pub bind: Option<IpAddr>,
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub machine: serde_json::Value,
    /// Its clock against ours.
    pub offset: Offset,
    /// Its wall clock minus ours, ns.
    pub wall_skew_ns: i64,
    /// When something last came from it, conductor's monotonic clock, ns.
    pub heard_ns: u64,
    /// How it was lost.
    pub lost: Option<String>,
    /// When that was noticed, conductor's monotonic clock, ns.
    pub lost_ns: u64,
    stream: Connection,
    child: Option<Child>,
}

impl Agent {
    /// Tells it something.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn tell(&mut self, message: &ToAgent) -> Result<(), AgentsError> {
        proto::send(&mut self.stream, message)
            .map_err(|e| AgentsError::Proto(self.address.clone(), e))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = proto::send(&mut self.stream, &ToAgent::Bye);
        self.stream.shutdown();
        if let Some(child) = &mut self.child {
            // It ends by itself when its conductor leaves; a stopped one does not.
            let deadline = Deadline::after(Duration::from_millis(500));
            while !deadline.passed() && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How agents are had.
#[derive(Debug, Clone)]
pub enum Source {
    /// Started here, one process per client.
    Local {
        /// How many.
        clients: u32,
        /// Program and first arguments, to which `--inherited` is added.
        command: Vec<String>,
    },
    /// Running already.
    Remote {
        /// `HOST:PORT` of each.
        addresses: Vec<String>,
        /// The token that they require.
        token: Option<Token>,
    },
}

/// All agents of a run.
pub struct Agents {
    /// In order of their numbers.
    pub all: Vec<Agent>,
    /// Agents that were silent for longer than [`PAUSE_NS`] and came back: what was seen.
    pub paused: Vec<String>,
    events: Receiver<Event>,
}

impl Agents {
    /// Starts or reaches them, greets them, compares the clocks.
    ///
    /// # Errors
    /// The first agent that cannot be had ends the attempt.
    pub fn gather(source: &Source, bind: bool) -> Result<Self, AgentsError> {
        let (sender, events) = sync_channel(LAB_EVENTS_MAX);
        let mut all = Vec::new();
        match source {
            Source::Local { clients, command } => {
                let started: Result<Vec<_>, _> = (0..*clients).map(|_| start(command)).collect();
                for (number, (child, stream)) in started?.into_iter().enumerate() {
                    let number = number as u32;
                    let mut agent = greet(number, HERE.to_owned(), stream, None, &sender)?;
                    agent.bind = bind.then(|| local_address(number));
                    agent.child = Some(child);
                    all.push(agent);
                }
            }
            Source::Remote { addresses, token } => {
                for (number, address) in addresses.iter().enumerate() {
                    let reach = |e| AgentsError::Reach(address.clone(), e);
                    let stream = TcpStream::connect(address).and_then(Connection::tcp);
                    let (stream, token) = (stream.map_err(reach)?, token.as_ref());
                    all.push(greet(number as u32, address.clone(), stream, token, &sender)?);
                }
            }
        }
        let mut agents = Self { all, paused: Vec::new(), events };
        for number in 0..agents.all.len() as u32 {
            let (offset, wall_skew_ns) = agents.compare_clock(number)?;
            let agent = &mut agents.all[number as usize];
            (agent.offset, agent.wall_skew_ns) = (offset, wall_skew_ns);
        }
        Ok(agents)
    }

    /// The agents that are not lost.
    pub fn live(&self) -> impl Iterator<Item = &Agent> {
        self.all.iter().filter(|a| a.lost.is_none())
    }

    /// The next event, or `None` after `timeout`. Notes who was heard.
    pub fn next(&mut self, timeout: Duration) -> Option<Event> {
        let event = match self.events.recv_timeout(timeout) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        if let Some(agent) = self.all.get_mut(event.agent as usize) {
            match &event.message {
                Some(_) => {
                    let silent = event.at_ns.saturating_sub(agent.heard_ns);
                    agent.heard_ns = event.at_ns;
                    if silent > PAUSE_NS && agent.lost.is_none() {
                        let time = base::units::time_ns(silent as f64);
                        self.paused.push(format!("client {}: silent for {time}", agent.number));
                    }
                }
                None if agent.lost.is_none() => {
                    agent.lost_ns = event.at_ns;
                    agent.lost = Some(how_it_ended(agent));
                }
                None => {}
            }
        }
        Some(event)
    }

    /// Marks agents that were not heard for `limit` before `now`, conductor's monotonic clock in
    /// ns, as lost; returns their numbers.
    pub fn overdue(&mut self, now: u64, limit: Duration) -> Vec<u32> {
        let mut found = Vec::new();
        for agent in self.all.iter_mut().filter(|a| a.lost.is_none()) {
            let silent = now.saturating_sub(agent.heard_ns);
            if silent > limit.as_nanos() as u64 {
                let for_ = base::units::time_ns(silent as f64);
                agent.lost = Some(format!("paused or disconnected: silent for {for_}"));
                agent.lost_ns = now;
                // When it wakes up it must not go on with load that nobody counts.
                agent.stream.shutdown();
                found.push(agent.number);
            }
        }
        found
    }

    /// Compares an agent's clock with ours: its offset, and its wall clock minus ours, ns.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn compare_clock(&mut self, number: u32) -> Result<(Offset, i64), AgentsError> {
        let (mut mono, mut wall) = (Vec::new(), Vec::new());
        for id in 0..PINGS {
            let wall_offset = base::clock::wall_ns() as i64 - clock::mono_ns() as i64;
            let sent_ns = clock::mono_ns();
            self.tell(number, &ToAgent::Ping { id })?;
            let (received_ns, theirs, their_wall) =
                self.expect(number, |message| match message {
                    FromAgent::Pong { id: got, mono_ns, wall_ns } if got == id => {
                        Some((mono_ns, wall_ns))
                    }
                    _ => None,
                })?;
            mono.push(Exchange { sent_ns, theirs_ns: theirs, received_ns });
            let on_wall = |ns: u64| ns.saturating_add_signed(wall_offset);
            wall.push(Exchange {
                sent_ns: on_wall(sent_ns),
                theirs_ns: their_wall,
                received_ns: on_wall(received_ns),
            });
        }
        let skew = clock::offset(&wall).map_or(0, |o| o.offset_ns);
        Ok((clock::offset(&mono).unwrap_or_default(), skew))
    }

    /// Waits for a message of one agent that `pick` takes; others are passed over.
    fn expect(
        &mut self,
        number: u32,
        mut pick: impl FnMut(FromAgent) -> Option<(u64, u64)>,
    ) -> Result<(u64, u64, u64), AgentsError> {
        let deadline = Deadline::after(ANSWER_WITHIN);
        while !deadline.passed() {
            let Some(event) = self.next(Duration::from_millis(100)) else { continue };
            if event.agent != number {
                continue;
            }
            match event.message {
                None => return Err(AgentsError::Gone(number)),
                Some(FromAgent::Failed { what }) => return Err(AgentsError::Failed(number, what)),
                Some(message) => {
                    if let Some((a, b)) = pick(message) {
                        return Ok((event.at_ns, a, b));
                    }
                }
            }
        }
        Err(AgentsError::Silent(number, ANSWER_WITHIN))
    }

    /// Tells one agent something.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn tell(&mut self, number: u32, message: &ToAgent) -> Result<(), AgentsError> {
        self.all.get_mut(number as usize).ok_or(AgentsError::Gone(number))?.tell(message)
    }
}

/// 127.0.0.11 for the first client and so on: as many clients to the server as there are agents.
fn local_address(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 11)) + number))
}

/// The command that starts an agent with this very program.
pub fn own_command() -> Vec<String> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("plimsoll"));
    vec![program.display().to_string(), "lab".into(), "agent".into()]
}

/// Starts an agent with one end of a pair of sockets as its standard input: no other process can
/// take it over, and it ends with this one.
fn start(command: &[String]) -> Result<(Child, Connection), AgentsError> {
    let (program, arguments) = command.split_first().ok_or(AgentsError::NoProgram)?;
    let failed = |e| AgentsError::Start(command.to_vec(), e);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let child = Command::new(program)
        .args(arguments)
        .arg("--inherited")
        .env_remove(TOKEN_ENV)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    Ok((child, Connection::Inherited(ours)))
}

/// Exchanges the first messages, and listens to the agent from then on.
fn greet(
    number: u32,
    address: String,
    mut stream: Connection,
    token: Option<&Token>,
    sender: &SyncSender<Event>,
) -> Result<Agent, AgentsError> {
    let reach = |e| AgentsError::Reach(address.clone(), e);
    stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(reach)?;
    let broke = |e| match e {
        ProtoError::Io(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            AgentsError::Mute(address.clone(), ANSWER_WITHIN)
        }
        e => AgentsError::Proto(address.clone(), e),
    };
    let versions = proto::VERSIONS;
    let token = token.map(|token| token.text().to_owned());
    proto::send(&mut stream, &ToAgent::Hello { versions, token }).map_err(broke)?;
    let (pid, machine) = match proto::receive(&mut stream).map_err(broke)? {
        FromAgent::Hello { pid, machine, .. } => (pid, machine),
        FromAgent::Failed { what } => return Err(AgentsError::Failed(number, what)),
        _ => return Err(broke(ProtoError::Order("hello"))),
    };
    stream.set_read_timeout(None).map_err(reach)?;
    let from = stream.try_clone().map_err(reach)?;
    listen(number, from, sender.clone());
    Ok(Agent {
        number,
        address,
        bind: None,
        pid,
        machine,
        offset: Offset::default(),
        wall_skew_ns: 0,
        heard_ns: clock::mono_ns(),
        lost: None,
        lost_ns: 0,
        stream,
        child: None,
    })
}

/// Reads what an agent says until it ends or the conductor lets go of the events.
fn listen(number: u32, mut from: Connection, sender: SyncSender<Event>) {
    std::thread::spawn(move || {
        loop {
            let message = proto::receive::<FromAgent>(&mut from).ok();
            let last = message.is_none();
            let event = Event { agent: number, at_ns: clock::mono_ns(), message };
            if sender.send(event).is_err() || last {
                return;
            }
        }
    });
}

fn how_it_ended(agent: &mut Agent) -> String {
    let deadline = Deadline::after(Duration::from_millis(200));
    let Some(child) = &mut agent.child else { return "its connection ended".to_owned() };
    while !deadline.passed() {
        if let Ok(Some(status)) = child.try_wait() {
            return format!("its process ended: {status}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    "its connection ended while its process lives".to_owned()
}
