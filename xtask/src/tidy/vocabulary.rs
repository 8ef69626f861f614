//! The vocabulary of `docs/glossary.md`: phrases that texts for users avoid, and identifiers that
//! are unclear outside their file.
//!
//! Phrases are refused in README, help texts, messages, how-tos, the reference and the browser.
//! Other documents, comments (`comments.rs`) and identifiers are counted in `xtask/vocabulary.txt`;
//! a count may only fall, and `cargo xtask tidy --vocabulary` prints the list as it is now.

use std::collections::BTreeMap;

use super::glossary::{Entry, Glossary, flattened, has_phrase, phrases_in};
use super::{Finding, Source, comments, scan};

/// The list.
const LIST: &str = "xtask/vocabulary.txt";

/// Documents in which phrases are forbidden.
const STRICT: [&str; 5] =
    ["README.md", "CHANGELOG.md", "docs/reference.md", "docs/howto/", "tests/golden/help/"];
/// Documents in which phrases are counted.
const COUNTED: [&str; 6] = [
    "ARCHITECTURE.md",
    "docs/decisions/",
    "docs/formats/",
    "docs/protocols/",
    "docs/security.md",
    "docs/testing.md",
];

/// What is counted, and how often it occurs.
type Counts = BTreeMap<String, usize>;

/// A piece of text and its line.
type Text = (usize, String);

/// The texts of a file that users read; none for other files.
fn texts(source: &Source) -> Vec<Text> {
    let path = &source.path;
    let numbered =
        |text: &str| -> Vec<Text> { (1..).zip(text.lines().map(str::to_owned)).collect() };
    if STRICT.iter().any(|one| path.starts_with(one)) {
        return numbered(&source.text);
    }
    if path.starts_with("schema/") {
        return numbered(&source.text)
            .into_iter()
            .filter(|(_, line)| !line.starts_with('#'))
            .collect();
    }
    let is_message = path.starts_with("crates/") && path.contains("/src/") && source.is_rust();
    if is_message && !source.is_test() && !path.contains("conformance") {
        return scan::literals(&source.text)
            .into_iter()
            .filter(|(_, text)| is_sentence(text))
            .collect();
    }
    match path.starts_with("ui/src/") && source.is_ui() {
        true => browser_texts(source),
        false => Vec::new(),
    }
}

/// Messages have several words; names of fields, paths and markup do not.
fn is_sentence(text: &str) -> bool {
    text.trim().contains(' ') && !text.starts_with('<')
}

/// Text between tags and in quotes, comments and styles left out.
fn browser_texts(source: &Source) -> Vec<Text> {
    let mut found = Vec::new();
    let mut skipped = false;
    for (at, line) in source.text.lines().enumerate() {
        let start = line.trim_start();
        skipped |=
            start.starts_with("<!--") || start.starts_with("<style") || start.starts_with("/*");
        if !skipped && !["//", "*"].iter().any(|mark| start.starts_with(mark)) {
            let quoted =
                ['"', '\'', '`'].iter().flat_map(|mark| line.split(*mark).skip(1).step_by(2));
            let markup = line.split(['>', '}']).filter_map(|part| part.split(['<', '{']).next());
            let is_text = |text: &&str| is_sentence(text) && !text.contains(['=', ';', '(']);
            let all = quoted.chain(markup).filter(is_text);
            found.extend(all.map(|text| (at + 1, text.to_owned())));
        }
        skipped &= !["-->", "</style>", "*/"].iter().any(|end| line.contains(end));
    }
    found
}

/// Counts of documents and identifiers.
pub fn counts(sources: &[Source]) -> Counts {
    let glossary = Glossary::of(sources);
    let mut counts = comments::counts(sources, &glossary);
    for source in sources {
        if let Some(document) = COUNTED.iter().find(|one| source.path.starts_with(**one)) {
            let text = source.text.lines().map(flattened).collect::<Vec<_>>();
            let found = |e: &Entry| text.iter().filter(|l| has_phrase(l, &e.phrase)).count();
            let sum: usize = glossary.texts.iter().map(found).sum();
            *counts.entry((*document).to_owned()).or_default() += sum;
        }
        let is_own = source.path.starts_with("crates/") && source.is_rust() && !source.is_test();
        for Entry { phrase: name, .. } in glossary.identifiers.iter().filter(|_| is_own) {
            let found = source.code.lines().filter(|line| has_phrase(line, name)).count();
            if found > 0 {
                *counts.entry(name.clone()).or_default() += found;
            }
        }
    }
    counts
}

/// The list as it stands in the repository.
pub fn list(counts: &Counts) -> String {
    let mut text = "\
# Lines with what docs/glossary.md avoids: phrases by document, phrases in comments and names of
# functions by crate, and identifiers that mean nothing outside their file. Counts may only fall;
# `cargo xtask tidy --vocabulary` prints this list as it is now, `--comments PART` the lines.

"
    .to_owned();
    counts.iter().for_each(|(what, count)| text += &format!("{what} {count}\n"));
    text
}

/// Texts for users are clean; no count has grown, and the list has those of now.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let glossary = Glossary::of(sources);
    if glossary.is_empty() {
        let what = "the table of words to avoid is missing".to_owned();
        findings.push(Finding { path: "docs/glossary.md".into(), line: 0, rule: "phrase", what });
    }
    for source in sources {
        for (line, text) in texts(source) {
            let text = flattened(&text);
            for entry in phrases_in(&text, text.len(), &glossary.texts) {
                let Entry { phrase, write } = entry;
                let what = format!("\"{phrase}\": write {write} (docs/glossary.md)");
                findings.push(Finding { path: source.path.clone(), line, rule: "phrase", what });
            }
        }
    }
    let counts = counts(sources);
    let written = sources.iter().find(|source| source.path == LIST);
    let allowed = |what: &str| -> usize {
        let lines = written.into_iter().flat_map(|source| source.text.lines());
        let mut rows = lines.filter_map(|line| line.rsplit_once(' '));
        rows.find(|(name, _)| *name == what).and_then(|(_, n)| n.parse().ok()).unwrap_or(0)
    };
    let mut add = |what: String| {
        findings.push(Finding { path: LIST.to_owned(), line: 0, rule: "vocabulary", what });
    };
    for (what, count) in &counts {
        let most = allowed(what);
        if *count > most {
            add(format!("{what}: {count}, at most {most} may remain (docs/glossary.md)"));
        }
    }
    if written.is_none_or(|source| source.text != list(&counts)) {
        add("the list is not what `cargo xtask tidy --vocabulary` prints".to_owned());
    }
    findings
}
