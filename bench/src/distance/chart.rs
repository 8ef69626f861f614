//! The page with the charts: one for each job and kind of link, MB/s over the round trip. It loads
//! nothing from other hosts.

use std::fmt::Write;

use super::Outcome;
use super::data::Job;
use super::link::Kind;
use super::table::middle;

/// Width of a chart.
const WIDTH: f64 = 420.0;
/// Height of a chart.
const HEIGHT: f64 = 240.0;
/// Space for the scale at the left.
const LEFT: f64 = 44.0;
/// Space for the scale below.
const BELOW: f64 = 34.0;
/// Space for names at the right.
const RIGHT: f64 = 66.0;
/// Space above.
const ABOVE: f64 = 12.0;
/// Least distance of two names, in the chart's units.
const APART: f64 = 13.0;
/// Colours on light and on dark ground, by program.
const COLOURS: [(&str, &str); 5] = [
    ("#0b68cb", "#5aa9ff"),
    ("#c2410c", "#ff9a5c"),
    ("#a15c00", "#ffc166"),
    ("#15803d", "#5fd38d"),
    ("#7c3aed", "#b79bff"),
];
/// Styles of the page.
const STYLE: &str = ":root{color-scheme:light dark;--page:#fbfbfa;--ink:#1c2024;--soft:#60646c;\
    --line:#dfe1e4}@media(prefers-color-scheme:dark){:root{--page:#101214;--ink:#e8eaed;\
    --soft:#9aa0a8;--line:#2a2e33}}body{margin:0;background:var(--page);color:var(--ink);\
    font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}main{max-width:1320px;\
    margin:0 auto;padding:32px 24px 64px}h1{font-size:26px;font-weight:600;margin:0 0 4px}\
    h2{font-size:17px;font-weight:600;margin:32px 0 8px}p,li{color:var(--soft);max-width:90ch}\
    .row{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:24px}\
    figure{margin:0;min-width:0;max-width:440px}figcaption{font-size:13px;color:var(--soft)}\
    svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);\
    font:11px system-ui,sans-serif}.axis{stroke:var(--line)}.limit{stroke:var(--soft);\
    stroke-dasharray:3 3}polyline{fill:none;stroke-width:2}";

/// The whole page.
pub fn page(outcome: &Outcome) -> String {
    let mut text = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
    text += "<meta name=\"viewport\" content=\"width=device-width\">";
    text += "<title>Files over a distance</title><style>";
    text += STYLE;
    for (n, (light, dark)) in COLOURS.iter().enumerate() {
        let rule = |colour| {
            format!("polyline.c{n}{{stroke:{colour}}}circle.c{n},svg text.c{n}{{fill:{colour}}}")
        };
        let (light, dark) = (rule(light), rule(dark));
        text += &format!("{light}@media(prefers-color-scheme:dark){{{dark}}}");
    }
    text += "</style><main><h1>Files over a distance</h1>";
    text += &format!(
        "<p>10<sup>6</sup> bytes of content per second over a link of {:.0} Mbit/s (dashed), by \
         its round trip in milliseconds; medians of the rounds. Of a change it is the whole file \
         that counts, though little of it may cross the link. Hollow: the bridge was late in each \
         attempt.</p>",
        outcome.rate / 1e6
    );
    for job in &outcome.jobs {
        let bytes = outcome.bytes.get(job).map_or(0.0, |bytes| *bytes as f64 / 1e6);
        let title = match job {
            Job::Big => format!("One file of {bytes:.0} MB"),
            Job::Tree => format!("Files of 16 KiB, {bytes:.0} MB"),
            Job::Change => format!("One part in a hundred of the {bytes:.0} MB has changed"),
        };
        text += &format!("<h2>{title}</h2><div class=\"row\">");
        for kind in Kind::ALL {
            if outcome.points.iter().any(|point| point.kind == kind) {
                text += &chart(outcome, *job, kind);
            }
        }
        text += "</div>";
    }
    text += "<h2>What was run</h2><ul>";
    for (name, value) in outcome.programs.iter().chain(&outcome.notes) {
        text += &format!("<li>{}: {}</li>", plain(name), plain(value));
    }
    text + "</ul></main></html>\n"
}

fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A line of a chart.
struct Line {
    colour: usize,
    name: &'static str,
    /// Position, value, and whether the bridge was in time.
    dots: Vec<(f64, f64, bool)>,
}

fn chart(outcome: &Outcome, job: Job, kind: Kind) -> String {
    let here: Vec<(usize, f64)> = outcome
        .in_order()
        .into_iter()
        .filter_map(|n| outcome.points.get(n).map(|point| (n, point)))
        .filter(|(_, point)| point.kind == kind)
        .map(|(n, point)| (n, point.rtt_ms))
        .collect();
    // Equal distances between round trips: their values differ by orders of magnitude.
    let step = (WIDTH - LEFT - RIGHT) / (here.len().max(2) - 1) as f64;
    let x = |place: usize| LEFT + place as f64 * step;
    let line = |(colour, (name, _)): (usize, &(&'static str, String))| Line {
        colour,
        name,
        dots: here
            .iter()
            .enumerate()
            .filter_map(|(place, (n, _))| {
                let mid = middle(outcome, &(*n, job, name))?;
                Some((x(place), mid.mb_s, mid.condemned == 0))
            })
            .collect(),
    };
    let lines: Vec<Line> = outcome.programs.iter().enumerate().map(line).collect();
    let limit = outcome.rate / 8e6;
    let values = lines.iter().flat_map(|line| line.dots.iter().map(|dot| dot.1));
    let most = values.fold(limit, f64::max) * 1.05;
    let y = |value: f64| HEIGHT - BELOW - value / most * (HEIGHT - BELOW - ABOVE);
    let mut text = format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"MB/s over the round trip, {0}\">",
        kind.name()
    );
    let step = round_step(most / 4.0);
    let marks = (0..).map(|mark| f64::from(mark) * step);
    for value in marks.take_while(|value| *value <= most) {
        text += &rule("axis", y(value));
        text += &label(
            LEFT - 6.0,
            y(value) + 4.0,
            "end",
            "",
            &format!("{}", (value * 1e3).round() / 1e3),
        );
    }
    text += &rule("limit", y(limit));
    for (place, (_, rtt_ms)) in here.iter().enumerate() {
        text += &label(x(place), HEIGHT - BELOW + 16.0, "middle", "", &rtt_ms.to_string());
    }
    text += &drawn(&lines, &y);
    text + "</svg></figure>"
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let fits = [1.0, 2.0, 5.0].into_iter().map(|times| times * power).find(|step| *step >= least);
    fits.unwrap_or(10.0 * power)
}

fn rule(class: &str, y: f64) -> String {
    let end = WIDTH - RIGHT;
    format!("<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>")
}

fn label(x: f64, y: f64, anchor: &str, class: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
    )
}

fn drawn(lines: &[Line], y: &dyn Fn(f64) -> f64) -> String {
    let mut text = String::new();
    let mut names = Vec::new();
    for line in lines {
        let colour = line.colour % COLOURS.len();
        let mut points = String::new();
        for (x, value, _) in &line.dots {
            // Writing to a string cannot fail.
            let _ = write!(points, "{x:.1},{:.1} ", y(*value));
        }
        text += &format!("<polyline class=\"c{colour}\" points=\"{points}\"/>");
        for (x, value, good) in &line.dots {
            let hollow = if *good { "" } else { " fill-opacity=\"0.25\"" };
            text += &format!(
                "<circle class=\"c{colour}\"{hollow} cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3\">\
                 <title>{}: {value:.1} MB/s</title></circle>",
                y(*value),
                line.name
            );
        }
        if let Some((_, value, _)) = line.dots.last() {
            names.push((y(*value), colour, line.name));
        }
    }
    // From below upwards, each name above the last one.
    names.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut lowest = f64::INFINITY;
    for (at, colour, name) in names {
        let at = at.min(lowest - APART);
        lowest = at;
        text += &label(WIDTH - RIGHT + 8.0, at + 4.0, "start", &format!("c{colour}"), name);
    }
    text
}
