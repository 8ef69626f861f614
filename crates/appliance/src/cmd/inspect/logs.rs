//! Logs with a record of JSON on each line: transfers, and the history of replication.

use control::replication::history::FILE as HISTORY;
use control::replication::record::Record as Run;
use control::transfers::Record as Transfer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Inspected;

/// How files of transfers are called; older ones have a number behind it.
const TRANSFERS: &str = "transfers.log";

/// The records of a file, and how many lines are none: a power cut tears the last.
fn records<T: DeserializeOwned>(content: &[u8]) -> (Vec<T>, usize) {
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read: Vec<Option<T>> = lines.map(|line| serde_json::from_slice(line).ok()).collect();
    let torn = read.iter().filter(|record| record.is_none()).count();
    (read.into_iter().flatten().collect(), torn)
}

/// A log by its title, the name of its list, and the lines for a record.
fn log<T: DeserializeOwned + Serialize>(
    content: &[u8],
    (title, list): (&str, &str),
    lines: fn(&T) -> Vec<String>,
) -> Option<Inspected> {
    let (records, torn) = records(content);
    if records.is_empty() && torn > 0 {
        return None;
    }
    let mut text = format!("{title}\n");
    records.iter().flat_map(lines).for_each(|line| text += &format!("  {line}\n"));
    if torn > 0 {
        text += &format!("  lines that are not whole: {torn}\n");
    }
    Some(Inspected { value: json!({ "format": title, list: records, "torn": torn }), text })
}

fn is_of_transfers(name: &str) -> bool {
    name.strip_prefix(TRANSFERS).is_some_and(|number| {
        number.strip_prefix('.').map_or(number.is_empty(), |number| number.parse::<u32>().is_ok())
    })
}

/// The content of such a file.
pub fn recognise(name: &str, content: &[u8]) -> Option<Inspected> {
    if name == HISTORY {
        return log(content, ("history of replication", "results"), |run: &Run| {
            let failed = run.failed.iter().map(|failed| format!("  {failed}"));
            [run.sentence()].into_iter().chain(failed).collect()
        });
    }
    let lines = |transfer: &Transfer| vec![transfer.sentence()];
    is_of_transfers(name).then(|| log(content, ("log of transfers", "transfers"), lines))?
}

/// The log of transfers as other servers have it; `None` if it is none.
pub fn xferlog(name: &str, content: &[u8]) -> Option<String> {
    recognise(name, content).filter(|_| is_of_transfers(name))?;
    let (records, _): (Vec<Transfer>, _) = records(content);
    Some(records.iter().map(|record| record.xferlog() + "\n").collect())
}
