//! Files of an archive of the lab that are not results (`docs/formats/result.md`): checksums,
//! machines, tables, latencies by second, the server's data.

use ::lab::archive::seconds;
use ::lab::archive::sums::{SUMS, Sums};
use base::units::{count, time_ns};
use serde_json::{Value, json};

use super::Inspected;

pub(super) fn recognise(name: &str, text: &str) -> Option<Inspected> {
    match name {
        SUMS => sums(text),
        "machines.json" => {
            let value: Value = serde_json::from_str(text).ok()?;
            value["conductor"].is_object().then(|| Inspected::from(value))
        }
        "result.csv" | "summary.csv" | "figures.csv" => {
            let lines = text.lines().count().saturating_sub(1);
            Some(table("table of figures", lines, text))
        }
        "result.md" | "summary.md" if text.starts_with("# ") => {
            let lines = text.lines().filter(|line| line.starts_with("| ")).count();
            Some(table("report in Markdown", lines, text))
        }
        _ if name.ends_with(".hlog") => latencies(text),
        _ if name.ends_with(".json") && name.contains("-by-") => {
            let value: Value = serde_json::from_str(text).ok()?;
            value["total"].is_array().then(|| {
                let text = serde_json::to_string_pretty(&value).unwrap_or_default();
                Inspected { text: format!("data of a statistic\n{text}\n"), value }
            })
        }
        _ => None,
    }
}

fn sums(text: &str) -> Option<Inspected> {
    let sums = Sums::parse(text).ok()?;
    let files: Vec<Value> =
        sums.files().map(|(file, hash)| json!({ "file": file, "sha256": hash })).collect();
    Some(Inspected {
        text: format!("checksums of {} files\n{text}", files.len()),
        value: json!(files),
    })
}

fn table(what: &str, lines: usize, text: &str) -> Inspected {
    Inspected { text: format!("{what}\n{text}"), value: json!({ "format": what, "lines": lines }) }
}

fn latencies(text: &str) -> Option<Inspected> {
    let seconds = seconds::read(text)?;
    let mut shown = format!("latencies of {} seconds\n", seconds.len());
    let mut values = Vec::new();
    for (begin, length, hist) in seconds {
        let quantile = |share: f64| hist.value_at_quantile(share);
        let (p50, p99, max) = (quantile(0.5), quantile(0.99), hist.max());
        let [median, high, most] = [p50, p99, max].map(|ns| time_ns(ns as f64));
        let operations = count(hist.len() as f64);
        shown += &format!(
            "  {begin:>8.3} s, {length:.3} s: {operations} ops, p50 {median}, p99 {high}, \
             max {most}\n"
        );
        values.push(json!({
            "begin_s": begin, "length_s": length, "count": hist.len(),
            "p50_ns": p50, "p99_ns": p99, "max_ns": max,
        }));
    }
    Some(Inspected { text: shown, value: json!(values) })
}
