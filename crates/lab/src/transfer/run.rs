//! The rounds of a comparison.
//!
//! Connections are made before the clock starts: the time of signing in is reported separately. The
//! content lies ready in memory where it fits, so that the client's CPU is the protocol's.

use super::plan::Plan;
use super::record::{Comparison, Direction, Line, Sample, VERSION};
use crate::agent::clock::mono_ns;
use crate::agent::with_sources;
use crate::client::service::at::ServiceAt;
use crate::client::service::{self, Failure, Session};
use crate::client::{Checker, ClientError, FileSet, Target};
use crate::observe::ObservedTarget;
use crate::pattern::Content;
use crate::proc;
use crate::record::ServerInfo;
use base::limits::{LAB_CONTENT_MAX, LAB_STREAM_BUFFER};
use base::random::{Random, SeededRandom};
use host::Root;
use host::observe::family::Family;
use host::observe::netns;
use probe::core::thread_cpu_ns;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

/// How a comparison is run.
pub struct ComparisonRequest<'a> {
    /// What is compared.
    pub plan: &'a Plan,
    /// Over what.
    pub targets: &'a [ServiceAt],
    /// The servers' processes, if they are known, one for each target or one for all; else they are
    /// looked for at the targets' ports.
    pub server_pids: &'a [u32],
    /// The command that repeats the run.
    pub command: Vec<String>,
    /// A comparison of the same that was broken off; its rounds are kept.
    pub earlier: Option<Comparison>,
}

/// Progress reports: the comparison so far, after each round.
pub type Progress<'a> = &'a mut dyn FnMut(&Comparison, u32);

/// The content of the files, and how to check it.
struct Files {
    set: FileSet,
    checker: Checker,
    /// All files, if they are not too much.
    ready: Option<Vec<Vec<u8>>>,
}

impl Files {
    fn new(plan: &Plan) -> Self {
        let (set, content) = (plan.set(), Content::new(plan.seed));
        let make = |file: u32| {
            let mut bytes = vec![0; usize::try_from(set.size).unwrap_or(0)];
            content.fill(set.content_key(file), 0, &mut bytes);
            bytes
        };
        let ready = (plan.bytes() <= LAB_CONTENT_MAX).then(|| (0..set.files).map(make).collect());
        Self { ready, checker: Checker::new(content, plan.check_one_in), set }
    }

    fn upload(
        &self,
        session: &mut dyn Session,
        path: &str,
        file: u32,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        session.open_write(path, self.set.size)?;
        if let Some(bytes) = self.ready.as_ref().and_then(|all| all.get(file as usize)) {
            for piece in bytes.chunks(LAB_STREAM_BUFFER) {
                session.write(piece)?;
            }
            return session.close_write();
        }
        let mut at = 0;
        while at < self.set.size {
            let len = (self.set.size - at).min(buffer.len() as u64) as usize;
            self.checker.content.fill(self.set.content_key(file), at, &mut buffer[..len]);
            session.write(&buffer[..len])?;
            at += len as u64;
        }
        session.close_write()
    }

    fn download(
        &self,
        session: &mut dyn Session,
        path: &str,
        file: u32,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        let wrong = |why: String| Failure::Broken(ClientError::Protocol(format!("{path}: {why}")));
        session.open_read(path, 0, None)?;
        let mut at = 0;
        loop {
            let n = session.read(buffer)?;
            if n == 0 {
                break;
            }
            let (key, part) = (self.set.content_key(file), &buffer[..n]);
            if at + n as u64 > self.set.size {
                return Err(wrong("more data received than sent".into()));
            }
            if !self.checker.is_right(key, 0, self.set.size, at, part) {
                return Err(wrong(format!("wrong content near byte {at}")));
            }
            at += n as u64;
        }
        if at < self.set.size {
            return Err(wrong(format!("received {at} bytes of {}", self.set.size)));
        }
        session.close_read()
    }
}

