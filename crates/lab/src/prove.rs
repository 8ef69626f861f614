//! `--prove`: the best load of a run again, with one thing changed at a time, in the order A B B A.
//! What that shows is judged by [`crate::verdict::prove`]; [`cores`] takes a core from a server.

pub mod cores;

use crate::ab::DISTURBED;
use crate::agent::with_sources;
use crate::client::{Target, service};
use crate::conduct::agents::Source;
use crate::conduct::server::SEEN_BY_API;
use crate::conduct::{self, Progress, RunError, RunOptions, line};
use crate::job::Job;
use crate::limit::Limiter;
use crate::measure;
use crate::record::RunResult;
use crate::verdict::prove::{self, Intervention, Proof, Reservation, Trial};
use cores::Restricted;

/// Rounds of A B B A: six pairs are the least by which an interval of 95 % ends.
const ROUNDS: usize = 3;
/// Time of each run after its warm-up, ms, unless the steps of the job are shorter.
const RUN_MS: u64 = 1_000;

/// A run without and one with the change.
struct Sides {
    without: (Job, RunOptions),
    with: (Job, RunOptions),
    /// The server's process, if it has one core less with it.
    one_core_less: Option<u32>,
}

/// What one run of a trial has shown.
struct Sample {
    ops_s: f64,
    /// The load generator limited it: the server may do more.
    at_least: bool,
    reservations: Vec<String>,
}

/// Runs the interventions at the best load of `result`, and enters them in its verdict.
///
/// # Errors
/// When there are no agents.
pub fn prove(
    job: &Job,
    options: &RunOptions,
    result: &mut RunResult,
    progress: Progress<'_>,
) -> Result<(), RunError> {
    let Some(load) = result.best_step().map(|step| (step.clients, step.threads)) else {
        return Ok(());
    };
    let mut proof = Proof::default();
    for intervention in options.prove.iter().copied() {
        let title = intervention.title();
        let sides = match sides(intervention, &row(job, load), options, result) {
            Ok(sides) => sides,
            Err(why) => {
                proof.not_run.push(format!("{title}: {why}"));
                continue;
            }
        };
        line(progress, format!("intervention: {title}"));
        match trial(intervention, &sides)? {
            Ok(trial) => proof.findings.extend(prove::judge(&trial)),
            Err(why) => proof.not_run.push(format!("{title}: {why}")),
        }
    }
    if let Some(verdict) = &mut result.limit {
        prove::apply(verdict, &proof);
    }
    result.proof = Some(proof);
    Ok(())
}

/// The job at one load for a fixed time.
fn row(job: &Job, load: (u32, u32)) -> Job {
    let mut row = job.clone();
    row.schedule = vec![load];
    (row.open, row.ramp, row.curve, row.bound, row.soak) = (None, None, None, None, None);
    row.row = None;
    row.fixed_ms = Some(RUN_MS.min(job.step_max_ms - job.warmup_ms));
    row
}

/// The two sides of an intervention, or why it cannot run.
fn sides(
    intervention: Intervention,
    row: &Job,
    options: &RunOptions,
    result: &RunResult,
) -> Result<Sides, String> {
    let load = row.schedule.first().copied().unwrap_or((1, 1));
    let mut without = options.clone();
    if let Source::Local { clients, .. } = &mut without.source {
        *clients = load.0;
    }
    let mut sides = Sides {
        with: (row.clone(), without.clone()),
        without: (row.clone(), without),
        one_core_less: None,
    };
    let (job, changed) = &mut sides.with;
    match intervention {
        Intervention::TwiceClients => {
            let Source::Local { clients, .. } = &mut changed.source else {
                return Err("it requires agents on this machine".into());
            };
            if !load.1.is_multiple_of(2) {
                return Err("the best step has an odd number of threads".into());
            }
            *clients = load.0 * 2;
            job.schedule = vec![(load.0 * 2, load.1 / 2)];
        }
        Intervention::HalfBlock if job.block > 1 => job.set_block(job.block / 2),
        Intervention::HalfBlock => return Err("the block has one byte".into()),
        Intervention::NullTarget => {
            // There is no server, and no counts that could agree.
            (changed.target, changed.scratch, changed.server_socket) = (Target::Null, None, None);
        }
        Intervention::CipherOff => {
            changed.target.omit_cipher()?;
            // What is served without TLS may lead back to TLS. Agents elsewhere find that.
            if let (Target::Service(at), Source::Local { .. }) = (&changed.target, &changed.source)
            {
                service::open(at, None).map_err(|e| with_sources(&e))?;
            }
        }
        Intervention::OneCoreLess => {
            // By its local socket it is known to be of this machine.
            let own = result.server.pid.filter(|_| result.server.seen == SEEN_BY_API);
            let pid = own.ok_or("it requires a Plimsoll server, named by --server-socket")?;
            sides.one_core_less = Some(pid);
        }
    }
    Ok(sides)
}

/// Runs both sides in the order A B B A.
fn trial(intervention: Intervention, sides: &Sides) -> Result<Result<Trial, String>, RunError> {
    let without = || run(&sides.without);
    let with = || {
        let restricted = match sides.one_core_less.map(Restricted::new) {
            Some(Err(why)) => return Ok(Err(why)),
            Some(Ok(restricted)) => Some(restricted),
            None => None,
        };
        let sample = run(&sides.with);
        match restricted.map(Restricted::end) {
            Some(Err(why)) => Ok(Err(why)),
            _ => sample,
        }
    };
    let mut trial = Trial::new(intervention);
    for _ in 0..ROUNDS {
        let (a1, b1, b2, a2) = (without()?, with()?, with()?, without()?);
        for (a, b) in [(a1, b1), (a2, b2)] {
            match (a, b) {
                (Ok(a), Ok(b)) => note(&mut trial, [a, b]),
                (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
            }
        }
    }
    Ok(Ok(trial))
}

/// Enters a pair of runs, without and with the change.
fn note(trial: &mut Trial, pair: [Sample; 2]) {
    trial.pairs.push((pair[0].ops_s, pair[1].ops_s));
    for (side, sample) in pair.into_iter().enumerate() {
        trial.at_least[side] += u32::from(sample.at_least);
        for text in sample.reservations {
            match trial.reservations.iter_mut().find(|known| known.text == text) {
                Some(known) => known.runs += 1,
                None => trial.reservations.push(Reservation { text, runs: 1 }),
            }
        }
    }
}

/// Makes one run.
fn run((job, options): &(Job, RunOptions)) -> Result<Result<Sample, String>, RunError> {
    let result = conduct::run(job, options, &mut |_| {})?;
    if let Some(why) = result.incomparable() {
        return Ok(Err(why));
    }
    let Some(step) = result.best_step() else { return Ok(Err("no step ended".to_owned())) };
    let limiter = result.limit.as_ref().map(|verdict| verdict.limiter);
    let disturbed = measure::others(&result).is_some_and(|share| share >= DISTURBED);
    // How much runs vary is in the interval of the ratio.
    let unsteady = result.unsteady();
    let mut reservations = result.degraded.clone();
    reservations.retain(|what| Some(what) != unsteady.as_ref());
    reservations.extend(disturbed.then(|| "other processes used the CPU".to_owned()));
    Ok(Ok(Sample {
        ops_s: step.ops_s,
        at_least: matches!(limiter, Some(Limiter::Generator | Limiter::NotReached)),
        reservations,
    }))
}
