//! The output of `zpool status -j --json-int` (OpenZFS 2.3 and later).
//!
//! Numbers are accepted as texts, too: without `--json-int` all are. `status` is a sentence.

use serde_json::{Map, Value};

use super::value::size;
use super::{
    GROUPS_MAX, Health, LEAVES_MAX, Leaf, POOLS_MAX, Pool, Role, Scan, ScanKind, ScanState,
};

/// Classes of devices in their order in `zpool status`.
const CLASSES: [(&str, Role); 6] = [
    ("vdevs", Role::Data),
    ("dedup", Role::Special),
    ("special", Role::Special),
    ("logs", Role::Log),
    ("l2cache", Role::Cache),
    ("spares", Role::Spare),
];

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(of: &Value, name: &str) -> Option<u64> {
    match of.get(name)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => size(text),
        _ => None,
    }
}

/// The pools of an output.
///
/// # Errors
/// What is wrong with it.
pub fn pools(bytes: &[u8]) -> Result<Vec<Pool>, String> {
    let all: Value = serde_json::from_slice(bytes).map_err(|e| format!("not JSON: {e}"))?;
    let pools = all.get("pools").and_then(Value::as_object).ok_or("there are no pools in it")?;
    Ok(pools.iter().take(POOLS_MAX).map(|(name, of)| pool(name, of)).collect())
}

fn pool(key: &str, of: &Value) -> Pool {
    let name = Some(text(of, "name")).filter(|name| !name.is_empty()).unwrap_or(key);
    let mut leaves = Vec::new();
    for (class, role) in CLASSES {
        let Some(devices) = of.get(class).and_then(Value::as_object) else { continue };
        // The root has the name of the pool; all below it is data.
        let root = devices.get(name).filter(|_| role == Role::Data);
        let inside = root.and_then(|root| root.get("vdevs")).and_then(Value::as_object);
        walk(inside.unwrap_or(devices), role, &mut Vec::new(), &mut leaves);
    }
    let words: Vec<&str> = text(of, "status").split_whitespace().collect();
    Pool {
        name: name.to_owned(),
        guid: number(of, "pool_guid").or_else(|| number(of, "guid")),
        health: Health::of(text(of, "state")),
        // Older previews had a word for it.
        status: if words.as_slice() == ["OK"] { String::new() } else { words.join(" ") },
        errors: number(of, "error_count").unwrap_or(0),
        scan: of.get("scan_stats").map(scan).unwrap_or_default(),
        leaves,
    }
}

/// The number behind the last `-` of a group: `mirror-10` comes after `mirror-9`.
fn rank(name: &str) -> (u64, &str) {
    let number = name.rsplit_once('-').and_then(|(_, number)| number.parse().ok());
    (number.unwrap_or(u64::MAX), name)
}

fn walk(
    devices: &Map<String, Value>,
    role: Role,
    groups: &mut Vec<String>,
    leaves: &mut Vec<Leaf>,
) {
    let mut sorted: Vec<(&String, &Value)> = devices.iter().collect();
    sorted.sort_by_key(|(name, of)| {
        let is_group = of.get("vdevs").is_some();
        if is_group { rank(name) } else { (u64::MAX, name.as_str()) }
    });
    for (name, of) in sorted {
        if leaves.len() >= LEAVES_MAX {
            return;
        }
        match of.get("vdevs").and_then(Value::as_object) {
            Some(inside) if groups.len() < GROUPS_MAX => {
                groups.push(name.clone());
                walk(inside, role, groups, leaves);
                groups.pop();
            }
            Some(_) => {}
            None if matches!(text(of, "vdev_type"), "indirect" | "hole" | "missing") => {}
            None => leaves.push(leaf(name, of, role, groups)),
        }
    }
}

fn leaf(name: &str, of: &Value, role: Role, groups: &[String]) -> Leaf {
    let was = Some(text(of, "was")).filter(|was| !was.is_empty());
    let aux = match text(of, "aux") {
        "ERR_EXCEEDED" => "too many errors",
        "EXTERNAL" | "EXTERNAL_PERSIST" => "external device fault",
        "SPARED" => "currently in use",
        "OPEN_FAILED" => "cannot open",
        "CORRUPT_DATA" => "corrupted data",
        "BAD_LABEL" => "invalid label",
        "NONE" => "",
        other => other,
    };
    let path = Some(text(of, "path")).filter(|path| path.starts_with('/') && was.is_none());
    Leaf {
        role,
        groups: groups.to_vec(),
        name: path.unwrap_or(name).to_owned(),
        health: Health::of(text(of, "state")),
        read: number(of, "read_errors").unwrap_or(0),
        write: number(of, "write_errors").unwrap_or(0),
        checksum: number(of, "checksum_errors").unwrap_or(0),
        note: was.map_or_else(|| aux.to_owned(), |was| format!("was {was}")),
        was: was.map(str::to_owned),
    }
}

fn scan(of: &Value) -> Scan {
    let kind = match text(of, "function") {
        "SCRUB" => ScanKind::Scrub,
        "RESILVER" => ScanKind::Resilver,
        _ => return Scan::default(),
    };
    let paused = number(of, "scrub_pause").is_some_and(|at| at > 0);
    let state = match text(of, "state") {
        "SCANNING" if paused && kind == ScanKind::Scrub => ScanState::Paused,
        "SCANNING" => ScanState::Running,
        "FINISHED" => ScanState::Finished,
        "CANCELED" => ScanState::Canceled,
        _ => ScanState::None,
    };
    let runs = matches!(state, ScanState::Running | ScanState::Paused);
    let all = number(of, "to_examine").unwrap_or(0);
    let all = all.saturating_sub(number(of, "skipped").unwrap_or(0));
    let issued = number(of, "issued").unwrap_or(0);
    let part = (u128::from(issued) * 1_000).checked_div(all.into()).unwrap_or(0).min(1_000);
    Scan {
        kind: Some(kind),
        state,
        started_s: number(of, "start_time").filter(|at| *at > 0),
        ended_s: number(of, "end_time").filter(|at| *at > 0 && !runs),
        elapsed_s: None,
        thousandths: runs.then(|| u64::try_from(part).unwrap_or(0)),
        seconds_left: None,
        repaired: number(of, "processed"),
        errors: number(of, "errors"),
    }
}

#[cfg(test)]
mod tests;
