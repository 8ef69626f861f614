//! The side that writes. This thread plans: it walks its own tree in parallel to the listing of the
//! source, in the same order, and decides. One thread sorts the messages of the link; some write
//! files.
//!
//! What comes for the plan is bounded by credit, what comes for the files by queues: files that
//! wait for a disk stop the link, and the plan never does, because it may itself wait for files.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{DSYNC_LINKS_MAX, DSYNC_THREADS, DSYNC_TICK, DSYNC_WRITE_QUEUE};
use wire::dsync::{About, Counts, FileId, Kind, Message, Options, Role, frame};

use crate::error::{SyncError, Why};
use crate::events::{Event, Report};
use crate::index;
use crate::lends::LocalFdTable;
use crate::link::{Link, Out, RateLimiter, Ticker, spawn};
use crate::load::{Meter, of_process};
use crate::owners;
use crate::pack::Unpacker;
use crate::rules::Rules;
use crate::stop::{Stop, lock};
use crate::streams::{DataStreams, Streams};
use crate::tree::{Keep, ScannedEntry, Tree};

mod aside;
mod compare;
mod decide;
mod entry;
mod extents;
mod failed;
mod files;
mod intake;
mod laid;
mod lay;
mod link_table;
mod links;
mod node;
mod plan;
mod receive;
mod remove;
mod sums;
mod tracker;
mod write;

use files::Files;
use intake::Intake;
use laid::Lays;
use receive::Sorter;
use tracker::{Show, Tracker};

/// What all threads of this side share.
struct Shared<T: Tree> {
    tree: T,
    options: Options,
    rules: Rules,
    keep: Keep,
    out: Out,
    tracker: Tracker,
    files: Files<T>,
    /// Temporary files with blocks of the files that are to be changed.
    lays: Lays<T>,
    /// What has come over streams for data.
    intake: Intake,
    unpacker: Unpacker,
    /// What the source lends, if it is in this process.
    lends: Option<Arc<LocalFdTable>>,
    /// What the source's owners are here.
    owners: owners::ReceivedOwners,
    meter: Arc<Meter>,
    report: Report,
    /// Whether changed files are sent by their differences.
    delta: bool,
    /// Files here that had several names when they were first seen.
    several: Mutex<HashSet<FileId>>,
}

/// Where events are reported.
pub enum ReportTo {
    /// On this side.
    Local(Report),
    /// On the other side, which the user has started.
    Remote,
}

impl ReportTo {
    fn report(self, out: &Out) -> Report {
        let out = out.clone();
        match self {
            Self::Local(report) => report,
            // An error means that the run is ending.
            Self::Remote => Arc::new(move |event| {
                let _unheard = match event {
                    Event::Note(note) => out.send(&Message::Note(note)),
                    // Reported by the side that connects the streams; progress is sent separately.
                    Event::Carried(_) | Event::Lost(_) | Event::Progress(_) => Ok(()),
                };
            }),
        }
    }
}

/// Where progress is reported.
fn shows(report_to: &ReportTo, out: &Out, meter: &Arc<Meter>) -> Show {
    let (out, meter) = (out.clone(), Arc::clone(meter));
    match report_to {
        ReportTo::Local(report) => {
            let report = Arc::clone(report);
            Box::new(move |counts| {
                report(Event::Progress(meter.progress(monotonic_ns(), counts)));
            })
        }
        // An error means that the run is ending.
        ReportTo::Remote => Box::new(move |counts| drop(out.send(&Message::Progress(counts)))),
    }
}

/// What the planning thread waits for.
enum Item {
    /// A message about the source's tree, with its bytes.
    Message(Vec<u8>),
    /// The run has ended.
    Stopped,
}

/// Is the destination, until its tree is the same: what it has counted.
///
/// # Errors
/// Why the run ended early. Failures of single files are reported by `report`, and counted.
pub fn run<T: Tree>(
    tree: T,
    options: &Options,
    link: Link,
    report_to: ReportTo,
    delta: bool,
) -> Result<Counts, Why> {
    let rules = Rules::new(&options.rules.0)?;
    let Link { read, write, close, closes, beside, timeout, lends } = link;
    let (began_ns, meter) = (monotonic_ns(), Arc::new(Meter::new(lends.is_some())));
    let stop: Arc<Stop> = Arc::default();
    let (items, planned) = channel();
    stop.on_fail(Box::new(close));
    let woken = items.clone();
    // A planner that is gone needs no waking.
    stop.on_fail(Box::new(move || drop(woken.send(Item::Stopped))));
    let (out, _ends_with_the_link) = Out::start(write, &RateLimiter::new(0), &stop)?;
    let shows = shows(&report_to, &out, &meter);
    let report = report_to.report(&out);
    let keep = Keep { owners: options.owners && tree.may_own(), xattrs: options.xattrs };
    let shared = Arc::new(Shared {
        tree,
        options: options.clone(),
        rules,
        keep,
        out,
        tracker: Tracker::new(&stop, &report, shows),
        files: Files::new(&stop),
        intake: Intake::default(),
        unpacker: Unpacker::default(),
        lends,
        lays: Lays::default(),
        owners: owners::ReceivedOwners::default(),
        meter,
        report,
        delta,
        several: Mutex::default(),
    });
    let calls = matches!(beside, DataStreams::Calls(_));
    let streams = Streams::start(beside, files::hooks(&shared, calls, &stop), &stop)?;
    let (queues, mut threads) = start_writers(&shared, &stop)?;
    // How many bytes are on their way to the plan.
    let ahead: Arc<AtomicU64> = Arc::default();
    let mut sorter = Sorter::new(&shared, items, queues, &ahead);
    let ends = Arc::clone(&stop);
    threads.push(spawn("receive", move || {
        if let Err(e) = sorter.run(read) {
            e.stop(&ends);
        }
    })?);
    let (ticker, ticks) = shared.tick(began_ns, timeout, &streams)?;
    threads.push(ticks);
    let done = plan_all(&shared, &planned, &ahead, &stop).and_then(|counts| {
        // All has come: what happens to the streams now does not matter.
        streams.close();
        shared.out.send_last(&Message::Done(counts.clone()))?;
        Ok(counts)
    });
    drop(ticker);
    let done = done.map_err(|why| stop.why().unwrap_or(why));
    if done.is_err() {
        stop.fail(SyncError::Gone);
    }
    if closes {
        streams.join_with(threads);
    }
    shared.ended(done.is_ok());
    done
}

