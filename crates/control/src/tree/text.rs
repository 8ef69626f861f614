//! A configuration as a file: TOML, one table for each node, in the order of their paths
//! (`docs/formats/configuration.md`).

use std::fmt::Write;

use base::limits::CONFIGURATION_BYTES_MAX;
use base::node::{Context, Kind, Origin, Path, Property, Role, Value};
use toml::Table;
use toml::de::DeTable;

use super::document::Document;
use super::{Problem, Revision};

/// The only form so far.
const FORMAT: i64 = 1;
/// What stands for a secret in an export.
pub const SECRET: &str = "(secret)";

/// The text of a revision, for the state directory.
pub fn write_revision(document: &Document, revision: &Revision) -> String {
    let mut text = String::from("# A configuration of Plimsoll: docs/formats/configuration.md\n");
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    // Writing to a String does not fail.
    let _ = write!(
        text,
        "format = {FORMAT}\n\n[revision]\nnumber = {}\nwhen = {}\nwho = {}\nfrom = {}\n\
         comment = {}\nchanges = {}\n",
        revision.number,
        revision.when,
        quoted(&revision.who),
        quoted(&revision.from),
        quoted(&revision.comment),
        revision.changes,
    );
    text + &nodes(document, false)
}

/// The text of an export: without secrets, and without anything that differs between two servers
/// with the same configuration but a comment.
pub fn write_export(document: &Document, heading: &str) -> String {
    let heading = heading.replace(char::is_control, " ");
    format!(
        "# A configuration of Plimsoll: docs/formats/configuration.md\n# {heading}\n\
         format = {FORMAT}\n{}",
        nodes(document, true)
    )
}

fn nodes(document: &Document, export: bool) -> String {
    let mut text = String::new();
    for (path, settings) in document.nodes() {
        let place = document.place(path);
        let name = toml::Value::String(path.to_string()).to_string();
        // Writing to a String does not fail.
        let _ = writeln!(text, "\n[{name}]");
        for (property, value) in settings {
            let declared = place.and_then(|place| place.context.property(property));
            let secret = declared.is_some_and(|declared| declared.role == Role::Secret);
            let _ = match secret && export {
                true => writeln!(text, "{property} = \"{SECRET}\" # set, not exported"),
                false => writeln!(text, "{property} = {}", to_toml(value)),
            };
        }
    }
    text
}

fn to_toml(value: &Value) -> toml::Value {
    match value {
        Value::Bool(on) => toml::Value::Boolean(*on),
        Value::Integer(n) => toml::Value::Integer(*n),
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::List(list) => toml::Value::Array(list.iter().map(to_toml).collect()),
    }
}

fn from_toml(value: &toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::Boolean(on) => Value::Bool(*on),
        toml::Value::Integer(n) => Value::Integer(*n),
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Array(list) => Value::List(list.iter().map(from_toml).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// Reads a configuration. Everything is checked against the declarations; secrets are numbers or
/// [`SECRET`].
///
/// # Errors
/// All that is wrong.
pub fn read(
    root: &'static Context,
    text: &str,
) -> Result<(Document, Option<Revision>), Vec<Problem>> {
    let wrong = |sentence: &str| {
        let hint = "docs/formats/configuration.md describes the file";
        vec![Problem::new(&Path::root(), sentence, hint)]
    };
    if text.len() > CONFIGURATION_BYTES_MAX {
        return Err(wrong(&format!(
            "the configuration has {} bytes; the maximum is {CONFIGURATION_BYTES_MAX}",
            text.len()
        )));
    }
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        let at = e.span().map_or_else(String::new, |span| at_line(text, span.start));
        let why = e.message().trim_end().replace('\n', ", ");
        wrong(&format!("{at}the configuration is not valid TOML: {why}"))
    })?;
    if table.get("format").and_then(toml::Value::as_integer) != Some(FORMAT) {
        return Err(wrong("the file does not start with format = 1"));
    }
    let mut document = Document::new(root);
    let mut problems = Vec::new();
    for (name, value) in table.iter().filter(|(name, _)| *name != "format" && *name != "revision") {
        if let Err(problem) = node(&mut document, name, value, &mut problems) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        return Ok((document, table.get("revision").and_then(revision)));
    }
    Err(located(text, problems))
}

