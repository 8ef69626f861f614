//! `If` (RFC 4918 §10.4): lists of conditions, of which one must hold in full. A request that names
//! a lock's token anywhere in it has submitted the token (§10.4.1).

use base::limits::{DAV_IF_CONDITIONS_MAX, DAV_IF_MAX};
use thiserror::Error;

/// Why the header is refused: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IfError {
    /// Not as the grammar has it.
    #[error("the If header is malformed")]
    Malformed,
    /// Longer, or with more conditions, than we take.
    #[error("the If header is too long")]
    TooLarge,
}

/// The object of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State<'a> {
    /// A lock's token, or any other URI.
    Token(&'a str),
    /// An entity tag as it is written, `W/` and quotes included.
    ETag(&'a str),
}

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition<'a> {
    /// Whether it holds when the resource does not have this.
    pub not: bool,
    /// What.
    pub state: State<'a>,
}

/// Conditions that must all hold, of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<'a> {
    /// The URL of the resource as it is written; `None` is that of the request.
    pub resource: Option<&'a str>,
    /// The conditions; at least one.
    pub conditions: Vec<Condition<'a>>,
}

/// The header: at least one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct If<'a> {
    /// The lists, in their order.
    pub lists: Vec<List<'a>>,
}

impl<'a> If<'a> {
    /// Reads the header's value.
    ///
    /// # Errors
    /// [`IfError`].
    pub fn parse(value: &'a str) -> Result<Self, IfError> {
        if value.len() > DAV_IF_MAX {
            return Err(IfError::TooLarge);
        }
        let mut cursor = Cursor(value.trim_matches(SPACE));
        let (mut lists, mut conditions) = (Vec::new(), 0);
        let mut resource = None;
        let tagged = cursor.0.starts_with('<');
        // A tag must have a list of its own.
        let mut bare_tag = false;
        while !cursor.0.is_empty() {
            if let Some(tag) = cursor.between('<', '>')? {
                if !tagged || bare_tag {
                    return Err(IfError::Malformed);
                }
                (resource, bare_tag) = (Some(tag), true);
            } else {
                let list = cursor.list()?;
                conditions += list.len();
                if conditions > DAV_IF_CONDITIONS_MAX {
                    return Err(IfError::TooLarge);
                }
                lists.push(List { resource, conditions: list });
                bare_tag = false;
            }
            cursor.space();
        }
        if lists.is_empty() || bare_tag { Err(IfError::Malformed) } else { Ok(Self { lists }) }
    }

    /// Whether the header as a whole holds, given what is true of a resource.
    pub fn holds(&self, mut has: impl FnMut(Option<&str>, &State<'_>) -> bool) -> bool {
        self.lists.iter().any(|list| {
            let mut each = list.conditions.iter();
            each.all(|condition| has(list.resource, &condition.state) != condition.not)
        })
    }

    /// The tokens that are submitted with it.
    pub fn tokens(&self) -> impl Iterator<Item = &'a str> {
        let all = self.lists.iter().flat_map(|list| &list.conditions);
        all.filter_map(|condition| match condition.state {
            State::Token(token) => Some(token),
            State::ETag(_) => None,
        })
    }
}

impl std::fmt::Display for If<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut tag = None;
        for list in &self.lists {
            if let Some(resource) = list.resource.filter(|resource| tag != Some(*resource)) {
                write!(f, "<{resource}> ")?;
                tag = Some(resource);
            }
            f.write_str("(")?;
            for condition in &list.conditions {
                let not = if condition.not { "Not " } else { "" };
                match condition.state {
                    State::Token(token) => write!(f, "{not}<{token}> ")?,
                    State::ETag(etag) => write!(f, "{not}[{etag}] ")?,
                }
            }
            f.write_str(") ")?;
        }
        Ok(())
    }
}

const SPACE: [char; 2] = [' ', '\t'];

struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn space(&mut self) {
        self.0 = self.0.trim_start_matches(SPACE);
    }

    /// What is between two marks, if the first one is next.
    fn between(&mut self, begin: char, end: char) -> Result<Option<&'a str>, IfError> {
        let Some(rest) = self.0.strip_prefix(begin) else { return Ok(None) };
        let (inside, rest) = rest.split_once(end).ok_or(IfError::Malformed)?;
        let plain = !inside.is_empty() && !inside.contains([begin, ' ', '\t']);
        self.0 = rest;
        plain.then_some(Some(inside)).ok_or(IfError::Malformed)
    }

    fn list(&mut self) -> Result<Vec<Condition<'a>>, IfError> {
        self.0 = self.0.strip_prefix('(').ok_or(IfError::Malformed)?;
        let mut conditions = Vec::new();
        loop {
            self.space();
            if let Some(rest) = self.0.strip_prefix(')') {
                self.0 = rest;
                let any = !conditions.is_empty();
                return any.then_some(conditions).ok_or(IfError::Malformed);
            }
            let word = self.0.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("not"));
            if word {
                self.0 = self.0.get(3..).unwrap_or_default();
                self.space();
            }
            let state = match self.between('<', '>')? {
                Some(token) => State::Token(token),
                None => State::ETag(self.etag()?),
            };
            conditions.push(Condition { not: word, state });
            if conditions.len() > DAV_IF_CONDITIONS_MAX {
                return Err(IfError::TooLarge);
            }
        }
    }

    /// An entity tag in brackets. It ends with its quote: a bracket may be within.
    fn etag(&mut self) -> Result<&'a str, IfError> {
        let begun = self.0.strip_prefix('[').ok_or(IfError::Malformed)?;
        let quoted = begun.strip_prefix("W/").unwrap_or(begun);
        let opaque = quoted.strip_prefix('"').ok_or(IfError::Malformed)?;
        let (inside, rest) = opaque.split_once('"').ok_or(IfError::Malformed)?;
        self.0 = rest.strip_prefix(']').ok_or(IfError::Malformed)?;
        let length = begun.len() - opaque.len() + inside.len() + 1;
        begun.get(..length).ok_or(IfError::Malformed)
    }
}

#[cfg(test)]
mod tests;
