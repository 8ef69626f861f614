//! The manual pages and completions: every command has a page with its options, and shells take
//! the completions.

#[path = "../examples/manual.rs"]
#[allow(dead_code, reason = "its main is not used here")]
mod example;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness;
use crate::harness::Scratch;

/// The options that a command's help names, and its subcommands.
fn help(command: &[String]) -> (BTreeSet<String>, Vec<String>) {
    let mut program = harness::plimsoll(&[]);
    let out = program.args(command).arg("--help").output().unwrap();
    assert!(out.status.success(), "{command:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    let mut options = BTreeSet::new();
    let mut commands = Vec::new();
    let mut in_commands = false;
    for line in text.lines() {
        in_commands = line == "Commands:" || in_commands && line.starts_with(' ');
        let entry = line.trim_start();
        if in_commands && line.starts_with("  ") && !line.starts_with("   ") {
            commands.extend(entry.split(' ').next().map(str::to_owned));
        } else if entry.starts_with('-') {
            let words = entry.split([' ', ',', '=', '[']).filter(|word| word.starts_with("--"));
            options.extend(words.map(str::to_owned));
        }
    }
    commands.retain(|name| name != "help");
    (options, commands)
}

fn page(dir: &Path, command: &[String]) -> PathBuf {
    let name: Vec<&str> =
        std::iter::once("plimsoll").chain(command.iter().map(String::as_str)).collect();
    dir.join(format!("man1/{}.1", name.join("-")))
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let scratch = Scratch::new();
    let dir = scratch.data();
    example::write(&dir).unwrap();
    let mut left: Vec<Vec<String>> = vec![vec![]];
    let mut seen = 0;
    while let Some(command) = left.pop() {
        let path = page(&dir, &command);
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|e| panic!("{}: {e}", path.display())).replace('\\', "");
        let (options, commands) = help(&command);
        for option in options {
            assert!(text.contains(&option), "{option} is not in {}", path.display());
        }
        left.extend(commands.into_iter().map(|name| [command.clone(), vec![name]].concat()));
        seen += 1;
    }
    assert!(seen >= 17, "only {seen} commands were found");
}

#[test]
fn completions_are_what_their_shells_understand() {
    let scratch = Scratch::new();
    let dir = scratch.data();
    example::write(&dir).unwrap();
    let completions = dir.join("completions");
    for name in ["plimsoll.bash", "_plimsoll", "plimsoll.fish"] {
        let text = std::fs::read_to_string(completions.join(name)).expect(name);
        assert!(text.contains("port-offset"), "{name}");
    }
    let ask = "source plimsoll.bash && COMP_WORDS=(plimsoll ser) COMP_CWORD=1 \
               && _plimsoll plimsoll ser plimsoll && echo \"${COMPREPLY[*]}\"";
    let out = Command::new("bash").args(["-c", ask]).current_dir(&completions).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "serve", "{out:?}");
}
