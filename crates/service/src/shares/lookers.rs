//! Tasks that may never end, because a file system does not respond: the ordinary ones run one
//! after the other on one thread, and behind one that takes too long another thread continues.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::clock::Deadline;

/// What is to be done for one name.
pub(super) type Task<T> = Box<dyn FnOnce() -> T + Send>;

/// Tasks of one round that no thread has taken yet.
struct Round<T> {
    tasks: Mutex<VecDeque<(String, Task<T>)>>,
}

impl<T> Round<T> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Task<T>)>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<(String, Task<T>)> {
        self.lock().pop_front()
    }
}

/// What a thread reports.
enum Report<T> {
    /// The result of a task.
    Result(String, T),
    /// The thread with this number has nothing to do.
    Idle(usize),
}

/// The threads, and what they have not ended.
pub(super) struct ProbePool<T> {
    reports: (Sender<Report<T>>, Receiver<Report<T>>),
    threads: HashMap<usize, Sender<Arc<Round<T>>>>,
    idle: Vec<usize>,
    /// The number of the next thread.
    next: usize,
    /// Names with a task that a thread has, or that waits in this round.
    in_progress: HashSet<String>,
    threads_max: usize,
    time_max: Duration,
}

impl<T: Send + 'static> ProbePool<T> {
    /// With a limit of threads; a round goes to a further one each time that `time_max` has passed.
    pub(super) fn new(threads_max: usize, time_max: Duration) -> Self {
        Self {
            reports: channel(),
            threads: HashMap::new(),
            idle: Vec::new(),
            next: 0,
            in_progress: HashSet::new(),
            threads_max,
            time_max,
        }
    }

    /// Does tasks, but those of names of which an earlier one has not ended. Returns what has come,
    /// also of earlier rounds; results of tasks that take too long come with a later round.
    pub(super) fn round(&mut self, tasks: Vec<(String, Task<T>)>) -> Vec<(String, T)> {
        let new = tasks.into_iter().filter(|(name, _)| self.in_progress.insert(name.clone()));
        let new: VecDeque<_> = new.collect();
        let mut left: HashSet<String> = new.iter().map(|(name, _)| name.clone()).collect();
        let round = Arc::new(Round { tasks: Mutex::new(new) });
        let mut results = Vec::new();
        let mut until = Deadline::after(self.time_max);
        let mut goes_on = !left.is_empty() && self.begin(&round);
        while goes_on {
            match self.reports.1.recv_timeout(until.left().unwrap_or_default()) {
                Ok(Report::Result(name, result)) => {
                    self.in_progress.remove(&name);
                    left.remove(&name);
                    results.push((name, result));
                }
                Ok(Report::Idle(number)) => {
                    self.rest(number);
                    goes_on = !left.is_empty();
                }
                Err(_) => {
                    until = Deadline::after(self.time_max);
                    goes_on = !round.lock().is_empty() && self.begin(&round);
                }
            }
        }
        // There is no thread for these.
        for (name, _) in round.lock().drain(..) {
            self.in_progress.remove(&name);
        }
        results
    }

    /// Threads that there are.
    #[cfg(test)]
    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Gives a round to one more thread. False if there is none.
    fn begin(&mut self, round: &Arc<Round<T>>) -> bool {
        while let Some(number) = self.idle.pop() {
            if self.threads.get(&number).is_some_and(|to| to.send(Arc::clone(round)).is_ok()) {
                return true;
            }
            self.threads.remove(&number);
        }
        if self.threads.len() >= self.threads_max {
            return false;
        }
        let (number, (to, rounds)) = (self.next, channel());
        let reports = self.reports.0.clone();
        let thread = std::thread::Builder::new().name("shares-look".to_owned());
        let started = thread.spawn(move || work(number, &rounds, &reports));
        self.next += 1;
        if started.is_err() || to.send(Arc::clone(round)).is_err() {
            return false;
        }
        self.threads.insert(number, to);
        true
    }

    /// A thread has nothing to do: one of these is kept, further ones end.
    fn rest(&mut self, number: usize) {
        if self.idle.is_empty() {
            self.idle.push(number);
        } else {
            self.threads.remove(&number);
        }
    }
}

fn work<T>(number: usize, rounds: &Receiver<Arc<Round<T>>>, reports: &Sender<Report<T>>) {
    while let Ok(round) = rounds.recv() {
        while let Some((name, task)) = round.take() {
            if reports.send(Report::Result(name, task())).is_err() {
                return;
            }
        }
        if reports.send(Report::Idle(number)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
