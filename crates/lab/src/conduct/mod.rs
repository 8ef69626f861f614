//! Conducting a run: agents, preparation, the staircase, the verdict.
//!
//! - [`agents`]: processes, clocks; [`roster`]: agents on other machines; [`exchange`]: all
//!   connections in one thread; [`step`]: one step; [`steady`]: the rules of when a step and when a
//!   staircase is done; [`server`]: the server's side, [`locate`]: where it is, [`counts`]: what it
//!   counted itself; [`network`], [`subnets`]: several addresses of one server; [`evidence`]: what
//!   the limiter is judged by; [`watch`]: the server of a load without steps; [`events`]: progress.

pub mod agents;
mod cold;
pub mod counts;
pub mod distribution;
pub mod events;
pub mod evidence;
pub mod exchange;
pub mod locate;
pub mod network;
pub mod roster;
pub mod server;
pub mod steady;
pub mod step;
mod subnets;
pub mod watch;

use crate::agent::join::PROGRAM;
use crate::agent::proto::{FromAgent, OWN_FILES_VERSION, Prepare, ToAgent};
use crate::client::target::Counting;
use crate::client::{Checker, Target, scratch};
use crate::job::{Job, LossPolicy};
use crate::limit::{CLOCK_SKEW_MAX_NS, Direction};
use crate::observe::ClientSource;
use crate::operations::Operations;
use crate::pattern::Content;
use crate::record::observed::{ClientStep, Observed, Payload, ServerCounts};
use crate::record::{ClientRecord, RunResult, SteadyVerdict, Step, VERSION, WindowRecord};
use crate::shape;
use crate::shape::outcome::ShapeRecord;
use crate::shape::plan::{Plan, StepPlan};
use crate::shape::soak::Drift;
use crate::verdict;
use crate::verdict::conclude::StepEvidence;
use crate::verdict::evenness::{ClientShare, Evenness};
use crate::verdict::prove::Intervention;
use crate::workload::Kind;
use agents::{Agents, AgentsError, Source};
use base::clock::Deadline;
use base::limits::{LAB_CLEAN_MAX, LAB_SILENCE_MAX};
pub use events::{RunEvent, StepReport};
use network::Subnet;
use server::api::ServerApi;
use server::{ServerSample, ServerView, Unseen};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use step::{Ran, StepError, StepSetup};

/// How a run is made.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// What load is put on.
    pub target: Target,
    /// The agents that make it.
    pub source: Source,
    /// Bind local clients to addresses of their own (127.0.0.11 and up).
    pub bind: bool,
    /// Networks, and the server's address in each; none: all clients use that of the target.
    pub subnets: Vec<Subnet>,
    /// The server's local socket, if it is a Plimsoll server.
    pub server_socket: Option<PathBuf>,
    /// The server's process, if it is known; else it is looked for at the target's port.
    pub server_pid: Option<u32>,
    /// How else the server is observed.
    pub observe: ObserveRun,
    /// Remove the files afterwards.
    pub clean: bool,
    /// A folder that is made on the target for the files, and removed with them afterwards.
    pub scratch: Option<String>,
    /// Interventions that prove the limiter afterwards.
    pub prove: Vec<Intervention>,
    /// The command that repeats the run, for the record.
    pub command: Vec<String>,
}

/// How a server is observed that is not found by its address, or not all of it.
#[derive(Debug, Clone, Default)]
pub struct ObserveRun {
    /// Agent on its host that only observes.
    pub agent: Option<Arc<roster::Roster>>,
    /// Where the data of the share is on this machine.
    pub share_path: Option<PathBuf>,
    /// API of a Plimsoll server on another machine.
    pub api: Option<ServerApi>,
}

impl RunOptions {
    /// Where the server itself is asked.
    pub fn server_api(&self) -> Option<ServerApi> {
        self.server_socket.clone().map(ServerApi::Local).or_else(|| self.observe.api.clone())
    }
}

/// Why a run did not come to a result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The agents.
    #[error(transparent)]
    Agents(#[from] AgentsError),
}

/// Where progress is reported.
pub type Progress<'a> = &'a mut dyn FnMut(&RunEvent);

