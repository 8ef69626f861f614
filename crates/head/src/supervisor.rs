//! The head as it runs: one thread has the state machine, and never touches the cluster file
//! system, which may hang. Requests to etcd, fences and processes have threads of their own and
//! report to it.

mod addresses;
mod process;
mod reach;
mod status;

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use base::clock::{NS_PER_S, wall_ns};

use crate::config::Config;
use crate::etcd::{Etcd, Transport};
use crate::fence::{self, Claim, Evict, Fence, OwnerLock, ProcessFence, ProgramFence};
use crate::lease::{self, LeaseFile};
use crate::limits::{HEAD_DRAIN_TIMEOUT, HEAD_LEASE, HEAD_START_TIMEOUT};
use crate::local::{self, Command, Response};
use crate::machine::{Action, Event, FenceError, Machine, Outcome, Request, Settings, Time};
use crate::takeover::Phases;
use addresses::Addresses;
use process::{Process, Start};

/// Why a head cannot run.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct HeadError {
    what: String,
    source: std::io::Error,
}

fn error(what: &str) -> impl Fn(std::io::Error) -> HeadError {
    move |source| HeadError { what: what.to_owned(), source }
}

/// What other threads report.
enum Message {
    Event(Event),
    /// The fences of a resource; with the lock if they have succeeded.
    Fenced(String, u64, Result<OwnerLock, FenceError>),
    /// A process was started; it does not serve yet.
    Process(String, u64, Arc<Process>),
    /// Its services listen; its address follows.
    Listens(String, u64, Time),
    /// Why clients do not reach a resource here, or that they do again.
    Reach(String, Option<String>),
    /// etcd did not answer, or does again.
    Etcd(Option<String>),
    Command(Command, Sender<Response>),
    /// Hand over everything and end.
    End,
}

/// Ends a head: what it owns is handed over if another head can take it.
#[derive(Clone)]
pub struct Ender(Sender<Message>);

impl Ender {
    /// Requests the end.
    pub fn end(&self) {
        // A head that is gone has ended.
        let _gone = self.0.send(Message::End);
    }
}

/// What runs of an ownership.
#[derive(Default)]
struct Running {
    number: u64,
    /// Fences give up once it is set.
    give_up: Arc<AtomicBool>,
    lock: Option<OwnerLock>,
    process: Option<Arc<Process>>,
    /// When the process is killed, if it has not started or ended by then.
    deadline: Option<Time>,
    began: Time,
    locked: Time,
    listens: Time,
    took_ms: Option<(u64, u64)>,
}

/// A head.
pub struct Supervisor {
    config: Arc<Config>,
    program: PathBuf,
    machine: Machine,
    lease: LeaseFile,
    lease_path: PathBuf,
    fences: Arc<Vec<Box<dyn Fence>>>,
    addresses: Arc<Addresses>,
    running: BTreeMap<String, Running>,
    /// Resources of which the administrator has confirmed that the former owner is down, each with
    /// the number of the last ownership that was known then.
    unfenced: BTreeMap<String, u64>,
    leases: Sender<Action>,
    keys: Sender<Request>,
    reports: Sender<Message>,
    inbox: Receiver<Message>,
    etcd: Option<String>,
    ends: Option<Time>,
}

impl Supervisor {
    /// Prepares a head; `program` is plimsoll itself.
    ///
    /// # Errors
    /// Its directory, its socket or the network cannot be used.
    pub fn new(
        config: Config,
        transport: Box<dyn Transport>,
        program: PathBuf,
    ) -> Result<Self, HeadError> {
        let config = Arc::new(config);
        std::fs::create_dir_all(&config.run).map_err(error("make the directory of the head"))?;
        let lease_path = config.run.join(format!("{}.lease", config.name));
        let lease = LeaseFile::create(&lease_path).map_err(error("make the file of the lease"))?;
        let listener = local::bind(&config.socket()).map_err(error("bind the local socket"))?;
        let addresses = Arc::new(Addresses::open().map_err(error("open the network"))?);
        let resources = config.resources.iter().map(|r| (r.name.clone(), r.preferred.clone()));
        let machine = Machine::new(Settings::new(&config.name, resources.collect()));
        let mut fences: Vec<Box<dyn Fence>> = vec![Box::new(ProcessFence)];
        if let Some(program) = config.fence_program.clone() {
            fences.push(Box::new(ProgramFence { program }));
        }
        let (reports, inbox) = mpsc::channel();
        let etcd = Arc::new(Etcd::new(config.etcd.members.clone(), &config.cluster, transport));
        let failed = error("start a thread");
        let leases = lease_thread(etcd.clone(), reports.clone()).map_err(&failed)?;
        let keys = key_thread(etcd, config.name.clone(), reports.clone()).map_err(&failed)?;
        socket_thread(listener, reports.clone()).map_err(&failed)?;
        reach::watch(&config, &reports).map_err(error("watch the links of resources"))?;
        Ok(Self {
            config,
            program,
            machine,
            lease,
            lease_path,
            fences: Arc::new(fences),
            addresses,
            running: BTreeMap::new(),
            unfenced: BTreeMap::new(),
            leases,
            keys,
            reports,
            inbox,
            etcd: None,
            ends: None,
        })
    }

