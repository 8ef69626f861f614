//! Writing: elements of `DAV:` with the prefix `D`, and what was read once, with whatever
//! namespaces it has.

use super::{Element, Name, Node, XML};
use crate::dav::DAV;

/// Adds text with what would be markup as references; also right within an attribute.
pub fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    loop {
        // Most text is nothing but such bytes.
        let plain = rest.bytes().position(|b| !is_plain(b)).unwrap_or(rest.len());
        let (run, after) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        out.push_str(run);
        let Some(c) = after.chars().next() else { return };
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            // In an attribute they would be read as spaces; in text a reference does no harm.
            '\t' => out.push_str("&#9;"),
            c if super::chars::is_char(c) => out.push(c),
            // XML cannot represent this character.
            _ => out.push('\u{fffd}'),
        }
        rest = after.get(c.len_utf8()..).unwrap_or_default();
    }
}

/// Whether a byte is a character of ASCII that stands for itself.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n') && !matches!(byte, b'<' | b'>' | b'&' | b'"')
}

/// Writes XML into a string. The prefix `D` must stand for `DAV:` where it is used.
pub struct Writer<'a> {
    out: &'a mut String,
}

impl<'a> Writer<'a> {
    /// The declaration at the start of a document.
    pub const DECLARATION: &'static str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

    /// Adds to `out`.
    pub fn new(out: &'a mut String) -> Self {
        Self { out }
    }

    /// Markup as it is.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape(self.out, text);
        self
    }

    /// `<D:local>text</D:local>`.
    pub fn dav(&mut self, local: &str, text: &str) -> &mut Self {
        self.raw("<D:").raw(local).raw(">").text(text).raw("</D:").raw(local).raw(">")
    }

    /// An element without content, in whatever namespace.
    pub fn empty(&mut self, name: &Name) -> &mut Self {
        if *name.ns == *DAV {
            return self.raw("<D:").raw(&name.local).raw("/>");
        }
        self.raw("<").raw(&name.local).raw(" xmlns=\"").value(&name.ns).raw("\"/>")
    }

    /// An element that was read once. It declares every namespace that it uses, so that it can
    /// stand anywhere.
    pub fn element(&mut self, element: &Element) -> &mut Self {
        self.nested(element, None)
    }

    /// The depth is that of what was read: [`base::limits::DAV_XML_DEPTH_MAX`].
    fn nested(&mut self, element: &Element, default: Option<&str>) -> &mut Self {
        let Element { name, attributes, children } = element;
        // `xml` cannot be a default namespace.
        let of_xml = *name.ns == *XML;
        let tag = if of_xml { "xml:" } else { "" };
        self.raw("<").raw(tag).raw(&name.local);
        let default = if of_xml {
            default
        } else {
            if default != Some(&name.ns) {
                self.raw(" xmlns=\"").value(&name.ns).raw("\"");
            }
            Some(&*name.ns)
        };
        for (at, (name, value)) in attributes.iter().enumerate() {
            match &*name.ns {
                "" => self.raw(" "),
                XML => self.raw(" xml:"),
                ns => {
                    let prefix = format!("a{at}");
                    self.raw(" xmlns:").raw(&prefix).raw("=\"").value(ns).raw("\" ");
                    self.raw(&prefix).raw(":")
                }
            };
            self.raw(&name.local).raw("=\"").value(value).raw("\"");
        }
        if children.is_empty() {
            return self.raw("/>");
        }
        self.raw(">");
        for child in children {
            match child {
                Node::Text(text) => self.text(text),
                Node::Element(element) => self.nested(element, default),
            };
        }
        self.raw("</").raw(tag).raw(&name.local).raw(">")
    }

    /// The value of an attribute, a namespace too: a newline would be read as a space.
    fn value(&mut self, value: &str) -> &mut Self {
        for (at, line) in value.split('\n').enumerate() {
            if at > 0 {
                self.raw("&#10;");
            }
            self.text(line);
        }
        self
    }
}
