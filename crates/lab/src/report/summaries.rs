//! Two summaries side by side, cell by cell.

use crate::limits::summary::{Cell, Summary};
use serde::Serialize;

/// A cell of both, or of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellChange {
    /// Title of the row.
    pub row: String,
    /// Name of its job.
    pub job: String,
    /// Name of the column.
    pub column: String,
    /// The values for people: first, second; `None` where a summary has no such cell.
    pub texts: (Option<String>, Option<String>),
    /// Second ÷ first; `None` unless both were measured.
    pub ratio: Option<f64>,
    /// Limiters.
    pub limiters: (String, String),
    /// What makes either doubtful, in a few words.
    pub marks: (String, String),
}

/// All cells of two summaries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SummaryChange {
    /// Targets that differ: column, first, second.
    pub targets: Vec<(String, String, String)>,
    /// The cells, by row.
    pub cells: Vec<CellChange>,
}

/// Lays the second summary next to the first. Columns belong together by name, rows by job.
pub fn compare_summaries(a: &Summary, b: &Summary) -> SummaryChange {
    let mut places: Vec<(String, String, String)> = Vec::new();
    for (row, column, _) in a.cells().chain(b.cells()) {
        let place = (row.job.clone(), column.name.clone());
        if !places.iter().any(|(_, job, name)| (job, name) == (&place.0, &place.1)) {
            places.push((row.title.clone(), place.0, place.1));
        }
    }
    let targets = a.columns.iter().filter_map(|column| {
        let other = b.columns.iter().find(|other| other.name == column.name)?;
        let (first, second) = (column.target.clone(), other.target.clone());
        (first != second).then(|| (column.name.clone(), first, second))
    });
    let cells = places.into_iter().map(|(row, job, column)| {
        let (first, second) = (find(a, &job, &column), find(b, &job, &column));
        let value = |cell: Option<&Cell>| cell.and_then(|cell| cell.value).filter(|v| *v > 0.0);
        let text = |cell: Option<&Cell>| cell.map(|cell| cell.text.clone());
        let limiter = |cell: Option<&Cell>| {
            cell.filter(|cell| cell.value.is_some())
                .map_or(String::new(), |c| c.limiter_text.clone())
        };
        let mark = |cell: Option<&Cell>| {
            cell.filter(|cell| cell.value.is_some()).map(Cell::mark).unwrap_or_default()
        };
        CellChange {
            texts: (text(first), text(second)),
            ratio: value(first).zip(value(second)).map(|(a, b)| b / a),
            limiters: (limiter(first), limiter(second)),
            marks: (mark(first), mark(second)),
            row,
            job,
            column,
        }
    });
    SummaryChange { targets: targets.collect(), cells: cells.collect() }
}

fn find<'a>(summary: &'a Summary, job: &str, column: &str) -> Option<&'a Cell> {
    let mut cells = summary.cells();
    cells.find(|(row, c, _)| row.job == job && c.name == column).map(|(_, _, cell)| cell)
}

impl SummaryChange {
    /// As text.
    pub fn text(&self) -> String {
        let mut out: String =
            self.targets.iter().map(|(column, a, b)| format!("{column}: {a} | {b}\n")).collect();
        let cell = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
        let line = |change: &CellChange| {
            let (a, b) = (cell(&change.texts.0), cell(&change.texts.1));
            let ratio = change.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
            let (first, second) = &change.limiters;
            let limiter =
                if first == second { first.clone() } else { format!("{first} | {second}") };
            let marks = [&change.marks.0, &change.marks.1];
            let marks: Vec<&str> =
                marks.iter().map(|m| m.as_str()).filter(|m| !m.is_empty()).collect();
            vec![change.row.clone(), change.column.clone(), a, b, ratio, limiter, marks.join(" | ")]
        };
        let heads = ["row", "column", "first", "second", "ratio", "limited by", "mark"];
        let rows = self.cells.iter().map(line).collect();
        out += &super::table::Table::new(heads, rows).text();
        out += "One run of each decides nothing; `plimsoll lab ab` makes enough of each.\n";
        out
    }
}
