//! `plimsoll doctor`: the structure of its output, compared with `tests/golden/doctor.txt`, and the
//! process that uses a port. `UPDATE_GOLDEN=1` rewrites the file.

use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use crate::harness;
use crate::harness::{Scratch, address};
use serde_json::Value;

fn doctor(scratch: &Scratch, at: &str, more: &[&str]) -> Output {
    let (dir, state) = (scratch.data(), scratch.state());
    let mut command = harness::plimsoll(&["doctor", "--address", at]);
    command.arg("--state").arg(state).args(more).arg(dir);
    command.output().expect("the program starts")
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {out:?}"))
}

fn finding<'a>(report: &'a Value, id: &str) -> &'a Value {
    let findings = report["findings"].as_array().expect("findings");
    findings.iter().find(|f| f["id"] == id).unwrap_or_else(|| panic!("{id}: {report}"))
}

/// Keys of the answer, and of each finding what does not depend on the machine.
fn shape(report: &Value) -> String {
    let keys = |value: &Value| {
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(" ")
    };
    let mut text = format!("answer: {}\n", keys(report));
    for finding in report["findings"].as_array().expect("findings") {
        let used = if finding["used"] == true { "used" } else { "not used" };
        text += &format!("\n{} ({used})\n  {}\n", finding["id"].as_str().unwrap(), keys(finding));
        for key in ["sentence", "instead"] {
            text += &format!("  {key}: {}\n", finding[key].as_str().unwrap());
        }
        assert!(["yes", "no", "unknown"].contains(&finding["state"].as_str().unwrap()));
        assert!(!finding["found"].as_str().unwrap().is_empty(), "{finding}");
    }
    text
}

#[test]
fn the_answer_has_the_agreed_shape() {
    let scratch = Scratch::new();
    let out = doctor(&scratch, &address().to_string(), &["--json"]);
    let report = json(&out);
    let degraded = report["degraded"] == true;
    assert_eq!(out.status.code(), Some(if degraded { 3 } else { 0 }));
    assert!(!scratch.state().exists(), "it leaves nothing behind");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/doctor.txt");
    let shape = shape(&report);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &shape).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), shape);
}

#[test]
fn a_port_that_is_taken_is_named_with_its_holder() {
    let scratch = Scratch::new();
    let at = address();
    let _taken = TcpListener::bind((at, 10_215)).unwrap();
    let out = doctor(&scratch, &at.to_string(), &["--json"]);
    assert_eq!(out.status.code(), Some(3), "degraded");
    let report = json(&out);
    let (admin, nfs) = (finding(&report, "admin port"), finding(&report, "NFS port"));
    assert_eq!((&admin["state"], &nfs["state"]), (&Value::from("no"), &Value::from("yes")));
    let us = format!("pid {}", std::process::id());
    assert!(admin["found"].as_str().unwrap().ends_with(&us), "{admin}");

    let text = String::from_utf8(doctor(&scratch, &at.to_string(), &[]).stdout).unwrap();
    assert!(text.contains("--  admin port"), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("Missing features used by `serve`:") && last.contains("admin port"));
}

#[test]
fn a_directory_that_is_not_there_is_a_failure() {
    let scratch = Scratch::new();
    std::fs::remove_dir(scratch.data()).unwrap();
    let out = doctor(&scratch, "127.0.0.1", &[]);
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("cannot examine"), "{out:?}");
}
