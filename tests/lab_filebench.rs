//! Workload files that Filebench ships, by Filebench and by the laboratory on one directory in
//! memory: shares of their operations, and processor time of each. `make test-long NAME=filebench`
//! runs it, with a checkout of filebench/filebench in `FILEBENCH_CHECKOUT` and the program that was
//! built from it in `FILEBENCH`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::scratch::Scratch;
use e2e::{lab, patience, process};
use serde_json::Value;

/// How long one run of either may take.
const RUN: Duration = patience(180);
/// Seconds of each run.
const SECONDS: &str = "5";
/// How often Filebench is started for a workload: it ends one early, without figures, when an
/// operation of it finds no file (filebench#127).
const TRIES: usize = 5;
/// Points by which shares may differ.
const POINTS: f64 = 1.0;
/// Workloads, with values that differ from those in the text: smaller sets, and for Filebench more
/// files where it ends early otherwise (filebench#127).
const WORKLOADS: [(&str, &[(&str, &str)]); 8] = [
    ("varmail", &[("nfiles", "50000")]),
    ("fileserver", &[("nfiles", "10000")]),
    ("webserver", &[]),
    ("webproxy", &[("nfiles", "100000")]),
    ("randomrw", &[("filesize", "64m")]),
    ("mongo", &[("nfiles", "20000")]),
    ("listdirs", &[("nfiles", "5000")]),
    // Each thread has 128 files open: fewer of them than a process may have.
    ("oltp", &[("filesize", "1m"), ("logfilesize", "1m"), ("nfiles", "4"), ("nshadows", "100")]),
];
/// Percent of all operations below which one is rare.
const RARE: f64 = 0.5;
/// Their balance depends on the speed of threads: only what is done is compared.
const BY_KIND: [&str; 2] = ["randomrw", "oltp"];

fn given(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name).map(PathBuf::from);
    if path.is_none() {
        println!("SKIP filebench: {name} names nothing");
    }
    path
}

/// Processor time of ended children, seconds.
fn cpu() -> f64 {
    // SAFETY: plain data, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is of this function.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The text with these values and this directory, without its own end.
fn changed(text: &str, dir: &Path, values: &[(&str, &str)]) -> String {
    let line = |line: &str| {
        let set = line.strip_prefix("set $").and_then(|rest| rest.split_once('='));
        let to = set.and_then(|(name, _)| match name {
            "dir" => Some((name, dir.display().to_string())),
            name => values.iter().find(|(n, _)| *n == name).map(|(n, v)| (*n, (*v).to_owned())),
        });
        match to {
            Some((name, value)) => format!("set ${name}={value}\n"),
            None if line.starts_with("run") => String::new(),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Calls of each flowop as Filebench prints them, and processor time for each, µs; it takes longer
/// than its threads run, so this is an upper bound.
fn by_filebench(
    program: &Path,
    text: &str,
    dir: &Path,
    scratch: &Path,
) -> (BTreeMap<String, u64>, f64) {
    let file = scratch.join("theirs.f");
    fs::write(&file, format!("{text}\nrun {SECONDS}\n")).expect("written");
    let mut printed = String::new();
    for _ in 0..TRIES {
        let (calls, used);
        (printed, calls, used) = one_run(program, &file);
        fs::remove_dir_all(dir).expect("removed");
        fs::create_dir(dir).expect("made");
        let all: u64 = calls.values().sum();
        if all > 0 {
            return (calls, used * 1e6 / all as f64);
        }
    }
    panic!("Filebench has run nothing {TRIES} times: {printed}");
}

/// What Filebench prints, its calls by flowop, and its processor time in seconds.
fn one_run(program: &Path, file: &Path) -> (String, BTreeMap<String, u64>, f64) {
    let before = cpu();
    let mut command = Command::new("setarch");
    command.arg("-R").arg(program).arg("-f").arg(file);
    let output = process::run(&mut command, RUN);
    let used = cpu() - before;
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let flowop = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, calls) = (words.next()?, words.next()?.strip_suffix("ops")?);
        words.next().filter(|rate| rate.ends_with("ops/s"))?;
        Some((name.to_owned(), calls.parse().ok()?))
    };
    let calls = printed.lines().filter_map(flowop).collect();
    printed.push_str(&String::from_utf8_lossy(&output.stderr));
    (printed, calls, used)
}

fn by_the_laboratory(text: &str, dir: &Path, scratch: &Path) -> (BTreeMap<String, u64>, f64) {
    let (file, out) = (scratch.join("ours.f"), scratch.join("out"));
    fs::write(&file, text).expect("written");
    let mut command = lab::command();
    command.arg("run").arg(&file).args(["--target", &format!("path:{}", dir.display())]);
    command.args(["--seconds", SECONDS, "--quiet", "--clean", "--out"]).arg(&out);
    let output = process::run(&mut command, RUN);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let text = fs::read_to_string(out.join("result.json")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let acts = result["acts"].as_array().expect("acts").iter();
    let act = |act: &Value| {
        let name = act["name"].as_str().expect("a name").to_owned();
        (name, act["calls"].as_u64().expect("a count"))
    };
    (acts.map(act).collect(), result["cpu_us_per_operation"].as_f64().expect("a figure"))
}

#[test]
fn shares_of_shipped_workloads_are_those_of_filebench() {
    let Some((checkout, program)) = given("FILEBENCH_CHECKOUT").zip(given("FILEBENCH")) else {
        return;
    };
    let scratch = Scratch::below(Path::new("/dev/shm"), "filebench");
    let mut wrong = Vec::new();
    for (name, values) in WORKLOADS {
        let dir = scratch.folder("data", None);
        let shipped = checkout.join(format!("workloads/{name}.f"));
        let text = fs::read_to_string(&shipped).expect("a workload");
        let text = changed(&text, &dir, values);
        let (theirs, their_cpu) = by_filebench(&program, &text, &dir, scratch.path());
        let (ours, our_cpu) = by_the_laboratory(&text, &dir, scratch.path());
        fs::remove_dir_all(&dir).expect("removed");
        let (all, their_all): (u64, u64) = (ours.values().sum(), theirs.values().sum());
        let share = |calls: Option<&u64>, all: u64| {
            calls.map_or(0.0, |calls| *calls as f64 * 100.0 / all as f64)
        };
        let mut largest = 0.0f64;
        for (act, calls) in &theirs {
            let (a, b) = (share(ours.get(act), all), share(Some(calls), their_all));
            largest = largest.max((a - b).abs());
            let is_right = match BY_KIND.contains(&name) {
                // What Filebench does rarely need not have its turn here.
                true => a > 0.0 || b < RARE,
                false => (a - b).abs() < POINTS,
            };
            if !is_right {
                wrong.push(format!("{name}: {act}: {a:.2} %, Filebench {b:.2} %"));
            }
        }
        println!(
            "{name}: {all} and {their_all} operations, largest difference {largest:.2} points, \
             {our_cpu:.2} and {their_cpu:.2} µs CPU for each"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
