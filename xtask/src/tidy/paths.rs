//! Paths in documents and comments lead to files: links of Markdown, and paths in backticks with
//! the ending of a file of the project. A path may leave out what is above it, and `src`.

use std::collections::BTreeSet;

use super::{Finding, Source, scan};

/// Endings of files that documents name.
const ENDINGS: [&str; 8] = [".rs", ".md", ".toml", ".ts", ".svelte", ".mjs", ".css", ".html"];

/// Checks every document and every comment.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let known = known(sources);
    let files: BTreeSet<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    let mut findings = Vec::new();
    for source in sources {
        let texts: Vec<(usize, String)> = match source.path.rsplit('.').next() {
            Some("md") => (1..).zip(source.text.lines().map(str::to_owned)).collect(),
            Some("rs") if !source.is_test() => scan::comments(&source.text),
            _ => continue,
        };
        let mut add = |line, what: String| {
            findings.push(Finding { path: source.path.clone(), line, rule: "no-such-file", what });
        };
        let is_document = source.path.ends_with(".md");
        for (line, text) in &texts {
            for path in quoted(text).flat_map(expand).filter(|path| is_path(path)) {
                if !known.contains(&shortened(&path)) {
                    add(*line, format!("no file is `{path}`"));
                }
            }
            for path in links(text).filter(|_| is_document) {
                if !leads(&source.path, path, &files) {
                    add(*line, format!("a link to {path}, which is no file"));
                }
            }
        }
    }
    findings
}

/// Every file by each way to shorten its path.
fn known(sources: &[Source]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for source in sources {
        let whole = shortened(&source.path);
        let cuts = whole.match_indices('/').map(|(at, _)| whole[at + 1..].to_owned());
        known.extend(cuts);
        known.insert(whole);
    }
    known
}

/// A path without the folders that documents leave out.
fn shortened(path: &str) -> String {
    let parts = path.split('/').filter(|part| !["src", "crates", ".", ".."].contains(part));
    parts.collect::<Vec<_>>().join("/")
}

/// What stands in backticks, without spaces.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|one| !one.contains(char::is_whitespace))
}

/// Each of the paths that names in braces stand for.
fn expand(path: &str) -> Vec<String> {
    let braces = path.split_once('{').and_then(|(before, rest)| {
        rest.split_once('}').map(|(names, after)| (before, names, after))
    });
    let Some((before, names, after)) = braces else { return vec![path.to_owned()] };
    names.split(',').flat_map(|name| expand(&format!("{before}{name}{after}"))).collect()
}

/// Whether it is meant as a file of the repository: placeholders are in capitals or brackets.
fn is_path(path: &str) -> bool {
    let is_part = |part: &str| {
        let letters = part.split('.').next().unwrap_or_default();
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && (letters.is_empty() || letters != letters.to_uppercase() || part.ends_with(".md"))
    };
    path.contains('/')
        && ENDINGS.iter().any(|ending| path.ends_with(ending))
        && path.split('/').all(is_part)
}

/// Targets of links to other files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.map(|target| target.split('#').next().unwrap_or_default());
    targets.filter(|target| !target.is_empty() && !target.contains([':', ' ']))
}

/// Whether a link of `document` leads to a file or a folder.
fn leads(document: &str, link: &str, files: &BTreeSet<&str>) -> bool {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let below = format!("{path}/");
    // Pictures and what fuzzing starts from are not text, so they are not among the files.
    files.contains(path.as_str())
        || path.starts_with("fuzz/corpus")
        || files.iter().any(|file| file.starts_with(&below))
        || [".png", ".svg"].iter().any(|ending| path.ends_with(ending))
}
