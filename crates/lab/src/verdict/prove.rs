//! What interventions show: the same load with one thing changed, in the order A B B A, and which
//! explanation each of them refutes. A pure function of the figures.
//!
//! A verdict from counters shows what was busy; an intervention shows what it costs. The interval
//! of a ratio comes from the pairs of neighbouring runs, by signed ranks, so that a drift of the
//! machine cancels and no distribution is assumed.

use super::ranks::paired;
use crate::limit::{Limiter, Verdict};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A throughput that changes by less than this share has not changed.
const SAME: f64 = 0.10;
/// With one core less throughput falls at least by this share if the server's CPU limits.
const FALLS: f64 = 0.10;
/// With half the block this many times the operations are started if bytes limit; 1 if operations
/// do, 2 if nothing but bytes counts.
const BYTES: f64 = 1.5;
/// Against nothing the generator must reach this many times the operations not to be the limiter.
const ABOVE_NULL: f64 = 1.0 / 0.7;
/// Probability that an interval misses the ratio.
const LEVEL: f64 = 0.05;
/// What a verdict that an intervention supports gains in confidence.
const GAINED: f64 = 0.05;
/// Confidence in a verdict that an intervention refutes.
const REFUTED: f64 = 0.3;

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intervention {
    /// As many threads, on twice the clients.
    TwiceClients,
    /// Blocks of half the size.
    HalfBlock,
    /// Against nothing.
    NullTarget,
    /// Without encryption and signatures.
    CipherOff,
    /// The server has one core less.
    OneCoreLess,
}

impl Intervention {
    /// All, in the order in which they run.
    pub const ALL: [Self; 5] =
        [Self::TwiceClients, Self::HalfBlock, Self::NullTarget, Self::CipherOff, Self::OneCoreLess];

    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::TwiceClients => "twice-clients",
            Self::HalfBlock => "half-block",
            Self::NullTarget => "null-target",
            Self::CipherOff => "cipher-off",
            Self::OneCoreLess => "one-core-less",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::TwiceClients => "as many threads on twice the clients",
            Self::HalfBlock => "half the block",
            Self::NullTarget => "against nothing",
            Self::CipherOff => "without encryption",
            Self::OneCoreLess => "one core less for the server",
        }
    }
}

/// Interventions that a command line names: `all`, or names with commas between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(pub Vec<Intervention>);

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Intervention::ALL.to_vec()));
        }
        let one = |name: &str| {
            let found = Intervention::ALL.into_iter().find(|i| i.name() == name);
            let all = Intervention::ALL.map(Intervention::name).join(", ");
            found.ok_or_else(|| format!("{name:?} is not an intervention: all, {all}"))
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

/// One intervention that ran: operations per second of neighbouring runs, without and with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What was changed.
    pub intervention: Intervention,
    /// Pairs of neighbouring runs: (without, with).
    pub pairs: Vec<(f64, f64)>,
    /// Of these, runs in which the load generator was the limiter, so that their figure is the
    /// least that the server does: without, with.
    pub at_least: [u32; 2],
    /// What else limits the value of the figures.
    pub reservations: Vec<Reservation>,
}

impl Trial {
    /// Without runs yet.
    pub fn new(intervention: Intervention) -> Self {
        Self { intervention, pairs: Vec::new(), at_least: [0; 2], reservations: Vec::new() }
    }
}

/// What limits the value of the figures of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// In words.
    pub text: String,
    /// Runs of the trial that it is about.
    pub runs: u32,
}

/// What one intervention has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What was changed.
    pub intervention: Intervention,
    /// Operations per second with it ÷ without it.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
    /// What is not the limiter, then.
    pub refutes: Vec<Limiter>,
    /// What is, then.
    pub supports: Vec<Limiter>,
    /// The load generator limited runs with it: the ratio may be larger.
    #[serde(default)]
    pub at_least: bool,
    /// The load generator limited runs without it: the ratio may be smaller.
    #[serde(default)]
    pub at_most: bool,
    /// What else limits the value of the ratio.
    #[serde(default)]
    pub reservations: Vec<String>,
    /// In words: what changed, and what it would have refuted.
    pub sentence: String,
}

/// What all interventions have shown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Proof {
    /// Those that ran.
    pub findings: Vec<Finding>,
    /// Those that did not, with the reason.
    pub not_run: Vec<String>,
}

/// What holds if a ratio is clearly on one side of its threshold.
struct Rule {
    threshold: f64,
    below_refutes: &'static [Limiter],
    below_supports: &'static [Limiter],
    above_refutes: &'static [Limiter],
    above_supports: &'static [Limiter],
    /// Whether runs without, with it may be limited by the load generator: the intervention is
    /// about that.
    generator: [bool; 2],
    /// What the intervention is for.
    about: &'static str,
}

const CPU: &[Limiter] = &[Limiter::ServerCpu, Limiter::CpuShared, Limiter::CpuQuota];

