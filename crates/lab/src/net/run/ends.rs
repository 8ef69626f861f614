//! The agents of both ends, the near one first.

use super::NetOptions;
use crate::agent::join::PROGRAM;
use crate::agent::net::{FromNet, Interface, NetEnded, Segments, ToNet};
use crate::agent::proto::{FromAgent, ToAgent};
use crate::conduct::agents::{Agent, Agents, AgentsError, Source};
use crate::net::record::EndRecord;
use crate::observe;
use base::clock::Deadline;
use base::limits::LAB_SILENCE_MAX;
use lab_net::count::{ConnCount, Sums};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// An agent from which nothing has come for this long is lost: it beats five times a second.
const PAUSED_MAX: Duration = Duration::from_secs(10);
/// How long one look for messages of the near or of the far ends takes, when they are to reply.
const LOOK: Duration = Duration::from_millis(2);
/// The same while a transaction runs: each look takes processor time from it.
const LOOK_RUNNING: Duration = Duration::from_millis(20);

/// Why a profile cannot be run, or run to its end.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// There are no agents, or one has failed.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// There are more or fewer agents than hosts.
    #[error("the profile names {hosts} hosts and {agents} agents are given")]
    Number {
        /// Hosts of the profile.
        hosts: usize,
        /// Agents.
        agents: usize,
    },
    /// An agent is of another version.
    #[error("the agent at {0} is {1}, not {PROGRAM}")]
    Version(String, String),
    /// A host has no address.
    #[error("the host {0} has no address")]
    Host(String),
    /// An end has failed.
    #[error("{0} end: {1}")]
    Failed(String, String),
    /// An end does not reply.
    #[error("{0} end did not reply within {1:?}")]
    Silent(String, Duration),
    /// An end is gone.
    #[error("an end is gone")]
    Order,
}

/// All ends: number 0 is the near one.
pub struct Ends {
    near: Agents,
    far: Agents,
    hosts: Vec<String>,
    local: bool,
    /// Commands to an agent that has gone since.
    failed: Vec<Option<String>>,
}

/// An end that has nothing in flight.
pub struct Drained {
    /// Bytes of the transaction by connection.
    pub counts: Vec<ConnCount>,
    /// What interfaces have counted in it.
    pub interfaces: Vec<Interface>,
    /// Segments that left in it; of the near end.
    pub segments: Option<Segments>,
}

/// A message of an end.
enum Came {
    Net(usize, FromNet),
    Failed(usize, String),
    Gone,
    Nothing,
}

impl Ends {
    pub fn gather(options: &NetOptions) -> Result<Self, NetError> {
        let hosts = options.profile.hosts();
        let local = matches!(options.far, Source::Local { .. });
        let near = Source::Local { clients: 1, command: options.agent.clone() };
        let far = Agents::gather(&options.far, false)?;
        if far.all.len() != hosts.len() {
            return Err(NetError::Number { hosts: hosts.len(), agents: far.all.len() });
        }
        if let Some(agent) = far.all.iter().find(|agent| agent.program != PROGRAM) {
            return Err(NetError::Version(agent.address.clone(), agent.program.clone()));
        }
        let near = Agents::gather(&near, false)?;
        let failed = vec![None; hosts.len() + 1];
        Ok(Self { near, far, hosts, local, failed })
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.hosts.len() + 1
    }

    fn agent(&self, end: usize) -> Option<&Agent> {
        match end {
            0 => self.near.all.first(),
            end => self.far.all.get(end - 1),
        }
    }

    fn name(&self, end: usize) -> String {
        match end {
            0 => "near".to_owned(),
            end => self.hosts.get(end - 1).cloned().unwrap_or_default(),
        }
    }

    /// What is recorded of them.
    pub fn records(&self) -> Vec<EndRecord> {
        let record = |end: usize| {
            let agent = self.agent(end)?;
            Some(EndRecord {
                name: self.name(end),
                agent: agent.address.clone(),
                pid: agent.pid,
                machine: agent.machine.clone(),
                lost: agent.lost.clone().or_else(|| self.failed.get(end).cloned().flatten()),
            })
        };
        (0..self.len()).filter_map(record).collect()
    }

    /// Agents that were silent for a while.
    pub fn paused(&self) -> Vec<String> {
        let all = self.near.paused.iter().chain(&self.far.paused);
        all.map(|what| format!("paused {what}")).collect()
    }

    fn is_there(&self, end: usize) -> bool {
        let failed = self.failed.get(end).is_some_and(Option::is_some);
        self.agent(end).is_some_and(|agent| agent.lost.is_none()) && !failed
    }

    /// Whether one is lost.
    pub fn lost(&self) -> bool {
        (0..self.len()).any(|end| !self.is_there(end))
    }

    /// The address to listen at: one of this machine alone if all run here.
    pub fn bind(&self, end: usize) -> Option<IpAddr> {
        if !self.local {
            return None;
        }
        match end {
            0 => Some(Ipv4Addr::LOCALHOST.into()),
            _ => self.name(end).parse::<IpAddr>().ok().filter(IpAddr::is_loopback),
        }
    }

    /// Where a far end is reached: at the address of its host, or where its agent was.
    pub fn address(&self, end: usize) -> Result<IpAddr, NetError> {
        let name = self.name(end);
        let mut found = (name.as_str(), 0).to_socket_addrs().into_iter().flatten();
        let agent = || self.agent(end)?.address.parse().ok();
        let at: Option<SocketAddr> = found.next().or_else(agent);
        at.map(|at| at.ip()).ok_or(NetError::Host(name))
    }

