//! The lab's own client over RDMA, against the server in the same guest: it connects through the
//! libraries of the system, what it reads is right, and what it calls is what the statistics have
//! for its transport. Of its figures none is worth a word: all share one processor.

use std::time::Instant;

use e2e::api::sum;
use serde_json::Value;

use super::*;

/// Jobs with data that goes with messages, that the server reads, and that it writes.
const JOBS: [&str; 4] = ["iops-1b", "iops-4k", "dram-read-stream", "write-stream"];
/// How long the statistics may take to have a second.
const COUNTED: Duration = e2e::patience(30);

/// The lab on this target, with short steps.
fn lab(job: &str, target: &str, out: &str) -> String {
    format!(
        "plimsoll lab {job} --target {target} --clients 2 --no-bind --quiet --out /mnt/host/{out} \
         --set 'schedule=[[1,1],[2,4]]' --set file_size=4m --set warmup_ms=100 \
         --set window_ms=100 --set step_max_ms=1600 --retries 0"
    )
}

/// What it left in the shared folder. A step that was not steady changes nothing here.
fn result(stage: &mut Stage, job: &str, target: &str, file: &str) -> Value {
    let out = file.split('/').next().unwrap_or_default();
    stage.run(&format!("{} >/dev/null || [ $? = 3 ]", lab(job, target, out)));
    let text = std::fs::read_to_string(stage.guest.share().join(file)).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

/// Operations over RDMA that the server has counted since its start.
fn counted(stage: &mut Stage, since: &str) -> u64 {
    let data = stage.run(&format!(
        "curl -sf --unix-socket /mnt/state/plimsoll.sock \
         \"http://x/api/v1/analytics/data?stat=nfs.ops%5Btransport%5D&from={since}&to=$(date +%s)\""
    ));
    let data: Value = serde_json::from_str(&data).expect("JSON");
    let rows = data["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row["key"] == "rdma").map(|row| sum(&row["values"])).sum()
}

/// The mount command that the server prints when there is a device, as the user copies it.
fn printed_mount(stage: &mut Stage) {
    let log = std::fs::read_to_string(stage.guest.share().join("server.log")).expect("a log");
    let line = log.lines().find(|line| line.contains("proto=rdma")).expect("a mount command");
    let command = line.split_once("mount -t").expect("a command").1;
    stage.run(&format!(
        "mkdir /mnt/n; mount -t{command}/n; grep ' /mnt/n nfs4.*proto=rdma,' /proc/mounts
         umount /mnt/n"
    ));
}

#[test]
fn the_lab_speaks_to_us_over_siw_and_is_counted() {
    let _turn = uml::turn();
    let mut stage = match Stage::bare("kernel-rdma-lab") {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    let target = format!("nfs3+rdma://{SERVER}/export/t");
    let without = lab("run iops-4k", &target, "without");
    let said = stage.run(&format!("{without} 2>&1 >/dev/null && exit 9; true"));
    let missing = format!("connect to {SERVER}:20049 over RDMA: this machine has no RDMA device");
    assert!(said.contains(&missing), "{said}");
    stage.run("rdma link add siw0 type siw netdev vec0");
    stage.run("begin_server; until_listening");
    let since = stage.run("date +%s").trim().to_owned();
    let mut calls = 0;
    for job in JOBS {
        let result = result(&mut stage, &format!("run {job}"), &target, "run/result.json");
        assert_eq!(result["failed"], Value::Null, "{job}: {}", result["failed"]);
        for client in result["clients"].as_array().expect("clients") {
            calls += client["calls"].as_u64().expect("calls");
        }
        for step in result["steps"].as_array().expect("steps") {
            let faults = [&step["errors"], &step["corrupt"]];
            assert_eq!(faults, [&Value::from(0); 2], "{job}: {}", step["first_error"]);
        }
    }
    assert!(calls > 500, "{calls}");
    let deadline = Instant::now() + COUNTED;
    loop {
        let found = counted(&mut stage, &since);
        if found == calls {
            break;
        }
        assert!(found < calls && Instant::now() < deadline, "{found} of {calls} calls counted");
        std::thread::sleep(Duration::from_millis(100));
    }
    let beside = format!("nfs3://{SERVER}/export/t");
    let summary = result(&mut stage, "limits --rows iops-4k", &beside, "limits/summary.json");
    assert_eq!(summary["columns"][1]["name"], "nfs3-rdma");
    let cell = &summary["rows"][0]["cells"][1];
    assert!(cell["value"].as_f64().is_some_and(|value| value > 0.0), "{cell}");
    assert_eq!(cell["report"], "nfs3-rdma/iops-4k/report.html");
    printed_mount(&mut stage);
}
