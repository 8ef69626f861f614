//! The findings of a comparison, in sentences: which protocol is the fastest, how much slower each
//! protected one is than its plain one, what a gigabyte costs.
//!
//! Two protocols are distinguished only where the intervals allow it.

use super::record::{Comparison, Direction, Figures, Line};
use super::stats::Middle;
use base::units::bytes;

/// A line with its figures of one way.
type Row<'a> = (&'a Line, &'a Figures);

impl Comparison {
    /// Derives all figures from the samples, and the sentences from the figures.
    pub fn derive(&mut self) {
        self.derive_figures();
        self.findings = of(self);
    }
}

/// The sentences: of uploads, then of downloads.
pub fn of(comparison: &Comparison) -> Vec<String> {
    Direction::BOTH.into_iter().flat_map(|way| of_way(&comparison.lines, way)).collect()
}

fn of_way(lines: &[Line], way: Direction) -> Vec<String> {
    let rows: Vec<Row<'_>> =
        lines.iter().filter_map(|line| Some((line, line.figures(way)?))).collect();
    let protected = rows.iter().filter(|row| row.0.secure);
    let mut found: Vec<String> = fastest(&rows, way).into_iter().collect();
    found.extend(protected.filter_map(|row| against_plain(*row, &rows, lines, way)));
    found.extend(cost(&rows, way));
    found
}

/// `Uploads` at the begin of a sentence.
fn begin(way: Direction) -> &'static str {
    match way {
        Direction::Upload => "Uploads",
        Direction::Download => "Downloads",
    }
}

fn best<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> Option<Row<'a>> {
    let speed = |row: &Row<'_>| row.1.bytes_s.median;
    rows.max_by(|a, b| speed(a).total_cmp(&speed(b))).copied()
}