    /// Where a far end at this address reaches the near one.
    pub fn near_address(&self, far: IpAddr) -> IpAddr {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        if self.local {
            return here;
        }
        observe::route(SocketAddr::new(far, 9)).unwrap_or(here)
    }

    /// The longest round trip to an agent, ns.
    pub fn round_trip_ns(&self) -> u64 {
        self.far.all.iter().map(|agent| agent.offset.rtt_ns).max().unwrap_or(0)
    }

    /// A time of this machine on an end's clock.
    pub fn to_theirs(&self, end: usize, ns: u64) -> u64 {
        self.agent(end).map_or(ns, |agent| agent.offset.to_theirs(ns))
    }

    /// A time of an end on this machine's clock.
    pub fn to_ours(&self, end: usize, ns: u64) -> u64 {
        self.agent(end).map_or(ns, |agent| agent.offset.to_ours(ns))
    }

    fn to(&mut self, end: usize, message: &ToAgent) -> Result<(), AgentsError> {
        match end {
            0 => self.near.send_to(0, message),
            end => self.far.send_to(end as u32 - 1, message),
        }
    }

    /// Sends a message.
    pub fn send(&mut self, end: usize, message: ToNet) -> Result<(), NetError> {
        Ok(self.to(end, &ToAgent::Net(Box::new(message)))?)
    }

    /// Sends a message, unless the end is lost.
    pub fn send_if_there(&mut self, end: usize, message: ToNet) {
        if !self.is_there(end) {
            return;
        }
        if let Err(error) = self.send(end, message)
            && let Some(failed) = self.failed.get_mut(end)
        {
            failed.get_or_insert(error.to_string());
        }
    }

    /// The next message within this time of the near end, or of the far ends.
    fn look(&mut self, within: Duration) -> Option<(usize, Option<FromAgent>)> {
        let near = self.near.next(within).map(|event| (0, event.message));
        let far = |far: &mut Agents| {
            far.next(within).map(|event| (event.agent as usize + 1, event.message))
        };
        near.or_else(|| far(&mut self.far))
    }

    fn next(&mut self, within: Duration) -> Came {
        // What has come already: those that have replied do not wait for the near end.
        match self.look(Duration::ZERO).or_else(|| self.look(within)) {
            Some((end, Some(FromAgent::Net(message)))) => Came::Net(end, *message),
            Some((end, Some(FromAgent::Failed { what }))) => Came::Failed(end, what),
            Some((_, None)) => Came::Gone,
            _ => Came::Nothing,
        }
    }

    /// One reply of each end that is not lost.
    pub fn answers<T>(
        &mut self,
        within: Duration,
        pick: impl Fn(FromNet) -> Option<T>,
    ) -> Result<Vec<Option<T>>, NetError> {
        let mut found: Vec<Option<T>> = (0..self.len()).map(|_| None).collect();
        let deadline = Deadline::after(within);
        loop {
            let waits = |end: &usize| found[*end].is_none() && self.is_there(*end);
            let Some(first) = (0..self.len()).find(waits) else { return Ok(found) };
            if deadline.passed() {
                return Err(NetError::Silent(self.name(first), within));
            }
            match self.next(LOOK) {
                Came::Net(end, message) => {
                    if let Some(found) = found.get_mut(end) {
                        *found = pick(message).or(found.take());
                    }
                }
                Came::Failed(end, what) => return Err(NetError::Failed(self.name(end), what)),
                Came::Gone | Came::Nothing => self.overdue(),
            }
        }
    }

    fn overdue(&mut self) {
        self.near.overdue(PAUSED_MAX);
        self.far.overdue(PAUSED_MAX);
    }

    /// The end of a transaction at each end that is not lost. If one is, the others are stopped.
    pub fn ended(&mut self, window: &mut dyn FnMut(u32, Sums)) -> Vec<Option<NetEnded>> {
        let mut found: Vec<Option<NetEnded>> = vec![None; self.len()];
        let mut stopped = false;
        loop {
            let waits = |end: &usize| found[*end].is_none() && self.is_there(*end);
            if !(0..self.len()).any(|end| waits(&end)) {
                return found;
            }
            if self.lost() && !stopped {
                stopped = true;
                for end in 0..self.len() {
                    // One that is gone already is as good.
                    let _gone = self.to(end, &ToAgent::Stop { at_ns: 1 });
                }
            }
            match self.next(LOOK_RUNNING) {
                Came::Net(0, FromNet::Window { index, sums }) => window(index, sums),
                Came::Net(end, FromNet::Ended(ended)) => {
                    if let Some(found) = found.get_mut(end) {
                        *found = Some(*ended);
                    }
                }
                Came::Net(..) => {}
                Came::Failed(end, what) => {
                    if let Some(failed) = self.failed.get_mut(end) {
                        failed.get_or_insert(what);
                    }
                }
                Came::Gone | Came::Nothing => self.overdue(),
            }
        }
    }

    /// The counts of each end that is not lost, nothing being in flight.
    pub fn drained(&mut self) -> Vec<Option<Drained>> {
        let drained = self.answers(LAB_SILENCE_MAX, |message| match message {
            FromNet::Drained { counts, interfaces, segments } => {
                Some(Drained { counts, interfaces, segments })
            }
            _ => None,
        });
        // The counts before it are as good as there are.
        drained.unwrap_or_default()
    }
}
