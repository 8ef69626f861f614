//! The table as text, and its place in the document.

use std::fs;
use std::path::Path;

use crate::lock_table::second::{Operation, Second};

/// The lines around the table in the document.
const BEGIN: &str = "<!-- begin: written by tests/lock_table.rs -->\n";
const END: &str = "<!-- end: written by tests/lock_table.rs -->\n";

/// What one attempt came to.
pub(super) struct Code {
    /// How the second was refused; otherwise it was done.
    pub refusal: Option<String>,
    /// What the first was sent.
    pub sent: Vec<String>,
    /// The second was answered to come again, or that it takes longer.
    pub is_delayed: bool,
}

/// A first client, and the outcome for each second one and operation; `None` where a protocol has
/// no such operation.
pub(super) struct Row {
    pub first: &'static str,
    pub cells: Vec<[Option<Code>; Operation::ALL.len()]>,
}

/// All rows, by what is held.
#[derive(Default)]
pub(super) struct Report {
    tables: Vec<(&'static str, Vec<Row>)>,
}

/// Texts in the order in which they came, with a mark for each.
#[derive(Default)]
struct Legend(Vec<String>);

impl Legend {
    fn position(&mut self, text: &str) -> usize {
        self.0.iter().position(|known| known == text).unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        })
    }
}

/// The letter of a position.
fn letter(at: usize) -> char {
    let letter = u8::try_from(at).ok().and_then(|at| b'a'.checked_add(at));
    char::from(letter.filter(u8::is_ascii_lowercase).expect("few enough kinds"))
}

impl Report {
    pub fn add(&mut self, lock: &'static str, row: Row) {
        match self.tables.iter_mut().find(|(title, _)| *title == lock) {
            Some((_, rows)) => rows.push(row),
            None => self.tables.push((lock, vec![row])),
        }
    }

    /// Compares it with the document, or writes it there.
    pub fn compare(&self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocols/locks.md");
        let document = fs::read_to_string(&path).expect("the document");
        let (before, rest) = document.split_once(BEGIN).expect("the beginning of the table");
        let (table, after) = rest.split_once(END).expect("the end of the table");
        let made = self.text();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, [before, BEGIN, &made, END, after].concat()).expect("written");
        } else {
            assert!(made == table, "UPDATE_GOLDEN=1 writes the table:\n{made}");
        }
    }

    fn text(&self) -> String {
        let (mut refusals, mut sent) = (Legend::default(), Legend::default());
        let mut text = String::new();
        let columns: Vec<_> = Second::ALL.iter().map(|second| second.title()).collect();
        for (lock, rows) in &self.tables {
            text += &format!("\n**{lock}**\n\n| First | {} |\n", columns.join(" | "));
            text += &format!("|---|{}\n", "---|".repeat(columns.len()));
            for row in rows {
                let cell = |codes: &[Option<Code>; Operation::ALL.len()]| {
                    let codes = codes.iter().map(|code| mark(code, &mut refusals, &mut sent));
                    codes.collect::<Vec<_>>().join(" ")
                };
                let cells: Vec<_> = row.cells.iter().map(cell).collect();
                text += &format!("| {} | {} |\n", row.first, cells.join(" | "));
            }
        }
        text += "\n### Answers\n\n| Code | The second is answered |\n|---|---|\n";
        for (at, refusal) in refusals.0.iter().enumerate() {
            text += &format!("| {} | {refusal} |\n", at + 1);
        }
        text += "\n### Sent\n\n| Letter | The first is sent |\n|---|---|\n";
        for (at, words) in sent.0.iter().enumerate() {
            text += &format!("| {} | {words} |\n", letter(at));
        }
        text += "\n";
        text
    }
}

/// A code: the number of the refusal or `+`, then the letter of what was sent.
fn mark(code: &Option<Code>, refusals: &mut Legend, sent: &mut Legend) -> String {
    let Some(code) = code else { return "–".to_owned() };
    let number = code.refusal.as_ref().map(|text| (refusals.position(text) + 1).to_string());
    let letter = (!code.sent.is_empty()).then(|| {
        let letter = letter(sent.position(&code.sent.join(", ")));
        if code.is_delayed { letter.to_ascii_uppercase() } else { letter }
    });
    match (number, letter) {
        (None, None) => "+".to_owned(),
        (number, letter) => {
            number.into_iter().chain(letter.map(String::from)).collect::<Vec<_>>().concat()
        }
    }
}
