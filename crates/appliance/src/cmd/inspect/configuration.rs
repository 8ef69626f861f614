//! The configuration's files: a revision or an export, the secrets, the audit log.

use control::tree::audit::Record;
use control::tree::json::to_json;
use control::tree::text;
use serde_json::{Map, Value, json};

use super::Inspected;
use crate::tree::ROOT;

/// How every configuration begins.
const HEAD: &str = "# A configuration of Plimsoll";

/// The content of such a file.
pub fn recognise(name: &str, content: &str) -> Option<Inspected> {
    if content.starts_with(HEAD) {
        return Some(configuration(content));
    }
    if name == "secrets.json" {
        return secrets(content).map(Inspected::from);
    }
    name.starts_with("audit.log").then(|| audit(content))?
}

/// A configuration is readable as it is: the text is the file, the value is checked.
fn configuration(content: &str) -> Inspected {
    let value = match text::read(&ROOT, content) {
        Ok((document, revision)) => {
            let mut nodes = Map::new();
            for (path, settings) in document.nodes() {
                let settings = settings.iter().map(|(name, value)| (name.clone(), to_json(value)));
                nodes.insert(path.to_string(), Value::Object(settings.collect()));
            }
            json!({ "format": "configuration", "revision": revision, "nodes": nodes })
        }
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            json!({ "format": "configuration", "problems": problems })
        }
    };
    let mut shown = content.to_owned();
    for problem in value["problems"].as_array().into_iter().flatten() {
        shown += &format!("# problem: {}\n", problem.as_str().unwrap_or(""));
    }
    Inspected { value, text: shown }
}

/// The nodes and properties that have secrets; never the values.
fn secrets(content: &str) -> Option<Value> {
    let file: Value = serde_json::from_str(content).ok()?;
    let of = |one: &Value| Some(format!("{} {}", one["path"].as_str()?, one["property"].as_str()?));
    let secrets: Vec<String> = file["secrets"].as_object()?.values().filter_map(of).collect();
    Some(json!({ "format": "secrets of the configuration", "secrets": secrets }))
}

fn audit(content: &str) -> Option<Inspected> {
    let records: Vec<Record> =
        content.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if records.is_empty() {
        return None;
    }
    let mut text = String::from("audit log\n");
    for record in &records {
        let when = base::units::utc(record.when.cast_signed());
        let Record { who, from, action, path, .. } = record;
        let property = record.property.as_deref().unwrap_or("");
        let values = match (&record.before, &record.after) {
            (Value::Null, Value::Null) => record.detail.clone(),
            (before, after) => format!("{before} -> {after}"),
        };
        text += &format!("  {when}  {who} from {from}: {action} {path} {property} {values}");
        text = text.trim_end().to_owned() + "\n";
    }
    Some(Inspected { value: json!({ "format": "audit log", "records": records }), text })
}
