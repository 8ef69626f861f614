//! `/lab` of the tree of administration: jobs, those of the program and those of the configuration,
//! and runs of them on the shares. The runs themselves are the [`RunQueue`]'s.

mod loads;
mod suites;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ::lab::ab::Rule;
use ::lab::archive::request::Kind;
use ::lab::client::Target;
use ::lab::desk::run::{Run, RunTarget, State};
use ::lab::desk::{Change, File, ProfileRequest, RunQueue, RunQueueError, RunRequest};
use ::lab::job::{BUILT_IN, Job, SUMMARY};
use ::lab::limits::QUICK_FILE_MAX;
use ::lab::net::built_in as network;
use ::lab::node::{CLIENTS, COLUMNS_MAX};
use ::lab::report::Figures;
use base::failure::chain;
use base::limits::{LAB_RUN_CLIENTS_MAX, LAB_STEPS_MAX};
use base::node::{Path, Value};
use base::text::decimal;
use control::answer::{JsonText, RequestError};
use control::appliance::ShareStatus;
use control::lab::{Lab, LabFile};
use control::tree::{Actor, Apply, Document, Operational, Override, Problem, Transition};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

/// Where the branch begins.
pub const PREFIX: &[&str] = &["lab"];

type Parameters = BTreeMap<String, Value>;

/// What a run needs of the server.
pub trait Serving: Send + Sync {
    /// Served shares.
    fn shares(&self) -> Vec<ShareStatus>;
    /// Where NFS listens.
    fn nfs(&self) -> SocketAddr;
}

/// The branch.
pub struct LabNode {
    desk: Arc<RunQueue>,
    serving: Box<dyn Serving>,
    /// Jobs of the configuration: name and text.
    jobs: Mutex<BTreeMap<String, String>>,
}

/// The names of a path of this room.
fn names(path: &Path) -> Vec<&str> {
    path.segments().iter().map(String::as_str).collect()
}

fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Jobs that a configuration has.
fn jobs(document: &Document) -> BTreeMap<String, String> {
    let above = Path::of(&["lab", "jobs"]);
    let names = document.items(&above).into_iter();
    let text = |name: String| {
        let text = document.text(&above.join(&name), "definition")?;
        Some((name, text))
    };
    names.filter_map(text).collect()
}

/// A job that may be run here.
fn checked(name: &str, text: &str) -> Result<Job, String> {
    let job = Job::named(name, text).map_err(|e| e.without_name())?;
    if job.schedule.len() > LAB_STEPS_MAX {
        return Err(format!("it has {} steps; the maximum is {LAB_STEPS_MAX}", job.schedule.len()));
    }
    if job.title.trim().is_empty() || job.answers.trim().is_empty() {
        return Err("it needs a title, and the question that it answers".to_owned());
    }
    let one_line = |text: &str| text.len() <= 1_000 && !text.contains(char::is_control);
    if ![&job.title, &job.answers, &job.expect].into_iter().all(|text| one_line(text)) {
        return Err("title, answers and expect must be one line each".to_owned());
    }
    Ok(job)
}

impl LabNode {
    /// With the jobs that are configured now.
    pub fn new(desk: Arc<RunQueue>, serving: Box<dyn Serving>, document: &Document) -> Arc<Self> {
        Arc::new(Self { desk, serving, jobs: Mutex::new(jobs(document)) })
    }

    fn job(&self, name: &str) -> Result<Job, String> {
        checked(name, &self.definition(name)?)
    }

    fn definition(&self, name: &str) -> Result<String, String> {
        match built_in(name) {
            Some(text) => Ok(text.to_owned()),
            None => Ok(self.jobs.lock().get(name).cloned().ok_or("its definition is not set")?),
        }
    }

    /// Queues a run.
    fn start(
        &self,
        path: &Path,
        name: &str,
        given: &Parameters,
        who: &Actor,
    ) -> Result<Json, Problem> {
        let wrong = |sentence: &str| {
            Problem::new(path, sentence, "change the job's definition, or the parameters")
        };
        let mut job = self.job(name).map_err(|why| wrong(&why))?;
        with_parameters(&mut job, given).map_err(|why| wrong(&why).property("schedule"))?;
        job.check().map_err(|e| wrong(&chain(&e)))?;
        let clients = clients(given);
        let bytes = space(&job, clients);
        let (target, share, folder) = self.target(path, given, bytes)?;
        let targets = vec![RunTarget { url: target, own: share.is_some() }];
        let wanted =
            RunRequest { share, folder, ..wanted(Kind::Run, vec![job], targets, given, who) };
        let run = self.desk.queue(&wanted).map_err(|e| problem(path, &e))?;
        let size = base::units::bytes(bytes as f64);
        let Run { id, target, scratch, .. } = run;
        if target == "null:" {
            let note = format!("{id} is queued; it writes nothing");
            return Ok(json!({ "run": id, "target": target, "note": note }));
        }
        let note = format!(
            "{id} is queued; it makes the folder {scratch} on {target}, writes {size} there, and \
             removes it"
        );
        Ok(json!({
            "run": id, "target": target, "folder": scratch, "bytes": bytes, "note": note,
        }))
    }

