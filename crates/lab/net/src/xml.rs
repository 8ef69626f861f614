//! The part of XML (fifth edition) that profiles need, element by element: elements, attributes,
//! comments, processing instructions.
//!
//! There is no document type and no entity but the five of the standard, so nothing expands. Names
//! are compared without case, as uperf does. Depth, number of elements and attributes are bounded.

use crate::limits::{ATTRIBUTES_MAX, DEPTH_MAX, ELEMENTS_MAX, TEXT_MAX};

/// What is wrong at a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u32,
    /// What, and what to do.
    pub what: String,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Line of its name.
    pub line: u32,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The begin of an element; an empty one has its end as next item.
    Open {
        /// Its name in lower case.
        name: String,
        /// Its attributes.
        attributes: Vec<Attribute>,
        /// Line of its name.
        line: u32,
    },
    /// The end of the element that was opened last.
    Close,
}

/// Reads a text.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    open: Vec<(String, u32)>,
    elements: usize,
    /// The element that was opened last was empty.
    empty: bool,
    /// There was an element, and it is closed.
    ended: bool,
}

type Read<T> = Result<T, Fault>;

impl<'a> Reader<'a> {
    /// Of this text.
    ///
    /// # Errors
    /// It is too long.
    pub fn new(text: &'a str) -> Read<Self> {
        if text.len() > TEXT_MAX {
            return Err(Fault { line: 1, what: format!("longer than {TEXT_MAX} bytes") });
        }
        // A byte order mark is no part of the document.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Ok(Self { text, at: 0, line: 1, open: Vec::new(), elements: 0, empty: false, ended: false })
    }

    fn fault<T>(&self, what: impl Into<String>) -> Read<T> {
        Err(Fault { line: self.line, what: what.into() })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves on by `bytes`, counting lines.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let passed = self.rest().get(..bytes).unwrap_or_default();
        self.line += passed.bytes().filter(|b| *b == b'\n').count() as u32;
        self.at += passed.len();
        passed
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start().len());
    }

    /// Skips up to and with `end`.
    fn past(&mut self, end: &str, what: &str) -> Read<()> {
        match self.rest().find(end) {
            Some(at) => {
                self.skip(at + end.len());
                Ok(())
            }
            None => self.fault(format!("{what} does not end")),
        }
    }

    /// The next item; `None` at the end of the text.
    ///
    /// # Errors
    /// The text is not well formed, or has what profiles do not need.
    pub fn next_item(&mut self) -> Read<Option<Item>> {
        if std::mem::take(&mut self.empty) {
            return self.closed().map(Some);
        }
        loop {
            self.spaces();
            let rest = self.rest();
            if rest.is_empty() {
                return match self.open.last() {
                    Some((name, line)) => {
                        self.fault(format!("<{name}> of line {line} is not closed"))
                    }
                    None => Ok(None),
                };
            }
            if rest.starts_with("<!--") {
                self.skip(4);
                self.past("-->", "a comment")?;
            } else if rest.starts_with("<?") {
                self.past("?>", "an instruction")?;
            } else if rest.starts_with("<!") {
                return self.fault("document types, entities and CDATA sections are not read");
            } else if rest.starts_with("</") {
                return self.close().map(Some);
            } else if rest.starts_with('<') {
                return self.open().map(Some);
            } else {
                let word: String =
                    rest.chars().take_while(|c| !c.is_whitespace()).take(20).collect();
                return self.fault(format!("text {word:?} between elements"));
            }
        }
    }

    fn name(&mut self) -> Read<String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = self.skip(len).to_lowercase();
        if name.is_empty() { self.fault("a name is missing") } else { Ok(name) }
    }

    fn close(&mut self) -> Read<Item> {
        self.skip(2);
        let name = self.name()?;
        self.spaces();
        match self.open.last() {
            _ if !self.rest().starts_with('>') => self.fault(format!("</{name} has no '>'")),
            None => self.fault(format!("</{name}> closes no element")),
            Some((open, line)) if *open != name => {
                self.fault(format!("</{name}> does not close <{open}> of line {line}"))
            }
            Some(_) => {
                self.skip(1);
                self.closed()
            }
        }
    }

    fn closed(&mut self) -> Read<Item> {
        self.open.pop();
        self.ended = self.open.is_empty();
        Ok(Item::Close)
    }

    fn open(&mut self) -> Read<Item> {
        self.skip(1);
        let line = self.line;
        let name = self.name()?;
        if self.ended {
            return self.fault(format!("<{name}> follows the end of the document"));
        }
        if self.open.len() >= DEPTH_MAX {
            return self.fault(format!("more than {DEPTH_MAX} elements within each other"));
        }
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            return self.fault(format!("more than {ELEMENTS_MAX} elements"));
        }
        let mut attributes: Vec<Attribute> = Vec::new();
        loop {
            self.spaces();
            let rest = self.rest();
            if rest.starts_with("/>") {
                self.empty = true;
                self.skip(2);
                break;
            }
            if rest.starts_with('>') {
                self.skip(1);
                break;
            }
            if rest.is_empty() {
                return Err(Fault { line, what: format!("<{name} has no '>'") });
            }
            if attributes.len() >= ATTRIBUTES_MAX {
                return self.fault(format!("<{name}> has more than {ATTRIBUTES_MAX} attributes"));
            }
            let attribute = self.attribute(&name)?;
            if attributes.iter().any(|a| a.name == attribute.name) {
                return self.fault(format!("<{name}> has {} twice", attribute.name));
            }
            attributes.push(attribute);
        }
        self.open.push((name.clone(), line));
        Ok(Item::Open { name, attributes, line })
    }

    fn attribute(&mut self, element: &str) -> Read<Attribute> {
        let line = self.line;
        let name = self.name()?;
        self.spaces();
        if !self.rest().starts_with('=') {
            return self.fault(format!("attribute {name} of <{element}> has no value"));
        }
        self.skip(1);
        self.spaces();
        let quote = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => quote,
            _ => return self.fault(format!("the value of {name} of <{element}> is not quoted")),
        };
        self.skip(1);
        let Some(len) = self.rest().find(quote) else {
            return self.fault(format!("the value of {name} of <{element}> does not end"));
        };
        let raw = &self.rest()[..len];
        if raw.contains('<') {
            return self.fault(format!("'<' in the value of {name} of <{element}>"));
        }
        let value = match decoded(raw) {
            Ok(value) => value,
            Err(what) => return self.fault(format!("{what} in the value of {name}")),
        };
        self.skip(len + 1);
        Ok(Attribute { name, value, line })
    }
}

/// Replaces the five entities of the standard.
fn decoded(raw: &str) -> Result<String, String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entities =
            [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&apos;", '\'')];
        let Some((entity, character)) = entities.iter().find(|(e, _)| rest.starts_with(e)) else {
            let word: String = rest.chars().take_while(|c| *c != ';').take(12).collect();
            return Err(format!("entity {word:?}, which is not one of the five of XML,"));
        };
        out.push(*character);
        rest = &rest[entity.len()..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests;
