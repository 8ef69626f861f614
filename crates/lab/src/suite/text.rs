//! A suite as tables: text, CSV, Markdown and HTML have the same figures.

use super::record::{State, StepFigures, SuiteResult, SuiteRow};
use super::rows::{Cache, SourceFigures};
use crate::report::page_of_tables;
use crate::report::table::{Table, escaped};
use base::units::time_ns;

/// What stands where there is no figure.
const NONE: &str = "–";

fn mb(bytes_s: f64) -> String {
    format!("{:.1}", bytes_s / 1e6)
}

fn some(value: Option<f64>, text: impl Fn(f64) -> String) -> String {
    value.map_or(NONE.to_owned(), text)
}

/// The figure of a step: MB/s of streams, else operations per second.
fn figure(row: &SuiteRow, step: &StepFigures) -> String {
    match row.unit.as_str() {
        "B/s" => format!("{} MB/s", mb(step.bytes_s)),
        _ => format!("{:.0} IOPS", step.ops_s),
    }
}

fn cache(row: &SuiteRow) -> &'static str {
    match (row.cache, row.uncached) {
        (Cache::None, _) => NONE,
        (Cache::Cached, _) => "cached",
        (Cache::Uncached, Some(true)) => "uncached",
        (Cache::Uncached, _) => "not proved uncached",
    }
}

fn source(row: &SuiteRow) -> String {
    let of = |SourceFigures { aggregate, network_mb_s, cpu_percent }: SourceFigures| {
        let unit = if row.unit == "B/s" { "MB/s" } else { "IOPS" };
        format!("{aggregate} {unit}, {network_mb_s} MB/s, {cpu_percent} %")
    };
    row.source.map_or(NONE.to_owned(), of)
}

impl SuiteResult {
    fn steps(&self) -> impl Iterator<Item = (&SuiteRow, &StepFigures)> {
        self.rows.iter().flat_map(|row| row.steps.iter().map(move |step| (row, step)))
    }

    /// Its title.
    pub fn title(&self) -> String {
        format!("{} on {}", self.suite, self.target)
    }

    /// All steps of all rows, a line each; rows without steps say why.
    pub fn table(&self) -> Table {
        let heads = [
            "row",
            "clients × threads",
            "aggregate",
            "network MB/s",
            "server CPU %",
            "disk MB/s",
            "limiter",
            "from",
            "source: aggregate, network, CPU",
            "start skew",
            "all active",
        ];
        let lines = self.rows.iter().flat_map(|row| match row.steps.as_slice() {
            [] => vec![empty_line(row, heads.len())],
            steps => steps.iter().map(|step| line(row, step)).collect(),
        });
        let mut table = Table::new(heads, lines.collect());
        let raw = self.rows.iter().flat_map(|row| match row.steps.as_slice() {
            [] => vec![vec![row.job.clone()]],
            steps => steps.iter().map(|step| numbers(row, step)).collect(),
        });
        table.raw(
            ["job", "block", "ops_s", "bytes_s", "p50_ns", "p99_ns", "skew_ns"],
            raw.collect(),
        );
        table
    }

