//! An agent: one process that is one client, controlled from elsewhere.
//!
//! It serves one controller at a time, reports its machine, answers pings so that its clock can be
//! compared, prepares its files, and runs steps that start at an agreed moment. While it lives it
//! beats; samples leave once per window and nothing is kept, so memory does not grow with the
//! length of a run.
//!
//! A run starts its agents itself and hands each one end of a pair of sockets: no other process can
//! reach them. An agent on another machine listens for its controller or calls it, over TLS; both
//! prove a one-time join code, and it opens only those files of its machine that its owner has
//! listed.
//!
//! - [`proto`]: the messages; [`clock`]: times; [`drive`]: the loop that makes the load.
//! - [`connection`], [`tls`]: how a controller is connected; [`code`], [`join`]: how both sides
//!   recognise each other; `gate`: peers that have not proved themselves.
//! - [`net`]: an agent that is an end of a network profile; [`observe`]: one that only observes;
//!   `program`: programs of threads; `iozone`: tests of IOzone.
//! - `listen`, `call`: an agent that listens or calls; [`allow`]: what its controller may use.

pub mod allow;
pub mod binding;
mod call;
pub mod clock;
pub mod code;
pub mod connection;
pub mod drive;
pub mod gate;
mod iozone;
pub mod join;
mod listen;
pub mod net;
pub mod observe;
mod program;
pub mod proto;
pub mod tls;

use crate::client::{self, Options, Target};
use crate::iozone::flags::Test;
use crate::observe::ClientSource;
use allow::{AllowError, Allowed, Granted, Owner};
use base::limits::{LAB_HEARTBEAT, LAB_RENEW_EVERY};
use base::out::{note, offer};
use code::{CodeError, Codes, JoinCode, ListenerCode};
use connection::Connection;
use drive::Driver;
use iozone::Tests;
use join::JoinError;
use listen::Listening;
use net::{NetAgent, ToNet};
use observe::Observing;
use program::Programs;
use proto::{FromAgent, IozoneJob, Prepare, ProgramJob, ProtoError, ToAgent, Window};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tls::Identity;

/// How an agent is reached, or reaches its controller.
#[derive(Debug, Clone)]
pub enum Meeting {
    /// It listens; port 0 takes a free one.
    Listen(SocketAddr),
    /// It calls the controller at this address.
    Call(String),
}

/// How an agent is started.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Whether it listens or calls.
    pub meeting: Meeting,
    /// File with the join code. One that listens makes a code without it, and prints it.
    pub code_file: Option<PathBuf>,
    /// How long the code of an agent that listens is valid.
    pub code_life: Duration,
    /// What controllers may use.
    pub owner: Owner,
    /// End after the first controller, and when none comes within [`ONCE_WAIT`].
    pub once: bool,
    /// Print one JSON line with pid and address when ready.
    pub announce: bool,
}

/// How long an agent that was started for one run waits for its controller.
pub const ONCE_WAIT: Duration = Duration::from_secs(30);

