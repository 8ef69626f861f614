//! A change of the network, from its check to its confirmation or the way back.
//!
//! The old state is on disk before the first step, and a guard waits for the end of the time. All
//! that takes steps holds the lock of the folder: the helper, and the guard. A change that is made
//! while one waits continues it: its time begins again, and the way back leads to the state before
//! the first.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use host_network::backend::{Backend, Failure, reach};
use host_network::check::{Machine, check};
use host_network::compile::{Record, compile};
use host_network::plan::plan;
use host_network::state::State;
use host_network::step::Step;

use crate::files::{Change, Folder};
use crate::request::{CONFIRM_S_MAX, CONFIRM_S_MIN, Proposal, Reply, Status, Waiting, Wrong};

/// How often the way back is tried as a whole when steps of it are refused.
const WAY_BACK_ROUNDS: usize = 3;

/// Why a request is not done.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The configuration is wrong.
    #[error("the configuration is wrong")]
    Wrong(Vec<Wrong>),
    /// The network.
    #[error(transparent)]
    Network(#[from] Failure),
    /// The folder of the helper.
    #[error("the files of the helper: {0}")]
    Files(#[from] io::Error),
    /// It does not go with what is there.
    #[error("{0}")]
    Conflict(String),
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Wrong(list) => Self::Wrong(list),
            other => Self::Failed { why: other.to_string() },
        }
    }
}

/// Starts guards.
pub trait Arm: Send {
    /// Starts one for the change of this number, which is not on disk yet. It is ready when this
    /// returns; dropping what it returns makes it look at the change at once.
    ///
    /// # Errors
    /// It cannot be started.
    fn arm(&mut self, change: u64, seconds: u32) -> io::Result<Box<dyn Send>>;
}

/// What does changes.
pub struct Keeper {
    backend: Box<dyn Backend + Send>,
    folder: Folder,
    arm: Box<dyn Arm>,
    boot: String,
    waiting: Option<Armed>,
    /// The highest number that this helper has given to a change.
    number: u64,
    problem: Option<String>,
}

struct Armed {
    change: u64,
    deadline: Instant,
    guard: Box<dyn Send>,
}

impl Armed {
    /// Whether the time for the confirmation is over.
    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

impl Keeper {
    /// One for this network. `boot` names the boot of the machine.
    pub fn new(
        backend: Box<dyn Backend + Send>,
        folder: Folder,
        arm: Box<dyn Arm>,
        boot: &str,
    ) -> Self {
        let boot = boot.to_owned();
        let (number, problem) = (0, None);
        Self { backend, folder, arm, boot, waiting: None, number, problem }
    }

    /// Brings the network into its confirmed configuration: takes back a change that was waiting
    /// when the last helper ended, and after a boot makes all of the configuration again.
    ///
    /// # Errors
    /// The way is not complete; what could be done is done.
    pub fn start(&mut self) -> Result<(), Refusal> {
        let done = self.start_now();
        self.problem = done.as_ref().err().map(ToString::to_string);
        done
    }

    fn start_now(&mut self) -> Result<(), Refusal> {
        let _lock = self.folder.lock()?;
        if let Some(change) = self.folder.waiting()? {
            base::warning!("host", "change {} of the network was not confirmed", change.number);
            if change.boot == self.boot {
                restore(&mut *self.backend, &change.old, &change.adopted)?;
            }
            self.folder.forget()?;
        }
        self.make_confirmed(&BTreeSet::new()).map(drop)
    }

    /// Configures devices that the confirmed configuration names and that were not there before,
    /// such as those of a slow driver after a boot, and continues what has failed. `appeared` names
    /// links that are new. False if a change waits: it is to be called again after that.
    ///
    /// # Errors
    /// The way is not complete; what could be done is done.
    pub fn follow(&mut self, appeared: &BTreeSet<String>) -> Result<bool, Refusal> {
        let _lock = self.folder.lock()?;
        if self.folder.waiting()?.is_some() {
            return Ok(false);
        }
        match self.make_confirmed(appeared) {
            Ok(false) => {}
            Ok(true) => self.problem = None,
            Err(refusal) => {
                self.problem = Some(refusal.to_string());
                return Err(refusal);
            }
        }
        Ok(true)
    }

