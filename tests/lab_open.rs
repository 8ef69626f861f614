//! Open loops in real time against the real server, over NFS, SMB and iSCSI: arrivals are counted
//! exactly, and a load generator that is late by more than a tenth of the latency is exit code 3.
//! Curves and bounds are open loops at rates that the laboratory finds.

use std::path::Path;

use e2e::iscsi::Access;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::smb_share::SmbShare;
use e2e::{lab, patience, process};
use serde_json::Value;

/// Arrivals per second of both clients.
const RATE: f64 = 400.0;
/// Time in which they arrive, s: a second, and no warm-up.
const SECONDS: f64 = 1.0;

struct Opened {
    code: i32,
    result: Value,
    notes: String,
}

/// Runs two clients against `url` with these settings.
fn run(url: &str, settings: &[&str]) -> Opened {
    let out = Scratch::new("lab-open");
    let mut command = lab::command();
    command.args(["run", "iops-4k", "--target", url, "--clients", "2", "--clean", "--json"]);
    command.args(["--retries", "0"]);
    command.arg("--out").arg(out.path());
    let common = ["warmup_ms=0", "window_ms=100", "file_size=1m"];
    command.args(common.iter().chain(settings).flat_map(|set| ["--set", set]));
    let output = process::run(&mut command, patience(60));
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(out.path().join("result.json")).unwrap_or_default();
    let result: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {notes}"));
    let code = output.status.code().expect("a code");
    assert_eq!(result["failed"], Value::Null, "{notes}");
    Opened { code, result, notes }
}

fn open_loop(url: &str) -> Opened {
    let rate = format!("open.rate={RATE}");
    let set = ["schedule=[[2,16]]", "row.seconds=1", "open.arrival=constant", &rate];
    run(url, &set)
}

/// Whether the generator was late, which the exit code must show.
fn check(what: &str, opened: &Opened) -> bool {
    let Opened { code, result, notes } = opened;
    let step = &result["steps"][0];
    assert_eq!(step["errors"], 0, "{what}: {step:#}");
    let open = &step["open"];
    let count = |name: &str| open["counts"][name].as_f64().expect("a count");
    assert_eq!(count("offered"), count("started") + count("skipped"), "{what}: {open:#}");
    assert_eq!(count("started"), count("completed"), "{what}: {open:#}");
    let expected = RATE * SECONDS;
    assert!((count("offered") - expected).abs() <= 2.0, "{what}: {expected}: {open:#}");
    let late = open["lateness"]["p99"].as_f64().expect("a time");
    let latency = step["latency"]["p99"].as_f64().expect("a time");
    let condemned = open["condemned"].as_str();
    // The step's latency has fewer operations than the judgement: those of its last window miss.
    if late > 0.2 * latency {
        assert!(condemned.is_some(), "{what}: {late} of {latency}: {open:#}");
    } else if late < 0.05 * latency {
        assert!(condemned.is_none(), "{what}: {late} of {latency}: {open:#}");
    }
    if let Some(sentence) = condemned {
        assert_eq!(*code, 3, "{what}: {notes}");
        let degraded = result["degraded"].as_array().expect("a list");
        assert!(degraded.iter().any(|d| d == sentence), "{what}: {degraded:?}");
        assert!(sentence.contains("at most 10 % is valid"), "{what}: {sentence}");
    }
    println!("{what}: late {late} ns of {latency} ns, exit code {code}");
    condemned.is_some()
}

#[test]
fn arrivals_over_nfs_are_counted_and_a_late_generator_is_shown() {
    let dir = Scratch::below(Path::new("/dev/shm"), "open-nfs");
    let target = lab::Target::start(dir.path(), "127.0.0.1", None);
    check("nfs3", &open_loop(&target.url));
    check("nfs4", &open_loop(&target.url.replace("nfs3:", "nfs4:")));
}

#[test]
fn arrivals_over_smb_are_counted_and_a_late_generator_is_shown() {
    let smb = SmbShare::start("open-smb", &[]);
    check("smb", &open_loop(&smb.url("")));
}

#[test]
fn arrivals_over_iscsi_are_counted_and_a_late_generator_is_shown() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "open-iscsi");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    options.args = ["--lun", "disk=64M"].map(Into::into).to_vec();
    let server = Server::start(&options);
    check("iscsi", &open_loop(&Access::of(&state).url(server.at(3260), 0)));
}

/// Against nothing an operation takes no time: all of the latency is the generator's own.
#[test]
fn a_generator_that_is_all_of_the_latency_is_exit_code_3() {
    assert!(check("null", &open_loop("null:")));
}

#[test]
fn a_curve_and_a_bound_follow_the_steps() {
    let dir = Scratch::below(Path::new("/dev/shm"), "open-curve");
    let target = lab::Target::start(dir.path(), "127.0.0.1", None);
    let steps = ["schedule=[[1,1],[2,2]]", "step_max_ms=600"];
    let set = |more: &[&'static str]| [&steps[..], more].concat();
    let curve = run(&target.url, &set(&["curve.percent=[20,60]", "curve.each_ms=400"]));
    let points = curve.result["shape"]["curve"].as_array().expect("points").clone();
    let max = curve.result["steps"].as_array().expect("steps").iter();
    let max = max.filter(|step| step["probe"].is_null()).filter_map(|step| step["ops_s"].as_f64());
    let max = max.fold(0.0, f64::max);
    for (point, percent) in points.iter().zip([20.0, 60.0]) {
        let rate = point["rate"].as_f64().expect("a rate");
        assert!((rate / max - percent / 100.0).abs() < 1e-6, "{max}: {points:?}");
    }
    assert_eq!((points.len(), &curve.result["limit"]["limiter"].is_string()), (2, &true));

    let bound = run(&target.url, &set(&["bound.limit_us=1e9", "bound.each_ms=300"]));
    let found = &bound.result["shape"]["bound"];
    // A limit of 1,000 s is never broken; a busy machine may skip arrivals, which ends the search.
    assert!(found["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{found:#}");
    assert!(found["at_least"] == true || found["above"].is_f64(), "{found:#}");
    assert!(found["at_least"] == false || bound.code == 3, "{}", bound.notes);
}

#[test]
fn a_row_takes_its_time_and_a_ramp_adds_threads() {
    let row = run("null:", &["schedule=[[2,4]]", "row.seconds=1"]);
    assert_eq!(row.result["steps"].as_array().map(Vec::len), Some(1));
    // A busy machine loses windows at the end.
    let used = row.result["steps"][0]["used"][1].as_u64();
    assert!(used.is_some_and(|windows| (8..=10).contains(&windows)), "{used:?}");
    let set = ["ramp.client_ms=800", "ramp.thread_ms=200", "ramp.threads=3"];
    let ramp = run("null:", &set);
    let steps = ramp.result["steps"].as_array().expect("steps");
    let flying: Vec<f64> =
        steps.iter().map(|s| s["little"]["nominal"].as_f64().expect("a number")).collect();
    assert_eq!(flying, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{}", ramp.notes);
}
