//! An agent: one process that is one client, conducted from elsewhere.
//!
//! It listens, takes one conductor at a time, tells what machine it is, answers pings so that its
//! clock can be compared, prepares its files, and runs steps that start at an agreed moment. While
//! it lives it beats; samples leave once per window and nothing is kept, so memory does not grow
//! with the length of a run.
//!
//! - [`proto`]: the messages; [`clock`]: times; [`drive`]: the loop that makes the load.

pub mod clock;
pub mod drive;
pub mod proto;

use crate::client::{self, Options, Target};
use base::limits::{LAB_HEARTBEAT, LAB_RENEW_EVERY};
use drive::Driver;
use proto::{FromAgent, Prepare, ProtoError, ToAgent, Window};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How an agent is started.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What a conductor must know; `None` lets in everyone who can connect.
    pub token: Option<String>,
    /// End after the first conductor, and when none comes within [`ONCE_PATIENCE`].
    pub once: bool,
    /// Print one JSON line with pid and address when ready.
    pub announce: bool,
}

/// How long an agent that was started for one run waits for its conductor.
pub const ONCE_PATIENCE: Duration = Duration::from_secs(30);

/// Why an agent ends.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// Open to the network without a token.
    #[error(
        "{0} is not a loopback address: give --token-file, or anyone can make this machine write"
    )]
    Open(SocketAddr),
    /// The conversation with the conductor failed.
    #[error("conductor: {0}")]
    Proto(#[from] ProtoError),
    /// No conductor came.
    #[error("no controller connected within {ONCE_PATIENCE:?}")]
    Alone,
}

/// Runs an agent until its conductor leaves (`once`) or for ever.
///
/// # Errors
/// When it cannot listen, or, with `once`, when the conversation fails.
pub fn run(options: &AgentOptions) -> Result<(), AgentError> {
    clock::skew_for_test();
    if options.token.is_none() && !options.listen.ip().is_loopback() {
        return Err(AgentError::Open(options.listen));
    }
    let fail = |e| AgentError::Listen(options.listen, e);
    let listener = TcpListener::bind(options.listen).map_err(fail)?;
    let address = listener.local_addr().map_err(fail)?;
    if options.announce {
        let line = serde_json::json!({"pid": std::process::id(), "listen": address.to_string()});
        println!("{line}");
        let _ = std::io::stdout().flush();
    } else {
        eprintln!("agent listens on {address}");
    }
    if options.once && !clock::readable_within(&listener, ONCE_PATIENCE) {
        return Err(AgentError::Alone);
    }
    loop {
        let (stream, _) = listener.accept().map_err(fail)?;
        let ended = converse(stream, options.token.as_deref());
        if options.once {
            return ended.map_err(AgentError::from);
        }
        if let Err(error) = ended {
            eprintln!("conductor: {error}");
        }
    }
}

/// The way back to the conductor, shared by the reader, the beat and the driver.
#[derive(Clone)]
struct Reply(Arc<Mutex<TcpStream>>);

impl Reply {
    fn send(&self, message: &FromAgent) -> Result<(), ProtoError> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        proto::send(&mut *stream, message)
    }
}

/// What the driver thread is told.
enum Command {
    Prepare(Box<Prepare>),
    Start(proto::Start),
    Clean,
    Disconnect,
}

/// One conductor from greeting to goodbye.
fn converse(stream: TcpStream, token: Option<&str>) -> Result<(), ProtoError> {
    stream.set_nodelay(true)?;
    let mut from = stream.try_clone()?;
    let reply = Reply(Arc::new(Mutex::new(stream)));
    match proto::receive::<ToAgent>(&mut from)? {
        ToAgent::Hello { versions, token: given } => {
            let version = proto::agree(versions)?;
            if token.is_some() && given.as_deref() != token {
                let _ = reply.send(&FromAgent::Failed { what: "wrong token".into() });
                return Err(ProtoError::Token);
            }
            reply.send(&proto::hello(version))?;
        }
        _ => return Err(ProtoError::Order("hello")),
    }
    let live = Arc::new(AtomicBool::new(true));
    let beat = spawn_beat(reply.clone(), Arc::clone(&live));
    let stop = Arc::new(AtomicU64::new(0));
    let (commands, inbox) = channel();
    let driver = spawn_driver(inbox, reply.clone(), Arc::clone(&stop));
    let ended = obey(&mut from, &reply, &commands, &stop);
    // Whatever runs ends now: nobody listens any more.
    stop.store(1, Ordering::SeqCst);
    live.store(false, Ordering::SeqCst);
    drop(commands);
    let _ = driver.join();
    let _ = beat.join();
    ended
}

fn obey(
    from: &mut TcpStream,
    reply: &Reply,
    commands: &Sender<Command>,
    stop: &AtomicU64,
) -> Result<(), ProtoError> {
    loop {
        let command = match proto::receive::<ToAgent>(from) {
            Ok(message) => message,
            Err(ProtoError::Ended) => return Ok(()),
            Err(error) => return Err(error),
        };
        let told = match command {
            ToAgent::Hello { .. } => return Err(ProtoError::Order("anything but hello")),
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
            ToAgent::Bye => return Ok(()),
            ToAgent::Prepare(prepare) => Command::Prepare(prepare),
            ToAgent::Start(start) => {
                // Set here, not by the driver: a stop that comes right behind must win.
                stop.store(start.until_ns, Ordering::SeqCst);
                Command::Start(start)
            }
            ToAgent::Clean => Command::Clean,
            ToAgent::Disconnect => Command::Disconnect,
        };
        if commands.send(told).is_err() {
            return Err(ProtoError::Order("a running driver"));
        }
    }
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

fn spawn_driver(inbox: Receiver<Command>, reply: Reply, stop: Arc<AtomicU64>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut driver = None;
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
            if let Err(what) = carry_out(command, &mut driver, &reply, &stop) {
                // The conductor may be gone already; then nobody needs to know.
                let _ = reply.send(&FromAgent::Failed { what });
            }
        }
    })
}

fn carry_out(
    command: Command,
    driver: &mut Option<Driver>,
    reply: &Reply,
    stop: &AtomicU64,
) -> Result<(), String> {
    let missing = || "not prepared".to_owned();
    let send = |message: FromAgent| reply.send(&message).map_err(|e| with_sources(&e));
    match command {
        Command::Prepare(prepare) => {
            let begun = clock::mono_ns();
            let prepared = prepare_driver(&prepare).map_err(|e| with_sources(&e))?;
            let granted = prepared.granted();
            *driver = Some(prepared);
            let seconds = (clock::mono_ns() - begun) as f64 / 1e9;
            send(FromAgent::Prepared { seconds, granted })
        }
        Command::Start(start) => {
            let driver = driver.as_mut().ok_or_else(missing)?;
            let mut lost = None;
            let mut tell = |window: Window| {
                if let Err(error) = reply.send(&FromAgent::Window(Box::new(window))) {
                    lost = Some(with_sources(&error));
                }
            };
            let end = driver.step(&start, stop, &mut tell).map_err(|e| with_sources(&e))?;
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
        Command::Disconnect => {
            let calls = driver.take().ok_or_else(missing)?.calls();
            send(FromAgent::Disconnected { calls })
        }
    }
}

fn prepare_driver(prepare: &Prepare) -> Result<Driver, client::ClientError> {
    let target = Target::parse(&prepare.target)?;
    let options = Options {
        bind: prepare.bind,
        seed: prepare.seed,
        check_one_in: prepare.check_one_in,
        slots: prepare.slots,
    };
    let client = client::open(&target, &options)?;
    Driver::prepare(client, prepare)
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
    text
}