    /// What ends it.
    pub fn ender(&self) -> Ender {
        Ender(self.reports.clone())
    }

    /// Is the head until it is ended.
    pub fn run(mut self) {
        loop {
            let now = lease::now();
            let actions = self.machine.tick(now);
            self.act(actions);
            self.end_late(now);
            if self.has_ended(now) {
                break;
            }
            let wait = self.machine.next(now).saturating_sub(now).max(Duration::from_millis(1));
            match self.inbox.recv_timeout(wait) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for running in self.running.values() {
            running.process.iter().for_each(|process| process.kill());
        }
        // A socket that is left is replaced at the next start.
        let _left = std::fs::remove_file(self.config.socket());
        let _left = std::fs::remove_file(&self.lease_path);
    }

    /// Whether it was asked to end, and owns nothing any more or nothing more can be done.
    fn has_ended(&mut self, now: Time) -> bool {
        let Some(ends) = self.ends else { return false };
        if !self.machine.has_heirs() {
            // What is served ends all the same.
            for running in self.running.values_mut().filter(|running| running.deadline.is_none()) {
                running.process.iter().for_each(|process| process.stop());
                running.deadline = Some(ends);
            }
        }
        let idle = self.machine.resources().values().all(|resource| !resource.runs());
        idle && (self.machine.is_released() || self.etcd.is_some()) || now >= ends
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.event(event),
            Message::Fenced(name, number, outcome) => self.fenced(&name, number, outcome),
            Message::Process(name, number, process) => match self.running.get_mut(&name) {
                Some(running) if running.number == number => running.process = Some(process),
                _ => process.kill(),
            },
            Message::Listens(name, number, at) => {
                if let Some(running) = self.running.get_mut(&name).filter(|r| r.number == number) {
                    running.listens = at;
                }
            }
            Message::Reach(name, why) => {
                match &why {
                    Some(why) => base::warning!("head", "clients do not reach {name} here: {why}"),
                    None => base::info!("head", "clients reach {name} here again"),
                }
                self.machine.set_cut(&name, why);
            }
            Message::Etcd(why) => {
                match &why {
                    Some(why) if self.etcd.is_none() => base::warning!("head", "{why}"),
                    None if self.etcd.is_some() => base::info!("head", "etcd answers again"),
                    _ => {}
                }
                self.etcd = why;
            }
            Message::Command(command, to) => {
                let error = self.command(command).err();
                // A caller that has gone needs no response.
                let _gone = to.send(Response { error, status: self.status() });
            }
            Message::End => {
                self.machine.end();
                self.ends = Some(lease::now() + HEAD_DRAIN_TIMEOUT);
            }
        }
    }

