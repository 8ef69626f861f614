//! The permissions of the caller on the tree.

use crate::access::Rights;

/// The permissions of a caller: whether they are sufficient, and if not, why.
pub trait Viewer {
    /// Whether nodes of this scope may be seen.
    fn may_read(&self, scope: &str) -> bool;
    /// Why nodes of this scope may not be changed; `None`: they may.
    fn why_not(&self, scope: &str) -> Option<String>;
    /// All that the viewer may do: no more can be granted to others.
    fn rights(&self) -> Rights;
}

/// The viewer with all permissions: the program itself.
#[derive(Debug, Clone, Copy)]
pub struct Everything;

impl Viewer for Everything {
    fn may_read(&self, _scope: &str) -> bool {
        true
    }

    fn why_not(&self, _scope: &str) -> Option<String> {
        None
    }

    fn rights(&self) -> Rights {
        Rights::all()
    }
}
