//! Rows as aligned columns, for people. What is in a cell never leaves it.

use base::text::visible;

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

/// Rows below their heads; `more`: there are others.
pub fn table<const N: usize>(head: [(&str, Side); N], rows: &[[String; N]], more: bool) -> String {
    let visible = |row: &[String; N]| row.each_ref().map(|cell| visible(cell).into_owned());
    let rows: Vec<[String; N]> = rows.iter().map(visible).collect();
    let width = |n: usize| {
        let cells = rows.iter().map(|row| row[n].chars().count());
        cells.chain([head[n].0.chars().count()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let mut text = String::new();
        for (n, cell) in cells.into_iter().enumerate() {
            let pad = " ".repeat(widths[n] - cell.chars().count());
            let cell =
                if head[n].1 == Left { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
            text += &cell;
            text += &" ".repeat(GAP);
        }
        text.trim_end().to_owned() + "\n"
    };
    let mut text = line(head.map(|(name, _)| name));
    rows.iter().for_each(|row| text += &line(row.each_ref().map(String::as_str)));
    if more {
        text += &format!("# the first {} only\n", rows.len());
    }
    text
}

#[cfg(test)]
mod tests;
