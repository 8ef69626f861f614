//! Compares the results of a foreign test suite with the list of cases that are known not to pass.
//!
//! A result is a line `RUN CASE OUTCOME [MESSAGE]`, the outcome one of `passed`, `failed` and
//! `skipped`; `.ci/conformance` makes them from what each suite prints. The list is
//! `tests/conformance/SUITE.toml`. A case that does not pass and is not listed is an error, and
//! so is a listed case that passes, has another outcome, or was not run although its run was.
//! Where the list has the figures of another server, ours may be at most [`BELOW_MAX`] cases below
//! it in a run, and not below it in all; nor may more be skipped. A run that is further below is
//! listed with its reason (`below`, `why`), which is an error once it is not. With the results of
//! that server, its figures are those, and no case may be skipped that it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    case: Vec<Listed>,
    #[serde(default)]
    peer: Vec<Peer>,
}

/// What another server came to in one run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    run: String,
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Cases that pass less than there, if more than [`BELOW_MAX`].
    below: Option<usize>,
    /// Why.
    why: Option<String>,
}

impl Peer {
    /// Whether it has a number of cases below, and its reason, or neither.
    fn is_sound(&self) -> bool {
        let has_reason = self.why.as_ref().is_some_and(|why| !why.trim().is_empty());
        match self.below {
            Some(below) => has_reason && below > BELOW_MAX,
            None => self.why.is_none(),
        }
    }
}

/// Cases that may pass less in a run than with another server.
const BELOW_MAX: usize = 1;

/// Cases of one run that do not pass, for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    run: String,
    names: Vec<String>,
    outcome: Outcome,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

impl Outcome {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "passed" => Some(Self::Passed),
            "failed" => Some(Self::Failed),
            "skipped" => Some(Self::Skipped),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

type Results = BTreeMap<(String, String), (Outcome, String)>;

/// Prints the figures of each run, and what is not as listed.
///
/// # Errors
/// A case is not as listed, there is no result, or a file cannot be read.
pub fn run(root: &Path, suite: &str, (results, peer): (&str, Option<&str>)) -> Result<(), String> {
    let list = root.join(format!("tests/conformance/{suite}.toml"));
    let read =
        |path: &Path| fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let peer = peer.map(|peer| read(Path::new(peer))).transpose()?;
    let wrong = compare(&read(&list)?, &read(Path::new(results))?, peer.as_deref())?;
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("not as {} lists it:\n{wrong}", list.display()))
}

/// What differs, a line for each case.
fn compare(list: &str, results: &str, peer: Option<&str>) -> Result<String, String> {
    let mut list: List = toml::from_str(list).map_err(|e| e.to_string())?;
    let results = parse(results)?;
    let measured = peer.map(parse).transpose()?.unwrap_or_default();
    replace(&mut list.peer, &measured);
    let runs: BTreeSet<&str> = results.keys().map(|(run, _)| run.as_str()).collect();
    if runs.is_empty() {
        return Err("the suite gave no result".to_owned());
    }
    for run in &runs {
        let peer =
            list.peer.iter().find(|peer| peer.run == *run).map_or_else(String::new, |peer| {
                let Peer { passed, failed, skipped, .. } = peer;
                format!(" (the other server: {passed}, {failed}, {skipped})")
            });
        println!("{run}: {}{peer}", figures(&results, run));
    }
    let mut known = BTreeMap::new();
    for listed in &list.case {
        if listed.why.trim().is_empty() || listed.outcome == Outcome::Passed {
            return Err(format!("{} {:?}: a listed case needs a reason", listed.run, listed.names));
        }
        for name in &listed.names {
            known.insert((listed.run.clone(), name.clone()), listed.outcome);
        }
    }
    if let Some(peer) = list.peer.iter().find(|peer| !peer.is_sound()) {
        return Err(format!("{}: a run that is further below needs a reason", peer.run));
    }
    let mut wrong = String::new();
    for (case, (outcome, message)) in &results {
        let expected = known.get(case).copied().unwrap_or(Outcome::Passed);
        if *outcome != expected {
            let (run, name) = case;
            let (was, should) = (outcome.word(), expected.word());
            let _ = writeln!(wrong, "  {run} {name}: {was}, expected {should}  {message}");
        }
    }
    for (run, name) in known.keys().filter(|case| !results.contains_key(*case)) {
        if runs.contains(run.as_str()) {
            let _ = writeln!(wrong, "  {run} {name}: listed, but the suite has no such case");
        }
    }
    wrong.push_str(&below(&list.peer, &results));
    for ((run, name), _) in results.iter().filter(|(_, (was, _))| *was == Outcome::Skipped) {
        let there = measured.get(&(run.clone(), name.clone())).map(|(was, _)| *was);
        if there.is_some_and(|was| was != Outcome::Skipped) {
            let _ = writeln!(wrong, "  {run} {name}: skipped, run elsewhere");
        }
    }
    Ok(wrong)
}

/// Takes figures of another server from its results.
fn replace(peers: &mut [Peer], measured: &Results) {
    for peer in peers.iter_mut() {
        let of = |outcome| count(measured, &peer.run, outcome);
        let all = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(of);
        if all != [0; 3] {
            [peer.passed, peer.failed, peer.skipped] = all;
        }
    }
}

fn count(results: &Results, run: &str, outcome: Outcome) -> usize {
    results.iter().filter(|((of, _), (was, _))| of == run && *was == outcome).count()
}

/// Where it is further below another server than it may be.
fn below(peers: &[Peer], results: &Results) -> String {
    let (mut wrong, mut ours, mut theirs) = (String::new(), 0, 0);
    for peer in peers {
        let all = [Outcome::Passed, Outcome::Failed, Outcome::Skipped]
            .map(|outcome| count(results, &peer.run, outcome));
        let [passed, _, skipped] = all;
        if all == [0; 3] {
            continue;
        }
        (ours, theirs) = (ours + passed, theirs + peer.passed);
        if passed + peer.below.unwrap_or(BELOW_MAX) < peer.passed {
            let _ =
                writeln!(wrong, "  {}: {passed} passed, of {} elsewhere", peer.run, peer.passed);
        }
        if peer.below.is_some_and(|below| passed + below > peer.passed) {
            let (run, there) = (&peer.run, peer.passed);
            let _ = writeln!(wrong, "  {run}: {passed} passed, of {there}: it is less below");
        }
        if skipped > peer.skipped {
            let (run, there) = (&peer.run, peer.skipped);
            let _ = writeln!(wrong, "  {run}: {skipped} skipped, {there} elsewhere");
        }
    }
    if ours < theirs {
        let _ = writeln!(wrong, "  in all: {ours} passed, {theirs} elsewhere");
    }
    wrong
}

fn parse(text: &str) -> Result<Results, String> {
    let mut results = Results::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.splitn(4, ' ');
        let (run, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let outcome = words.next().and_then(Outcome::parse);
        let outcome = outcome.ok_or_else(|| format!("not a result: {line}"))?;
        let message = words.next().unwrap_or_default().to_owned();
        let case = (run.to_owned(), name.to_owned());
        if results.insert(case, (outcome, message)).is_some() {
            return Err(format!("two results for one case: {line}"));
        }
    }
    Ok(results)
}

fn figures(results: &Results, run: &str) -> String {
    let of = |wanted: Outcome| count(results, run, wanted);
    let (passed, failed, skipped) =
        (of(Outcome::Passed), of(Outcome::Failed), of(Outcome::Skipped));
    let all = passed + failed + skipped;
    format!("{all} cases, {passed} passed, {failed} failed, {skipped} skipped")
}

#[cfg(test)]
mod tests;
