//! The part of XML that profiles need, element by element, from the events of `quick-xml`:
//! elements, attributes, comments, processing instructions.
//!
//! There is no document type and no entity but the five of the standard and characters by number,
//! so nothing expands. Names are compared without case, as uperf does. Depth, number of elements
//! and attributes are bounded.

use crate::limits::{ATTRIBUTES_MAX, DEPTH_MAX, ELEMENTS_MAX, TEXT_MAX};
use quick_xml::errors::SyntaxError;
use quick_xml::escape::{EscapeError, unescape};
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};

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
    events: quick_xml::Reader<&'a [u8]>,
    /// Up to where lines are counted, bytes.
    at: usize,
    line: u32,
    open: Vec<(String, u32)>,
    elements: usize,
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
        let mut events = quick_xml::Reader::from_str(text);
        let config = events.config_mut();
        config.expand_empty_elements = true;
        // Both are checked here, without case.
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        Ok(Self { text, events, at: 0, line: 1, open: Vec::new(), elements: 0, ended: false })
    }

    fn fault<T>(&self, what: impl Into<String>) -> Read<T> {
        Err(Fault { line: self.line, what: what.into() })
    }

    /// Counts lines up to this offset.
    fn advance(&mut self, to: usize) {
        let passed = self.text.as_bytes().get(self.at..to).unwrap_or_default();
        self.line += passed.iter().filter(|b| **b == b'\n').count() as u32;
        self.at += passed.len();
    }

    /// The next item; `None` at the end of the text.
    ///
    /// # Errors
    /// The text is not well formed, or has what profiles do not need.
    pub fn next_item(&mut self) -> Read<Option<Item>> {
        loop {
            self.advance(self.events.buffer_position() as usize);
            let event = match self.events.read_event() {
                Ok(event) => event,
                Err(error) => {
                    self.advance(self.events.error_position() as usize);
                    return self.fault(malformed(&error));
                }
            };
            match event {
                Event::Start(start) | Event::Empty(start) => return self.open(&start).map(Some),
                Event::End(end) => return self.close(end.name().0).map(Some),
                Event::Text(text) => self.spaces(&text.into_inner())?,
                Event::GeneralRef(_) => return self.text(),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::CData(_) | Event::DocType(_) => return self.fault(UNREAD),
                Event::Eof => {
                    return match self.open.last() {
                        Some((name, line)) => {
                            self.fault(format!("<{name}> of line {line} is not closed"))
                        }
                        None => Ok(None),
                    };
                }
            }
        }
    }

    /// Between elements there are spaces alone.
    fn spaces(&mut self, text: &str) -> Read<()> {
        match text.find(|c: char| !c.is_whitespace()) {
            Some(at) => {
                self.advance(self.at + at);
                self.text()
            }
            None => Ok(()),
        }
    }

    fn text<T>(&self) -> Read<T> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let word: String = rest.chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        self.fault(format!("text {word:?} between elements"))
    }

    fn close(&mut self, name: &str) -> Read<Item> {
        let name = name.to_lowercase();
        match self.open.last() {
            None => self.fault(format!("</{name}> closes no element")),
            Some((open, line)) if *open != name => {
                self.fault(format!("</{name}> does not close <{open}> of line {line}"))
            }
            Some(_) => {
                self.open.pop();
                self.ended = self.open.is_empty();
                Ok(Item::Close)
            }
        }
    }

    fn open(&mut self, start: &BytesStart<'_>) -> Read<Item> {
        let (line, name) = (self.line, start.name().0.to_lowercase());
        if name.is_empty() {
            return self.fault("a name is missing");
        }
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
        let attributes = self.attributes(&name, start)?;
        self.open.push((name.clone(), line));
        Ok(Item::Open { name, attributes, line })
    }

    fn attributes(&mut self, element: &str, start: &BytesStart<'_>) -> Read<Vec<Attribute>> {
        // The content of a tag follows its '<'.
        let content = self.at + 1;
        let tag: &str = start;
        let mut attributes: Vec<Attribute> = Vec::new();
        // The check of the library compares names with case.
        for attribute in start.attributes().with_checks(false) {
            let attribute = match attribute {
                Ok(attribute) => attribute,
                Err(error) => {
                    let (at, what) = unreadable(&error);
                    self.advance(content + at);
                    return self.fault(format!("{what} of <{element}>"));
                }
            };
            // Names are slices of the tag: their distance is where they are in it.
            let key = attribute.key.0;
            self.advance(content + (key.as_ptr().addr() - tag.as_ptr().addr()));
            let name = key.to_lowercase();
            if attributes.len() >= ATTRIBUTES_MAX {
                return self
                    .fault(format!("<{element}> has more than {ATTRIBUTES_MAX} attributes"));
            }
            if attributes.iter().any(|a| a.name == name) {
                return self.fault(format!("<{element}> has {name} twice"));
            }
            if attribute.value.contains('<') {
                return self.fault(format!("'<' in the value of {name} of <{element}>"));
            }
            let value = match unescape(&attribute.value) {
                Ok(value) => value.into_owned(),
                Err(EscapeError::UnrecognizedEntity(_, entity)) => {
                    let entity: String = entity.chars().take(12).collect();
                    return self.fault(format!(
                        "entity \"&{entity}\", which is not one of the five of XML, in the value \
                         of {name}"
                    ));
                }
                Err(_) => {
                    return self.fault(format!("a malformed reference in the value of {name}"));
                }
            };
            attributes.push(Attribute { name, value, line: self.line });
        }
        Ok(attributes)
    }
}

/// What profiles do not have.
const UNREAD: &str = "document types, entities and CDATA sections are not read";

/// Why there is no event.
fn malformed(error: &quick_xml::Error) -> String {
    let quick_xml::Error::Syntax(syntax) = error else { return error.to_string() };
    let what = match syntax {
        SyntaxError::InvalidBangMarkup
        | SyntaxError::UnclosedDoctype
        | SyntaxError::UnclosedCData => return UNREAD.to_owned(),
        SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl => "an instruction",
        SyntaxError::UnclosedComment => "a comment",
        SyntaxError::UnclosedTag => "a tag",
        SyntaxError::UnclosedSingleQuotedAttributeValue
        | SyntaxError::UnclosedDoubleQuotedAttributeValue => "the value of an attribute",
    };
    format!("{what} does not end")
}

/// Where an attribute is at fault within its tag, and how.
fn unreadable(error: &AttrError) -> (usize, &'static str) {
    match error {
        AttrError::ExpectedEq(at) | AttrError::ExpectedValue(at) => {
            (*at, "an attribute has no value: one")
        }
        AttrError::UnquotedValue(at) => (*at, "a value is not quoted: that of an attribute"),
        AttrError::ExpectedQuote(at, _) => (*at, "a value does not end: that of an attribute"),
        AttrError::Duplicated(at, _) => (*at, "an attribute occurs twice: one"),
    }
}

#[cfg(test)]
mod tests;
