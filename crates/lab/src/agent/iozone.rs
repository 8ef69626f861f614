//! Tests of IOzone of which an agent has some of the children.

use super::Origin;
use super::allow::Granted;
use super::clock;
use super::proto::{FromAgent, IozoneJob, TestEnd};
use super::with_sources;
use crate::client::Target;
use crate::iozone::children::{Children, Start};
use crate::iozone::flags::Test;
use crate::iozone::run::plan;
use crate::programs::run::{Session, cpu_seconds};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Tests that were prepared, or none.
#[derive(Default)]
pub(super) struct Tests(Option<Prepared>);

struct Prepared {
    session: Session,
    children: Children,
    /// Whether the conductor takes the end of the first child as a message of its own.
    first_end: bool,
    /// What the target names stays open as long.
    granted: Granted,
}

impl Tests {
    /// Makes the files that must exist, if this agent is to do so, and connects its children.
    ///
    /// # Errors
    /// What cannot be done, in words.
    pub(super) fn prepare(
        &mut self,
        job: &IozoneJob,
        origin: &Origin,
    ) -> Result<FromAgent, String> {
        let begun = clock::mono_ns();
        let target = Target::parse(&job.target).map_err(|e| with_sources(&e))?;
        let granted = origin.grant(target)?;
        job.settings.check()?;
        let plan = plan(&job.settings, job.seed, job.agent).map_err(|e| with_sources(&e))?;
        let plan = Arc::new(plan);
        let session = Session::open(&granted.target, &plan, job.make);
        let mut session = session.map_err(|e| granted.named(with_sources(&e)))?;
        let (workers, numbers) = (session.take_workers(), plan.instances().collect());
        let settings = job.settings.clone();
        let children = Children { settings, seed: job.seed, workers, numbers };
        self.0 = Some(Prepared { session, children, first_end: job.first_end, granted });
        let seconds = (clock::mono_ns() - begun) as f64 / 1e9;
        Ok(FromAgent::Prepared { seconds, granted: None, source: None })
    }

    /// Carries out a test that begins at a moment of this machine's clock; `ended` is called when
    /// the first child has ended, if the conductor takes that.
    ///
    /// # Errors
    /// What cannot be done, in words.
    pub(super) fn run(
        &mut self,
        (test, number): (Test, u64),
        at_ns: u64,
        stop: &AtomicU64,
        ended: &dyn Fn(),
    ) -> Result<FromAgent, String> {
        let prepared = self.0.as_mut().ok_or("no tests are prepared")?;
        let before = cpu_seconds();
        let ended = prepared.first_end.then_some(ended);
        let start = Start { at_ns: Some(at_ns), stop: Some(stop), ended };
        let outcome = prepared.children.run(test, number, start).map_err(|e| with_sources(&e))?;
        let cpu_s = cpu_seconds() - before;
        Ok(FromAgent::TestEnd(Box::new(TestEnd { outcome, cpu_s })))
    }

    /// Disconnects the children, and removes their files unless they stay.
    ///
    /// # Errors
    /// What cannot be done, in words.
    pub(super) fn clean(&mut self) -> Result<FromAgent, String> {
        let mut prepared = self.0.take().ok_or("no tests are prepared")?;
        let named = |e| prepared.granted.named(with_sources(&e));
        prepared.children.leave();
        if !prepared.children.settings.keep {
            prepared.session.clean().map_err(named)?;
        }
        Ok(FromAgent::Cleaned)
    }
}
