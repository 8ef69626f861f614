//! Whole runs with agents as processes: what is counted adds up, and clients that are killed or
//! paused are noticed, treated by the declared policy and reported in the result.
//!
//! The program starts itself again as agent, so it has a main of its own.

use lab::client::Target;
use lab::conduct::agents::{Source, own_command};
use lab::conduct::{self, RunOptions};
use lab::job::{Job, LossPolicy};
use lab::limit::Limiter;
use lab::record::RunResult;
use lab::shape::open::{Arrival, OpenShape, QUEUE};
use std::path::Path;
use std::process::ExitCode;

#[path = "conduct/simulated.rs"]
mod simulated;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "lab") {
        return lab::cli::main(words);
    }
    let tests: [(&str, fn()); 13] = [
        ("a_whole_run_adds_up", a_whole_run_adds_up),
        ("nothing_as_target_is_limited_by_the_generator", nothing_as_target),
        ("the_generator_alone_is_not_held_to_the_rate_of_a_job", nothing_at_a_rate),
        ("a_killed_client_degrades_the_run", killed_continue),
        ("a_killed_client_aborts_the_run", killed_abort),
        ("a_killed_client_rebases_the_step", killed_rebase),
        ("a_paused_client_is_noticed", paused),
        ("a_client_paused_in_the_last_step_degrades_the_run", paused_at_the_end),
        ("a_client_lost_before_it_cleans_degrades_the_run", lost_before_cleaning),
        ("files_that_cannot_be_removed_degrade_the_run", files_that_stay),
        ("many_agents_of_one_controller", simulated::many_agents),
        ("a_summary_has_a_column_for_each_target_and_goes_on", summary),
        ("an_archive_repeats_with_the_same_operations", archive_repeats),
    ];
    let args: Vec<String> = std::env::args().skip(1).collect();
    run_tests(&tests, &args);
    ExitCode::SUCCESS
}

/// Lists or runs the tests as libtest does, as far as cargo and nextest ask for it.
fn run_tests(tests: &[(&str, fn())], args: &[String]) {
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    // None of them is marked as ignored.
    let chosen: Vec<_> = tests
        .iter()
        .filter(|(name, _)| !has("--ignored") && (!has("--exact") || has(name)))
        .collect();
    for (name, test) in &chosen {
        if has("--list") {
            println!("{name}: test");
        } else {
            eprintln!("test {name}");
            test();
        }
    }
    if !has("--list") {
        println!("test result: ok. {} passed; 0 failed", chosen.len());
    }
}

fn job(kind: &str, schedule: &str) -> Job {
    let set = [
        &format!("workload='{kind}'"),
        &format!("schedule={schedule}"),
        "file_size=1m",
        "warmup_ms=50",
        "window_ms=50",
        "step_max_ms=600",
        "lost_after_ms=1200",
    ];
    Job::load("iops-4k", &set.map(|s| s.to_owned())).unwrap()
}

fn options(target: Target, clients: u32) -> RunOptions {
    RunOptions {
        target,
        source: Source::Local { clients, command: own_command() },
        bind: true,
        subnets: Vec::new(),
        server_socket: None,
        server_pid: None,
        observe: Default::default(),
        clean: true,
        scratch: None,
        prove: Vec::new(),
        command: vec!["test".into()],
    }
}

