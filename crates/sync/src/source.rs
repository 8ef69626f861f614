//! The side that reads: one thread walks the tree and lists it, some send the requested files, and
//! this one receives the messages of the other side.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base::clock::monotonic_ns;
use base::limits::{
    DSYNC_BLOCKS_MAX, DSYNC_NEEDS_MAX, DSYNC_SCAN_WINDOW, DSYNC_SEND_BYTES, DSYNC_THREADS,
    DSYNC_TICK,
};
use wire::dsync::{Basis, Counts, Load, Message, Need, Options, Role, SendMode, Sum, Sums, frame};

use crate::delta;
use crate::error::{SyncError, Why};
use crate::events::{Event, Report};
use crate::index;
use crate::lends::LocalFdTable;
use crate::link::{Link, Out, Queue, RateLimiter, Ticker, Unanswered, read_frame, spawn};
use crate::load::{Meter, is_full, of_process};
use crate::owners;
use crate::rules::Rules;
use crate::stop::{Stop, Watched, lock};
use crate::streams::{DataStreams, Streams};
use crate::tree::{Tree, is_path};

mod bulk;
mod coming;
mod scan;
mod send;

use bulk::Bulk;
use coming::Coming;

/// What all threads of this side share.
struct Shared<T> {
    tree: T,
    options: Options,
    rules: Rules,
    out: Out,
    /// Pieces of files, which go over streams of their own if there are any.
    bulk: Arc<Bulk>,
    stop: Arc<Stop>,
    /// Bytes of entries that may still be sent.
    credit: Arc<Watched<u64>>,
    /// Files that a destination in this process takes over without their bytes coming here.
    lends: Option<Arc<LocalFdTable>>,
    /// Whether the destination has taken over the range of a file that was lent last, by id.
    borrowed: Arc<Watched<HashMap<u64, bool>>>,
    /// Names of owners that were sent.
    owners: owners::SentOwners,
    /// Requests that have not ended.
    asked: Mutex<OutstandingRequests>,
    /// Sums that are looked at as they come.
    coming: Arc<Watched<Coming>>,
}

/// What the other side may not have without limit.
#[derive(Default)]
struct OutstandingRequests {
    needs: usize,
    sums: usize,
}

/// A file that is asked for, with the sums of what the other side has.
struct Job {
    need: Need,
    sums: Vec<Sum>,
    /// Where its hash is kept for the next run.
    slot: Option<u64>,
}

impl Job {
    fn sums_wanted(&self) -> usize {
        let count = |basis: &Option<Basis>| basis.as_ref().map_or(0, |basis| basis.count as usize);
        count(&self.need.basis) + count(&self.need.kept)
    }

    /// How the file is cut there, if it is sent while sums of that are on their way.
    fn comes(&self) -> Option<&Basis> {
        let at_once = self.need.wish == SendMode::SEND && self.need.kept.is_none();
        self.need.basis.as_ref().filter(|basis| at_once && basis.count > 0)
    }
}

/// Is the source, until the destination has all: what it has counted.
///
/// # Errors
/// Why the run ended before.
pub fn run<T: Tree>(
    tree: T,
    options: &Options,
    mut link: Link,
    report: &Report,
) -> Result<Counts, Why> {
    let beside = std::mem::take(&mut link.beside);
    run_ahead(tree, options, link, report, |_| Ok(beside))
}

