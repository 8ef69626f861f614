//! Sections of a program: its acts, its sets, and the calls that these took.

use super::run::observed;
use super::{NONE, Section};
use crate::programs::record::{ActResult, AgentResult, ProgramResult, SetResult};
use crate::report::table::Table;
use base::units::{bytes, time_ns};

/// All of them.
pub(super) fn sections(result: &ProgramResult) -> Vec<Section> {
    let whole = Section::new("program", "Program").with_sentences(result.sentences());
    let acts = Section::new("acts", "Acts").of(&acts(result));
    let sets = Section::new("sets", "File sets").table(
        ["set", "files", "exist", "mean size", "width", "depth", "directories", "shared"],
        result.sets.iter().map(set).collect(),
    );
    let agents = Section::new("agents", "Agents").table(
        ["agent", "operations", "read", "written", "errors", "seconds", "late", "lost"],
        result.by_agent.iter().map(agent).collect(),
    );
    let name = result.target.split(':').next().unwrap_or_default();
    let of = match name {
        "path" => "Calls of the system".to_owned(),
        name => format!("Calls of {name}"),
    };
    let mut names: Vec<&String> =
        result.protocol_calls.keys().chain(result.preparation_calls.keys()).collect();
    names.sort();
    names.dedup();
    let count = |calls: Option<&u64>| calls.map_or(NONE.to_owned(), u64::to_string);
    let call = |name: &&String| {
        let around = result.preparation_calls.get(*name);
        [(*name).clone(), count(result.protocol_calls.get(*name)), count(around)]
    };
    let calls = Section::new("calls", "Calls")
        .with_sentences((!names.is_empty()).then_some(of))
        .table(["call", "during the run", "before and after"], names.iter().map(call).collect());
    let server = Section::new("server", "Server during the run")
        .table(["", "figure"], result.watched.observe.iter().flat_map(observed::lines).collect());
    let command =
        Section::new("command", "Command").with_sentences([result.provenance.command.join(" ")]);
    vec![whole, acts, agents, sets, calls, server, command]
}

/// A line for each act, with the numbers behind the figures.
pub fn acts(result: &ProgramResult) -> Table {
    let line = |act: &ActResult| {
        vec![
            act.name.clone(),
            act.thread.clone(),
            act.op.clone(),
            act.calls.to_string(),
            format!("{:.2} %", act.share_percent),
            bytes(act.bytes as f64),
            time_ns(act.latency_us_mean * 1e3),
            time_ns(act.latency_us_p50 * 1e3),
            time_ns(act.latency_us_p99 * 1e3),
            act.errors.to_string(),
            act.fault.clone().unwrap_or_else(|| NONE.to_owned()),
        ]
    };
    let heads = [
        "act",
        "thread",
        "operation",
        "calls",
        "share",
        "data",
        "mean",
        "p50",
        "p99",
        "errors",
        "first error",
    ];
    let mut table = Table::new(heads, result.acts.iter().map(line).collect());
    let number = |act: &ActResult| {
        let latency = [act.latency_us_mean, act.latency_us_p50, act.latency_us_p99];
        let latency = latency.into_iter().chain([act.latency_us_max]).map(|us| us.to_string());
        let figures = [act.share_percent.to_string(), act.bytes.to_string()];
        figures.into_iter().chain(latency).collect()
    };
    table.raw(
        ["share_percent", "bytes", "mean_us", "p50_us", "p99_us", "max_us"],
        result.acts.iter().map(number).collect(),
    );
    table
}

fn set(set: &SetResult) -> [String; 8] {
    let figures = &set.figures;
    [
        set.name.clone(),
        figures.entries.to_string(),
        figures.existing.to_string(),
        bytes(figures.size_mean),
        format!("{:.1}", figures.width_mean),
        format!("{:.2}", figures.depth_mean),
        figures.directories.to_string(),
        set.sharing.clone(),
    ]
}

fn agent(agent: &AgentResult) -> [String; 8] {
    [
        format!("{}: {}", agent.number, agent.address),
        agent.operations.to_string(),
        bytes(agent.bytes_read as f64),
        bytes(agent.bytes_written as f64),
        agent.errors.to_string(),
        format!("{:.2}", agent.seconds),
        format!("{} ± {}", time_ns(agent.late_us * 1e3), time_ns(agent.clock_error_us * 1e3)),
        agent.lost.clone().unwrap_or_else(|| NONE.to_owned()),
    ]
}