    fn event(&mut self, event: Event) {
        if let Event::Started(name, number, outcome) = &event
            && let Some(running) = self.running.get_mut(name).filter(|r| r.number == *number)
        {
            running.deadline = None;
            let (locked, now) = (running.locked, lease::now());
            let lock = millis(running.began, locked);
            running.took_ms = Some((lock, millis(locked, now)));
            match outcome {
                Ok(()) => {
                    let (start, address) =
                        (millis(locked, running.listens), millis(running.listens, now));
                    let phases = Phases { lock, start, address, ..Phases::default() };
                    let at = wall_ns() / NS_PER_S;
                    base::info!("head", "{name} is served here, number {number}");
                    if let Some(done) = self.machine.served(name, *number, at, phases) {
                        base::info!("head", "{name}: {done}");
                    }
                }
                Err(why) => base::warning!("head", "{name} did not start: {why}"),
            }
        }
        if let Event::Ended(name, number, why) = &event
            && let Some(running) = self.running.get_mut(name).filter(|r| r.number == *number)
        {
            (running.process, running.lock, running.deadline) = (None, None, None);
            base::info!("head", "{name} has ended, number {number}: {why}");
        }
        let actions = self.machine.event(lease::now(), event);
        self.act(actions);
    }

    fn fenced(&mut self, name: &str, number: u64, outcome: Result<OwnerLock, FenceError>) {
        let Some(running) = self.running.get_mut(name) else { return };
        // A lock that comes too late is free again as it is dropped here.
        if running.number != number || running.give_up.load(Ordering::Relaxed) {
            return;
        }
        let outcome = outcome.map(|lock| {
            self.unfenced.remove(name);
            if let Some(client) = lock.client() {
                self.machine.locked_by(name, number, client);
            }
            running.lock = Some(lock);
            running.locked = lease::now();
        });
        self.event(Event::Fenced(name.to_owned(), number, outcome));
    }

    fn command(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Status => Ok(()),
            Command::Takeover { resource, to, unfenced } => {
                let to = to.unwrap_or_else(|| self.config.name.clone());
                if unfenced && to != self.config.name {
                    return Err(format!(
                        "an unfenced takeover is requested at the head {to} itself"
                    ));
                }
                let known = unfenced.then(|| self.machine.last_known(&resource)).transpose()?;
                self.machine.set_target(&resource, &to)?;
                if let Some(number) = known {
                    self.machine.retry(&resource);
                    self.unfenced.insert(resource, number);
                }
                Ok(())
            }
            Command::Failback { resource } => {
                let to = self.machine.preferred(&resource).unwrap_or_default().to_owned();
                self.machine.set_target(&resource, &to)
            }
            Command::Drain { on } => self.machine.drain(on),
        }
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                // Threads end with the head.
                Action::Grant | Action::Renew(_) => drop(self.leases.send(action)),
                Action::Query(request) => drop(self.keys.send(request)),
                Action::Extend(id, until) => {
                    if let Err(e) = self.lease.extend(id, until) {
                        base::error!("head", "the file of the lease cannot be written: {e}");
                    }
                    self.addresses.extend(until);
                }
                Action::Fence(name, number) => self.fence(&name, number),
                Action::Start(name, number, id) => self.start(&name, number, id),
                Action::Stop(name, number) => {
                    if let Some(running) =
                        self.running.get_mut(&name).filter(|r| r.number == number)
                    {
                        running.deadline = Some(lease::now() + HEAD_DRAIN_TIMEOUT);
                        running.process.iter().for_each(|process| process.stop());
                    }
                }
                Action::Kill(name, number) => self.kill(&name, number),
            }
        }
    }

    fn fence(&mut self, name: &str, number: u64) {
        let Some(resource) = self.config.resource(name) else { return };
        let now = lease::now();
        let running = self.running.entry(name.to_owned()).or_default();
        if running.number != number {
            *running = Running { number, began: now, ..Running::default() };
        }
        let give_up = running.give_up.clone();
        let claim = Claim {
            resource: name.to_owned(),
            state: resource.state.clone(),
            head: self.config.name.clone(),
            number,
            served: self.machine.resources().get(name).map_or(0, |one| one.served),
            unfenced_up_to: match resource.unfenced_takeover {
                true => Some(u64::MAX),
                false => self.unfenced.get(name).copied(),
            },
            evict: self
                .machine
                .lost_client(name)
                .map(|client| Evict { client, command: self.config.cephfs_evict.clone() }),
        };
        let (fences, reports, owned) = (self.fences.clone(), self.reports.clone(), name.to_owned());
        let work = move || {
            let outcome = fence::take(&claim, &fences, &give_up);
            let _gone = reports.send(Message::Fenced(owned, number, outcome));
        };
        if let Err(e) = std::thread::Builder::new().name("fence".to_owned()).spawn(work) {
            let failed = Err(FenceError::Failed(e.to_string()));
            let _gone = self.reports.send(Message::Fenced(name.to_owned(), number, failed));
        }
    }

    fn start(&mut self, name: &str, number: u64, id: i64) {
        let Some(running) = self.running.get_mut(name).filter(|r| r.number == number) else {
            return;
        };
        let (Some(lock), Some(_)) = (running.lock.take(), self.config.resource(name)) else {
            return;
        };
        running.deadline = Some(lease::now() + HEAD_START_TIMEOUT);
        let start = Start {
            config: self.config.clone(),
            name: name.to_owned(),
            number,
            lease: (self.lease_path.clone(), id),
            program: self.program.clone(),
            addresses: self.addresses.clone(),
        };
        process::run(start, lock, self.reports.clone());
    }

    fn kill(&mut self, name: &str, number: u64) {
        let Some(running) = self.running.get_mut(name).filter(|r| r.number == number) else {
            return;
        };
        running.give_up.store(true, Ordering::Relaxed);
        running.lock = None;
        match &running.process {
            // The thread of the process reports its end.
            Some(process) => process.kill(),
            None if running.deadline.is_some() => {
                // It is being started: its own message comes next, and finds another number.
                running.number = 0;
                let ended = Event::Ended(name.to_owned(), number, "killed at its start".to_owned());
                let _gone = self.reports.send(Message::Event(ended));
            }
            None => {
                let ended = Event::Ended(name.to_owned(), number, "not started".to_owned());
                let _gone = self.reports.send(Message::Event(ended));
            }
        }
    }

    /// Kills what has not started or ended in time.
    fn end_late(&mut self, now: Time) {
        for (name, running) in &mut self.running {
            if running.deadline.is_some_and(|deadline| now >= deadline)
                && let Some(process) = &running.process
            {
                base::warning!("head", "{name} takes too long and is killed");
                running.deadline = None;
                process.kill();
            }
        }
    }
}

