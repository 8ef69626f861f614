//! Where the server's own graphs of an interval are: the address of its Analytics page.

use crate::client::Target;
use crate::record::{RunResult, Step};
use std::net::{IpAddr, SocketAddr};

/// The interval of a step (of the whole run without one) in whole seconds since the Unix epoch,
/// with one more on either side to see the edges.
pub fn interval(result: &RunResult, step: Option<&Step>) -> (i64, i64) {
    let begin = step.map_or(result.started, |s| s.started + s.used.0 as f64 * s.window_s);
    let end = step.map_or(result.ended, |s| s.started + s.used.1 as f64 * s.window_s);
    (begin.floor() as i64 - 1, end.ceil() as i64 + 1)
}

/// The statistic that the run is about, by client.
pub fn statistic(result: &RunResult) -> String {
    let protocol = Target::protocol_of(&result.target);
    let what = if result.job.workload.is_stream() { "bytes" } else { "ops" };
    format!("{protocol}.{what}[client]")
}

/// The worksheet that shows a step with its latencies and the machine's CPU: a full URL when the
/// address of the server's interface is known, else only the path.
pub fn worksheet(result: &RunResult, step: Option<&Step>) -> String {
    let (from, to) = interval(result, step);
    let latency = format!("{}.ops[latency]", Target::protocol_of(&result.target));
    let panels = [statistic(result), latency, "cpu.utilization[mode]".to_owned()];
    let query: Vec<String> = panels
        .iter()
        .map(|stat| format!("w={}", stat.replace('[', "%5B").replace(']', "%5D")))
        .collect();
    let base = admin(result).unwrap_or_default();
    format!("{base}/analytics?{}&from={from}&to={to}", query.join("&"))
}

/// The server's browser interface, without a slash at the end. `None` when it was not asked.
pub fn admin(result: &RunResult) -> Option<String> {
    let services = result.server.status.as_ref()?["services"].as_array()?;
    let admin = services.iter().find(|service| service["name"] == "admin")?;
    let mut listen: SocketAddr = admin["listen"].as_str()?.parse().ok()?;
    if listen.ip().is_unspecified() {
        // It listens on all addresses; the one that the clients used is one of them.
        match host(&result.target)?.parse::<IpAddr>() {
            Ok(address) => listen.set_ip(address),
            Err(_) => return Some(format!("https://{}:{}", host(&result.target)?, listen.port())),
        }
    }
    Some(format!("https://{listen}"))
}

/// The host of a target URL, without the brackets of an IPv6 address (RFC 3986 §3.2.2).
fn host(target: &str) -> Option<&str> {
    let rest = target.split_once("://")?.1;
    let authority = rest.split('/').next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next()?,
        None => authority.split(':').next()?,
    };
    // What is no host name must not get into a link.
    let named = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    (!host.is_empty() && host.chars().all(named)).then_some(host)
}

#[cfg(test)]
mod tests;
