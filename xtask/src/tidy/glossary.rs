//! The table "Words to avoid" of `docs/glossary.md`: what is avoided, what to write instead, and
//! where. The rules of texts, comments and identifiers have no other list.

use super::Source;

/// The document.
const GLOSSARY: &str = "docs/glossary.md";
/// Head of the table.
const HEAD: &str = "| Avoid | Write | Where |";

/// A word or phrase and what to write instead of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The word or phrase; lower case, but for identifiers.
    pub phrase: String,
    /// What to write.
    pub write: String,
}

/// The table, by where its rows hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Glossary {
    /// Refused in texts for users, counted in other documents.
    pub texts: Vec<Entry>,
    /// Counted in comments and names of functions.
    pub comments: Vec<Entry>,
    /// Counted as identifiers.
    pub identifiers: Vec<Entry>,
}

impl Glossary {
    /// Reads the table; empty if there is none.
    pub fn of(sources: &[Source]) -> Self {
        let text = sources.iter().find(|source| source.path == GLOSSARY).map(|s| s.text.as_str());
        let mut glossary = Self::default();
        let lines = text.unwrap_or_default().lines().skip_while(|line| *line != HEAD).skip(2);
        for row in lines.take_while(|line| line.starts_with('|')) {
            glossary.add(row);
        }
        glossary
    }

    fn add(&mut self, row: &str) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (Some(avoid), Some(write), Some(place)) = (cells.next(), cells.next(), cells.next())
        else {
            return;
        };
        let entries = avoid.split(',').map(|phrase| Entry {
            phrase: phrase.trim().trim_matches('`').to_owned(),
            write: write.to_owned(),
        });
        let entries: Vec<Entry> = entries.collect();
        match place {
            "identifiers" => self.identifiers.extend(entries),
            "comments" => self.comments.extend(entries),
            "texts" => self.texts.extend(entries),
            _ => {
                self.texts.extend(entries.clone());
                self.comments.extend(entries);
            }
        }
    }

    /// Whether there is a table.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where a phrase stands in a text, as whole words.
pub fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// The phrases that begin in the first `most` bytes of a text in lower case.
pub fn phrases_in<'a>(
    text: &str,
    most: usize,
    entries: &'a [Entry],
) -> impl Iterator<Item = &'a Entry> {
    entries.iter().filter(move |entry| {
        let end = text.len().min(most + entry.phrase.len());
        let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        // The character after a phrase counts: it may continue the word.
        let end = text[end..].chars().next().map_or(end, |next| end + next.len_utf8());
        has_phrase(&text[..end], &entry.phrase)
    })
}

/// One line, one space between words, lower case, without the names in braces.
pub fn flattened(text: &str) -> String {
    let words = text.split('{').enumerate().map(|(at, part)| match part.split_once('}') {
        Some((_, after)) if at > 0 => after,
        _ => part,
    });
    let words = words.collect::<Vec<_>>().join("{}");
    words.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
