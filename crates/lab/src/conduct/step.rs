//! One step: a common start, windows gathered as they come, a stop as soon as the step is steady.

use super::agents::{Agent, Agents, AgentsError};
use super::counts::ClientTotals;
use super::distribution::{self, Distributions};
use super::server::{ServerSample, ServerView};
use super::steady;
use crate::agent::clock;
use crate::agent::proto::{FromAgent, Start, StepEnd, ToAgent, Window};
use crate::hist;
use crate::job::{Job, LossPolicy};
use crate::operations::Lane;
use crate::record::observed::ClientStep;
use crate::record::{
    Latency, Little, OpenStep, StartProof, Steadiness, SteadyVerdict, Step, WindowRecord,
};
use crate::shape::open::{self, ArrivalCounts};
use crate::workload::Kind;
use base::limits::{LAB_HEARTBEAT, LAB_SILENCE_MAX, LAB_WINDOWS_MAX};
use std::collections::BTreeMap;
use std::time::Duration;

/// Least time between the order and the start; the order must be everywhere before.
const LEAD_NS: u64 = 30_000_000;
/// A shorter look at the events keeps samples of the server close to the edges of windows.
const LOOK: Duration = Duration::from_millis(10);

/// Least time between two samples of the server, ns: windows may be shorter.
const SAMPLE_NS_MIN: u64 = 50_000_000;
/// Events that are taken between two looks at the clock.
const EVENTS_MAX: usize = 64;

/// How long the report of a client that has abandoned a call may take, ns.
const REPORT_NS: u64 = 5_000_000_000;

/// How often silent agents are looked for, ns: as often as they beat.
const CHECK_NS: u64 = LAB_HEARTBEAT.as_nanos() as u64;

/// What a step needs.
pub struct StepSetup<'a> {
    /// The job.
    pub job: &'a Job,
    /// Number of the step.
    pub number: u32,
    /// Clients and threads of each.
    pub load: (u32, u32),
    /// Threads of the last client, if it has fewer.
    pub last_threads: Option<u32>,
    /// It runs for its whole time, steady or not.
    pub fixed: bool,
}

/// Operations in flight of all clients.
pub fn in_flight(clients: u32, threads: u32, last: Option<u32>) -> u32 {
    clients.saturating_sub(1) * threads + if clients > 0 { last.unwrap_or(threads) } else { 0 }
}

/// A step that was run, with the raw material of its evidence.
pub struct Ran {
    /// The record, without evidence.
    pub step: Step,
    /// Samples of the server in the windows that count.
    pub samples: Vec<ServerSample>,
    /// Before the first operation and after the last one.
    pub whole: Option<[ServerSample; 2]>,
    /// Bytes that each client moved in the whole step.
    pub moved: Vec<(u32, u64)>,
    /// Windows that count, client by client.
    pub windows: Vec<Window>,
    /// Clients lost in this step.
    pub lost: Vec<u32>,
    /// Calls of each client so far.
    pub calls: Vec<(u32, u64)>,
    /// What all clients did in the whole step.
    pub totals: ClientTotals,
    /// Clients that did anything in the whole step.
    pub active: Vec<u32>,
    /// Operations that each client was given so far.
    pub operations: Vec<(u32, Vec<Lane>)>,
}

/// Why a step was not finished.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// An agent failed or cannot be reached.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// The folder of the run cannot be made.
    #[error(transparent)]
    Scratch(#[from] crate::client::ClientError),
    /// All clients are lost.
    #[error("no client is left")]
    Nobody,
    /// An agent of an earlier version keeps its slots full instead.
    #[error("client {0} does not support open loops; update its agent")]
    NoOpenLoop(u32),
    /// An agent of an earlier version has one position for all threads.
    #[error("client {0} does not support files of each thread; update its agent")]
    NoOwnFiles(u32),
    /// A client was lost, and the job is set to abort.
    #[error("client {0} was lost ({1}) and the job is set to abort")]
    Aborted(u32, String),
    /// It does not end.
    #[error("step {0} did not end")]
    Endless(u32),
}

/// One client within the step.
#[derive(Default)]
struct Part {
    windows: Vec<Window>,
    end: Option<StepEnd>,
}

