//! Values between JSON and the tree.

use base::node::{Kind, Value};
use serde_json::Value as Json;

/// As JSON.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(on) => Json::from(*on),
        Value::Integer(n) => Json::from(*n),
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(list) => Json::Array(list.iter().map(to_json).collect()),
    }
}

/// From JSON. A text is read as [`Kind::parse`] does, whatever the kind: `"64M"`, `"on"`.
///
/// # Errors
/// One sentence.
pub fn from_json(kind: &Kind, json: &Json) -> Result<Value, String> {
    match (kind, json) {
        (Kind::Text { .. } | Kind::Choice(_), Json::String(text)) => {
            let value = Value::text(text);
            kind.check(&value).map(|()| value)
        }
        (_, Json::String(text)) => kind.parse(text),
        _ => {
            let wrong = || format!("expected {}", kind.described());
            let value = plain(json).ok_or_else(wrong)?;
            kind.check(&value).map(|()| value)
        }
    }
}

fn plain(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Bool(on) => Value::Bool(*on),
        Json::Number(n) => Value::Integer(n.as_i64()?),
        Json::String(text) => Value::text(text),
        Json::Array(list) => Value::List(list.iter().map(plain).collect::<Option<_>>()?),
        Json::Null | Json::Object(_) => return None,
    })
}
