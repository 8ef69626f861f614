//! Limits that are planted must be named: a CPU quota on the server, a slow back end, a link with a
//! limited rate, a throttled generator. Each has a control run without the plant, which must name
//! something else.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use e2e::cgroup::Group;
use e2e::lab::{Agent, Ended, Run, Target};
use e2e::link::{self, Link};
use e2e::loops::LoopDisk;
use e2e::scratch::Scratch;
use e2e::{has, is_root, skip};
use sim::forget::{self, ForgetFs};

/// Steps of about a second and a half at most: this is about the verdict, not about the figure.
const SHORT: [&str; 4] = ["warmup_ms=200", "window_ms=200", "step_max_ms=1600", "file_size=2m"];

/// One at a time: each of them is about the distribution of CPU time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `job` with two clients, short, and checks that the exit code fits the record.
fn short(job: &str, target: &Target, schedule: &str, prepare: impl FnOnce(&mut Command)) -> Ended {
    let schedule = format!("schedule={schedule}");
    let mut settings = SHORT.to_vec();
    settings.push(&schedule);
    let ended = Run::start(job, target, &settings, prepare).end();
    ended.check_code();
    assert_ne!(ended.code, 1, "{}", ended.said);
    println!("{job}: {}: {}", ended.limiter(), ended.why().replace('\n', "; "));
    ended
}

fn two_clients(command: &mut Command) {
    command.args(["--clients", "2"]);
}

/// A directory in memory, so that no disk has a part in it.
fn memory(name: &str) -> Scratch {
    Scratch::below(Path::new("/dev/shm"), name)
}

#[test]
fn a_cpu_quota_on_the_server() {
    const CORES: f64 = 0.2;
    let _alone = alone();
    if !is_root() {
        skip!("planted-quota", "needs root");
    }
    let quota = match Group::with_cores(CORES) {
        Ok(quota) => quota,
        Err(why) => skip!("planted-quota", "{why}"),
    };
    let dir = memory("quota");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let schedule = "[[1,1],[2,4],[2,16]]";
    let control = short("iops-4k", &target, schedule, two_clients);
    assert_ne!(control.limiter(), "cpu-quota", "{}", control.summary());

    quota.take(target.pid());
    let planted = short("iops-4k", &target, schedule, two_clients);
    assert_eq!(planted.limiter(), "cpu-quota", "{}", planted.summary());
    assert!(planted.why().contains("CPU quota of 0.20 cores"), "{}", planted.summary());
    let used = planted.evidence()["server_cores"].as_f64().unwrap_or(0.0);
    assert!((0.3 * CORES..1.5 * CORES).contains(&used), "{used} cores: {}", planted.summary());
}

#[test]
fn a_slow_back_end() {
    const EACH: Duration = Duration::from_millis(5);
    let _alone = alone();
    if let Err(why) = forget::available() {
        skip!("planted-slow-back-end", "{why}");
    }
    let dir = Scratch::new("slow");
    let mounted = ForgetFs::mount(dir.path()).expect("a mount");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let schedule = "[[1,1],[2,1],[2,4]]";
    let control = short("iops-4k", &target, schedule, two_clients);
    assert_ne!(control.limiter(), "latency", "{}", control.summary());

    mounted.set_op_delay(EACH);
    let planted = short("iops-4k", &target, schedule, two_clients);
    assert_eq!(planted.limiter(), "latency", "{}", planted.summary());
    let latency = planted.evidence()["point"]["latency_ns"].as_f64().unwrap_or(0.0);
    assert!(latency >= EACH.as_nanos() as f64, "{}", planted.summary());
    let told = planted.why();
    let shown = base::units::time_ns(latency);
    assert!(told.contains(&format!("an operation took {shown}")), "{}", planted.summary());
}

#[test]
fn a_link_with_a_limited_rate() {
    const MEGABITS: u32 = 200;
    let _alone = alone();
    if !is_root() {
        skip!("planted-link", "needs root");
    }
    let over = |megabits| -> Result<Ended, String> {
        let link = Link::new(megabits)?;
        let dir = memory("link");
        let target = Target::start(dir.path(), link::SERVER, Some(&link.server));
        let agents: Vec<Agent> =
            (0..2).map(|_| Agent::start(|command| link.clients.enter(command))).collect();
        Ok(short("dram-read-stream", &target, "[[1,1],[2,2],[2,4]]", |command| {
            Agent::used_by(command, &agents);
            link.clients.enter(command);
        }))
    };
    let planted = match over(Some(MEGABITS)) {
        Ok(ended) => ended,
        Err(why) => skip!("planted-link", "{why}"),
    };
    assert_eq!(planted.limiter(), "network", "{}", planted.summary());
    // Payload: what is left of the rate after headers, and never more than it.
    let rate = planted.evidence()["point"]["bytes_s"].as_f64().unwrap_or(0.0);
    let limit = f64::from(MEGABITS) * 1e6 / 8.0;
    assert!(
        (0.6 * limit..1.05 * limit).contains(&rate),
        "{rate} of {limit}: {}",
        planted.summary()
    );
    assert!(
        planted.why().contains("the busiest link, wire0, transferred"),
        "{}",
        planted.summary()
    );
    let control = over(None).expect("a second link");
    assert_ne!(control.limiter(), "network", "{}", control.summary());
}

