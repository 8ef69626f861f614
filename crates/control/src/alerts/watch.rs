//! Each finished second: what every alert sees of it, and what follows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use analytics::alert::{Event, Happening, Local, Reading, Rule, Subject};
use analytics::bus::Ticks;
use analytics::model::Frame;

use super::{Alerts, SecondSample};

/// How often it looks whether the server ends, when no seconds come; [`Alerts::end`] ends the wait.
const LOOK: Duration = Duration::from_secs(5);

impl Alerts {
    /// Evaluates every second until the server ends.
    pub(super) fn watch(&self, mut ticks: Ticks) {
        while !self.stop.load(Ordering::Acquire) {
            match ticks.recv_timeout(LOOK) {
                Some(tick) => self.second(&tick.frame),
                // Also when statistics have ended before us, and it returns at once.
                None => std::thread::park_timeout(LOOK / 10),
            }
        }
    }

    /// Evaluates one second. Statistics are read without the lock: a page never waits for them.
    pub(super) fn second(&self, frame: &Frame) {
        let rules: Vec<(String, Arc<Rule>)> = {
            let inner = self.inner();
            let enabled = inner.watched.iter().filter(|(_, watched)| watched.rule.enabled);
            enabled.map(|(name, watched)| (name.clone(), watched.rule.clone())).collect()
        };
        let local = (!rules.is_empty()).then(|| local(frame.time));
        for (name, rule) in rules {
            let (met, seen) = self.look(&rule, frame);
            let open = local.is_none_or(|local| rule.hours.contains(local));
            let reading = Reading { second: frame.time, met, open };
            let mut inner = self.inner();
            let Some(watched) = inner.watched.get_mut(&name) else { continue };
            // Changed meanwhile: the next second is the first of the new one.
            if !Arc::ptr_eq(&watched.rule, &rule) {
                continue;
            }
            if met.is_some() {
                watched.seen = seen;
            }
            let Some(happening) = watched.machine.step(rule.timing, reading) else { continue };
            self.notify(&mut inner, &name, happening, frame.time);
            drop(inner);
            if matches!(happening, Happening::Fired | Happening::Again) {
                self.keep(&name, &rule, frame.time);
            }
        }
    }

    /// Whether the condition is met in a second, and what was seen; nothing when there are no data.
    fn look(&self, rule: &Rule, frame: &Frame) -> (Option<bool>, SecondSample) {
        let (stat, above, limit) = match &rule.subject {
            Subject::Event(event) => {
                let wrong = match event {
                    Event::Dropped if frame.dropped > 0 => {
                        Some(format!("{} operations of one second were not counted", frame.dropped))
                    }
                    Event::Dropped => None,
                    event => self.facts.now(*event),
                };
                return (Some(wrong.is_some()), SecondSample { value: None, detail: wrong });
            }
            Subject::Statistic { stat, above, limit } => (stat, *above, *limit),
        };
        // It was checked when it was configured; a breakdown that cannot be evaluated has no data.
        let Ok(data) = self.engine.at(stat, frame, 1) else {
            return (None, SecondSample::default());
        };
        let seen = match &stat.breakdown {
            None => SecondSample { value: data.total.first().copied().flatten(), detail: None },
            Some(_) => {
                let greatest = data.rows.as_ref().and_then(|rows| rows.first());
                let value = greatest.and_then(|row| row.values.first().copied().flatten());
                // Without any element, none is above.
                let value = value.or(data.total.first().copied().flatten().map(|_| 0.0));
                SecondSample { value, detail: greatest.map(|row| row.label.clone()) }
            }
        };
        let met = seen.value.map(|value| if above { value > limit } else { value < limit });
        (met, seen)
    }
}

/// A second in the time zone of this machine.
pub(super) fn local(second: u64) -> Local {
    let shown = crate::zone::shown(second, crate::zone::offset(second));
    // The epoch was a Thursday; 0 is Monday.
    let weekday = u8::try_from((shown.div_euclid(86_400) + 3).rem_euclid(7)).unwrap_or(0);
    let minute = u16::try_from(shown.rem_euclid(86_400) / 60).unwrap_or(0);
    Local { weekday, minute }
}
