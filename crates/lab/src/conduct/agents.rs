//! The agents of a run: started or reached, greeted, timed; messages to and from them.

use super::exchange::{Event, Exchange};
use super::network::Subnet;
use super::roster::{Roster, RosterError};
use crate::agent::clock::{self, Exchange as Ping, Offset};
use crate::agent::code::CODE_FILE_ENV;
use crate::agent::connection::Connection;
use crate::agent::join::PROGRAM;
use crate::agent::proto::{self, FromAgent, ProtoError, ToAgent};
use base::clock::Deadline;
use base::limits::{LAB_AGENT_REPLY_MAX, LAB_SILENCE_MAX};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Exchanges by which a clock is compared; the least disturbed one counts.
const PINGS: u64 = 16;
/// Many missed beats: something kept the agent from running. A machine on which every core is
/// fought over misses some.
const PAUSE_NS: u64 = 2_500_000_000;
/// Address of an agent that a run has started itself.
const HERE: &str = "this machine";

/// Why the agents are not available, or are lost.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// The program cannot be started.
    #[error("cannot start an agent with {0:?}")]
    Start(Vec<String>, #[source] std::io::Error),
    /// There is no program to start.
    #[error("no program for agents")]
    NoProgram,
    /// The connection to it cannot be used.
    #[error("cannot use the connection to the agent at {0}")]
    Reach(String, #[source] io::Error),
    /// Those on other machines did not join.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// There are no descriptors or threads for connections.
    #[error("cannot use connections to agents")]
    Exchange(#[source] io::Error),
    /// The conversation failed.
    #[error("agent at {0}: {1}")]
    Proto(String, ProtoError),
    /// It has reported an error.
    #[error("client {0}: {1}")]
    Failed(u32, String),
    /// No message came in time after the connection was made.
    #[error(
        "the agent at {0} did not reply to the greeting within {1:?}: it is paused or too busy"
    )]
    Mute(String, Duration),
    /// It does not answer.
    #[error("client {0} did not reply within {1:?}")]
    Silent(u32, Duration),
    /// It is not in any of the networks that the run names.
    #[error("client {0} at {1} is in none of the subnets")]
    NoSubnet(u32, String),
    /// One that is to observe cannot.
    #[error("the agent at {0}: {1}")]
    Observer(String, String),
    /// It is gone.
    #[error("client {0} is gone")]
    Gone(u32),
}

/// One agent as the conductor knows it.
pub struct Agent {
    /// Its number, which is its client's.
    pub number: u32,
    /// Where it was reached, or that it was started here.
    pub address: String,
    /// The address its client connects from.
    pub bind: Option<IpAddr>,
    /// The network that it reaches the server in, if the run names any.
    pub subnet: Option<Subnet>,
    /// Its process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// Version of the protocol that both use.
    pub version: u32,
    /// Its machine.
    pub machine: serde_json::Value,
    /// Its clock against ours.
    pub offset: Offset,
    /// Its wall clock minus ours, ns.
    pub wall_skew_ns: i64,
    /// How it was lost.
    pub lost: Option<String>,
    /// When that was noticed, conductor's monotonic clock, ns.
    pub lost_ns: u64,
    child: Option<Child>,
}

impl Agent {
    /// Whether it was started here.
    pub fn is_here(&self) -> bool {
        self.child.is_some()
    }