/// As [`run`], where the other side was started and has not answered: the walk is sent to it
/// meanwhile. `answer` reads its reply, and returns the streams that there are after that.
///
/// # Errors
/// As [`run`]; that of `answer`.
pub fn run_ahead<T: Tree>(
    tree: T,
    options: &Options,
    link: Link,
    report: &Report,
    answer: impl FnOnce(&mut dyn Read) -> Result<DataStreams, SyncError>,
) -> Result<Counts, Why> {
    let rules = Rules::new(&options.rules.0)?;
    let Link { mut read, write, close, closes, beside: _, timeout, lends } = link;
    let (began_ns, meter) = (monotonic_ns(), Arc::new(Meter::new(lends.is_some())));
    let stop: Arc<Stop> = Arc::default();
    let pace = RateLimiter::new(options.bandwidth);
    let (write, unanswered) = Unanswered::new(write);
    let (out, _ends_with_the_link) = Out::start(Box::new(write), &pace, &stop)?;
    // Within one process nothing is saved by it.
    let pack = options.pack && lends.is_none();
    let bulk = Bulk::new(&out, &pace, pack, report, (&stop, tree.memory()));
    let shared = Arc::new(Shared {
        tree,
        options: options.clone(),
        rules,
        out,
        bulk: Arc::clone(&bulk),
        credit: Watched::new(DSYNC_SCAN_WINDOW, &stop),
        asked: Mutex::default(),
        coming: Watched::new(Coming::default(), &stop),
        owners: owners::SentOwners::default(),
        lends,
        borrowed: Watched::new(HashMap::new(), &stop),
        stop: Arc::clone(&stop),
    });
    let walks = Arc::clone(&shared);
    let mut threads = vec![spawn("scan", move || {
        // What fails of the run is reported by the stop.
        let _told = scan::walk(&walks);
    })?];
    let beside = answer(&mut *read).map_err(|e| stop.fail(e))?;
    drop(unanswered);
    // Before the answer the link is left alone: how it ends may say more.
    stop.on_fail(Box::new(close));
    if !matches!(beside, DataStreams::Nothing) {
        threads.push(bulk.start_rest()?);
    }
    let streams = Streams::start(beside, bulk.hooks(&stop), &stop)?;
    let jobs = Queue::new(&stop);
    shared.start_readers(&jobs, &mut threads)?;
    let (ticker, ticks) = shared.tick((began_ns, timeout), &pace, &streams, &meter)?;
    threads.push(ticks);
    let mut heard = Received { shared: &shared, jobs: &jobs, waits: HashMap::new(), report, meter };
    let done = heard.listen(read).map_err(|e| stop.fail(e));
    drop(ticker);
    jobs.end();
    bulk.end();
    streams.close();
    if closes {
        streams.join_with(threads);
    }
    if done.is_ok() {
        index::keep(&shared.tree, &shared.rules);
    }
    done.map_err(|_| stop.reason())
}

impl<T: Tree> Shared<T> {
    /// Starts the threads that send what is asked for.
    fn start_readers(
        self: &Arc<Self>,
        jobs: &Queue<Job>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> Result<(), SyncError> {
        for _ in 0..DSYNC_THREADS {
            let (shared, jobs) = (Arc::clone(self), jobs.clone());
            threads.push(spawn("read", move || {
                while let Some(job) = jobs.next() {
                    if send::answer(&shared, &job).is_err() {
                        break;
                    }
                }
            })?);
        }
        Ok(())
    }

    /// Periodically checks the streams, and sends what this side has used and waited for.
    fn tick(
        self: &Arc<Self>,
        (began_ns, timeout): (u64, Duration),
        pace: &Arc<RateLimiter>,
        streams: &Arc<Streams>,
        meter: &Arc<Meter>,
    ) -> Result<(Ticker, JoinHandle<()>), SyncError> {
        let (shared, pace) = (Arc::clone(self), Arc::clone(pace));
        let (streams, meter) = (Arc::clone(streams), Arc::clone(meter));
        let mut before = of_process(began_ns);
        Ticker::start(DSYNC_TICK.min(timeout / 4), move || {
            shared.bulk.look_after(timeout);
            let load = shared.load(began_ns, &pace, &streams);
            shared.bulk.full.store(is_full(&load, &before), Ordering::Relaxed);
            before = load.clone();
            meter.store(Role::SOURCE, load.clone());
            // An error means that the run is ending.
            let _unheard = shared.out.send(&Message::Load(load));
        })
    }

    /// What this side has used and waited for.
    fn load(&self, began_ns: u64, pace: &RateLimiter, streams: &Streams) -> Load {
        let mut load = of_process(began_ns);
        load.disk_ns = self.tree.waited_ns();
        load.room_ns = self.bulk.room_ns.load(Ordering::Relaxed);
        load.paused_ns = pace.paused_ns();
        streams.weigh(&mut load);
        load
    }
}

/// The messages of the destination.
struct Received<'a, T> {
    shared: &'a Shared<T>,
    jobs: &'a Queue<Job>,
    /// Jobs that wait for their sums.
    waits: HashMap<u64, Job>,
    report: &'a Report,
    meter: Arc<Meter>,
}

