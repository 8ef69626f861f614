//! The bodies of PROPFIND, PROPPATCH and LOCK (RFC 4918 §9.1, §9.2, §9.10).

use base::limits::{DAV_LOCK_OWNER_MAX, DAV_PROPS_ASKED_MAX};
use thiserror::Error;

use super::DAV;
use super::xml::{Element, Name, Node, Writer, XmlError};

/// Why a body is refused: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// It is not XML as we take it.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// It is XML, but not of this method.
    #[error("unexpected XML for this method")]
    Unexpected,
    /// It names more than we take at once.
    #[error("the request has too many items")]
    TooMany,
}

/// What PROPFIND requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Find {
    /// All that RFC 4918 defines, all dead properties, and these.
    All(Vec<Name>),
    /// The names of all.
    Names,
    /// These.
    These(Vec<Name>),
}

impl Find {
    /// Reads the body; none at all is [`Find::All`].
    ///
    /// # Errors
    /// [`BodyError`].
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        if body.is_empty() {
            return Ok(Self::All(Vec::new()));
        }
        let root = Element::parse(body)?;
        if !root.name.is(DAV, "propfind") {
            return Err(BodyError::Unexpected);
        }
        // Elements that are not known are ignored (§17), but exactly one must be.
        let which = |element: &&Element| {
            let known = ["allprop", "propname", "prop"];
            *element.name.ns == *DAV && known.contains(&&*element.name.local)
        };
        let mut wanted = root.elements().filter(which);
        let (Some(one), None) = (wanted.next(), wanted.next()) else {
            return Err(BodyError::Unexpected);
        };
        match &*one.name.local {
            "allprop" => Ok(Self::All(root.dav("include").map_or(Ok(Vec::new()), names)?)),
            "propname" => Ok(Self::Names),
            _ => Ok(Self::These(names(one)?)),
        }
    }
}

/// The names of the elements within, each once.
fn names(element: &Element) -> Result<Vec<Name>, BodyError> {
    let mut names = Vec::new();
    for inner in element.elements() {
        if names.len() >= DAV_PROPS_ASKED_MAX {
            return Err(BodyError::TooMany);
        }
        if !names.contains(&inner.name) {
            names.push(inner.name.clone());
        }
    }
    Ok(names)
}

/// A change of one property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patch {
    /// It gets this value.
    Set(Element),
    /// It is removed.
    Remove(Name),
}

impl Patch {
    /// Of which property.
    pub fn name(&self) -> &Name {
        match self {
            Self::Set(element) => &element.name,
            Self::Remove(name) => name,
        }
    }

    /// Reads the body of PROPPATCH: changes in the order in which they are to be made.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8]) -> Result<Vec<Self>, BodyError> {
        let root = Element::parse(body)?;
        if !root.name.is(DAV, "propertyupdate") {
            return Err(BodyError::Unexpected);
        }
        let mut patches = Vec::new();
        for action in root.elements().filter(|action| *action.name.ns == *DAV) {
            let set = match &*action.name.local {
                "set" => true,
                "remove" => false,
                _ => continue,
            };
            let prop = action.dav("prop").ok_or(BodyError::Unexpected)?;
            for property in prop.elements() {
                if patches.len() >= DAV_PROPS_ASKED_MAX {
                    return Err(BodyError::TooMany);
                }
                patches.push(if set {
                    Self::Set(with_language(property, prop, action, &root))
                } else {
                    Self::Remove(property.name.clone())
                });
            }
        }
        if patches.is_empty() { Err(BodyError::Unexpected) } else { Ok(patches) }
    }
}

/// The property with the language that it has from the elements around it (§4.3).
fn with_language(property: &Element, prop: &Element, set: &Element, root: &Element) -> Element {
    let language = |element: &Element| {
        let mut all = element.attributes.iter();
        all.find(|(name, _)| name.is(super::xml::XML, "lang")).cloned()
    };
    let mut property = property.clone();
    if language(&property).is_none() {
        let around = language(prop).or_else(|| language(set)).or_else(|| language(root));
        property.attributes.extend(around);
    }
    property
}

/// What LOCK requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockInfo {
    /// Exclusive or shared.
    pub exclusive: bool,
    /// The element `owner` as XML that can stand anywhere; empty if there is none. For people.
    pub owner: String,
}

impl LockInfo {
    /// Reads the body of a LOCK that is no refresh.
    ///
    /// # Errors
    /// [`BodyError`]
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let root = Element::parse(body)?;
        let write = root.dav("locktype").is_some_and(|kind| kind.dav("write").is_some());
        let scope = root.dav("lockscope").ok_or(BodyError::Unexpected)?;
        let exclusive = match (scope.dav("exclusive"), scope.dav("shared")) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            _ => return Err(BodyError::Unexpected),
        };
        if !root.name.is(DAV, "lockinfo") || !write {
            return Err(BodyError::Unexpected);
        }
        let mut owner = String::new();
        if let Some(element) = root.dav("owner") {
            Writer::new(&mut owner).element(&trimmed(element));
        }
        if owner.len() > DAV_LOCK_OWNER_MAX {
            return Err(BodyError::TooMany);
        }
        Ok(Self { exclusive, owner })
    }
}

/// Without the white space that pretty printers put around elements.
fn trimmed(element: &Element) -> Element {
    let mut element = element.clone();
    if element.elements().next().is_some() {
        element.children.retain(|node| match node {
            Node::Text(text) => !text.trim().is_empty(),
            Node::Element(_) => true,
        });
    }
    element
}

#[cfg(test)]
mod tests;
