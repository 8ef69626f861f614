//! A bridge from its start to its verdict: makes the ends, starts a thread for each direction, then
//! serves requests, reports its state each second, and ends.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use base::random::{Random, SystemRandom};
use wire::bridge::{KEY, Opener, Refused, Sealer};

use super::control::{Answer, Control, Request};
use super::device::{Device, DeviceError, End, OwnNamespace};
use super::direction::{Direction, Exit, PRIORITY, Which};
use super::pair::{Peer, Receiver};
use super::shape::{Shapes, nanos};
use super::shared::{Common, DirectionSettings};
use super::status::{EndStatus, Event, Status};
use super::tally::Tally;
use super::{sys, text};

/// Where the second end is.
#[derive(Debug, Clone)]
pub enum Other {
    /// On this machine too.
    End(End),
    /// At another host, which runs the other half; both have this secret.
    Host {
        /// Where frames come in.
        listen: SocketAddr,
        /// The address to call; without one this side waits to be called.
        call: Option<SocketAddr>,
        /// What only both know.
        secret: [u8; KEY],
    },
}

/// What a bridge is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its name, and that of its devices unless their ends say otherwise.
    pub name: String,
    /// The first end.
    pub end: End,
    /// The second.
    pub other: Other,
    /// What the link does.
    pub shapes: Shapes,
    /// Largest IP packet.
    pub mtu: u32,
    /// Whether all that crosses it on this machine is sealed.
    pub encrypt: bool,
    /// Makes the namespaces that are not there, and removes them in the end.
    pub make_namespaces: bool,
    /// Where all chance comes from.
    pub seed: u64,
    /// How long it runs; without it until it is stopped.
    pub lasts: Option<Duration>,
    /// Where it can be asked.
    pub socket: PathBuf,
}

