//! An appliance that answers with what it was asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::appliance::{ActingAs, Appliance, Ask, AskError, Engine, Feed, Heard, JsonText, Status};

#[derive(Default)]
pub struct Fake {
    off: AtomicBool,
}

impl Fake {
    pub fn switched_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }
}

impl Appliance for Fake {
    fn status(&self) -> Status {
        Status {
            name: "test".into(),
            version: "0".into(),
            started: 1,
            now: 2,
            pid: 3,
            healthy: true,
            problems: Vec::new(),
            acting_as: ActingAs { privileged: true, user: "root".into(), note: "n".into() },
            shares: Vec::new(),
            services: Vec::new(),
            budgets: Vec::new(),
        }
    }

    fn engine(&self) -> &dyn Engine {
        self
    }
}

fn known(stat: &str) -> Result<(), AskError> {
    if stat.starts_with("no.") {
        let failed = format!("there is no statistic {stat}");
        return Err(AskError::Wrong { failed, hint: "nfs3.ops".into() });
    }
    Ok(())
}

impl Engine for Fake {
    fn statistics(&self) -> JsonText {
        r#"[{"id": "nfs3.ops"}]"#.into()
    }

    fn data(&self, ask: &Ask) -> Result<JsonText, AskError> {
        known(&ask.stat)?;
        let Ask { stat, from, to, step, top, source } = ask;
        let mut answer = json!({ "stat": stat, "from": from, "to": to, "step": step, "top": top });
        if let Some(source) = source {
            answer["source"] = json!(source);
        }
        Ok(answer.to_string())
    }

    fn subscribe(&self, stats: &[String]) -> Result<Box<dyn Feed>, AskError> {
        stats.iter().try_for_each(|stat| known(stat))?;
        let second: Vec<_> = stats.iter().map(|s| json!({ "stat": s }).to_string()).collect();
        let heard = vec![
            Heard::End,
            Heard::Second(second.clone()),
            Heard::Nothing,
            Heard::Lost(3),
            Heard::Second(second),
        ];
        Ok(Box::new(Script { heard }))
    }

    fn recorder(&self) -> JsonText {
        r#"{"bytes": 64}"#.into()
    }

    fn set_collect(&self, on: bool) {
        self.off.store(!on, Ordering::SeqCst);
    }
}

/// Plays `heard` from its end.
struct Script {
    heard: Vec<Heard>,
}

impl Feed for Script {
    fn next(&mut self, _wait: Duration) -> Heard {
        self.heard.pop().unwrap_or(Heard::End)
    }
}