    /// Block sizes by threads: of `seqread`.
    pub fn matrix(&self) -> Table {
        let mut loads: Vec<(u32, u32)> = Vec::new();
        for (_, step) in self.steps() {
            let load = (step.clients, step.threads);
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        let head = |(clients, threads): &(u32, u32)| format!("{clients} × {threads}");
        let heads = std::iter::once("row".to_owned()).chain(loads.iter().map(head));
        let line = |row: &SuiteRow| {
            let of = |load: &(u32, u32)| {
                let step = row.steps.iter().find(|step| (step.clients, step.threads) == *load);
                step.map_or(NONE.to_owned(), |step| {
                    format!("{} MB/s, {:.0} IOPS", mb(step.bytes_s), step.ops_s)
                })
            };
            std::iter::once(row.title.clone()).chain(loads.iter().map(of)).collect()
        };
        Table::new(heads, self.rows.iter().map(line).collect())
    }

    /// By subnet, all steps.
    pub fn by_subnet(&self) -> Table {
        let heads = [
            "row",
            "clients × threads",
            "subnet",
            "server",
            "interface",
            "clients",
            "lost",
            "MB/s",
            "IOPS",
        ];
        let of = |(row, step): (&SuiteRow, &StepFigures)| {
            let line = |subnet: &crate::record::observed::SubnetStep| {
                vec![
                    row.job.clone(),
                    format!("{} × {}", step.clients, step.threads),
                    subnet.network.clone(),
                    subnet.server.clone(),
                    subnet.interface.clone().unwrap_or(NONE.to_owned()),
                    subnet.clients.to_string(),
                    subnet.lost.to_string(),
                    mb(subnet.bytes_s),
                    format!("{:.0}", subnet.ops_s),
                ]
            };
            step.by_subnet.iter().map(line).collect::<Vec<_>>()
        };
        Table::new(heads, self.steps().flat_map(of).collect())
    }

    /// By interface of the server, all steps.
    pub fn interfaces(&self) -> Table {
        let heads = [
            "row",
            "clients × threads",
            "interface",
            "payload MB/s",
            "received MB/s",
            "sent MB/s",
            "headers MB/s",
        ];
        let of = |(row, step): (&SuiteRow, &StepFigures)| {
            let seconds = step.interface_seconds.unwrap_or(1.0);
            let rate = |bytes: u64| mb(bytes as f64 / seconds);
            let line = |interface: &crate::record::observed::ObservedInterface| {
                vec![
                    row.job.clone(),
                    format!("{} × {}", step.clients, step.threads),
                    interface.name.clone(),
                    interface.payload.map_or(NONE.to_owned(), rate),
                    rate(interface.rx),
                    rate(interface.tx),
                    interface.headers_expected.map_or(NONE.to_owned(), rate),
                ]
            };
            step.by_interface.iter().map(line).collect::<Vec<_>>()
        };
        Table::new(heads, self.steps().flat_map(of).collect())
    }

    /// By client, all steps.
    pub fn clients(&self) -> Table {
        let heads = [
            "row",
            "clients × threads",
            "client",
            "source",
            "interface",
            "subnet",
            "MB/s",
            "IOPS",
            "errors",
        ];
        let of = |(row, step): (&SuiteRow, &StepFigures)| {
            let seconds = if step.seconds > 0.0 { step.seconds } else { 1.0 };
            let word = |text: &Option<String>| text.clone().unwrap_or(NONE.to_owned());
            let line = |client: &crate::record::observed::ClientStep| {
                vec![
                    row.job.clone(),
                    format!("{} × {}", step.clients, step.threads),
                    client.client.to_string(),
                    word(&client.source),
                    word(&client.interface),
                    word(&client.subnet),
                    mb(client.bytes as f64 / seconds),
                    format!("{:.0}", client.ops as f64 / seconds),
                    client.errors.to_string(),
                ]
            };
            step.by_client.iter().map(line).collect::<Vec<_>>()
        };
        Table::new(heads, self.steps().flat_map(of).collect())
    }

    /// What belongs together, in sentences: cached and uncached, many threads and one.
    pub fn pairs(&self) -> Vec<String> {
        let find = |name: &str| {
            let row = self.rows.iter().find(|row| row.job == name)?;
            Some((row, row.cell.value?))
        };
        let percent = |now: f64, before: f64| (now / before - 1.0) * 100.0;
        let pair = |(cold, warm): (&str, &str)| {
            let ((cold, a), (warm, b)) = (find(cold)?, find(warm)?);
            if cold.uncached != Some(true) {
                return Some(format!(
                    "{} and {}: no comparison, the first is not proved uncached",
                    cold.job, warm.job
                ));
            }
            let cpu = |row: &SuiteRow| row.best()?.server_cpu_percent;
            let points = cpu(warm).zip(cpu(cold)).map_or(String::new(), |(now, before)| {
                format!(", server CPU {:+.0} points", now - before)
            });
            Some(format!("{} against {}: {:+.0} %{points}", warm.job, cold.job, percent(b, a)))
        };
        let pairs = [
            ("stream-read-1-uncached", "stream-read-1-cached"),
            ("stream-read-20-uncached", "stream-read-10-cached"),
            ("random-read-20-uncached", "random-read-128-cached"),
        ];
        let threads = || {
            let ((_, one), (_, many)) =
                (find("stream-read-1-uncached")?, find("stream-read-20-uncached")?);
            Some(format!(
                "20 threads of each client add {:+.0} % to 1 thread (source: +6 %)",
                percent(many, one)
            ))
        };
        pairs.into_iter().filter_map(pair).chain(threads()).collect()
    }

    /// How well the clients worked together.
    pub fn together(&self) -> Option<String> {
        let skew = self.steps().map(|(_, step)| step.start_skew_ns).max()?;
        let least = self.steps().map(|(_, step)| step.all_active_share).reduce(f64::min)?;
        Some(format!(
            "start skew at most {}; all clients active at least {:.1} % of a step",
            time_ns(skew as f64),
            least * 100.0
        ))
    }

    fn sentences(&self) -> Vec<String> {
        let starts = (self.starts > 1).then(|| format!("rows of {} starts", self.starts));
        let took = format!("rows took {:.0} s", self.took_s);
        let found = self.pairs().into_iter().chain(self.together()).chain([took]).chain(starts);
        found.chain(self.doubts().into_iter().map(|what| format!("doubt: {what}"))).collect()
    }

    /// Its tables with their titles.
    fn tables(&self) -> Vec<(&'static str, Table)> {
        let mut tables = Vec::new();
        if self.rows.iter().any(|row| row.steps.len() > 1) {
            tables.push(("Aggregate", self.matrix()));
        }
        tables.push(("Rows", self.table()));
        let others = [
            ("Subnets", self.by_subnet()),
            ("Interfaces of the server", self.interfaces()),
            ("Clients", self.clients()),
        ];
        tables.extend(others.into_iter().filter(|(_, table)| !table.rows().is_empty()));
        tables
    }

    /// As text: without the clients, which are in `clients.csv`.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n{}\n", self.title(), self.scale);
        for (title, table) in self.tables().iter().filter(|(title, _)| *title != "Clients") {
            out += &format!("\n{title}\n{}", table.text());
        }
        out += "\n";
        out + &self.sentences().iter().map(|what| format!("{what}\n")).collect::<String>()
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}\n", self.title(), self.scale);
        for (title, table) in self.tables() {
            out += &format!("\n## {title}\n\n{}", table.markdown());
        }
        out += "\n";
        out + &self.sentences().iter().map(|what| format!("- {what}\n")).collect::<String>()
    }

    /// Its page.
    pub fn page(&self) -> String {
        let record = serde_json::to_string(self).unwrap_or_default();
        page_of_tables(&self.title(), &self.html(), &record)
    }

    /// As HTML.
    pub fn html(&self) -> String {
        let mut out = format!("<p>{}</p>", escaped(&self.scale));
        for what in self.sentences() {
            out += &format!("<p class=\"note\">{}</p>", escaped(&what));
        }
        for (title, table) in self.tables() {
            out += &format!("<h2>{title}</h2><div class=\"scroll\">{}</div>", table.html());
        }
        out
    }
}

