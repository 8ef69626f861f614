//! What is planted in a client must be noticed: a clock that is wrong and one that jumps, a client
//! that is killed, under each policy, and one that is paused.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use e2e::lab::{Agent, Ended, Run, Target};
use e2e::scratch::Scratch;
use serde_json::Value;

/// Steps long enough that something can happen to a client in them, and not levelled early.
const SETTINGS: [&str; 5] =
    ["warmup_ms=200", "window_ms=200", "file_size=1m", "lost_after_ms=8000", "plateau.min_steps=9"];

/// When a client is killed. There is no event to wait for in the middle of a step.
const IN_A_STEP: Duration = Duration::from_millis(500);
const BETWEEN_STEPS: Duration = Duration::ZERO;

/// One at a time: a starved client looks like a paused one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server, and agents that were started by hand.
struct Scene {
    agents: Vec<Agent>,
    target: Target,
    _dir: Scratch,
}

impl Scene {
    /// With an agent for each of `prepare`.
    fn new(name: &str, prepare: &[&dyn Fn(&mut Command)]) -> Self {
        let dir = Scratch::below(Path::new("/dev/shm"), name);
        let target = Target::start(dir.path(), "127.0.0.1", None);
        let agents = prepare.iter().map(|prepare| Agent::start(prepare)).collect();
        Self { agents, target, _dir: dir }
    }

    fn run(&self, settings: &[&str]) -> Run {
        let settings = [&SETTINGS, settings].concat();
        Run::start("iops-4k", &self.target, &settings, |command| {
            Agent::used_by(command, &self.agents);
        })
    }
}

fn plain(_: &mut Command) {}

/// Makes an agent's clocks wrong by the milliseconds in `file`.
fn skewed_by(file: &Path) -> impl Fn(&mut Command) {
    move |command| {
        command.env("PLIMSOLL_TEST_CLOCK_SKEW_FILE", file);
    }
}

/// Replaces the file at once, so that no reader sees half of it.
fn set_skew(file: &Path, ms: i64) {
    let draft = file.with_extension("new");
    fs::write(&draft, ms.to_string()).expect("the skew");
    fs::rename(&draft, file).expect("the skew in its place");
}

fn marks(ended: &Ended) -> String {
    ended.result["limit"]["marks"].to_string()
}

/// A client's clock against the conductor's: by how much it is off and how sure that is, ns.
fn offset(ended: &Ended, client: usize, when: &str) -> (i64, i64) {
    let offset = &ended.result["clients"][client][when];
    let (by, error) = (offset["offset_ns"].as_i64(), offset["error_ns"].as_i64());
    (by.expect("an offset"), error.expect("its error"))
}

