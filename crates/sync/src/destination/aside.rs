//! The file that is written: a temporary file or, in place, the target.

use crate::tree::Tree;

/// A temporary file next to its target, or, for a write in place, the target.
pub struct Aside<T: Tree> {
    pub dir: T::Dir,
    pub name: Vec<u8>,
    pub file: T::File,
    /// Whether this is the target: then it is never removed.
    pub in_place: bool,
}
