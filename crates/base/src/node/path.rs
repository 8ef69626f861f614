//! The path of a node: `/configuration/services/nfs`.

use std::fmt;
use std::str::FromStr;

use crate::limits::{NODE_DEPTH_MAX, NODE_NAME_MAX};

/// Where a node is: names from the root down. The root's own path is `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(Vec<String>);

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is not absolute.
    #[error("a path begins with /, as in /configuration/services/nfs; this is {0:?}")]
    Relative(String),
    /// A name in it cannot be one.
    #[error("{0:?} is not a valid name in a path")]
    Segment(String),
    /// It goes too deep.
    #[error("a path has at most {NODE_DEPTH_MAX} names")]
    Deep,
}

impl Path {
    /// The root.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// A path that is written in the program, as `Path::of(&["shares", "default"])`.
    pub fn of(segments: &[&str]) -> Self {
        Self(segments.iter().map(|segment| (*segment).to_owned()).collect())
    }

    /// Its names from the root down.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last name; the root has none.
    pub fn name(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// The node above; the root has none.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// The node below under `name`, which is not checked.
    pub fn join(&self, name: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(name.to_owned());
        Self(segments)
    }

    /// Its first `depth` names.
    pub fn prefix(&self, depth: usize) -> Self {
        Self(self.0.iter().take(depth).cloned().collect())
    }

    /// Whether it is `above`, or below it.
    pub fn is_in(&self, above: &Self) -> bool {
        self.0.starts_with(&above.0)
    }

    /// The same place in a tree that has moved from `from` to `to`; itself if it is not in it.
    pub fn moved(&self, from: &Self, to: &Self) -> Self {
        match self.0.strip_prefix(from.0.as_slice()) {
            Some(rest) => Self(to.0.iter().chain(rest).cloned().collect()),
            None => self.clone(),
        }
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let inside = text.strip_prefix('/').ok_or_else(|| PathError::Relative(shortened(text)))?;
        if inside.is_empty() {
            return Ok(Self::root());
        }
        let inside = inside.strip_suffix('/').unwrap_or(inside);
        let mut segments = Vec::new();
        for segment in inside.split('/') {
            let bad = segment.is_empty()
                || segment == "."
                || segment == ".."
                || segment.len() > NODE_NAME_MAX
                || segment.chars().any(char::is_control);
            if bad {
                return Err(PathError::Segment(shortened(segment)));
            }
            if segments.len() == NODE_DEPTH_MAX {
                return Err(PathError::Deep);
            }
            segments.push(segment.to_owned());
        }
        Ok(Self(segments))
    }
}

/// What is wrong may be long.
fn shortened(text: &str) -> String {
    text.chars().take(NODE_NAME_MAX).collect()
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}
