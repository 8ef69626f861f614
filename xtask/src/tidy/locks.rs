//! The lock file of `fuzz/`, a workspace of its own: it must have what our crates depend on now, or
//! the fuzz targets do not build with `--locked`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Finding;

/// The lock file.
const LOCK: &str = "fuzz/Cargo.lock";

/// Compares the lock file with the manifests of our crates in it.
pub fn check(root: &Path) -> Vec<Finding> {
    let Ok(lock) = fs::read_to_string(root.join(LOCK)) else { return Vec::new() };
    compare(&lock, |name| fs::read_to_string(root.join(format!("crates/{name}/Cargo.toml"))).ok())
}

/// The same; `manifest` has the text of a crate's manifest, if the crate is ours.
pub fn compare(lock: &str, manifest: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let Ok(lock) = toml::from_str::<toml::Table>(lock) else {
        return vec![finding("it cannot be read".to_owned())];
    };
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let ours = packages.into_iter().flatten().filter(|package| package.get("source").is_none());
    let mut findings = Vec::new();
    for package in ours {
        let name = package.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        let Some(manifest) = manifest(name).and_then(|text| text.parse::<toml::Table>().ok())
        else {
            continue;
        };
        let table = manifest.get("dependencies").and_then(toml::Value::as_table);
        let wanted: BTreeSet<&str> = table.into_iter().flatten().map(|(key, _)| &**key).collect();
        let list = package.get("dependencies").and_then(toml::Value::as_array);
        let locked = list.into_iter().flatten().filter_map(toml::Value::as_str);
        // With several versions of a crate the version follows its name.
        let locked: BTreeSet<&str> = locked.filter_map(|one| one.split(' ').next()).collect();
        if locked != wanted {
            findings.push(finding(format!(
                "{name} has other dependencies now: run `cargo metadata` in fuzz/"
            )));
        }
    }
    findings
}

fn finding(what: String) -> Finding {
    Finding { path: LOCK.to_owned(), line: 0, rule: "fuzz-lock", what }
}

#[cfg(test)]
mod tests;