    /// Takes the steps to the confirmed configuration: after a boot, if it names a device that is
    /// new, or if they have failed. False if none of that is so. The caller holds the lock.
    fn make_confirmed(&mut self, appeared: &BTreeSet<String>) -> Result<bool, Refusal> {
        let Some(confirmed) = self.folder.confirmed()? else { return Ok(false) };
        let is_after_boot = confirmed.boot != self.boot;
        let is_due = is_after_boot || confirmed.unfinished;
        // What was there has a baseline.
        let is_known = |name: &str| confirmed.record.links.contains_key(name);
        let devices = confirmed.configuration.devices();
        let new: Vec<&str> =
            devices.filter(|name| appeared.contains(*name) || !is_known(name)).collect();
        if !is_due && new.is_empty() {
            return Ok(false);
        }
        let observed = self.backend.observe()?;
        if !is_due && !new.iter().any(|name| observed.links.contains_key(*name)) {
            return Ok(false);
        }
        let before = if is_after_boot { Record::default() } else { confirmed.record.clone() };
        let (target, record) = compile(&confirmed.configuration, &observed, &before);
        let adopted = record.adopted(&before);
        let boot = self.boot.clone();
        let mut entered = Change { boot, record, unfinished: true, ..confirmed };
        self.folder.enter_confirmed(&entered)?;
        restore(&mut *self.backend, &target, &adopted)?;
        entered.unfinished = false;
        self.folder.enter_confirmed(&entered)?;
        Ok(true)
    }

    /// The network as it is observed.
    ///
    /// # Errors
    /// The folder's.
    pub fn status(&mut self) -> Result<Status, Refusal> {
        let confirmed = self.folder.confirmed()?.unwrap_or_default();
        let waits = self.folder.waiting()?.map(|change| change.number);
        self.waiting.take_if(|armed| waits != Some(armed.change));
        let waiting = self.waiting.as_ref().map(|armed| {
            let left = armed.deadline.saturating_duration_since(Instant::now());
            Waiting { change: armed.change, seconds_left: left.as_secs_f64().ceil() as u32 }
        });
        let problem = match waits {
            Some(change) if waiting.is_none() => {
                Some(format!("change {change} is not taken back completely; see the log"))
            }
            _ => self.problem.clone(),
        };
        let Change { configuration, record, .. } = confirmed;
        let dhcp = self.folder.dhcp().all();
        Ok(Status { configuration, record, waiting, problem, dhcp })
    }

    /// The steps to a configuration. Changes nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn plan(&mut self, wanted: &Proposal) -> Result<Vec<String>, Refusal> {
        let base = match self.continued()? {
            Some(waiting) => waiting,
            None => self.folder.confirmed()?.unwrap_or_default(),
        };
        let way = self.way(wanted, &base.record)?;
        Ok(way.steps.iter().map(ToString::to_string).collect())
    }

    /// The change that waits, which a further one continues: both are confirmed or taken back
    /// together.
    fn continued(&self) -> Result<Option<Change>, Refusal> {
        let Some(change) = self.folder.waiting()? else { return Ok(None) };
        let armed = self.waiting.as_ref().filter(|armed| armed.change == change.number);
        if armed.is_some_and(|armed| !armed.is_over()) {
            return Ok(Some(change));
        }
        let number = change.number;
        Err(Refusal::Conflict(format!("change {number} is being taken back: try again")))
    }