/// What failed.
#[derive(Clone, Default)]
struct Faults {
    errors: u64,
    /// Among them, reads with wrong content.
    corrupt: u64,
    first: Option<String>,
}

impl Faults {
    fn and(mut self, other: Self) -> Self {
        self.errors += other.errors;
        self.corrupt += other.corrupt;
        self.first = self.first.or(other.first);
        self
    }
}

impl Part {
    /// What failed at the client. Its end counts all; without one, or where an agent of an earlier
    /// build does not count it there, its windows have what is known.
    fn faults(&self) -> Faults {
        let end = self.end.as_ref();
        let counted = |at_end: Option<u64>, of: fn(&Window) -> u64| {
            at_end.unwrap_or(0).max(self.windows.iter().map(of).sum())
        };
        let first = self.windows.iter().find_map(|window| window.first_error.clone());
        Faults {
            errors: counted(end.map(|end| end.errors), |window| window.errors),
            corrupt: counted(end.map(|end| end.corrupt), |window| window.corrupt),
            first: first.or_else(|| end?.first_error.clone()),
        }
    }
}

struct Running<'a> {
    wanted: &'a StepSetup<'a>,
    parts: BTreeMap<u32, Part>,
    at_ns: u64,
    window_ns: u64,
    warmup: usize,
    samples: Vec<ServerSample>,
    lost: Vec<u32>,
    /// What failed at clients before they were lost.
    lost_faults: Faults,
    notes: Vec<String>,
    stopped_with: Option<usize>,
    /// When the last window came in which something was completed.
    progress_ns: u64,
}

/// Runs one step.
///
/// # Errors
/// When an agent fails, or is lost and the policy is abort.
pub fn run(
    wanted: &StepSetup<'_>,
    agents: &mut Agents,
    view: &mut dyn ServerView,
) -> Result<Ran, StepError> {
    let before = view.sample();
    let mut running = begin(wanted, agents)?;
    let until = running.at_ns + wanted.job.step_max_ms * 1_000_000;
    let (mut sample_ns, mut check_ns) = (running.at_ns, running.at_ns);
    while !running.parts.values().all(|p| p.end.is_some()) {
        let now = clock::mono_ns();
        if now >= sample_ns {
            running.samples.extend(view.sample());
            // On a busy machine a sample takes longer than a window: events come first.
            let after = clock::mono_ns();
            let took = after.saturating_sub(now);
            sample_ns = (after + took).max(sample_ns + running.window_ns.max(SAMPLE_NS_MIN));
        }
        let mut within = LOOK;
        for _ in 0..EVENTS_MAX {
            match agents.next(within).map(|event| (event.agent, event.message)) {
                Some((agent, Some(message))) if running.gives_up(agent, &message, agents) => {
                    running.lose(agent, agents)?;
                }
                Some((agent, Some(message))) => running.note(agent, message)?,
                Some((agent, None)) => running.lose(agent, agents)?,
                None => break,
            }
            within = Duration::ZERO;
        }
        if now >= check_ns {
            check_ns = now + CHECK_NS;
            let limit = Duration::from_millis(wanted.job.lost_after_ms);
            for number in agents.overdue(limit) {
                running.lose(number, agents)?;
            }
        }
        running.stop_if_steady(agents);
        if now > abandon_ns(until.max(running.progress_ns), final_calls(wanted)) {
            return Err(StepError::Endless(wanted.number));
        }
    }
    let after = view.sample();
    running.samples.extend(after.clone());
    let mut ran = running.finish(agents)?;
    ran.whole = before.zip(after).map(|(before, after)| [before, after]);
    Ok(ran)
}

/// Calls that a client makes, one after the other, when its threads have ended: a COMMIT for each
/// file, the removal of what each thread has created.
fn final_calls(wanted: &StepSetup<'_>) -> u32 {
    match wanted.job.workload {
        Kind::SeqWrite => wanted.job.files,
        Kind::Create => wanted.load.1,
        _ => 0,
    }
}

