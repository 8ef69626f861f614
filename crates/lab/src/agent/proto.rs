//! Messages between conductor and agent: a length of four bytes, most significant first, then
//! that many bytes of JSON.
//!
//! Either side offers a range of versions and the highest common one is used. A reader ignores
//! fields that it does not know.

use super::clock;
use super::net::message::{FromNet, ToNet};
use crate::client::Transport;
use crate::iozone::children::Outcome;
use crate::iozone::flags::{Settings, Test};
use crate::observe::{ClientSource, Identity, ObservedTarget, ServerSample};
use crate::operations::Lane;
use crate::record::cold::CacheDropped;
use crate::shape::open::{OpenEnd, OpenRule};
use crate::workload::Shape;
use base::limits::{IO_SIZE_MAX, LAB_MESSAGE_MAX, LAB_SLOTS_MAX};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;

/// Versions this program speaks, lowest and highest.
pub const VERSIONS: (u32, u32) = (3, 6);
/// The version from which on an agent drops cached data and limits the operations of a step.
pub const COLD_VERSION: u32 = 4;

/// The version from which on an agent runs programs of threads.
pub const PROGRAM_VERSION: u32 = 5;

/// The version from which on threads of an agent can go through files of their own.
pub const OWN_FILES_VERSION: u32 = 6;
/// The version from which on an agent carries out tests of IOzone.
pub const IOZONE_VERSION: u32 = 6;

/// A message from the conductor to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToAgent {
    /// The greeting.
    Hello {
        /// Lowest and highest supported version.
        versions: (u32, u32),
    },
    /// To be answered at once.
    Ping {
        /// Comes back in the answer.
        id: u64,
    },
    /// Connect and make the files.
    Prepare(Box<Prepare>),
    /// Run a step at an agreed moment.
    Start(Start),
    /// End the running step at this moment of the agent's clock, ns.
    Stop {
        /// Agent's monotonic clock, ns.
        at_ns: u64,
    },
    /// Remove the files.
    Clean,
    /// Disconnect from the target. No calls follow.
    Disconnect,
    /// Observe the server of this target from now on.
    Observe(ObservedTarget),
    /// Its counters now.
    Sample,
    /// Take the test files of that server out of the page cache.
    DropCache,
    /// Read a program and connect its threads.
    Program(Box<ProgramJob>),
    /// Run it.
    RunProgram {
        /// When, agent's monotonic clock, ns.
        at_ns: u64,
    },
    /// Remove its files.
    CleanProgram,
    /// To an end of a network profile.
    Net(Box<ToNet>),
    /// Connect the children of tests of IOzone.
    Iozone(Box<IozoneJob>),
    /// Carry out a test.
    RunTest {
        /// Which.
        test: Test,
        /// Number of the block.
        number: u64,
        /// When, agent's monotonic clock, ns.
        at_ns: u64,
    },
    /// Disconnect the children and remove their files.
    CleanTests,
    /// The run is over.
    Bye,
}

/// A program for one of several agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramJob {
    /// Target URL.
    pub target: String,
    /// Name of the file that states it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Variables.
    pub settings: Vec<String>,
    /// How long it runs.
    pub seconds: f64,
    /// Calls of each thread at most.
    pub calls: u64,
    /// Seed of everything.
    pub seed: u64,
    /// Number of this agent, and of all.
    pub agent: (u64, u64),
    /// Whether it makes the files on a server.
    pub make: bool,
}

/// Tests of IOzone for one of several agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IozoneJob {
    /// Target URL.
    pub target: String,
    /// What is measured, with all children.
    pub settings: Settings,
    /// Seed of random records and contents.
    pub seed: u64,
    /// Number of this agent, and of all.
    pub agent: (u64, u64),
    /// Whether it makes the files on a server.
    pub make: bool,
    /// Whether the conductor takes [`FromAgent::FirstEnd`]; one of an earlier version does not, and
    /// an agent of an earlier version does not send it.
    #[serde(default)]
    pub first_end: bool,
}

/// What the children of one agent did in a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestEnd {
    /// By child; times count from the common start.
    pub outcome: Outcome,
    /// Processor time, seconds.
    pub cpu_s: f64,
}

/// What the threads of one agent did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// When it began, agent's monotonic clock, ns.
    pub began_ns: u64,
    /// What they did: [`crate::programs::drive::Totals`], which has numbers as keys. A tagged
    /// message cannot have these.
    pub totals: serde_json::Value,
}

/// What a client is to be and to prepare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// Target URL.
    pub target: String,
    /// Number of this client, from 0.
    pub client: u32,
    /// Address to connect from.
    pub bind: Option<IpAddr>,
    /// The workload.
    pub shape: Shape,
    /// Seed of content and places.
    pub seed: u64,
    /// Of large reads one block in this many is checked.
    pub check_one_in: u32,
    /// Most slots any step will ask for.
    pub slots: u32,
}

