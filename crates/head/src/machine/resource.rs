//! A resource as its head sees it.

use crate::limits::{HEAD_FAILURES_MAX, HEAD_RETRY_AFTER, HEAD_STABLE_AFTER};

use super::Time;
use crate::keys::{LeaseId, Takeover};

/// What a head does with a resource; named after what it waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: another head owns it, or no head.
    #[default]
    Offline,
    /// The answer to a claim.
    Claiming,
    /// The fences.
    Fencing,
    /// The process, until it serves.
    Starting,
    /// It serves.
    Owner,
    /// The process drains; another head is to own it.
    HandingOver,
    /// The end of the process, which was killed.
    Ending,
    /// The owner key is to be deleted.
    Releasing,
}

/// A resource.
#[derive(Debug, Default, Clone)]
pub struct Resource {
    /// What is done with it.
    pub phase: Phase,
    /// Since when.
    pub since: Time,
    /// The number of the last ownership of this head.
    pub number: u64,
    /// Revision of the owner key of that ownership.
    pub revision: u64,
    /// Its lease.
    pub lease: LeaseId,
    /// When this head learned of that ownership.
    pub owned_since: Time,
    /// Since when it serves, the last time.
    pub serving_since: Time,
    /// Since when no head owns it.
    pub vacant: Option<Time>,
    /// Numbers up to this one are used, whatever the record has.
    pub at_least: u64,
    /// No claim before that time.
    pub retry: Time,
    /// Failures in a row.
    pub failures: u32,
    /// Why it is not tried again here.
    pub failed: Option<String>,
    /// The last thing that went wrong, or what is waited for.
    pub why: Option<String>,
    /// Why clients do not reach its address at this head, if they do not.
    pub cut: Option<String>,
    /// The head to which it is handed over.
    pub target: Option<String>,
    /// Whether the deletion of its owner key was requested.
    pub released: bool,
    /// Since when it is to be handed over to this head.
    pub awaited: Option<Time>,
    /// Since when it had no owner before the claim.
    pub free: Time,
    /// Times of the phases before the fences, in milliseconds: hand-over, claim.
    pub before: (u64, u64),
    /// The last claim of this head.
    pub taken: Takeover,
    /// Whether the former owner was lost with its head then.
    pub lost: bool,
    /// The number of the last ownership before that which served clients.
    pub served: u64,
    /// The takeover that is done, until it is recorded.
    pub report: Option<Takeover>,
}

impl Resource {
    /// Whether a process or a lock may exist.
    pub fn runs(&self) -> bool {
        !matches!(self.phase, Phase::Offline | Phase::Claiming | Phase::Releasing)
    }

    /// As an administrator sees it.
    pub fn state(&self) -> &'static str {
        match self.phase {
            Phase::Owner => "owner",
            Phase::HandingOver => "handing over",
            Phase::Claiming | Phase::Fencing | Phase::Starting => "starting",
            Phase::Offline | Phase::Ending | Phase::Releasing if self.failed.is_some() => "failed",
            Phase::Offline | Phase::Ending | Phase::Releasing => "offline",
        }
    }

    pub(super) fn enter(&mut self, phase: Phase, now: Time) {
        self.phase = phase;
        self.since = now;
        self.vacant = None;
        self.released = false;
        if phase == Phase::Owner {
            self.serving_since = now;
        }
    }

    /// The key is this head's; the fences follow.
    pub(super) fn own(&mut self, now: Time, lease: LeaseId, number: u64, revision: u64) {
        (self.number, self.revision, self.lease, self.owned_since) = (number, revision, lease, now);
        self.target = None;
        let hand_over = self.awaited.take().map_or(Time::ZERO, |at| self.free.saturating_sub(at));
        self.before = (millis(hand_over), millis(now.saturating_sub(self.free)));
        self.report = None;
        self.enter(Phase::Fencing, now);
    }

    /// Counts a failure; after some in a row it is not tried again here.
    pub(super) fn fail(&mut self, now: Time, why: &str) {
        if self.phase == Phase::Owner && now >= self.serving_since + HEAD_STABLE_AFTER {
            self.failures = 0;
        }
        self.failures += 1;
        self.why = Some(why.to_owned());
        self.retry = now + HEAD_RETRY_AFTER;
        if self.failures >= HEAD_FAILURES_MAX {
            self.failed = Some(why.to_owned());
        }
    }
}

fn millis(time: Time) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
