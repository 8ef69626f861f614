//! Comments and names of functions follow `docs/glossary.md`: what it avoids is counted for each
//! crate, and for some folders separately, in `xtask/vocabulary.txt`. A count may only fall.

use std::collections::{BTreeMap, BTreeSet};

use super::glossary::{Entry, Glossary, flattened, phrases_in};
use super::{Source, scan};

/// Folders with a separate count, in addition to that of their crate.
const FOLDERS: [&str; 2] = ["crates/lab/src/agent", "crates/vfs/src/locks"];

/// A comment or a name with a phrase that the glossary avoids.
pub struct Avoided<'a> {
    /// The crate or folder that counts it.
    pub part: String,
    /// Its file.
    pub path: &'a str,
    /// Its line, from 1.
    pub line: usize,
    /// The phrase and what to write.
    pub entry: &'a Entry,
}

/// All of them, in the order of files and lines; one for each line.
pub fn avoided<'a>(sources: &'a [Source], glossary: &'a Glossary) -> Vec<Avoided<'a>> {
    let crates: BTreeSet<&str> =
        sources.iter().filter_map(|source| source.path.strip_suffix("/Cargo.toml")).collect();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let lines = lines(source, &glossary.comments);
        found.extend(lines.into_iter().map(|(line, entry)| Avoided {
            part: part(&source.path, &crates).to_owned(),
            path: &source.path,
            line,
            entry,
        }));
    }
    found
}

/// Lines for each crate and folder.
pub fn counts(sources: &[Source], glossary: &Glossary) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in avoided(sources, glossary) {
        *counts.entry(format!("{} comments", one.part)).or_default() += 1;
    }
    counts
}

/// The crate that a file belongs to, or the folder that is counted separately.
fn part<'a>(path: &'a str, crates: &BTreeSet<&str>) -> &'a str {
    if let Some(folder) = FOLDERS.iter().find(|one| {
        path.strip_prefix(**one).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    }) {
        return &path[..folder.len()];
    }
    let folders = path.match_indices('/').rev().map(|(at, _)| &path[..at]);
    let own = folders.clone().find(|folder| crates.contains(folder));
    own.or_else(|| folders.clone().next()).unwrap_or(path)
}

/// The lines of a file and the first phrase of each.
fn lines<'a>(source: &Source, entries: &'a [Entry]) -> BTreeMap<usize, &'a Entry> {
    let mut found = BTreeMap::new();
    let comments = scan::comments(&source.text);
    for (at, (line, text)) in comments.iter().enumerate() {
        let begin = flattened(&unquoted(text));
        // A phrase may continue in the next line.
        let next = comments.get(at + 1).filter(|(next, _)| *next == line + 1);
        let rest = next.map_or_else(String::new, |(_, text)| flattened(&unquoted(text)));
        let both = format!("{begin} {rest}");
        if let Some(entry) = phrases_in(&both, begin.len(), entries).next() {
            found.insert(*line, entry);
        }
    }
    for function in scan::functions(&source.code) {
        let name = function.name.replace('_', " ");
        if let Some(entry) = phrases_in(&name, name.len(), entries).next() {
            found.entry(function.line).or_insert(entry);
        }
    }
    found
}

/// A comment without what stands in backticks: code, and names as they are.
fn unquoted(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}
