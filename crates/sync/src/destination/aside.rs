//! A file that is written beside its place.

use crate::tree::Tree;

/// A file beside its place, or at it.
pub struct Aside<T: Tree> {
    pub dir: T::Dir,
    pub name: Vec<u8>,
    pub file: T::File,
    /// Whether it lies at its place already, and is somebody's whatever becomes of it.
    pub in_place: bool,
}
