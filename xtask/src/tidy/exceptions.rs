//! The list of known exceptions: a file, a rule, how often, and why. A count may only fall.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Finding;

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    allow: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    path: String,
    rule: String,
    count: usize,
    reason: String,
}

/// Takes the excused findings out; adds one for an exception that excuses more than is there.
///
/// # Errors
/// A sentence when the list itself cannot be read.
pub fn apply(list: &str, findings: Vec<Finding>) -> Result<Vec<Finding>, String> {
    let list: List = toml::from_str(list).map_err(|e| format!("tidy-exceptions.toml: {e}"))?;
    let mut seen: BTreeMap<(String, String), Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        seen.entry((finding.path.clone(), finding.rule.to_owned())).or_default().push(finding);
    }
    let mut left = Vec::new();
    for exception in list.allow {
        let key = (exception.path.clone(), exception.rule.clone());
        let there = seen.remove(&key).unwrap_or_default();
        let say = |what: String| Finding {
            path: exception.path.clone(),
            line: 0,
            rule: "exception",
            what,
        };
        if exception.reason.trim().is_empty() {
            left.push(say(format!("the exception from {} gives no reason", exception.rule)));
        }
        if there.len() < exception.count {
            let (rule, count, now) = (&exception.rule, exception.count, there.len());
            left.push(say(format!(
                "{rule} is excused {count} times but found {now} times: lower it"
            )));
        } else if there.len() > exception.count {
            left.extend(there);
        }
    }
    left.extend(seen.into_values().flatten());
    Ok(left)
}
