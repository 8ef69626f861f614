//! Kinds of values: what is good, how it is read from a text, how it is shown.

use super::{Shape, Value, value};
use crate::text::{decimal, signed};

/// What values a property has.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// On or off.
    Bool,
    /// A whole number, ends included.
    Integer {
        /// Least.
        min: i64,
        /// Most.
        max: i64,
    },
    /// Bytes, ends included.
    Bytes {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// Seconds, ends included.
    Seconds {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A point in time, seconds since the epoch.
    Time,
    /// One of these: the value, and what it means.
    Choice(&'static [(&'static str, &'static str)]),
    /// A text.
    Text {
        /// Bytes at most.
        max: usize,
        /// Its form.
        shape: Shape,
    },
    /// A list.
    List {
        /// Of what.
        of: &'static Kind,
        /// Elements at most.
        max: usize,
    },
}

/// Powers of two by their letter.
const BINARY: [(char, u64); 5] =
    [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30), ('T', 1 << 40), ('P', 1 << 50)];
/// Seconds by their letter.
const SECONDS: [(char, u64); 5] =
    [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];

/// Bytes from a text such as `512`, `64K`, `10 GiB`; letters are powers of two.
pub fn parse_bytes(text: &str) -> Option<i64> {
    let plain = text.trim();
    let plain = plain.strip_suffix(['B', 'b']).unwrap_or(plain);
    let is_unit = |unit: &&str| unit.ends_with(|last: char| last.is_ascii_alphabetic());
    let plain = plain.strip_suffix('i').filter(is_unit).unwrap_or(plain);
    scaled(plain, &BINARY)
}

/// Seconds from a text such as `90`, `90s`, `15m`, `2h`, `1d`, `1w`.
pub fn parse_seconds(text: &str) -> Option<i64> {
    scaled(text, &SECONDS)
}

/// Bytes so that [`parse_bytes`] reads the same again: exactly, with the largest letter that allows
/// it.
pub fn show_bytes(bytes: u64) -> String {
    let whole = BINARY.iter().rev().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    whole.map_or_else(|| bytes.to_string(), |(letter, size)| format!("{}{letter}", bytes / size))
}

impl Kind {
    /// Its name in the API.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer { .. } => "integer",
            Self::Bytes { .. } => "bytes",
            Self::Seconds { .. } => "seconds",
            Self::Time => "time",
            Self::Choice(_) => "choice",
            Self::Text { .. } => "text",
            Self::List { .. } => "list",
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// One sentence that states what is wrong and what would be valid.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Self::Bool, Value::Bool(_)) => Ok(()),
            (Self::Integer { min, max }, Value::Integer(n)) => {
                within(i128::from(*n), i128::from(*min), i128::from(*max), "")
            }
            (Self::Bytes { min, max }, Value::Integer(n)) => {
                within(i128::from(*n), i128::from(*min), i128::from(*max), " bytes")
            }
            (Self::Seconds { min, max }, Value::Integer(n)) => {
                within(i128::from(*n), i128::from(*min), i128::from(*max), " seconds")
            }
            (Self::Time, Value::Integer(n)) if *n >= 0 => Ok(()),
            (Self::Choice(choices), Value::Text(text)) => {
                if choices.iter().any(|(choice, _)| choice == text) {
                    return Ok(());
                }
                Err(format!("{:?} is not one of {}", short(text), self.described()))
            }
            (Self::Text { max, shape }, Value::Text(text)) => {
                if text.len() > *max {
                    return Err(format!("it has {} bytes; the maximum is {max}", text.len()));
                }
                shape.check(text)
            }
            (Self::List { of, max }, Value::List(list)) => check_list(of, *max, list),
            _ => Err(format!("it is {}; expected {}", value.described(), self.described())),
        }
    }

    /// Reads a value from a text: `on`, `64M`, `90s`, `a, b`. It is checked.
    ///
    /// # Errors
    /// One sentence, as [`Self::check`].
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let wrong = || format!("{:?} is not {}", short(text), self.described());
        let value = match self {
            Self::Bool => Value::Bool(switch(text).ok_or_else(wrong)?),
            Self::Integer { .. } | Self::Time => {
                Value::Integer(signed(text.trim()).ok_or_else(wrong)?)
            }
            Self::Bytes { .. } => Value::Integer(parse_bytes(text).ok_or_else(wrong)?),
            Self::Seconds { .. } => Value::Integer(parse_seconds(text).ok_or_else(wrong)?),
            Self::Choice(_) => Value::text(text.trim()),
            Self::Text { .. } => Value::text(text),
            Self::List { of, .. } => {
                let parts = value::split(text)?;
                let read = |part: &String| of.parse(part);
                Value::List(parts.iter().map(read).collect::<Result<_, _>>()?)
            }
        };
        self.check(&value)?;
        Ok(value)
    }

    /// A value for people, so that [`Self::parse`] reads the same again.
    pub fn show(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Bytes { .. }, Value::Integer(n)) => show_bytes(n.unsigned_abs()),
            _ => value.to_string(),
        }
    }

    /// What is good, for people: `a number from 1 to 9`.
    pub fn described(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Integer { min, max } => format!("a number from {min} to {max}"),
            Self::Bytes { min, max } => {
                let shown =
                    |n: u64| self.show(&Value::Integer(i64::try_from(n).unwrap_or(i64::MAX)));
                format!("bytes from {} to {}, for example 64M", shown(*min), shown(*max))
            }
            Self::Seconds { min, max } => {
                format!("seconds from {min} to {max}, for example 90 or 5m")
            }
            Self::Time => "seconds since the epoch".to_owned(),
            Self::Choice(choices) => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                names.join(", ")
            }
            Self::Text { shape, .. } => shape.described().to_owned(),
            Self::List { of, .. } => format!("a comma-separated list, each {}", of.described()),
        }
    }
}

fn check_list(of: &Kind, max: usize, list: &[Value]) -> Result<(), String> {
    if list.len() > max {
        return Err(format!("it has {} elements; the maximum is {max}", list.len()));
    }
    for (at, value) in list.iter().enumerate() {
        of.check(value).map_err(|why| format!("element {}: {why}", at + 1))?;
        if list[..at].contains(value) {
            return Err(format!("{:?} appears twice", short(&value.to_string())));
        }
    }
    Ok(())
}

fn within(n: i128, min: i128, max: i128, unit: &str) -> Result<(), String> {
    let unit = |n: i128| if n == 1 { unit.trim_end_matches('s') } else { unit };
    if n < min {
        return Err(format!("{n} is too small; the minimum is {min}{}", unit(min)));
    }
    if n > max {
        return Err(format!("{n} is too large; the maximum is {max}{}", unit(max)));
    }
    Ok(())
}

fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "on" | "yes" => Some(true),
        "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// `64M` with the factor of its last letter.
fn scaled(text: &str, letters: &[(char, u64)]) -> Option<i64> {
    let text = text.trim();
    let factor = |letter: char| {
        letters.iter().find(|(name, _)| name.eq_ignore_ascii_case(&letter)).map(|(_, by)| *by)
    };
    let (digits, by) = match text.chars().last().and_then(|last| Some((last, factor(last)?))) {
        Some((last, by)) => (text.strip_suffix(last)?.trim_end(), by),
        None => (text, 1),
    };
    decimal::<u64>(digits)?.checked_mul(by)?.try_into().ok()
}

/// What is wrong may be long.
fn short(text: &str) -> String {
    const SHOWN: usize = 60;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}
