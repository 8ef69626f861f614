//! Commands with an output that is not read any more, as with `| head`.

use std::io::{Read, pipe};
use std::process::{Command, Stdio};

use crate::harness::{Scratch, arg, plimsoll};

/// The exit status and standard error of a command with a closed pipe as standard output.
fn unread(mut command: Command) -> (Option<i32>, String) {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_closed_pipe_does_not_end_a_command() {
    let scratch = Scratch::new();
    let (out, target) = (scratch.state(), format!("path:{}", scratch.data().display()));
    let run = ["lab", "run", "iops-4k", "--target", &target, "--clients", "1", "--out", arg(&out)];
    let small = [
        "--set",
        "schedule=[[1,1]]",
        "--set",
        "step_max_ms=400",
        "--set",
        "warmup_ms=100",
        "--set",
        "window_ms=100",
        "--set",
        "files=1",
        "--set",
        "file_size=64k",
    ];
    let measure = |json: &[&'static str]| [run.as_slice(), &small, json].concat();
    let commands: [(Vec<&str>, &[i32]); 7] = [
        (vec!["lab", "list"], &[0]),
        (vec!["lab", "list", "--json"], &[0]),
        (vec!["bridge", "key"], &[0]),
        (vec!["doctor"], &[0, 3]),
        (measure(&[]), &[0, 3]),
        (measure(&["--json"]), &[0, 3]),
        (vec!["lab", "report", arg(&out)], &[0]),
    ];
    for (words, codes) in commands {
        let (code, said) = unread(plimsoll(&words));
        assert!(!said.contains("panicked"), "{words:?}: {said}");
        assert!(code.is_some_and(|code| codes.contains(&code)), "{words:?}: {code:?} {said}");
    }
}

#[test]
fn a_closed_standard_error_changes_no_exit_status() {
    let commands: [(&[&str], i32); 4] = [
        (&["lab", "run", "no-such-job", "--target", "null:"], 2),
        (&["lab", "run", "iops-4k", "--target", "nonsense"], 1),
        (&["bridge", "show", "no-such-bridge"], 1),
        (&["lab", "report", "/no/such/result"], 1),
    ];
    for (words, code) in commands {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = plimsoll(words);
        let output = command.stdout(Stdio::piped()).stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn what_is_read_is_complete() {
    let (mut reader, writer) = pipe().unwrap();
    let mut child = plimsoll(&["lab", "list"]).stdout(writer).spawn().unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(text.contains("iops-4k") && text.ends_with('\n'), "{text}");
}
