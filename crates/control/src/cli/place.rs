//! Where one is in the tree: the names from the root down.

use std::fmt;

use base::text::{UNRESERVED, percent};

/// A path in the tree; the root is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePath(pub Vec<String>);

impl NodePath {
    /// A path as the API prints it: `/shares/default`.
    pub fn parse(text: &str) -> Self {
        Self(text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The place that a path leads to from here, whether it is there or not.
    #[must_use]
    pub fn to(&self, path: &str) -> Self {
        let from = if path.starts_with('/') { Self::default() } else { self.clone() };
        path.split('/').fold(from, |at, name| match name {
            "" | "." => at,
            ".." => at.parent(),
            name => at.child(name),
        })
    }

    /// The place called `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Self(names)
    }

    /// The place above, the root being above itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.split_last().map_or(Vec::new(), |(_, above)| above.to_vec()))
    }

    /// Its own name; empty for the root.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Whether this is `other` or lies below it.
    pub fn within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The same place after `from` was renamed to `to`.
    #[must_use]
    pub fn moved(&self, from: &Self, to: &Self) -> Self {
        match self.0.strip_prefix(from.0.as_slice()) {
            Some(rest) => Self(to.0.iter().chain(rest).cloned().collect()),
            None => self.clone(),
        }
    }

    /// As a path of a URL: `/shares/a%20b` (RFC 3986 §3.3).
    pub fn url(&self) -> String {
        self.0.iter().fold(String::new(), |url, name| url + "/" + &escape(name))
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.write_str("/"),
            false => self.0.iter().try_for_each(|name| write!(f, "/{name}")),
        }
    }
}

/// A name as one segment of a URL's path: everything but unreserved characters is escaped.
pub fn escape(name: &str) -> String {
    percent(name.as_bytes(), UNRESERVED)
}