/// Runs a comparison. Whatever goes wrong is in the result: `failed`, `degraded`.
pub fn run(wanted: &ComparisonRequest<'_>, progress: Progress<'_>) -> Comparison {
    let files = Files::new(wanted.plan);
    let (mut result, mut servers, first) = begin(wanted);
    for (line, at) in result.lines.iter_mut().zip(wanted.targets) {
        if let Err(error) = make_folder(at, &files.set) {
            line.failed = Some(with_sources(&error));
        }
    }
    for round in first..wanted.plan.rounds {
        for number in order(wanted.targets.len(), wanted.plan.seed, round) {
            let line = result.lines.get_mut(number).zip(servers.get_mut(number));
            let Some(((line, server), at)) = line.zip(wanted.targets.get(number)) else { continue };
            for way in Direction::BOTH {
                if line.failed.is_none()
                    && let Err(error) = turn(line, server, at, wanted.plan, &files, (round, way))
                {
                    line.failed = Some(format!("{} {round}: {}", way.name(), with_sources(&error)));
                }
            }
        }
        result.derive();
        result.ended = base::clock::wall_ns() as f64 / 1e9;
        progress(&result, round);
        if result.lines.iter().all(|line| line.failed.is_some()) {
            break;
        }
    }
    for (at, line) in wanted.targets.iter().zip(&result.lines) {
        if let (Err(error), None) = (clean(at, &files.set), &line.failed) {
            let why = with_sources(&error);
            result.degraded.push(format!("files were not removed on {at}: {why}"));
        }
    }
    conclude(&mut result);
    result
}

/// Carries one way of one target out and keeps what it took.
fn turn(
    line: &mut Line,
    server: &mut Option<Family>,
    at: &ServiceAt,
    plan: &Plan,
    files: &Files,
    (round, way): (u32, Direction),
) -> Result<(), ClientError> {
    let (sample, cipher) = transfer(at, plan, files, (round, way), server)?;
    line.samples.push(sample);
    line.cipher = cipher;
    Ok(())
}

/// The comparison before its first round, the servers' processes, and the first round.
fn begin(wanted: &ComparisonRequest<'_>) -> (Comparison, Vec<Option<Family>>, u32) {
    let now = base::clock::wall_ns() as f64 / 1e9;
    let mut result = Comparison {
        kind: "comparison".into(),
        format: VERSION,
        program: concat!("plimsoll ", env!("CARGO_PKG_VERSION")).into(),
        started: now,
        ended: now,
        plan: wanted.plan.clone(),
        command: wanted.command.clone(),
        client: proc::machine(),
        lines: Vec::new(),
        findings: Vec::new(),
        degraded: Vec::new(),
        failed: None,
    };
    let mut servers = Vec::new();
    for (number, at) in wanted.targets.iter().enumerate() {
        let pid = wanted.server_pids.get(number).or(match wanted.server_pids {
            [all] => Some(all),
            _ => None,
        });
        let (server, family) = server_of(at, pid.copied());
        result.lines.push(line(at, wanted.targets, server));
        servers.push(family);
    }
    let first = wanted.earlier.as_ref().map_or(0, |earlier| take_over(&mut result, earlier));
    (result, servers, first)
}

/// The server of a target: its process if that is stated, else the one that listens there, in any
/// network namespace of this machine; with all that it starts.
pub(super) fn server_of(at: &ServiceAt, pid: Option<u32>) -> (ServerInfo, Option<Family>) {
    let root = Root::default();
    let found = match pid {
        Some(pid) => Ok((vec![pid], None)),
        None => {
            let target = ObservedTarget::of(&Target::Service(at.clone()));
            netns::find(&root, &target.addresses, at.port).map(|found| {
                let namespace = format!("net:[{}]", found.namespace);
                (found.pids, (!found.own_namespace).then_some(namespace))
            })
        }
    };
    match found {
        Ok((pids, namespace)) => {
            let info = ServerInfo {
                seen: "process".into(),
                namespace,
                pid: pids.first().copied(),
                machine: Some(proc::machine()),
                ..Default::default()
            };
            (info, Family::new(&root, &pids))
        }
        Err(why) => {
            let unseen = Some(why.to_string());
            (ServerInfo { seen: "unseen".into(), unseen, ..Default::default() }, None)
        }
    }
}

