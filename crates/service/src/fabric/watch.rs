//! The thread that reads the fabrics of this machine, each from a umad device.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::clock::monotonic_ns;
use host_fabric::monitor::{Monitor, Report};
use host_fabric::problem::Kind;
use host_fabric::transport::Transport;
use host_fabric::umad::{DEVICES_MAX, Umad, path};
use parking_lot::Mutex;

use crate::problems::{Fault, Severity, Source};

/// Its name as a source of problems.
pub const NAME: &str = "fabric";
/// How often devices are looked for: a module may be loaded, or access given, while the server
/// runs.
const RETRY: Duration = Duration::from_secs(60);
/// How often the ports of this machine are read between two passes: P_Keys and a missing subnet
/// manager appear within it.
const LOOK: Duration = Duration::from_secs(1);

/// A device that is open.
pub(super) type Device = Box<dyn Transport>;
/// Opens the device of a number.
pub(super) type Opener = Box<dyn Fn(usize) -> io::Result<Device> + Send>;

/// What was read last.
#[derive(Default)]
struct Last {
    /// By number of the device.
    reports: BTreeMap<usize, Arc<Report>>,
    /// Why no device or not every device is read.
    reason: String,
}

fn now() -> Duration {
    Duration::from_nanos(monotonic_ns())
}

/// The fabrics of this machine.
#[derive(Default)]
pub struct Fabrics {
    last: Mutex<Last>,
}

impl Fabrics {
    /// Begins to read them, until this is dropped.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start() -> io::Result<Arc<Self>> {
        let fabrics = Arc::new(Self::default());
        let weak = Arc::downgrade(&fabrics);
        let mut devices = Devices::new(Box::new(|number| Ok(Box::new(Umad::open(number)?))));
        let follow = move || {
            while let Some(pause) = devices.turn(&weak) {
                std::thread::sleep(pause);
            }
        };
        std::thread::Builder::new().name(NAME.to_owned()).spawn(follow)?;
        Ok(fabrics)
    }

    /// The last reports, in the order of devices.
    pub fn reports(&self) -> Vec<Arc<Report>> {
        self.last.lock().reports.values().cloned().collect()
    }

    /// Why no device or not every device is read; empty: all are.
    pub fn reason(&self) -> String {
        self.last.lock().reason.clone()
    }
}

impl Source for Fabrics {
    fn name(&self) -> &'static str {
        NAME
    }

    fn faults(&self) -> Vec<Fault> {
        // Two devices of this machine may be in one fabric.
        let mut by_id = BTreeMap::new();
        for problem in self.reports().iter().flat_map(|report| &report.problems) {
            let fault = Fault {
                id: problem.id.clone(),
                severity: severity(problem.kind),
                what: format!("{}.", capital(&problem.what)),
                impact: problem.impact.to_owned(),
                remedy: problem.remedy.to_owned(),
            };
            by_id.insert(problem.id.clone(), fault);
        }
        by_id.into_values().collect()
    }
}

fn severity(kind: Kind) -> Severity {
    match kind {
        // What is configured continues; the next port that comes up or fails does not.
        Kind::NoManager | Kind::NoReply => Severity::Major,
        Kind::SymbolErrors | Kind::Narrow => Severity::Minor,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A fabric that is read.
struct Open {
    monitor: Monitor<Device>,
    report: Option<Report>,
    /// When it is walked again.
    next: Duration,
}

/// The devices of this machine.
pub(super) struct Devices {
    opener: Opener,
    open: BTreeMap<usize, Open>,
    /// When devices are looked for again.
    retry: Duration,
}

impl Devices {
    /// None is open yet.
    pub(super) fn new(opener: Opener) -> Self {
        Self { opener, open: BTreeMap::new(), retry: Duration::ZERO }
    }

    /// Reads what is due. Returns the time until the next turn; `None`: nothing uses it any more.
    pub(super) fn turn(&mut self, fabrics: &Weak<Fabrics>) -> Option<Duration> {
        let fabrics = fabrics.upgrade()?;
        if self.retry <= now() {
            let reason = self.open_devices();
            fabrics.last.lock().reason = reason;
            self.retry = now() + RETRY;
        }
        self.open.retain(|number, one| one.step(*number, &fabrics));
        Some(if self.open.is_empty() { RETRY } else { LOOK })
    }

    /// Opens devices that are not open. Returns why not every one can be read.
    fn open_devices(&mut self) -> String {
        let mut refused = None;
        for number in 0..DEVICES_MAX {
            if self.open.contains_key(&number) {
                continue;
            }
            match (self.opener)(number) {
                Ok(device) => {
                    let (monitor, next) = (Monitor::new(device), now());
                    self.open.insert(number, Open { monitor, report: None, next });
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => refused = refused.or_else(|| Some(refusal(number, &e))),
            }
        }
        let absent = self.open.is_empty().then(|| ABSENT.to_owned());
        refused.or(absent).unwrap_or_default()
    }
}

/// There is no device.
const ABSENT: &str = "there is no /dev/infiniband/umad*: this machine has no InfiniBand device, \
                      or the module ib_umad is not loaded (modprobe ib_umad)";

fn refusal(number: usize, e: &io::Error) -> String {
    let device = path(number);
    let hint = match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "; start the server as root, or give its user read and write access to the device"
        }
        _ => "",
    };
    format!("cannot open {device}: {e}{hint}")
}

impl Open {
    /// Reads the fabric if it is time, else the own port only. `false`: the device has failed.
    fn step(&mut self, number: usize, fabrics: &Fabrics) -> bool {
        let done = match &mut self.report {
            Some(report) if now() < self.next => self.monitor.look(report),
            _ => self.monitor.pass().map(|report| {
                self.next = now() + report.pause();
                self.report = Some(report);
            }),
        };
        let mut last = fabrics.last.lock();
        if let Err(e) = done {
            let reason = format!("cannot read {}: {e}", path(number));
            base::warning!("fabric", "{reason}");
            last.reports.remove(&number);
            last.reason = reason;
            return false;
        }
        last.reports.extend(self.report.clone().map(|report| (number, Arc::new(report))));
        true
    }
}

#[cfg(test)]
mod tests;
