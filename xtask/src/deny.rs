//! Licences, banned crates and sources of everything that is linked, against `deny.toml`.
//!
//! Reads the same file as cargo-deny and needs neither that tool nor a network; advisories are
//! not looked at, since they are nothing without a network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::metadata::{self, list, text};

/// The content of `deny.toml`.
#[derive(Deserialize)]
pub struct Config {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
    allow_git: Vec<String>,
}

/// Checks the workspace at `root` for every target that `deny.toml` names.
///
/// # Errors
/// All findings, one per line.
pub fn run(root: &Path) -> Result<(), String> {
    let path = root.join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let config: Config = toml::from_str(&text).map_err(|e| format!("deny.toml: {e}"))?;
    let mut findings = BTreeSet::new();
    let mut crates = BTreeSet::new();
    for target in &config.graph.targets {
        let linked = metadata::linked(root, target)?;
        findings.extend(check(&config, &metadata::load(root, Some(target), true)?, &linked));
        crates.extend(linked);
    }
    if findings.is_empty() {
        println!("deny: {} crates: licences, bans and sources are in order", crates.len());
        return Ok(());
    }
    let lines: Vec<String> = findings.into_iter().collect();
    Err(format!("{}\ndeny: {} findings", lines.join("\n"), lines.len()))
}

fn text_of(package: &Value) -> String {
    format!("{} {}", text(package, "name"), text(package, "version"))
}

/// What breaks the rules among the `linked` packages, as sentences.
pub fn check(config: &Config, metadata: &Value, linked: &BTreeSet<String>) -> Vec<String> {
    let banned: BTreeMap<&str, &str> =
        config.bans.deny.iter().map(|b| (b.name.as_str(), b.reason.as_str())).collect();
    let mut findings = Vec::new();
    for package in list(metadata, "packages") {
        let (name, label) = (text(package, "name"), text_of(package));
        if !linked.contains(&label) {
            continue;
        }
        if let Some(reason) = banned.get(name) {
            findings.push(format!("{label}: banned: {reason}"));
        }
        let licence = text(package, "license");
        if !allowed(licence, &config.licenses.allow) {
            findings.push(format!("{label}: licence `{licence}` is not in the list"));
        }
        let source = text(package, "source");
        if !source.is_empty() && !known(source, &config.sources) {
            findings.push(format!("{label}: comes from {source}"));
        }
    }
    findings
}

fn known(source: &str, sources: &Sources) -> bool {
    let (kind, url) = source.split_once('+').unwrap_or((source, ""));
    let allowed = if kind == "git" { &sources.allow_git } else { &sources.allow_registry };
    allowed.iter().any(|a| url.starts_with(a.as_str()))
}

/// Whether an SPDX expression can be satisfied from `allow`: OR needs one side, AND both.
pub fn allowed(expression: &str, allow: &BTreeSet<String>) -> bool {
    // Old manifests write `A/B` for `A OR B`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = any_of(&tokens, &mut at, allow);
    verdict && at == tokens.len() && !tokens.is_empty()
}

fn any_of(tokens: &[&str], at: &mut usize, allow: &BTreeSet<String>) -> bool {
    let mut verdict = all_of(tokens, at, allow);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        let right = all_of(tokens, at, allow);
        verdict = verdict || right;
    }
    verdict
}

fn all_of(tokens: &[&str], at: &mut usize, allow: &BTreeSet<String>) -> bool {
    let mut verdict = one(tokens, at, allow);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        let right = one(tokens, at, allow);
        verdict = verdict && right;
    }
    verdict
}

fn one(tokens: &[&str], at: &mut usize, allow: &BTreeSet<String>) -> bool {
    let Some(token) = tokens.get(*at) else { return false };
    *at += 1;
    if *token == "(" {
        let verdict = any_of(tokens, at, allow);
        let closed = tokens.get(*at) == Some(&")");
        *at += 1;
        return verdict && closed;
    }
    let mut licence = (*token).to_owned();
    if tokens.get(*at) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allow.contains(&licence)
}

#[cfg(test)]
mod tests;