/// Why an agent ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// What its owner has listed cannot be used.
    #[error(transparent)]
    Allow(#[from] AllowError),
    /// There is no join code.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The controller that it calls cannot be reached or refuses.
    #[error("controller: {0}")]
    Join(#[from] JoinError),
    /// There is no certificate.
    #[error("cannot use TLS")]
    Tls(#[source] io::Error),
    /// Standard input is no connection.
    #[error(
        "--inherited is for agents that a run starts: standard input is not a connected socket; \
         use --listen"
    )]
    Inherited(#[source] io::Error),
    /// The exchange with the controller failed.
    #[error("controller: {0}")]
    Proto(#[from] ProtoError),
    /// No controller connected.
    #[error("no controller connected within {ONCE_WAIT:?}")]
    NoController,
    /// No connections are accepted any more.
    #[error("the agent stopped accepting connections")]
    Ended,
}

/// Which controller an agent serves.
#[derive(Debug)]
enum Origin {
    /// The process that has started it, with the same rights.
    Own,
    /// One with the join code, and what it may use of this machine.
    Tcp(Allowed),
}

impl Origin {
    /// The target, if the controller may use that.
    ///
    /// # Errors
    /// Why not, in words.
    fn grant(&self, target: Target) -> Result<Granted, String> {
        match self {
            Self::Own => Ok(Granted::any(target)),
            Self::Tcp(allowed) => allowed.grant(target),
        }
    }
}

/// Runs an agent until its controller leaves (`once`), or the controller that it calls has ended,
/// or for ever.
///
/// # Errors
/// When it cannot listen or is refused, or, with `once`, when the exchange fails.
pub fn run(options: &AgentOptions) -> Result<(), AgentError> {
    clock::skew_for_test();
    let allowed = Allowed::open(&options.owner)?;
    let at = match &options.meeting {
        Meeting::Listen(at) => *at,
        Meeting::Call(at) => {
            let file = options.code_file.as_ref().ok_or(CodeError::None)?;
            return call::serve(at, file, allowed, options.once);
        }
    };
    let fail = |e| AgentError::Listen(at, e);
    let listener = TcpListener::bind(at).map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    let ListenerCode { code, made, written } = ListenerCode::new(options.code_file.as_deref())?;
    announce(options, address, made.then_some(&code));
    // A code that only this output shows is followed by another one there.
    let renews = options.code_file.is_none() && !options.once;
    let codes = Codes::new(code, 1, options.code_life, renews);
    let renewed = if options.announce { announce_code } else { note_code };
    let identity = Identity::new().map_err(AgentError::Tls)?;
    let listening = Listening { identity, codes, renewed, written };
    listen::serve(listener, listening, allowed, options.once.then_some(ONCE_WAIT))
}

/// Prints where the agent listens, and a code that it has made.
fn announce(options: &AgentOptions, address: SocketAddr, made: Option<&JoinCode>) {
    if options.announce {
        let mut line =
            serde_json::json!({"pid": std::process::id(), "listen": address.to_string()});
        if let Some(made) = made {
            line["code"] = made.text().into();
        }
        // An agent without a reader serves all the same.
        let _gone = offer(&format!("{line}\n"));
    } else {
        note(&format!("agent listens on {address}"));
        made.map(note_code);
    }
}

fn note_code(code: &JoinCode) {
    note(&format!("join code: {}", code.text()));
}

fn announce_code(code: &JoinCode) {
    let _gone = offer(&format!("{}\n", serde_json::json!({"code": code.text()})));
}

/// Runs an agent for the process that has started it, over the socket that it inherited as standard
/// input.
///
/// # Errors
/// Standard input is no such socket, or the exchange fails.
pub fn run_inherited() -> Result<(), AgentError> {
    clock::skew_for_test();
    let mut connection = Connection::inherited().map_err(AgentError::Inherited)?;
    greet(&mut connection)?;
    Ok(converse(connection, &Arc::new(Origin::Own))?)
}

/// Waits for the greeting of the controller and answers it: the beats begin after it.
fn greet(connection: &mut Connection) -> Result<(), ProtoError> {
    match proto::receive::<ToAgent>(connection)? {
        ToAgent::Hello { versions } => {
            let version = proto::agree(versions)?;
            proto::send(connection, &proto::hello(version))
        }
        _ => Err(ProtoError::Order("hello")),
    }
}

/// The way back to the controller, shared by the reader, the beat and the driver.
#[derive(Clone)]
struct Reply(Arc<Mutex<Connection>>);

impl Reply {
    fn send(&self, message: &FromAgent) -> Result<(), ProtoError> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        proto::send(&mut *stream, message)
    }

    /// Sends windows at once.
    fn send_windows(&self, windows: Vec<Window>) -> Result<(), ProtoError> {
        let mut frames = Vec::new();
        for window in windows {
            proto::send(&mut frames, &FromAgent::Window(Box::new(window)))?;
        }
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(stream.write_all(&frames)?)
    }
}

/// Commands to the driver thread.
enum Command {
    Prepare(Box<Prepare>),
    Start(proto::Start),
    Clean,
    Disconnect,
    Program(Box<ProgramJob>),
    RunProgram(u64),
    CleanProgram,
    Net(Box<ToNet>),
    Iozone(Box<IozoneJob>),
    RunTest((Test, u64), u64),
    CleanTests,
}

/// One controller, from after its greeting until it leaves.
fn converse(connection: Connection, origin: &Arc<Origin>) -> Result<(), ProtoError> {
    let mut from = connection.clone();
    let reply = Reply(Arc::new(Mutex::new(connection)));
    let live = Arc::new(AtomicBool::new(true));
    let beat = spawn_beat(reply.clone(), Arc::clone(&live));
    let stop = Arc::new(AtomicU64::new(0));
    let (commands, inbox) = channel();
    let driver = spawn_driver(inbox, reply.clone(), Arc::clone(&stop), Arc::clone(origin));
    let mut observing = Observing::new(origin);
    let ended = obey(&mut from, &reply, (&commands, &mut observing), &stop);
    // A step that runs ends now: its samples have no reader any more.
    stop.store(1, Ordering::SeqCst);
    live.store(false, Ordering::SeqCst);
    drop(commands);
    let _ = driver.join();
    let _ = beat.join();
    ended
}

fn obey(
    from: &mut Connection,
    reply: &Reply,
    (commands, observing): (&Sender<Command>, &mut Observing),
    stop: &AtomicU64,
) -> Result<(), ProtoError> {
    loop {
        let command = match proto::receive::<ToAgent>(from) {
            Ok(message) => message,
            Err(ProtoError::Ended) => return Ok(()),
            Err(error) => return Err(error),
        };
        let driver_command = match command {
            ToAgent::Ping { id } => {
                reply.send(&FromAgent::Pong {
                    id,
                    mono_ns: clock::mono_ns(),
                    wall_ns: clock::wall_ns(),
                })?;
                continue;
            }
            ToAgent::Stop { at_ns } => {
                stop.store(at_ns, Ordering::SeqCst);
                continue;
            }
            ToAgent::Observe(target) => {
                reply.send(&observing.observe(&target))?;
                continue;
            }
            ToAgent::Sample => {
                reply.send(&observing.sample())?;
                continue;
            }
            ToAgent::DropCache => {
                reply.send(&observing.drop_cache())?;
                continue;
            }
            ToAgent::Bye => return Ok(()),
            message => for_driver(message, stop)?,
        };
        if commands.send(driver_command).is_err() {
            return Err(ProtoError::Order("a running driver"));
        }
    }
}

/// What the driver does for a message.
fn for_driver(message: ToAgent, stop: &AtomicU64) -> Result<Command, ProtoError> {
    Ok(match message {
        ToAgent::Prepare(prepare) => Command::Prepare(prepare),
        ToAgent::Start(start) => {
            // Set here, not by the driver: a stop that comes right behind must win.
            stop.store(start.until_ns, Ordering::SeqCst);
            Command::Start(start)
        }
        ToAgent::Clean => Command::Clean,
        ToAgent::Disconnect => Command::Disconnect,
        ToAgent::Program(job) => Command::Program(job),
        ToAgent::RunProgram { at_ns } => {
            stop.store(u64::MAX, Ordering::SeqCst);
            Command::RunProgram(at_ns)
        }
        ToAgent::CleanProgram => Command::CleanProgram,
        ToAgent::Net(message) => {
            if matches!(*message, ToNet::Start { .. }) {
                stop.store(u64::MAX, Ordering::SeqCst);
            }
            Command::Net(message)
        }
        ToAgent::Iozone(job) => Command::Iozone(job),
        ToAgent::RunTest { test, number, at_ns } => {
            stop.store(u64::MAX, Ordering::SeqCst);
            Command::RunTest((test, number), at_ns)
        }
        ToAgent::CleanTests => Command::CleanTests,
        _ => return Err(ProtoError::Order("anything but hello")),
    })
}

fn spawn_beat(reply: Reply, live: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while live.load(Ordering::SeqCst) {
            if reply.send(&FromAgent::Beat { mono_ns: clock::mono_ns() }).is_err() {
                return;
            }
            std::thread::sleep(LAB_HEARTBEAT);
        }
    })
}

