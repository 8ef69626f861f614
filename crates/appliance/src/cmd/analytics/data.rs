//! The API's data object, and its form as CSV.

use serde::Deserialize;

/// `docs/protocols/api.md`, "A data object".
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Data {
    /// The statistic id.
    pub stat: String,
    /// An English sentence.
    pub title: String,
    /// Of the values.
    pub unit: String,
    /// First second.
    pub from: i64,
    /// First second after the interval.
    pub to: i64,
    /// Seconds per point.
    pub step: i64,
    /// Points of time.
    pub times: Vec<i64>,
    /// Of all rows and what is beyond them; `None` where there is no data.
    pub total: Vec<Option<f64>>,
    /// Elements of a discrete breakdown.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// What fell outside the rows.
    #[serde(default)]
    pub other: Option<Rest>,
    /// Elements of a range breakdown, lowest first.
    #[serde(default)]
    pub buckets: Vec<Bucket>,
    /// Operations not aggregated.
    #[serde(default)]
    pub dropped: Vec<Option<f64>>,
    /// `store` or `recorder`.
    pub source: String,
    /// Whether nothing was estimated.
    pub exact: bool,
    /// How far a row may be off.
    #[serde(default)]
    pub error_bound: f64,
    /// What to know about it.
    #[serde(default)]
    pub note: Option<String>,
}

/// One element.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Row {
    /// For the machine.
    pub key: String,
    /// For people.
    pub label: String,
    /// Over the interval.
    pub average: f64,
    /// Per point of time.
    pub values: Vec<Option<f64>>,
}

/// The sum of what is not shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rest {
    /// Over the interval.
    pub average: f64,
    /// Per point of time.
    pub values: Vec<Option<f64>>,
}

/// One range.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Bucket {
    /// Its lowest value.
    pub low: f64,
    /// Its first value not in it.
    pub high: f64,
    /// Over the interval.
    pub average: f64,
    /// Per point of time.
    pub values: Vec<Option<f64>>,
}

impl Data {
    /// With a head line.
    pub fn csv(&self) -> String {
        self.csv_lines(true)
    }

    /// One line per point of time; a value that is not there is an empty field (RFC 4180).
    pub fn csv_lines(&self, head: bool) -> String {
        let mut columns: Vec<(String, &[Option<f64>])> = vec![("total".into(), &self.total)];
        columns.extend(self.rows.iter().map(|r| (r.label.clone(), r.values.as_slice())));
        let range = |b: &Bucket| format!("{}-{}", b.low, b.high);
        columns.extend(self.buckets.iter().map(|b| (range(b), b.values.as_slice())));
        columns.extend(self.other.iter().map(|o| ("other".into(), o.values.as_slice())));
        let mut text = String::new();
        if head {
            let names: Vec<String> = columns.iter().map(|(name, _)| quote(name)).collect();
            text += &format!("time,{}\r\n", names.join(","));
        }
        for (at, time) in self.times.iter().enumerate() {
            text += &time.to_string();
            for (_, values) in &columns {
                text.push(',');
                if let Some(value) = values.get(at).copied().flatten() {
                    text += &value.to_string();
                }
            }
            text += "\r\n";
        }
        text
    }
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}
