//! What cargo knows of the workspace, asked without a network.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// `cargo metadata` of the workspace at `root`; with `platform`, dependencies of that target only.
///
/// # Errors
/// A sentence when cargo does not run or does not answer.
pub fn load(root: &Path, platform: Option<&str>, deps: bool) -> Result<Value, String> {
    let mut cargo = cargo(root, &["metadata", "--format-version", "1"]);
    if !deps {
        cargo.arg("--no-deps");
    }
    if let Some(platform) = platform {
        cargo.args(["--filter-platform", platform]);
    }
    serde_json::from_slice(&output(cargo)?).map_err(|e| format!("cargo metadata: {e}"))
}

/// `name version` of everything that a build for `platform` compiles. (`cargo metadata` also
/// resolves optional dependencies that no feature switches on; `cargo tree` does not.)
///
/// # Errors
/// A sentence when cargo does not run or does not answer.
pub fn linked(root: &Path, platform: &str) -> Result<BTreeSet<String>, String> {
    let args = ["tree", "--workspace", "--prefix", "none", "--format", "{p}", "--target", platform];
    let text = output(cargo(root, &args))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut linked = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            linked.insert(format!("{name} {}", version.trim_start_matches('v')));
        }
    }
    Ok(linked)
}

fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(root).args(args).arg("--locked");
    cargo
}

fn output(mut cargo: Command) -> Result<Vec<u8>, String> {
    let out = cargo.output().map_err(|e| format!("cargo does not start: {e}"))?;
    if !out.status.success() {
        return Err(format!("cargo: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(out.stdout)
}

/// The elements of an array member, none when it is missing.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A string member, empty when it is missing.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
