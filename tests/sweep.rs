//! Sweeps over distance and window by the one command, of TCP and of protocols over it: every point
//! has its result next to the model's, or is reported as spoiled; nothing carries more than the
//! model allows; no namespace, server or file is left behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use e2e::scratch::Scratch;
use e2e::{lab, process, skip};
use serde_json::Value;

/// How long a sweep may take, all its points measured several times over.
const RUN: Duration = e2e::patience(900);
/// What a figure may be above the model, by clocks and by how round trips vary.
const ABOVE: f64 = 1.1;

/// Why there can be no sweep here.
fn missing() -> Option<&'static str> {
    match (e2e::is_root(), Path::new("/dev/net/tun").exists()) {
        (false, _) => Some("needs root"),
        (true, false) => Some("no /dev/net/tun"),
        (true, true) => None,
    }
}

fn command(out: &Path, words: &[&str]) -> Command {
    let mut command = lab::command();
    command.args(["sweep", "--json", "--out"]).arg(out).args(words);
    command
}

/// A protocol at a slow link: the least and the most that it may carry, as parts of the model. A
/// server has work of its own with each block, and this machine other work.
const PROTOCOL: (f64, f64) = (0.5, ABOVE);

/// Runs a sweep; its result and its exit code.
fn sweep(out: &Path, words: &[&str]) -> (Value, i32) {
    let before = left_behind();
    let output = process::run(&mut command(out, words), RUN);
    let mut left = left_behind();
    left.retain(|name| !before.contains(name));
    assert!(left.is_empty(), "{left:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    (result, output.status.code().unwrap_or_else(|| panic!("{said}")))
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

fn points(result: &Value) -> &Vec<Value> {
    result["points"].as_array().expect("points")
}

/// What holds of every sweep, however busy the machine is.
fn check(result: &Value, code: i32) {
    let degraded = result["degraded"].as_array().expect("a list");
    assert_eq!(code, if degraded.is_empty() { 0 } else { 3 }, "{degraded:?}");
    let mut wrong = 0;
    for point in points(result) {
        assert_eq!(point["failed"], Value::Null, "{point}");
        if point["figures"].is_null() {
            assert!(point["samples"].as_array().expect("a list").is_empty(), "{point}");
            assert!(!point["spoiled"].as_array().expect("a list").is_empty(), "{point}");
            wrong += 1;
            continue;
        }
        let (measured, predicted) =
            (number(point, "/figures/bytes_s/median"), number(point, "/figures/predicted"));
        assert!(measured > 0.0 && measured <= predicted * ABOVE, "{point}");
        let (set, found) = (number(point, "/at/rtt_ms") / 1e3, number(point, "/figures/rtt_s"));
        assert!(found >= set, "{point}");
        wrong += usize::from(number(point, "/figures/off_percent").abs() > 10.0);
        let known = ["link", "acknowledgements", "receive-window", "send-buffer", "loss"];
        let limiter = point["figures"]["limiter"].as_str().expect("a limiter");
        assert!(known.contains(&limiter) || limiter == "congestion-window" || limiter == "unknown");
    }
    assert_eq!(degraded.len(), wrong, "{degraded:?}");
}

/// Namespaces of sweeps that have ended, without those of a sweep that runs at the same time.
fn left_behind() -> Vec<String> {
    let netns = Path::new("/run/netns");
    let names = std::fs::read_dir(netns).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_left = |name: &String| {
        let pid = name.strip_prefix("sweep-").and_then(|rest| rest.split('-').next());
        // In this order: a sweep ends after its namespaces.
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) && netns.join(name).exists()
    };
    names.filter(is_left).collect()
}

#[test]
fn every_point_of_a_small_grid_is_measured_or_reported_as_spoiled() {
    if let Some(why) = missing() {
        skip!("sweep", "{why}");
    }
    for carrier in ["stop-and-wait", "stream"] {
        let dir = Scratch::new("sweep");
        let grid = ["--rtt", "5ms,40ms", "--window", "32K,128K", "--repeats", "1", "--quiet"];
        let words = [&["--carrier", carrier, "--rate", "50Mbit"][..], &grid[..]].concat();
        let (result, code) = sweep(dir.path(), &words);
        println!("{carrier}: {code}: {result}");
        assert_eq!(points(&result).len(), 4);
        check(&result, code);
        let kept = std::fs::read(dir.path().join("result.json")).expect("a result");
        let kept: Value = serde_json::from_slice(&kept).expect("JSON");
        assert_eq!(kept, result, "what is kept is what is told");
        let page = std::fs::read_to_string(dir.path().join("report.html")).expect("a report");
        assert!(page.contains("</html>") && !page.contains("{{"), "{page}");
    }
}

/// Folders of servers that sweeps have started.
fn folders_left() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains("plimsoll-sweep-");
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

#[test]
fn protocols_carry_what_the_model_predicts_over_a_slow_link() {
    if let Some(why) = missing() {
        skip!("sweep-protocols", "{why}");
    }
    let before = folders_left();
    let (small, large) = ("64K", "4M");
    for (carrier, instances, window) in [
        ("nfs-read", "1,4", small),
        ("nfs-write", "2", small),
        ("ftp", "1", small),
        ("https", "2", small),
        ("sftp", "2", small),
        ("dsync", "2", large),
    ] {
        if carrier == "dsync" && !e2e::has("ssh") {
            println!("SKIP sweep-dsync: ssh is not installed (openssh-client)");
            continue;
        }
        let dir = Scratch::new("sweep");
        let point = ["--rtt", "20ms", "--window", window, "--rate", "40Mbit", "--repeats", "1"];
        let more = ["--carrier", carrier, "--instances", instances, "--quiet"];
        let (result, code) = sweep(dir.path(), &[&point[..], &more[..]].concat());
        check(&result, code);
        for point in points(&result) {
            println!("{carrier}: {code}: {} {}", point["at"], point["figures"]);
            assert_eq!(result["plan"]["carrier"], carrier);
            if point["figures"].is_null() {
                continue;
            }
            let measured = number(point, "/figures/bytes_s/median");
            let part = measured / number(point, "/figures/predicted");
            assert!(part > PROTOCOL.0 && part < PROTOCOL.1, "{carrier}: {part}: {point}");
        }
    }
    let mut left = folders_left();
    left.retain(|path| !before.contains(path));
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn invalid_values_are_wrong_usage() {
    let dir = Scratch::new("sweep");
    let refused = |words: &[&str]| -> Output {
        process::run(&mut command(dir.path(), words), process::DEADLINE)
    };
    let too_large = ["--carrier", "nfs-read", "--window", "2M"];
    for words in [&["--rate", "none"][..], &["--window", "1"], &["--figure", "4"], &too_large] {
        let output = refused(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
#[ignore = "measures: needs a machine that has nothing else to do"]
fn the_figures_of_the_source_are_redrawn() {
    if let Some(why) = missing() {
        skip!("sweep-figures", "{why}");
    }
    for figure in ["5", "6", "7"] {
        let dir = Scratch::new("sweep");
        let (result, code) = sweep(dir.path(), &["--figure", figure]);
        check(&result, code);
        for point in points(&result) {
            println!("figure {figure}: {} {}", point["at"], point["figures"]);
        }
        assert_eq!(code, 0, "{}", result["degraded"]);
    }
}