/// Reports a line.
pub fn line(progress: Progress<'_>, text: String) {
    progress(&RunEvent::Line { text });
}

/// Reports that files are made.
pub fn preparing(progress: Progress<'_>, job: &str, target: &Target) {
    progress(&RunEvent::Preparing { job: job.to_owned(), target: target.to_string() });
}

/// Reports that the load begins.
pub fn running(progress: Progress<'_>) {
    progress(&RunEvent::Running);
}

/// How long preparing may take: the files of all clients through the server.
pub(crate) const PREPARE_WITHIN: Duration = Duration::from_secs(600);
/// Length of the measurement against nothing.
const NULL_MS: u64 = 240;

/// Runs a job.
///
/// # Errors
/// When there are no agents. Whatever goes wrong later is in the result: `failed`, `degraded`.
pub fn run(job: &Job, options: &RunOptions, progress: Progress<'_>) -> Result<RunResult, RunError> {
    let started = base::clock::wall_ns() as f64 / 1e9;
    let bind = options.bind && target_is_local(&options.target);
    let mut agents = Agents::gather(&options.source, bind)?;
    subnets::assign(&mut agents, &options.subnets)?;
    let mut view = locate::view_of(options)?;
    let checker = Checker::new(Content::new(job.seed), job.check_one_in);
    let mut result = RunResult {
        format: VERSION,
        program: PROGRAM.into(),
        started,
        ended: started,
        job: titled(job, &options.target),
        target: options.target.to_string(),
        command: options.command.clone(),
        conductor: crate::proc::machine(),
        server: view.describe(),
        clients: agents.all.iter().map(client_record).collect(),
        checked_share: checker.share(u64::from(job.block)),
        null_ops_s: None,
        steps: Vec::new(),
        best: None,
        levelled: false,
        limit: None,
        demands: None,
        scaling: None,
        operations: Default::default(),
        disturbed: None,
        over_runs: None,
        shape: ShapeRecord::default(),
        proof: None,
        degraded: Vec::new(),
        failed: None,
    };
    let ran = conduct(job, options, &mut agents, &mut *view, &mut result, progress);
    if let Err(error) = ran {
        result.failed = Some(crate::agent::with_sources(&error));
    }
    conclude(job, &mut agents, &mut result);
    let lost = subnets::lost(&result, &options.subnets);
    result.degraded.extend(lost);
    // First the agents, which may still write.
    drop(agents);
    if let Some(name) = &options.scratch {
        leave(&options.target, name, &mut result);
    }
    result.ended = base::clock::wall_ns() as f64 / 1e9;
    Ok(result)
}

/// Removes the folder of the run. Its figures are good even if that fails.
fn leave(target: &Target, name: &str, result: &mut RunResult) {
    if let Err(error) = scratch::clear(target, name, LAB_CLEAN_MAX) {
        let why = crate::agent::with_sources(&error);
        result.degraded.push(format!("the folder {name} was not removed: {why}"));
    }
}

/// The job with the protocol in its title that it is really run over.
fn titled(job: &Job, target: &Target) -> Job {
    let mut job = job.clone();
    let real = match target {
        Target::Nfs4(_) => "NFSv4.1".to_owned(),
        Target::Service(at) => at.scheme.title().to_owned(),
        Target::Smb(at) => format!("SMB {}", at.dialect.name()),
        Target::Iscsi(_) => "iSCSI".to_owned(),
        Target::Block(_) => "a block device".to_owned(),
        _ => return job,
    };
    job.title = job.title.replace("NFSv3", &real);
    job
}

/// Whether the target is on this machine, so that 127.0.0.x can reach it.
fn target_is_local(target: &Target) -> bool {
    target.server().is_some_and(|(host, _)| is_local(host))
}

/// Whether this host is this machine.
pub fn is_local(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.")
}

fn client_record(agent: &agents::Agent) -> ClientRecord {
    ClientRecord {
        number: agent.number,
        agent: agent.address.clone(),
        bind: agent.bind.map(|b| b.to_string()),
        subnet: agent.subnet.map(|subnet| subnet.to_string()),
        pid: agent.pid,
        machine: agent.machine.clone(),
        offset_before: agent.offset,
        wall_skew_ns: agent.wall_skew_ns,
        ..Default::default()
    }
}