    /// Queues a Performance Limit Summary.
    fn limits(&self, path: &Path, given: &Parameters, who: &Actor) -> Result<Json, Problem> {
        let rows = texts(given, "rows");
        let rows = match rows.is_empty() {
            true => SUMMARY.iter().map(|name| (*name).to_owned()).collect(),
            false => rows,
        };
        let jobs = self.jobs(path, "rows", &rows, given)?;
        let quick = given.get("quick") != Some(&Value::Bool(false));
        let prove = given.get("prove") == Some(&Value::Bool(true));
        let protocols = texts(given, "protocols");
        let protocols = if protocols.is_empty() { vec!["nfs3".to_owned()] } else { protocols };
        let clients = clients(given);
        let bytes = jobs.iter().map(|job| quick_space(job, clients, quick)).sum();
        let mut targets = Vec::new();
        for target in texts(given, "targets") {
            for protocol in &protocols {
                let found = self.one_target(path, "targets", &target, protocol, bytes)?;
                let own = found.own;
                targets.push(found);
                if !own {
                    break;
                }
            }
        }
        if targets.is_empty() || targets.len() > COLUMNS_MAX {
            let sentence = format!("a summary has 1 to {COLUMNS_MAX} columns");
            let hint = "give shares of this appliance, or URLs of other servers";
            return Err(Problem::new(path, &sentence, hint).property("targets"));
        }
        let wanted = wanted(Kind::Limits, jobs, targets, given, who);
        self.queue(path, &RunRequest { quick, prove, ..wanted })
    }

    /// Queues a comparison of two targets.
    fn ab(&self, path: &Path, given: &Parameters, who: &Actor) -> Result<Json, Problem> {
        let names = texts(given, "jobs");
        let names = if names.is_empty() { vec!["iops-4k".to_owned()] } else { names };
        let jobs = self.jobs(path, "jobs", &names, given)?;
        let clients = clients(given);
        let bytes = jobs.iter().map(|job| space(job, clients)).max().unwrap_or(0);
        let protocol = text(given, "protocol").unwrap_or("nfs3");
        let one = |name: &str| {
            let target = text(given, name).unwrap_or_default();
            self.one_target(path, name, target, protocol, bytes)
        };
        let targets = vec![one("a")?, one("b")?];
        let percent = integer(given, "to").unwrap_or(3) as f64;
        let rounds = integer(given, "rounds").and_then(|n| u32::try_from(n).ok()).unwrap_or(12);
        let rule = Rule { to: percent / 100.0, rounds };
        let wanted = wanted(Kind::Ab, jobs, targets, given, who);
        self.queue(path, &RunRequest { rule, ..wanted })
    }

    /// Queues a network profile.
    fn net(&self, path: &Path, given: &Parameters, who: &Actor) -> Result<Json, Problem> {
        let name = text(given, "profile").unwrap_or_default().to_owned();
        let settings = texts(given, "settings");
        let profile = network::here(&name, &settings).map_err(|why| {
            Problem::new(path, &why, "a setting is NAME=VALUE, as duration=30s")
                .property("settings")
        })?;
        let (threads, hosts) = (profile.threads(), profile.hosts().join(", "));
        let wanted = RunRequest {
            profile: Some(ProfileRequest { name, settings }),
            ..wanted(Kind::Net, Vec::new(), Vec::new(), given, who)
        };
        let run = self.desk.queue(&wanted).map_err(|e| problem(path, &e))?;
        let note = format!("{} is queued; it has {threads} threads to {hosts}", run.id);
        Ok(json!({ "run": run.id, "note": note }))
    }