fn spawn_driver(
    inbox: Receiver<Command>,
    reply: Reply,
    stop: Arc<AtomicU64>,
    origin: Arc<Origin>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut driver, mut loads) = (None, (Programs::default(), Tests::default()));
        let mut net = NetAgent::default();
        loop {
            let command = match inbox.recv_timeout(LAB_RENEW_EVERY) {
                Ok(command) => command,
                Err(RecvTimeoutError::Disconnected) => return,
                // What goes wrong here shows in the next step.
                Err(RecvTimeoutError::Timeout) => {
                    let _ = driver.as_mut().map(Driver::renew);
                    continue;
                }
            };
            let done = match command {
                Command::Net(message) => net.obey(*message, (&reply, &origin), &stop),
                command => {
                    let driver = (&mut driver, &mut loads);
                    carry_out(command, driver, (&reply, &origin), &stop)
                }
            };
            if let Err(what) = done {
                // The controller may be gone already.
                let _ = reply.send(&FromAgent::Failed { what });
            }
        }
    })
}

fn carry_out(
    command: Command,
    (driver, (programs, tests)): (&mut Option<Driver>, &mut (Programs, Tests)),
    (reply, origin): (&Reply, &Origin),
    stop: &AtomicU64,
) -> Result<(), String> {
    let missing = || "not prepared".to_owned();
    let send = |message: FromAgent| reply.send(&message).map_err(|e| with_sources(&e));
    match command {
        Command::Prepare(prepare) => {
            let begun = clock::mono_ns();
            let prepared = prepare_driver(&prepare, origin)?;
            let granted = prepared.granted();
            *driver = Some(prepared);
            let seconds = (clock::mono_ns() - begun) as f64 / 1e9;
            let target = Target::parse(&prepare.target).ok();
            let source = target.and_then(|target| ClientSource::of(&target, prepare.bind));
            send(FromAgent::Prepared { seconds, granted, source })
        }
        Command::Start(start) => {
            let driver = driver.as_mut().ok_or_else(missing)?;
            start.check()?;
            let mut lost = None;
            let mut report = |windows: Vec<Window>| {
                if let Err(error) = reply.send_windows(windows) {
                    lost = Some(with_sources(&error));
                }
            };
            let end = driver.step(&start, stop, &mut report).map_err(|e| with_sources(&e))?;
            match lost {
                Some(what) => Err(what),
                None => send(FromAgent::StepEnd(end)),
            }
        }
        Command::Clean => {
            let driver = driver.as_mut().ok_or_else(missing)?;
            driver.clean().map_err(|e| with_sources(&e))?;
            send(FromAgent::Cleaned)
        }
        Command::Program(job) => send(programs.prepare(&job, origin)?),
        Command::RunProgram(at_ns) => send(programs.run(at_ns, stop)?),
        Command::CleanProgram => send(programs.clean()?),
        Command::Iozone(job) => send(tests.prepare(&job, origin)?),
        Command::RunTest(test, at_ns) => {
            // If it is not sent, the end of the test is not either.
            let ended = || drop(send(FromAgent::FirstEnd));
            send(tests.run(test, at_ns, stop, &ended)?)
        }
        Command::CleanTests => send(tests.clean()?),
        Command::Disconnect => {
            let calls = driver.take().ok_or_else(missing)?.calls();
            send(FromAgent::Disconnected { calls })
        }
        // Of the other part of the agent.
        Command::Net(_) => Ok(()),
    }
}

/// A client for the target, if the controller may use that.
fn prepare_driver(prepare: &Prepare, origin: &Origin) -> Result<Driver, String> {
    let target = Target::parse(&prepare.target).map_err(|e| with_sources(&e))?;
    let granted = origin.grant(target)?;
    prepare.check()?;
    let options = Options {
        bind: prepare.bind,
        seed: prepare.seed,
        check_one_in: prepare.check_one_in,
        slots: prepare.slots,
    };
    let opened = client::open(&granted.target, &options);
    let driver = opened.and_then(|client| Driver::prepare(client, prepare));
    driver.map_err(|e| granted.named(with_sources(&e)))
}

/// An error and everything below it in one line.
pub(crate) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let part = inner.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        source = inner.source();
    }
    // Replies of FTP, and errors of libraries, can have several lines.
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}