/// One step for one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Number of the step.
    pub step: u32,
    /// Slots kept in flight.
    pub threads: u32,
    /// Begin, agent's monotonic clock, ns.
    pub at_ns: u64,
    /// End unless stopped earlier, agent's monotonic clock, ns.
    pub until_ns: u64,
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Arrivals by a schedule, in place of slots that are kept full. An agent that does not know
    /// this has no `open` at the end of the step.
    #[serde(default)]
    pub open: Option<OpenRule>,
    /// Operations at most: the step ends after them, for data that is read once.
    #[serde(default)]
    pub ops_max: Option<u64>,
}

/// Least length of a window, ns: an agent closes one in some microseconds.
const WINDOW_NS_MIN: u64 = 1_000_000;

impl Prepare {
    /// Whether its numbers are within the bounds of a job: the conductor has checked them, another
    /// program may send any.
    ///
    /// # Errors
    /// What is beyond them.
    pub fn check(&self) -> Result<(), String> {
        if self.slots > LAB_SLOTS_MAX {
            return Err(format!("{} slots are more than {LAB_SLOTS_MAX}", self.slots));
        }
        match self.shape.block {
            1..=IO_SIZE_MAX => Ok(()),
            block => Err(format!("a block has 1 to {IO_SIZE_MAX} bytes, not {block}")),
        }
    }
}

