//! What the tree shows of actions.

use base::limits::REPLICATION_SHOWN;
use base::node::Value;

use super::record::Record;
use super::run::Run;

type State = Vec<(&'static str, Value)>;

/// What an action does now.
pub fn standing(run: Option<&Run>, waiting: bool, next: Option<u64>) -> State {
    let state = match run {
        Some(run) if run.is_stopped() => "stopping",
        Some(_) => "running",
        None if waiting => "waiting",
        None => "idle",
    };
    let mut properties =
        vec![("state", Value::text(state)), ("next", Value::number(next.unwrap_or(0)))];
    properties.extend(run.map(progress).unwrap_or_default());
    properties
}

fn progress(run: &Run) -> State {
    let progress = run.progress();
    let mut properties = vec![
        ("progress", Value::Text(progress.sentence())),
        ("began", Value::number(run.began)),
        ("by", Value::text(&run.by)),
        ("entries", Value::number(progress.entries)),
        ("files", Value::number(progress.files)),
        ("files_done", Value::number(progress.files_done)),
        ("size", Value::number(progress.bytes)),
        ("size_done", Value::number(progress.bytes_done)),
        ("rate", Value::number(progress.rate)),
    ];
    properties.extend(
        progress.left.map(|seconds| ("time_left", Value::number(seconds.min(u32::MAX.into())))),
    );
    properties.extend(progress.limiter.map(|limiter| ("limiter", Value::Text(limiter))));
    properties
}

/// The results of its runs, the newest first.
pub fn results(records: &[Record]) -> State {
    let recent = records.iter().take(REPLICATION_SHOWN).map(Record::sentence);
    let mut properties = vec![("recent", Value::texts(recent))];
    if let Some(last) = records.first() {
        properties.extend([
            ("last", Value::number(last.ended)),
            ("last_outcome", Value::text(last.outcome.name())),
            ("last_reason", Value::text(&last.reason)),
            ("last_failed", Value::texts(&last.failed)),
        ]);
    } else {
        properties.push(("last", Value::number(0)));
    }
    properties
}
