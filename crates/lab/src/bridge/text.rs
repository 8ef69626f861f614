//! How a bridge stands, for people.

use base::units;
use serde_json::Value;

use super::shape::{Shape, Spread};
use super::status::{EndStatus, Status};
use super::tally::Snapshot;

fn time(ns: u64) -> String {
    units::time_ns(ns as f64)
}

fn percent(share: f64) -> String {
    // Shares are given with few digits; what a float adds behind them is none of theirs.
    let text = format!("{:.6}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// What a direction does, in a line.
pub fn shape(shape: &Shape, rtt_ns: u64) -> String {
    let mut parts = vec![format!("delay {}", time(shape.delay_ns))];
    let mut add = |on: bool, text: String| parts.extend(on.then_some(text));
    let spread = if shape.spread == Spread::Normal { " (normal)" } else { "" };
    add(shape.jitter_ns > 0, format!("jitter {}{spread}", time(shape.jitter_ns)));
    if let Some(rate) = shape.rate {
        add(true, format!("rate {}bit/s", units::count(rate as f64)));
        add(true, format!("queue {}", units::bytes(shape.queue_bytes(rtt_ns) as f64)));
    }
    add(shape.overhead > 0, format!("{} B overhead per packet", shape.overhead));
    let burst =
        if shape.burst > 1.0 { format!(" in bursts of {}", shape.burst) } else { "".into() };
    add(shape.loss > 0.0, format!("loss {}{burst}", percent(shape.loss)));
    let by = time(shape.reorder_by_ns);
    add(shape.reorder > 0.0, format!("{} reordered by {by}", percent(shape.reorder)));
    add(shape.duplicate > 0.0, format!("{} twice", percent(shape.duplicate)));
    add(shape.corrupt > 0.0, format!("{} damaged", percent(shape.corrupt)));
    parts.join(", ")
}

fn end(end: &EndStatus) -> String {
    match end.device.is_empty() {
        true => end.place.clone(),
        false => format!("{} (device {}, {})", end.place, end.device, end.address),
    }
}

/// What can be tried now.
pub fn ready(status: &Status) -> String {
    let [first, second] = &status.ends;
    let mut text = format!("{} is up: {} to {}\n", status.name, end(first), end(second));
    text += &directions(status);
    if !second.address.is_empty() {
        let from = match first.place.split_once(':') {
            Some(("ns", name)) => format!("ip netns exec {name} "),
            Some((_, pid)) => format!("nsenter -t {pid} -n "),
            None => String::new(),
        };
        text += &format!("  try it:     {from}ping {}\n", second.address);
    }
    let name = &status.name;
    text += &format!("  change it:  plimsoll bridge set {name} delay=50ms\n");
    text += &format!("  status:    plimsoll bridge show {name}\n");
    if !status.goes_first {
        text += "  no real-time priority (CAP_SYS_NICE): packets may be late on a busy machine\n";
    }
    text
}

fn directions(status: &Status) -> String {
    let rtt_ns = status.set.rtt_ns();
    let sealed = if status.encrypted { ", encrypted with AES-256-GCM" } else { "" };
    let (forth, back) = (shape(&status.set.forth, rtt_ns), shape(&status.set.back, rtt_ns));
    if forth == back {
        return format!("  each way: {forth}{sealed}\n");
    }
    format!("  forth: {forth}{sealed}\n  back: {back}{sealed}\n")
}

/// How it stands.
pub fn status(status: &Status) -> String {
    let [first, second] = &status.ends;
    let mut text = format!("{}: {} to {}\n", status.name, end(first), end(second));
    text += &directions(status);
    text += &format!("  runs for {:.1} s, seed {}\n", status.ran_s, status.seed);
    for (name, direction) in [("forth", &status.forth), ("back", &status.back)] {
        text += &format!("  {name}: {}\n", counts(direction));
    }
    text + &verdict(status)
}

fn counts(of: &Snapshot) -> String {
    let mut parts = vec![format!(
        "{} packets in ({}), {} out ({}), {} in flight",
        of.packets_in,
        units::bytes(of.bytes_in as f64),
        of.packets_out,
        units::bytes(of.bytes_out as f64),
        of.under_way,
    )];
    let dropped = &of.dropped;
    let others = [
        (of.twice, "twice"),
        (of.damaged, "damaged"),
        (of.held, "held back"),
        (dropped.lost, "lost"),
        (dropped.queue_full, "dropped by the queue"),
        (dropped.refused, "refused"),
        (dropped.no_room, "without room"),
        (dropped.overrun, "not read in time"),
    ];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{count} {what}")));
    if of.queue_bytes_max > 0 {
        let (now, most) = (of.queue_bytes as f64, of.queue_bytes_max as f64);
        let (now, most) = (units::bytes(now), units::bytes(most));
        parts.push(format!("queue {now}, at most {most}"));
    }
    let late = &of.lateness;
    if late.packets > 0 {
        parts.push(format!(
            "late by {} (median), {} (p99), {} (max)",
            time(late.p50_ns),
            time(late.p99_ns),
            time(late.max_ns)
        ));
    }
    parts.join("; ")
}

/// Whether figures measured over it mean something.
pub fn verdict(status: &Status) -> String {
    if status.is_good() {
        let tolerance = time(status.tolerance_ns);
        return format!("  valid: 99 of 100 packets were late by less than {tolerance}\n");
    }
    let why: Vec<String> = status.why.iter().map(|why| format!("    {why}\n")).collect();
    format!("  INVALID, discard measurements made over the link:\n{}", why.concat())
}

/// The status as the reply to a request: with a text for users in addition to the figures.
pub fn answered(status: &Status) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(status)?;
    value["text"] = self::status(status).into();
    Ok(value)
}
