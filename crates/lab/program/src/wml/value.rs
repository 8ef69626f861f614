//! Expressions into values, and variables.

use super::Fault;
use super::lex::{Kind, Token};
use super::parse::{Attr, Attrs, Expr};
use crate::dist::Dist;
use crate::program::Note;
use std::collections::HashMap;

mod random;

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// `true` or `false`.
    Bool(bool),
    /// A word or a text.
    Text(String),
    /// A random variable.
    Dist(Dist),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Text(_) => "a text",
            Self::Dist(_) => "a random variable",
        }
    }
}

/// Variables: those of the text, and the parameters of the composites that are being expanded.
#[derive(Debug, Default)]
pub struct Scope {
    /// Of the text.
    pub globals: HashMap<String, Value>,
    /// Of composites, the innermost last.
    pub locals: Vec<HashMap<String, Value>>,
    /// What has no effect, as far as it was met.
    pub notes: Vec<Note>,
}

/// Name of a variable.
pub fn name_of(token: &Token) -> &str {
    match &token.kind {
        Kind::Variable(name) => name,
        _ => "",
    }
}

impl Scope {
    /// The value of an expression that stands at `at`.
    pub(crate) fn value(&self, expr: &Expr, at: &Token) -> Result<Value, Fault> {
        Ok(match expr {
            Expr::Number(number) => Value::Number(*number),
            Expr::Bool(value) => Value::Bool(*value),
            Expr::Text(text) => Value::Text(text.clone()),
            Expr::Variable(token) => {
                let name = name_of(token);
                let local = self.locals.last().and_then(|locals| locals.get(name));
                let value = local.or_else(|| self.globals.get(name));
                value.cloned().ok_or_else(|| Fault::at(token, "the variable has no value"))?
            }
            Expr::Pair(left, sign, right) => {
                let (left, right) = (self.number(left, at)?, self.number(right, at)?);
                let result = match sign {
                    '*' => left.checked_mul(right),
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    _ => left.checked_div(right),
                };
                let what = format!("{left} {sign} {right} is not a number from 0 to 2^64");
                Value::Number(result.ok_or_else(|| Fault::at(at, what))?)
            }
            Expr::Randvar(attrs) => Value::Dist(random::randvar(self, attrs, at)?),
            Expr::Cvar(attrs) => Value::Dist(random::cvar(self, attrs, at)?),
            Expr::Table(_) => return Err(Fault::at(at, "a table belongs to randtable")),
        })
    }

    /// The value of an expression that must be a number.
    pub(crate) fn number(&self, expr: &Expr, at: &Token) -> Result<u64, Fault> {
        match self.value(expr, at)? {
            Value::Number(number) => Ok(number),
            Value::Bool(value) => Ok(u64::from(value)),
            other => Err(Fault::at(at, format!("expected a number, not {}", other.kind()))),
        }
    }

    /// Records that something has no effect, once for each reason.
    pub fn note(&mut self, line: u32, text: String) {
        if self.notes.iter().all(|note| note.text != text) {
            self.notes.push(Note { line, text });
        }
    }
}

/// Attributes of one object, each of which must be valid.
pub struct View<'a> {
    scope: &'a Scope,
    attrs: &'a Attrs,
    at: &'a Token,
}

impl<'a> View<'a> {
    /// Attributes of what stands at `at`; only those in `valid` may be there, each once.
    pub(crate) fn new(
        scope: &'a Scope,
        attrs: &'a Attrs,
        at: &'a Token,
        valid: &[&str],
    ) -> Result<Self, Fault> {
        for (number, attr) in attrs.iter().enumerate() {
            if attr.local {
                return Err(Fault::at(&attr.at, "only composites have parameters"));
            }
            if !valid.contains(&attr.name.as_str()) {
                let what = format!("not an attribute here; expected {}", valid.join(", "));
                return Err(Fault::at(&attr.at, what));
            }
            if attrs[..number].iter().any(|other| other.name == attr.name) {
                return Err(Fault::at(&attr.at, "the attribute is there twice"));
            }
        }
        Ok(Self { scope, attrs, at })
    }

    /// An attribute.
    pub fn get(&self, name: &str) -> Option<&'a Attr> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Its value; `true` if it has none.
    pub(crate) fn value(&self, name: &str) -> Result<Option<Value>, Fault> {
        let Some(attr) = self.get(name) else { return Ok(None) };
        match &attr.value {
            None => Ok(Some(Value::Bool(true))),
            Some(expr) => self.scope.value(expr, &attr.at).map(Some),
        }
    }

    /// A fault at an attribute.
    pub(crate) fn fault(&self, name: &str, what: impl Into<String>) -> Fault {
        Fault::at(self.get(name).map_or(self.at, |attr| &attr.at), what)
    }

    fn wrong(&self, name: &str, expected: &str, value: &Value) -> Fault {
        self.fault(name, format!("expected {expected}, not {}", value.kind()))
    }

    /// A number.
    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64, Fault> {
        match self.value(name)? {
            None => Ok(default),
            Some(Value::Number(number)) => Ok(number),
            Some(Value::Dist(dist)) => match dist.constant() {
                Some(number) => Ok(number),
                None => Err(self.wrong(name, "a number", &Value::Dist(dist))),
            },
            Some(other) => Err(self.wrong(name, "a number", &other)),
        }
    }

    /// A number up to `max`.
    pub(crate) fn number_up_to(&self, name: &str, default: u64, max: u64) -> Result<u64, Fault> {
        let number = self.number(name, default)?;
        if number <= max {
            return Ok(number);
        }
        Err(self.fault(name, format!("{number} is above {max}")))
    }

    /// Whether it is set: without a value, `true`, or a number that is not 0.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Fault> {
        Ok(match self.value(name)? {
            None => false,
            Some(Value::Bool(value)) => value,
            Some(Value::Number(number)) => number != 0,
            Some(other) => return Err(self.wrong(name, "true or false", &other)),
        })
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        match self.value(name)? {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            // A name that is a number.
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(self.wrong(name, "a name", &other)),
        }
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<String, Fault> {
        self.text(name)?.ok_or_else(|| Fault::at(self.at, format!("{name}= is missing")))
    }

    /// A number or a random variable.
    pub(crate) fn dist(&self, name: &str, default: u64) -> Result<Dist, Fault> {
        match self.value(name)? {
            None => Ok(Dist::fixed(default)),
            Some(Value::Number(number)) => Ok(Dist::fixed(number)),
            Some(Value::Dist(dist)) => Ok(dist),
            Some(other) => Err(self.wrong(name, "a number or a random variable", &other)),
        }
    }
}
