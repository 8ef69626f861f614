//! A sweep as text for a terminal.

use super::record::{Point, Sweep};
use base::units::{bytes, time_ns};

impl Sweep {
    /// The table of all points, and what is wrong with some.
    pub fn text(&self) -> String {
        let plan = &self.plan;
        let mut out = format!(
            "{}, over {}bit/s ({}/s of payload), each {}\n",
            plan.title,
            base::units::count(plan.rate as f64),
            bytes(self.link_bytes_s),
            match plan.repeats {
                1 => "once".to_owned(),
                n => format!("{n} times"),
            },
        );
        if plan.figure.is_some() {
            out += "Buffer sizes are those of the report; here they are scaled with the link \
                rate.\n";
        }
        out += &format!(
            "\n{:>7}  {:>9}  {:>9} {:>2}  {:>7} {:>6}  {:>13}  {:>13}  {:>8}  limited by\n",
            "rtt", "measured", "window", "×", "control", "sealed", "median", "model", "off",
        );
        for point in &self.points {
            out += &self.row(point);
        }
        out.push('\n');
        for what in &self.degraded {
            out += &format!("degraded: {what}\n");
        }
        out
    }

    fn row(&self, point: &Point) -> String {
        let at = &point.at;
        let sealed = if at.encrypt { "yes" } else { "no" };
        let window = bytes(self.plan.source_window(at.window));
        let rtt = point.figures.map_or("–".to_owned(), |f| time_ns(f.rtt_s * 1e9));
        let head = format!(
            "{:>7}  {rtt:>9}  {window:>9} {:>2}  {:>7} {sealed:>6}",
            format!("{} ms", at.rtt_ms),
            at.instances,
            at.congestion,
        );
        let Some(figures) = &point.figures else {
            return format!("{head}  SPOILED\n");
        };
        let rate = |v: f64| format!("{}/s", bytes(v));
        format!(
            "{head}  {:>13}  {:>13}  {:>8}  {}\n",
            rate(figures.bytes_s.median),
            rate(figures.predicted),
            format!("{:+.1} %", figures.off_percent),
            figures.limiter.title(),
        )
    }
}