/// Until when a step may last of which some client has completed something at `progress_ns`, or
/// that was to end then. A client abandons each call after [`LAB_SILENCE_MAX`] and reports it:
/// beyond, it has failed in another way. As long as operations complete, the server is slow.
fn abandon_ns(progress_ns: u64, final_calls: u32) -> u64 {
    let each = LAB_SILENCE_MAX.as_nanos() as u64;
    progress_ns + each * (1 + u64::from(final_calls)) + REPORT_NS
}

fn begin<'a>(wanted: &'a StepSetup<'a>, agents: &mut Agents) -> Result<Running<'a>, StepError> {
    let window_ns = wanted.job.window_ms * 1_000_000;
    let lead = agents.live().map(|a| a.offset.rtt_ns * 5).max().unwrap_or(0).max(LEAD_NS);
    let at_ns = clock::mono_ns() + lead;
    let chosen: Vec<u32> = agents.live().take(wanted.load.0 as usize).map(|a| a.number).collect();
    if chosen.is_empty() {
        return Err(StepError::Nobody);
    }
    for number in &chosen {
        let Some(agent) = agents.all.get(*number as usize) else { continue };
        let start = Start {
            step: wanted.number,
            threads: match wanted.last_threads {
                Some(threads) if chosen.last() == Some(number) => threads,
                _ => wanted.load.1,
            },
            at_ns: agent.offset.to_theirs(at_ns),
            until_ns: agent.offset.to_theirs(at_ns + wanted.job.step_max_ms * 1_000_000),
            window_ns,
            open: wanted.job.open.map(|shape| {
                let (all, threads) = (chosen.len() as u32, wanted.load.1);
                shape.for_client(*number, all, threads, wanted.job.seed ^ u64::from(wanted.number))
            }),
            ops_max: wanted.job.read_once(),
        };
        // An agent that is gone cannot be notified; its reader reports that, and the policy
        // decides.
        let _ = agents.send_to(*number, &ToAgent::Start(start));
    }
    Ok(Running {
        wanted,
        parts: chosen.into_iter().map(|n| (n, Part::default())).collect(),
        at_ns,
        window_ns,
        warmup: wanted.job.warmup_ms.div_ceil(wanted.job.window_ms.max(1)) as usize,
        samples: Vec::new(),
        lost: Vec::new(),
        lost_faults: Faults::default(),
        notes: Vec::new(),
        stopped_with: None,
        progress_ns: 0,
    })
}

