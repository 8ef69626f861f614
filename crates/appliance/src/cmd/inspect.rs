//! `plimsoll inspect`: any file of ours as text, without a server. The room that writes a format
//! reads it; this only finds out which it is.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::Path;

use analytics::store::SegmentError;
use serde_json::{Value, json};

use crate::cli::InspectArgs;
use crate::out::{self, Failure};

/// Largest file that is read whole; segments are read by their own room.
const WHOLE_MAX: u64 = 64 << 20;

/// Runs the command.
///
/// # Errors
/// If the file cannot be read or is none of ours.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let path = &args.file;
    let tried = format!("inspect {}", path.display());
    let size = std::fs::metadata(path).map_err(|e| Failure::of(&tried, &e))?.len();
    if is_segment(path) {
        return segment(&tried, args);
    }
    if size > WHOLE_MAX {
        return Err(Failure::new(&tried, "it is larger than any of our files of this kind", ""));
    }
    let bytes = std::fs::read(path).map_err(|e| Failure::of(&tried, &e))?;
    let Some(found) = recognise(path, &bytes) else {
        let hint = "docs/formats lists the files that plimsoll writes";
        return Err(Failure::new(&tried, "this is no file of ours", hint));
    };
    if args.json {
        return out::print(&out::json(&found));
    }
    out::print(&as_text(&found))
}

/// First bytes of a segment of statistics (`docs/formats/segments.md`).
const SEGMENT: &[u8; 8] = b"PLIMSTAT";

fn is_segment(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *SEGMENT
}

/// Frame by frame, so that a segment of any length is read.
fn segment(tried: &str, args: &InspectArgs) -> Result<(), Failure> {
    if args.json {
        let hint = "`plimsoll analytics show STAT --json` gives statistics as JSON";
        return Err(Failure::usage(tried, "segments are shown as text only", hint));
    }
    let mut out = std::io::stdout().lock();
    match analytics::store::inspect(&args.file, &mut out) {
        Err(SegmentError::Io(e)) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::of(tried, &e)),
        Ok(()) => Ok(()),
    }
}

/// What a file of the state directory says. Secrets are described, never shown.
fn recognise(path: &Path, bytes: &[u8]) -> Option<Value> {
    let name = path.file_name()?.to_str()?;
    let text = std::str::from_utf8(bytes).ok();
    match name {
        "handle-secret" if bytes.len() == 32 => {
            Some(json!({ "format": "key of the file handles", "bytes": 32 }))
        }
        "api-token" => {
            let length = text?.trim().len();
            Some(json!({ "format": "bearer token of the API", "characters": length }))
        }
        "key.pem" => text?
            .contains("PRIVATE KEY")
            .then(|| json!({ "format": "private key of the admin listener" })),
        "certificate.pem" => {
            let names = text?.lines().next()?.strip_prefix("# made by plimsoll for: ");
            let names: Option<Vec<&str>> = names.map(|n| n.split(' ').collect());
            let ours = names.is_some();
            Some(json!({ "format": "certificate", "made_by_plimsoll": ours, "names": names }))
        }
        "users.json" => {
            let users: BTreeMap<String, String> = serde_json::from_slice(bytes).ok()?;
            let names: Vec<&String> = users.keys().collect();
            Some(json!({ "format": "users", "users": names }))
        }
        "lock" => {
            let pid: u32 = text?.trim().parse().ok()?;
            Some(json!({ "format": "lock of a state directory", "last_pid": pid }))
        }
        _ if name.starts_with("handles-") => handles(name, bytes),
        _ => run_result(bytes).or_else(|| summary(bytes)).or_else(|| registered(bytes)),
    }
}

/// The table that keeps handles valid.
fn handles(name: &str, bytes: &[u8]) -> Option<Value> {
    let table = vfs::host::dump_table(bytes, name.ends_with("-kernel.redb")).ok()?;
    Some(json!({
        "format": "table of file handles",
        "directories": table.dirs,
        "moved": table.moved,
        "unreadable": table.unknown,
    }))
}

/// One run of the lab, in short; `plimsoll lab report` makes a page of it.
fn run_result(bytes: &[u8]) -> Option<Value> {
    let run: lab::record::RunResult = serde_json::from_slice(bytes).ok()?;
    let best = run.best_step().map(|step| {
        let at = format!("{} clients × {} threads", step.clients, step.threads);
        format!("{} at {at}", run.figure_text(step))
    });
    let steps = run
        .steps
        .iter()
        .map(|step| format!("{} × {}: {}", step.clients, step.threads, run.figure_text(step)));
    Some(json!({
        "format": "result of a load run",
        "job": run.job.title,
        "target": run.target,
        "best": best,
        "limit": run.limit.as_ref().map(|limit| limit.why.clone()),
        "steps": steps.collect::<Vec<_>>(),
        "degraded": run.degraded,
        "failed": run.failed,
    }))
}

/// The Performance Limit Summary.
fn summary(bytes: &[u8]) -> Option<Value> {
    let summary: lab::limits::Summary = serde_json::from_slice(bytes).ok()?;
    let rows = summary.rows.iter().map(|row| {
        format!(
            "{}: {} ({} × {}), {}",
            row.title, row.text, row.clients, row.threads, row.limiter_text
        )
    });
    Some(json!({
        "format": "Performance Limit Summary",
        "target": summary.target,
        "rows": rows.collect::<Vec<_>>(),
    }))
}

/// An entry of the run-time registry.
fn registered(bytes: &[u8]) -> Option<Value> {
    let entry: control::state::registry::Entry = serde_json::from_slice(bytes).ok()?;
    let mut value = serde_json::to_value(entry).ok()?;
    value.as_object_mut()?.insert("format".into(), "registry entry of a server".into());
    Some(value)
}

fn as_text(found: &Value) -> String {
    let Some(fields) = found.as_object() else { return format!("{found}\n") };
    let mut text = format!("{}\n", fields["format"].as_str().unwrap_or(""));
    for (name, value) in fields.iter().filter(|(name, _)| *name != "format") {
        match value {
            Value::Null => {}
            Value::Array(lines) => {
                text += &format!("  {name:<18} {}\n", lines.len());
                lines.iter().for_each(|line| text += &format!("    {}\n", plain(line)));
            }
            _ => text += &format!("  {name:<18} {}\n", plain(value)),
        }
    }
    text
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
