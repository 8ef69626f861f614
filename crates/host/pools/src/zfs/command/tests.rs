//! Children that end, fail, print too much, and hang.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{
    CHANGE_TIME, Collected, Dialect, MESSAGE_MAX, OUTPUT_MAX, Tools, collect, dialect, line,
};

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

#[test]
fn a_pool_that_is_busy_for_a_moment_is_released() {
    let folder = std::env::temp_dir().join(format!("zpool-busy-{}", std::process::id()));
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join("zpool");
    // Busy at the first attempt, whatever the command; another reason at the second `destroy`.
    let script = "#!/bin/sh
if mkdir \"$0.$1\" 2>/dev/null; then echo \"cannot $1 '$2': pool is busy\" >&2; exit 1; fi
if [ $1 = destroy ]; then echo \"cannot $1 '$2': no such pool\" >&2; exit 1; fi
";
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    let tools = Tools { zpool: program.clone(), zfs: program, dialect: Dialect::Fuse };
    tools.zpool(&["export", "tank"], CHANGE_TIME).expect("exported");
    let refused = tools.zpool(&["destroy", "tank"], CHANGE_TIME).expect_err("there is none");
    assert!(refused.to_string().contains("no such pool"), "{refused}");
    let refused = tools.zpool(&["replace", "tank"], CHANGE_TIME).expect_err("busy");
    assert!(refused.to_string().contains("is busy"), "{refused}");
    fs::remove_dir_all(&folder).expect("removed");
}
