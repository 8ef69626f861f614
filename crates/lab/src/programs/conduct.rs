//! A program on several agents: each runs its share of the threads, from a common start on.

use super::drive::Totals;
use super::record::{self, AgentResult, ProgramResult, Sums};
use super::run::{Checked, ProgramError, ProgramRequest, not_removed};
use crate::agent::clock;
use crate::agent::proto::{FromAgent, PROGRAM_VERSION, ProgramEnd, ProgramJob, ToAgent};
use crate::client::Target;
use crate::conduct::agents::{Agents, Source};
use crate::conduct::watch::Watch;
use crate::conduct::{PREPARE_WITHIN, Progress, line, running};
use crate::record::provenance::now;
use base::limits::LAB_SILENCE_MAX;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between the command and the start, ns: more than any agent takes to read it.
const LEAD_NS: u64 = 300_000_000;
/// How long removing the files may take: as long as making those of a job.
pub(crate) const CLEAN_WITHIN: Duration = PREPARE_WITHIN;
/// How long one wait for messages takes at most.
const WAIT: Duration = Duration::from_millis(100);

/// The agents of a run, and what each has sent.
struct Conductor {
    agents: Agents,
    /// When each began, on its clock, and what its threads did.
    ends: BTreeMap<u32, (u64, Totals)>,
    around: BTreeMap<String, u64>,
}

/// Runs a program on agents.
///
/// # Errors
/// The agents are unavailable, or one cannot prepare.
pub fn run(
    checked: &Checked,
    request: &ProgramRequest<'_>,
    source: &Source,
    watch: &mut Watch,
    progress: Progress<'_>,
) -> Result<ProgramResult, ProgramError> {
    let started = now();
    let agents = Agents::gather(source, false)?;
    let all = agents.all.len() as u64;
    if let Some(old) = agents.all.iter().find(|agent| agent.version < PROGRAM_VERSION) {
        return Err(ProgramError::Agent(format!(
            "the agent at {} ({}) runs no programs: use the version of this one",
            old.address, old.program
        )));
    }
    let (ends, around) = (BTreeMap::new(), BTreeMap::new());
    let mut conductor = Conductor { agents, ends, around };
    let plan = checked.plan(request, (0, all))?;
    conductor.prepare(checked, request, all)?;
    let machines: Vec<_> = conductor.agents.all.iter().map(|agent| agent.machine.clone()).collect();
    watch.by_agents(&machines);
    let at_ns = conductor.start()?;
    running(progress);
    line(progress, format!("running on {all} agents"));
    watch.begin();
    conductor.until_all_ended();
    watch.end();
    let each = matches!(checked.target, Target::Path(_));
    let left = if request.clean { conductor.clean(each) } else { Vec::new() };
    let mut totals = Totals::default();
    let by_agent = conductor.agents.all.iter().map(|agent| {
        let end = conductor.ends.get(&agent.number);
        let sums = end.map(|(_, totals)| Sums::of(&plan.program, totals)).unwrap_or_default();
        let late = end.map_or(0, |(began, _)| agent.offset.to_ours(*began) as i64 - at_ns as i64);
        AgentResult {
            number: agent.number.into(),
            address: agent.address.clone(),
            operations: sums.operations,
            bytes_read: sums.bytes_read,
            bytes_written: sums.bytes_written,
            errors: sums.errors,
            seconds: end.map_or(0.0, |(_, totals)| totals.seconds),
            late_us: late as f64 / 1e3,
            clock_error_us: agent.offset.error_ns as f64 / 1e3,
            lost: agent.lost.clone(),
        }
    });
    let by_agent: Vec<AgentResult> = by_agent.collect();
    std::mem::take(&mut conductor.ends).into_values().for_each(|(_, one)| totals.merge(one));
    totals.acts.resize_with(plan.program.acts.len(), Default::default);
    for (name, calls) in std::mem::take(&mut conductor.around) {
        *totals.around.entry(name).or_default() += calls;
    }
    let mut result = ProgramResult::new(checked.asked(request, started), &plan, &totals);
    result.watched = watch.judge(&record::load(&plan.program, &totals));
    result.server = watch.info();
    let lost = by_agent.iter().filter_map(|agent| {
        Some(format!("agent {} at {}: {}", agent.number, agent.address, agent.lost.as_ref()?))
    });
    result.degraded.extend(lost.chain(left));
    if conductor.agents.live().next().is_none() {
        result.failed = Some("all agents are lost".into());
    }
    result.by_agent = by_agent;
    Ok(result)
}

