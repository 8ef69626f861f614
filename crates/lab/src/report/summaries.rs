//! Two summaries side by side, cell by cell.

use crate::limits::summary::{Cell, Column, NOT_MEASURED, Row, Summary};
use serde::Serialize;
use serde_json::Value;

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
    /// Second ÷ first; `None` if they are not comparable.
    pub ratio: Option<f64>,
    /// Why they are not comparable, if so.
    pub not_comparable: Option<String>,
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
    let whole = not_comparable(a, b);
    let cells = places.into_iter().map(|(row, job, column)| {
        let (first, second) = (find(a, &job, &column), find(b, &job, &column));
        let text = |at: Option<CellAt<'_>>| at.map(|at| at.cell.text.clone());
        let limiter = |place| measured(place).map_or(String::new(), |c| c.limiter_text.clone());
        let mark = |place| measured(place).map(Cell::mark).unwrap_or_default();
        let ratio = ratio(first, second, whole.as_deref());
        CellChange {
            texts: (text(first), text(second)),
            limiters: (limiter(first), limiter(second)),
            marks: (mark(first), mark(second)),
            not_comparable: ratio.as_ref().err().cloned(),
            ratio: ratio.ok(),
            row,
            job,
            column,
        }
    });
    SummaryChange { targets: targets.collect(), cells: cells.collect() }
}

/// A cell with its row and column.
#[derive(Debug, Clone, Copy)]
struct CellAt<'a> {
    row: &'a Row,
    column: &'a Column,
    cell: &'a Cell,
}

/// Its cell, if that has a figure.
fn measured<'a>(at: Option<CellAt<'a>>) -> Option<&'a Cell> {
    at.map(|at| at.cell).filter(|cell| cell.value.is_some())
}

/// Second ÷ first, or why there is none.
fn ratio(a: Option<CellAt<'_>>, b: Option<CellAt<'_>>, whole: Option<&str>) -> Result<f64, String> {
    let only = |which: &str, at: Option<CellAt<'_>>| {
        let why = at.map(|at| at.cell).filter(|cell| cell.value.is_none());
        let why = why.map_or(String::new(), |cell| format!(": {}", cell.text));
        Err(format!("only the {which} has it{why}"))
    };
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (first, None) => return only("first", first),
        (None, second) => return only("second", second),
    };
    let value = |cell: &Cell| cell.value.filter(|value| *value > 0.0);
    let (first, second) = match (value(a.cell), value(b.cell)) {
        (Some(first), Some(second)) => (first, second),
        (None, None) if a.cell.text == b.cell.text => {
            return Err(format!("both were {}", a.cell.text));
        }
        (None, None) => {
            return Err(format!("the first was {}; the second was {}", a.cell.text, b.cell.text));
        }
        (None, Some(_)) => return Err(format!("the first was {}", a.cell.text)),
        (Some(_), None) => return Err(format!("the second was {}", b.cell.text)),
    };
    if a.row.unit != b.row.unit {
        return Err(format!("units differ: {} and {}", a.row.unit, b.row.unit));
    }
    if let Some(why) = whole {
        return Err(why.to_owned());
    }
    let of = |column: &Column| column.server.machine.clone().unwrap_or_default();
    match machines_differ(&of(a.column), &of(b.column)) {
        Some(why) => Err(format!("servers differ: {why}")),
        None => Ok(second / first),
    }
}

/// Why no cell of two summaries is comparable, if so.
fn not_comparable(a: &Summary, b: &Summary) -> Option<String> {
    if a.quick != b.quick {
        return Some("one is of --quick, the other is not".to_owned());
    }
    machines_differ(&a.machine, &b.machine).map(|why| format!("load generators differ: {why}"))
}

/// How two machines differ in what decides a figure. What is unknown of one is no difference.
fn machines_differ(a: &Value, b: &Value) -> Option<String> {
    ["cpu", "cores", "kernel"].into_iter().find_map(|what| {
        let shown = |machine: &Value| match &machine[what] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let (first, second) = (shown(a)?, shown(b)?);
        (first != second).then(|| format!("{what} {first} and {second}"))
    })
}

fn find<'a>(summary: &'a Summary, job: &str, column: &str) -> Option<CellAt<'a>> {
    let mut cells = summary.cells();
    let found = cells.find(|(row, c, _)| row.job == job && c.name == column)?;
    Some(CellAt { row: found.0, column: found.1, cell: found.2 })
}

impl SummaryChange {
    /// As text.
    pub fn text(&self) -> String {
        let mut out: String =
            self.targets.iter().map(|(column, a, b)| format!("{column}: {a} | {b}\n")).collect();
        // Why a cell was not measured is the reason that the two are not comparable.
        let cell = |text: &Option<String>| {
            let figure = text.clone().filter(|text| !text.starts_with(NOT_MEASURED));
            figure.unwrap_or_else(|| "–".to_owned())
        };
        let line = |change: &CellChange| {
            let (a, b) = (cell(&change.texts.0), cell(&change.texts.1));
            let ratio = change.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
            let (first, second) = &change.limiters;
            let limiter =
                if first == second { first.clone() } else { format!("{first} | {second}") };
            let why = change.not_comparable.as_ref().map(|why| format!("not comparable: {why}"));
            let marks = [Some(&change.marks.0), Some(&change.marks.1), why.as_ref()];
            let marks: Vec<&str> =
                marks.into_iter().flatten().map(|m| m.as_str()).filter(|m| !m.is_empty()).collect();
            vec![change.row.clone(), change.column.clone(), a, b, ratio, limiter, marks.join(" | ")]
        };
        let heads = ["row", "column", "first", "second", "ratio", "limited by", "mark"];
        let rows = self.cells.iter().map(line).collect();
        out += &super::table::Table::new(heads, rows).text();
        out += "One run of each decides nothing; `plimsoll lab ab` makes enough of each.\n";
        out
    }
}