impl Running<'_> {
    fn note(&mut self, agent: u32, message: FromAgent) -> Result<(), StepError> {
        let Some(part) = self.parts.get_mut(&agent) else { return Ok(()) };
        match message {
            FromAgent::Window(window)
                if window.step == self.wanted.number && part.windows.len() < LAB_WINDOWS_MAX =>
            {
                if window.ops + window.commits > 0 {
                    self.progress_ns = clock::mono_ns();
                }
                part.windows.push(*window);
            }
            FromAgent::StepEnd(end) if end.step == self.wanted.number => part.end = Some(end),
            FromAgent::Failed { what } => return Err(AgentsError::Failed(agent, what).into()),
            _ => {}
        }
        Ok(())
    }

    /// Whether a client has failed that is one of several networks: others continue without it. Its
    /// connection to the server broke, or nothing came from there.
    fn gives_up(&self, number: u32, message: &FromAgent, agents: &mut Agents) -> bool {
        let FromAgent::Failed { what } = message else { return false };
        let Some(agent) = agents.all.get_mut(number as usize) else { return false };
        if agent.subnet.is_none() || !self.parts.contains_key(&number) {
            return false;
        }
        agent.lost_ns = clock::mono_ns();
        agent.lost.get_or_insert_with(|| what.clone());
        true
    }

    /// A client is gone: by the job's policy that ends the run, the step, or only its part.
    fn lose(&mut self, number: u32, agents: &mut Agents) -> Result<(), StepError> {
        let Some(part) = self.parts.remove(&number) else { return Ok(()) };
        self.lost_faults = std::mem::take(&mut self.lost_faults).and(part.faults());
        let agent = agents.all.get_mut(number as usize);
        let how = agent.map_or_else(String::new, |agent| self.how_lost(agent));
        self.lost.push(number);
        self.notes.push(format!("client {number} was lost: {how}"));
        match self.wanted.job.on_loss {
            LossPolicy::Abort => {
                self.stop(agents);
                return Err(StepError::Aborted(number, how));
            }
            LossPolicy::Rebase => self.stop(agents),
            LossPolicy::Continue => {}
        }
        if self.parts.is_empty() { Err(StepError::Nobody) } else { Ok(()) }
    }

    /// How a client was lost, completed with when: steps are numbered from 0, as in the record.
    fn how_lost(&self, agent: &mut Agent) -> String {
        let after = agent.lost_ns.saturating_sub(self.at_ns) as f64 / 1e9;
        let how = agent.lost.get_or_insert_default();
        *how = format!("{how}, {after:.1} s into step {}", self.wanted.number);
        how.clone()
    }

    fn stop(&mut self, agents: &mut Agents) {
        let now = clock::mono_ns();
        for number in self.parts.keys() {
            let Some(agent) = agents.all.get(*number as usize) else { continue };
            let at_ns = agent.offset.to_theirs(now);
            // As for the start.
            let _ = agents.send_to(*number, &ToAgent::Stop { at_ns });
        }
        self.stopped_with.get_or_insert(self.common());
    }

    /// Windows that all clients have finished.
    fn common(&self) -> usize {
        self.parts.values().map(|p| p.windows.len()).min().unwrap_or(0)
    }

    /// The figure of each common window from `from` on.
    fn rates(&self, from: usize, to: usize) -> Vec<f64> {
        let stream = self.wanted.job.workload.is_stream();
        let figure = |w: &Window| if stream { w.bytes } else { w.ops };
        let sum = |n: usize| -> u64 {
            self.parts.values().filter_map(|p| p.windows.get(n)).map(figure).sum()
        };
        (from..to).map(|n| sum(n) as f64).collect()
    }

    fn stop_if_steady(&mut self, agents: &mut Agents) {
        let common = self.common();
        if self.wanted.fixed
            || self.stopped_with.is_some()
            || common < self.warmup + self.wanted.job.steady.windows as usize
        {
            return;
        }
        let found = steady::test(&self.rates(self.warmup, common), &self.wanted.job.steady);
        if found.verdict == SteadyVerdict::Steady {
            self.stop(agents);
        }
    }

    fn finish(mut self, agents: &Agents) -> Result<Ran, StepError> {
        // Windows that reach beyond the planned end have less load in them.
        let whole = (self.wanted.job.step_max_ms / self.wanted.job.window_ms) as usize;
        let to = self.stopped_with.unwrap_or(usize::MAX).min(self.common()).min(whole);
        let rule = &self.wanted.job.steady;
        let rates = self.rates(self.warmup.min(to), to);
        let steady = steady::test(&rates, rule);
        let from = if steady.verdict == SteadyVerdict::Steady && !self.wanted.fixed {
            to.saturating_sub(rule.windows as usize)
        } else {
            self.warmup.min(to)
        };
        let edge = |window: usize| self.at_ns + window as u64 * self.window_ns;
        let (begin, end) = (edge(from), edge(to));
        self.samples = nearest(std::mem::take(&mut self.samples), begin, end);
        let mut step = self.record(agents, (from, to), steady);
        step.open = self.open_loop()?;
        if step.open.is_some() {
            // Slots are not kept full: none of their time is lost.
            let Little { x_times_r, counted, .. } = step.little;
            step.little = little(x_times_r, step.ops_s, step.latency.mean, counted);
        }
        let calls = self.parts.iter().filter_map(|(n, p)| Some((*n, p.end.as_ref()?.calls)));
        let calls = calls.collect();
        let given = |(n, p): (&u32, &Part)| Some((*n, p.end.as_ref()?.operations.clone()));
        let operations = self.parts.iter().filter_map(given).collect();
        let windows = self.parts.values().flat_map(|p| p.windows.get(from..to).unwrap_or_default());
        let windows = windows.cloned().collect();
        let (totals, active) = (self.totals(), self.active());
        let moved = self.parts.iter().filter_map(|(n, p)| Some((*n, p.end.as_ref()?.bytes)));
        let (moved, whole) = (moved.collect(), None);
        let (samples, lost) = (self.samples, self.lost);
        Ok(Ran { step, samples, whole, moved, windows, lost, calls, operations, totals, active })
    }

    fn record(&self, agents: &Agents, used: (usize, usize), steady: Steadiness) -> Step {
        let window_s = self.window_ns as f64 / 1e9;
        let seconds = (used.1 - used.0).max(1) as f64 * window_s;
        let counted = || {
            self.parts.values().flat_map(move |p| p.windows.get(used.0..used.1).unwrap_or_default())
        };
        let parts: Vec<&[Window]> = self.parts.values().map(|p| p.windows.as_slice()).collect();
        let Distributions { counted: all, heat, seconds: by_second } =
            distribution::gather(&parts, used, window_s);
        let ends = || self.parts.values().filter_map(|p| p.end.as_ref());
        let faults = self.faults();
        let ops_s = counted().map(|w| w.ops).sum::<u64>() as f64 / seconds;
        let clients = self.parts.len() as u32;
        let nominal = f64::from(in_flight(clients, self.wanted.load.1, self.wanted.last_threads));
        let counted_in_flight =
            counted().map(|w| w.in_flight).sum::<f64>() / (used.1 - used.0).max(1) as f64;
        Step {
            number: self.wanted.number,
            clients,
            threads: self.wanted.load.1,
            last_threads: self.wanted.last_threads,
            started: clock::wall_at(self.at_ns),
            window_s,
            windows: heat.into_iter().enumerate().map(|(n, heat)| self.window(n, heat)).collect(),
            used,
            steady,
            ops_s,
            bytes_s: counted().map(|w| w.bytes).sum::<u64>() as f64 / seconds,
            latency: Latency::of(&all),
            little: little(nominal, ops_s, all.mean(), counted_in_flight),
            start: self.start_proof(agents),
            errors: faults.errors,
            corrupt: faults.corrupt,
            first_error: faults.first,
            commits: ends().map(|e| e.commits).sum(),
            resent: ends().map(|e| e.resent).sum(),
            by_client: self.by_client(used),
            transport_bytes_s: distribution::transport_bytes(&parts, used, window_s),
            seconds: by_second,
            notes: self.notes.clone(),
            ..Default::default()
        }
    }

    /// What became of the arrivals of all clients, if the job is an open loop.
    fn open_loop(&self) -> Result<Option<OpenStep>, StepError> {
        let Some(shape) = self.wanted.job.open else { return Ok(None) };
        let (mut counts, mut latency, mut lateness) =
            (ArrivalCounts::default(), hist::new(), hist::new());
        for (number, part) in &self.parts {
            let Some(end) = &part.end else { continue };
            let open = end.open.as_ref().ok_or(StepError::NoOpenLoop(*number))?;
            counts.add(&open.counts);
            for (all, text) in [(&mut latency, &open.latency), (&mut lateness, &open.lateness)] {
                if let Ok(one) = hist::from_text(text) {
                    let _ = all.add(one);
                }
            }
        }
        Ok(Some(OpenStep {
            rate: shape.rate,
            arrival: shape.arrival,
            counts,
            lateness: Latency::of(&lateness),
            condemned: open::condemned(&latency, &lateness),
            reservation: open::reservation(&counts),
        }))
    }

    /// What failed at any client, of those that were lost until then.
    fn faults(&self) -> Faults {
        self.parts.values().map(Part::faults).fold(self.lost_faults.clone(), Faults::and)
    }

    fn by_client(&self, used: (usize, usize)) -> Vec<ClientStep> {
        let of = |(number, part): (&u32, &Part)| {
            let counted = part.windows.get(used.0..used.1).unwrap_or_default();
            ClientStep {
                client: *number,
                ops: counted.iter().map(|w| w.ops).sum(),
                bytes: counted.iter().map(|w| w.bytes).sum(),
                errors: part.end.as_ref().map_or(0, |end| end.errors),
                ..Default::default()
            }
        };
        self.parts.iter().map(of).collect()
    }

    fn totals(&self) -> ClientTotals {
        let ends = || self.parts.values().filter_map(|p| p.end.as_ref());
        ClientTotals {
            ops: ends().map(|end| end.ops).sum(),
            bytes: ends().map(|end| end.bytes).sum(),
            slots: self.parts.len() as u64 * u64::from(self.wanted.load.1),
        }
    }

    fn active(&self) -> Vec<u32> {
        let did = |part: &Part| {
            let counted = part.end.as_ref().is_some_and(|end| end.ops > 0);
            counted || part.windows.iter().any(|window| window.ops > 0)
        };
        self.parts.iter().filter(|(_, part)| did(part)).map(|(number, _)| *number).collect()
    }

    /// All clients in window `n`, which has these latencies.
    fn window(&self, n: usize, heat: Vec<(u16, u64)>) -> WindowRecord {
        let mut out = WindowRecord { heat, ..Default::default() };
        for window in self.parts.values().filter_map(|p| p.windows.get(n)) {
            out.ops += window.ops;
            out.bytes += window.bytes;
            out.errors += window.errors;
            out.in_flight += window.in_flight;
            out.generator_cores += window.cpu_ns as f64 / self.window_ns as f64;
        }
        out.server_cores = self.server_cores(n);
        out
    }

    /// Cores that the server used in window `n`, from the samples nearest its edges.
    fn server_cores(&self, n: usize) -> Option<f64> {
        let near = |at: u64| self.samples.iter().min_by_key(|s| s.at_ns.abs_diff(at));
        let begin = self.at_ns + n as u64 * self.window_ns;
        let (a, b) = (near(begin)?, near(begin + self.window_ns)?);
        let seconds = b.at_ns.saturating_sub(a.at_ns) as f64 / 1e9;
        let used = b.process.as_ref()?.seconds - a.process.as_ref()?.seconds;
        (seconds > 0.0).then(|| used.max(0.0) / seconds)
    }

    fn start_proof(&self, agents: &Agents) -> StartProof {
        let mut late_ns = Vec::new();
        let mut clock_error_ns = 0;
        let mut spans = Vec::new();
        for (number, part) in &self.parts {
            let (Some(end), Some(agent)) = (&part.end, agents.all.get(*number as usize)) else {
                continue;
            };
            let first = agent.offset.to_ours(end.first_op_ns);
            late_ns.push((*number, first as i64 - self.at_ns as i64));
            spans.push((first, agent.offset.to_ours(end.last_op_ns)));
            clock_error_ns = clock_error_ns.max(agent.offset.error_ns);
        }
        let latest = late_ns.iter().map(|l| l.1).max().unwrap_or(0);
        let earliest = late_ns.iter().map(|l| l.1).min().unwrap_or(0);
        let begin = spans.iter().map(|s| s.0).max().unwrap_or(0);
        let end = spans.iter().map(|s| s.1).min().unwrap_or(0);
        let first = spans.iter().map(|s| s.0).min().unwrap_or(0);
        let last = spans.iter().map(|s| s.1).max().unwrap_or(0);
        let all_active_share =
            end.saturating_sub(begin) as f64 / last.saturating_sub(first).max(1) as f64;
        StartProof {
            skew_ns: (latest - earliest) as u64,
            clock_error_ns,
            late_ns,
            all_active_share,
        }
    }
}

/// From the sample nearest the begin to that nearest the end. A controller without a core takes few
/// samples: two that lie apart are better than none, and the record has their times.
fn nearest(mut samples: Vec<ServerSample>, begin: u64, end: u64) -> Vec<ServerSample> {
    let near = |at: u64| {
        let each = samples.iter().enumerate();
        each.min_by_key(|(_, s)| s.at_ns.abs_diff(at)).map_or(0, |(n, _)| n)
    };
    let (mut first, mut last) = (near(begin), near(end));
    if first == last {
        (first, last) = (first.saturating_sub(1), (last + 1).min(samples.len().saturating_sub(1)));
    }
    samples.truncate(last + 1);
    samples.drain(..first.min(samples.len()));
    samples
}

/// Little's law for a step.
fn little(nominal: f64, ops_s: f64, mean_ns: f64, counted: f64) -> Little {
    let x_times_r = ops_s * mean_ns / 1e9;
    let deviation_percent = (nominal - x_times_r) / nominal.max(1.0) * 100.0;
    let holds = deviation_percent.abs() < 5.0;
    Little { nominal, x_times_r, counted, deviation_percent, holds }
}

#[cfg(test)]
mod tests;
