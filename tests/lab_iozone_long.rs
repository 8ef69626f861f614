//! IOzone's tests over the emulated link against the model, recomputed here, and IOzone itself and
//! the laboratory on a directory that is limited to 40 MB/s. `make test-long NAME=iozone` runs it;
//! the second part needs the program of IOzone in `IOZONE` (3.489), which is never a dependency.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use e2e::loops::LoopDisk;
use e2e::scratch::Scratch;
use e2e::{is_root, lab, patience, process};
use serde_json::Value;

/// How long the points of a command may take: of the 24 without encryption each has four attempts.
const RUN: Duration = patience(900);
/// Payload of a packet, and what it has in addition: headers of IP and TCP with timestamps.
const PACKET: (f64, f64) = (1448.0, 52.0);
/// Percent by which a figure may be off.
const OFF: f64 = 10.0;
/// What the limited directory carries, bytes per second.
const CAP: u64 = 40_000_000;
/// Rounds of both programs.
const PAIRS: usize = 5;

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// The least of what the children carry and of what the link does, bytes per second, for a record
/// on a link of this rate in bits per second.
fn model(children: f64, record: f64, rate: f64, rtt_s: f64) -> f64 {
    let packets = (record / PACKET.0).ceil();
    let link = rate / 8.0 * record / (record + packets * PACKET.1);
    link.min(children * record / (record / link + rtt_s))
}

/// What a point shows: round-trip time, children, encryption, writes and reads in bytes per second.
#[derive(Clone, Copy)]
struct Valid {
    rtt: f64,
    children: f64,
    encrypted: bool,
    rates: [f64; 2],
}

/// Measures these points: those that are valid, and what of them is off the model.
fn points(scratch: &Path, words: &[&str], all: usize) -> (Vec<Valid>, Vec<String>) {
    let mut command = lab::command();
    // Slow enough that the work of a call is little next to a record on the line.
    command.args(["iozone", "--over"]).args(words).args(["--rate", "50Mbit", "--json", "--out"]);
    let output = process::run(command.arg(scratch), RUN);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (rate, record) = (number(&result["plan"], "rate"), number(&result["plan"], "record"));
    let points = result["points"].as_array().expect("points");
    assert_eq!(points.len(), all, "every combination is a point");
    let (mut valid, mut wrong) = (Vec::new(), Vec::new());
    for point in points {
        assert_eq!(point["failed"], Value::Null, "{point}");
        let [rtt, children] = [number(point, "rtt_ms"), number(point, "threads")];
        let encrypted = point["encrypt"] == true;
        let name = format!("{rtt} ms, {children} children, encrypted {encrypted}");
        let Some(sample) = point["samples"].as_array().and_then(|all| all.first()) else {
            println!("{name}: condemned: {}", point["spoiled"]);
            assert!(point["figures"].is_null(), "what is condemned has no figure: {point}");
            assert!(!point["spoiled"].as_array().expect("a list").is_empty(), "{point}");
            continue;
        };
        let rates = ["write_bytes_s", "read_bytes_s"].map(|name| number(sample, name));
        let predicted = model(children, record, rate, number(sample, "rtt_s"));
        let off = (rates[1] / predicted - 1.0) * 100.0;
        let [write, read, model] = [rates[0], rates[1], predicted].map(|rate| rate / 1e6);
        println!("{name}: writes {write:.2}, reads {read:.2}, model {model:.2} MB/s, {off:+.1} %");
        wrong.extend((off.abs() > OFF).then(|| format!("{name}: reads {off:+.1} %")));
        valid.push(Valid { rtt, children, encrypted, rates });
    }
    println!("{} of {all} points are valid", valid.len());
    assert!(valid.len() * 4 >= all * 3, "most points were condemned");
    (valid, wrong)
}

#[test]
fn reads_follow_the_model_and_writes_are_flat_over_the_link() {
    if !is_root() || !Path::new("/dev/net/tun").exists() {
        println!("SKIP iozone-over: needs root and /dev/net/tun");
        return;
    }
    let scratch = Scratch::new("iozone-over");
    let at = |name: &str| scratch.path().join(name);
    // A point takes some seconds, and may be taken four times: encryption at its corners alone.
    let plain = ["0,0.2ms,1ms,2ms", "-t", "1,2,4,8,16,32", "--encrypt", "off"];
    let sealed = ["0,2ms", "-t", "1,8,32", "--encrypt", "on"];
    let (valid, mut wrong) = points(&at("plain"), &plain, 24);
    let (encrypted, off) = points(&at("sealed"), &sealed, 6);
    wrong.extend(off);
    for point in &valid {
        let (Valid { rtt, children, rates, .. }, from) = (*point, 4.0);
        let row = valid.iter().filter(|other| other.rtt == rtt && other.children >= from);
        let row: Vec<f64> = row.map(|other| other.rates[0]).collect();
        let mean = row.iter().sum::<f64>() / row.len().max(1) as f64;
        let off = (rates[0] / mean - 1.0) * 100.0;
        let flat = children < from || off.abs() <= OFF;
        wrong.extend((!flat).then(|| format!("{rtt} ms, {children}: not flat, {off:+.1} %")));
    }
    let mut compared = 0;
    for point in &encrypted {
        assert!(point.encrypted);
        let same = |other: &&Valid| other.rtt == point.rtt && other.children == point.children;
        let Some(plain) = valid.iter().find(same) else { continue };
        compared += 1;
        for (with, without) in point.rates.iter().zip(plain.rates) {
            let off = (with / without - 1.0) * 100.0;
            let name = || format!("{} ms, {}: encryption {off:+.1} %", point.rtt, point.children);
            wrong.extend((off.abs() > OFF).then(name));
        }
    }
    assert!(compared >= 3, "{compared} points with and without encryption");
    assert_eq!(wrong, [""; 0]);
}