fn line(row: &SuiteRow, step: &StepFigures) -> Vec<String> {
    let best = row.best().is_some_and(|best| std::ptr::eq(best, step));
    let of_best = |text: String| if best { text } else { NONE.to_owned() };
    let disk = step.disk_read_bytes_s.zip(step.disk_write_bytes_s).map(|(a, b)| a + b);
    vec![
        row.title.clone(),
        format!("{} × {}", step.clients, step.threads),
        figure(row, step),
        of_best(some(row.cell.transport_bytes_s, mb)),
        some(step.server_cpu_percent, |percent| format!("{percent:.0}")),
        some(disk, mb),
        of_best(row.cell.limiter_text.clone()),
        cache(row).to_owned(),
        source(row),
        time_ns(step.start_skew_ns as f64),
        format!("{:.1} %", step.all_active_share * 100.0),
    ]
}

/// The line of a row without steps.
fn empty_line(row: &SuiteRow, columns: usize) -> Vec<String> {
    let why = match row.state {
        State::Pending => "not run".to_owned(),
        _ => row.cell.text.clone(),
    };
    let mut line = vec![NONE.to_owned(); columns];
    for (at, text) in [(0, row.title.clone()), (2, why), (8, source(row))] {
        if let Some(field) = line.get_mut(at) {
            *field = text;
        }
    }
    line
}

fn numbers(row: &SuiteRow, step: &StepFigures) -> Vec<String> {
    vec![
        row.job.clone(),
        row.block.to_string(),
        step.ops_s.to_string(),
        step.bytes_s.to_string(),
        step.p50_ns.to_string(),
        step.p99_ns.to_string(),
        step.start_skew_ns.to_string(),
    ]
}