impl<T: Tree> Shared<T> {
    /// The run has ended. After a failure, files that are not complete are abandoned, once the
    /// received messages are processed, as far as that is waited for.
    fn ended(&self, well: bool) {
        if well {
            index::keep(&self.tree, &self.rules);
        } else {
            self.abandon();
        }
        self.tree.end();
    }
}

fn plan_all<T: Tree>(
    shared: &Arc<Shared<T>>,
    planned: &Receiver<Item>,
    ahead: &AtomicU64,
    stop: &Stop,
) -> Result<Counts, Why> {
    let mut plan = plan::Plan::new(Arc::clone(shared));
    loop {
        let Ok(Item::Message(body)) = planned.recv() else { return Err(stop.reason()) };
        let message = frame::message(&body).map_err(|e| stop.fail(e.into()))?;
        let ended = matches!(message, Message::ScanEnd(()));
        plan.take(message).map_err(|e| e.stop(stop))?;
        ahead.fetch_sub(body.len() as u64, Ordering::AcqRel);
        if ended {
            break;
        }
        plan.credit(body.len() as u64).map_err(|e| e.stop(stop))?;
    }
    plan.finish().map_err(|e| e.stop(stop))?;
    Ok(shared.tracker.counts())
}

type Queues = Vec<SyncSender<Vec<u8>>>;

fn start_writers<T: Tree>(
    shared: &Arc<Shared<T>>,
    stop: &Arc<Stop>,
) -> Result<(Queues, Vec<JoinHandle<()>>), SyncError> {
    let (mut queues, mut writers) = (Vec::new(), Vec::new());
    for _ in 0..DSYNC_THREADS {
        let (queue, frames) = sync_channel::<Vec<u8>>(DSYNC_WRITE_QUEUE);
        let (shared, stop) = (Arc::clone(shared), Arc::clone(stop));
        queues.push(queue);
        writers.push(spawn("write", move || {
            let mut writer = write::Writer::new(shared);
            while let Ok(body) = frames.recv() {
                let took = frame::message(&body)
                    .map_err(|e| failed::Failed::Run(e.into()))
                    .and_then(|message| writer.take(message));
                if let Err(e) = took {
                    e.stop(&stop);
                    break;
                }
            }
        })?);
    }
    Ok((queues, writers))
}

/// A sentence of what failed, for a note.
fn why(error: &std::io::Error) -> String {
    // The message of the system without the error number at its end.
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

impl<T: Tree> Shared<T> {
    /// What is here under a name. A file that had several names in this run still has, though the
    /// others may be gone by now: a dry run, in which they are not, must come to the same.
    fn look(&self, dir: &T::Dir, name: &[u8]) -> std::io::Result<ScannedEntry> {
        let mut seen = self.tree.look(dir, name)?;
        if let Some(file) = seen.meta.link.as_ref().filter(|_| seen.meta.kind != Kind::DIRECTORY) {
            let mut several = lock(&self.several);
            if seen.names > 1 && several.len() < DSYNC_LINKS_MAX {
                several.insert(file.clone());
            }
            if several.contains(file) {
                seen.names = seen.names.max(2);
            }
        }
        Ok(seen)
    }

    /// Starts the periodic acknowledgements and load reports.
    fn tick(
        self: &Arc<Self>,
        began_ns: u64,
        timeout: Duration,
        streams: &Arc<Streams>,
    ) -> Result<(Ticker, JoinHandle<()>), SyncError> {
        let (tells, weighs) = (Arc::clone(self), Arc::clone(streams));
        Ticker::start(DSYNC_TICK.min(timeout / 4), move || {
            tells.acknowledge_taken();
            tells.send_load(began_ns, &weighs);
        })
    }

    /// Sends what this side has used and waited for.
    fn send_load(&self, began_ns: u64, streams: &Streams) {
        let mut load = of_process(began_ns);
        load.disk_ns = self.tree.waited_ns();
        streams.weigh(&mut load);
        self.meter.store(Role::DESTINATION, load.clone());
        // An error means that the run is ending.
        let _unheard = self.out.send(&Message::Load(load));
    }

    /// Notes a thing that is done, or that a run without a dry one would do.
    fn note(&self, about: About, path: &[u8], text: &str) {
        self.tracker.note(about, path, text);
    }

    /// Notes what failed.
    fn fail(&self, path: &[u8], text: &str) {
        self.tracker.note(About::FAILURE, path, text);
    }
}