/// A control group in which commands run.
struct Limited(PathBuf);

impl Limited {
    fn new() -> std::io::Result<Self> {
        let dir = format!("/sys/fs/cgroup/blkio/plimsoll-iozone-{}", std::process::id());
        fs::create_dir(&dir).map(|()| Self(dir.into()))
    }

    /// Both directions of a device.
    fn limit(&self, number: &str, bytes_s: u64) {
        for name in ["read_bps_device", "write_bps_device"] {
            let file = self.0.join(format!("blkio.throttle.{name}"));
            fs::write(file, format!("{number} {bytes_s}")).expect("a limit");
        }
    }

    /// The command, run in the group.
    fn run(&self, program: &Path, words: &[String]) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\"/cgroup.procs; exec \"$@\""]);
        process::run(command.arg(&self.0).arg(program).args(words), patience(120))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _gone = fs::remove_dir(&self.0);
    }
}

/// Name of each block with what the children and the parent see, kB/s, by the expressions of the
/// script.
fn blocks(scratch: &Path, output: &Output) -> Vec<(String, [f64; 2])> {
    let printed = scratch.join("printed");
    fs::write(&printed, &output.stdout).expect("written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/iozone_check.py");
    let mut command = Command::new("python3");
    let read = process::run(command.arg(script).arg("--form").arg(&printed), patience(30));
    let found: Value = serde_json::from_slice(&read.stdout).unwrap_or_else(|e| {
        let text = String::from_utf8_lossy(&output.stdout);
        panic!("{e}: {}\n{text}", String::from_utf8_lossy(&read.stderr))
    });
    let block = |block: &Value| {
        let title = block["title"].as_str().expect("a title").to_owned();
        (title, ["children_kb_s", "parent_kb_s"].map(|name| number(block, name)))
    };
    found.as_array().expect("blocks").iter().map(block).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// One program on a directory: writers and rewriters, then readers of what is not cached.
fn measured(
    (group, program): (&Limited, &Path),
    head: &str,
    tail: &str,
    (scratch, drop_cache): (&Path, &dyn Fn()),
) -> Vec<(String, [f64; 2])> {
    let mut all = Vec::new();
    for (tests, size) in [("-i 0 -o", "-s 24m -r 1m"), ("-i 1 -+n", "-s 24m -r 1m")] {
        let output = group.run(program, &words(&format!("{head} -t 2 {size} {tests} -w {tail}")));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{head}: {printed}");
        all.extend(blocks(scratch, &output));
        drop_cache();
    }
    all
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians of what both see, IOzone's and ours, for each block.
fn pairs(
    (group, iozone): (&Limited, &Path),
    dir: &Path,
    scratch: &Path,
    drop_cache: &dyn Fn(),
) -> Vec<(String, [[f64; 2]; 2])> {
    let files = format!("-F {0}/t0 {0}/t1", dir.display());
    let ours = format!("--target path:{} --quiet --out {}/out", dir.display(), scratch.display());
    let (own, mut samples) = (e2e::server::binary(), [Vec::new(), Vec::new()]);
    for pair in 0..PAIRS {
        for n in [pair % 2, 1 - pair % 2] {
            let (program, head, tail) = match n {
                0 => (iozone, "", files.as_str()),
                _ => (own, "lab iozone", ours.as_str()),
            };
            let found = measured((group, program), head, tail, (scratch, drop_cache));
            samples[n].push(found);
        }
    }
    let titles: Vec<String> = samples[0][0].iter().map(|(title, _)| title.clone()).collect();
    let of = |n: usize, block: usize| {
        [0, 1].map(|what| median(samples[n].iter().map(|run| run[block].1[what]).collect()))
    };
    titles.into_iter().enumerate().map(|(at, title)| (title, [of(0, at), of(1, at)])).collect()
}

#[test]
fn iozone_itself_and_the_laboratory_see_the_same_on_a_limited_directory() {
    let Some(iozone) = std::env::var_os("IOZONE").map(PathBuf::from) else {
        println!("SKIP iozone-itself: IOZONE names no program");
        return;
    };
    let scratch = Scratch::below(Path::new("/dev/shm"), "iozone-itself");
    let group = Limited::new().expect("a control group (blkio, version 1)");
    let memory = scratch.folder("memory", None);
    // Its own 13 blocks have the form that is read.
    let files: Vec<String> = (0..3).map(|n| format!("{}/a{n}", memory.display())).collect();
    let all = format!("-t 3 -s 1m -r 64k -F {}", files.join(" "));
    let output = group.run(&iozone, &words(&all));
    assert_eq!(blocks(scratch.path(), &output).len(), 13);
    let show = |what: &str, title: &str, [theirs, ours]: &[[f64; 2]; 2]| {
        let ratio = [0, 1].map(|n| ours[n] / theirs[n]);
        println!(
            "{what}, {title}: IOzone {:.0} and {:.0} kB/s, ours {:.0} and {:.0}: ratio of children \
             {:.3}, of parents {:.3}",
            theirs[0], theirs[1], ours[0], ours[1], ratio[0], ratio[1]
        );
        ratio
    };
    for (title, medians) in pairs((&group, &iozone), &memory, scratch.path(), &|| {}) {
        show("in memory", &title, &medians);
    }
    let disk = LoopDisk::new().expect("a loop device");
    group.limit(&disk.number(), CAP);
    let found = pairs((&group, &iozone), disk.path(), scratch.path(), &|| disk.drop_cache());
    for (title, medians) in found {
        for ratio in show("at 40 MB/s", &title, &medians) {
            assert!((ratio - 1.0).abs() <= 0.05, "{title}: {ratio}");
        }
    }
}
