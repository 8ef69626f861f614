//! When an alert fires, repeats its message, and clears: one step each second, with the time passed
//! in.
//!
//! It fires once for each crossing. Messages are repeated while the condition lasts only if an
//! interval for that is configured.

use base::limits::ALERT_GAP_MAX_S;

/// How long what must last, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The condition, before the alert fires; at least 1.
    pub lasting: u64,
    /// The absence of the condition, before the alert has cleared; at least 1.
    pub clear: u64,
    /// Between two messages as long as it lasts; 0: one message is enough.
    pub repeat: u64,
}

/// The input of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Seconds since the epoch.
    pub second: u64,
    /// Whether the condition is met; `None`: unknown, there are no data.
    pub met: Option<bool>,
    /// Whether it lies within the hours in which the alert may fire.
    pub open: bool,
}

/// A change that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// The condition has lasted long enough.
    Fired,
    /// It still lasts.
    Again,
    /// It is over.
    Cleared,
}

/// Seconds in a row with the same reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    met: bool,
    first: u64,
    last: u64,
}

/// The state of one alert.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    run: Option<Run>,
    /// Fired and not cleared: time of the last message.
    notified: Option<u64>,
    /// When it fired, if it has not cleared.
    fired: Option<u64>,
}

impl Machine {
    /// Since when it has been firing, in seconds since the epoch; `None`: it is not.
    pub fn firing_since(&self) -> Option<u64> {
        self.fired
    }

    /// Since when the condition is met without the alert firing yet.
    pub fn waiting_since(&self) -> Option<u64> {
        let run = self.run.filter(|run| run.met && self.fired.is_none())?;
        Some(run.first)
    }

    /// Processes a second; returns the change to report.
    ///
    /// Seconds without data change nothing; when they last longer than [`ALERT_GAP_MAX_S`], the run
    /// before them no longer counts. A clock that was set back starts a new run as well.
    pub fn step(&mut self, timing: Timing, reading: Reading) -> Option<Happening> {
        let Reading { second, met, open } = reading;
        // After a clock that was set back, repetitions would not be due until it catches up.
        self.notified = self.notified.map(|at| at.min(second));
        let met = met?;
        if met && !open && self.fired.is_none() {
            // Outside of its hours nothing builds up.
            self.run = None;
            return None;
        }
        let fresh = Run { met, first: second, last: second };
        let run = match self.run {
            Some(run) if run.met == met && follows(run.last, second) => Run { last: second, ..run },
            _ => fresh,
        };
        self.run = Some(run);
        let lasted = run.last - run.first + 1;
        match (self.notified, met) {
            (None, true) if lasted >= timing.lasting => {
                (self.fired, self.notified) = (Some(second), Some(second));
                Some(Happening::Fired)
            }
            (Some(notified), true) if open && timing.repeat > 0 => {
                let due = second.saturating_sub(notified) >= timing.repeat;
                due.then(|| {
                    self.notified = Some(second);
                    Happening::Again
                })
            }
            (Some(_), false) if lasted >= timing.clear => {
                (self.fired, self.notified) = (None, None);
                Some(Happening::Cleared)
            }
            _ => None,
        }
    }
}

/// Whether a second continues a run that ended at `last`.
fn follows(last: u64, second: u64) -> bool {
    second > last && second - last <= ALERT_GAP_MAX_S
}
