//! Sections of a summary: rows by columns, every cell, the reasons, the columns.

use super::{NONE, Section};
use crate::limits::NOTE;
use crate::limits::summary::{Cell, Column, Row, Summary};

/// All of them.
pub(super) fn sections(summary: &Summary) -> Vec<Section> {
    let values = Section::new("values", "Values by row and column")
        .with_sentences([NOTE.trim().to_owned()])
        .of(&summary.matrix());
    // After the values: on a busy machine there are many.
    let reservations =
        Section::new("reservations", "Reservations").with_sentences(summary.reservations());
    let cells = Section::new("cells", "Cells").of(&summary.table());
    let reason = |(row, column, cell): (&Row, &Column, &Cell)| {
        let place = format!("{}, {}", row.title, column.name);
        let why = cell.why.iter().chain(&cell.scaling).chain(&cell.doubts).cloned();
        let why: Vec<String> = why.collect();
        (!why.is_empty()).then(|| [place, why.join("; ")])
    };
    let reasons = Section::new("reasons", "Reasons")
        .table(["cell", "why"], summary.cells().filter_map(reason).collect());
    let column = |column: &Column| {
        let machine = column.server.machine.clone().unwrap_or_default();
        let text = |name: &str| machine[name].as_str().unwrap_or(NONE).to_owned();
        [
            column.name.clone(),
            column.target.clone(),
            column.server.seen.clone(),
            text("cpu"),
            machine["cores"].as_u64().map_or(NONE.to_owned(), |cores| cores.to_string()),
            text("kernel"),
            column.failed.clone().unwrap_or_default(),
        ]
    };
    let columns = Section::new("columns", "Columns").table(
        ["column", "target", "server seen by", "processor", "cores", "kernel", "not measured"],
        summary.columns.iter().map(column).collect(),
    );
    let command = Section::new("command", "Command").with_sentences([summary.command.join(" ")]);
    vec![values, columns, reservations, cells, reasons, command]
}