impl Conductor {
    /// The first agent makes the files of a server before the others connect.
    fn prepare(
        &mut self,
        checked: &Checked,
        request: &ProgramRequest<'_>,
        all: u64,
    ) -> Result<(), ProgramError> {
        for number in 0..all {
            let job = ProgramJob {
                target: checked.place(request).url(),
                file: request.file.display().to_string(),
                text: checked.text.clone(),
                settings: request.settings.to_vec(),
                seconds: checked.seconds(request),
                calls: u64::MAX,
                seed: request.seed,
                agent: (number, all),
                make: number == 0,
            };
            self.agents.send_to(number as u32, &ToAgent::Program(Box::new(job)))?;
            if number == 0 {
                self.expect(&[0], |message| matches!(message, FromAgent::Prepared { .. }))?;
            }
        }
        let others: Vec<u32> = (1..all as u32).collect();
        self.expect(&others, |message| matches!(message, FromAgent::Prepared { .. }))
    }

    /// The moment of the common start, on this machine's clock.
    fn start(&mut self) -> Result<u64, ProgramError> {
        let trips = self.agents.live().map(|agent| agent.offset.rtt_ns * 5);
        let at_ns = clock::mono_ns() + trips.max().unwrap_or(0).max(LEAD_NS);
        let all: Vec<_> =
            self.agents.live().map(|a| (a.number, a.offset.to_theirs(at_ns))).collect();
        for (number, at_ns) in all {
            self.agents.send_to(number, &ToAgent::RunProgram { at_ns })?;
        }
        Ok(at_ns)
    }

    /// Waits until each of these has sent what is due.
    fn expect(
        &mut self,
        numbers: &[u32],
        due: impl Fn(&FromAgent) -> bool,
    ) -> Result<(), ProgramError> {
        let mut left = numbers.to_vec();
        while !left.is_empty() {
            let event = self.agents.next(WAIT);
            if let Some(silent) = self.agents.overdue(LAB_SILENCE_MAX).first() {
                return Err(ProgramError::Agent(format!("agent {silent} is silent")));
            }
            let Some(event) = event else { continue };
            match event.message {
                None => return Err(ProgramError::Agent(format!("agent {} is gone", event.agent))),
                Some(FromAgent::Failed { what }) => {
                    return Err(ProgramError::Agent(format!("agent {}: {what}", event.agent)));
                }
                Some(message) if due(&message) => left.retain(|number| *number != event.agent),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Waits until each agent has ended its part or is lost.
    fn until_all_ended(&mut self) {
        loop {
            let ended = |number: u32| self.ends.contains_key(&number);
            if self.agents.live().all(|agent| ended(agent.number)) {
                return;
            }
            let event = self.agents.next(WAIT);
            self.agents.overdue(LAB_SILENCE_MAX);
            let Some(event) = event else { continue };
            match event.message {
                Some(FromAgent::ProgramEnd(end)) => self.ended(event.agent, *end),
                Some(FromAgent::Failed { what }) => {
                    if let Some(agent) = self.agents.all.get_mut(event.agent as usize) {
                        agent.lost.get_or_insert(what);
                    }
                }
                _ => {}
            }
        }
    }

    fn ended(&mut self, number: u32, end: ProgramEnd) {
        match serde_json::from_value(end.totals) {
            Ok(totals) => drop(self.ends.insert(number, (end.began_ns, totals))),
            Err(error) => {
                if let Some(agent) = self.agents.all.get_mut(number as usize) {
                    agent.lost.get_or_insert(error.to_string());
                }
            }
        }
    }

    /// Has the files removed; what of that failed. On directories each agent has files of its own.
    fn clean(&mut self, each: bool) -> Vec<String> {
        let live = self.agents.live().map(|agent| agent.number);
        let numbers: Vec<u32> = live.take(if each { usize::MAX } else { 1 }).collect();
        let cleaned =
            self.agents.replies(&numbers, &ToAgent::CleanProgram, CLEAN_WITHIN, |m| match m {
                FromAgent::ProgramCleaned { calls } => Some(calls),
                _ => None,
            });
        let mut left = Vec::new();
        for (_, cleaned) in cleaned {
            match cleaned {
                Ok(calls) => calls.into_iter().for_each(|(name, n)| {
                    *self.around.entry(name).or_default() += n;
                }),
                Err(error) => left.push(not_removed(&error)),
            }
        }
        left
    }
}
