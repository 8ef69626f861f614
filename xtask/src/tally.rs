//! Adds up what test runners printed, and compares the list of skipped checks with a golden file.
//!
//! Understands nextest's `Summary`, cargo's `test result:` lines (documentation tests), node's
//! `# pass` and `# fail`, and our own `CHECK` and `SKIP name: reason`.

use std::collections::BTreeSet;
use std::fs;

/// Sums over a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks that passed.
    pub passed: u64,
    /// Checks that failed.
    pub failed: u64,
    /// `SKIP` lines, sorted, each once.
    pub skips: BTreeSet<String>,
}

/// Reads each `LOG` or `LOG=GOLDEN`, compares skips, and prints the sums as the closing line.
///
/// # Errors
/// A failed check, or skips other than the golden ones (which count as one failed check).
pub fn run(logs: &[&str]) -> Result<(), String> {
    let read = |path: &str| match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) => Err(format!("{path}: {e}")),
    };
    let (mut passed, mut failed) = (0, 0);
    for log in logs {
        let (log, golden) = log.split_once('=').map_or((*log, None), |(l, g)| (l, Some(g)));
        let tally = add_up(&read(log)?);
        passed += tally.passed;
        failed += tally.failed;
        if let Some(golden) = golden {
            let wrong = differences(&tally.skips, &read(golden)?);
            failed += u64::from(!wrong.is_empty());
            passed += u64::from(wrong.is_empty());
            if !wrong.is_empty() {
                eprintln!("the skipped checks are not those of {golden}:\n{wrong}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 { Err("not all checks passed".to_owned()) } else { Ok(()) }
}

/// Sums of a log.
pub fn add_up(log: &str) -> Tally {
    let mut tally = Tally::default();
    for line in log.lines() {
        // nextest indents what a test printed, the sums of its runner of one test included.
        let indented = line.starts_with("    ") && !line.trim_start().starts_with("Summary [");
        let line = line.trim();
        if line.starts_with("SKIP ") {
            tally.skips.insert(line.to_owned());
        }
        if indented {
            continue;
        }
        if let Some(rest) = line.strip_prefix("test result: ") {
            tally.passed += before(rest, " passed");
            tally.failed += before(rest, " failed");
        } else if let Some(rest) = line.strip_prefix("Summary [") {
            // What did not run to its end did not pass.
            let bad = [" failed", " timed out", " exec failed"];
            tally.passed += before(rest, " passed");
            tally.failed += bad.iter().map(|word| counted(rest, word)).sum::<u64>();
        } else if let Some(n) = node(line, "pass ") {
            tally.passed += n;
        } else if let Some(n) = node(line, "fail ") {
            tally.failed += n;
        } else if let Some(rest) = line.strip_prefix("CHECK ok ") {
            // One line per check of the Makefile that is not a test runner.
            tally.passed += u64::from(!rest.is_empty());
        } else if line.starts_with("CHECK FAILED ") {
            tally.failed += 1;
        }
    }
    tally
}

/// node prints `# pass 12`, newer ones `ℹ pass 12`.
fn node(line: &str, word: &str) -> Option<u64> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    rest.strip_prefix(word)?.parse().ok()
}

/// The number that stands before `word`.
fn before(text: &str, word: &str) -> u64 {
    let head = text.split(word).next().unwrap_or_default();
    head.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The number that stands before `word`, which may be left out.
fn counted(text: &str, word: &str) -> u64 {
    if text.contains(word) { before(text, word) } else { 0 }
}

/// Skips that are new and golden ones that are gone; reasons may differ, names may not. What
/// depends on the machine stands in the list as `MAY SKIP name: reason`.
fn differences(skips: &BTreeSet<String>, golden: &str) -> String {
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let have: BTreeSet<String> = skips.iter().map(|l| name(l)).collect();
    let listed = |mark: &str| -> BTreeSet<String> {
        let lines = golden.lines().filter_map(|l| l.strip_prefix(mark));
        lines.map(|l| format!("SKIP {}", name(l))).collect()
    };
    let (want, may) = (listed("SKIP "), listed("MAY SKIP "));
    let known = |l: &String| want.contains(&name(l)) || may.contains(&name(l));
    let new = skips.iter().filter(|l| !known(l)).map(|l| format!("new: {l}"));
    let gone = want.difference(&have).map(|l| format!("gone: {l}"));
    new.chain(gone).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
