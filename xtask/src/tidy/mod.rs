//! Style and architecture as a test: the import table, sizes, headers and forbidden words.
//!
//! Known exceptions stand in `xtask/tidy-exceptions.toml`, each with its count and reason; the
//! count may only fall (a ratchet).

mod circles;
mod comments;
mod exceptions;
mod glossary;
mod imported;
mod imports;
mod locks;
mod paths;
mod protocols;
mod readme;
mod scan;
mod sizes;
mod vocabulary;
mod words;

use std::fs;
use std::path::Path;

use crate::metadata;

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// File, relative to the repository.
    pub path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Short name of the rule, as in the exception list.
    pub rule: &'static str,
    /// What is wrong, as a sentence.
    pub what: String,
}

/// A file of the repository with what the rules need to know about it.
pub struct Source {
    /// Path relative to the repository, with `/`.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// The text with comments and literals blanked; for files that are not Rust, the text itself.
    pub code: String,
}

impl Source {
    /// Prepares a file for the rules.
    pub fn new(path: &str, text: String) -> Self {
        let code = if path.ends_with(".rs") { scan::blank(&text) } else { text.clone() };
        Self { path: path.to_owned(), text, code }
    }

    /// Whether this is a file of tests, benchmarks or examples.
    pub fn is_test(&self) -> bool {
        let p = &self.path;
        p.ends_with("tests.rs")
            || p.ends_with(".test.ts")
            || ["tests/", "benches/", "examples/", "fuzz/", "crates/sim/"]
                .iter()
                .any(|d| p.starts_with(d) || p.contains(&format!("/{d}")))
    }

    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it belongs to the browser interface's own sources.
    pub fn is_ui(&self) -> bool {
        self.path.starts_with("ui/")
            && [".ts", ".svelte", ".css", ".mjs"].iter().any(|e| self.path.ends_with(e))
    }
}

/// Folders that hold what we did not write or what is built.
const SKIPPED: [&str; 7] = ["target", "node_modules", "dist", ".git", "out", "corpus", "artifacts"];

/// Checks the repository at `root`.
///
/// # Errors
/// All findings, one per line.
pub fn run(root: &Path) -> Result<(), String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    let mut findings = imports::check(&metadata::load(root, None, false)?);
    for source in &sources {
        findings.extend(sizes::check(source));
        findings.extend(words::check(source));
        findings.extend(readme::check(source));
    }
    findings.extend(protocols::check(&sources));
    findings.extend(vocabulary::check(&sources));
    findings.extend(paths::check(&sources));
    findings.extend(locks::check(root));
    let circles = fs::read_to_string(root.join("xtask/file-circles.toml")).unwrap_or_default();
    findings.extend(circles::check(&circles, &sources)?);
    let list = fs::read_to_string(root.join("xtask/tidy-exceptions.toml")).unwrap_or_default();
    findings = exceptions::apply(&list, findings)?;
    findings.sort();
    if findings.is_empty() {
        println!("tidy: {} files are in order", sources.len());
        return Ok(());
    }
    let lines: Vec<String> =
        findings.iter().map(|f| format!("{}:{}: {}: {}", f.path, f.line, f.rule, f.what)).collect();
    Err(format!("{}\ntidy: {} findings", lines.join("\n"), lines.len()))
}

/// Prints the files that know each protocol.
///
/// # Errors
/// A folder cannot be read.
pub fn places(root: &Path) -> Result<(), String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    print!("{}", protocols::list(&protocols::places(&sources)));
    Ok(())
}

/// Prints the counts of phrases and identifiers that are to go.
///
/// # Errors
/// A folder cannot be read.
pub fn vocabulary(root: &Path) -> Result<(), String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    print!("{}", vocabulary::list(&vocabulary::counts(&sources)));
    Ok(())
}

/// Prints the comments and names of functions with phrases that the glossary avoids, of a crate or
/// folder or of all.
///
/// # Errors
/// A folder cannot be read.
pub fn avoided(root: &Path, part: &str) -> Result<(), String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    let glossary = glossary::Glossary::of(&sources);
    let found = comments::avoided(&sources, &glossary);
    for one in found.iter().filter(|one| part.is_empty() || one.part == part) {
        println!("{}:{}: \"{}\": write {}", one.path, one.line, one.entry.phrase, one.entry.write);
    }
    Ok(())
}

/// Prints the circles of imports between files.
///
/// # Errors
/// A folder cannot be read.
pub fn circles(root: &Path) -> Result<(), String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    let found = circles::circles(&sources);
    found.iter().for_each(|circle| print!("{circle}"));
    println!("{} circles", found.len());
    Ok(())
}

fn collect(root: &Path, dir: &Path, into: &mut Vec<Source>) -> Result<(), String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                collect(root, &path, into)?;
            }
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            into.push(Source::new(&relative, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
