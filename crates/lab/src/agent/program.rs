//! Programs of threads that an agent runs as one of several.

use super::Origin;
use super::allow::Granted;
use super::clock;
use super::proto::{FromAgent, ProgramEnd, ProgramJob};
use super::with_sources;
use crate::client::Target;
use crate::programs::drive::Limit;
use crate::programs::run::{Checked, ProgramRequest, Session};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A program that was prepared, or none.
#[derive(Default)]
pub(super) struct Programs(Option<Prepared>);

struct Prepared {
    session: Session,
    limit: Limit<'static>,
    /// What the target names stays open as long.
    granted: Granted,
}

impl Programs {
    /// Reads a program, makes its files if this agent is to do so, and connects its threads.
    ///
    /// # Errors
    /// What cannot be done, in words.
    pub(super) fn prepare(
        &mut self,
        job: &ProgramJob,
        origin: &Origin,
    ) -> Result<FromAgent, String> {
        let begun = clock::mono_ns();
        let target = Target::parse(&job.target).map_err(|e| with_sources(&e))?;
        let granted = origin.grant(target)?;
        let request = ProgramRequest {
            file: Path::new(&job.file),
            settings: &job.settings,
            target: &job.target,
            seconds: None,
            seed: job.seed,
            clean: false,
            scratch: None,
            command: Vec::new(),
        };
        let checked = Checked::of(job.file.clone(), job.text.clone(), &request);
        let checked = checked.map_err(|e| with_sources(&e))?;
        let plan = checked.plan(&request, job.agent).map_err(|e| with_sources(&e))?;
        let session = Session::open(&granted.target, &Arc::new(plan), job.make);
        let session = session.map_err(|e| granted.named(with_sources(&e)))?;
        let limit = Limit::of(job.seconds, job.calls);
        self.0 = Some(Prepared { session, limit, granted });
        let seconds = (clock::mono_ns() - begun) as f64 / 1e9;
        Ok(FromAgent::Prepared { seconds, granted: None, source: None })
    }

    /// Runs it at a moment of this machine's clock, until its end or until `stop` is a moment.
    ///
    /// # Errors
    /// What cannot be done, in words.
    pub(super) fn run(&mut self, at_ns: u64, stop: &AtomicU64) -> Result<FromAgent, String> {
        let prepared = self.0.as_mut().ok_or("no program is prepared")?;
        std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(clock::mono_ns())));
        let began_ns = clock::mono_ns();
        let totals = prepared
            .session
            .run(Limit { stop: Some(stop), ..prepared.limit })
            .map_err(|e| with_sources(&e))?;
        let totals = serde_json::to_value(&totals).map_err(|e| with_sources(&e))?;
        Ok(FromAgent::ProgramEnd(Box::new(ProgramEnd { began_ns, totals })))
    }

    /// Removes its files.
    ///
    /// # Errors
    /// What cannot be done, in words.
    pub(super) fn clean(&mut self) -> Result<FromAgent, String> {
        let prepared = self.0.take().ok_or("no program is prepared")?;
        let named = |e| prepared.granted.named(with_sources(&e));
        let counts = prepared.session.clean().map_err(named)?;
        let calls = counts.into_iter().map(|(name, calls)| (name.to_owned(), calls)).collect();
        Ok(FromAgent::ProgramCleaned { calls })
    }
}
