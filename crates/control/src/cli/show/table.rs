//! Tables: items, earlier configurations, the audit log, and whatever an action answers.

use base::text::visible;
use base::units::utc;
use serde_json::Value as Json;

/// Lines of cells with their columns aligned; the last column is as long as it is.
pub fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

/// A text as it is.
pub fn plain(answer: &Json) -> String {
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

/// A list of objects as a table with these columns; times as people read them.
fn objects(list: &Json, columns: &[(&str, &str)]) -> String {
    let head = columns.iter().map(|(_, title)| (*title).to_owned()).collect();
    let rows = list.as_array().into_iter().flatten().map(|object| {
        columns.iter().map(|(name, _)| cell(name, object.get(name))).collect::<Vec<_>>()
    });
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    align(&lines)
}

fn cell(name: &str, value: Option<&Json>) -> String {
    match value {
        None | Some(Json::Null) => "-".to_owned(),
        Some(Json::Number(n)) if name == "when" => {
            n.as_f64().map_or_else(|| n.to_string(), |seconds| utc(seconds as i64))
        }
        Some(Json::String(text)) if text.is_empty() => "-".to_owned(),
        Some(Json::String(text)) => visible(&text.replace('\n', " ")).into_owned(),
        Some(Json::Bool(on)) => if *on { "on" } else { "off" }.to_owned(),
        Some(Json::Array(list)) if list.iter().all(Json::is_object) => list.len().to_string(),
        Some(Json::Array(list)) => {
            let texts: Vec<String> = list.iter().map(|one| cell("", Some(one))).collect();
            texts.join(",")
        }
        Some(other) => other.to_string(),
    }
}

/// Earlier configurations, newest last, in the order of the server.
pub fn history(list: &Json) -> String {
    objects(
        list,
        &[
            ("revision", "REVISION"),
            ("when", "WHEN (UTC)"),
            ("who", "WHO"),
            ("from", "FROM"),
            ("changes", "CHANGES"),
            ("comment", "COMMENT"),
        ],
    )
}

/// The audit log.
pub fn audit(answer: &Json) -> String {
    let list = answer.get("rows").unwrap_or(answer);
    let rows = list.as_array().into_iter().flatten().map(|entry| {
        let of = |name: &str| cell(name, entry.get(name));
        let what = match of("property").as_str() {
            "-" => of("action"),
            property => format!("{} {property}", of("action")),
        };
        let mut row: Vec<String> = ["when", "who", "from", "path"].iter().map(|n| of(n)).collect();
        row.push(what);
        row.extend([of("before"), of("after")]);
        row
    });
    let head = ["WHEN (UTC)", "WHO", "FROM", "PATH", "WHAT", "BEFORE", "AFTER"];
    let head = head.iter().map(|title| (*title).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    align(&lines)
}

/// Differences: a text as it is, a list of changes one a line.
pub fn changes(answer: &Json) -> String {
    let list = answer.get("changes").unwrap_or(answer);
    let Some(list) = list.as_array() else { return plain(list) };
    if list.is_empty() {
        return "no difference\n".to_owned();
    }
    let line = |change: &Json| {
        let of = |name: &str| cell(name, change.get(name));
        match of("property").as_str() {
            // An item that has come or gone.
            "-" if of("before") == "-" => format!("{}: made\n", of("path")),
            "-" => format!("{}: gone\n", of("path")),
            property => {
                format!("{} {property}: {} -> {}\n", of("path"), of("before"), of("after"))
            }
        }
    };
    list.iter().map(line).collect()
}

/// What a restore or an import has changed.
pub fn changed(answer: &Json) -> String {
    let revision = answer.get("revision").and_then(Json::as_u64);
    let revision = revision.map(|revision| format!("revision {revision}\n"));
    would_change(answer) + &revision.unwrap_or_default()
}

/// What an import would change.
pub fn would_change(answer: &Json) -> String {
    let notes = answer.get("notes").and_then(Json::as_array).into_iter().flatten();
    let notes = notes.filter_map(Json::as_str).map(|note| format!("note: {note}\n"));
    changes(answer) + &notes.collect::<String>()
}

/// What an action answers, whatever it is.
pub fn result(result: &Json) -> String {
    match result {
        Json::Null => String::new(),
        Json::Object(table) if table.contains_key("rows") && table.contains_key("columns") => {
            let names = table["columns"].as_array().into_iter().flatten().filter_map(Json::as_str);
            let titles: Vec<(&str, String)> =
                names.map(|name| (name, name.to_uppercase())).collect();
            let columns: Vec<(&str, &str)> =
                titles.iter().map(|(name, title)| (*name, title.as_str())).collect();
            match table["rows"].as_array() {
                Some(rows) if rows.is_empty() => "none\n".to_owned(),
                _ => objects(&table["rows"], &columns),
            }
        }
        Json::Object(object) => object
            .iter()
            .map(|(name, value)| format!("{name} = {}\n", cell(name, Some(value))))
            .collect(),
        Json::Array(list) if list.iter().all(Json::is_object) => {
            let Some(first) = list.first().and_then(Json::as_object) else {
                return "none\n".to_owned();
            };
            let titles: Vec<(String, String)> =
                first.keys().map(|name| (name.clone(), name.to_uppercase())).collect();
            let columns: Vec<(&str, &str)> =
                titles.iter().map(|(name, title)| (name.as_str(), title.as_str())).collect();
            objects(result, &columns)
        }
        Json::Array(list) => list.iter().map(|one| cell("", Some(one)) + "\n").collect(),
        Json::Bool(_) => cell("", Some(result)) + "\n",
        other => plain(other),
    }
}
