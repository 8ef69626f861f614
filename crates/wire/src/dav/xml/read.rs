//! Reading: one pass over the characters, a stack of open elements, no recursion.

use std::sync::Arc;

use base::limits::{
    DAV_XML_ATTRIBUTES_MAX, DAV_XML_DEPTH_MAX, DAV_XML_NAME_MAX, DAV_XML_NODES_MAX,
};

use super::chars::{in_name, is_char, is_name, is_space};
use super::{Element, Name, Node, XML, XMLNS, XmlError};

type Result<T> = std::result::Result<T, XmlError>;

/// Reads a whole document: prolog, one element, nothing but white space and comments after it.
pub fn document(text: &str) -> Result<Element> {
    let mut reader = Reader { rest: text, nodes: 0, scope: Vec::new(), open: Vec::new() };
    if reader.rest.strip_prefix("<?xml").is_some_and(|rest| rest.starts_with(is_space)) {
        reader.until("?>")?;
    }
    let mut root = None;
    while !reader.rest.is_empty() {
        if reader.open.is_empty() {
            reader.rest = reader.rest.trim_start_matches(is_space);
            if reader.rest.is_empty() {
                break;
            }
            if root.is_some() && !reader.rest.starts_with("<!--") && !reader.rest.starts_with("<?")
            {
                return Err(XmlError::Malformed);
            }
        }
        if let Some(done) = reader.step()? {
            root = Some(done);
        }
    }
    root.filter(|_| reader.open.is_empty()).ok_or(XmlError::Malformed)
}

/// An element that has not ended yet.
struct Open<'a> {
    /// Its name as written, for its end.
    raw: &'a str,
    element: Element,
    /// How many declarations were in scope before it.
    scope: usize,
}

struct Reader<'a> {
    rest: &'a str,
    nodes: usize,
    /// Prefixes and what they stand for, the innermost last.
    scope: Vec<(&'a str, Arc<str>)>,
    open: Vec<Open<'a>>,
}

