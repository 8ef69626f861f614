//! The summary as text, table and Markdown. All take their figures from [`Cell::figures`].

use super::summary::{Cell, Column, Row, Summary};
use crate::report::table::{Table, escaped};
use base::units::{bytes, time_ns};

/// Heads of [`Cell::figures`].
const HEADS: [&str; 8] =
    ["value", "clients × threads", "p50", "p99", "payload", "transport", "limited by", "mark"];

impl Cell {
    /// Its figures for people, as [`HEADS`] names them.
    pub fn figures(&self) -> [String; 8] {
        let rate =
            |bytes_s: Option<f64>| bytes_s.map_or("–".into(), |b| format!("{}/s", bytes(b)));
        if self.value.is_none() {
            let mut none = [const { String::new() }; 8];
            none[0].clone_from(&self.text);
            return none;
        }
        [
            self.text.clone(),
            format!("{} × {}", self.clients, self.threads),
            time_ns(self.p50_ns as f64),
            time_ns(self.p99_ns as f64),
            rate(self.payload_bytes_s),
            rate(self.transport_bytes_s),
            format!("{} ({:.0} %)", self.limiter_text, self.confidence * 100.0),
            self.mark(),
        ]
    }

    /// What is to be known about the figure, in a few words.
    pub fn mark(&self) -> String {
        let disturbed = self.disturbed.as_ref().map(|disturbed| disturbed.sentence());
        let unsteady = (!self.steady).then(|| "not steady".to_owned());
        disturbed.into_iter().chain(unsteady).collect::<Vec<_>>().join("; ")
    }
}

impl Summary {
    /// All cells, one in a line.
    pub fn table(&self) -> Table {
        let heads = ["row", "column"].into_iter().chain(HEADS);
        let line = |(row, column, cell): (&Row, &Column, &Cell)| {
            let names = [row.title.clone(), column.name.clone()];
            names.into_iter().chain(cell.figures()).collect()
        };
        let number = |(row, _, cell): (&Row, &Column, &Cell)| {
            let some = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
            vec![
                row.job.clone(),
                some(cell.value),
                row.unit.clone(),
                some(cell.payload_bytes_s),
                some(cell.transport_bytes_s),
                some(cell.value.map(|_| cell.p50_ns as f64)),
                some(cell.value.map(|_| cell.p99_ns as f64)),
            ]
        };
        let mut table = Table::new(heads, self.cells().map(line).collect());
        table.raw(
            ["job", "raw", "unit", "payload_bytes_s", "transport_bytes_s", "p50_ns", "p99_ns"],
            self.cells().map(number).collect(),
        );
        table
    }

    /// Rows by columns, the values only.
    pub fn matrix(&self) -> Table {
        let names = self.columns.iter().map(|column| column.name.clone());
        let heads = std::iter::once(String::new()).chain(names);
        let short = |cell: &Cell| match &cell.value {
            Some(_) if cell.mark().is_empty() => cell.text.clone(),
            Some(_) => format!("{} *", cell.text),
            None => "–".to_owned(),
        };
        let line = |row: &Row| {
            std::iter::once(row.title.clone()).chain(row.cells.iter().map(short)).collect()
        };
        Table::new(heads, self.rows.iter().map(line).collect())
    }

    /// Its title.
    pub fn title(&self) -> String {
        match self.columns.as_slice() {
            [one] => format!("Performance Limit Summary of {}", one.target),
            _ => "Performance Limit Summary".to_owned(),
        }
    }

    /// What restricts the figures, by cell.
    pub(crate) fn reservations(&self) -> Vec<String> {
        let failed = self.columns.iter().filter_map(|column| {
            Some(format!("{}: not measured: {}", column.name, column.failed.as_ref()?))
        });
        let doubts = self.cells().flat_map(|(row, column, cell)| {
            cell.doubts.iter().map(move |doubt| format!("{}, {}: {doubt}", row.title, column.name))
        });
        failed.chain(doubts).collect()
    }

    /// As text: the reservations, the values, then each cell with its reasons.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n\n", self.title());
        if self.columns.len() > 1 {
            for column in &self.columns {
                out += &format!("{}: {}\n", column.name, column.target);
            }
            out.push('\n');
        }
        let reservations = self.reservations();
        if !reservations.is_empty() {
            out += "Reservations:\n";
            out += &reservations.iter().map(|what| format!("  {what}\n")).collect::<String>();
            out.push('\n');
        }
        out += &self.matrix().text();
        out += NOTE;
        for row in &self.rows {
            out += &format!("\n{}\n", row.title);
            for (column, cell) in self.columns.iter().zip(&row.cells) {
                out += &cell.text_of(&column.name);
            }
        }
        out
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", self.title());
        for column in &self.columns {
            out += &format!("- {}: `{}`\n", column.name, column.target);
        }
        out += &self.reservations().iter().map(|what| format!("- {what}\n")).collect::<String>();
        out += &format!("\n{}{NOTE}\n{}", self.matrix().markdown(), self.table().markdown());
        out
    }

    /// The tables of its page.
    pub fn html(&self) -> String {
        let mut out = String::new();
        let reservations = self.reservations();
        out += &reservations.iter().map(|what| report_note(what)).collect::<String>();
        out += &format!("<div class=\"scroll\">{}</div>", self.matrix().html());
        out += &format!("<p class=\"soft\">{}</p>", NOTE.trim());
        out += &format!("<h2>Cells</h2><div class=\"scroll\">{}</div>", self.table().html());
        out
    }
}

/// Under the values.
pub(crate) const NOTE: &str =
    "≥: the load generator or the schedule ended the row. *: marked below.\n";

fn report_note(what: &str) -> String {
    format!("<p class=\"note\">{}</p>", escaped(what))
}

impl Cell {
    fn text_of(&self, column: &str) -> String {
        let [value, at, p50, p99, payload, transport, limiter, mark] = self.figures();
        if self.value.is_none() {
            return format!("  {column}: {value}\n");
        }
        let mut out =
            format!("  {column}: {value} at {at}, p50 {p50}, p99 {p99}, payload {payload}");
        out += &format!(", transport {transport}; {limiter}\n");
        let marks = (!mark.is_empty()).then_some(mark);
        let lines = marks.iter().chain(&self.why).chain(&self.scaling);
        out += &lines.map(|sentence| format!("    {sentence}\n")).collect::<String>();
        format!("{out}    {}\n", self.command)
    }
}