impl<T: Tree> Received<'_, T> {
    fn listen(&mut self, read: Box<dyn Read + Send>) -> Result<Counts, SyncError> {
        let mut read = BufReader::with_capacity(DSYNC_SEND_BYTES, read);
        while let Some(body) = read_frame(&mut read)? {
            match frame::message(&body)? {
                Message::Credit(credit) => self.credit(credit.bytes)?,
                Message::Need(need) => self.need(need)?,
                Message::Sums(sums) => self.sums(sums)?,
                Message::Note(note) => (self.report)(Event::Note(note)),
                Message::Alone(()) => self.shared.bulk.alone(),
                Message::Borrowed(borrowed) if self.shared.lends.is_some() => {
                    self.shared.borrowed.change(|all| all.insert(borrowed.id, borrowed.taken));
                }
                Message::Taken(taken) => self.shared.bulk.taken(&taken)?,
                Message::Load(load) => self.meter.store(Role::DESTINATION, load),
                Message::Progress(counts) => {
                    let progress = self.meter.progress(monotonic_ns(), counts);
                    (self.report)(Event::Progress(progress));
                }
                Message::Done(counts) => return Ok(counts),
                Message::Refused(refused) => {
                    let why = String::from_utf8_lossy(&refused.why.0).into_owned();
                    return Err(SyncError::Refused(why));
                }
                _ => return Err(SyncError::Broken("a message that only a source sends")),
            }
        }
        Err(SyncError::Gone)
    }

    fn credit(&self, bytes: u64) -> Result<(), SyncError> {
        self.shared.credit.change(|credit| match credit.checked_add(bytes) {
            Some(sum) if sum <= DSYNC_SCAN_WINDOW => {
                *credit = sum;
                Ok(())
            }
            _ => Err(SyncError::Broken("more credit than there is room")),
        })
    }

    fn need(&mut self, need: Need) -> Result<(), SyncError> {
        if !is_path(&need.path.0) || need.path.0.is_empty() {
            return Err(SyncError::Broken("a path that leads nowhere"));
        }
        if [&need.basis, &need.kept].into_iter().flatten().any(|basis| !delta::is_basis(basis)) {
            return Err(SyncError::Broken("blocks of an impossible size"));
        }
        if need.wish != SendMode::SEND && need.hash.is_none() {
            return Err(SyncError::Broken("a request without its hash"));
        }
        let asks = need.wish != SendMode::SEND && self.shared.rules.carries_way(&need.path.0);
        let index = self.shared.tree.index().filter(|_| asks);
        let slot = index.and_then(|index| index.enter(&need.path.0));
        let job = Job { sums: Vec::new(), need, slot };
        let wanted = job.sums_wanted();
        let fits = {
            let mut asked = lock(&self.shared.asked);
            asked.needs += 1;
            asked.sums += wanted;
            asked.needs <= DSYNC_NEEDS_MAX && asked.sums <= DSYNC_BLOCKS_MAX
        };
        if !fits {
            return Err(SyncError::Broken("too many outstanding requests"));
        }
        let id = job.need.id;
        let is_new = if job.comes().is_some() {
            let (is_new, ended) =
                self.shared.coming.look(|coming| (coming.expect(id, wanted), coming.ended()));
            if ended > DSYNC_NEEDS_MAX {
                return Err(SyncError::Broken("too many outstanding requests"));
            }
            self.jobs.push(job);
            is_new
        } else if wanted == 0 {
            self.jobs.push(job);
            true
        } else {
            self.waits.insert(id, job).is_none()
        };
        if is_new { Ok(()) } else { Err(SyncError::Broken("duplicate request number")) }
    }

    fn sums(&mut self, sums: Sums) -> Result<(), SyncError> {
        let unknown = SyncError::Broken("unexpected checksums");
        let Some(job) = self.waits.get_mut(&sums.id) else {
            let Sums { id, sums } = sums;
            return self.shared.coming.change(|all| all.add(id, sums.0)).unwrap_or(Err(unknown));
        };
        job.sums.extend(sums.sums.0);
        let (have, wanted) = (job.sums.len(), job.sums_wanted());
        if have > wanted {
            return Err(SyncError::Broken("more checksums than announced"));
        }
        if have == wanted
            && let Some(job) = self.waits.remove(&sums.id)
        {
            self.jobs.push(job);
        }
        Ok(())
    }
}
