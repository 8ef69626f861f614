//! What is written matches the published schemas (docs/formats), and what does not is found.

use super::made_up;
use crate::limits::{Cell, Column, Row, Summary};
use crate::measure::{Disturbed, OverRuns, Until};
use crate::record::RunResult;
use serde_json::{Value, json};

const SUMMARY: &str = include_str!("../../../../../docs/formats/summary.schema.json");
const RESULT: &str = include_str!("../../../../../docs/formats/result.schema.json");

/// Where a value is not as the schema has it, as far as these schemas go (JSON Schema 2020-12).
fn faults(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = root.pointer(name.trim_start_matches('#')).expect("a definition");
        return faults(root, schema, value, at, found);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |schema: &&Value| {
            let mut found = Vec::new();
            faults(root, schema, value, at, &mut found);
            found.is_empty()
        };
        if !any.iter().any(|schema| fits(&schema)) {
            found.push(format!("{at}: none of the alternatives"));
        }
        return;
    }
    let is = |kind: &Value| match kind.as_str().expect("a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other}"),
    };
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let allowed = schema["enum"].as_array();
    let fits = (kinds.is_empty() || kinds.iter().any(is))
        && allowed.is_none_or(|allowed| allowed.contains(value))
        && (schema["const"].is_null() || schema["const"] == *value);
    if !fits {
        found.push(format!("{at}: {value}"));
    }
    for item in value.as_array().into_iter().flatten() {
        faults(root, &schema["items"], item, &format!("{at}[]"), found);
    }
    let Some(object) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        if !object.contains_key(name) {
            found.push(format!("{at}: no {name}"));
        }
    }
    for (name, value) in object {
        match &schema["properties"][name] {
            Value::Null if schema["additionalProperties"] == false => {
                found.push(format!("{at}: {name} is not in the schema"));
            }
            Value::Null => {}
            schema => faults(root, schema, value, &format!("{at}.{name}"), found),
        }
    }
}

pub(crate) fn all_faults(schema: &str, value: &Value) -> Vec<String> {
    let (schema, mut found) = (serde_json::from_str(schema).expect("a schema"), Vec::new());
    faults(&schema, &schema, value, "", &mut found);
    found
}

fn run() -> RunResult {
    let mut run = made_up();
    run.disturbed = Some(Disturbed { others: 0.2, repeated: 1, still: true });
    run.over_runs = Some(OverRuns::of(&[1.0; 7], Until { to: 0.03, rounds: 12 }));
    run
}

#[test]
fn results_match_their_schema() {
    let value = serde_json::to_value(run()).unwrap();
    assert_eq!(all_faults(RESULT, &value), [""; 0]);
    let first = serde_json::from_str(include_str!("../../../tests/data/result-1.json")).unwrap();
    assert_eq!(all_faults(RESULT, &first), [""; 0], "of format 1, too");
}

#[test]
fn summaries_match_their_schema() {
    let cells = vec![crate::limits::cell(&run(), "a/b"), Cell::not_measured("no route", true)];
    let column = || Column { name: "a".into(), ..Column::default() };
    let summary = Summary {
        format: crate::record::VERSION,
        columns: vec![column(), column()],
        rows: vec![Row { unit: "ops/s".into(), cells, ..Row::default() }],
        ..Summary::default()
    };
    let mut value = serde_json::to_value(summary).unwrap();
    assert_eq!(all_faults(SUMMARY, &value), [""; 0]);
    value["rows"][0]["cells"][0]["limiter"] = "the moon".into();
    value["rows"][0]["cells"][1]["extra"] = json!(1);
    value["columns"][0].as_object_mut().unwrap().remove("name");
    let found = all_faults(SUMMARY, &value).join("; ");
    for part in ["limiter: \"the moon\"", "extra is not in the schema", "no name"] {
        assert!(found.contains(part), "{part} in {found}");
    }
}
