//! Small XML documents with namespaces, as WebDAV bodies are (RFC 4918 §8.2 and §17).
//!
//! What peers do not need is refused rather than handled: document types and with them all
//! entities but the five of XML itself. UTF-8, and UTF-16 by its byte order mark, as every XML
//! processor must take. What is read is well-formed (XML 1.0, Namespaces in XML 1.0), so that what
//! is written again from it is too.

use std::sync::Arc;

use base::limits::DAV_BODY_MAX;
use thiserror::Error;

mod chars;
mod read;
mod write;

pub use write::{Writer, escape};

/// The namespace of the prefix `xml`, which needs no declaration.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of declarations, which nothing may be in.
pub(crate) const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Why a document is refused: always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum XmlError {
    /// Not well-formed.
    #[error("the XML is not well-formed")]
    Malformed,
    /// It is neither UTF-8 nor UTF-16 with its mark.
    #[error("the XML is neither UTF-8 nor UTF-16")]
    Encoding,
    /// A prefix that is not declared, or declared to nothing.
    #[error("the XML uses a prefix without a namespace")]
    Namespace,
    /// A document type, or an entity of its own.
    #[error("the XML has a document type or an entity that is not XML's own")]
    Entity,
    /// More elements, deeper, or longer names than we take.
    #[error("the XML is too large or too deep")]
    TooLarge,
}

/// A name with its namespace; no namespace is the empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// Namespace.
    pub ns: Arc<str>,
    /// Local part.
    pub local: Box<str>,
}

impl Name {
    /// A name from its parts.
    pub fn new(ns: &str, local: &str) -> Self {
        Self { ns: ns.into(), local: local.into() }
    }

    /// Whether it is this one.
    pub fn is(&self, ns: &str, local: &str) -> bool {
        *self.ns == *ns && *self.local == *local
    }
}

/// What an element holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Characters, without references.
    Text(String),
    /// An element.
    Element(Element),
}

/// An element with what is in it. Comments and processing instructions are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: Name,
    /// Attributes without declarations of namespaces, in their order.
    pub attributes: Vec<(Name, String)>,
    /// What is in it, in its order; no two texts in a row.
    pub children: Vec<Node>,
}

impl Element {
    /// Reads a document.
    ///
    /// # Errors
    /// [`XmlError`]; also for a body longer than [`DAV_BODY_MAX`].
    pub fn parse(document: &[u8]) -> Result<Self, XmlError> {
        if document.len() > DAV_BODY_MAX {
            return Err(XmlError::TooLarge);
        }
        read::document(&chars::decode(document)?)
    }

    /// The elements in it.
    pub fn elements(&self) -> impl Iterator<Item = &Element> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// The first element in it of this name in the namespace `DAV:`.
    pub fn dav(&self, local: &str) -> Option<&Element> {
        self.elements().find(|element| element.name.is(super::DAV, local))
    }

    /// The characters directly in it.
    pub fn text(&self) -> String {
        let texts = self.children.iter().filter_map(|node| match node {
            Node::Text(text) => Some(text.as_str()),
            Node::Element(_) => None,
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests;
