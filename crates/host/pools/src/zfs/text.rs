//! The output of `zpool status` and `zpool import` for people: OpenZFS 2.0 to 2.2, which have no
//! JSON, and zfs-fuse 0.7, which has `scrub:` for `scan:` and the progress in another form.
//!
//! A pool is a list of keys (`state:`) with lines that continue them, and a table of devices, of
//! which the indentation is the structure.

use super::value::{duration_s, size, time_s};
use super::{
    GROUPS_MAX, Health, LEAVES_MAX, Leaf, POOLS_MAX, Pool, Role, Scan, ScanKind, ScanState,
};

/// Columns of a tabulator.
const TAB: usize = 8;
/// Keys are indented so that their colons are below each other.
const KEY_INDENT_MAX: usize = 7;
/// Words of a time.
const TIME_WORDS: usize = 5;

const KEYS: [&str; 16] = [
    "pool",
    "id",
    "state",
    "status",
    "action",
    "see",
    "scan",
    "scrub",
    "remove",
    "checkpoint",
    "expand",
    "dedup",
    "config",
    "errors",
    "comment",
    "condense",
];

/// A row of the table of devices.
struct Row<'a> {
    indent: usize,
    words: Vec<&'a str>,
}

/// The column of the first character that is no space.
fn indent(line: &str) -> usize {
    let mut column = 0;
    for c in line.chars() {
        match c {
            ' ' => column += 1,
            '\t' => column = (column / TAB + 1) * TAB,
            _ => break,
        }
    }
    column
}

/// The key of a line and what follows it.
fn key(line: &str) -> Option<(&'static str, &str)> {
    let (name, rest) = line.split_once(':')?;
    if line.starts_with('\t') || indent(line) > KEY_INDENT_MAX {
        return None;
    }
    let known = KEYS.into_iter().find(|known| *known == name.trim())?;
    Some((known, rest.trim()))
}

/// The pools of an output. Lines that are no part of one are skipped.
pub fn pools(text: &str) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    let mut last = "";
    let (mut rows, mut scan) = (Vec::new(), String::new());
    for line in text.lines() {
        if let Some((name, rest)) = key(line) {
            if name == "pool" {
                finish(pools.last_mut(), &mut rows, &mut scan);
                if pools.len() >= POOLS_MAX {
                    return pools;
                }
                pools.push(Pool { name: rest.to_owned(), ..Pool::default() });
            }
            last = name;
            if let Some(pool) = pools.last_mut() {
                set(pool, name, rest, &mut scan);
            }
            continue;
        }
        let Some(pool) = pools.last_mut() else { continue };
        match last {
            "status" => join(&mut pool.status, line),
            "scan" | "scrub" => join(&mut scan, line),
            "config" if !line.trim().is_empty() && rows.len() < LEAVES_MAX => {
                rows.push(Row { indent: indent(line), words: line.split_whitespace().collect() });
            }
            _ => {}
        }
    }
    finish(pools.last_mut(), &mut rows, &mut scan);
    pools
}

fn join(text: &mut String, line: &str) {
    for word in line.split_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
}

fn set(pool: &mut Pool, name: &str, rest: &str, scan: &mut String) {
    match name {
        "id" => pool.guid = rest.parse().ok(),
        "state" => pool.health = Health::of(rest.split_whitespace().next().unwrap_or_default()),
        "status" => join(&mut pool.status, rest),
        "scan" | "scrub" => join(scan, rest),
        "errors" => {
            let count = rest.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            // "Permanent errors have been detected in the following files:" has no count.
            let none = rest.is_empty() || rest.starts_with("No known data errors");
            pool.errors = count.unwrap_or(u64::from(!none));
        }
        _ => {}
    }
}

fn finish(pool: Option<&mut Pool>, rows: &mut Vec<Row<'_>>, scan: &mut String) {
    let rows = std::mem::take(rows);
    let scan = std::mem::take(scan);
    if let Some(pool) = pool {
        pool.leaves = leaves(&pool.name, &rows);
        pool.scan = parse_scan(&scan);
    }
}

/// The role of the devices below a heading of the table.
fn heading(word: &str) -> Option<Role> {
    Some(match word {
        "logs" => Role::Log,
        "cache" => Role::Cache,
        "spares" => Role::Spare,
        "special" | "dedup" => Role::Special,
        _ => return None,
    })
}

