//! `/analytics` as a room of the tree: the retention of statistics and their size on disk, the
//! additional datasets, and saved worksheets.

mod datasets;

use std::collections::BTreeMap;
use std::sync::Arc;

use analytics::query::Engine;
use analytics::store::{Fidelity, Retention};
use base::node::{Path, Value};
use base::text::percent;
use probe::schema::schema;
use probe::stat::StatId;
use serde_json::Value as Json;

pub use datasets::{DatasetError, Datasets};

use crate::tree::{Actor, Apply, Document, Operational, Problem, Transition, Tree};

/// The room.
pub struct AnalyticsRoom {
    engine: Arc<Engine>,
    datasets: Arc<Datasets>,
    /// Worksheets are shown from the current configuration.
    tree: std::sync::Weak<Tree>,
}

fn datasets() -> Path {
    Path::of(&["analytics", "datasets"])
}

fn worksheets() -> Path {
    Path::of(&["analytics", "worksheets"])
}

impl AnalyticsRoom {
    /// Takes what `tree` has now.
    pub fn start(engine: Arc<Engine>, datasets: Arc<Datasets>, tree: &Arc<Tree>) -> Arc<Self> {
        let room = Self { engine, datasets, tree: Arc::downgrade(tree) };
        room.take(&tree.document());
        Arc::new(room)
    }

    fn take(&self, document: &Document) {
        let Some(store) = self.engine.store() else { return };
        let number = |property| {
            let set = document.integer(&datasets(), property);
            set.and_then(|n| u64::try_from(n).ok())
        };
        let default = Retention::default();
        let keep = ["keep_seconds", "keep_minutes", "keep_hours"];
        let keep = std::array::from_fn(|n| number(keep[n]).unwrap_or(default.keep[n]));
        store.set_retention(Retention { keep, bytes: number("size_max").unwrap_or(default.bytes) });
    }

    fn sizes(&self) -> Vec<(&'static str, Value)> {
        const NAMES: [(Fidelity, &str, &str); 3] = [
            (Fidelity::Second, "seconds_size", "seconds_since"),
            (Fidelity::Minute, "minutes_size", "minutes_since"),
            (Fidelity::Hour, "hours_size", "hours_since"),
        ];
        let Some(store) = self.engine.store() else { return Vec::new() };
        let count = |n: u64| Value::Integer(n.cast_signed());
        let mut states = Vec::new();
        let mut all = 0;
        for (fidelity, size, since) in NAMES {
            let bytes = store.bytes_of(fidelity);
            all += bytes;
            states.push((size, count(bytes)));
            states.push((since, count(store.since(fidelity).unwrap_or(0))));
        }
        states.push(("size", count(all)));
        states
    }
}

impl Apply for AnalyticsRoom {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        let document = transition.new;
        let wrong = |name: String| {
            let at = worksheets().join(&name);
            let panels = document.texts(&at, "panels");
            let why = panels.iter().find_map(|panel| wrong_panel(panel))?;
            let hint = "a panel is a statistic id, for example nfs.ops[client], optionally \
                followed by !line, !crop=PERCENT or !hl=KEY,KEY";
            Some(Problem::new(&at, &why, hint).property("panels"))
        };
        document.items(&worksheets()).into_iter().filter_map(wrong).collect()
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        self.take(transition.new);
        Ok(())
    }
}

impl Operational for AnalyticsRoom {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        if *path == datasets() {
            return self.sizes();
        }
        if Datasets::is_one(path) {
            return self.datasets.state(path.name().unwrap_or_default());
        }
        let item = path.parent() == Some(worksheets());
        let Some(tree) = self.tree.upgrade().filter(|_| item) else { return Vec::new() };
        vec![("address", Value::Text(address(&tree.document(), path)))]
    }

    fn items(&self, path: &Path) -> Vec<String> {
        if *path == datasets() { self.datasets.names() } else { Vec::new() }
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<Json, Problem> {
        match action {
            "keep" if *path == datasets() => {
                let stat = parameters.get("statistic").and_then(Value::as_text);
                let seconds = parameters.get("for").and_then(Value::as_integer);
                let seconds = seconds.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                self.datasets.asked(path, stat.unwrap_or_default(), seconds, &who.user)
            }
            "stop" | "destroy" if Datasets::is_one(path) => {
                self.datasets.end(path, action == "destroy")
            }
            _ => Err(Problem::unknown(path, &format!("unknown action {action}"), "")),
        }
    }
}

/// Where the options of a panel begin: at the first `!` outside of brackets.
fn divided(panel: &str) -> (&str, &str) {
    let (mut inside, mut escaped) = (false, false);
    for (at, letter) in panel.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '[' => inside = true,
            ']' => inside = false,
            '!' if !inside => return panel.split_at(at),
            _ => {}
        }
    }
    (panel, "")
}

/// Why a panel cannot be shown, if it cannot.
fn wrong_panel(panel: &str) -> Option<String> {
    let (stat, options) = divided(panel);
    let stat: StatId = match stat.parse() {
        Ok(stat) => stat,
        Err(e) => return Some(format!("{e}")),
    };
    if let Err(e) = schema().check(&stat) {
        return Some(e.to_string());
    }
    // Digits and a point: Rust's numbers may have a sign, an exponent, or a word.
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let range = |crop: f64| crop > 0.0 && crop < 100.0;
    let crop = |text: &str| plain(text) && text.parse().is_ok_and(range);
    let good = |option: &str| match option.split_once('=') {
        None => matches!(option, "line" | "stack"),
        Some(("crop", percent)) => crop(percent),
        Some((name, keys)) => name == "hl" && !keys.is_empty(),
    };
    let wrong = options.split('!').skip(1).find(|option| !good(option))?;
    Some(format!("unknown panel option {wrong:?}"))
}

/// The page that shows a worksheet, as the browser writes its address.
fn address(document: &Document, path: &Path) -> String {
    const PLAIN: &[u8] = b"-_.~!*'()[]=/,:";
    let panels = document.texts(path, "panels");
    let mut parts: Vec<String> = Vec::new();
    for panel in panels {
        parts.push(format!("w={}", percent(panel.as_bytes(), PLAIN)));
    }
    let span = document.integer(path, "span").unwrap_or(60);
    if span != 60 {
        parts.push(format!("span={span}"));
    }
    if parts.is_empty() {
        "/analytics".to_owned()
    } else {
        format!("/analytics?{}", parts.join("&"))
    }
}

#[cfg(test)]
mod tests;
