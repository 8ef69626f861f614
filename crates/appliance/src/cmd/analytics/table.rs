//! A statistic for people: averages with sparklines, or a heat map of shaded cells.

use analytics::query::{Bucket, Data};
use base::local_time::LocalClock;
use base::text::visible;
use base::units;

/// Cells of a sparkline or heat map: with labels it fits a terminal of 100 columns.
const CELLS: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];
/// No data in a cell, which is not the same as nothing happening.
const MISSING: char = '·';

/// The whole answer; times as `clock` shows them.
pub fn show(data: &Data, clock: &LocalClock) -> String {
    let mut text = format!("{}\n", data.title);
    let step = if data.step == 1 { String::new() } else { format!(", {} s per point", data.step) };
    let interval = clock.show_interval(data.from.cast_signed(), data.to.cast_signed());
    text += &format!("{interval}{step}\n\n");
    if data.buckets().is_empty() {
        text += &rows(data);
    } else {
        text += &heat_map(data);
    }
    text + &notes(data)
}

/// One line for one second: the total, and the top rows.
pub fn line(data: &Data, clock: &LocalClock, top: usize) -> String {
    let value = |values: &[Option<f64>]| match values.last().copied().flatten() {
        Some(value) => figure(data, value),
        None => MISSING.to_string(),
    };
    let mut text = format!(
        "{}  {:>10}",
        clock.show(data.times.last().map_or(0, |t| t.cast_signed())),
        value(&data.total)
    );
    for row in data.rows().iter().take(top) {
        text += &format!("  {}={}", visible(&row.label), value(&row.values));
    }
    let most = data.buckets().iter().filter(|b| b.average > 0.0).take(top);
    for bucket in most {
        text += &format!("  {}={}", range(data, bucket.low as f64), value(&bucket.values));
    }
    text + "\n"
}

fn rows(data: &Data) -> String {
    if data.rows().iter().any(|row| row.time.is_some()) {
        return phases(data);
    }
    let rows = data.rows().iter().map(|row| (row.label.as_str(), row.average, &row.values[..]));
    let other = data.other.iter().map(|other| ("other", other.average, &other.values[..]));
    let total = ("total", average(&data.total), &data.total[..]);
    let mut text = format!("{:>12}  {:<CELLS$}  {}\n", "average", "", data.unit);
    for (label, average, values) in rows.chain(other).chain([total]) {
        text += &bars(data, label, average, values);
    }
    text
}

/// Rows of phases, with their part of the mean latency.
fn phases(data: &Data) -> String {
    let mut text = format!(
        "{:>12}  {:<CELLS$}  {:>10}  {:>5}  {}\n",
        "average", "", "latency", "share", data.unit
    );
    let mut latency_ns = 0.0;
    for row in data.rows() {
        let time = row.time.as_ref().map_or((String::new(), String::new()), |time| {
            latency_ns += time.average_ns;
            (units::time_ns(time.average_ns), format!("{:.1}%", 100.0 * time.share))
        });
        let label = format!("{:>10}  {:>5}  {}", time.0, time.1, row.label);
        text += &bars(data, &label, row.average, &row.values);
    }
    if let Some(other) = &data.other {
        text += &bars(data, &format!("{:19}other", ""), other.average, &other.values);
    }
    let label = format!("{:>10}  {:>5}  total", units::time_ns(latency_ns), "");
    text + &bars(data, &label, average(&data.total), &data.total)
}

fn bars(data: &Data, label: &str, average: f64, values: &[Option<f64>]) -> String {
    format!("{:>12}  {}  {}\n", figure(data, average), spark(values), visible(label))
}

/// Rows of a heat map that a terminal shows without scrolling.
const HEAT_ROWS: usize = 36;

/// A row of a heat map: where it begins, its mean, its values.
type HeatRow = (f64, f64, Vec<Option<f64>>);

/// Every row between the lowest and the highest, also empty ones, so that height has a scale: a row
/// for each bucket, or where those are too many, for each power of two (four buckets).
fn heat_rows(data: &Data) -> Vec<HeatRow> {
    let at = |bucket: &Bucket| base::buckets::index(bucket.low);
    let (Some(lowest), Some(highest)) = (data.buckets().first(), data.buckets().last()) else {
        return Vec::new();
    };
    let per_row = if at(highest) - at(lowest) < HEAT_ROWS { 1 } else { 4 };
    let first = at(lowest) / per_row;
    let mut rows: Vec<HeatRow> = (first..=at(highest) / per_row)
        .map(|row| {
            let gaps = data.total.iter().map(|total| total.map(|_| 0.0)).collect();
            (base::buckets::low(row * per_row) as f64, 0.0, gaps)
        })
        .collect();
    for bucket in data.buckets() {
        let row = (at(bucket) / per_row).checked_sub(first).and_then(|row| rows.get_mut(row));
        // The API returns the lowest first and the highest last.
        let Some((_, average, values)) = row else { continue };
        *average += bucket.average;
        for (sum, value) in values.iter_mut().zip(&bucket.values) {
            *sum = sum.zip(*value).map(|(a, b)| a + b);
        }
    }
    rows
}

