//! The side that reads: one thread walks the tree and tells of it, some send the files that are
//! asked for, and this one hears what the other side says.

use std::collections::HashMap;
use std::io::BufReader;
use std::sync::Arc;

use base::limits::{
    DSYNC_BLOCKS_MAX, DSYNC_NEEDS_MAX, DSYNC_SCAN_WINDOW, DSYNC_SEND_BYTES, DSYNC_THREADS,
};
use wire::dsync::{Basis, Counts, Message, Need, Options, Sum, Sums, Wish, frame};

use crate::delta;
use crate::error::{SyncError, Why};
use crate::link::{Link, Out, Pace, Queue, Stop, Watched, read_frame, spawn};
use crate::rules::Rules;
use crate::run::{Event, Report};
use crate::streams::Streams;
use crate::tree::{Tree, is_path};

mod bulk;
mod scan;
mod send;

use bulk::Bulk;

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
    /// What is asked for and has not ended.
    asked: Arc<Watched<Asked>>,
}

/// What the other side may not have without limit.
#[derive(Default)]
struct Asked {
    needs: usize,
    sums: usize,
}

/// A file that is asked for, with the sums of what the other side has.
struct Job {
    need: Need,
    sums: Vec<Sum>,
}

impl Job {
    fn sums_wanted(&self) -> usize {
        let count = |basis: &Option<Basis>| basis.as_ref().map_or(0, |basis| basis.count as usize);
        count(&self.need.basis) + count(&self.need.kept)
    }
}

/// Is the source, until the destination has all: what it has counted.
///
/// # Errors
/// Why the run ended before.
pub fn run<T: Tree>(
    tree: T,
    options: &Options,
    link: Link,
    report: &Report,
) -> Result<Counts, Why> {
    let rules = Rules::new(&options.rules.0)?;
    let Link { read, write, close, closes, beside } = link;
    let stop: Arc<Stop> = Arc::default();
    stop.on_fail(Box::new(close));
    let pace = Pace::new(options.bandwidth);
    let (out, _ends_with_the_link) = Out::start(write, &pace, &stop)?;
    let bulk = Bulk::new(&out, &pace, &stop);
    let streams = Streams::start(beside, bulk.hooks(&stop), &stop)?;
    let shared = Arc::new(Shared {
        tree,
        options: options.clone(),
        rules,
        out,
        bulk: Arc::clone(&bulk),
        credit: Watched::new(DSYNC_SCAN_WINDOW, &stop),
        asked: Watched::new(Asked::default(), &stop),
        stop: Arc::clone(&stop),
    });
    let jobs = Queue::new(&stop);
    let mut threads = Vec::new();
    for _ in 0..DSYNC_THREADS {
        let (shared, jobs) = (Arc::clone(&shared), jobs.clone());
        threads.push(spawn("read", move || {
            while let Some(job) = jobs.next() {
                if send::answer(&shared, &job).is_err() {
                    break;
                }
            }
        })?);
    }
    let walks = Arc::clone(&shared);
    threads.push(spawn("scan", move || {
        // What fails of the run is told by the stop.
        let _told = scan::walk(&walks);
    })?);
    let mut heard = Heard { shared: &shared, jobs: &jobs, waits: HashMap::new(), report };
    let done = heard.listen(read).map_err(|e| stop.fail(e));
    jobs.end();
    bulk.end();
    streams.close();
    if closes {
        streams.join();
        for thread in threads {
            // A thread that panicked has said so.
            let _panicked = thread.join();
        }
    }
    done.map_err(|_| stop.reason())
}

/// What the destination says.
struct Heard<'a, T> {
    shared: &'a Shared<T>,
    jobs: &'a Queue<Job>,
    /// Jobs whose sums are on their way.
    waits: HashMap<u64, Job>,
    report: &'a Report,
}

impl<T: Tree> Heard<'_, T> {
    fn listen(&mut self, read: Box<dyn std::io::Read + Send>) -> Result<Counts, SyncError> {
        let mut read = BufReader::with_capacity(DSYNC_SEND_BYTES, read);
        while let Some(body) = read_frame(&mut read)? {
            match frame::message(&body)? {
                Message::Credit(credit) => self.credit(credit.bytes)?,
                Message::Need(need) => self.need(need)?,
                Message::Sums(sums) => self.sums(sums)?,
                Message::Note(note) => (self.report)(Event::Note(note)),
                Message::Alone(()) => self.shared.bulk.alone(),
                Message::Progress(counts) => (self.report)(Event::Progress(counts)),
                Message::Done(counts) => return Ok(counts),
                Message::Refused(refused) => {
                    let why = String::from_utf8_lossy(&refused.why.0).into_owned();
                    return Err(SyncError::Refused(why));
                }
                _ => return Err(SyncError::Broken("what only a source sends")),
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
        if need.wish != Wish::SEND && need.hash.is_none() {
            return Err(SyncError::Broken("a question without the hash that it is about"));
        }
        let job = Job { sums: Vec::new(), need };
        let wanted = job.sums_wanted();
        let fits = self.shared.asked.change(|asked| {
            asked.needs += 1;
            asked.sums += wanted;
            asked.needs <= DSYNC_NEEDS_MAX && asked.sums <= DSYNC_BLOCKS_MAX
        });
        if !fits {
            return Err(SyncError::Broken("more questions than may be open"));
        }
        if wanted == 0 {
            self.jobs.push(job);
        } else if self.waits.insert(job.need.id, job).is_some() {
            return Err(SyncError::Broken("two questions of one number"));
        }
        Ok(())
    }

    fn sums(&mut self, sums: Sums) -> Result<(), SyncError> {
        let unknown = SyncError::Broken("sums that nobody waits for");
        let Some(job) = self.waits.get_mut(&sums.id) else { return Err(unknown) };
        job.sums.extend(sums.sums.0);
        let (have, wanted) = (job.sums.len(), job.sums_wanted());
        if have > wanted {
            return Err(SyncError::Broken("more sums than were announced"));
        }
        if have == wanted
            && let Some(job) = self.waits.remove(&sums.id)
        {
            self.jobs.push(job);
        }
        Ok(())
    }
}
