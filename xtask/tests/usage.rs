//! The program itself: a command that does not exist is wrong usage. (A package with a test of
//! this kind has its program built with the tests, which is what `.ci/test` then runs.)

use std::process::Command;

#[test]
fn an_unknown_command_is_wrong_usage() {
    let out = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("nonsense").output().expect("a start");
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("usage: cargo xtask"));
}