fn fastest(rows: &[Row<'_>], way: Direction) -> Option<String> {
    let top = best(rows.iter())?;
    let (name, speed) = (&top.0.protocol, &top.1.bytes_s);
    let figure = format!("{} ({})", rate(speed.median), interval(speed, &span(speed)));
    if rows.len() == 1 {
        return Some(format!("{} over {name}: {figure}.", begin(way)));
    }
    let near = |row: &&Row<'_>| !std::ptr::eq(row.0, top.0) && row.1.bytes_s.high >= speed.low;
    let near: Vec<&str> =
        rows.iter().filter(near).map(|(line, _)| line.protocol.as_str()).collect();
    let sentence = format!("{}: {name} is the fastest with {figure}", begin(way));
    if near.is_empty() {
        return Some(format!("{sentence}."));
    }
    Some(format!(
        "{sentence}; the difference to {} is not significant (the intervals overlap).",
        list(&near)
    ))
}

/// A protected protocol compared with the plain one of its family; one that has none compared with
/// the fastest of the plain ones.
fn against_plain(
    (line, figures): Row<'_>,
    rows: &[Row<'_>],
    lines: &[Line],
    way: Direction,
) -> Option<String> {
    let family = line.plain.and_then(|n| lines.get(n));
    let plain = match family {
        Some(plain) => (plain, plain.figures(way)?),
        None => best(rows.iter().filter(|row| !row.0.secure))?,
    };
    let ratio = line.to_other(plain.0, way)?;
    let with = line.cipher.as_ref().map(|cipher| format!(" with {cipher}")).unwrap_or_default();
    let of_all = if family.is_some() { "" } else { ", the fastest of the plain ones" };
    let how = interval(&ratio, &changes(&ratio));
    let speed = match ratio.low <= 1.0 && ratio.high >= 1.0 {
        true => {
            format!(
                "shows no significant difference to {}{of_all}: {}",
                plain.0.protocol,
                change(&ratio)
            )
        }
        false => format!("is {} than {}{of_all}", change(&ratio), plain.0.protocol),
    };
    let cpu = cpu_against(figures, plain.1, &plain.0.protocol);
    Some(format!("{}: {}{with} {speed} ({how}){cpu}.", begin(way), line.protocol))
}

/// What protection takes of the processors, in times of the plain protocol `name`.
fn cpu_against(figures: &Figures, plain: &Figures, name: &str) -> String {
    let times = |a: &Middle, b: &Middle| (b.median > 0.0).then(|| a.median / b.median);
    let client = times(&figures.client_cpu_s_gb, &plain.client_cpu_s_gb);
    let server = figures.server_cpu_s_gb.as_ref().zip(plain.server_cpu_s_gb.as_ref());
    match (client, server.and_then(|(a, b)| times(a, b))) {
        (Some(client), Some(server)) => format!(
            "; its CPU is {client:.1} times that of {name} at the client and {server:.1} times at \
             the server"
        ),
        (Some(client), None) => {
            format!("; its CPU is {client:.1} times that of {name} at the client")
        }
        (None, _) => String::new(),
    }
}

/// Over which protocol a gigabyte costs least CPU, and most.
fn cost(rows: &[Row<'_>], way: Direction) -> Option<String> {
    let total = |row: &Row<'_>| {
        let server = row.1.server_cpu_s_gb.as_ref().map_or(0.0, |m| m.median);
        row.1.client_cpu_s_gb.median + server
    };
    // Where one server is seen and another is not, their sums are no sums of the same.
    let seen = rows.iter().filter(|row| row.1.server_cpu_s_gb.is_some()).count();
    if rows.len() < 2 || (seen != 0 && seen != rows.len()) {
        return None;
    }
    let least = rows.iter().min_by(|a, b| total(a).total_cmp(&total(b)))?;
    let most = rows.iter().max_by(|a, b| total(a).total_cmp(&total(b)))?;
    let row_text = |row: &Row<'_>| {
        let client = format!("{:.2} s at the client", row.1.client_cpu_s_gb.median);
        let server = row.1.server_cpu_s_gb.as_ref();
        let server = server.map(|m| format!(" and {:.2} s at the server", m.median));
        format!("over {} ({client}{})", row.0.protocol, server.unwrap_or_default())
    };
    let way = begin(way);
    Some(format!(
        "{way}: CPU time per gigabyte: lowest {}, highest {}.",
        row_text(least),
        row_text(most)
    ))
}

fn rate(bytes_s: f64) -> String {
    format!("{}/s", bytes(bytes_s))
}

fn span(middle: &Middle) -> String {
    format!("{} to {}", rate(middle.low), rate(middle.high))
}

/// The interval as words in parentheses.
fn interval(middle: &Middle, span: &str) -> String {
    match (middle.is_sure(), middle.values) {
        (true, _) => format!("95 % interval: {span}"),
        (false, 1) => "one round: no interval".to_owned(),
        (false, n) => format!("{span} in {n} rounds, too few for 95 %"),
    }
}

/// The size of a change, without its direction.
fn percent(ratio: f64) -> String {
    let size = (ratio - 1.0).abs() * 100.0;
    if size < 9.95 { format!("{size:.1} %") } else { format!("{size:.0} %") }
}

fn direction(ratio: f64) -> &'static str {
    if ratio < 1.0 { "slower" } else { "faster" }
}

/// `34 % slower`.
fn change(middle: &Middle) -> String {
    format!("{} {}", percent(middle.median), direction(middle.median))
}

/// The interval of a change, from the smaller to the larger one.
fn changes(middle: &Middle) -> String {
    let Middle { low, high, .. } = *middle;
    match (low < 1.0, high < 1.0) {
        (true, true) => format!("{} to {}", percent(high), percent(low)),
        (false, false) => format!("{} to {}", percent(low), percent(high)),
        _ => format!("{} slower to {} faster", percent(low), percent(high)),
    }
}

/// `FTP, HTTP and WebDAV`.
fn list(names: &[&str]) -> String {
    match names {
        [rest @ .., one, last] => {
            let rest = rest.iter().map(|name| format!("{name}, ")).collect::<String>();
            format!("{rest}{one} and {last}")
        }
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests;