    fn way(&mut self, wanted: &Proposal, record: &Record) -> Result<Steps, Refusal> {
        let observed = self.backend.observe()?;
        let Proposal { configuration, administration, successor } = wanted;
        let machine =
            Machine { observed: &observed, record, administration, successor: *successor };
        let wrong = check(configuration, machine);
        if !wrong.is_empty() {
            return Err(Refusal::Wrong(wrong.into_iter().map(Wrong::from).collect()));
        }
        let (target, next) = compile(configuration, &observed, record);
        let adopted = next.adopted(record);
        let steps = plan(&observed, &target, &adopted);
        Ok(Steps { observed, target, next, adopted, steps })
    }

    /// Takes the steps to a configuration; `seconds` for its confirmation.
    ///
    /// # Errors
    /// Why not; the old state is back then, or the guard brings it back.
    pub fn apply(
        &mut self,
        wanted: &Proposal,
        seconds: u32,
    ) -> Result<(Option<u64>, Vec<String>), Refusal> {
        if !(CONFIRM_S_MIN..=CONFIRM_S_MAX).contains(&seconds) {
            let why = format!("the time is {CONFIRM_S_MIN} to {CONFIRM_S_MAX} seconds");
            return Err(Refusal::Conflict(why));
        }
        let _lock = self.folder.lock()?;
        let before = self.continued()?;
        let base = match &before {
            Some(waiting) => waiting.clone(),
            None => self.folder.confirmed()?.unwrap_or_default(),
        };
        let Steps { observed, target, next, adopted, steps } = self.way(wanted, &base.record)?;
        let mut change = Change {
            // No other change of this helper has it, or a guard would take the wrong one back.
            number: self.number.max(base.number) + 1,
            boot: self.boot.clone(),
            seconds,
            configuration: wanted.configuration.clone(),
            record: next,
            old: observed.clone(),
            adopted,
            unfinished: false,
        };
        if let Some(before) = &before {
            change.old = before.old.clone();
            change.adopted.extend(before.adopted.iter().cloned());
        }
        if steps.is_empty() {
            return Ok((self.enter_without_steps(change, before)?, Vec::new()));
        }
        self.number = change.number;
        self.take(&change, &target, &steps, Begin { observed, before })?;
        Ok((Some(change.number), steps.iter().map(ToString::to_string).collect()))
    }

    /// Enters a change that changes nothing of the network: with the one that waits, if one does.
    fn enter_without_steps(
        &mut self,
        change: Change,
        before: Option<Change>,
    ) -> Result<Option<u64>, Refusal> {
        let Some(Change { number, seconds, .. }) = before else {
            self.folder.enter_confirmed(&change)?;
            return Ok(None);
        };
        self.folder.enter(&Change { number, seconds, ..change })?;
        Ok(Some(number))
    }

    /// Takes the steps of a change. Its guard waits before the change is on disk: the rename of the
    /// file is what passes the way back from the guard of the change before to this one.
    fn take(
        &mut self,
        change: &Change,
        target: &State,
        steps: &[Step],
        begin: Begin,
    ) -> Result<(), Refusal> {
        let deadline = Instant::now() + Duration::from_secs(change.seconds.into());
        let guard = self.arm.arm(change.number, change.seconds).map_err(|e| {
            let why = format!("the guard that takes it back cannot be started: {e}");
            Refusal::Conflict(why)
        })?;
        self.folder.enter(change)?;
        base::info!("host", "change {}: {} steps", change.number, steps.len());
        let mut timed = Timed { backend: &mut *self.backend, deadline };
        let done = reach(&mut timed, target, &change.adopted);
        if let Err(failure) = done {
            self.undo(change, begin)?;
            return Err(failure.into());
        }
        self.waiting = Some(Armed { change: change.number, deadline, guard });
        Ok(())
    }

    /// Brings back what was before a change that has failed: the change that it continues, unless
    /// the time of that one is over.
    fn undo(&mut self, change: &Change, begin: Begin) -> Result<(), Refusal> {
        let Begin { observed, before } = begin;
        restore(&mut *self.backend, &observed, &change.adopted)?;
        let Some(before) = before else { return Ok(self.folder.forget()?) };
        self.folder.enter(&before)?;
        if self.waiting.as_ref().is_some_and(|armed| !armed.is_over()) {
            return Ok(());
        }
        self.waiting = None;
        take_back(&self.folder, &mut *self.backend).map(drop)
    }