fn conduct(
    job: &Job,
    options: &RunOptions,
    agents: &mut Agents,
    view: &mut dyn ServerView,
    result: &mut RunResult,
    progress: Progress<'_>,
) -> Result<(), StepError> {
    let clients = agents.all.len() as u32;
    let (name, steps) = (job.name.clone(), shape::plan::planned(job, clients));
    progress(&RunEvent::Generator { job: name.clone(), clients, steps: steps.clone() });
    result.null_ops_s = Some(against_nothing(job, agents)?);
    preparing(progress, &name, &options.target);
    let place = match &options.scratch {
        Some(name) => {
            scratch::make(&options.target, name)?;
            options.target.below(name)
        }
        None => options.target.clone(),
    };
    let prepared = prepare(job, agents, &place)?;
    running(progress);
    for (number, (seconds, granted, source)) in prepared {
        if let Some(client) = result.clients.get_mut(number as usize) {
            (client.prepared_s, client.granted, client.source) = (seconds, granted, source);
        }
    }
    run_steps(job, &options.subnets, agents, view, result, progress)?;
    if options.clean {
        clean(agents, result);
    }
    disconnect(agents, result);
    Ok(())
}

/// Runs the steps, each as the plan has it after those before.
fn run_steps(
    job: &Job,
    subnets: &[Subnet],
    agents: &mut Agents,
    view: &mut dyn ServerView,
    result: &mut RunResult,
    progress: Progress<'_>,
) -> Result<(), StepError> {
    let mut plan = Plan::new(job, agents.all.len() as u32);
    let interfaces = subnets::interfaces(subnets, result.server.pid);
    let mut next = plan.next_step();
    let mut number = 0;
    while let Some(step_plan) = &next {
        let StepPlan { load, last_threads, .. } = *step_plan;
        let (job, fixed) = (&step_plan.job(job), step_plan.fixed_ms.is_some());
        let setup = StepSetup { job, number, load, last_threads, fixed };
        let cold = cold::Begun::of(job, view);
        let mut ran = step::run(&setup, agents, view)?;
        let whole = (std::mem::take(&mut ran.moved), ran.whole.take());
        let cold = cold.map(|begun| begun.end(view));
        number += 1;
        ran.step.probe = step_plan.probe;
        let rebase = job.on_loss == LossPolicy::Rebase && !ran.lost.is_empty();
        take(job, ran, cold, view, result);
        note_subnets((subnets, &interfaces), load.0, &whole, result);
        let Some(step) = result.steps.last() else { break };
        progress(&RunEvent::Step(StepReport::of(result, step)));
        if !rebase {
            plan.note(step_plan, &shape::plan::result_of(job, result, step));
            next = plan.next_step();
        }
    }
    result.levelled = plan.levelled();
    result.shape.bound = plan.bound();
    result.shape.curve = shape::plan::curve_of(result);
    result.shape.drift = drift_of(result);
    Ok(())
}

/// Adds what each network carried to the last step.
fn note_subnets(
    subnets: (&[Subnet], &[Option<String>]),
    clients: u32,
    whole: &subnets::Moved,
    result: &mut RunResult,
) {
    let Some(step) = result.steps.last() else { return };
    let mut found = subnets::of_step(step, subnets, result, clients);
    subnets::enter_whole(&mut found, step, whole);
    let Some(step) = result.steps.last_mut() else { return };
    // Clients say what each network carried: no share by the bytes of interfaces is needed.
    let known = found.iter().any(|subnet| subnet.interface.is_some());
    for observed in step.observe.iter_mut().filter(|_| known) {
        let seconds = observed.seconds;
        for interface in &mut observed.interfaces {
            let on = found.iter().filter(|s| s.interface.as_ref() == Some(&interface.name));
            let bytes: Vec<f64> = on.map(|subnet| subnet.bytes_s * seconds).collect();
            let carries = !bytes.is_empty();
            interface.payload = carries.then(|| bytes.iter().sum::<f64>() as u64);
        }
    }
    step.subnets = found;
}

