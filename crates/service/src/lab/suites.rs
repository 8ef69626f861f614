//! Suites that are queued from the tree.

use super::loads::{Find, Load, is_set};
use super::{Parameters, integer, texts, wanted};
use ::lab::archive::request::Kind;
use ::lab::desk::RunRequest;
use ::lab::desk::run::RunTarget;
use ::lab::node::suites::SEQREAD_CLIENTS;
use ::lab::suite::request::{Name, SuiteRequest, space};
use ::lab::suite::rows::{SOURCE_CLIENTS, SOURCE_SECONDS};
use base::limits::LAB_RUN_CLIENTS_MAX;
use base::node::{Path, Value};
use control::tree::{Actor, Problem};

fn number(given: &Parameters, name: &str) -> Option<u64> {
    integer(given, name).and_then(|n| u64::try_from(n).ok())
}

fn numbers<T: TryFrom<i64>>(given: &Parameters, name: &str) -> Vec<T> {
    let Some(Value::List(all)) = given.get(name) else { return Vec::new() };
    all.iter().filter_map(Value::as_integer).filter_map(|n| T::try_from(n).ok()).collect()
}

/// Sequential reads.
pub(super) fn seqread(path: &Path, given: &Parameters, who: &Actor, find: Find<'_>) -> Load {
    let suite = SuiteRequest {
        sizes: numbers(given, "sizes"),
        threads: numbers(given, "threads"),
        size: number(given, "file_size"),
        ..SuiteRequest::new(Name::Seqread)
    };
    queued(suite, SEQREAD_CLIENTS, (path, given, who), find)
}

/// The table of Filebench workloads.
pub(super) fn filebench(path: &Path, given: &Parameters, who: &Actor, find: Find<'_>) -> Load {
    let seconds = |name: &str, default: u32| {
        number(given, name).and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
    };
    let [reads, writes] = SOURCE_SECONDS;
    let suite = SuiteRequest {
        rows: texts(given, "rows"),
        size: number(given, "set_size"),
        seconds: [seconds("seconds", reads), seconds("write_seconds", writes)],
        ..SuiteRequest::new(Name::FilebenchSuite)
    };
    queued(suite, SOURCE_CLIENTS, (path, given, who), find)
}

fn queued(
    suite: SuiteRequest,
    clients: u32,
    (path, given, who): (&Path, &Parameters, &Actor),
    find: Find<'_>,
) -> Load {
    let suite = SuiteRequest {
        quick: is_set(given, "quick", true),
        settings: texts(given, "settings"),
        ..suite
    };
    let clients = number(given, "clients").and_then(|n| u32::try_from(n).ok()).unwrap_or(clients);
    let clients = clients.clamp(1, LAB_RUN_CLIENTS_MAX);
    let wrong = |why: String| {
        let property = if why.contains("the rows are") { "rows" } else { "settings" };
        let hint = "docs/howto/suites.md has rows and options; a setting is KEY=VALUE";
        Problem::new(path, &why, hint).property(property)
    };
    let (rows, _) = suite.rows(clients).map_err(|error| wrong(error.to_string()))?;
    let bytes = space(&rows);
    let (url, share, folder) = find(bytes)?;
    let targets = vec![RunTarget { url, own: share.is_some() }];
    let wanted = wanted(Kind::Suite, Vec::new(), targets, given, who);
    Ok((RunRequest { share, folder, clients, suite: Some(suite), ..wanted }, bytes))
}