fn scratch(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("plimsoll-lab-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn a_whole_run_adds_up() {
    let dir = scratch("whole");
    let job = job("randread", "[[1,1],[2,1],[2,2]]");
    let mut lines = Vec::new();
    let target = Target::Path(dir.clone());
    let result =
        conduct::run(&job, &options(target, 2), &mut |l| lines.push(l.to_string())).unwrap();
    assert_eq!(result.failed, None);
    assert_eq!(result.steps.len(), 3);
    assert!(lines.len() >= 5, "{lines:?}");
    for step in &result.steps {
        assert_eq!((step.errors, step.corrupt), (0, 0), "{:?}", step.first_error);
        assert_eq!(step.by_client.len() as u32, step.clients);
        let (from, to) = step.used;
        let windows: u64 = step.windows[from..to].iter().map(|w| w.ops).sum();
        let clients: u64 = step.by_client.iter().map(|c| c.ops).sum();
        assert_eq!(windows, clients);
        let heat: u64 = step.windows[from..to].iter().flat_map(|w| &w.heat).map(|h| h.1).sum();
        assert_eq!(windows, heat, "every operation is in the heat map");
        assert!(step.start.late_ns.iter().all(|l| l.1 >= 0), "nobody starts early");
    }
    assert!(result.best.is_some() && result.limit.is_some());
    let out = scratch("whole-out");
    result.write(&out).unwrap();
    let read = RunResult::read(&out).unwrap();
    assert_eq!(read.job, result.job);
    let shown =
        |r: &RunResult| r.steps.iter().map(|s| (s.by_client.clone(), s.used)).collect::<Vec<_>>();
    assert_eq!(shown(&read), shown(&result));
    lab::report::write(&result, &out).unwrap();
    assert!(std::fs::read_dir(&dir).unwrap().next().is_none(), "cleaned");
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::remove_dir_all(out).unwrap();
}

fn nothing_as_target() {
    let job = job("null", "[[1,4],[2,4],[2,8]]");
    let result = conduct::run(&job, &options(Target::Null, 2), &mut |_| {}).unwrap();
    let verdict = result.limit.unwrap();
    // On a machine that is busy with other things the verdict must say so instead.
    let others = verdict.why.iter().any(|w| w.contains("other processes"));
    assert!(verdict.limiter == Limiter::Generator || others, "{verdict:?}");
}

fn nothing_at_a_rate() {
    // So low that a client which gets a core for a moment does many times as much against nothing.
    const RATE: f64 = 50.0;
    let mut job = job("null", "[[1,4]]");
    job.open = Some(OpenShape { rate: RATE, arrival: Arrival::default(), queue: QUEUE });
    let null = |_| {
        let result = conduct::run(&job, &options(Target::Null, 1), &mut |_| {}).unwrap();
        assert_eq!(result.failed, None);
        result.null_ops_s.unwrap()
    };
    // A client that gets no core in its quarter of a second does nothing in it.
    assert!((0..5).map(null).any(|null| null > 10.0 * RATE), "never more than at the rate");
}

/// Processes that this one has started.
fn children() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let text = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    let mut pids: Vec<i32> = text
        .flat_map(|t| t.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    pids.sort_unstable();
    pids
}

/// Runs three steps of three clients; after the first step the last client gets `signal`.
fn run_with(signal: i32, policy: LossPolicy) -> RunResult {
    run_until("3 × 1", policy, |_| signal_last(signal))
}

/// Sends a signal to the client that was started last.
fn signal_last(signal: i32) {
    let last = *children().last().unwrap();
    // SAFETY: a child of this process that is not reaped yet.
    unsafe { libc::kill(last, signal) };
}

/// The same; `act` is done once with the directory, after the step that is reported as `step`.
/// The last step of the jobs that lose a client.
const LAST_STEP: &str = "3 × 4";

fn run_until(step: &str, policy: LossPolicy, mut act: impl FnMut(&Path)) -> RunResult {
    let dir = scratch("lossy");
    let mut job = job("randread", "[[3,1],[3,2],[3,4]]");
    job.on_loss = policy;
    if step == LAST_STEP {
        // Only what is done after it loses a client, no silence.
        job.lost_after_ms = 60_000;
    }
    let mut acted = false;
    let result = conduct::run(&job, &options(Target::Path(dir.clone()), 3), &mut |line| {
        if line.to_string().contains(step) && !acted {
            acted = true;
            act(&dir);
        }
    });
    std::fs::remove_dir_all(dir).unwrap();
    assert!(acted, "no step {step}");
    result.unwrap()
}

fn killed_continue() {
    let result = run_with(libc::SIGKILL, LossPolicy::Continue);
    assert_eq!(result.failed, None);
    assert_eq!(result.steps.last().unwrap().clients, 2);
    let lost: Vec<_> = result.clients.iter().filter_map(|c| c.lost.as_ref()).collect();
    assert!(lost.len() == 1 && lost[0].contains("signal: 9"), "{lost:?}");
    assert!(result.degraded.iter().any(|d| d.contains("lost client 2")), "{:?}", result.degraded);
    let verdict = result.limit.unwrap();
    assert!(verdict.marks.iter().any(|m| m.starts_with("client lost")), "{verdict:?}");
}

fn killed_abort() {
    let result = run_with(libc::SIGKILL, LossPolicy::Abort);
    assert!(result.failed.is_some_and(|f| f.contains("client 2")));
    assert_eq!(result.steps.len(), 1);
}

fn killed_rebase() {
    let result = run_with(libc::SIGKILL, LossPolicy::Rebase);
    assert_eq!(result.failed, None);
    assert!(result.is_degraded());
    let last = result.steps.last().unwrap();
    assert_eq!((last.clients, last.threads), (2, 4));
}

fn paused() {
    let result = run_with(libc::SIGSTOP, LossPolicy::Continue);
    let lost = result.clients[2].lost.clone().unwrap_or_default();
    assert!(lost.contains("paused"), "{lost}");
    assert!(result.is_degraded());
}

/// Files that cannot be removed, and clients that cannot remove theirs, take nothing away from what
/// was measured.
fn assert_measured(result: &RunResult, clients: u32) {
    assert_eq!(result.failed, None);
    assert_eq!(result.steps.last().map(|step| (step.clients, step.threads)), Some((clients, 4)));
    assert!(result.best.is_some() && result.is_degraded());
}

fn paused_at_the_end() {
    let result = run_until("3 × 2", LossPolicy::Continue, |_| signal_last(libc::SIGSTOP));
    assert_measured(&result, 2);
    let lost = result.clients[2].lost.clone().unwrap_or_default();
    assert!(lost.contains("paused"), "{lost}");
    // The others are waited for: their files are gone, and their last calls are counted.
    let files = |what: &&String| what.contains("the files of");
    assert_eq!(result.degraded.iter().find(files), None, "{:?}", result.degraded);
}

fn lost_before_cleaning() {
    let result = run_until(LAST_STEP, LossPolicy::Continue, |_| signal_last(libc::SIGKILL));
    assert_measured(&result, 3);
    let what = &result.degraded;
    assert!(what.iter().any(|what| what.contains("the files of client 2 ")), "{what:?}");
    assert!(what.iter().any(|what| what.contains("lost client 2: ")), "{what:?}");
}

fn files_that_stay() {
    let result = run_until(LAST_STEP, LossPolicy::Continue, |dir| {
        let entries = std::fs::read_dir(dir).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.path()).collect();
        names.sort();
        // A file in place of the directory of a client, which cannot be removed as one.
        std::fs::rename(&names[1], dir.join("moved")).unwrap();
        std::fs::write(&names[1], "").unwrap();
    });
    assert_measured(&result, 3);
    let what: Vec<_> =
        result.degraded.iter().filter(|what| what.contains("the files of")).collect();
    assert!(what.len() == 1 && what[0].contains("the files of client 1 "), "{what:?}");
}

