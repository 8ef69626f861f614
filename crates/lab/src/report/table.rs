//! A table of figures, of which text, CSV, Markdown and HTML are made: the same words in each.

/// Heads and lines of text, and for programs the numbers behind them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    raw_heads: Vec<String>,
    raw: Vec<Vec<String>>,
}

/// Text within HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A field of CSV (RFC 4180).
pub(super) fn field(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

impl Table {
    /// A table.
    pub fn new<H: Into<String>>(
        heads: impl IntoIterator<Item = H>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let heads = heads.into_iter().map(Into::into).collect();
        Self { heads, rows, ..Self::default() }
    }

    /// Adds numbers for programs, which only CSV has.
    pub fn raw<const N: usize>(&mut self, heads: [&str; N], rows: Vec<Vec<String>>) {
        self.raw_heads = heads.map(str::to_owned).to_vec();
        self.raw = rows;
    }

    /// The heads.
    pub fn heads(&self) -> &[String] {
        &self.heads
    }

    /// The lines.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// With aligned columns.
    pub fn text(&self) -> String {
        let lines = || std::iter::once(&self.heads).chain(&self.rows);
        let width = |n: usize| {
            let widths = lines().filter_map(|line| line.get(n)).map(|cell| cell.chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |line: &Vec<String>| {
            let cell = |(n, (cell, width)): (usize, (&String, &usize))| match n {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
            let text: String = line.iter().zip(&widths).enumerate().map(cell).collect();
            text.trim_end().to_owned() + "\n"
        };
        lines().map(line).collect()
    }

    /// As CSV, with the numbers behind the figures in the last columns.
    pub fn csv(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &String>| {
            cells.map(|cell| field(cell)).collect::<Vec<_>>().join(",") + "\r\n"
        };
        let mut out = line(&mut self.heads.iter().chain(&self.raw_heads));
        for (n, row) in self.rows.iter().enumerate() {
            out += &line(&mut row.iter().chain(self.raw.get(n).into_iter().flatten()));
        }
        out
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut out = line(&self.heads);
        out += &format!("|{}\n", "---|".repeat(self.heads.len()));
        out + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    /// As HTML.
    pub fn html(&self) -> String {
        let line = |cells: &[String], tag: &str| {
            let cell = |text: &String| format!("<{tag}>{}</{tag}>", escaped(text));
            format!("<tr>{}</tr>", cells.iter().map(cell).collect::<String>())
        };
        let body: String = self.rows.iter().map(|row| line(row, "td")).collect();
        format!("<table><thead>{}</thead><tbody>{body}</tbody></table>", line(&self.heads, "th"))
    }
}
