//! The Performance Limit Summary as it is kept, and how one of an earlier version is read.

use crate::limit::Limiter;
use crate::measure::over::Disturbed;
use crate::record::{RecordError, ServerInfo, VERSION};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What the text of a cell without a figure begins with.
pub(crate) const NOT_MEASURED: &str = "not measured";

/// Why a figure is a lower bound for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The load generator was the limit.
    Generator,
    /// Throughput was still rising where the schedule ended.
    Schedule,
}

/// A job on a target.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// Operations or bytes per second; `None` when it was not measured.
    pub value: Option<f64>,
    /// The value for people, or why there is none.
    pub text: String,
    /// Why it is a lower bound, if it is one.
    pub bound: Option<Bound>,
    /// Bytes of data per second.
    pub payload_bytes_s: Option<f64>,
    /// Bytes per second on the network, both ways, with headers; `None` if they were not seen.
    pub transport_bytes_s: Option<f64>,
    /// Where these were seen: `connections` of the clients, or a network device of the server.
    pub transport_seen: Option<String>,
    /// Clients at the best step.
    pub clients: u32,
    /// Threads of each.
    pub threads: u32,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// What limits.
    pub limiter: Option<Limiter>,
    /// Its name for people.
    pub limiter_text: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Why.
    pub why: Vec<String>,
    /// Whether the best step was steady.
    pub steady: bool,
    /// How other processes disturbed it.
    pub disturbed: Option<Disturbed>,
    /// How it scales with clients and threads, in a sentence.
    pub scaling: Option<String>,
    /// The interval in Analytics: its URL, or only the path when the server is not known.
    pub analytics: String,
    /// The same as a command.
    pub command: String,
    /// Its own report, next to the summary; `None` when there was no run.
    pub report: Option<String>,
    /// What makes it doubtful.
    pub doubts: Vec<String>,
    /// Whether it was to be measured and was not.
    pub failed: bool,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub target: String,
    /// Its server.
    pub server: ServerInfo,
    /// Why nothing was measured, if so.
    pub failed: Option<String>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Its name.
    pub job: String,
    /// What the row is about.
    pub title: String,
    /// `ops/s` or `B/s`.
    pub unit: String,
    /// Its cells, as the columns are.
    pub cells: Vec<Cell>,
}

/// All rows and columns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Version of the format.
    pub format: u32,
    /// Begin, seconds since the Unix epoch.
    pub started: f64,
    /// End, seconds since the Unix epoch.
    pub ended: f64,
    /// The command that repeats it.
    pub command: Vec<String>,
    /// Whether all together took less than four minutes.
    pub quick: bool,
    /// The machine that conducted.
    pub machine: Value,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// The rows in order.
    pub rows: Vec<Row>,
}

impl Cell {
    /// A cell with the reason why there is no figure; `failed` unless a figure is impossible.
    pub fn not_measured(why: &str, failed: bool) -> Self {
        Self { text: format!("{NOT_MEASURED}: {why}"), failed, ..Self::default() }
    }
}

/// Title of a row: the protocol is that of the column.
pub fn neutral(title: &str) -> String {
    let rest = title.strip_prefix("NFSv3 ").unwrap_or(title);
    let mut letters = rest.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl Summary {
    /// All cells with their rows and columns.
    pub fn cells(&self) -> impl Iterator<Item = (&Row, &Column, &Cell)> {
        self.rows.iter().flat_map(|row| {
            self.columns.iter().zip(&row.cells).map(move |(column, cell)| (row, column, cell))
        })
    }

    /// From JSON of this version or an earlier one.
    ///
    /// # Errors
    /// It is not a summary, or of a later version.
    pub fn of(value: Value) -> Result<Self, String> {
        let format = value["format"].as_u64().unwrap_or(0);
        if format > u64::from(VERSION) {
            return Err(format!("format {format} is newer"));
        }
        if !value["rows"].is_array() {
            return Err("it has no rows".to_owned());
        }
        let value = if value["columns"].is_array() { value } else { converted(value) };
        serde_json::from_value(value).map_err(|e| e.to_string())
    }

    /// Reads a summary: a file, or a directory with `summary.json` in it.
    ///
    /// # Errors
    /// When it cannot be read or is not one.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let file = if path.is_dir() { path.join("summary.json") } else { path.to_owned() };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
        let value = serde_json::from_str(&text)
            .map_err(|e| RecordError::Form(name.clone(), e.to_string()))?;
        Self::of(value).map_err(|why| RecordError::Form(name, why))
    }
}

/// A summary of version 1 had one target, its cells in the rows, and RDMA next to them.
fn converted(mut value: Value) -> Value {
    let target = value["target"].as_str().unwrap_or_default().to_owned();
    let scheme = target.split_once(':').map_or("target", |(scheme, _)| scheme).to_owned();
    let rows = value["rows"].as_array().cloned().unwrap_or_default();
    let over_rdma = rows.iter().any(|row| row["rdma"].is_object());
    let mut columns = vec![json!({ "name": scheme, "target": target, "server": value["server"] })];
    if over_rdma {
        columns.push(json!({ "name": "nfs3-rdma", "target": "" }));
    }
    let row = |row: &Value| {
        let mut cell: Map<String, Value> = row.as_object().cloned().unwrap_or_default();
        cell.retain(|key, _| !["job", "title", "unit", "rdma"].contains(&key.as_str()));
        let mut cells = vec![Value::Object(cell)];
        if over_rdma {
            let rdma = &row["rdma"];
            let failed = rdma["value"].is_null();
            cells.push(json!({
                "value": rdma["value"], "text": rdma["text"].as_str().unwrap_or_default(),
                "report": rdma["report"], "failed": failed,
            }));
        }
        json!({ "job": row["job"], "title": row["title"], "unit": row["unit"], "cells": cells })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    (value["columns"], value["rows"]) = (columns.into(), rows.into());
    value
}
