//! The value of a property, without its meaning: that is its kind's.

use std::fmt;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A number; bytes and seconds are numbers too.
    Integer(i64),
    /// A text; a choice is a text too.
    Text(String),
    /// A list.
    List(Vec<Value>),
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A number; one that does not fit is the largest.
    pub fn number(n: impl TryInto<i64>) -> Self {
        Self::Integer(n.try_into().unwrap_or(i64::MAX))
    }

    /// A list of texts.
    pub fn texts<T: AsRef<str>>(list: impl IntoIterator<Item = T>) -> Self {
        Self::List(list.into_iter().map(|text| Self::text(text.as_ref())).collect())
    }

    /// The switch, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(on) = self { Some(*on) } else { None }
    }

    /// The number, if it is one.
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(n) = self { Some(*n) } else { None }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    /// The texts of a list; what is no text is left out.
    pub fn as_texts(&self) -> Vec<&str> {
        self.as_list().unwrap_or(&[]).iter().filter_map(Self::as_text).collect()
    }

    /// What it is, for people.
    pub(super) fn described(&self) -> &'static str {
        match self {
            Self::Bool(_) => "true or false",
            Self::Integer(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
        }
    }
}

impl fmt::Display for Value {
    /// As [`super::Kind::parse`] reads it. Elements of a list are quoted where they must be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(on) => write!(f, "{on}"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Text(text) => f.write_str(text),
            Self::List(list) => {
                for (at, value) in list.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", element(&value.to_string()))?;
                }
                Ok(())
            }
        }
    }
}

/// An element of a list as [`split`] finds it again.
fn element(text: &str) -> String {
    let plain = split(text).is_ok_and(|parts| parts.len() == 1 && parts[0] == text);
    if plain && balanced(text) && !text.starts_with('"') {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Whether what follows a text still has its commas: every parenthesis is closed after it was
/// opened.
fn balanced(text: &str) -> bool {
    let depth = text.chars().try_fold(0_usize, |depth, letter| match letter {
        '(' => Some(depth + 1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    });
    depth == Some(0)
}

/// The elements of a list in a text: divided by commas, not by those in quotes or parentheses,
/// as in `10.0.0.0/8(rw,root_squash), "a, b"`.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let (mut part, mut depth, mut quoted, mut was_quoted) = (String::new(), 0_usize, false, false);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quoted => match letters.next() {
                Some('n') => part.push('\n'),
                Some(other) => part.push(other),
                None => return Err("the text ends with a backslash".to_owned()),
            },
            '"' if quoted => quoted = false,
            '"' if part.trim().is_empty() => {
                part.clear();
                (quoted, was_quoted) = (true, true);
            }
            ',' if depth == 0 && !quoted => {
                parts.push(ended(&mut part, &mut was_quoted));
                continue;
            }
            '(' if !quoted => {
                depth += 1;
                part.push(letter);
            }
            ')' if !quoted => {
                depth = depth.saturating_sub(1);
                part.push(letter);
            }
            _ if was_quoted && !quoted => {
                if !letter.is_whitespace() {
                    return Err("unexpected text between a quoted string and the comma".to_owned());
                }
            }
            _ => part.push(letter),
        }
    }
    if quoted {
        return Err("missing quotation mark".to_owned());
    }
    let last_is_empty = part.trim().is_empty() && !was_quoted;
    if !(last_is_empty && parts.is_empty()) {
        parts.push(ended(&mut part, &mut was_quoted));
    }
    if parts.iter().any(String::is_empty) && !text.contains("\"\"") {
        return Err("empty element between two commas".to_owned());
    }
    Ok(parts)
}

fn ended(part: &mut String, was_quoted: &mut bool) -> String {
    let whole = std::mem::take(part);
    if std::mem::take(was_quoted) { whole } else { whole.trim().to_owned() }
}
