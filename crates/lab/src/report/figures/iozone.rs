//! Sections of IOzone's tests: a line for each block, and for each child of it.

use super::{NONE, Section};
use crate::iozone::record::{BlockResult, IozoneResult};
use crate::report::table::Table;
use base::units;

/// All of them.
pub(super) fn sections(result: &IozoneResult) -> Vec<Section> {
    let files = format!(
        "{} children, each with a file of {} bytes in records of {} bytes",
        result.threads, result.size, result.record
    );
    let wall = match result.stonewall {
        true => "children end with the first one (stonewall)",
        false => "all children continue to their end",
    };
    let degraded = result.degraded.iter().map(|what| format!("degraded: {what}"));
    let blocks = Section::new("blocks", "Blocks")
        .with_sentences([files, wall.to_owned()])
        .with_sentences(degraded)
        .with_sentences(result.failed.iter().map(|why| format!("failed: {why}")))
        .of(&blocks(result));
    let child = |block: &BlockResult| -> Vec<[String; 6]> {
        let each = block.children.iter().enumerate();
        let line = each.map(|(n, child)| {
            [
                format!("{}, child {n}", block.title),
                child.bytes.to_string(),
                child.records.to_string(),
                format!("{:.4}", child.seconds),
                format!("{:.2}", child.kb_s()),
                if child.finished { "yes" } else { "no" }.to_owned(),
            ]
        });
        line.collect()
    };
    let children = Section::new("children", "Children").table(
        ["child", "bytes", "records", "seconds", "kB/s", "all records"],
        result.blocks.iter().flat_map(child).collect(),
    );
    let server = Section::new("limits", "Limits")
        .with_sentences(result.server.unseen.iter().map(|why| format!("server not seen: {why}")))
        .table(
            ["test", "limit", "confidence", "why", "server CPU", "disk read", "disk written"],
            result.blocks.iter().filter(|block| block.same_as.is_none()).map(limit).collect(),
        );
    let command =
        Section::new("command", "Command").with_sentences([result.provenance.command.join(" ")]);
    vec![blocks, children, server, command]
}

/// What limited a block, and the server meanwhile.
fn limit(block: &BlockResult) -> [String; 7] {
    let (limit, observe) = (block.watched.limit.as_ref(), block.watched.observe.as_ref());
    let seen = |figure: Option<String>| figure.unwrap_or_else(|| NONE.to_owned());
    let rate = |amount: Option<u64>| {
        let seconds = observe?.seconds;
        Some(format!("{}/s", units::bytes(amount? as f64 / seconds)))
    };
    let cores = observe.and_then(|o| Some(format!("{:.2} cores", o.cpu? / o.seconds)));
    [
        block.title.clone(),
        seen(limit.map(|limit| limit.limiter.title().to_owned())),
        seen(limit.map(|limit| format!("{:.0} %", limit.confidence * 100.0))),
        seen(limit.map(|limit| limit.why.join("; "))),
        seen(cores),
        seen(rate(observe.and_then(|o| o.disk_read))),
        seen(rate(observe.and_then(|o| o.disk_write))),
    ]
}

/// A line for each block.
pub fn blocks(result: &IozoneResult) -> Table {
    let line = |block: &BlockResult| {
        let kb = |value: f64| format!("{value:.2}");
        vec![
            block.title.clone(),
            kb(block.children_kb_s),
            kb(block.parent_kb_s),
            kb(block.min_kb_s),
            kb(block.max_kb_s),
            kb(block.avg_kb_s),
            kb(block.min_xfer_kb),
            block.first.to_string(),
            block.last.to_string(),
            block.same_as.clone().unwrap_or_default(),
        ]
    };
    let heads = [
        "test",
        "children kB/s",
        "parent kB/s",
        "min kB/s",
        "max kB/s",
        "avg kB/s",
        "min xfer kB",
        "first to end",
        "last",
        "same calls as",
    ];
    Table::new(heads, result.blocks.iter().map(line).collect())
}