/// A command of the laboratory with short steps.
fn command(words: &[&str]) -> ExitCode {
    const SHORT: [&str; 6] = [
        "schedule=[[1,1],[2,2]]",
        "file_size=1m",
        "warmup_ms=50",
        "window_ms=50",
        "step_max_ms=500",
        "steady.windows=3",
    ];
    let sets: &[&str] = if words[0] == "repeat" { &[] } else { &SHORT };
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    lab::cli::main(words.iter().copied().chain(sets).chain(["--quiet"]))
}

/// Done, with whatever else is known of the figures.
fn done(code: ExitCode) -> bool {
    code == ExitCode::SUCCESS || code == ExitCode::from(lab::cli::EXIT_DEGRADED)
}

fn summary() {
    let (dir, out) = (scratch("summary"), scratch("summary-out"));
    let path = format!("path:{}", dir.display());
    let made = |name: &str| {
        let place = out.join(name);
        let place = place.to_str().unwrap();
        let rows = ["limits", "--rows", "iops-4k,create", "--clients", "2", "--retries", "0"];
        let columns =
            ["--target", &path, "--target", "disk=iscsi://127.0.0.1:1/iqn.2026-01.org:d/0"];
        let more = ["--target", "gone=nfs3://127.0.0.1:1/x", "--clean", "--out", place];
        let words = [rows.as_slice(), &columns, &more].concat();
        assert!(command(&words) == ExitCode::from(lab::cli::EXIT_DEGRADED), "a column failed");
        lab::limits::Summary::read(&out.join(name)).unwrap()
    };
    let (first, second) = (made("first"), made("second"));
    let names: Vec<&str> = first.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["path", "disk", "gone"]);
    let why = first.columns[2].failed.clone().unwrap_or_default();
    assert!(why.contains("refused"), "{why}");
    for row in &first.rows {
        assert!(row.cells[0].value > Some(0.0), "{:?}", row.cells[0]);
        assert!(out.join("first").join(row.cells[0].report.as_ref().unwrap()).exists());
        assert_eq!(row.cells[2].text, format!("not measured: {why}"));
        assert!(row.cells[2].failed);
    }
    let [reads, creations] = first.rows.as_slice() else { panic!("two rows") };
    assert!(reads.cells[1].failed && reads.cells[1].text.contains("refused"));
    let unsupported = &creations.cells[1];
    assert!(!unsupported.failed && unsupported.text.contains("a disk does not have"));
    let change = lab::report::compare_summaries(&first, &second);
    assert_eq!(change.cells.len(), 6);
    assert!(change.cells.iter().filter(|c| c.ratio.is_some()).all(|c| c.column == "path"));
    assert_eq!(change.cells.iter().filter(|c| c.ratio.is_some()).count(), 2);
    lab::archive::open(&out.join("first")).unwrap();
    assert!(std::fs::read_dir(&dir).unwrap().next().is_none(), "--clean removes the folder");
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::remove_dir_all(out).unwrap();
}