/// The drift of a soak.
fn drift_of(result: &RunResult) -> Option<Drift> {
    let (soak, step) = (result.job.soak?, result.steps.last()?);
    let windows = step.windows.get(step.used.0..step.used.1)?;
    let figure = |w: &WindowRecord| match result.job.workload.is_stream() {
        true => w.bytes as f64,
        false => w.ops as f64,
    };
    let rates: Vec<f64> = windows.iter().map(figure).collect();
    shape::soak::drift(&rates, step.window_s, soak.drift_percent)
}

/// Has all clients remove their files. The figures of the run are good even if that fails.
fn clean(agents: &mut Agents, result: &mut RunResult) {
    let live: Vec<u32> = agents.live().map(|agent| agent.number).collect();
    let cleaned = agents.replies(&live, &ToAgent::Clean, LAB_SILENCE_MAX, |message| {
        matches!(message, FromAgent::Cleaned).then_some(())
    });
    for (number, cleaned) in cleaned {
        if let Err(error) = cleaned {
            let why = crate::agent::with_sources(&error);
            result.degraded.push(format!("the files of client {number} were not removed: {why}"));
        }
    }
}

/// Has all clients disconnect, and counts their last calls: a client that waited has renewed its
/// session since its last step. Of one that is lost meanwhile the count of the last step stands.
fn disconnect(agents: &mut Agents, result: &mut RunResult) {
    let live: Vec<u32> = agents.live().map(|agent| agent.number).collect();
    let calls = agents.replies(&live, &ToAgent::Disconnect, LAB_SILENCE_MAX, |m| match m {
        FromAgent::Disconnected { calls } => Some(calls),
        _ => None,
    });
    let calls = calls.into_iter().filter_map(|(number, calls)| Some((number, calls.ok()?)));
    note_calls(result, calls.collect());
}

/// Enters how many calls clients have made, by their numbers.
fn note_calls(result: &mut RunResult, calls: Vec<(u32, u64)>) {
    for (number, calls) in calls {
        if let Some(client) = result.clients.get_mut(number as usize) {
            client.calls = calls;
        }
    }
}

fn take(
    job: &Job,
    ran: Ran,
    cold: Option<cold::Ended>,
    view: &mut dyn ServerView,
    result: &mut RunResult,
) {
    let mut step = ran.step;
    let begin = step.started + step.used.0 as f64 * step.window_s;
    let end = step.started + step.used.1 as f64 * step.window_s;
    step.server = view.statistics(begin, end);
    let own = crate::proc::host_name();
    let windows: Vec<_> = ran.windows.iter().collect();
    let protocol = Target::protocol_of(&result.target);
    let counting = Target::counting(&result.target);
    for client in &mut step.by_client {
        let record = result.clients.get(client.client as usize);
        let source = record.and_then(|record| record.source.as_ref());
        client.source = source.map(|source| source.address.clone());
        client.interface = source.and_then(|source| source.interface.clone());
        client.subnet = record.and_then(|record| record.subnet.clone());
    }
    let clients = (ran.totals, ran.active.as_slice());
    step.server_counts = counted(&mut step, clients, (counting, job.workload), view);
    step.observe = observed(job, &step, &ran.samples);
    step.evidence = evidence::gather(&evidence::Inputs {
        step: &step,
        kind: job.workload,
        samples: &ran.samples,
        windows: &windows,
        same_host: result.clients.iter().any(|c| c.machine["name"] == own.as_str()),
        null_ops_s: result.null_ops_s,
        statistics: &step.server,
        protocol,
        counting,
    });
    step.evenness = evenness(&step);
    step.cold = cold.map(|ended| ended.judge(job, &step, ran.totals, &ran.samples));
    note_calls(result, ran.calls);
    result.operations.clients.extend(ran.operations);
    result.steps.push(step);
}

