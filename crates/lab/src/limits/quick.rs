//! `--quick`: all cells of one command in less than four minutes. Each cell has its share of the
//! time that is left; steps, windows and files shrink to fit, or the cell is not measured.

use crate::job::{Job, Plateau};
use base::clock::{Deadline, NS_PER_S, monotonic_ns};
use std::time::Duration;

/// All cells of a quick summary: four minutes, less what the last cell takes beyond its share and
/// what the pages, the server's data and the checksums take: 25 s on a machine of which others use
/// 60 %, with a build that is not optimised.
pub const QUICK_MAX: Duration = Duration::from_secs(205);
/// What a run takes in addition to its steps: agents, their ceiling against nothing, files, clocks.
const AROUND: Duration = Duration::from_millis(1_500);
/// Steps of a quick run: as many as a scaling law needs; fewer if there is no time for these.
const STEPS: [usize; 3] = [4, 3, 2];
/// Warm-up of a step, ms.
const WARMUP_MS: u64 = 100;
/// Length of a window, ms.
const WINDOW_MS: u64 = 50;
/// Shortest step, ms: the warm-up and as many windows as a steady state takes.
const STEP_MIN_MS: u64 = 400;
/// Largest file: what is made before the first step counts, too.
const FILE_MAX: u64 = 4 << 20;

/// The same of data that each step reads once from the disk: it is what the step can measure.
const COLD_FILE_MAX: u64 = 32 << 20;
/// Largest file of any quick run.
pub const QUICK_FILE_MAX: u64 = COLD_FILE_MAX;
/// Windows of such a step are short, and there is nothing to warm up.
const COLD_WINDOW_MS: u64 = 20;

/// What is left of the time, if it is limited.
#[derive(Debug)]
pub struct Budget {
    deadline: Option<Deadline>,
    cells: usize,
    /// What a run takes in addition to its steps here.
    around: Duration,
}

impl Budget {
    /// For this number of cells.
    pub fn new(quick: bool, cells: usize) -> Self {
        Self { deadline: quick.then(|| Deadline::after(QUICK_MAX)), cells, around: AROUND }
    }

    /// The share of the next cell; `None` if time is not limited.
    pub fn next(&mut self) -> Option<Duration> {
        let cells = u32::try_from(self.cells.max(1)).unwrap_or(u32::MAX);
        self.cells = self.cells.saturating_sub(1);
        let deadline = self.deadline?;
        Some(deadline.left().unwrap_or_default() / cells)
    }

    /// Whether a run that began at `began` (monotonic, ns) can be made once more without taking the
    /// time of others: after it each cell that is left has as much.
    pub fn spares(&self, began: u64) -> bool {
        self.has_room(Duration::from_nanos(monotonic_ns().saturating_sub(began)))
    }

    /// The same for a run that took this time. Twice as much must be left: on a busy machine cells
    /// take longer than their share.
    pub fn has_room(&self, took: Duration) -> bool {
        let Some(deadline) = self.deadline else { return true };
        let cells = u32::try_from(self.cells).unwrap_or(u32::MAX);
        let all = took.saturating_mul(cells.saturating_add(1)).saturating_mul(2);
        deadline.left().is_some_and(|left| left > all)
    }

    /// Takes what a run took. On a busy machine more is around the steps, and without that being
    /// known the first columns take the time of the last.
    pub fn took(&mut self, job: &Job, took: Duration) {
        let steps = u32::try_from(job.schedule.len()).unwrap_or(u32::MAX);
        let planned = Duration::from_millis(job.step_max_ms).saturating_mul(steps);
        let found = took.saturating_sub(planned).clamp(AROUND, AROUND * 2);
        self.around = (self.around * 3 + found) / 4;
    }

    /// The job as it is run within its time.
    ///
    /// # Errors
    /// It does not fit.
    pub fn fitted(&self, job: &Job, time: Option<Duration>) -> Result<Job, String> {
        let Some(time) = time else { return Ok(job.clone()) };
        let seconds = QUICK_MAX.as_nanos() / u128::from(NS_PER_S);
        fitted(job, time, self.around)
            .ok_or_else(|| format!("the {seconds} s of --quick were used up"))
    }
}

/// A job that takes no longer than this, `around` included; `None` if it cannot be made so short.
pub fn fitted(job: &Job, time: Duration, around: Duration) -> Option<Job> {
    let mut job = job.clone();
    let for_steps = time.checked_sub(around)?;
    let (schedule, steps, each) = STEPS.into_iter().find_map(|most| {
        let schedule = spread(&job.schedule, most);
        let steps = u32::try_from(schedule.len()).ok()?.max(1);
        let each = (for_steps / steps).as_millis() as u64;
        (each >= STEP_MIN_MS).then_some((schedule, steps, each))
    })?;
    job.schedule = schedule;
    (job.warmup_ms, job.window_ms) = (WARMUP_MS, WINDOW_MS);
    job.step_max_ms = each.min(job.step_max_ms);
    job.plateau = Plateau { min_steps: steps, steps: 1, ..job.plateau };
    let file_max = if job.cold { COLD_FILE_MAX } else { FILE_MAX };
    if job.cold {
        (job.warmup_ms, job.window_ms) = (0, COLD_WINDOW_MS);
    }
    job.file_size = job.file_size.min(file_max).max(u64::from(job.block));
    Some(job)
}

/// The first, the last, and some steps between, `most` together.
fn spread(steps: &[(u32, u32)], most: usize) -> Vec<(u32, u32)> {
    let last = steps.len().saturating_sub(1);
    if last < most {
        return steps.to_vec();
    }
    let at = |n: usize| steps.get((n * last).div_ceil(most.max(2) - 1)).copied();
    (0..most).filter_map(at).collect()
}