fn archive_repeats() {
    let (dir, out) = (scratch("repeats"), scratch("repeats-out"));
    let (here, there) = (dir.join("here"), dir.join("there"));
    std::fs::create_dir(&here).unwrap();
    std::fs::create_dir(&there).unwrap();
    let url = |dir: &std::path::Path| format!("path:{}", dir.display());
    let place = |name: &str| out.join(name).display().to_string();
    let first = ["run", "iops-4k", "--clients", "2", "--retries", "0", "--target"];
    let (from, to) = (url(&here), place("first"));
    let words = [first.as_slice(), &[&from, "--out", &to]].concat();
    assert!(done(command(&words)));
    let elsewhere =
        ["repeat", &place("first"), "--target", &url(&there), "--out", &place("second")];
    assert!(done(command(&elsewhere)));
    let read = |name: &str| RunResult::read(&out.join(name)).unwrap();
    let (a, b) = (read("first"), read("second"));
    assert_eq!((&a.job, a.operations.clients.len()), (&b.job, 2));
    let common = a.operations.common(&b.operations).expect("hashes");
    assert!(common.same && common.first > 1, "{common:?}");
    assert_ne!(a.target, b.target);
    assert!(out.join("first/hist/000.hlog").exists() && out.join("first/machines.json").exists());
    let file = out.join("first/result.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "x").unwrap();
    let third = place("third");
    assert!(
        command(&["repeat", &to, "--out", &third]) == ExitCode::FAILURE
            && !out.join("third").exists()
    );
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::remove_dir_all(out).unwrap();
}