    /// Jobs by their names, with the settings that are given.
    fn jobs(
        &self,
        path: &Path,
        property: &str,
        names: &[String],
        given: &Parameters,
    ) -> Result<Vec<Job>, Problem> {
        let settings = texts(given, "settings");
        let wrong = |property: &str, why: &str| {
            let hint = "plimsoll lab list shows the jobs; a setting is KEY=VALUE, as block=8k";
            Problem::new(path, why, hint).property(property)
        };
        let one = |name: &String| {
            let known = built_in(name).is_some() || self.jobs.lock().contains_key(name);
            if !known {
                return Err(wrong(property, &format!("there is no job {name:?}")));
            }
            let text = self.definition(name).map_err(|why| wrong(property, &why))?;
            checked(name, &text).map_err(|why| wrong(property, &why))?;
            let job = Job::parse(name, &text, &settings);
            let mut job = job.map_err(|e| wrong("settings", &e.without_name()))?;
            name.clone_into(&mut job.name);
            Ok(job)
        };
        names.iter().map(one).collect()
    }

    /// A share of this appliance, or a directory of another server.
    fn one_target(
        &self,
        path: &Path,
        property: &str,
        target: &str,
        protocol: &str,
        bytes: u64,
    ) -> Result<RunTarget, Problem> {
        let found = match target.contains("://") || target == "null:" {
            true => elsewhere(path, target).map(|url| RunTarget { url, own: false }),
            false => {
                let url = self.own(path, target, "", protocol, bytes);
                url.map(|url| RunTarget { url, own: true })
            }
        };
        found.map_err(|problem| problem.property(property))
    }

    /// Queues a summary or comparison.
    fn queue(&self, path: &Path, wanted: &RunRequest) -> Result<Json, Problem> {
        let run = self.desk.queue(wanted).map_err(|e| problem(path, &e))?;
        let targets: Vec<String> = run.all_targets().into_iter().map(|t| t.url).collect();
        let Run { id, scratch, .. } = run;
        let note = format!(
            "{id} is queued; it makes the folder {scratch} on {}, and removes it",
            targets.join(", ")
        );
        Ok(json!({ "run": id, "targets": targets, "folder": scratch, "note": note }))
    }