/// Why a bridge does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An end.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Keys.
    #[error("cannot make keys")]
    Keys(#[from] Refused),
    /// Anything else of the machine.
    #[error("cannot {what}")]
    Refused {
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> RunError {
    let what = what.into();
    |source| RunError::Refused { what, source }
}

type Work = JoinHandle<io::Result<()>>;

/// A bridge that runs.
struct Bridge {
    options: Options,
    common: Arc<Common>,
    tallies: [Arc<Tally>; 2],
    devices: Vec<Arc<Device>>,
    peer: Option<Arc<Peer>>,
    threads: Vec<Work>,
    ready_ns: Option<u64>,
    _namespaces: Vec<OwnNamespace>,
}

/// Runs a bridge until its time is over, or a signal or a request ends it; its final state.
/// `report` is called when it is ready and each second.
///
/// # Errors
/// What the machine does not let us.
pub fn run(options: Options, report: &mut dyn FnMut(&Status)) -> Result<Status, RunError> {
    let signals = sys::end_signals().map_err(refused("wait for signals"))?;
    let what = format!("listen at {}", options.socket.display());
    let control = Control::listen(&options.socket).map_err(refused(what))?;
    let mut bridge = Bridge::start(options)?;
    let outcome = bridge.attend(&control, &signals, report);
    bridge.common.stop.store(true, Ordering::Relaxed);
    for thread in bridge.threads.drain(..) {
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        ended.map_err(refused("continue: a device or socket is gone"))?;
    }
    outcome?;
    Ok(bridge.status(Event::End))
}

impl Bridge {
    fn start(options: Options) -> Result<Self, RunError> {
        let ends: Vec<&End> = match &options.other {
            Other::End(end) => vec![&options.end, end],
            Other::Host { .. } => vec![&options.end],
        };
        let mut namespaces = Vec::new();
        if options.make_namespaces {
            for end in &ends {
                namespaces.extend(OwnNamespace::make(&end.place)?);
            }
        }
        let open = |end: &&End| Device::open(end, &options.name, options.mtu).map(Arc::new);
        let devices = ends.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let wanted = DirectionSettings::new(options.shapes.clone());
        let mut bridge = Self {
            options,
            common: Arc::new(Common { wanted, ..Common::default() }),
            tallies: Default::default(),
            devices,
            peer: None,
            threads: Vec::new(),
            ready_ns: None,
            _namespaces: namespaces,
        };
        bridge.begin()?;
        Ok(bridge)
    }

    /// Starts the threads; with another host only the one that listens, until there is a session.
    fn begin(&mut self) -> Result<(), RunError> {
        let [forth, back] = [&self.tallies[0], &self.tallies[1]].map(Arc::clone);
        match (&self.options.other, &self.devices[..]) {
            (Other::Host { listen, call, secret }, [device, ..]) => {
                let what = format!("listen at {listen}");
                let socket = UdpSocket::bind(listen).and_then(Peer::new);
                let peer = Arc::new(socket.map_err(refused(what))?);
                let common = self.common.clone();
                let to = (peer.clone(), device.clone());
                let receiver = Receiver::new(to, back, common, *secret, *call);
                self.peer = Some(peer);
                self.spawn("bridge-back", move || receiver.run(PRIORITY))
            }
            (Other::End(_), [first, second]) => {
                let (first, second) = (first.clone(), second.clone());
                let exit = Exit::Device(second.clone(), self.cover()?);
                self.direct(Which::Forth, (first.clone(), exit), forth)?;
                let exit = Exit::Device(first, self.cover()?);
                self.direct(Which::Back, (second, exit), back)?;
                self.ready_ns = Some(monotonic_ns());
                Ok(())
            }
            // There is a device for each end.
            _ => Ok(()),
        }
    }

    /// The keys for one direction, if encryption is on; they never leave this process.
    fn cover(&self) -> Result<Option<Box<(Sealer, Opener)>>, RunError> {
        if !self.options.encrypt {
            return Ok(None);
        }
        let mut key = [0; KEY];
        SystemRandom.fill(&mut key);
        Ok(Some(Box::new((Sealer::new(&key, 0)?, Opener::new(&key, 0)?))))
    }

    fn direct(
        &mut self,
        which: Which,
        way: (Arc<Device>, Exit),
        tally: Arc<Tally>,
    ) -> Result<(), RunError> {
        let (common, seed) = (self.common.clone(), self.options.seed);
        let (name, seed) = match which {
            Which::Forth => ("bridge-forth", seed),
            // Another sequence, which the seed names as well.
            Which::Back => ("bridge-back", !seed),
        };
        self.spawn(name, move || Direction::new(which, way, common, tally, seed).run())
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), RunError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(refused("start a thread"))?);
        Ok(())
    }

    /// Serves requests and reports until it is time to end.
    fn attend(
        &mut self,
        control: &Control,
        signals: &OwnedFd,
        report: &mut dyn FnMut(&Status),
    ) -> Result<(), RunError> {
        let started_ns = monotonic_ns();
        let event = if self.peer.is_some() { Event::Calling } else { Event::Ready };
        report(&self.status(event));
        let mut next_ns = started_ns + NS_PER_S;
        loop {
            self.set_off(report)?;
            let now_ns = monotonic_ns();
            let ends_ns = self.ends_ns();
            if now_ns >= ends_ns || self.threads.iter().any(JoinHandle::is_finished) {
                return Ok(());
            }
            if now_ns >= next_ns {
                report(&self.status(Event::Second));
                next_ns = now_ns + NS_PER_S - (now_ns - next_ns) % NS_PER_S;
            }
            let mut wait_ns = next_ns.min(ends_ns).saturating_sub(now_ns);
            if self.ready_ns.is_none() {
                // There is no descriptor for a session.
                wait_ns = wait_ns.min(NS_PER_S / 20);
            }
            let fds = [control.listener.as_raw_fd(), signals.as_raw_fd()];
            let [asked, signalled] = sys::wait(fds, wait_ns).map_err(refused("wait"))?;
            if asked {
                control.serve(|request| self.answer(request));
            }
            if signalled || self.common.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    /// When its time is over.
    fn ends_ns(&self) -> u64 {
        match (self.options.lasts, self.ready_ns) {
            (Some(lasts), Some(ready_ns)) => ready_ns.saturating_add(nanos(lasts)),
            _ => u64::MAX,
        }
    }

    /// Lets packets leave for the other host as soon as there is a session.
    fn set_off(&mut self, report: &mut dyn FnMut(&Status)) -> Result<(), RunError> {
        let (Some(peer), None) = (&self.peer, self.ready_ns) else { return Ok(()) };
        if !peer.is_met() {
            return Ok(());
        }
        let exit = Exit::Peer(peer.clone());
        if let Some(device) = self.devices.first() {
            let way = (device.clone(), exit);
            self.direct(Which::Forth, way, self.tallies[0].clone())?;
        }
        self.ready_ns = Some(monotonic_ns());
        report(&self.status(Event::Ready));
        Ok(())
    }

    fn answer(&self, request: Request) -> Answer {
        match request {
            Request::Show => {}
            Request::Stop => self.common.stop.store(true, Ordering::Relaxed),
            Request::Set(changes) => {
                let mut shapes = self.common.wanted.get();
                if let Err(error) = shapes.change(&changes) {
                    return Answer::Refused(error.to_string());
                }
                self.common.wanted.put(shapes);
            }
        }
        match text::answered(&self.status(Event::Asked)) {
            Ok(status) => Answer::Status(status),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    fn status(&self, event: Event) -> Status {
        for (device, tally) in self.devices.iter().zip(&self.tallies) {
            tally.overrun.store(device.overrun(), Ordering::Relaxed);
        }
        let set = self.common.wanted.get();
        let (tolerance_ns, options) = (set.tolerance_ns(), &self.options);
        let ran_ns = self.ready_ns.map_or(0, |ready_ns| monotonic_ns() - ready_ns);
        let [forth, back] = [&self.tallies[0], &self.tallies[1]].map(|tally| tally.snapshot());
        let mut why = forth.spoiled_by("forth", ran_ns, tolerance_ns);
        why.extend(back.spoiled_by("back", ran_ns, tolerance_ns));
        Status {
            event,
            name: options.name.clone(),
            pid: std::process::id(),
            ran_s: ran_ns as f64 / NS_PER_S as f64,
            seed: options.seed,
            encrypted: options.encrypt || self.peer.is_some(),
            goes_first: self.common.ordinary.load(Ordering::Relaxed) == 0,
            ends: self.ends(),
            set,
            tolerance_ns,
            forth,
            back,
            verdict: if why.is_empty() { "good" } else { "spoiled" },
            why,
        }
    }

    fn ends(&self) -> [EndStatus; 2] {
        let end_status = |end: &End| EndStatus {
            place: end.place.to_string(),
            device: end.device.clone().unwrap_or_else(|| self.options.name.clone()),
            address: end.address.to_string(),
        };
        let second = match &self.options.other {
            Other::End(end) => end_status(end),
            Other::Host { listen, call, .. } => {
                let place = match call {
                    Some(at) => format!("the host at {at}"),
                    None => format!("the host that calls {listen}"),
                };
                EndStatus { place, device: String::new(), address: String::new() }
            }
        };
        [end_status(&self.options.end), second]
    }
}