/// Takes over the whole rounds of a comparison of the same; which round comes next.
fn take_over(result: &mut Comparison, earlier: &Comparison) -> u32 {
    let same = |a: &Line, b: &Line| a.target == b.target;
    let lines = result.lines.len() == earlier.lines.len()
        && result.lines.iter().zip(&earlier.lines).all(|(a, b)| same(a, b));
    let plan = Plan { rounds: result.plan.rounds, ..earlier.plan.clone() };
    if !lines || plan != result.plan {
        result.degraded.push("the earlier result is of another comparison: starting over".into());
        return 0;
    }
    let whole = |line: &Line| line.samples.iter().filter(|s| s.way == Direction::Download).count();
    let next = earlier.lines.iter().map(whole).min().unwrap_or(0) as u32;
    for (line, old) in result.lines.iter_mut().zip(&earlier.lines) {
        line.samples = old.samples.iter().filter(|s| s.round < next).copied().collect();
        line.cipher.clone_from(&old.cipher);
    }
    result.started = earlier.started;
    result.derive();
    next
}

fn line(at: &ServiceAt, all: &[ServiceAt], server: ServerInfo) -> Line {
    let terms = &at.terms;
    let identity = match (at.scheme.is_secure(), &terms.pin, terms.insecure) {
        (false, ..) => "none",
        (_, Some(_), _) => "pin",
        (_, None, true) => "insecure",
        (_, None, false) => "authority",
    };
    // The same server's, if several of the family are compared.
    let plain = at.scheme.plain().and_then(|plain| {
        let fits = |other: &&ServiceAt| other.scheme == plain;
        let near = |other: &&ServiceAt| fits(other) && other.host == at.host;
        let found = all.iter().find(near).or_else(|| all.iter().find(fits))?;
        all.iter().position(|other| other == found)
    });
    Line {
        target: at.to_string(),
        protocol: at.scheme.title().to_owned(),
        secure: at.scheme.is_secure(),
        plain,
        cipher: None,
        identity: identity.into(),
        server,
        samples: Vec::new(),
        ways: Vec::new(),
        failed: None,
    }
}

