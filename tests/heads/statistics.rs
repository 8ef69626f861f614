//! Statistics over heads: what clients of the laboratory have done is equal at each head, exactly
//! what the laboratory has counted, before and after a takeover; and seconds without data are named
//! by head. What a head that vanished had stored is still what it was.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use e2e::api::{now, sum};
use e2e::scratch::Scratch;
use e2e::{is_root, lab, patience, process, skip};
use serde_json::Value;

use super::cluster::{ACCOUNTS, Cluster, LEFT, PROJECTS, RIGHT, Resource};

/// All clients of the laboratory have the address of their machine.
const CLIENT: &str = "10.77.0.1";
const STATISTIC: &str = "nfs.ops[client]";
/// A short run, of two clients.
const RUN: [&str; 5] =
    ["warmup_ms=200", "window_ms=200", "step_max_ms=1600", "file_size=1m", "schedule=[[2,1]]"];
/// How long it may take on a busy machine.
const RUN_TIME: Duration = patience(60);
/// Fewer would show nothing; a machine with much else to do makes some tens.
const CALLS_MIN: u64 = 20;

/// A run of the laboratory on a resource.
struct Laboratory {
    child: Child,
    out: Scratch,
}

impl Laboratory {
    fn start(cluster: &Cluster, resource: &Resource) -> Self {
        let out = Scratch::new("heads-laboratory");
        let target = format!("nfs3://{}{}", resource.address(), resource.export());
        let mut command = lab::command();
        command.args(["run", "iops-4k", "--target", &target, "--clients", "2", "--json"]);
        // A run that was disturbed counts, and one more would be counted too.
        command.args(["--retries", "0", "--out"]).arg(out.path());
        command.args(RUN.iter().flat_map(|setting| ["--set", setting]));
        let said = fs::File::create(out.path().join("said")).expect("a file");
        command.stdout(Stdio::null()).stderr(said);
        cluster.switch.enter(&mut command);
        Self { child: command.spawn().expect("the laboratory"), out }
    }

    /// The number of calls of its clients, from its result.
    fn calls(mut self) -> u64 {
        let text = |name: &str| fs::read_to_string(self.out.path().join(name)).unwrap_or_default();
        let ended = process::wait(&mut self.child, RUN_TIME);
        // 3: a step that was not steady changes nothing of what is counted.
        let code = ended.and_then(|status| status.code());
        assert!(matches!(code, Some(0 | 3)), "{ended:?}\n{}", text("said"));
        let result: Value = serde_json::from_str(&text("result.json")).expect("JSON");
        let clients = result["clients"].as_array().expect("clients");
        let calls = clients.iter().map(|client| {
            assert!(client["lost"].is_null(), "{client:#}");
            client["calls"].as_u64().expect("calls")
        });
        let calls: u64 = calls.sum();
        assert!(calls >= CALLS_MIN, "{calls}: {result:#}");
        calls
    }
}

impl Drop for Laboratory {
    fn drop(&mut self) {
        // One that has ended needs no end.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Runs the laboratory on both resources, and nothing else; its calls.
fn operations(cluster: &Cluster) -> u64 {
    let runs = [ACCOUNTS, PROJECTS].map(|resource| Laboratory::start(cluster, resource));
    runs.into_iter().map(Laboratory::calls).sum()
}

/// The statistic in an interval, asked at a head.
fn ask(cluster: &Cluster, head: usize, (from, to): (i64, i64)) -> Value {
    let (from, to) = (from.to_string(), to.to_string());
    let args =
        ["analytics", "show", STATISTIC, "--json", "--step", "1", "--from", &from, "--to", &to];
    let text = cluster.output(head, &args);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn row(data: &Value) -> Option<&Value> {
    data["rows"].as_array().expect("rows").iter().find(|row| row["key"] == CLIENT)
}

/// The operations of the clients.
fn count(data: &Value) -> u64 {
    row(data).map_or(0, |row| sum(&row["values"]))
}

/// The operations of the clients in each second in which there were some.
fn by_second(data: &Value) -> BTreeMap<u64, u64> {
    let times = data["times"].as_array().expect("times").iter();
    let values = row(data).and_then(|row| row["values"].as_array()).into_iter().flatten();
    let each = times.zip(values).filter_map(|(time, value)| {
        Some((time.as_u64()?, value.as_f64().map(|count| count.round() as u64)?))
    });
    each.filter(|(_, count)| *count > 0).collect()
}

/// Whether a second is within a gap that is named.
fn is_named(data: &Value, second: u64) -> bool {
    let gaps = data["gaps"].as_array().expect("gaps").iter();
    gaps.map(|gap| (gap["from"].as_u64(), gap["to"].as_u64()))
        .any(|(from, to)| from <= Some(second) && Some(second) < to)
}

/// Each head answers what the laboratory has counted.
fn each_head_has(cluster: &Cluster, from: i64, expected: u64) {
    for head in [LEFT, RIGHT] {
        cluster.wait("the count is that of the laboratory", || {
            let count = count(&ask(cluster, head, (from, now() + 1)));
            assert!(count <= expected, "{count} operations, {expected} were done");
            count == expected
        });
    }
}

#[test]
fn each_head_answers_for_all_resources_exactly_and_names_gaps() {
    if !is_root() {
        skip!("heads-statistics", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS, PROJECTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-statistics", "{why}"),
    };
    cluster.command(RIGHT, &["failback", PROJECTS.name]);
    cluster.wait_for_owner(PROJECTS, RIGHT);
    let start = now();
    let mut expected = operations(&cluster);
    each_head_has(&cluster, start, expected);
    // Both are at one head now, which has only the second part of one of them in memory.
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    let taken = now();
    expected += operations(&cluster);
    each_head_has(&cluster, start, expected);
    let before = by_second(&ask(&cluster, LEFT, (start, now())));

    // A head that vanishes has no data until the other one serves.
    let servers = [ACCOUNTS, PROJECTS].map(|resource| cluster.process(resource, RIGHT));
    cluster.kill(RIGHT);
    servers.into_iter().for_each(|server| process::signal(server, libc::SIGKILL));
    for resource in [ACCOUNTS, PROJECTS] {
        cluster.wait_for_owner(resource, LEFT);
    }
    let again = now();
    let later = operations(&cluster);
    cluster.wait("the count is that of the laboratory", || {
        count(&ask(&cluster, LEFT, (again, now() + 1))) == later
    });
    cluster.wait("the gap is named", || {
        let data = ask(&cluster, LEFT, (taken, now() - 1));
        data["gaps"].as_array().expect("gaps").iter().any(|gap| {
            gap["resource"] == "accounts"
                && gap["head"] == "right"
                && gap["why"] == "taken over by left"
        })
    });
    // Missing seconds are in a gap, and all others are as before.
    let data = ask(&cluster, LEFT, (start, again));
    let after = by_second(&data);
    let known = before.iter().filter(|(second, _)| !is_named(&data, **second));
    let known: BTreeMap<u64, u64> = known.map(|(second, count)| (*second, *count)).collect();
    println!("{} of {} seconds with operations are known", known.len(), before.len());
    assert!(!known.is_empty(), "{data:#}");
    for (second, count) in &known {
        assert_eq!(after.get(second), Some(count), "at {second}: {data:#}");
    }
    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
