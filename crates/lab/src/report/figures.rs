//! The figures of a result as sections: sentences and a table each. Text, CSV, Markdown, the page
//! of a run, the API and the browser show these sections, so that a figure is the same everywhere.
//!
//! - [`run`]: of a run; [`program`]: of a program; [`iozone`]: of IOzone's tests; [`summary`]: of a
//!   summary; [`ab`]: of a comparison of builds or targets.

mod ab;
mod archive;
mod iozone;
mod net;
mod program;
mod run;
mod summary;

use super::table::{Table, escaped, field};
use crate::ab::record::{self as ab_record, AbResult};
use crate::iozone::over::record::{self as over_record, OverResult};
use crate::iozone::record::{self as iozone_record, IozoneResult};
use crate::limits::summary::Summary;
use crate::net::record::{self as net_record, NetResult};
use crate::programs::record::{self as program_record, ProgramResult};
use crate::record::{RecordError, RunResult, VERSION};
use crate::suite::record::{SUITE, SuiteResult};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

pub use archive::archive;
pub use iozone::blocks;
pub use net::flowops;
pub use program::acts;

/// What was not seen, or does not apply.
const NONE: &str = "–";

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// For programs and links, for example `demands`.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// What the figures mean, and what limits their value.
    pub sentences: Vec<String>,
    /// Heads of the table; empty without one.
    pub heads: Vec<String>,
    /// Its lines; the first field names the line.
    pub rows: Vec<Vec<String>>,
}

/// All figures of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// `run`, `program`, `iozone`, `iozone-over`, `net`, `suite`, `summary` or `ab`.
    pub kind: &'static str,
    /// What was measured, and where.
    pub title: String,
    /// The parts, those without content left out.
    pub sections: Vec<Section>,
}

impl Section {
    fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, sentences: Vec::new(), heads: Vec::new(), rows: Vec::new() }
    }

    /// With sentences.
    fn with_sentences(mut self, sentences: impl IntoIterator<Item = String>) -> Self {
        self.sentences.extend(sentences);
        self
    }

    /// With a table.
    fn table<const N: usize>(mut self, heads: [&str; N], rows: Vec<[String; N]>) -> Self {
        self.heads = heads.map(str::to_owned).to_vec();
        self.rows = rows.into_iter().map(Vec::from).collect();
        self
    }

    /// With the lines of a table that exists.
    fn of(mut self, table: &Table) -> Self {
        self.heads = table.heads().to_vec();
        self.rows = table.rows().to_vec();
        self
    }

    fn is_empty(&self) -> bool {
        self.sentences.is_empty() && self.rows.is_empty()
    }

    fn as_table(&self) -> Option<Table> {
        (!self.rows.is_empty()).then(|| Table::new(self.heads.clone(), self.rows.clone()))
    }
}

impl Figures {
    fn new(kind: &'static str, title: String, sections: Vec<Section>) -> Self {
        let sections = sections.into_iter().filter(|section| !section.is_empty()).collect();
        Self { kind, title, sections }
    }

    /// Of a run.
    pub fn of_run(result: &RunResult) -> Self {
        let title = format!("{} on {}", result.job.title, result.target);
        Self::new("run", title, run::sections(result))
    }

    /// Of a program.
    pub fn of_program(result: &ProgramResult) -> Self {
        let title = format!("{} on {}", result.file, result.target);
        Self::new("program", title, program::sections(result))
    }

    /// Of IOzone's tests.
    pub fn of_iozone(result: &IozoneResult) -> Self {
        Self::new("iozone", format!("IOzone on {}", result.target), iozone::sections(result))
    }

    /// Of IOzone over distance.
    pub fn of_over(result: &OverResult) -> Self {
        let points = Section::new("points", "Points").with_sentences(result.sentences());
        let command = Section::new("command", "Command");
        let command = command.with_sentences([result.provenance.command.join(" ")]);
        let sections = vec![points.of(&result.table()), command];
        Self::new("iozone-over", "IOzone over distance".to_owned(), sections)
    }

    /// Of a suite.
    pub fn of_suite(result: &SuiteResult) -> Self {
        let about = [result.scale.clone()].into_iter().chain(result.doubts());
        let command = Section::new("command", "Command").with_sentences([result.command.join(" ")]);
        let sections = vec![
            Section::new("rows", "Rows").with_sentences(about).of(&result.table()),
            Section::new("subnets", "Subnets").of(&result.by_subnet()),
            Section::new("interfaces", "Interfaces").of(&result.interfaces()),
            Section::new("clients", "Clients").of(&result.clients()),
            command,
        ];
        Self::new("suite", result.title(), sections)
    }

    /// Of a summary.
    pub fn of_summary(summary: &Summary) -> Self {
        Self::new("summary", summary.title(), summary::sections(summary))
    }

    /// Of a comparison of builds or targets.
    pub fn of_ab(result: &AbResult) -> Self {
        let [a, b] = &result.targets;
        Self::new("ab", format!("A: {a}, B: {b}"), ab::sections(result))
    }

