//! The process of a resource: `plimsoll serve` with the lock on `owner` as its standard input. A
//! thread starts it, waits until it serves, sets its address, and waits for its end.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use host::socket_diagnosis::SocketDiagnosis;
use host_network::resource_address::resets::Resets;

use super::Message;
use super::addresses::Addresses;
use crate::config::Config;
use crate::connections::{self, Connection};
use crate::fence::{self, OwnerLock};
use crate::keys::LeaseId;
use crate::lease;
use crate::limits::{HEAD_ANNOUNCE_AGAIN, HEAD_MESSAGE_MAX, HEAD_RELEASE_TIMEOUT};
use crate::machine::Event;

/// What is started.
pub(super) struct Start {
    pub config: Arc<Config>,
    pub name: String,
    pub number: u64,
    /// The file of the lease, and the lease under which the process runs.
    pub lease: (PathBuf, LeaseId),
    pub program: PathBuf,
    pub addresses: Arc<Addresses>,
}

/// A process that can be ended; its number is its own until it is reaped.
#[derive(Debug)]
pub(super) struct Process {
    pid: Mutex<Option<Pid>>,
    /// Whether its end was requested.
    ends: AtomicBool,
}

impl Process {
    fn new(pid: Pid) -> Self {
        Self { pid: Mutex::new(Some(pid)), ends: AtomicBool::new(false) }
    }

    /// Lets it drain and end.
    pub(super) fn stop(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends it at once.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Whether it runs, and its end was not requested.
    fn serves(&self) -> bool {
        !self.ends.load(Ordering::SeqCst) && self.pid().is_some()
    }

    /// Its number, while it is there.
    pub(super) fn pid(&self) -> Option<u32> {
        let pid = *self.pid.lock().unwrap_or_else(PoisonError::into_inner);
        pid.and_then(|pid| u32::try_from(pid.as_raw()).ok())
    }

    fn signal(&self, signal: Signal) {
        self.ends.store(true, Ordering::SeqCst);
        let pid = self.pid.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = *pid {
            // A process that is not reaped can be signalled, if it has ended or not.
            let _ended = kill(pid, signal);
        }
    }

    /// Waits for its end, and reaps it.
    fn wait(&self, child: &mut Child) -> String {
        let pid = Pid::from_raw(child.id().cast_signed());
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(pid), flags) == Err(nix::errno::Errno::EINTR) {}
        *self.pid.lock().unwrap_or_else(PoisonError::into_inner) = None;
        child.wait().map_or_else(|e| e.to_string(), |status| status.to_string())
    }
}

/// Starts the process in a thread, which reports its start and its end.
pub(super) fn run(start: Start, lock: OwnerLock, reports: Sender<Message>) {
    let (name, number, failed) = (start.name.clone(), start.number, reports.clone());
    let start = Arc::new(start);
    let work = move || start.run(lock, &reports);
    if let Err(e) = std::thread::Builder::new().name("process".to_owned()).spawn(work) {
        let event = Event::Started(name, number, Err(e.to_string()));
        let _gone = failed.send(Message::Event(event));
    }
}

impl Start {
    fn run(self: &Arc<Self>, mut lock: OwnerLock, reports: &Sender<Message>) {
        // The head that receives it may have ended.
        let report = |message| drop(reports.send(message));
        let (name, number) = (self.name.clone(), self.number);
        let failed = |why: String| Message::Event(Event::Started(name.clone(), number, Err(why)));
        // Before the process replaces them by its own.
        let former = self.recorded_connections();
        let mut child = match self.spawn(&lock) {
            Ok(child) => child,
            Err(why) => return report(failed(why)),
        };
        let pid = Pid::from_raw(child.id().cast_signed());
        let process = Arc::new(Process::new(pid));
        report(Message::Process(name.clone(), number, process.clone()));
        if let Err(e) = lock.enter(child.id()) {
            process.kill();
            process.wait(&mut child);
            return report(failed(format!("the file owner cannot be written: {e}")));
        }
        // From here on the process alone has the lock.
        drop(lock);
        let mut output = child.stdout.take().map(BufReader::new);
        if !output.as_mut().is_some_and(serves) {
            process.kill();
            let status = process.wait(&mut child);
            self.release();
            return report(failed(format!(
                "it did not get ready ({status}); its messages are in the log"
            )));
        }
        let Some(resource) = self.config.resource(&name) else { return };
        report(Message::Listens(name.clone(), number, lease::now()));
        // Of an earlier ownership of this machine: no client may meet them.
        let address = resource.address.address;
        let ended = SocketDiagnosis::open().and_then(|mut all| all.end_connections(address));
        if let Err(e) = ended {
            base::warning!("head", "former connections of {name} on this machine are left: {e}");
        }
        if let Err(why) = self.addresses.add(&resource.link, resource.address) {
            process.kill();
            process.wait(&mut child);
            self.release();
            let (link, address) = (&resource.link, resource.address);
            return report(failed(format!("the address {address} cannot be set on {link}: {why}")));
        }
        report(Message::Event(Event::Started(name.clone(), number, Ok(()))));
        self.reset_connections(&former);
        self.clone().repeat(process.clone(), former);
        let removed = Arc::new(Mutex::new(false));
        self.follow(output, removed.clone());
        let status = process.wait(&mut child);
        self.remove_address(&removed);
        self.release();
        report(Message::Event(Event::Ended(name, number, status)));
    }

