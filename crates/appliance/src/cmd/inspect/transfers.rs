//! The log of transfers.

use control::transfers::Record;
use serde_json::json;

use super::Found;

/// How its files are called; older ones have a number behind it.
const NAME: &str = "transfers.log";

/// The records of a file, and how many lines are none: a power cut tears the last.
fn records(content: &[u8]) -> (Vec<Record>, usize) {
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read: Vec<Option<Record>> = lines.map(|line| serde_json::from_slice(line).ok()).collect();
    let torn = read.iter().filter(|record| record.is_none()).count();
    (read.into_iter().flatten().collect(), torn)
}

/// What such a file says.
pub fn recognise(name: &str, content: &[u8]) -> Option<Found> {
    let number = name.strip_prefix(NAME)?;
    let is_ours = number.is_empty() || number.strip_prefix('.')?.parse::<u32>().is_ok();
    let (records, torn) = is_ours.then(|| records(content))?;
    if records.is_empty() && torn > 0 {
        return None;
    }
    let mut text = String::from("log of transfers\n");
    for record in &records {
        text += &format!("  {}\n", record.sentence());
    }
    if torn > 0 {
        text += &format!("  lines that are not whole: {torn}\n");
    }
    let value = json!({ "format": "log of transfers", "transfers": records, "torn": torn });
    Some(Found { value, text })
}

/// The same as other servers have it; `None` if it is no log of transfers.
pub fn xferlog(name: &str, content: &[u8]) -> Option<String> {
    recognise(name, content)?;
    Some(records(content).0.iter().map(|record| record.xferlog() + "\n").collect())
}
