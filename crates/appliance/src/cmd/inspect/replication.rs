//! The history of replication.

use control::replication::history::{FILE, records};
use control::replication::record::Record;
use serde_json::json;

use super::Found;

/// What such a file says.
pub fn recognise(name: &str, content: &[u8]) -> Option<Found> {
    let all: Vec<Record> = (name == FILE).then(|| records(content).collect())?;
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    let torn = lines - all.len();
    if all.is_empty() && torn > 0 {
        return None;
    }
    let mut text = String::from("history of replication\n");
    for record in &all {
        text += &format!("  {}\n", record.sentence());
        for failed in &record.failed {
            text += &format!("    {failed}\n");
        }
    }
    if torn > 0 {
        text += &format!("  lines that are not whole: {torn}\n");
    }
    let value = json!({ "format": "history of replication", "results": all, "torn": torn });
    Some(Found { value, text })
}