    /// Removes the address as the output ends: the process waits for that, without services. It
    /// must not find its output closed before.
    fn follow(self: &Arc<Self>, output: Option<BufReader<ChildStdout>>, removed: Arc<Mutex<bool>>) {
        let this = self.clone();
        std::thread::spawn(move || {
            let read = output.map(|mut output| std::io::copy(&mut output, &mut std::io::sink()));
            this.remove_address(&removed);
            read
        });
    }

    /// Removes the address once: later it may be set again, for another process.
    fn remove_address(&self, removed: &Mutex<bool>) {
        let mut removed = removed.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *removed, true)
            && let Some(resource) = self.config.resource(&self.name)
        {
            self.addresses.remove(&resource.link, resource.address);
        }
    }

    /// Enters the end of the process in its state directory, so that the next owner needs no fence.
    /// A file system that hangs is not waited for.
    fn release(&self) {
        let Some(resource) = self.config.resource(&self.name) else { return };
        let (state, number) = (resource.state.clone(), self.number);
        let (done, entered) = mpsc::channel();
        let work = move || {
            // The next owner fences if this is not entered.
            let _unknown = done.send(fence::release(&state, number));
        };
        if std::thread::Builder::new().name("release".to_owned()).spawn(work).is_ok() {
            let _late = entered.recv_timeout(HEAD_RELEASE_TIMEOUT);
        }
    }

    /// The connections that clients had with the former owner.
    fn recorded_connections(&self) -> Vec<Connection> {
        let Some(resource) = self.config.resource(&self.name) else { return Vec::new() };
        connections::read(&resource.state).unwrap_or_else(|e| {
            self.not_reset(&e);
            Vec::new()
        })
    }

    fn not_reset(&self, error: &std::io::Error) {
        let name = &self.name;
        base::warning!(
            "head",
            "connections of {name} with its former owner are not reset: {error}"
        );
    }

    /// Resets those connections: without that clients notice the end of the former owner at their
    /// next retransmission.
    fn reset_connections(&self, former: &[Connection]) {
        let Some(resource) = self.config.resource(&self.name) else { return };
        match Resets::open(resource.address.address) {
            Ok(resets) => former.iter().for_each(|(port, peer)| {
                // A client that cannot be reached now is left to its own retransmissions.
                let _unreachable = resets.send(*port, *peer);
            }),
            Err(e) => self.not_reset(&e),
        }
    }

    /// Announces the address again, and resets connections again: packets may be lost. Connections
    /// that exist here are not concerned; a client that is probed while another owner is to get its
    /// connection would be refused here.
    fn repeat(self: Arc<Self>, process: Arc<Process>, former: Vec<Connection>) {
        let work = move || {
            let Some(resource) = self.config.resource(&self.name) else { return };
            let mut slept = std::time::Duration::ZERO;
            for at in HEAD_ANNOUNCE_AGAIN {
                std::thread::sleep(at.saturating_sub(slept));
                slept = at;
                if process.serves() && self.addresses.announce(&resource.link, resource.address) {
                    self.reset_connections(&former);
                }
            }
        };
        // Without a thread there is the first announcement.
        let _none = std::thread::Builder::new().name("announce".to_owned()).spawn(work);
    }

    fn spawn(&self, lock: &OwnerLock) -> Result<Child, String> {
        let resource = self.config.resource(&self.name).ok_or("there is no such resource")?;
        let lock = lock.pass().map_err(|e| e.to_string())?;
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&resource.directory).arg("--state").arg(&resource.state);
        command.args(["--address", &resource.address.address.to_string()]);
        command.args(["--port-offset", &resource.port_offset.to_string()]);
        command.args(["--announce", "json", "--lease-id", &self.lease.1.to_string(), "--lease"]);
        command.arg(&self.lease.0).args(&resource.options);
        command.stdin(Stdio::from(lock)).stdout(Stdio::piped());
        command.spawn().map_err(|e| format!("{}: {e}", self.program.display()))
    }
}

/// Waits for the line that a server prints when it is ready.
fn serves(output: &mut BufReader<ChildStdout>) -> bool {
    let mut line = String::new();
    let read = output.take(HEAD_MESSAGE_MAX).read_line(&mut line);
    read.is_ok() && line.ends_with('\n')
}