    /// Of a network profile.
    pub fn of_net(result: &NetResult) -> Self {
        let NetResult { profile, threads, hosts, .. } = result;
        let title = format!("{profile}: {threads} threads to {}", hosts.join(", "));
        Self::new("net", title, net::sections(result))
    }

    /// Of any of these, as JSON.
    ///
    /// # Errors
    /// It is none, or of a later version.
    pub fn of_json(value: Value) -> Result<Self, String> {
        if value["suite"].is_string() {
            return SuiteResult::of(value).map(|suite| Self::of_suite(&suite));
        }
        if value["rows"].is_array() && value["kind"].is_null() {
            return Summary::of(value).map(|summary| Self::of_summary(&summary));
        }
        let (kind, format) = (value["kind"].as_str(), value["format"].as_u64().unwrap_or(0));
        let newest = match kind {
            Some(ab_record::KIND) => ab_record::VERSION,
            Some(program_record::KIND) => program_record::VERSION,
            Some(iozone_record::KIND) => iozone_record::VERSION,
            Some(over_record::KIND) => over_record::VERSION,
            _ => VERSION,
        };
        if format > u64::from(newest) {
            return Err(format!("format {format} is newer"));
        }
        let read = |e: serde_json::Error| e.to_string();
        match kind {
            None => serde_json::from_value(value).map_err(read).map(|run| Self::of_run(&run)),
            Some(ab_record::KIND) => {
                serde_json::from_value(value).map_err(read).map(|ab| Self::of_ab(&ab))
            }
            Some(iozone_record::KIND) => {
                serde_json::from_value(value).map_err(read).map(|run| Self::of_iozone(&run))
            }
            Some(over_record::KIND) => {
                serde_json::from_value(value).map_err(read).map(|run| Self::of_over(&run))
            }
            Some(program_record::KIND) => {
                serde_json::from_value(value).map_err(read).map(|run| Self::of_program(&run))
            }
            Some(net_record::KIND) => {
                serde_json::from_value(value).map_err(read).map(|result| Self::of_net(&result))
            }
            Some(other) => Err(format!("a result of kind {other:?} has a report of its own")),
        }
    }

    /// Of a file, or of the `suite.json`, `summary.json` or `result.json` of a directory, then with
    /// the files of its archive.
    ///
    /// # Errors
    /// When it cannot be read or is none.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let names = [SUITE, "summary.json", "result.json"].map(|name| path.join(name));
        let file = match path.is_dir() {
            true => names.iter().find(|name| name.exists()).unwrap_or(&names[2]),
            false => path,
        };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|e| RecordError::Io(format!("cannot read {name}"), e))?;
        let form = |why: String| RecordError::Form(name.clone(), why);
        let value = serde_json::from_str(&text).map_err(|e| form(e.to_string()))?;
        let mut figures = Self::of_json(value).map_err(form)?;
        if path.is_dir() {
            figures.sections.extend(archive(path));
        }
        Ok(figures)
    }

    /// As text.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        for section in &self.sections {
            out += &format!("\n{}\n", section.title);
            out += &section.sentences.iter().map(|s| format!("  {s}\n")).collect::<String>();
            out += &section.as_table().map(|table| table.text()).unwrap_or_default();
        }
        out
    }

    /// As CSV (RFC 4180), a line for each figure: section, line of its table, head, figure; a
    /// sentence is a figure without line and head.
    pub fn csv(&self) -> String {
        let line = |fields: [&str; 4]| fields.map(field).join(",") + "\r\n";
        let mut out = line(["section", "line", "figure", "value"]);
        for section in &self.sections {
            out += &section
                .sentences
                .iter()
                .map(|s| line([section.id, "", "", s]))
                .collect::<String>();
            for row in &section.rows {
                let name = row.first().map_or("", String::as_str);
                let figures = section.heads.iter().zip(row).skip(1);
                out += &figures
                    .map(|(head, figure)| line([section.id, name, head, figure]))
                    .collect::<String>();
            }
        }
        out
    }

    /// As Markdown, each section with a heading of the second level.
    pub fn markdown(&self) -> String {
        let one = |section: &Section| {
            let sentences = section.sentences.iter().map(|s| format!("- {s}\n"));
            let table = section.as_table().map(|table| format!("{}\n", table.markdown()));
            let gap = if section.sentences.is_empty() { "" } else { "\n" };
            let sentences = sentences.collect::<String>();
            format!("## {}\n\n{sentences}{gap}{}", section.title, table.unwrap_or_default())
        };
        self.sections.iter().map(one).collect()
    }

    /// As HTML, each section with a heading of the second level.
    pub fn html(&self) -> String {
        let one = |section: &Section| {
            let sentence = |s: &String| format!("<li>{}</li>", escaped(s));
            let sentences = section.sentences.iter().map(sentence).collect::<String>();
            let list =
                if sentences.is_empty() { sentences } else { format!("<ul>{sentences}</ul>") };
            let table = section.as_table();
            let table = table.map(|t| format!("<div class=\"scroll\">{}</div>", t.html()));
            let (id, title) = (section.id, escaped(section.title));
            format!("<h2 id=\"figures-{id}\">{title}</h2>{list}{}", table.unwrap_or_default())
        };
        self.sections.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests;