    /// Ends its process, if it was started here.
    fn reap(&mut self) {
        let Some(child) = &mut self.child else { return };
        // It ends when its controller leaves; a stopped one does not.
        let deadline = Deadline::after(Duration::from_millis(500));
        while !deadline.passed() && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
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
    /// Running already, on other machines.
    Remote(Arc<Roster>),
}

/// All agents of a run.
pub struct Agents {
    /// In order of their numbers.
    pub all: Vec<Agent>,
    /// Agents that were silent for longer than [`PAUSE_NS`] and came back: what was seen.
    pub paused: Vec<String>,
    exchange: Exchange,
}

impl Agents {
    /// Starts or reaches them, greets them, compares the clocks.
    ///
    /// # Errors
    /// The first agent that is not available ends the attempt.
    pub fn gather(source: &Source, bind: bool) -> Result<Self, AgentsError> {
        let exchange = Exchange::new().map_err(AgentsError::Exchange)?;
        let mut agents = Self { all: Vec::new(), paused: Vec::new(), exchange };
        match source {
            Source::Local { clients, command } => {
                let started: Result<Vec<_>, _> = (0..*clients).map(|_| start(command)).collect();
                for (number, (child, connection)) in started?.into_iter().enumerate() {
                    let number = number as u32;
                    let bind = bind.then(|| local_address(number));
                    let agent = Agent { bind, child: Some(child), ..agent(number, HERE, PROGRAM) };
                    agents.greet(agent, connection)?;
                }
            }
            Source::Remote(roster) => {
                // Each agent is one: with too few the run reports which agent cannot be reached.
                lab_net::socket::raise_descriptor_limit();
                for (number, (address, joined)) in roster.gather()?.into_iter().enumerate() {
                    let agent = agent(number as u32, &address, &joined.program);
                    agents.greet(agent, joined.connection())?;
                }
            }
        }
        for number in 0..agents.all.len() as u32 {
            let (offset, wall_skew_ns) = agents.compare_clock(number)?;
            let agent = &mut agents.all[number as usize];
            (agent.offset, agent.wall_skew_ns) = (offset, wall_skew_ns);
        }
        Ok(agents)
    }

    /// Exchanges the first messages, and reads from the agent from then on.
    fn greet(&mut self, mut agent: Agent, mut stream: Connection) -> Result<(), AgentsError> {
        let greeted = first_messages(&mut agent, &mut stream);
        let (number, address) = (agent.number, agent.address.clone());
        // Its process ends with this value, also if it does not reply.
        self.all.push(agent);
        greeted?;
        self.exchange.add(number, stream).map_err(|e| AgentsError::Reach(address, e))
    }

    /// The agents that are not lost.
    pub fn live(&self) -> impl Iterator<Item = &Agent> {
        self.all.iter().filter(|a| a.lost.is_none())
    }

    /// The next event, or `None` after `timeout`. Notes pauses and the loss of its agent.
    pub fn next(&mut self, timeout: Duration) -> Option<Event> {
        let event = self.exchange.next(timeout)?;
        if let Some(agent) = self.all.get_mut(event.agent as usize) {
            match &event.message {
                Some(_) => {
                    let silent = event.silent_ns;
                    if silent > PAUSE_NS && agent.lost.is_none() {
                        let time = base::units::time_ns(silent as f64);
                        self.paused.push(format!("client {}: silent for {time}", agent.number));
                    }
                }
                None => lose(agent, event.at_ns),
            }
        }
        Some(event)
    }

