//! The laboratory's client of SMB against the real server: every dialect, signature and cipher, a
//! folder for each run, and the message when the server refuses.

use std::process::Output;

use e2e::smb_share::SmbShare;
use e2e::{lab, patience, process};
use serde_json::{Value, json};

/// `lab run` of a short job.
fn run(smb: &SmbShare, job: &str, url: &str, settings: &[&str]) -> (Output, Option<Value>) {
    let out = smb.scratch.path().join("out");
    let mut command = lab::command();
    command.args(["run", job, "--target", url, "--clients", "1", "--json"]);
    command.args(["--retries", "0", "--out"]).arg(&out);
    let common = ["warmup_ms=50", "window_ms=50", "step_max_ms=400", "file_size=1m"];
    command.args(common.iter().chain(settings).flat_map(|set| ["--set", set]));
    let output = process::run(&mut command, patience(60));
    let result = std::fs::read_to_string(out.join("result.json")).ok();
    let result = result.and_then(|text| serde_json::from_str(&text).ok());
    (output, result)
}

/// That it went well: nothing failed, nothing was corrupt, and there were operations.
fn well(what: &str, (output, result): (Output, Option<Value>)) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 3: a step that was not steady is no failure.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{what}: {}: {said}", output.status);
    let result = result.expect("a result");
    let steps = result["steps"].as_array().expect("steps");
    assert!(!steps.is_empty(), "{what}: {result:#}");
    for step in steps {
        assert_eq!(step["errors"], json!(0), "{what}: {step:#}");
        assert!(step["ops"].as_f64().is_none_or(|ops| ops > 0.0), "{what}: {step:#}");
    }
}

#[test]
fn every_protection_carries_every_operation() {
    let smb = SmbShare::start("smb-lab", &[("signing", json!("offered"))]);
    for options in [
        "?dialect=2.1",
        "?dialect=3.0",
        "?dialect=3.0.2&cipher=aes128-ccm",
        "?signing=off",
        "?signing=hmac-sha256",
        "?signing=aes-cmac",
        "?cipher=aes128-gcm",
        "?cipher=aes256-gcm",
        "?cipher=aes256-ccm",
    ] {
        let url = smb.url(options);
        let done = run(&smb, "iops-4k", &url, &["schedule=[[1,4]]"]);
        well(&format!("reads {options}"), done);
    }
    for job in ["dram-read-stream", "write-stream", "syncwrite-4k", "create"] {
        for options in ["?signing=off", "", "?cipher=aes128-gcm"] {
            let done = run(&smb, job, &smb.url(options), &["schedule=[[1,4]]", "file_size=8m"]);
            well(&format!("{job} {options}"), done);
        }
    }
    for workload in ["getattr", "lookup", "null"] {
        let settings = [&format!("workload={workload}"), "schedule=[[1,4]]"];
        well(workload, run(&smb, "iops-4k", &smb.url(""), &settings));
    }
}

#[test]
fn a_folder_of_a_run_is_made_and_removed() {
    let smb = SmbShare::start("smb-lab-scratch", &[]);
    let url = smb.url("");
    let out = smb.scratch.path().join("out");
    let mut command = lab::command();
    command.args(["run", "iops-4k", "--target", &url, "--clients", "2", "--scratch", "mine"]);
    command.args(["--retries", "0"]);
    command.args(["--set", "schedule=[[2,1]]", "--set", "step_max_ms=400", "--set"]);
    command.args(["warmup_ms=50", "--set", "window_ms=50", "--set", "file_size=64k", "--out"]);
    let output = process::run(command.arg(&out), patience(60));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {said}", output.status);
    let share = smb.scratch.path().join("data/box");
    assert_eq!(std::fs::read_dir(&share).expect("a listing").count(), 0, "{said}");
    // One that a run has left is removed, and nothing else.
    std::fs::create_dir_all(share.join("mine/plimsoll-lab.0")).expect("folders");
    std::fs::write(share.join("mine/plimsoll-lab.0/f0.10"), b"0123456789").expect("a file");
    let owner = (Some(4321), Some(4322));
    for path in ["mine", "mine/plimsoll-lab.0", "mine/plimsoll-lab.0/f0.10"] {
        std::os::unix::fs::chown(share.join(path), owner.0, owner.1).expect("an owner");
    }
    let mut command = lab::command();
    process::succeed(command.args(["clean", "--target", &url, "--scratch", "mine"]));
    assert!(!share.join("mine").exists());
}

#[test]
fn refusals_of_the_server_are_reported_in_a_sentence() {
    let smb = SmbShare::start("smb-lab-refused", &[]);
    let right = smb.url("");
    let wrong = right.replace("battery", "staple");
    refused(
        &smb,
        &[
            (wrong, "sign in as anna: the server returned STATUS_LOGON_FAILURE"),
            (
                right.replace("/box", "/nothing"),
                "connect to the share nothing: the server returned STATUS_BAD_NETWORK_NAME",
            ),
            (smb.url("?signing=off"), "the server requires signing; omit signing=off"),
        ],
    );
    // A share that SMB may only read, and one that it may not use.
    for (access, sentence) in [
        ("ro", "create plimsoll-lab.0: the server returned STATUS_"),
        ("none", "connect to the share box: the server returned STATUS_ACCESS_DENIED"),
    ] {
        let set = json!({"set": "/shares/default/box", "property": "smb", "value": access});
        let (code, done) = smb.api.post("/api/v1/changes", &json!({ "changes": [set] }));
        assert_eq!(code, 200, "{done}");
        refused(&smb, &[(right.clone(), sentence)]);
    }
}

/// That runs end with these sentences, which contain no password.
fn refused(smb: &SmbShare, cases: &[(String, &str)]) {
    for (url, sentence) in cases {
        let (output, _) = run(smb, "iops-4k", url, &["schedule=[[1,1]]"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(sentence), "{said}");
        assert!(!said.contains("horse"), "the password is told: {said}");
    }
}