/// What the server counted itself from the start of the step until now, of the clients that did
/// anything in it: a short step may end before a window does.
fn counted(
    step: &mut Step,
    (totals, active): (counts::ClientTotals, &[u32]),
    asked: (Counting, Kind),
    view: &mut dyn ServerView,
) -> Option<ServerCounts> {
    let early = COUNTS_EARLY_S + step.start.clock_error_ns as f64 / 1e9;
    let interval = (step.started - early, base::clock::wall_ns() as f64 / 1e9);
    let counts = view.counts(interval.0, interval.1)?;
    let active = step.by_client.iter().filter(|c| active.contains(&c.client));
    let clients: Vec<_> = active.map(|c| c.source.clone()).collect();
    let translated = counts::Translated::of(&counts, &clients);
    for client in &mut step.by_client {
        let own = client.source.as_deref();
        let seen = translated.as_ref().zip(own).and_then(|(all, own)| all.seen_as(own));
        client.seen_as = seen.map(str::to_owned);
    }
    let rows = counts::of_clients(&counts, &clients);
    let mut record = counts::record(interval, counts.complete, &rows, asked, totals);
    record.translated = translated.map(|translated| translated.sentence());
    Some(record)
}

/// The server between the first and the last sample of the windows that count.
fn observed(job: &Job, step: &Step, samples: &[ServerSample]) -> Vec<Observed> {
    let Some((first, last)) = samples.first().zip(samples.last()) else { return Vec::new() };
    let inward = job.workload.payload() == Some(Direction::Write);
    let payload = Payload { bytes_s: step.bytes_s, inward };
    let started = crate::agent::clock::wall_at(first.at_ns);
    let mut found: Vec<Observed> =
        Observed::between(first, last, payload, started).into_iter().collect();
    let cost: u64 = samples.iter().filter_map(|s| Some(s.observed.as_ref()?.cost_ns)).sum();
    found.iter_mut().for_each(|observed| observed.cost = cost as f64 / 1e9);
    found
}

/// Clients' clocks and the server's are this close to each other on one machine, where what is
/// known of a client's clock is exact. Nothing of the run reaches the server in this time and that
/// of the error of clocks before a step: it is ordered five round trips before.
const COUNTS_EARLY_S: f64 = 0.002;

/// What all clients together reach against nothing, operations per second.
fn against_nothing(job: &Job, agents: &mut Agents) -> Result<f64, StepError> {
    prepare(job, agents, &Target::Null)?;
    let mut null = job.clone();
    // Its rate is not what the generator could do.
    (null.cold, null.open) = (false, None);
    null.schedule = vec![(agents.all.len() as u32, job.slots())];
    (null.warmup_ms, null.window_ms, null.step_max_ms) = (0, NULL_MS / 4, NULL_MS);
    let load = (agents.all.len() as u32, job.slots());
    let wanted = StepSetup { job: &null, number: u32::MAX, load, last_threads: None, fixed: true };
    Ok(step::run(&wanted, agents, &mut Unseen::default())?.step.ops_s)
}

/// For each client what preparation took, seconds, what the server granted, where it leaves.
type Prepared = Vec<(u32, (f64, Option<u32>, Option<ClientSource>))>;

fn prepare(job: &Job, agents: &mut Agents, target: &Target) -> Result<Prepared, StepError> {
    if job.own_files
        && let Some(old) = agents.live().find(|agent| agent.version < OWN_FILES_VERSION)
    {
        return Err(StepError::NoOwnFiles(old.number));
    }
    let numbers: Vec<u32> = agents.live().map(|a| a.number).collect();
    for number in numbers {
        let agent = agents.all.get(number as usize);
        let (bind, subnet) = agent.map_or((None, None), |agent| (agent.bind, agent.subnet));
        let prepare = Prepare {
            target: subnets::target_in(target, subnet).url(),
            client: number,
            bind,
            shape: job.shape(),
            seed: job.seed,
            check_one_in: job.check_one_in,
            slots: job.slots(),
        };
        agents.send_to(number, &ToAgent::Prepare(Box::new(prepare)))?;
    }
    answers(agents, PREPARE_WITHIN, |m| match m {
        FromAgent::Prepared { seconds, granted, source } => {
            Some((*seconds, *granted, source.clone()))
        }
        _ => None,
    })
}

