//! `--prove`: the best load of a run again, with one thing changed at a time, in the order A B B A.
//! What that shows is judged by [`crate::verdict::prove`].

use crate::client::Target;
use crate::conduct::agents::Source;
use crate::conduct::{self, Progress, RunError, RunOptions, line};
use crate::job::Job;
use crate::record::RunResult;
use crate::shape::RowShape;
use crate::verdict::prove::{self, Intervention, Proof, Trial};

/// Rounds of A B B A: six pairs are the least by which an interval of 95 % ends.
const ROUNDS: usize = 3;
/// Time of each run after its warm-up.
const SECONDS: u32 = 1;

/// A run without and one with the change.
struct Sides {
    without: (Job, RunOptions),
    with: (Job, RunOptions),
    /// Cores that the server may use with it, of those that it may use without.
    cores: Option<ServerCores>,
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
    for intervention in Intervention::ALL {
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
    row.row = Some(RowShape { seconds: SECONDS });
    row
}

/// The two sides of an intervention, or why it cannot run.
fn sides(
    intervention: Intervention,
    row: &Job,
    options: &RunOptions,
    result: &RunResult,
) -> Result<Sides, &'static str> {
    let load = row.schedule.first().copied().unwrap_or((1, 1));
    let mut without = options.clone();
    if let Source::Local { clients, .. } = &mut without.source {
        *clients = load.0;
    }
    let mut sides = Sides {
        with: (row.clone(), without.clone()),
        without: (row.clone(), without),
        cores: None,
    };
    let (job, changed) = &mut sides.with;
    match intervention {
        Intervention::TwiceClients => {
            let Source::Local { clients, .. } = &mut changed.source else {
                return Err("it requires agents on this machine");
            };
            if !load.1.is_multiple_of(2) {
                return Err("the best step has an odd number of threads");
            }
            *clients = load.0 * 2;
            job.schedule = vec![(load.0 * 2, load.1 / 2)];
        }
        Intervention::HalfBlock if job.block > 1 => job.set_block(job.block / 2),
        Intervention::HalfBlock => return Err("the block has one byte"),
        Intervention::NullTarget => {
            (changed.target, changed.scratch) = (Target::Null, None);
        }
        Intervention::CipherOff if changed.target.omit_cipher() => {}
        Intervention::CipherOff => return Err("the target has no cipher that a client can omit"),
        Intervention::OneCoreLess => {
            let own = options.server_socket.is_some().then_some(result.server.pid).flatten();
            let pid = own.ok_or("it requires a Plimsoll server, named by --server-socket")?;
            sides.cores = Some(ServerCores::of(pid)?);
        }
    }
    Ok(sides)
}

/// Runs both sides in the order A B B A.
fn trial(intervention: Intervention, sides: &Sides) -> Result<Result<Trial, String>, RunError> {
    let without = || run(&sides.without);
    let with = || {
        let _less = match sides.cores.as_ref().map(ServerCores::less) {
            Some(Err(why)) => return Ok(Err(why)),
            Some(Ok(less)) => Some(less),
            None => None,
        };
        run(&sides.with)
    };
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let (a1, b1, b2, a2) = (without()?, with()?, with()?, without()?);
        for (a, b) in [(a1, b1), (a2, b2)] {
            match (a, b) {
                (Ok(a), Ok(b)) => pairs.push((a, b)),
                (Err(why), _) | (_, Err(why)) => return Ok(Err(why)),
            }
        }
    }
    Ok(Ok(Trial { intervention, pairs }))
}

/// Operations per second of a run.
fn run((job, options): &(Job, RunOptions)) -> Result<Result<f64, String>, RunError> {
    let result = conduct::run(job, options, &mut |_| {})?;
    if let Some(why) = result.failed {
        return Ok(Err(why));
    }
    let step = result.best_step().ok_or_else(|| "no step ended".to_owned());
    Ok(step.map(|step| step.ops_s))
}

/// The cores that a server's threads may use.
struct ServerCores {
    pid: u32,
    all: libc::cpu_set_t,
    less: libc::cpu_set_t,
}

/// Gives the server its cores back at its end.
struct Less<'a>(&'a ServerCores);

impl ServerCores {
    fn of(pid: u32) -> Result<Self, &'static str> {
        // SAFETY: a set of cores is plain numbers.
        let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes at most the size given to a set of that size.
        let code =
            unsafe { libc::sched_getaffinity(pid as libc::pid_t, size_of_val(&all), &mut all) };
        if code != 0 {
            return Err("the cores of the server's process are not readable");
        }
        // SAFETY: the index is below the number of bits of a set.
        let has = |core: &usize| unsafe { libc::CPU_ISSET(*core, &all) };
        let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(has).collect();
        let (Some(last), true) = (cores.last(), cores.len() > 1) else {
            return Err("the server has one core");
        };
        let mut less = all;
        // SAFETY: as above.
        unsafe { libc::CPU_CLR(*last, &mut less) };
        Ok(Self { pid, all, less })
    }

    fn less(&self) -> Result<Less<'_>, String> {
        self.set(&self.less)
            .map_err(|e| format!("cannot restrict the server to fewer cores: {e}"))?;
        Ok(Less(self))
    }

    /// Sets the cores of all threads.
    fn set(&self, cores: &libc::cpu_set_t) -> std::io::Result<()> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid))?.flatten();
        let ids = tasks.filter_map(|task| task.file_name().to_string_lossy().parse().ok());
        for id in ids {
            // SAFETY: reads a set of the size given.
            let code = unsafe { libc::sched_setaffinity(id, size_of_val(cores), cores) };
            let error = std::io::Error::last_os_error();
            // A thread may have ended meanwhile.
            if code != 0 && error.raw_os_error() != Some(libc::ESRCH) {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Less<'_> {
    fn drop(&mut self) {
        // A server that has ended has no cores to give back.
        let _ended = self.0.set(&self.0.all);
    }
}