    /// Marks agents from which nothing has come for `limit` as lost; returns their numbers.
    pub fn overdue(&mut self, limit: Duration) -> Vec<u32> {
        let mut found = Vec::new();
        for agent in self.all.iter_mut().filter(|a| a.lost.is_none()) {
            let silent = self.exchange.silent_ns(agent.number);
            if silent > limit.as_nanos() as u64 {
                let for_ = base::units::time_ns(silent as f64);
                agent.lost = Some(format!("paused or disconnected: silent for {for_}"));
                agent.lost_ns = clock::mono_ns();
                // When it wakes up it must not continue with load that is not counted.
                self.exchange.shutdown(agent.number);
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
            let now = clock::mono_ns();
            let wall_offset = base::clock::wall_ns_at(clock::mono_ns, now) as i64 - now as i64;
            let sent_ns = clock::mono_ns();
            self.send_to(number, &ToAgent::Ping { id })?;
            let (received_ns, theirs, their_wall) =
                self.expect(number, |message| match message {
                    FromAgent::Pong { id: got, mono_ns, wall_ns } if got == id => {
                        Some((mono_ns, wall_ns))
                    }
                    _ => None,
                })?;
            mono.push(Ping { sent_ns, theirs_ns: theirs, received_ns });
            let on_wall = |ns: u64| ns.saturating_add_signed(wall_offset);
            wall.push(Ping {
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
        let deadline = Deadline::after(LAB_AGENT_REPLY_MAX);
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
        Err(AgentsError::Silent(number, LAB_AGENT_REPLY_MAX))
    }

    /// Sends a message to these agents, and waits for the reply of each, as `pick` takes it, or for
    /// why there is none: an agent that fails or is lost does not end the wait for others.
    pub fn replies<T>(
        &mut self,
        numbers: &[u32],
        message: &ToAgent,
        within: Duration,
        mut pick: impl FnMut(FromAgent) -> Option<T>,
    ) -> Vec<(u32, Result<T, AgentsError>)> {
        let (mut waiting, mut found) = (Vec::new(), Vec::new());
        for number in numbers.iter().copied() {
            match self.send_to(number, message) {
                Ok(()) => waiting.push(number),
                Err(error) => {
                    if let Some(agent) = self.all.get_mut(number as usize) {
                        lose(agent, clock::mono_ns());
                    }
                    found.push((number, Err(error)));
                }
            }
        }
        let deadline = Deadline::after(within);
        while !waiting.is_empty() {
            let silent = self.overdue(LAB_SILENCE_MAX);
            let late = |number: &u32| deadline.passed() || silent.contains(number);
            for number in waiting.extract_if(.., |number| late(number)) {
                found.push((number, Err(AgentsError::Silent(number, within))));
            }
            let Some(event) = self.next(Duration::from_millis(100)) else { continue };
            // Others were lost before, and what comes late from them is not of this message.
            let Some(at) = waiting.iter().position(|number| *number == event.agent) else {
                continue;
            };
            let reply = match event.message {
                None => Some(Err(AgentsError::Gone(event.agent))),
                Some(FromAgent::Failed { what }) => {
                    Some(Err(AgentsError::Failed(event.agent, what)))
                }
                Some(message) => pick(message).map(Ok),
            };
            if let Some(reply) = reply {
                waiting.swap_remove(at);
                found.push((event.agent, reply));
            }
        }
        found
    }

    /// Sends a message to one agent.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send_to(&mut self, number: u32, message: &ToAgent) -> Result<(), AgentsError> {
        let agent = self.all.get(number as usize).ok_or(AgentsError::Gone(number))?;
        let sent = self.exchange.send(number, message);
        sent.map_err(|e| AgentsError::Proto(agent.address.clone(), e))
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for agent in &self.all {
            // One that is gone already is as good.
            let _gone = self.exchange.send(agent.number, &ToAgent::Bye);
            self.exchange.shutdown(agent.number);
        }
        self.all.iter_mut().for_each(Agent::reap);
    }
}

fn agent(number: u32, address: &str, program: &str) -> Agent {
    Agent {
        number,
        address: address.to_owned(),
        bind: None,
        subnet: None,
        pid: 0,
        program: program.to_owned(),
        version: 0,
        machine: serde_json::Value::Null,
        offset: Offset::default(),
        wall_skew_ns: 0,
        lost: None,
        lost_ns: 0,
        child: None,
    }
}

/// The greeting and its reply.
fn first_messages(agent: &mut Agent, stream: &mut Connection) -> Result<(), AgentsError> {
    let address = agent.address.clone();
    let broke = |e| match e {
        ProtoError::Io(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            AgentsError::Mute(address.clone(), LAB_AGENT_REPLY_MAX)
        }
        e => AgentsError::Proto(address.clone(), e),
    };
    let timeout = |timeout| stream.set_read_timeout(timeout);
    timeout(Some(LAB_AGENT_REPLY_MAX)).map_err(|e| AgentsError::Reach(address.clone(), e))?;
    proto::send(stream, &ToAgent::Hello { versions: proto::VERSIONS }).map_err(broke)?;
    match proto::receive(stream).map_err(broke)? {
        FromAgent::Hello { version, pid, machine, .. } => {
            (agent.version, agent.pid, agent.machine) = (version, pid, machine);
        }
        FromAgent::Failed { what } => return Err(AgentsError::Failed(agent.number, what)),
        _ => return Err(broke(ProtoError::Order("hello"))),
    }
    Ok(())
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

/// This program as `plimsoll lab WORD`; the example of this crate has no `lab` before it.
pub fn lab_command(word: &str) -> Vec<String> {
    let mut command = own_command();
    let takes_lab = std::env::args_os().nth(1).is_some_and(|word| word == "lab");
    if !takes_lab && std::env::current_exe().is_ok_and(|exe| exe.ends_with("examples/lab")) {
        command.retain(|word| word != "lab");
    }
    command.pop();
    command.push(word.to_owned());
    command
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
        .env_remove(CODE_FILE_ENV)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    Ok((child, Connection::pair(ours)))
}

/// Notes that the connection of an agent has ended, and how.
fn lose(agent: &mut Agent, at_ns: u64) {
    if agent.lost.is_none() {
        agent.lost_ns = at_ns;
        agent.lost = Some(how_it_ended(agent));
    }
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