fn rule(intervention: Intervention) -> Rule {
    use Limiter::{Disk, Generator, Latency, Network};
    let none = Rule {
        threshold: 1.0 + SAME,
        below_refutes: &[],
        below_supports: &[],
        above_refutes: &[],
        above_supports: &[],
        generator: [false; 2],
        about: "",
    };
    match intervention {
        Intervention::TwiceClients => Rule {
            below_refutes: &[Generator],
            above_refutes: &[Network, Disk, Latency],
            above_supports: &[Generator],
            generator: [true, false],
            about: "if a client limits, throughput rises",
            ..none
        },
        Intervention::HalfBlock => Rule {
            threshold: BYTES,
            below_refutes: &[Network],
            above_refutes: &[Latency],
            above_supports: &[Network],
            about: "if bytes limit, twice the operations are completed",
            ..none
        },
        Intervention::NullTarget => Rule {
            threshold: ABOVE_NULL,
            below_supports: &[Generator],
            above_refutes: &[Generator],
            generator: [true; 2],
            about: "if the load generator limits, it reaches no more against nothing",
            ..none
        },
        Intervention::CipherOff => Rule {
            above_refutes: &[Network, Disk, Latency],
            above_supports: CPU,
            about: "if the CPU time of the cipher limits, throughput rises",
            ..none
        },
        Intervention::OneCoreLess => Rule {
            threshold: 1.0 - FALLS,
            below_refutes: &[Network, Disk, Latency, Generator],
            below_supports: CPU,
            above_refutes: CPU,
            about: "if the server's CPU limits, throughput falls",
            ..none
        },
    }
}

/// What a trial has shown; `None` without figures.
pub fn judge(trial: &Trial) -> Option<Finding> {
    let valid = trial.pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
    let logs: Vec<f64> = valid.map(|(a, b)| (b / a).ln()).collect();
    let shift = paired(&logs, LEVEL)?;
    let (ratio, low, high) = (shift.value.exp(), shift.low.exp(), shift.high.exp());
    let rule = rule(trial.intervention);
    let bounded = |side: usize| trial.at_least[side] > 0 && !rule.generator[side];
    let (at_most, at_least) = (bounded(0), bounded(1));
    let (refutes, supports) = if high < rule.threshold && !at_least {
        (rule.below_refutes, rule.below_supports)
    } else if low > rule.threshold && !at_most {
        (rule.above_refutes, rule.above_supports)
    } else {
        (&[] as &[_], &[] as &[_])
    };
    let reservations = reservations(trial, at_most, at_least);
    let bound = match (at_most, at_least) {
        (false, true) => "at least ",
        (true, false) => "at most ",
        _ => "",
    };
    let mut sentence = format!(
        "{}: {bound}{ratio:.2} times the operations ({low:.2} to {high:.2}); {}, {}",
        trial.intervention.title(),
        rule.about,
        shows(refutes, supports, rule.threshold)
    );
    for reservation in &reservations {
        sentence += &format!("; {reservation}");
    }
    Some(Finding {
        intervention: trial.intervention,
        ratio,
        interval: (low, high),
        refutes: refutes.to_vec(),
        supports: supports.to_vec(),
        at_least,
        at_most,
        reservations,
        sentence,
    })
}

/// What a finding decides, in words.
fn shows(refutes: &[Limiter], supports: &[Limiter], threshold: f64) -> String {
    let list = |all: &[Limiter]| {
        let titles: Vec<&str> = all.iter().map(|limiter| limiter.title()).collect();
        titles.join(", ")
    };
    match (refutes, supports) {
        ([], []) => format!("it decides nothing (threshold {threshold:.2})"),
        (refutes, []) => format!("it refutes: {}", list(refutes)),
        ([], supports) => format!("it supports: {}", list(supports)),
        (refutes, supports) => {
            format!("it supports: {}; it refutes: {}", list(supports), list(refutes))
        }
    }
}

/// What limits the value of the ratio, in sentences.
fn reservations(trial: &Trial, at_most: bool, at_least: bool) -> Vec<String> {
    let all = trial.pairs.len();
    let bound = |runs: u32, which: &str| {
        format!("the load generator limited {runs} of {all} runs {which} it")
    };
    let bounds = [(at_most, trial.at_least[0], "without"), (at_least, trial.at_least[1], "with")];
    let bounds = bounds.into_iter().filter(|b| b.0).map(|b| bound(b.1, b.2));
    let others = trial.reservations.iter();
    bounds.chain(others.map(|r| format!("{} of {} runs: {}", r.runs, 2 * all, r.text))).collect()
}

/// Enters what the interventions have shown into a verdict: it cites those that ran, and a limiter
/// that one of them refutes is none. What limits the value of a ratio is a mark.
pub fn apply(verdict: &mut Verdict, proof: &Proof) {
    let named = verdict.limiter;
    let refuted: Vec<&Finding> =
        proof.findings.iter().filter(|f| f.refutes.contains(&named)).collect();
    let supported = proof.findings.iter().filter(|f| f.supports.contains(&named)).count();
    for finding in &proof.findings {
        verdict.why.push(finding.sentence.clone());
        let what = finding.intervention.title();
        let marks = finding.reservations.iter().map(|r| format!("intervention {what}: {r}"));
        verdict.marks.extend(marks);
    }
    if let Some(first) = refuted.first() {
        verdict.why.insert(
            0,
            format!(
                "{} is refuted by the intervention {}",
                named.title(),
                first.intervention.title()
            ),
        );
        verdict.ruled_out.push(format!("{}: {}", named.title(), first.sentence));
        verdict.limiter = supported_only(proof).unwrap_or(Limiter::Unknown);
        verdict.confidence = REFUTED;
    } else if supported > 0 {
        verdict.confidence = (verdict.confidence + GAINED * supported as f64).min(0.99);
    }
}

/// The one limiter that interventions support and none refutes.
fn supported_only(proof: &Proof) -> Option<Limiter> {
    let all = proof.findings.iter().flat_map(|f| f.supports.first().copied());
    let refuted = |limiter: &Limiter| proof.findings.iter().any(|f| f.refutes.contains(limiter));
    let mut left: Vec<Limiter> = all.filter(|limiter| !refuted(limiter)).collect();
    left.dedup();
    (left.len() == 1).then(|| left[0])
}

#[cfg(test)]
mod tests;