    /// Queues a program, tests of IOzone or a suite.
    fn load(
        &self,
        path: &Path,
        given: &Parameters,
        who: &Actor,
        of: fn(&Path, &Parameters, &Actor, loads::Find<'_>) -> loads::Load,
    ) -> Result<Json, Problem> {
        let find = |bytes: u64| self.target(path, given, bytes);
        let (wanted, bytes) = of(path, given, who, &find)?;
        let run = self.desk.queue(&wanted).map_err(|e| problem(path, &e))?;
        let size = base::units::bytes(bytes as f64);
        let Run { id, target, scratch, .. } = run;
        let note = match target.as_str() {
            "null:" => format!("{id} is queued; it writes nothing"),
            _ => format!(
                "{id} is queued; it makes the folder {scratch} on {target}, writes {size} there, \
                 and removes it"
            ),
        };
        Ok(json!({
            "run": id, "target": target, "folder": scratch, "bytes": bytes, "note": note,
        }))
    }

    /// The target's URL, the share that it is, and the folder of it.
    fn target(
        &self,
        path: &Path,
        given: &Parameters,
        bytes: u64,
    ) -> Result<(String, Option<String>, String), Problem> {
        let folder = text(given, "folder").unwrap_or_default().trim_matches('/').to_owned();
        match (text(given, "share"), text(given, "target")) {
            (Some(share), None) => {
                let protocol = text(given, "protocol").unwrap_or("nfs3");
                let url = self.own(path, share, &folder, protocol, bytes)?;
                Ok((url, Some(share.to_owned()), folder))
            }
            (None, Some(url)) => Ok((elsewhere(path, url)?, None, String::new())),
            (Some(_), Some(_)) => {
                let sentence = "both a share and a target are given";
                Err(Problem::new(path, sentence, "give one of them").property("target"))
            }
            (None, None) => {
                let sentence = "neither a share nor a target is given";
                let hint = "use share=NAME for a share of this appliance, target=URL for another \
                    server";
                Err(Problem::new(path, sentence, hint).property("share"))
            }
        }
    }

    /// The URL of a folder of a share of this server.
    fn own(
        &self,
        path: &Path,
        name: &str,
        folder: &str,
        protocol: &str,
        bytes: u64,
    ) -> Result<String, Problem> {
        let shares = self.serving.shares();
        let wrong =
            |sentence: &str, hint: &str| Err(Problem::new(path, sentence, hint).property("share"));
        let Some(share) = shares.iter().find(|share| share.name == name) else {
            let known: Vec<&str> = shares.iter().map(|share| share.name.as_str()).collect();
            let sentence = format!("the share {name:?} is not served");
            return wrong(&sentence, &format!("there are {}", known.join(", ")));
        };
        if share.read_only {
            return wrong("the share is read-only", "a run creates a folder: choose another share");
        }
        if bytes > share.available_bytes {
            let [size, left] = [bytes, share.available_bytes].map(|n| base::units::bytes(n as f64));
            let sentence = format!("the run would write {size}, and the share has {left} left");
            return wrong(&sentence, "use fewer clients or smaller files");
        }
        let leads_out = |part: &str| matches!(part, "" | "." | "..");
        if !folder.is_empty() && folder.split('/').any(leads_out) {
            let hint = "give a folder of the share, for example projects/scratch";
            return wrong("the folder is not inside the share", hint)
                .map_err(|problem: Problem| problem.property("folder"));
        }
        if [name, folder].iter().any(|part| part.contains('?')) {
            return wrong("a name with '?' cannot be used in a URL", "choose another folder");
        }
        let at = from_here(self.serving.nfs());
        let below = if folder.is_empty() { String::new() } else { format!("/{folder}") };
        Ok(format!("{protocol}://{at}/export/{name}{below}"))
    }

    fn now(&self) -> Vec<(&'static str, Value)> {
        let runs = self.desk.runs();
        let now = runs.iter().find(|r| matches!(r.state, State::Preparing | State::Running));
        let waiting = runs.iter().filter(|run| run.state == State::Queued).count();
        let now = now.map_or(String::new(), |run| run.id.clone());
        vec![("now", Value::Text(now)), ("waiting", Value::number(waiting))]
    }
}

/// The address by which this machine reaches a listener: one that listens on the unspecified
/// address is reached through loopback.
pub fn from_here(mut at: SocketAddr) -> SocketAddr {
    if at.ip().is_unspecified() {
        let here = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        at.set_ip(if at.is_ipv4() { here.0 } else { here.1 });
    }
    at
}

/// A target that is not a share of this server: another server, or nothing. Never a directory of
/// this machine: it must not be named here.
fn elsewhere(path: &Path, url: &str) -> Result<String, Problem> {
    let wrong = |sentence: &str| {
        let hint = "nfs3://, nfs3+rdma:// or nfs4://HOST:PORT/PATH, or null:";
        Problem::new(path, sentence, hint).property("target")
    };
    match Target::parse(url) {
        Ok(target @ (Target::Nfs3(_) | Target::Nfs4(_) | Target::Null)) => Ok(target.to_string()),
        Ok(_) => Err(wrong("that kind of target is for `plimsoll lab run` alone")),
        Err(error) => Err(wrong(&chain(&error))),
    }
}

fn text<'a>(given: &'a Parameters, name: &str) -> Option<&'a str> {
    match given.get(name) {
        Some(Value::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn integer(given: &Parameters, name: &str) -> Option<i64> {
    given.get(name).and_then(Value::as_integer)
}

fn texts(given: &Parameters, name: &str) -> Vec<String> {
    match given.get(name) {
        Some(Value::List(all)) => all.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Client processes.
fn clients(given: &Parameters) -> u32 {
    let clients = integer(given, "clients").unwrap_or(CLIENTS.into());
    u32::try_from(clients).unwrap_or(1).clamp(1, LAB_RUN_CLIENTS_MAX)
}

/// What is wanted of a run without options of its own.
fn wanted(
    kind: Kind,
    jobs: Vec<Job>,
    targets: Vec<RunTarget>,
    given: &Parameters,
    who: &Actor,
) -> RunRequest {
    RunRequest {
        kind,
        jobs,
        by: who.user.clone(),
        from: who.from.clone(),
        targets,
        share: None,
        folder: String::new(),
        clients: clients(given),
        quick: false,
        prove: false,
        rule: Rule::default(),
        wml: None,
        iozone: None,
        suite: None,
        profile: None,
    }
}

/// Changes what the parameters name. Their ranges are checked.
fn with_parameters(job: &mut Job, given: &Parameters) -> Result<(), String> {
    let number = |name: &str| integer(given, name).and_then(|n| u64::try_from(n).ok());
    let small = |name: &str| number(name).and_then(|n| u32::try_from(n).ok());
    if let Some(block) = small("block") {
        job.set_block(block);
    }
    job.files = small("files").unwrap_or(job.files);
    job.file_size = number("file_size").unwrap_or(job.file_size);
    job.step_max_ms = number("step").map_or(job.step_max_ms, |s| s * 1_000);
    if let Some(Value::List(steps)) = given.get("schedule").filter(|v| **v != Value::List(vec![])) {
        let step = |value: &Value| {
            let text = value.to_string();
            let (clients, threads) = text.split_once('x')?;
            Some((decimal(clients.trim())?, decimal(threads.trim())?))
        };
        let read: Option<Vec<(u32, u32)>> = steps.iter().map(step).collect();
        job.schedule = read.ok_or("a step is CLIENTSxTHREADS, as 8x4")?;
    }
    Ok(())
}

/// Bytes that `clients` clients write into their folders.
fn space(job: &Job, clients: u32) -> u64 {
    let files = if job.workload.needs_files() { u64::from(job.files) } else { 0 };
    files.saturating_mul(job.file_size).saturating_mul(clients.into())
}

/// The same of a row of a summary, of which files may be smaller.
fn quick_space(job: &Job, clients: u32, quick: bool) -> u64 {
    let mut job = job.clone();
    if quick {
        job.file_size = job.file_size.min(QUICK_FILE_MAX);
    }
    space(&job, clients)
}

fn about(job: &Job) -> Vec<(&'static str, Value)> {
    let workload = serde_json::to_value(job.workload).unwrap_or_default();
    let steps = job.schedule.iter().map(|(clients, threads)| format!("{clients}x{threads}"));
    let longest = job.steps(CLIENTS).len() as u64 * job.step_max_ms / 1_000;
    vec![
        ("title", Value::text(&job.title)),
        ("answers", Value::text(&job.answers)),
        ("expect", Value::text(&job.expect)),
        ("workload", Value::text(workload.as_str().unwrap_or_default())),
        ("block", Value::number(job.block)),
        ("files", Value::number(job.files)),
        ("file_size", Value::number(job.file_size)),
        ("schedule", Value::texts(steps)),
        ("longest", Value::number(longest)),
        ("space", Value::number(space(job, CLIENTS))),
    ]
}

fn run_state(run: &Run) -> Vec<(&'static str, Value)> {
    let lines = |texts: &[String]| Value::texts(texts.iter().take(100));
    let targets: Vec<String> = run.all_targets().into_iter().map(|target| target.url).collect();
    let mut state = vec![
        ("kind", Value::text(run.kind.name())),
        ("job", Value::text(&run.job)),
        ("title", Value::text(&run.title)),
        ("state", Value::text(run.state.name())),
        ("message", Value::text(&run.message)),
        ("progress", Value::Text(run.progress())),
        ("steps", Value::texts(run.steps.iter().map(ToString::to_string))),
        ("lines", lines(&run.lines)),
        ("why", lines(&run.why)),
        ("degraded", lines(&run.degraded)),
        ("by", Value::Text(format!("{} from {}", run.by, run.from))),
        ("target", Value::Text(targets.join(", "))),
        ("folder", Value::text(&run.scratch)),
        ("queued", Value::number(run.queued)),
    ];
    state.extend(run.value.as_ref().map(|value| ("value", Value::text(value))));
    state.extend(run.limiter.as_ref().map(|limiter| ("limiter", Value::text(limiter))));
    state.extend(run.started.map(|at| ("began", Value::number(at))));
    state.extend(run.ended.map(|at| ("ended", Value::number(at))));
    if run.value.is_some() {
        let at = |what: &str| Value::Text(format!("/api/v1/lab/runs/{}/{what}", run.id));
        // A comparison has no page of its own.
        let report = (run.kind != Kind::Ab).then(|| ("report", at("report")));
        state.extend(report.into_iter().chain([("result", at("result"))]));
    }
    state
}

fn problem(path: &Path, error: &RunQueueError) -> Problem {
    let sentence = chain(error);
    match error {
        RunQueueError::Unknown(_) => Problem::unknown(path, &sentence, "list shows the runs"),
        RunQueueError::State(..) => Problem::conflict(path, &sentence, "see its state"),
        RunQueueError::Full(_) => Problem::conflict(path, &sentence, "wait, or abort a queued run"),
        RunQueueError::Ending => Problem::conflict(path, &sentence, "retry when it is back"),
        RunQueueError::Keep(_) => Problem::server(path, &sentence),
    }
}

impl Apply for LabNode {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let above = Path::of(&["lab", "jobs"]);
        let names = transition.new.items(&above).into_iter();
        let wrong = |name: String| {
            let path = above.join(&name);
            let why = match transition.new.text(&path, "definition") {
                Some(text) => checked(&name, &text).err()?,
                None => "its definition must be set".to_owned(),
            };
            let hint = "see the examples in jobs/ of the source tree";
            Some(Problem::new(&path, &why, hint).property("definition"))
        };
        names.filter(|name| built_in(name).is_none()).filter_map(wrong).collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        *self.jobs.lock() = jobs(transition.new);
        Ok(())
    }
}

impl Operational for LabNode {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        match names(path)[..] {
            ["lab"] => self.now(),
            ["lab", "jobs", name] => self.job(name).map(|job| about(&job)).unwrap_or_default(),
            ["lab", "runs", id] => self.desk.run(id).map(|run| run_state(&run)).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        match names(path)[..] {
            ["lab", "runs"] => self.desk.runs().into_iter().map(|run| run.id).collect(),
            _ => Vec::new(),
        }
    }

    fn overrides(&self, path: &Path) -> Vec<Override> {
        let ["lab", "jobs", name] = names(path)[..] else { return Vec::new() };
        let fixed = |text| Override {
            property: "definition",
            value: Value::text(text),
            source: "built in",
        };
        built_in(name).into_iter().map(fixed).collect()
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &Parameters,
        who: &Actor,
    ) -> Result<Json, Problem> {
        let done = match (&names(path)[..], action) {
            (["lab"], "limits") => return self.limits(path, parameters, who),
            (["lab"], "program") => return self.load(path, parameters, who, loads::program),
            (["lab"], "iozone") => return self.load(path, parameters, who, loads::iozone),
            (["lab"], "seqread") => return self.load(path, parameters, who, suites::seqread),
            (["lab"], "filebench") => return self.load(path, parameters, who, suites::filebench),
            (["lab"], "ab") => return self.ab(path, parameters, who),
            (["lab"], "net") => return self.net(path, parameters, who),
            (["lab", "jobs", name], "run") => return self.start(path, name, parameters, who),
            (["lab", "runs", id], "abort") => self.desk.abort(id, &who.user),
            (["lab", "runs", id], "destroy") => self.desk.destroy(id),
            _ => {
                let sentence = format!("unknown action {action}");
                return Err(Problem::unknown(path, &sentence, "help lists the actions"));
            }
        };
        done.map(|()| Json::Null).map_err(|e| problem(path, &e))
    }
}

/// Runs as the API has them beyond the tree.
pub struct Results(pub Arc<RunQueue>);

fn as_json(value: &impl serde::Serialize) -> JsonText {
    serde_json::to_string(value).unwrap_or_default()
}

fn wrong(error: &RunQueueError) -> RequestError {
    let hint = "GET /api/v1/lab/runs lists the runs";
    RequestError::Wrong { failed: chain(error), hint: hint.to_owned() }
}

impl Lab for Results {
    fn runs(&self) -> JsonText {
        as_json(&self.0.runs())
    }

    fn changes(&self, seen: u64) -> (Vec<JsonText>, u64) {
        let (changes, next) = self.0.changes(seen);
        let one = |change: &Change| match change {
            Change::Run(run) => as_json(run),
            Change::Gone(id) => as_json(&json!({ "id": id, "state": "gone" })),
        };
        (changes.iter().map(one).collect(), next)
    }

    fn file(&self, run: &str, file: LabFile) -> Result<Vec<u8>, RequestError> {
        let file = match file {
            LabFile::Result => File::Result,
            LabFile::Report => File::Report,
        };
        self.0.file(run, file).map_err(|e| wrong(&e))
    }

    fn figures(&self, run: &str) -> Result<JsonText, RequestError> {
        self.0.figures(run).map(|found| as_json(&found)).map_err(|e| wrong(&e))
    }

    fn figures_of(&self, result: Json) -> Result<JsonText, RequestError> {
        let hint = "it takes result.json of lab run, lab ab, lab net or lab iozone, and \
            summary.json of lab limits";
        Figures::of_json(result).map(|found| as_json(&found)).map_err(|why| RequestError::Wrong {
            failed: format!("this is not such a result: {why}"),
            hint: hint.to_owned(),
        })
    }

    fn compare(&self, a: &str, b: &str) -> Result<JsonText, RequestError> {
        self.0.compare(a, b).map(|found| as_json(&found)).map_err(|e| wrong(&e))
    }
}

#[cfg(test)]
mod tests;