#[test]
fn a_throttled_generator() {
    const CORES: f64 = 0.1;
    let _alone = alone();
    if !is_root() {
        skip!("planted-generator", "needs root");
    }
    let quota = match Group::with_cores(CORES) {
        Ok(quota) => quota,
        Err(why) => skip!("planted-generator", "{why}"),
    };
    let dir = memory("generator");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let with_agents = |prepare: &dyn Fn(&mut Command)| {
        let agents: Vec<Agent> = (0..2).map(|_| Agent::start(prepare)).collect();
        short("iops-4k", &target, "[[1,1],[2,4],[2,16]]", |command| {
            Agent::used_by(command, &agents);
        })
    };
    let planted = with_agents(&|command| quota.enter(command));
    assert_eq!(planted.limiter(), "generator", "{}", planted.summary());
    assert!(planted.why().contains("agent's control group was throttled"), "{}", planted.why());
    let control = with_agents(&|_| ());
    assert!(!control.why().contains("quota"), "{}", control.summary());
}

/// What a run with a plant predicts as the next limit, and what the run without it reaches.
fn predicted(name: &str, planted: &Ended, control: &Ended) -> Option<f64> {
    let demands = &planted.result["demands"];
    let next = demands["next"]["name"].as_str();
    let all = demands["demands"].as_array().into_iter().flatten();
    let bound = { all }.find(|d| d["name"].as_str() == next).and_then(|d| d["bound"].as_f64());
    let reached = |ended: &Ended| {
        let steps = ended.result["steps"].as_array().into_iter().flatten();
        steps.filter_map(|step| step["ops_s"].as_f64()).fold(0.0, f64::max)
    };
    let (at, measured) = (reached(planted), reached(control));
    let ratio = bound.map(|bound| bound / measured);
    assert!(at > 0.0 && measured > 0.0, "{name}: {}\n{}", planted.summary(), control.summary());
    println!(
        "{name}: without a demand {}, inconsistent {}",
        demands["without"], demands["inconsistent"]
    );
    println!(
        "next limit, {name}: {} at {at:.0} ops/s; next {} at {:.0}; without the plant \
         {measured:.0} ({}): predicted ÷ measured {:.2}",
        planted.limiter(),
        next.unwrap_or("none"),
        bound.unwrap_or(f64::NAN),
        control.limiter(),
        ratio.unwrap_or(f64::NAN),
    );
    ratio
}

/// A quota, a link and a capped disk are planted; what comes after each is predicted, and measured
/// without it. What the ratio is on a busy machine decides nothing; docs/howto/limits.md has some.
#[test]
fn the_next_limit_is_that_of_a_run_without_the_plant() {
    let _alone = alone();
    if !is_root() || !has("losetup") || !has("mkfs.ext4") {
        skip!("planted-next", "needs root, losetup and mkfs.ext4");
    }
    let mut ratios = Vec::new();
    let run = |target: &Target, more: &[&str], prepare: &dyn Fn(&mut Command)| {
        // All steps: a demand is a line through loads below the limit and at it.
        let steps = ["schedule=[[1,1],[2,1],[2,2],[2,4],[2,8],[2,16]]", "plateau.min_steps=9"];
        let times = ["warmup_ms=200", "window_ms=200", "step_max_ms=1600"];
        let settings = [&steps[..], &times, more].concat();
        let ended = Run::start("iops-4k", target, &settings, |command| {
            two_clients(command);
            prepare(command);
        });
        ended.end()
    };
    let nothing = |_: &mut Command| ();

    let quota = Group::with_cores(1.0).expect("a group");
    let dir = memory("next-quota");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let control = run(&target, &["file_size=2m"], &nothing);
    quota.take(target.pid());
    let planted = run(&target, &["file_size=2m"], &nothing);
    ratios.extend(predicted("CPU quota", &planted, &control));
    drop(target);

    let over = |megabits: Option<u32>| {
        let link = Link::new(megabits).expect("a link");
        let dir = memory("next-link");
        let target = Target::start(dir.path(), link::SERVER, Some(&link.server));
        run(&target, &["file_size=2m"], &|command| link.clients.enter(command))
    };
    let (planted, control) = (over(Some(2_000)), over(None));
    ratios.extend(predicted("link", &planted, &control));

    // A step reads one of sixteen blocks once: with an eighth of this size, a release build had
    // read them before the first window.
    let disk = LoopDisk::of_size("ext4", 4 << 30).expect("a disk");
    let capped = IoGroup::new().expect("a group");
    let cold = |reads: u64| {
        let target = Target::start(disk.path(), "127.0.0.1", None);
        capped.take(target.pid());
        capped.set(&disk.number(), reads);
        let ended = run(&target, &["file_size=1600m", "cold=true"], &nothing);
        capped.set(&disk.number(), 0);
        ended
    };
    let (planted, control) = (cold(8_000), cold(0));
    ratios.extend(predicted("capped disk", &planted, &control));
    println!("next limit: {} of 3 are predicted", ratios.len());
}

/// A control group of version 1 that caps reads.
struct IoGroup(PathBuf);

impl IoGroup {
    fn new() -> std::io::Result<Self> {
        let dir = format!("/sys/fs/cgroup/blkio/plimsoll-next-{}", std::process::id());
        std::fs::create_dir(&dir).map(|()| Self(dir.into()))
    }

    fn take(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("a member");
    }

    fn set(&self, device: &str, cap: u64) {
        let file = self.0.join("blkio.throttle.read_iops_device");
        std::fs::write(file, format!("{device} {cap}")).expect("a cap");
    }
}

impl Drop for IoGroup {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir(&self.0);
    }
}
