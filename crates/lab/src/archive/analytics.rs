//! The server's own data of the time of a run, so that what a report links does not age out: a data
//! object of its API (docs/protocols/api.md) for each statistic that matters, over the whole run.

use super::Measured;
use crate::client::Target;
use crate::conduct::server::api::ServerApi;
use crate::conduct::server::{SEEN_BY_API, SEEN_BY_REMOTE_API, escape};
use std::collections::BTreeSet;

/// Longest time that is asked for, s: the server has data of each second for longer.
const SECONDS_MAX: i64 = 3_600;
/// Breakdowns of the operations and bytes of a protocol.
const OF_PROTOCOL: [&str; 5] =
    ["ops[op]", "ops[client]", "ops[latency]", "bytes[client]", "bytes[op]"];
/// What is of the machine.
const OF_MACHINE: [&str; 4] =
    ["cpu.utilization[mode]", "nic.kilobytes[device]", "io.ops[disk]", "io.bytes[disk]"];

/// Name and text of each file; none when the server was not seen through its API.
pub fn of(api: Option<&ServerApi>, results: &[Measured<'_>]) -> Vec<(String, String)> {
    let through_api = [SEEN_BY_API, SEEN_BY_REMOTE_API];
    let seen = |r: &&Measured<'_>| through_api.contains(&r.server.seen.as_str());
    let seen: Vec<_> = results.iter().filter(seen).collect();
    let (Some(api), Some(first)) = (api, seen.first()) else { return Vec::new() };
    let begin = seen.iter().map(|r| r.time.0).fold(first.time.0, f64::min).floor() as i64 - 1;
    let end = seen.iter().map(|r| r.time.1).fold(first.time.1, f64::max).ceil() as i64 + 1;
    let begin = begin.max(end - SECONDS_MAX);
    let protocols: BTreeSet<&str> = seen.iter().map(|r| Target::protocol_of(r.target)).collect();
    let of_protocols =
        protocols.iter().flat_map(|protocol| OF_PROTOCOL.map(|what| format!("{protocol}.{what}")));
    let ids = of_protocols.chain(OF_MACHINE.map(str::to_owned));
    let file = |id: String| {
        let path = format!("/api/v1/analytics/data?stat={}&from={begin}&to={end}", escape(&id));
        let data = api.get(&path)?;
        Some((file_name(&id), data.to_string()))
    };
    ids.filter_map(file).collect()
}

/// `nfs3.ops[op]` as `nfs3.ops-by-op.json`.
fn file_name(id: &str) -> String {
    format!("{}.json", id.replace('[', "-by-").replace(']', ""))
}
