//! One thread for each core, each with a current-thread runtime: a connection lives and dies on one
//! core, so nothing on its path needs a lock or moves between caches.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Duration;

use base::clock::Deadline;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

type Local = Pin<Box<dyn Future<Output = ()>>>;
type Start = Box<dyn FnOnce() -> Local + Send>;

/// The cores' runtimes. Dropping it ends the threads once [`Runtimes::shutdown`] or the drop has
/// closed their queues; tasks still running are dropped with them.
pub struct Runtimes {
    cores: Vec<mpsc::UnboundedSender<Start>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Whether what was handed over is run.
    released: watch::Sender<bool>,
}

impl Runtimes {
    /// Starts `cores` threads (at least one).
    ///
    /// # Errors
    /// When a thread or its runtime cannot be made.
    pub fn start(cores: usize) -> io::Result<Self> {
        let runtimes = Self::start_held(cores)?;
        runtimes.release();
        Ok(runtimes)
    }

    /// As [`Runtimes::start`], but nothing runs before [`Runtimes::release`]: services that are
    /// started meanwhile have their ports, and answer at none of them before all may.
    ///
    /// # Errors
    /// The same.
    pub fn start_held(cores: usize) -> io::Result<Self> {
        let (released, _) = watch::channel(false);
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for core in 0..cores.max(1) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            // Holds one entry per service and core, not per connection.
            let (sender, receiver) = mpsc::unbounded_channel();
            let mut may_run = released.subscribe();
            let thread =
                std::thread::Builder::new().name(format!("core-{core}")).spawn(move || {
                    let all = async move {
                        // They end when no sender is left to release them.
                        if may_run.wait_for(|released| *released).await.is_ok() {
                            run(receiver).await;
                        }
                    };
                    runtime.block_on(LocalSet::new().run_until(all));
                })?;
            senders.push(sender);
            threads.push(thread);
        }
        Ok(Self { cores: senders, threads: Mutex::new(threads), released })
    }

    /// Runs what was handed over, and from now on at once.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Runs the future that `start` makes on core `core` (modulo their number). The future need not
    /// be `Send`: it is made there and stays there. Returns false when the runtimes are ending.
    pub fn spawn_on<F, T>(&self, core: usize, start: F) -> bool
    where
        F: FnOnce() -> T + Send + 'static,
        T: Future<Output = ()> + 'static,
    {
        let Some(sender) = self.cores.get(core % self.cores.len().max(1)) else { return false };
        sender.send(Box::new(move || Box::pin(start()) as Local)).is_ok()
    }

    /// Ends the threads: tasks that still run are dropped. Waits for the threads for at most
    /// `wait`; returns whether all have ended.
    pub fn shutdown(mut self, wait: Duration) -> bool {
        self.cores.clear();
        self.release();
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(|e| e.into_inner()));
        let until = Deadline::after(wait);
        let mut ended = true;
        for thread in threads {
            while !thread.is_finished() && !until.passed() {
                std::thread::sleep(Duration::from_millis(1));
            }
            ended &= thread.is_finished();
        }
        ended
    }
}

async fn run(mut receiver: mpsc::UnboundedReceiver<Start>) {
    while let Some(start) = receiver.recv().await {
        tokio::task::spawn_local(start());
    }
}

#[cfg(test)]
mod tests;