impl<'a> Reader<'a> {
    /// What comes before `end`, which is passed.
    fn until(&mut self, end: &str) -> Result<&'a str> {
        let (before, after) = self.rest.split_once(end).ok_or(XmlError::Malformed)?;
        self.rest = after;
        Ok(before)
    }

    fn eat(&mut self, what: &str) -> bool {
        let after = self.rest.strip_prefix(what);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Skips white space; whether there was any.
    fn space(&mut self) -> bool {
        let before = self.rest.len();
        self.rest = self.rest.trim_start_matches(is_space);
        self.rest.len() < before
    }

    fn count(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > DAV_XML_NODES_MAX { Err(XmlError::TooLarge) } else { Ok(()) }
    }

    /// The next piece of markup or text; the root when it has ended.
    fn step(&mut self) -> Result<Option<Element>> {
        if self.eat("<!--") {
            self.until("--")?;
            return if self.eat(">") { Ok(None) } else { Err(XmlError::Malformed) };
        }
        if self.eat("<![CDATA[") {
            let text = self.until("]]>")?;
            self.text(text.to_owned())?;
            return Ok(None);
        }
        if self.eat("<!") {
            return Err(XmlError::Entity);
        }
        if self.eat("<?") {
            return self.instruction().map(|()| None);
        }
        if self.eat("</") {
            return self.end();
        }
        if self.eat("<") {
            return self.start();
        }
        let at = self.rest.find('<').unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(at);
        self.rest = rest;
        if text.contains("]]>") {
            return Err(XmlError::Malformed);
        }
        let text = resolve(text)?;
        self.text(text)?;
        Ok(None)
    }

    /// A processing instruction. Its target must not be `xml`: that is valid only at the start.
    fn instruction(&mut self) -> Result<()> {
        let (target, _) = self.name()?;
        if target.eq_ignore_ascii_case("xml") || target.contains(':') {
            return Err(XmlError::Malformed);
        }
        self.until("?>").map(drop)
    }

    fn text(&mut self, text: String) -> Result<()> {
        let Some(open) = self.open.last_mut() else { return Err(XmlError::Malformed) };
        match open.element.children.last_mut() {
            _ if text.is_empty() => {}
            Some(Node::Text(before)) => before.push_str(&text),
            _ => {
                open.element.children.push(Node::Text(text));
                self.count()?;
            }
        }
        Ok(())
    }

    /// A name as it is written, and the length of its prefix.
    fn name(&mut self) -> Result<(&'a str, Option<usize>)> {
        let end = self.rest.find(|c| !in_name(c) && c != ':').unwrap_or(self.rest.len());
        let (raw, rest) = self.rest.split_at(end);
        self.rest = rest;
        if raw.len() > DAV_XML_NAME_MAX {
            return Err(XmlError::TooLarge);
        }
        match raw.split_once(':') {
            None if is_name(raw) => Ok((raw, None)),
            Some((prefix, local)) if is_name(prefix) && is_name(local) => {
                Ok((raw, Some(prefix.len())))
            }
            _ => Err(XmlError::Malformed),
        }
    }

    fn start(&mut self) -> Result<Option<Element>> {
        let (raw, _) = self.name()?;
        if self.open.len() >= DAV_XML_DEPTH_MAX {
            return Err(XmlError::TooLarge);
        }
        self.count()?;
        let scope = self.scope.len();
        let (attributes, closed) = self.attributes()?;
        let name = self.resolve_name(raw, true)?;
        let mut named: Vec<(Name, String)> = Vec::with_capacity(attributes.len());
        for (raw, value) in attributes {
            let name = self.resolve_name(raw, false)?;
            if named.iter().any(|(other, _)| *other == name) {
                return Err(XmlError::Malformed);
            }
            named.push((name, value));
        }
        let element = Element { name, attributes: named, children: Vec::new() };
        self.open.push(Open { raw, element, scope });
        if closed { self.close() } else { Ok(None) }
    }

    /// The attributes of a start tag up to its end; whether it is an empty element.
    fn attributes(&mut self) -> Result<(Vec<(&'a str, String)>, bool)> {
        let (mut attributes, before) = (Vec::new(), self.scope.len());
        loop {
            let space = self.space();
            if self.eat("/>") {
                return Ok((attributes, true));
            }
            if self.eat(">") {
                return Ok((attributes, false));
            }
            if !space {
                return Err(XmlError::Malformed);
            }
            self.count()?;
            if attributes.len() + self.scope.len() - before >= DAV_XML_ATTRIBUTES_MAX {
                return Err(XmlError::TooLarge);
            }
            let (raw, prefix) = self.name()?;
            let value = self.value()?;
            match prefix {
                None if raw == "xmlns" => self.declare("", value, before)?,
                Some(5) if raw.starts_with("xmlns:") => {
                    self.declare(raw.get(6..).unwrap_or_default(), value, before)?;
                }
                _ => attributes.push((raw, value)),
            }
        }
    }

    fn value(&mut self) -> Result<String> {
        self.space();
        if !self.eat("=") {
            return Err(XmlError::Malformed);
        }
        self.space();
        let quote = if self.eat("\"") {
            "\""
        } else if self.eat("'") {
            "'"
        } else {
            return Err(XmlError::Malformed);
        };
        let raw = self.until(quote)?;
        if raw.contains('<') {
            return Err(XmlError::Malformed);
        }
        // White space becomes a space (§3.3.3), but for what is written as a reference.
        resolve(&raw.replace(['\t', '\n'], " "))
    }

    /// Declares a prefix ("" is for elements without one) for the element that begins.
    fn declare(&mut self, prefix: &'a str, ns: String, before: usize) -> Result<()> {
        if ns.len() > DAV_XML_NAME_MAX {
            return Err(XmlError::TooLarge);
        }
        let of_xml = (prefix == "xml") != (ns == XML);
        let nothing = ns.is_empty() && !prefix.is_empty();
        if of_xml || nothing || prefix == "xmlns" || ns == XMLNS {
            return Err(XmlError::Namespace);
        }
        if self.scope.iter().skip(before).any(|(other, _)| *other == prefix) {
            return Err(XmlError::Malformed);
        }
        self.scope.push((prefix, ns.into()));
        Ok(())
    }

    /// What a name stands for; attributes without a prefix are in no namespace.
    fn resolve_name(&self, raw: &str, element: bool) -> Result<Name> {
        let (prefix, local) = match raw.split_once(':') {
            Some((prefix, local)) => (prefix, local),
            None if element => ("", raw),
            None => return Ok(Name::new("", raw)),
        };
        let ns = match self.scope.iter().rev().find(|(known, _)| *known == prefix) {
            Some((_, ns)) => Arc::clone(ns),
            None if prefix.is_empty() => "".into(),
            None if prefix == "xml" => XML.into(),
            None => return Err(XmlError::Namespace),
        };
        Ok(Name { ns, local: local.into() })
    }

    fn end(&mut self) -> Result<Option<Element>> {
        let (raw, _) = self.name()?;
        self.space();
        let fits = self.eat(">") && self.open.last().is_some_and(|open| open.raw == raw);
        if fits { self.close() } else { Err(XmlError::Malformed) }
    }

    /// Ends the innermost element; gives it if it is the root.
    fn close(&mut self) -> Result<Option<Element>> {
        let open = self.open.pop().ok_or(XmlError::Malformed)?;
        self.scope.truncate(open.scope);
        match self.open.last_mut() {
            Some(parent) => {
                parent.element.children.push(Node::Element(open.element));
                Ok(None)
            }
            None => Ok(Some(open.element)),
        }
    }
}

/// Text with its references replaced by what they stand for.
fn resolve(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (name, after) = after.split_once(';').ok_or(XmlError::Malformed)?;
        out.push(reference(name)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn reference(name: &str) -> Result<char> {
    let number = |digits: &str, radix| {
        let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        let code = plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten();
        code.and_then(char::from_u32).filter(|c| is_char(*c)).ok_or(XmlError::Malformed)
    };
    match name {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        _ => match name.strip_prefix('#') {
            Some(digits) => match digits.strip_prefix('x') {
                Some(hex) => number(hex, 16),
                None => number(digits, 10),
            },
            None if is_name(name) => Err(XmlError::Entity),
            None => Err(XmlError::Malformed),
        },
    }
}