impl Start {
    /// Whether its numbers are within the bounds of a job.
    ///
    /// # Errors
    /// What is beyond them.
    pub fn check(&self) -> Result<(), String> {
        if self.threads > LAB_SLOTS_MAX {
            return Err(format!("{} threads are more than {LAB_SLOTS_MAX}", self.threads));
        }
        if self.window_ns < WINDOW_NS_MIN {
            return Err(format!("a window has at least 1 ms, not {} ns", self.window_ns));
        }
        match &self.open {
            Some(open) if !open.is_possible() => Err("rate or queue of the open loop".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A message from an agent to the conductor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromAgent {
    /// The answer to the greeting.
    Hello {
        /// The version to use.
        version: u32,
        /// Process.
        pid: u32,
        /// The machine, as its own description.
        machine: serde_json::Value,
        /// Monotonic clock, ns.
        mono_ns: u64,
        /// Wall clock, ns since the Unix epoch.
        wall_ns: u64,
    },
    /// The answer to a ping.
    Pong {
        /// From the ping.
        id: u64,
        /// Monotonic clock, ns.
        mono_ns: u64,
        /// Wall clock, ns since the Unix epoch.
        wall_ns: u64,
    },
    /// Connected, and the files are there.
    Prepared {
        /// What it took, seconds.
        seconds: f64,
        /// Operations that the server allows at once, if fewer than were asked for.
        #[serde(default)]
        granted: Option<u32>,
        /// Where its connections leave this machine.
        #[serde(default)]
        source: Option<ClientSource>,
    },
    /// One window of a step.
    Window(Box<Window>),
    /// A step is over and nothing is in flight.
    StepEnd(StepEnd),
    /// Still alive.
    Beat {
        /// Monotonic clock, ns.
        mono_ns: u64,
    },
    /// The server that is observed.
    Observing {
        /// What is known of it.
        server: Box<Identity>,
    },
    /// Its counters.
    Sample {
        /// None when it has ended.
        sample: Option<Box<ServerSample>>,
    },
    /// What was dropped.
    Dropped {
        /// By files and pages.
        dropped: Box<CacheDropped>,
    },
    /// A program has ended.
    ProgramEnd(Box<ProgramEnd>),
    /// The first child of an agent has ended: with the stonewall those of all agents do. The end of
    /// the test follows, when the files are complete.
    FirstEnd,
    /// A test has ended.
    TestEnd(Box<TestEnd>),
    /// Its files are gone.
    ProgramCleaned {
        /// Calls that it took, by name.
        calls: BTreeMap<String, u64>,
    },
    /// From an end of a network profile.
    Net(Box<FromNet>),
    /// The last command could not be carried out.
    Failed {
        /// What and why.
        what: String,
    },
    /// The files are gone.
    Cleaned,
    /// Disconnected.
    Disconnected {
        /// Calls to the service since the connection was opened, preparation and cleaning
        /// included: what the server should have counted for this client.
        calls: u64,
    },
}

/// What one agent did in one window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Window {
    /// Number of the step.
    pub step: u32,
    /// Number of the window, from 0 at the start of the step.
    pub index: u32,
    /// Operations that ended, faults included, COMMITs not.
    pub ops: u64,
    /// Bytes moved by those without fault.
    pub bytes: u64,
    /// COMMITs that ended.
    pub commits: u64,
    /// Operations with a fault.
    pub errors: u64,
    /// Among them, reads with wrong content.
    pub corrupt: u64,
    /// The first fault, in words.
    pub first_error: Option<String>,
    /// Latencies in ns: HdrHistogram V2, base64.
    pub latency: String,
    /// Operations in flight, mean over the window.
    pub in_flight: f64,
    /// CPU time of the driving thread, ns.
    pub driver_cpu_ns: u64,
    /// CPU time of the process, ns.
    pub cpu_ns: u64,
    /// Time the process was ready but had no core, ns.
    pub wait_ns: u64,
    /// Time its control group was throttled, ns.
    pub throttled_ns: u64,
    /// TCP statistics at the end of the window.
    pub transport: Option<Transport>,
}

/// The report of an agent on a step as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepEnd {
    /// Number of the step.
    pub step: u32,
    /// When the first operation was given out, agent's monotonic clock, ns.
    pub first_op_ns: u64,
    /// When the last one ended, agent's monotonic clock, ns.
    pub last_op_ns: u64,
    /// All operations, those before and after the windows included, COMMITs not.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// COMMITs.
    pub commits: u64,
    /// Faults.
    pub errors: u64,
    /// Among them, reads with wrong content; 0 of agents of earlier builds.
    #[serde(default)]
    pub corrupt: u64,
    /// The first fault, in words.
    #[serde(default)]
    pub first_error: Option<String>,
    /// Calls to the service since the connection was opened, preparation included.
    pub calls: u64,
    /// Files sent again because the server's write verifier had changed.
    pub resent: u64,
    /// What became of the arrivals of an open loop.
    #[serde(default)]
    pub open: Option<OpenEnd>,
    /// Hashes of the operations that were given out since the files were made.
    #[serde(default)]
    pub operations: Vec<Lane>,
}

/// Why the connection cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ProtoError {
    /// The other side left.
    #[error("the other side closed the connection")]
    Ended,
    /// The system refused.
    #[error("connection: {0}")]
    Io(#[from] std::io::Error),
    /// A message longer than [`LAB_MESSAGE_MAX`].
    #[error("a message of {0} bytes is longer than allowed")]
    TooLong(usize),
    /// Not one of our messages.
    #[error("invalid message: {0}")]
    Form(#[from] serde_json::Error),
    /// Another message was due.
    #[error("expected {0}")]
    Order(&'static str),
    /// No common version.
    #[error(
        "protocol versions do not match: theirs {0} to {1}, ours {a} to {b}",
        a = VERSIONS.0,
        b = VERSIONS.1
    )]
    Version(u32, u32),
}

/// The highest version both speak.
///
/// # Errors
/// [`ProtoError::Version`] when there is none.
pub fn agree(theirs: (u32, u32)) -> Result<u32, ProtoError> {
    let version = theirs.1.min(VERSIONS.1);
    let fits = version >= theirs.0.max(VERSIONS.0);
    if fits { Ok(version) } else { Err(ProtoError::Version(theirs.0, theirs.1)) }
}

/// The greeting of this machine.
pub fn hello(version: u32) -> FromAgent {
    FromAgent::Hello {
        version,
        pid: std::process::id(),
        machine: crate::proc::machine(),
        mono_ns: clock::mono_ns(),
        wall_ns: clock::wall_ns(),
    }
}

/// Writes one message.
///
/// # Errors
/// When the connection is gone.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> Result<(), ProtoError> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let len = frame.len() - 4;
    if len > LAB_MESSAGE_MAX {
        return Err(ProtoError::TooLong(len));
    }
    frame[..4].copy_from_slice(&(len as u32).to_be_bytes());
    to.write_all(&frame)?;
    Ok(())
}

/// Length of the complete message, its mark included, that these bytes begin with.
///
/// # Errors
/// [`ProtoError::TooLong`]
pub fn frame(bytes: &[u8]) -> Result<Option<usize>, ProtoError> {
    let Some(mark) = bytes.first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_be_bytes(*mark) as usize;
    if len > LAB_MESSAGE_MAX {
        return Err(ProtoError::TooLong(len));
    }
    Ok(Some(4 + len).filter(|end| bytes.len() >= *end))
}

/// Reads one message.
///
/// # Errors
/// [`ProtoError::Ended`] between messages; otherwise what is wrong.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, ProtoError> {
    let mut mark = [0; 4];
    match from.read_exact(&mut mark) {
        Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            return Err(ProtoError::Ended);
        }
        other => other?,
    }
    let len = u32::from_be_bytes(mark) as usize;
    if len > LAB_MESSAGE_MAX {
        return Err(ProtoError::TooLong(len));
    }
    // Grown as bytes come, so that a length alone reserves nothing.
    let mut body = Vec::new();
    from.take(len as u64).read_to_end(&mut body)?;
    if body.len() < len {
        return Err(ProtoError::Ended);
    }
    Ok(serde_json::from_slice(&body)?)
}

#[cfg(test)]
mod tests;
