//! The queue of ended transfers, the thread that writes them down, and the files.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use base::limits::{
    TRANSFER_LOG_BATCH, TRANSFER_LOG_FILE_BYTES, TRANSFER_LOG_GATHER, TRANSFER_LOG_QUEUE_MAX,
    TRANSFER_LOG_SHOWN,
};
use probe::hub::Hub;
use vfs::transfers::{Ended, Log};

use super::record::Record;
use super::wanted::{Matcher, TransferFilter};
use crate::tree::store::{Disk, repair, rotate};

/// Its name below the state directory; older parts have a number behind it.
pub const FILE: &str = "transfers.log";

/// The log.
pub struct Transfers {
    disk: Arc<dyn Disk>,
    hub: Arc<Hub>,
    on: AtomicBool,
    /// How many files are kept, the one being written included.
    files_max: AtomicUsize,
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Held while files are written or read; taken before the queue.
    files: Mutex<Files>,
    written: AtomicU64,
    dropped: AtomicU64,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Ended>,
    ending: bool,
}

struct Files {
    /// Bytes of the file that is written.
    size: u64,
    /// The last line may not be whole.
    torn: bool,
    /// Why nothing can be written.
    problem: Option<String>,
    /// The newest of this life of the server, the oldest of them first.
    recent: VecDeque<Record>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transfers {
    /// Opens the log. A last line that a power cut has torn is ended, so that the next one can be
    /// read. Nothing is written before [`Transfers::start`], but by [`Transfers::read`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(disk: Arc<dyn Disk>, hub: Arc<Hub>) -> io::Result<Arc<Self>> {
        let size = repair(&*disk, FILE)?;
        Ok(Arc::new(Self {
            disk,
            hub,
            on: AtomicBool::new(true),
            files_max: AtomicUsize::new(1),
            queue: Mutex::default(),
            arrived: Condvar::new(),
            files: Mutex::new(Files { size, torn: false, problem: None, recent: VecDeque::new() }),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            writer: Mutex::default(),
        }))
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    /// The system gives none.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let log = Arc::clone(self);
        let thread = std::thread::Builder::new().name("transfer-log".to_owned());
        *lock(&self.writer) = Some(thread.spawn(move || log.run())?);
        Ok(())
    }

    /// Writes the queued records, and none after them.
    pub fn end(&self) {
        lock(&self.queue).ending = true;
        self.arrived.notify_all();
        if let Some(writer) = lock(&self.writer).take() {
            // A panic was reported when it happened.
            let _ = writer.join();
        }
        self.write_out();
    }

    /// Sets whether transfers are recorded, and how many bytes are retained.
    pub fn set(&self, on: bool, kept_bytes: u64) {
        self.on.store(on, Relaxed);
        let files = kept_bytes.div_ceil(TRANSFER_LOG_FILE_BYTES).max(1);
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let before = self.files_max.swap(files, Relaxed);
        let _still = lock(&self.files);
        for n in files..before {
            // What cannot be removed now is with the next turn.
            let _ = self.disk.remove(&format!("{FILE}.{n}"));
        }
    }

    /// How many were recorded since the start, and how many were dropped because the queue was
    /// full.
    pub fn counts(&self) -> (u64, u64) {
        (self.written.load(Relaxed), self.dropped.load(Relaxed))
    }

    /// Why the log cannot be written.
    pub fn problem(&self) -> Option<String> {
        lock(&self.files).problem.clone()
    }

    /// Bytes of the file that is written now.
    pub fn size(&self) -> u64 {
        lock(&self.files).size
    }

    fn run(&self) {
        loop {
            let mut queue = lock(&self.queue);
            while queue.waiting.is_empty() && !queue.ending {
                queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let ending = queue.ending;
            drop(queue);
            if ending {
                return self.write_out();
            }
            // Later transfers need not wake the thread, and are written in one batch.
            std::thread::sleep(TRANSFER_LOG_GATHER);
            self.write_out();
        }
    }

    /// Writes what waits.
    fn write_out(&self) {
        let mut files = lock(&self.files);
        let mut waiting = std::mem::take(&mut lock(&self.queue).waiting);
        while !waiting.is_empty() {
            let batch: Vec<Ended> =
                waiting.drain(..waiting.len().min(TRANSFER_LOG_BATCH)).collect();
            match self.write(&mut files, &batch) {
                Ok(()) => {
                    self.written.fetch_add(batch.len() as u64, Relaxed);
                    files.problem = None;
                }
                Err(e) => {
                    self.drop_some(batch.len() as u64);
                    files.torn = true;
                    if files.problem.is_none() {
                        base::warning!("server", "transfers cannot be logged: {e}");
                    }
                    files.problem = Some(e.to_string());
                }
            }
        }
    }

    fn write(&self, files: &mut Files, batch: &[Ended]) -> io::Result<()> {
        let mut text = Vec::new();
        if files.torn {
            text.push(b'\n');
        }
        for ended in batch {
            let record = Record::from(ended);
            serde_json::to_writer(&mut text, &record)?;
            text.push(b'\n');
            if files.recent.len() >= TRANSFER_LOG_SHOWN {
                files.recent.pop_front();
            }
            files.recent.push_back(record);
        }
        let more = text.len() as u64;
        if files.size > 0 && files.size + more > TRANSFER_LOG_FILE_BYTES {
            rotate(&*self.disk, FILE, self.files_max.load(Relaxed))?;
            files.size = 0;
        }
        self.disk.append(FILE, &text)?;
        files.size += more;
        files.torn = false;
        Ok(())
    }

    /// The newest since the start, the newest first.
    pub fn recent(&self) -> Vec<Record> {
        self.write_out();
        lock(&self.files).recent.iter().rev().cloned().collect()
    }

    fn drop_some(&self, count: u64) {
        self.dropped.fetch_add(count, Relaxed);
        self.hub.gauges().transfers_unlogged.add(count);
    }

    /// Records, the newest first; those that have just ended, too.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, wanted: &TransferFilter) -> io::Result<Vec<Record>> {
        self.write_out();
        // Not while a file gets another name.
        let _still = lock(&self.files);
        let sieve = Matcher::new(wanted);
        let mut found = Vec::new();
        for n in 0..self.files_max.load(Relaxed) {
            let name = if n == 0 { FILE.to_owned() } else { format!("{FILE}.{n}") };
            let Some(content) = self.disk.read(&name)? else { break };
            for line in content.rsplit(|byte| *byte == b'\n') {
                // A torn line is skipped.
                let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
                if found.len() >= wanted.limit {
                    return Ok(found);
                }
                if sieve.takes(&record) {
                    found.push(record);
                }
            }
        }
        Ok(found)
    }
}

impl Log for Transfers {
    fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    fn ended(&self, transfer: Ended) {
        let mut queue = lock(&self.queue);
        if queue.waiting.len() >= TRANSFER_LOG_QUEUE_MAX {
            drop(queue);
            return self.drop_some(1);
        }
        let was_empty = queue.waiting.is_empty();
        queue.waiting.push_back(transfer);
        drop(queue);
        if was_empty {
            self.arrived.notify_one();
        }
    }
}
