//! Circles of imports between the files of a crate. Those that stay are declared in
//! `xtask/file-circles.toml`, each with its reason; their number and their sizes may only fall.
//!
//! An import belongs to the file that defines the name: re-exports are followed. A module and what
//! is below it may import each other, and tests may import what they like.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use super::imported::{self, ModulePath};
use super::{Finding, Source};

/// How many circles may be declared. With more, the design cannot be read from the bottom up.
const DECLARED_MAX: usize = 2;

/// Longest chain of re-exports that is followed.
const REEXPORTS_MAX: usize = 8;

/// Files of one crate of which each one imports, over others, each other one.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// The files, sorted, with the files of the circle that each imports.
    pub files: BTreeMap<String, Vec<String>>,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.files.keys().next().map_or("", String::as_str);
        writeln!(f, "{}: {} files", first.split("/src/").next().unwrap_or(""), self.files.len())?;
        for (file, imports) in &self.files {
            let short = |path: &str| path.split_once("/src/").map_or("", |(_, p)| p).to_owned();
            let imports: Vec<String> = imports.iter().map(|i| short(i)).collect();
            writeln!(f, "  {} -> {}", short(file), imports.join(" "))?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Declarations {
    #[serde(default)]
    circle: Vec<Declared>,
}

#[derive(Deserialize)]
struct Declared {
    /// One file that is in the circle.
    file: String,
    /// The number of files in it.
    files: usize,
    reason: String,
}

/// Compares the circles of `sources` with the declared ones.
///
/// # Errors
/// A sentence when the list itself cannot be read.
pub fn check(list: &str, sources: &[Source]) -> Result<Vec<Finding>, String> {
    let declared: Declarations =
        toml::from_str(list).map_err(|e| format!("file-circles.toml: {e}"))?;
    let mut found = circles(sources);
    let mut findings = Vec::new();
    let mut report = |path: &str, what: String| {
        findings.push(Finding { path: path.to_owned(), line: 0, rule: "file-circle", what });
    };
    for circle in &declared.circle {
        let file = &circle.file;
        if circle.reason.trim().is_empty() {
            report(file, "the declared circle gives no reason".to_owned());
        }
        let Some(at) = found.iter().position(|c| c.files.contains_key(file)) else {
            report(file, "the declared circle is gone: take it off the list".to_owned());
            continue;
        };
        let there = found.remove(at);
        let (now, listed) = (there.files.len(), circle.files);
        if now < listed {
            report(file, format!("{listed} files are declared but {now} are in it: lower it"));
        } else if now > listed {
            report(file, format!("{listed} files are declared but {now} are in it:\n{there}"));
        }
    }
    for circle in &found {
        let first = circle.files.keys().next().map_or("", String::as_str);
        report(first, format!("files import each other in a circle:\n{circle}"));
    }
    if declared.circle.len() > DECLARED_MAX {
        let count = declared.circle.len();
        let what = format!("{count} circles are declared, {DECLARED_MAX} are permitted");
        report("xtask/file-circles.toml", what);
    }
    Ok(findings)
}

/// The circles of all crates, sorted by their first file.
pub fn circles(sources: &[Source]) -> Vec<Circle> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for source in sources.iter().filter(|s| s.is_rust() && !s.is_test()) {
        let Some((room, file)) = source.path.split_once("/src/") else { continue };
        if let Some(module) = module_of(file) {
            let files = &mut crates.entry(room).or_default().files;
            // A `main.rs` next to a `lib.rs` is a separate crate.
            if file != "main.rs" || !files.contains_key(&module) {
                files.insert(module, source);
            }
        }
    }
    crates.into_values().flat_map(Crate::circles).collect()
}

/// Path of the module that is in `file`, a path below `src`; `None` for a program of its own.
fn module_of(file: &str) -> Option<ModulePath> {
    let mut parts: ModulePath = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if parts[0] == "bin" {
        return None;
    }
    let root = matches!(file, "lib.rs" | "main.rs");
    if root || parts.last().is_some_and(|p| p == "mod") {
        parts.pop();
    }
    Some(parts)
}

#[derive(Default)]
struct Crate<'a> {
    files: BTreeMap<ModulePath, &'a Source>,
}

/// What a file imports, as paths from the root of its crate.
#[derive(Default)]
struct Imports {
    /// Everything that it names.
    paths: Vec<ModulePath>,
    /// Its names for what comes from elsewhere.
    names: BTreeMap<String, ModulePath>,
    /// Modules of which it takes every name.
    globs: Vec<ModulePath>,
}