/// The targets' numbers in the order of this round.
pub(crate) fn order(targets: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut random = SeededRandom::new(seed.wrapping_add(u64::from(round) << 32));
    let mut order: Vec<usize> = (0..targets).collect();
    for last in (1..targets).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

fn folder(at: &ServiceAt, set: &FileSet) -> String {
    format!("{}/{}", at.path, set.dir_name())
}

fn make_folder(at: &ServiceAt, set: &FileSet) -> Result<(), ClientError> {
    Ok(service::open(at, None)?.make_folder(&folder(at, set), false)?)
}

fn clean(at: &ServiceAt, set: &FileSet) -> Result<(), ClientError> {
    let (mut session, dir) = (service::open(at, None)?, folder(at, set));
    for file in 0..set.files {
        session.remove(&format!("{dir}/{}", set.file_name(file)), false)?;
    }
    Ok(session.remove(&dir, true)?)
}

/// The result of one thread.
struct Done {
    end_ns: u64,
    cpu_ns: u64,
    sign_in_ns: u64,
    cipher: Option<String>,
}

fn transfer(
    at: &ServiceAt,
    plan: &Plan,
    files: &Files,
    (round, way): (u32, Direction),
    server: &mut Option<Family>,
) -> Result<(Sample, Option<String>), ClientError> {
    let (streams, root) = (plan.streams, Root::default());
    // All threads are signed in; go.
    let (ready, go) = (Barrier::new(streams as usize + 1), Barrier::new(streams as usize + 1));
    let failed = AtomicBool::new(false);
    let results: Mutex<Vec<Result<Done, ClientError>>> = Mutex::default();
    let (begin_ns, before) = std::thread::scope(|scope| {
        for stream in 0..streams {
            let (ready, go, failed, results) = (&ready, &go, &failed, &results);
            scope.spawn(move || {
                let begun = mono_ns();
                let opened = service::open(at, None);
                let sign_in_ns = mono_ns() - begun;
                failed.fetch_or(opened.is_err(), Ordering::SeqCst);
                ready.wait();
                go.wait();
                let done = match opened {
                    Ok(_) if failed.load(Ordering::SeqCst) => return,
                    Ok(session) => one_stream(session, at, files, way, (stream, streams)),
                    Err(error) => Err(error),
                };
                let done = done.map(|done| Done { sign_in_ns, ..done });
                results.lock().unwrap_or_else(PoisonError::into_inner).push(done);
            });
        }
        ready.wait();
        let before = server.as_mut().and_then(|family| family.sample(&root));
        let begin_ns = mono_ns();
        go.wait();
        (begin_ns, before)
    });
    let after = server.as_mut().and_then(|family| family.sample(&root));
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done = results.into_iter().collect::<Result<Vec<Done>, ClientError>>()?;
    let end_ns = done.iter().map(|d| d.end_ns).max().unwrap_or(begin_ns);
    let sign_in_ns = done.iter().map(|d| d.sign_in_ns).max().unwrap_or(0);
    let sample = Sample {
        round,
        way,
        seconds: end_ns.saturating_sub(begin_ns) as f64 / 1e9,
        bytes: plan.bytes(),
        sign_in_s: sign_in_ns as f64 / 1e9,
        client_cpu_s: done.iter().map(|d| d.cpu_ns).sum::<u64>() as f64 / 1e9,
        server_cpu_s: before.zip(after).map(|(a, b)| b.cpu_since(&a) as f64 / 1e9),
    };
    Ok((sample, done.into_iter().find_map(|d| d.cipher)))
}

/// The files that belong to one of the streams.
fn one_stream(
    mut session: Box<dyn Session>,
    at: &ServiceAt,
    files: &Files,
    way: Direction,
    (stream, streams): (u32, u32),
) -> Result<Done, ClientError> {
    let mut buffer = vec![0; LAB_STREAM_BUFFER];
    let (dir, cpu) = (folder(at, &files.set), thread_cpu_ns());
    for file in (stream..files.set.files).step_by(streams as usize) {
        let path = format!("{dir}/{}", files.set.file_name(file));
        match way {
            Direction::Upload => files.upload(&mut *session, &path, file, &mut buffer)?,
            Direction::Download => files.download(&mut *session, &path, file, &mut buffer)?,
        }
    }
    let (end_ns, cpu_ns) = (mono_ns(), thread_cpu_ns().saturating_sub(cpu));
    Ok(Done { end_ns, cpu_ns, sign_in_ns: 0, cipher: session.cipher() })
}

fn conclude(result: &mut Comparison) {
    result.ended = base::clock::wall_ns() as f64 / 1e9;
    let lost = result.lines.iter().filter_map(|line| {
        Some(format!("{} was abandoned: {}", line.target, line.failed.as_ref()?))
    });
    let lost: Vec<String> = lost.collect();
    if lost.len() == result.lines.len() {
        result.failed = Some(lost.join("; "));
    } else {
        result.degraded.extend(lost);
    }
    let unsure = |line: &Line| line.ways.iter().any(|f| !f.bytes_s.is_sure());
    if result.failed.is_none() && result.lines.iter().any(unsure) {
        let rounds = result.plan.rounds;
        result.degraded.push(format!(
            "{rounds} rounds are too few for a 95 % interval; at least 6 are needed"
        ));
    }
}
