//! IOzone's tests on several agents: each has every n-th child, and all begin together.

use super::children::{Child, Outcome};
use super::flags::{Settings, Test};
use crate::agent::clock;
use crate::agent::proto::{FromAgent, IOZONE_VERSION, IozoneJob, TestEnd, ToAgent};
use crate::client::Target;
use crate::conduct::agents::{Agents, Source};
use crate::programs::conduct::CLEAN_WITHIN;
use crate::programs::run::{ProgramError, not_removed};
use base::limits::LAB_SILENCE_MAX;
use std::time::Duration;

/// Time between the command and the start, ns: more than any agent takes to open its files.
const LEAD_NS: u64 = 300_000_000;
/// How long one wait for messages takes at most.
const WAIT: Duration = Duration::from_millis(100);

/// The agents of a run.
pub struct Fleet {
    agents: Agents,
    settings: Settings,
    /// Processor time of the last test, seconds.
    pub cpu_s: f64,
}

impl Fleet {
    /// Gathers the agents and has them connect their children.
    ///
    /// # Errors
    /// The agents are unavailable, or one cannot prepare.
    pub fn prepare(
        source: &Source,
        settings: &Settings,
        seed: u64,
        place: &Target,
    ) -> Result<Self, ProgramError> {
        let agents = Agents::gather(source, false)?;
        if let Some(old) = agents.all.iter().find(|agent| agent.version < IOZONE_VERSION) {
            return Err(ProgramError::Agent(format!(
                "the agent at {} ({}) has no tests of IOzone: use the version of this one",
                old.address, old.program
            )));
        }
        let all = agents.all.len() as u64;
        if all > settings.threads.into() {
            let children = settings.threads;
            let why = format!("{all} agents for {children} children: use -t {all} or more");
            return Err(ProgramError::Refused(why));
        }
        let mut fleet = Self { agents, settings: settings.clone(), cpu_s: 0.0 };
        for number in 0..all {
            let job = IozoneJob {
                target: place.url(),
                settings: settings.clone(),
                seed,
                agent: (number, all),
                make: number == 0,
                first_end: true,
            };
            fleet.agents.send_to(number as u32, &ToAgent::Iozone(Box::new(job)))?;
            // The first one makes the folder of a server before the others connect.
            fleet.each(&[number as u32], |message| {
                matches!(message, FromAgent::Prepared { .. }).then_some(())
            })?;
        }
        Ok(fleet)
    }

    /// The machines of the agents.
    pub fn machines(&self) -> Vec<serde_json::Value> {
        self.agents.all.iter().map(|agent| agent.machine.clone()).collect()
    }

    fn numbers(&self) -> Vec<u32> {
        self.agents.live().map(|agent| agent.number).collect()
    }

    /// Waits until each of these has sent what is due.
    fn each<T>(
        &mut self,
        numbers: &[u32],
        pick: impl Fn(FromAgent) -> Option<T>,
    ) -> Result<Vec<(u32, T)>, ProgramError> {
        let mut found = Vec::new();
        while found.len() < numbers.len() {
            found.extend(self.next(&pick)?);
        }
        Ok(found)
    }

    /// The next message that is due, if one comes in time.
    fn next<T>(
        &mut self,
        pick: impl Fn(FromAgent) -> Option<T>,
    ) -> Result<Option<(u32, T)>, ProgramError> {
        let event = self.agents.next(WAIT);
        if let Some(silent) = self.agents.overdue(LAB_SILENCE_MAX).first() {
            return Err(ProgramError::Agent(format!("agent {silent} is silent")));
        }
        let Some(event) = event else { return Ok(None) };
        match event.message {
            None => Err(ProgramError::Agent(format!("agent {} is gone", event.agent))),
            Some(FromAgent::Failed { what }) => {
                Err(ProgramError::Agent(format!("agent {}: {what}", event.agent)))
            }
            Some(message) => Ok(pick(message).map(|found| (event.agent, found))),
        }
    }

    /// Carries out a test on all agents. With the stonewall all end when the first child has.
    ///
    /// # Errors
    /// An agent is lost, or cannot do it.
    pub fn run(&mut self, test: Test, number: u64) -> Result<Outcome, ProgramError> {
        let ends = self.ends(test, number);
        if ends.is_err() {
            // What the others do has no reader any more.
            for agent in self.numbers() {
                let _gone = self.agents.send_to(agent, &ToAgent::Stop { at_ns: 1 });
            }
        }
        let ends = ends?;
        self.cpu_s = ends.iter().map(|end| end.cpu_s).sum();
        let mut children = vec![Child::default(); self.settings.threads as usize];
        for child in ends.into_iter().flat_map(|end| end.outcome.children) {
            if let Some(own) = children.get_mut(child.number as usize) {
                *own = child;
            }
        }
        let parent_ns = children.iter().map(|child| child.end_ns).max().unwrap_or(0).max(1);
        Ok(Outcome { children, parent_ns })
    }

    /// Starts a test on all agents, and waits for the end of each: their files are complete then.
    fn ends(&mut self, test: Test, number: u64) -> Result<Vec<TestEnd>, ProgramError> {
        let trips = self.agents.live().map(|agent| agent.offset.rtt_ns * 5);
        let at_ns = clock::mono_ns() + trips.max().unwrap_or(0).max(LEAD_NS);
        let all: Vec<_> =
            self.agents.live().map(|a| (a.number, a.offset.to_theirs(at_ns))).collect();
        for (agent, at_ns) in all {
            self.agents.send_to(agent, &ToAgent::RunTest { test, number, at_ns })?;
        }
        let numbers = self.numbers();
        let mut ends: Vec<TestEnd> = Vec::new();
        let mut stopped = self.settings.no_stonewall;
        while ends.len() < numbers.len() {
            // From an agent of an earlier version its own end is the first news.
            let news = self.next(|message| match message {
                FromAgent::FirstEnd => Some(None),
                FromAgent::TestEnd(end) => Some(Some(*end)),
                _ => None,
            })?;
            let Some((_, end)) = news else { continue };
            ends.extend(end);
            if !std::mem::replace(&mut stopped, true) {
                for agent in &numbers {
                    self.agents.send_to(*agent, &ToAgent::Stop { at_ns: 1 })?;
                }
            }
        }
        Ok(ends)
    }

    /// Disconnects the children, and removes their files unless they stay; what of that failed, and
    /// agents that are lost.
    pub fn clean(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        for number in self.numbers() {
            // One after the other: the last one removes the folder of a server.
            let cleaned =
                self.agents.replies(&[number], &ToAgent::CleanTests, CLEAN_WITHIN, |message| {
                    matches!(message, FromAgent::Cleaned).then_some(())
                });
            let errors = cleaned.into_iter().filter_map(|(_, cleaned)| cleaned.err());
            left.extend(errors.map(|error| not_removed(&error)));
        }
        let lost = self.agents.all.iter().filter_map(|agent| {
            Some(format!("agent {} at {}: {}", agent.number, agent.address, agent.lost.as_ref()?))
        });
        left.extend(lost);
        left
    }
}