/// Waits for the reply of each live agent; the first one that fails or is lost ends that.
fn answers<T>(
    agents: &mut Agents,
    within: Duration,
    pick: impl Fn(&FromAgent) -> Option<T>,
) -> Result<Vec<(u32, T)>, StepError> {
    let asked: Vec<u32> = agents.live().map(|a| a.number).collect();
    let (mut waiting, mut found) = (asked.clone(), Vec::new());
    let deadline = Deadline::after(within);
    while let Some(first) = waiting.first().copied() {
        if deadline.passed() {
            return Err(AgentsError::Silent(first, within).into());
        }
        let Some(event) = agents.next(Duration::from_millis(100)) else { continue };
        match event.message {
            // Lost before.
            _ if !asked.contains(&event.agent) => {}
            None => return Err(AgentsError::Gone(event.agent).into()),
            Some(FromAgent::Failed { what }) => {
                return Err(AgentsError::Failed(event.agent, what).into());
            }
            Some(message) => {
                if let Some(value) = pick(&message) {
                    waiting.retain(|n| *n != event.agent);
                    found.push((event.agent, value));
                }
            }
        }
    }
    Ok(found)
}

/// Clocks once more, the best step, the verdict, the marks.
fn conclude(job: &Job, agents: &mut Agents, result: &mut RunResult) {
    let live: Vec<u32> = agents.live().map(|a| a.number).collect();
    for number in live {
        let after = agents.compare_clock(number).ok().map(|c| c.0);
        if let Some(client) = result.clients.get_mut(number as usize) {
            client.offset_after = after;
        }
    }
    let mut skewed = Vec::new();
    for (client, agent) in result.clients.iter_mut().zip(&agents.all) {
        client.lost.clone_from(&agent.lost);
        skewed.extend(skew(client));
    }
    let lost: Vec<String> = result
        .clients
        .iter()
        .filter_map(|c| Some(format!("client {}: {}", c.number, c.lost.as_ref()?)))
        .collect();
    result.degraded.extend(lost.iter().map(|what| format!("lost {what}")));
    result.degraded.extend(skewed.iter().cloned());
    result.degraded.extend(agents.paused.iter().map(|what| format!("paused {what}")));
    result.degraded.extend(fewer_slots(result));
    result.degraded.extend(disagreeing(result));
    result.degraded.extend(result.faulty());
    result.degraded.extend(agents.all.iter().filter_map(other_program));
    result.operations = Operations::of(std::mem::take(&mut result.operations.clients));
    result.best = best(result);
    let Some(step) = result.best_step() else { return };
    let mut evidence = step.evidence.clone();
    evidence.curve = result.steps.iter().filter(|s| !s.probe).map(evidence::point).collect();
    evidence.levelled = result.levelled;
    (evidence.lost, evidence.skewed, evidence.paused) = (lost, skewed, agents.paused.clone());
    let uneven = step.evenness.iter().flat_map(|e| &e.uneven).map(|u| u.sentence.clone());
    let uneven: Vec<String> = uneven.collect();
    let mut doubts = Vec::new();
    // Of a soak the drift is the finding.
    doubts.extend(result.unsteady().filter(|_| job.soak.is_none()));
    if result.steps.iter().any(|s| s.corrupt > 0) {
        let what = format!("{}: reads returned wrong content", job.name);
        result.failed.get_or_insert(what);
    }
    let steps: Vec<StepEvidence<'_>> = result
        .steps
        .iter()
        .filter(|step| !step.probe)
        .map(|step| StepEvidence { clients: step.clients, evidence: &step.evidence })
        .collect();
    let fixed_rate = result.steps.iter().filter(|step| !step.probe);
    let opened: Vec<_> = fixed_rate.filter_map(|step| step.open.as_ref()).collect();
    doubts.extend(shape_doubts(result));
    doubts.extend(opened.iter().flat_map(|o| o.condemned.iter().chain(&o.reservation)).cloned());
    // A rate that was kept up with has no limit.
    let kept_up = !opened.is_empty() && opened.iter().all(|open| open.reservation.is_none());
    let mut found = verdict::conclude::conclude(&evidence, &steps, job.seed);
    found.verdict.marks.extend(uneven);
    result.limit = (!kept_up).then_some(found.verdict);
    result.demands = Some(found.demands);
    result.scaling = Some(found.scaling);
    result.degraded.extend(doubts);
}