fn steps(ended: &Ended) -> &[Value] {
    ended.result["steps"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_skewed_clock_is_measured_corrected_and_reported() {
    const SKEW_MS: i64 = 5_000;
    let _alone = alone();
    let place = Scratch::new("skew");
    let file = place.path().join("ms");
    set_skew(&file, SKEW_MS);
    let scene = Scene::new("skew", &[&plain, &skewed_by(&file)]);
    let ended = scene.run(&["schedule=[[2,1],[2,2]]", "step_max_ms=1600"]).end();
    ended.check_code();
    assert_eq!(ended.code, 3, "{}", ended.said);
    assert!(ended.degraded().contains("client 1: its wall clock is off by 5"), "{}", ended.said);
    assert!(!ended.degraded().contains("client 0"), "{}", ended.said);
    assert!(marks(&ended).contains("clock skew: client 1"), "{}", ended.summary());

    let (by, error) = offset(&ended, 1, "offset_before");
    assert!((by - SKEW_MS * 1_000_000).abs() <= error, "{by} ± {error}");
    let (by, error) = offset(&ended, 0, "offset_before");
    assert!(by.abs() <= error, "{by} ± {error}");
    // Corrected: they begin together, and no window is missing.
    for step in steps(&ended) {
        let skew = step["start"]["skew_ns"].as_u64().expect("a start proof");
        assert!(skew < 1_000_000_000, "{skew} ns apart: {step:#}");
        for client in step["by_client"].as_array().expect("clients") {
            assert!(client["ops"].as_u64() > Some(0), "{step:#}");
        }
    }
}

#[test]
fn a_clock_that_jumps_during_the_run_marks_the_result() {
    const JUMP_MS: i64 = 700;
    let _alone = alone();
    let place = Scratch::new("jump");
    let file = place.path().join("ms");
    set_skew(&file, 0);
    let scene = Scene::new("jump", &[&plain, &skewed_by(&file)]);
    let mut run = scene.run(&["schedule=[[2,1],[2,2],[2,4]]", "step_max_ms=2000"]);
    run.wait_for_steps(1);
    set_skew(&file, JUMP_MS);
    let ended = run.end();
    ended.check_code();
    assert_eq!(ended.code, 3, "{}", ended.said);
    let told = ended.degraded();
    assert!(told.contains("client 1: its clock moved by"), "{}", ended.said);
    let (before, after) = (offset(&ended, 1, "offset_before"), offset(&ended, 1, "offset_after"));
    let moved = after.0 - before.0 - JUMP_MS * 1_000_000;
    assert!(moved.abs() <= before.1 + after.1, "{before:?} to {after:?}");
    assert!(!told.contains("client 0"), "{}", ended.said);
    assert!(marks(&ended).contains("clock skew: client 1"), "{}", ended.summary());
}

/// Kills client 1 of 3, this long after the first of three steps has ended.
fn killed(policy: &str, after: Duration) -> Ended {
    let scene = Scene::new(policy, &[&plain, &plain, &plain]);
    let on_loss = format!("on_loss={policy}");
    // No spread is small enough to be steady, so that each step takes its whole time.
    let never_steady = "steady.range_percent=0";
    let schedule = "schedule=[[3,1],[3,2],[3,4]]";
    let mut run = scene.run(&[schedule, "step_max_ms=1600", never_steady, &on_loss]);
    run.wait_for_steps(1);
    std::thread::sleep(after);
    scene.agents[1].signal(libc::SIGKILL);
    let ended = run.end();
    ended.check_code();
    ended
}

/// `(clients, threads)` of each step.
fn staircase(ended: &Ended) -> Vec<(u64, u64)> {
    let number = |step: &Value, name: &str| step[name].as_u64().unwrap_or(0);
    steps(ended).iter().map(|s| (number(s, "clients"), number(s, "threads"))).collect()
}

/// The record names client 1, how it went and when.
fn assert_reported(ended: &Ended, text: &str) {
    assert!(text.contains("client 1"), "{text}");
    assert!(text.contains("its connection ended"), "{text}");
    assert!(text.contains("s into step 1"), "{text}");
    assert!(!text.contains("client 0") && !text.contains("client 2"), "{text}");
    assert!(ended.result["clients"][1]["lost"].is_string(), "{}", ended.result["clients"]);
    assert!(ended.result["clients"][0]["lost"].is_null(), "{}", ended.result["clients"]);
}

#[test]
fn a_killed_client_when_the_job_is_set_to_continue() {
    let _alone = alone();
    let ended = killed("continue", IN_A_STEP);
    assert_eq!(ended.code, 3, "{}", ended.said);
    assert_reported(&ended, &ended.degraded());
    assert_eq!(staircase(&ended), [(3, 1), (2, 2), (2, 4)], "{}", ended.said);
    assert!(marks(&ended).contains("client lost: client 1"), "{}", ended.summary());
}

#[test]
fn a_killed_client_when_the_job_is_set_to_rebase() {
    let _alone = alone();
    let ended = killed("rebase", BETWEEN_STEPS);
    assert_eq!(ended.code, 3, "{}", ended.said);
    assert_reported(&ended, &ended.degraded());
    // The broken step is retained, and run again with the clients that are left.
    assert_eq!(staircase(&ended), [(3, 1), (2, 2), (2, 2), (2, 4)], "{}", ended.said);
}

#[test]
fn a_killed_client_when_the_job_is_set_to_abort() {
    let _alone = alone();
    let ended = killed("abort", IN_A_STEP);
    assert_eq!(ended.code, 1, "{}", ended.said);
    let failed = ended.result["failed"].as_str().unwrap_or_default();
    assert_reported(&ended, failed);
    assert!(failed.contains("abort"), "{failed}");
    assert_eq!(staircase(&ended), [(3, 1)], "{}", ended.said);
}

#[test]
fn a_paused_client_is_named_and_the_run_degraded() {
    /// Longer than the heartbeats allow, shorter than what means lost.
    const PAUSE: Duration = Duration::from_millis(3_500);
    let _alone = alone();
    let scene = Scene::new("paused", &[&plain, &plain]);
    let mut run = scene.run(&["schedule=[[2,1],[2,2],[2,4]]", "step_max_ms=6000"]);
    run.wait_for_steps(1);
    scene.agents[1].signal(libc::SIGSTOP);
    std::thread::sleep(PAUSE);
    scene.agents[1].signal(libc::SIGCONT);
    let ended = run.end();
    ended.check_code();
    assert_eq!(ended.code, 3, "{}", ended.said);
    let told = ended.degraded();
    let (_, silent) = told.split_once("paused client 1: silent for ").expect(&ended.said);
    assert!(seconds(silent) >= PAUSE.as_secs_f64() - 0.5, "{silent}");
    assert!(!ended.degraded().contains("client 0"), "{}", ended.said);
    assert!(ended.result["clients"][1]["lost"].is_null(), "{}", ended.result["clients"]);
    assert!(marks(&ended).contains("client paused: client 1"), "{}", ended.summary());
}

#[test]
fn a_client_paused_for_too_long_is_lost_and_makes_no_more_load() {
    const LOST_AFTER_S: f64 = 2.0;
    let _alone = alone();
    let mut scene = Scene::new("stopped", &[&plain, &plain]);
    let schedule = "schedule=[[2,1],[2,2],[2,4]]";
    let steps = ["step_max_ms=3000", "steady.range_percent=0"];
    let mut run = scene.run(&[&[schedule, "lost_after_ms=2000"][..], &steps].concat());
    run.wait_for_steps(1);
    scene.agents[1].signal(libc::SIGSTOP);
    run.wait_for_steps(2);
    // Its conductor has given it up: it wakes up, finds that out and ends, with a step to go.
    scene.agents[1].signal(libc::SIGCONT);
    assert!(scene.agents[1].ends_within(Duration::from_secs(10)), "it goes on");
    assert!(run.is_running(), "the run was over before the agent");
    let ended = run.end();
    ended.check_code();
    assert_eq!(ended.code, 3, "{}", ended.said);
    assert_eq!(staircase(&ended), [(2, 1), (1, 2), (1, 4)], "{}", ended.said);
    let lost = ended.result["clients"][1]["lost"].as_str().unwrap_or_default();
    let (_, silent) = lost.split_once("paused or disconnected: silent for ").expect(lost);
    assert!(seconds(silent) >= LOST_AFTER_S, "{lost}");
    assert!(ended.degraded().contains("lost client 1"), "{}", ended.said);
}

/// The number that a text like "3.61 s, …" begins with.
fn seconds(text: &str) -> f64 {
    let (number, rest) = text.split_once(' ').expect(text);
    assert!(rest.starts_with('s'), "not in seconds: {text}");
    number.parse().expect(text)
}
