//! Property values: from what is typed to the JSON that the API takes, and back to what can be
//! typed again. Ranges and shapes are the server's to check.

use std::net::Ipv6Addr;

use base::local_time::{self, LocalClock};
use base::node::{parse_bytes, parse_seconds, show_bytes};
use base::text::signed;
use serde_json::Value as Json;

use super::declared::{Kind, did_you_mean};

/// The value that `text` means.
///
/// # Errors
/// One sentence: what it should be.
pub fn parse(kind: &Kind, text: &str) -> Result<Json, String> {
    match kind.base.as_str() {
        "bool" => match text {
            "on" | "true" | "yes" => Ok(Json::Bool(true)),
            "off" | "false" | "no" => Ok(Json::Bool(false)),
            _ => Err(format!("'{text}' is neither on nor off")),
        },
        "integer" => {
            signed(text).map(Json::from).ok_or_else(|| format!("'{text}' is not a number"))
        }
        "time" => LocalClock::of_machine()
            .parse(text)
            .map(Json::from)
            .ok_or_else(|| format!("'{text}' is not a point of time: use {}", local_time::FORMS)),
        "bytes" => parse_bytes(text)
            .map(Json::from)
            .ok_or_else(|| format!("'{text}' is not a size such as 512, 64K or 10G")),
        "seconds" => parse_seconds(text)
            .map(Json::from)
            .ok_or_else(|| format!("'{text}' is not a time such as 90, 90s, 15m or 2h")),
        "choice" => choice(kind, text),
        "list" => list(kind, text),
        _ => Ok(Json::String(text.to_owned())),
    }
}

fn choice(kind: &Kind, text: &str) -> Result<Json, String> {
    let choices = kind.choices.as_deref().unwrap_or_default();
    if choices.iter().any(|choice| choice.value == text) {
        return Ok(Json::String(text.to_owned()));
    }
    let values = || choices.iter().map(|choice| choice.value.as_str());
    let hint = did_you_mean(text, values());
    let all: Vec<&str> = values().collect();
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    Err(format!("'{text}' is not one of {}{hint}", all.join(", ")))
}

/// Elements between commas, or a JSON array.
fn list(kind: &Kind, text: &str) -> Result<Json, String> {
    let text = text.trim();
    if text.starts_with('[')
        && let Ok(Json::Array(elements)) = serde_json::from_str(text)
    {
        return Ok(Json::Array(elements));
    }
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let text = match inner {
        Some(inner) if inner.parse::<Ipv6Addr>().is_err() => inner,
        _ => text,
    };
    let any = Kind { base: "text".to_owned(), ..Kind::default() };
    let of = kind.of.as_deref().unwrap_or(&any);
    let elements = elements(text).into_iter().map(|element| parse(of, &element));
    Ok(Json::Array(elements.collect::<Result<_, _>>()?))
}

/// Splits at commas outside parentheses and double quotes: `10.0.0.0/8(rw,sync),"a, b"` has two
/// elements. Empty ones are left out.
fn elements(text: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut parts) = (0_usize, false, vec![(String::new(), false)]);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let Some((part, was_quoted)) = parts.last_mut() else { break };
        match letter {
            '\\' if quoted => part.extend(letters.next()),
            '"' if quoted => quoted = false,
            '"' if part.trim().is_empty() => {
                part.clear();
                (quoted, *was_quoted) = (true, true);
            }
            ',' if depth == 0 && !quoted => parts.push((String::new(), false)),
            // Blanks between the quotes and the comma.
            _ if *was_quoted && !quoted && letter.is_whitespace() => {}
            _ => {
                depth = match letter {
                    '(' if !quoted => depth + 1,
                    ')' if !quoted => depth.saturating_sub(1),
                    _ => depth,
                };
                part.push(letter);
            }
        }
    }
    let whole = |(part, quoted): (String, bool)| match quoted {
        true => part,
        false => part.trim().to_owned(),
    };
    parts.into_iter().map(whole).filter(|part| !part.is_empty()).collect()
}

/// An element so that [`elements`] finds it again.
fn element(text: String) -> String {
    if elements(&text) == [text.as_str()] && !text.starts_with('"') {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A value as it can be typed again; a time as a person reads it.
pub fn print(kind: &Kind, value: &Json) -> String {
    match (kind.base.as_str(), value) {
        (_, Json::Null) => "-".to_owned(),
        (_, Json::Bool(on)) => if *on { "on" } else { "off" }.to_owned(),
        ("bytes", Json::Number(n)) => n.as_u64().map_or_else(|| n.to_string(), show_bytes),
        ("seconds", Json::Number(n)) => format!("{n}s"),
        ("time", Json::Number(n)) => {
            n.as_i64().map_or_else(|| n.to_string(), |second| LocalClock::of_machine().show(second))
        }
        (_, Json::String(text)) => text.clone(),
        (_, Json::Array(elements)) => {
            let any = Kind::default();
            let of = kind.of.as_deref().unwrap_or(&any);
            let texts = elements.iter().map(|one| element(print(of, one)));
            texts.collect::<Vec<_>>().join(",")
        }
        (_, other) => other.to_string(),
    }
}