fn heat_map(data: &Data) -> String {
    let rows = heat_rows(data);
    let cells: Vec<Vec<Option<f64>>> = rows.iter().map(|(.., values)| shrink(values)).collect();
    let most = cells.iter().flatten().flatten().fold(0.0_f64, |a, b| a.max(*b));
    let mut text = format!("{:>12}  {:<CELLS$}  from\n", "average", "");
    for ((low, average, _), cells) in rows.iter().zip(&cells).rev() {
        let shades: String = cells.iter().map(|cell| shade(*cell, most)).collect();
        let mean = if *average > 0.0 { figure(data, *average) } else { String::new() };
        text += &format!("{mean:>12}  {shades:<CELLS$}  {}\n", range(data, *low));
    }
    if let Some(other) = &data.other {
        text += &bars(data, "other", other.average, &other.values);
    }
    text + &bars(data, "total", average(&data.total), &data.total)
}

fn notes(data: &Data) -> String {
    let mut text = String::new();
    let missing = data.total.iter().filter(|v| v.is_none()).count();
    if missing == data.total.len() {
        text += "\nno data in this interval\n";
    } else if missing > 0 {
        text += &format!("\n{MISSING} no data, {missing} of {} points\n", data.total.len());
    }
    let dropped: u64 = data.dropped.iter().sum();
    if dropped > 0 {
        text += &format!("\n{dropped} operations were not aggregated\n");
    }
    if !data.exact {
        let bound = figure(data, data.error_bound);
        text +=
            &format!("\ntop entries only: a row may be up to {bound} too low, never too high\n");
    }
    if let Some(note) = &data.note {
        text += &format!("\n{note}\n");
    }
    text
}

/// A line of bars, each the highest of its points: a short peak stays visible.
pub fn spark(values: &[Option<f64>]) -> String {
    let cells = shrink(values);
    let most = cells.iter().flatten().fold(0.0_f64, |a, b| a.max(*b));
    let line: String = cells.iter().map(|cell| mark(*cell, &BARS, |value| value / most)).collect();
    format!("{line:<CELLS$}")
}

/// Darkness by the logarithm, so that a single slow operation among thousands is seen.
fn shade(cell: Option<f64>, most: f64) -> char {
    mark(cell, &SHADES, |value| (1.0 + value).ln() / (1.0 + most).ln())
}

/// One of `marks` for a cell: the first for anything above nothing, the last for a `part` of one.
fn mark(cell: Option<f64>, marks: &[char], part: impl Fn(f64) -> f64) -> char {
    match cell {
        None => MISSING,
        Some(value) if value <= 0.0 => ' ',
        Some(value) => {
            let level = part(value) * marks.len() as f64;
            marks[(level.ceil() as usize).clamp(1, marks.len()) - 1]
        }
    }
}

/// At most [`CELLS`] values, each the highest of its share; no data only if none has any.
fn shrink(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let per_cell = values.len().div_ceil(CELLS).max(1);
    values.chunks(per_cell).map(|chunk| chunk.iter().flatten().copied().reduce(f64::max)).collect()
}

fn average(values: &[Option<f64>]) -> f64 {
    let there: Vec<f64> = values.iter().flatten().copied().collect();
    if there.is_empty() { 0.0 } else { there.iter().sum::<f64>() / there.len() as f64 }
}

fn figure(data: &Data, value: f64) -> String {
    match data.unit.as_str() {
        "bytes" | "B" => units::bytes(value),
        "bytes/s" | "B/s" => units::bytes(value) + "/s",
        "ns" => units::time_ns(value),
        "ns/s" => units::time_ns(value) + "/s",
        "KB/s" => units::bytes(value * 1024.0) + "/s",
        "%" | "percent" => format!("{value:.1} %"),
        _ => units::count(value),
    }
}

/// The lower end of a range: times for latency, bytes for the others.
fn range(data: &Data, low: f64) -> String {
    if data.stat.ends_with("[latency]") { units::time_ns(low) } else { units::bytes(low) }
}