    /// Keeps a change.
    ///
    /// # Errors
    /// It does not wait any more.
    pub fn confirm(&mut self, change: u64) -> Result<(), Refusal> {
        let _lock = self.folder.lock()?;
        let armed = self.waits(change)?;
        if armed.is_over() {
            return Err(Refusal::Conflict(format!("the time of change {change} is over")));
        }
        self.folder.confirm()?;
        self.waiting = None;
        base::info!("host", "change {change} is confirmed");
        Ok(())
    }

    /// Takes a change back.
    ///
    /// # Errors
    /// It does not wait any more, or the way back is not complete.
    pub fn take_back(&mut self, change: u64) -> Result<(), Refusal> {
        let _lock = self.folder.lock()?;
        self.waits(change)?;
        let taken = take_back(&self.folder, &mut *self.backend);
        self.problem = taken.as_ref().err().map(ToString::to_string);
        self.waiting = None;
        taken.map(|_| ())
    }

    /// The client that has made the change is gone: its guard takes it back.
    pub fn leave(&mut self, change: u64) {
        if let Some(armed) = self.waiting.take_if(|armed| armed.change == change) {
            base::warning!("host", "the server is gone: change {change} is taken back");
            drop(armed.guard);
        }
    }

    fn waits(&self, change: u64) -> Result<&Armed, Refusal> {
        let on_disk = self.folder.waiting()?.is_some_and(|waiting| waiting.number == change);
        let armed = self.waiting.as_ref().filter(|armed| on_disk && armed.change == change);
        armed.ok_or_else(|| Refusal::Conflict(format!("change {change} does not wait")))
    }
}

/// What was there before the steps of a change.
struct Begin {
    observed: State,
    /// The change that it continues.
    before: Option<Change>,
}

/// From a state to another one.
struct Steps {
    observed: State,
    target: State,
    next: Record,
    adopted: BTreeSet<String>,
    steps: Vec<Step>,
}

/// A back end that takes no step after a time: the guard waits to take them back.
struct Timed<'a> {
    backend: &'a mut (dyn Backend + Send),
    deadline: Instant,
}

impl Backend for Timed<'_> {
    fn observe(&mut self) -> Result<State, Failure> {
        self.backend.observe()
    }

    fn take(&mut self, step: &Step) -> Result<(), Failure> {
        if Instant::now() >= self.deadline {
            let why = "the time for the confirmation is over".to_owned();
            return Err(Failure::Refused { step: step.to_string(), why });
        }
        self.backend.take(step)
    }
}

/// Takes back the change that waits, if one does; the caller holds the lock. Returns its number.
///
/// # Errors
/// The way back is not complete; the change still waits then.
pub fn take_back(folder: &Folder, backend: &mut dyn Backend) -> Result<Option<u64>, Refusal> {
    let Some(change) = folder.waiting()? else { return Ok(None) };
    restore(backend, &change.old, &change.adopted)?;
    folder.forget()?;
    base::warning!("host", "change {} of the network is taken back", change.number);
    Ok(Some(change.number))
}

/// Reaches a state as far as the kernel permits: a step that it refuses does not keep the others
/// from being taken.
fn restore(
    backend: &mut dyn Backend,
    target: &State,
    adopted: &BTreeSet<String>,
) -> Result<(), Failure> {
    let mut result = reach(backend, target, adopted).map(|_| ());
    for _ in 0..WAY_BACK_ROUNDS {
        let Err(failure) = &result else { return Ok(()) };
        base::error!("host", "{failure}");
        for step in plan(&backend.observe()?, target, adopted) {
            if let Err(failure) = backend.take(&step) {
                base::error!("host", "{failure}");
            }
        }
        result = reach(backend, target, adopted).map(|_| ());
    }
    result
}