/// What limits the value of the figures of a shape.
fn shape_doubts(result: &RunResult) -> Vec<String> {
    let shape = &result.shape;
    let mut out = Vec::new();
    for point in shape.curve.iter().filter(|point| point.condemned) {
        let probes = result.steps.iter().filter_map(|step| step.open.as_ref());
        let mut same = probes.filter(|open| open.rate == point.rate);
        let why = same.find_map(|open| open.condemned.clone()).unwrap_or_default();
        out.push(format!("at {} % of the maximum {why}", point.percent));
    }
    out.extend(shape.bound.iter().filter(|b| b.at_least).map(|b| b.sentence.clone()));
    out.extend(shape.drift.iter().filter(|d| d.drifts || d.open).map(|d| d.sentence.clone()));
    if result.job.soak.is_some() && shape.drift.is_none() {
        out.push("the soak has too few windows to judge a drift".to_owned());
    }
    out
}

/// How evenly the clients of a step were served, unless one has fewer threads: of a ramp.
fn evenness(step: &Step) -> Option<Evenness> {
    if step.last_threads.is_some() {
        return None;
    }
    let share = |client: &ClientStep| ClientShare {
        number: client.client,
        done: client.ops as f64,
        source: client.source.clone(),
        interface: client.interface.clone(),
    };
    verdict::evenness::judge(&step.by_client.iter().map(share).collect::<Vec<_>>())
}

/// Steps of which the server counted something else than the clients.
fn disagreeing(result: &RunResult) -> Vec<String> {
    let of = |step: &Step| {
        let compared = step.server_counts.as_ref()?.compared.as_ref()?;
        let differs = !compared.agrees && result.clients.iter().all(|c| c.lost.is_none());
        differs.then(|| format!("step {}: {}", step.number, compared.sentence()))
    };
    result.steps.iter().filter_map(of).collect()
}

/// Whether steps asked for more at once than the server allows, and how many it does.
fn fewer_slots(result: &RunResult) -> Option<String> {
    let granted = result.clients.iter().filter_map(|client| client.granted).min()?;
    let most = result.steps.iter().map(|step| step.threads).max()?;
    (most > granted).then(|| {
        format!("the server's sessions have {granted} slots: of {most} threads some waited")
    })
}

/// Whether an agent is of another version of the program.
fn other_program(agent: &agents::Agent) -> Option<String> {
    let (number, program) = (agent.number, &agent.program);
    (program != PROGRAM)
        .then(|| format!("client {number}: its program is {program}, not {PROGRAM}"))
}

/// What is wrong with a client's clock.
fn skew(client: &ClientRecord) -> Option<String> {
    let off = client.wall_skew_ns.unsigned_abs();
    if off > CLOCK_SKEW_MAX_NS {
        let by = base::units::time_ns(off as f64);
        return Some(format!("client {}: its wall clock is off by {by}", client.number));
    }
    let after = client.offset_after?;
    let drift = after.offset_ns.abs_diff(client.offset_before.offset_ns);
    let known = client.offset_before.error_ns + after.error_ns + CLOCK_SKEW_MAX_NS / 100;
    (drift > known).then(|| {
        let by = base::units::time_ns(drift as f64);
        format!("client {}: its clock moved by {by} during the run", client.number)
    })
}

/// The step with the best figure, a steady one if there is any within 3 % of it.
fn best(result: &RunResult) -> Option<usize> {
    let figure = |n: &usize| result.steps.get(*n).map_or(0.0, |s| result.figure(s));
    let by_figure = |a: &usize, b: &usize| figure(a).total_cmp(&figure(b));
    let closed = || (0..result.steps.len()).filter(|n| !result.steps[*n].probe);
    let top = closed().max_by(by_figure)?;
    let near = |n: &usize| figure(n) >= figure(&top) * 0.97;
    let steady = |n: &usize| result.steps[*n].steady.verdict == SteadyVerdict::Steady;
    closed().filter(near).filter(steady).max_by(by_figure).or(Some(top))
}

#[cfg(test)]
mod tests;
