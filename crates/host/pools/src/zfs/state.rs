//! The state of a pool of ZFS from its output; pure.

use super::{Health, Leaf, Pool, Role, Scan, ScanKind, ScanState};
use crate::request::{Ended, Kind, Phase, TaskStatus};
use crate::state::State;

/// Whether data of the pool is on devices of this role.
fn has_data(role: Role) -> bool {
    matches!(role, Role::Data | Role::Log | Role::Special)
}

/// Whether a device is being replaced by another, or was by a spare.
fn is_replaced(leaf: &Leaf) -> bool {
    leaf.groups.iter().any(|group| group.starts_with("replacing-") || group.starts_with("spare-"))
}

/// What is wrong with a device, and what to do.
fn wrong_with(leaf: &Leaf, title: &str) -> String {
    let note = if leaf.note.is_empty() { String::new() } else { format!(" ({})", leaf.note) };
    let role = if leaf.role == Role::Data { "" } else { leaf.role.name() };
    let disk = if role.is_empty() { "disk".to_owned() } else { format!("{role} disk") };
    match leaf.health {
        Health::Offline => format!("the {disk} {title} is offline: take it online, or replace it"),
        Health::Removed | Health::Unavailable => {
            format!("the {disk} {title} is missing: connect it, or replace it")
        }
        _ => format!("the {disk} {title} is {}{note}: replace it", leaf.health.name()),
    }
}

/// The state of an imported pool, and a sentence about what is wrong. `title` is what people find
/// the device of this index by.
pub fn state(pool: &Pool, title: impl Fn(usize) -> String) -> (State, Option<String>) {
    if !matches!(pool.health, Health::Online | Health::Degraded) {
        let why = if pool.status.is_empty() { pool.health.name() } else { &pool.status };
        return (State::Failed, Some(why.to_owned()));
    }
    let bad = || pool.leaves.iter().enumerate().filter(|(_, leaf)| !leaf.health.is_good());
    let first = |of: &dyn Fn(&Leaf) -> bool| {
        bad().find(|(_, leaf)| of(leaf)).map(|(at, leaf)| wrong_with(leaf, &title(at)))
    };
    let of_data = first(&|leaf| has_data(leaf.role) && !is_replaced(leaf));
    let replaced = first(&|leaf| has_data(leaf.role) && is_replaced(leaf));
    let resilvers =
        pool.scan.kind == Some(ScanKind::Resilver) && pool.scan.state == ScanState::Running;
    if resilvers {
        let sentence = of_data.unwrap_or_else(|| "a disk gets the data that it lacks".to_owned());
        return (State::Repairing, Some(sentence));
    }
    if let Some(sentence) = of_data.or(replaced) {
        return (State::Degraded, Some(sentence));
    }
    if pool.errors > 0 {
        let sentence = format!(
            "{} files or blocks have no right copy: restore them from a backup",
            pool.errors
        );
        return (State::Degraded, Some(sentence));
    }
    if pool.health == Health::Degraded {
        return (State::Degraded, Some(pool.status.clone()).filter(|text| !text.is_empty()));
    }
    // Neither a cache nor a spare has data that is nowhere else.
    (State::Healthy, first(&|leaf| !has_data(leaf.role)))
}

/// The task that a scan is, if it runs.
pub fn task(scan: &Scan, now_s: u64) -> Option<TaskStatus> {
    if !matches!(scan.state, ScanState::Running | ScanState::Paused) {
        return None;
    }
    let (kind, phase) = match scan.kind? {
        ScanKind::Scrub => (Kind::Scrub, Phase::Scrub),
        ScanKind::Resilver => (Kind::Resilver, Phase::Resilver),
    };
    let began = scan.elapsed_s.map(|elapsed| now_s.saturating_sub(elapsed));
    let started_s = scan.started_s.or(began).unwrap_or(now_s);
    let thousandths = scan.thousandths.unwrap_or(0).min(1_000);
    let took = now_s.saturating_sub(started_s);
    let left = took.saturating_mul(1_000 - thousandths).checked_div(thousandths);
    let seconds_left = scan.seconds_left.or(left).filter(|_| scan.state == ScanState::Running);
    Some(TaskStatus { kind, phase, thousandths, seconds_left, started_s })
}

/// The entry of a scan that has ended.
pub fn ended(scan: &Scan) -> Option<Ended> {
    let ended_s = scan.ended_s?;
    let (kind, what) = match scan.kind? {
        ScanKind::Scrub => (Kind::Scrub, "repaired"),
        ScanKind::Resilver => (Kind::Resilver, "written"),
    };
    let complete = match scan.state {
        ScanState::Finished => true,
        ScanState::Canceled => false,
        ScanState::None | ScanState::Running | ScanState::Paused => return None,
    };
    let errors = scan.errors.unwrap_or(0);
    let bytes = scan.repaired.map(|bytes| format!("{} KiB were {what}, ", bytes.div_ceil(1 << 10)));
    let result = if complete {
        format!("{}{errors} errors without a right copy.", bytes.unwrap_or_default())
    } else {
        "It was stopped.".to_owned()
    };
    let started_s = scan.started_s.unwrap_or(ended_s);
    Some(Ended { kind, started_s, ended_s, complete, result })
}

#[cfg(test)]
mod tests;