/// The same problems, each with the line of the file that it is about, if there is one.
pub(super) fn located(text: &str, problems: Vec<Problem>) -> Vec<Problem> {
    let Ok(table) = DeTable::parse(text) else { return problems };
    let line = |problem: &Problem| {
        let (header, settings) =
            table.get_ref().get_key_value(problem.path.to_string().as_str())?;
        let settings = settings.get_ref().as_table();
        let setting = problem.property.as_deref().zip(settings);
        let key = setting.and_then(|(name, settings)| Some(settings.get_key_value(name)?.0));
        Some(at_line(text, key.unwrap_or(header).span().start))
    };
    let with_line = |problem: Problem| match line(&problem) {
        Some(at) => Problem { sentence: at + &problem.sentence, ..problem },
        None => problem,
    };
    problems.into_iter().map(with_line).collect()
}

/// `line N: ` for the byte at `offset`.
fn at_line(text: &str, offset: usize) -> String {
    let before = text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
    format!("line {}: ", before + 1)
}

/// The head of a revision's file, without a look at its nodes.
pub(super) fn read_head(text: &str) -> Option<Revision> {
    // No text in the head goes over a line's end.
    let head = text.find("\n[\"").and_then(|end| text.get(..end)).unwrap_or(text);
    revision(head.parse::<Table>().ok()?.get("revision")?)
}

fn revision(value: &toml::Value) -> Option<Revision> {
    let text = |name| value.get(name)?.as_str().map(str::to_owned);
    let number = |name| u64::try_from(value.get(name)?.as_integer()?).ok();
    Some(Revision {
        number: number("number")?,
        when: number("when")?,
        who: text("who")?,
        from: text("from")?,
        comment: text("comment")?,
        changes: usize::try_from(number("changes")?).ok()?,
    })
}

/// Enters one table.
fn node(
    document: &mut Document,
    name: &str,
    value: &toml::Value,
    problems: &mut Vec<Problem>,
) -> Result<(), Problem> {
    let root = Path::root();
    let path: Path = name.parse().map_err(|e: base::node::PathError| {
        Problem::new(&root, &e.to_string(), "tables are named after nodes: [\"/shares/default\"]")
    })?;
    let settings = value.as_table().ok_or_else(|| {
        Problem::new(&path, "it is not a table", "write [\"PATH\"] and its settings")
    })?;
    let place = document
        .root()
        .find(&path)
        .map_err(|e| Problem::unknown(&path, &e.to_string(), "GET /api/v1/tree lists the nodes"))?;
    if place.item.is_some_and(|items| items.origin == Origin::Running) {
        return Err(Problem::new(&path, "it is not part of the configuration", "remove it"));
    }
    document.create(&path);
    for (property, value) in settings {
        match setting(&path, place.context, property, value) {
            Ok(value) => document.set(&path, property, value),
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn setting(
    path: &Path,
    context: &Context,
    name: &str,
    value: &toml::Value,
) -> Result<Value, Problem> {
    let declared = context.property(name).ok_or_else(|| {
        let known: Vec<&str> = configured(context).map(|property| property.name).collect();
        let hint = format!("it has {}", known.join(", "));
        Problem::unknown(path, &format!("unknown property {name:?}"), &hint).property(name)
    })?;
    let wrong =
        |why: &str| Problem::new(path, &format!("{name}: {why}"), declared.help).property(name);
    if !declared.is_configured() {
        return Err(wrong("it is read-only"));
    }
    let given = from_toml(value)
        .ok_or_else(|| wrong(&format!("expected {}", declared.kind.described())))?;
    if declared.role == Role::Secret {
        let known = given.as_integer().is_some_and(|id| id > 0) || given.as_text() == Some(SECRET);
        return if known { Ok(given) } else { Err(wrong("secrets are set through the API")) };
    }
    // "64M" and "5m" are good in a file that people write.
    let value = match (&given, &declared.kind) {
        (Value::Text(text), Kind::Bytes { .. } | Kind::Seconds { .. }) => declared.kind.parse(text),
        _ => declared.kind.check(&given).map(|()| given),
    };
    value.map_err(|why| wrong(&why))
}

fn configured(context: &Context) -> impl Iterator<Item = &'static Property> {
    context.properties.iter().filter(|property| property.is_configured())
}
