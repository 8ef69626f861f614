//! Children that end, fail, print too much, and hang.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Collected, Dialect, MESSAGE_MAX, OUTPUT_MAX, collect, dialect, line};

fn child(program: &str, arguments: &[&str]) -> std::process::Child {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("started")
}

#[test]
fn versions_have_their_dialects() {
    for (output, expected) in [
        ("zfs-2.3.0-1\nzfs-kmod-2.3.0-1\n", Dialect::Json),
        ("zfs-2.4.99-1\n", Dialect::Json),
        ("zfs-3.0.0\n", Dialect::Json),
        ("zfs-2.2.6-1ubuntu1\nzfs-kmod-2.2.6\n", Dialect::Text),
        ("zfs-0.8.3-1ubuntu12\n", Dialect::Text),
        ("", Dialect::Fuse),
        ("unrecognized command 'version'\n", Dialect::Fuse),
    ] {
        assert_eq!(dialect(output), expected, "{output}");
    }
}

#[test]
fn output_and_messages_are_apart() {
    let done =
        collect(child("sh", &["-c", "echo out; echo bad >&2; exit 3"]), Duration::from_secs(600));
    let Ok(Collected::Done(success, output, messages)) = done else { panic!("not done") };
    assert!(!success);
    assert_eq!((output.as_slice(), messages.as_slice()), (&b"out\n"[..], &b"bad\n"[..]));
}

#[test]
fn a_child_that_prints_without_end_is_ended() {
    let done = collect(child("cat", &["/dev/zero"]), Duration::from_secs(600));
    let Ok(Collected::Done(_, output, _)) = done else { panic!("not done") };
    assert_eq!(output.len() as u64, OUTPUT_MAX + 1);
}

#[test]
fn a_child_that_hangs_is_late() {
    let done = collect(child("sleep", &["600"]), Duration::from_millis(1));
    assert!(matches!(done, Ok(Collected::Late)));
}

#[test]
fn messages_are_a_line_without_the_usage() {
    let message = "invalid option 'j'\nusage:\n\tstatus [-vx] [pool] ...\n";
    assert_eq!(line(message), "invalid option 'j'");
    assert_eq!(line("a\n  b\n"), "a b");
    assert!(line(&"x".repeat(9_999)).len() <= MESSAGE_MAX + 4);
}
