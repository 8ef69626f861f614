//! The handler of the log of transfers in the tree.

use std::collections::BTreeMap;

use base::limits::{TRANSFER_LOG_BYTES, TRANSFER_LOG_SHOWN};
use base::node::{Path, Value};
use serde_json::{Value as Json, json};

use super::{TransferFilter, Transfers};
use crate::tree::{Actor, Apply, Document, Operational, Problem, Subtree, Transition};

/// Where it is.
const PREFIX: [&str; 3] = ["maintenance", "logs", "transfers"];

impl Transfers {
    /// Takes what is set.
    pub fn take(&self, document: &Document) {
        let at = Path::of(&PREFIX);
        let kept = document.integer(&at, "size_max").and_then(|n| u64::try_from(n).ok());
        self.set(document.bool(&at, "record"), kept.unwrap_or(TRANSFER_LOG_BYTES));
    }

    /// Its branch of the tree.
    pub fn branch(self: &std::sync::Arc<Self>) -> Subtree {
        Subtree::new(&PREFIX, std::sync::Arc::clone(self))
    }
}

impl Apply for Transfers {
    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        self.take(transition.new);
        Ok(())
    }
}

impl Operational for Transfers {
    fn state(&self, _path: &Path) -> Vec<(&'static str, Value)> {
        let count = |n: u64| Value::Integer(n.cast_signed());
        let recent = self.recent();
        let (written, dropped) = self.counts();
        vec![
            ("written", count(written)),
            ("dropped", count(dropped)),
            ("problem", Value::Text(self.problem().unwrap_or_default())),
            ("recent", Value::texts(recent.iter().map(super::Record::sentence))),
        ]
    }

    fn act(
        &self,
        path: &Path,
        _action: &str,
        parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<Json, Problem> {
        let text = |name: &str| Some(parameters.get(name)?.as_text()?.to_owned());
        let number = |name: &str| u64::try_from(parameters.get(name)?.as_integer()?).ok();
        let wanted = TransferFilter {
            since: number("since"),
            until: number("until"),
            protocol: text("protocol"),
            direction: text("direction"),
            outcome: text("outcome"),
            user: text("user"),
            client: text("client"),
            share: text("share"),
            limit: number("limit").map_or(TRANSFER_LOG_SHOWN, |n| n as usize),
        };
        let rows = self.read(&wanted).map_err(|e| Problem::server(path, &e.to_string()))?;
        Ok(json!({ "rows": rows, "columns": COLUMNS }))
    }
}

/// What people read of a record, in this order.
const COLUMNS: [&str; 9] =
    ["end", "protocol", "direction", "outcome", "bytes", "user", "client", "share", "path"];