/// The devices of a table.
fn leaves(pool: &str, rows: &[Row<'_>]) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let mut role = Role::Data;
    // Groups that the row is in, with their indentation.
    let mut groups: Vec<(usize, &str)> = Vec::new();
    let base = rows.first().map_or(0, |row| row.indent);
    for (at, row) in rows.iter().enumerate() {
        let Some(&name) = row.words.first() else { continue };
        groups.retain(|(indent, _)| *indent < row.indent);
        if row.indent <= base {
            match (heading(name), row.words.len()) {
                // A pool may be named as a heading: then it has a state.
                (Some(found), 1) => role = found,
                _ if name == pool || name == "NAME" => role = Role::Data,
                _ => {}
            }
            continue;
        }
        let is_group = rows.get(at + 1).is_some_and(|next| next.indent > row.indent);
        if is_group {
            if groups.len() < GROUPS_MAX {
                groups.push((row.indent, name));
            }
        } else if !name.starts_with("indirect-") {
            let groups = groups.iter().map(|(_, name)| (*name).to_owned()).collect();
            leaves.push(leaf(role, groups, &row.words));
        }
    }
    leaves
}

fn leaf(role: Role, groups: Vec<String>, words: &[&str]) -> Leaf {
    let mut words = words.iter().copied();
    let name = words.next().unwrap_or_default().to_owned();
    let health = words.next().map_or(Health::Unknown, Health::of);
    let rest: Vec<&str> = words.collect();
    let mut counts = rest.iter().map_while(|word| size(word));
    let (read, write, checksum) = (counts.next(), counts.next(), counts.next());
    let counted = usize::from(read.is_some())
        + usize::from(write.is_some())
        + usize::from(checksum.is_some());
    let note = rest.get(counted..).unwrap_or_default();
    let was = note.iter().position(|word| *word == "was").and_then(|at| note.get(at + 1));
    Leaf {
        role,
        groups,
        name,
        health,
        read: read.unwrap_or(0),
        write: write.unwrap_or(0),
        checksum: checksum.unwrap_or(0),
        was: was.map(|was| (*was).to_owned()),
        note: note.join(" "),
    }
}

/// Some text between two others.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

/// The time after a word.
fn time_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(word)?;
    let words: Vec<&str> = rest.split_whitespace().take(TIME_WORDS).collect();
    time_s(&words.join(" "))
}

/// The word before some text.
fn word_before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    text.split_once(end)?.0.rsplit(' ').next()
}

/// A scan in words, in a line.
fn parse_scan(text: &str) -> Scan {
    let kind = match () {
        () if text.starts_with("scrub") => ScanKind::Scrub,
        () if text.starts_with("resilver") => ScanKind::Resilver,
        () => return Scan::default(),
    };
    let mut scan = Scan { kind: Some(kind), ..Scan::default() };
    scan.errors = between(text, " with ", " errors").and_then(|count| count.trim().parse().ok());
    if text.contains(" in progress") || text.contains(" paused") {
        let is_paused = text.contains(" paused");
        scan.state = if is_paused { ScanState::Paused } else { ScanState::Running };
        let began = if is_paused { "started on " } else { " since " };
        scan.started_s = time_after(text, began);
        scan.elapsed_s = between(text, "in progress for ", ",").and_then(duration_s);
        scan.thousandths = word_before(text, "% done").and_then(thousandths);
        scan.repaired = word_before(text, " repaired,")
            .or_else(|| word_before(text, " resilvered,"))
            .and_then(size);
        scan.seconds_left = between(text, "% done, ", " to go").and_then(duration_s);
        return scan;
    }
    let is_canceled = text.contains(" canceled on ") || text.contains(" stopped after ");
    scan.state = if is_canceled { ScanState::Canceled } else { ScanState::Finished };
    scan.ended_s = time_after(text, " on ");
    let took = between(text, " in ", " with ").or_else(|| between(text, " after ", " with "));
    let took = took.and_then(duration_s);
    scan.started_s = scan.ended_s.zip(took).map(|(ended, took)| ended.saturating_sub(took));
    let repaired =
        between(text, " repaired ", " in ").or_else(|| between(text, "resilvered ", " in "));
    scan.repaired = repaired.and_then(|text| text.rsplit(' ').next()).and_then(size);
    scan
}

/// A number of percent in thousandths.
fn thousandths(percent: &str) -> Option<u64> {
    let value = percent.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value))?;
    Some((value * 10.0) as u64)
}

#[cfg(test)]
mod tests;
