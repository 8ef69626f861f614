//! A comparison as text for a terminal.

use super::record::{Comparison, Direction, Line};
use super::stats::Middle;
use base::units::bytes;

impl Comparison {
    /// The tables, throughput each way and CPU at both ends, and what they say.
    pub fn text(&self) -> String {
        let plan = &self.plan;
        let mut out = format!(
            "{}: {} of {}, {} over {}, {} rounds\n",
            plan.title,
            many(plan.files.into(), "file"),
            bytes(plan.file_size as f64),
            bytes(plan.bytes() as f64),
            many(plan.streams.into(), "connection"),
            plan.rounds,
        );
        for way in Direction::BOTH {
            out += &self.table(way);
        }
        out.push('\n');
        for sentence in &self.findings {
            out += &format!("- {sentence}\n");
        }
        out.push('\n');
        for line in &self.lines {
            out += &format!("{}: {}\n", line.protocol, line.about());
        }
        for what in &self.degraded {
            out += &format!("degraded: {what}\n");
        }
        if let Some(what) = &self.failed {
            out += &format!("failed: {what}\n");
        }
        out
    }

    fn table(&self, way: Direction) -> String {
        let mut out = format!(
            "\n{:<18} {:>14}  {:>27}  {:>11}  {:>12}  {:>12}\n",
            way.name(),
            "median",
            "95 % interval",
            "of plain",
            "client s/GB",
            "server s/GB"
        );
        for line in &self.lines {
            let Some(figures) = line.figures(way) else {
                out += &format!("{:<18} {:>14}\n", line.protocol, "no figure");
                continue;
            };
            let rate = |v: f64| format!("{}/s", bytes(v));
            let sure = if figures.bytes_s.is_sure() { "" } else { "?" };
            out += &format!(
                "{:<18} {:>14}  {:>27}  {:>11}  {:>12}  {:>12}\n",
                line.protocol,
                rate(figures.bytes_s.median),
                format!("{} – {}{sure}", rate(figures.bytes_s.low), rate(figures.bytes_s.high)),
                figures.to_plain.map_or("–".into(), |m| format!("{:.0} %", m.median * 100.0)),
                cpu(Some(&figures.client_cpu_s_gb)),
                cpu(figures.server_cpu_s_gb.as_ref()),
            );
        }
        out
    }
}

impl Line {
    /// Target, cipher, how the server was verified.
    fn about(&self) -> String {
        let without = if self.secure { "no encryption" } else { "no protection" };
        let cipher = self.cipher.as_deref().unwrap_or(without);
        let identity = match self.identity.as_str() {
            "insecure" => ", server not verified",
            "pin" => ", server verified by its pin",
            "authority" => ", server verified",
            _ => "",
        };
        let failed = self.failed.as_ref().map(|why| format!("; abandoned: {why}"));
        format!("{cipher}{identity}, {}{}", self.target, failed.unwrap_or_default())
    }
}

fn cpu(middle: Option<&Middle>) -> String {
    middle.map_or("unseen".into(), |m| format!("{:.2}", m.median))
}

fn many(n: u64, what: &str) -> String {
    if n == 1 { format!("{n} {what}") } else { format!("{n} {what}s") }
}