impl Crate<'_> {
    fn circles(mut self) -> Vec<Circle> {
        self.drop_test_modules();
        let imports: BTreeMap<&ModulePath, Imports> = self
            .files
            .iter()
            .map(|(module, source)| (module, self.imports(module, source)))
            .collect();
        let mut arrows: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = BTreeMap::new();
        for (from, found) in &imports {
            let targets = found.paths.iter().filter_map(|p| self.defining(&imports, p, 0));
            let others = targets.filter(|to| !to.starts_with(from) && !from.starts_with(to));
            arrows.insert(from, others.collect());
        }
        let reach: BTreeMap<_, _> =
            arrows.keys().map(|from| (*from, reached(&arrows, from))).collect();
        let mut found: Vec<Circle> = Vec::new();
        let mut done = BTreeSet::new();
        for (from, all) in &reach {
            let circle: BTreeSet<_> = all.iter().filter(|to| reach[**to].contains(from)).collect();
            if !circle.is_empty() && done.insert(circle.clone()) {
                let path = |module: &ModulePath| self.files[module].path.clone();
                let within = |m: &ModulePath| {
                    arrows[m].iter().filter(|to| circle.contains(to)).map(|to| path(to)).collect()
                };
                found.push(Circle { files: circle.iter().map(|m| (path(m), within(m))).collect() });
            }
        }
        found
    }

    /// Takes out what is compiled for tests only.
    fn drop_test_modules(&mut self) {
        let mut gone: Vec<ModulePath> = Vec::new();
        for (module, source) in &self.files {
            for name in imported::test_modules(&source.code) {
                gone.push(module.iter().cloned().chain([name]).collect());
            }
        }
        self.files.retain(|module, _| !gone.iter().any(|g| module.starts_with(g)));
    }

    fn imports(&self, module: &ModulePath, source: &Source) -> Imports {
        let mut imports = Imports::default();
        let (uses, rest) = imported::uses(&source.code);
        for import in uses {
            let Some(path) = self.absolute(module, &import.path, &BTreeMap::new()) else {
                continue;
            };
            match import.name {
                Some(name) => _ = imports.names.insert(name, path.clone()),
                None => imports.globs.push(path.clone()),
            }
            imports.paths.push(path);
        }
        for path in imported::paths(&rest) {
            imports.paths.extend(self.absolute(module, &path, &imports.names));
        }
        imports
    }

    /// `path` from the root of the crate; `None` when it is of another crate.
    fn absolute(
        &self,
        module: &[String],
        path: &[String],
        names: &BTreeMap<String, ModulePath>,
    ) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let up = path.iter().take_while(|p| *p == "super").count();
        let child: ModulePath = module.iter().cloned().chain([first.clone()]).collect();
        Some(match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [module, rest].concat(),
            "super" => [module.get(..module.len().checked_sub(up)?)?, &path[up..]].concat(),
            _ if self.files.contains_key(&child) => [module, path].concat(),
            name => [names.get(name)?, rest].concat(),
        })
    }

    /// The module with the file that defines what `path` names.
    fn defining(
        &self,
        imports: &BTreeMap<&ModulePath, Imports>,
        path: &[String],
        depth: usize,
    ) -> Option<&ModulePath> {
        let mut files = (0..=path.len()).rev();
        let (length, (module, _)) =
            files.find_map(|n| Some((n, self.files.get_key_value(&path[..n])?)))?;
        let Some(name) = path.get(length).filter(|_| depth < REEXPORTS_MAX) else {
            return Some(module);
        };
        let from = imports.get(module)?;
        let elsewhere = from.names.get(name).or_else(|| {
            let defines = |g: &&ModulePath| {
                self.files.get(*g).is_some_and(|s| imported::defines(&s.code, name))
            };
            from.globs.iter().find(defines)
        });
        let Some(elsewhere) = elsewhere else { return Some(module) };
        let is_name = from.names.contains_key(name);
        let rest = if is_name { &path[length + 1..] } else { &path[length..] };
        self.defining(imports, &[elsewhere, rest].concat(), depth + 1)
    }
}

/// Everything that `from` leads to, itself only over others.
fn reached<'a>(
    arrows: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
    from: &ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&ModulePath> = arrows[from].iter().copied().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(arrows[module].iter().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests;
