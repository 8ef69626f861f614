//! Rows as aligned columns, for people. What is in a cell never leaves it.

use base::text::visible;
use control::nfs::Listing;

/// Spaces between columns.
const GAP: usize = 2;

/// How a column stands.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

use Side::Left;

/// A column: its head, how it stands, and the cell of a row.
pub struct Column<T>(pub &'static str, pub Side, pub fn(&T) -> String);

/// Rows below the heads of their columns; `none` where there are no rows.
pub fn table<T>(columns: &[Column<T>], all: &Listing<T>, none: &str) -> String {
    if all.rows.is_empty() {
        return format!("{none}\n");
    }
    let cells = |row: &T| -> Vec<String> {
        columns.iter().map(|Column(.., cell)| visible(&cell(row)).into_owned()).collect()
    };
    let head = columns.iter().map(|Column(name, ..)| (*name).to_owned()).collect();
    let lines: Vec<Vec<String>> = [head].into_iter().chain(all.rows.iter().map(cells)).collect();
    let width = |n: usize| lines.iter().map(|line| line[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        for ((Column(_, side, _), width), cell) in columns.iter().zip(&widths).zip(line) {
            let pad = " ".repeat(width - cell.chars().count());
            shown += &if *side == Left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
            shown += &" ".repeat(GAP);
        }
        text += shown.trim_end();
        text += "\n";
    }
    if all.more {
        text += &format!("# first {} only\n", all.rows.len());
    }
    text
}

#[cfg(test)]
mod tests;