fn millis(from: Time, to: Time) -> u64 {
    u64::try_from(to.saturating_sub(from).as_millis()).unwrap_or(u64::MAX)
}

/// Renews the lease; apart from the keys, so that no other request delays it.
fn lease_thread(etcd: Arc<Etcd>, reports: Sender<Message>) -> std::io::Result<Sender<Action>> {
    let (to, jobs) = mpsc::channel::<Action>();
    let work = move || {
        for job in jobs {
            let sent = lease::now();
            let (event, why) = match job {
                Action::Renew(id) => match etcd.renew(id) {
                    Ok(true) => (Event::Renewed(sent, id), None),
                    Ok(false) => (Event::Expired(id), None),
                    Err(e) => (Event::LeaseUnanswered, Some(e.to_string())),
                },
                _ => match etcd.grant(HEAD_LEASE) {
                    Ok(id) => (Event::Granted(sent, id), None),
                    Err(e) => (Event::LeaseUnanswered, Some(e.to_string())),
                },
            };
            let _gone = reports.send(Message::Etcd(why));
            if reports.send(Message::Event(event)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("leases".to_owned()).spawn(work)?;
    Ok(to)
}

/// Asks for keys, one request after the other.
fn key_thread(
    etcd: Arc<Etcd>,
    head: String,
    reports: Sender<Message>,
) -> std::io::Result<Sender<Request>> {
    let (to, jobs) = mpsc::channel::<Request>();
    let work = move || {
        for request in jobs {
            let sent = lease::now();
            let outcome = etcd.request(&head, &request).unwrap_or(Outcome::Unanswered);
            if reports.send(Message::Event(Event::Answer(sent, outcome))).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".to_owned()).spawn(work)?;
    Ok(to)
}

/// Answers the local socket, one connection after the other.
fn socket_thread(listener: UnixListener, reports: Sender<Message>) -> std::io::Result<()> {
    let work = move || {
        for stream in listener.incoming().flatten() {
            let done = local::answer(stream, |command| {
                let (to, response) = mpsc::channel();
                reports.send(Message::Command(command, to)).ok()?;
                response.recv().ok()
            });
            if let Err(e) = done {
                base::warning!("head", "a request on the local socket: {e}");
            }
        }
    };
    std::thread::Builder::new().name("local".to_owned()).spawn(work).map(drop)
}
