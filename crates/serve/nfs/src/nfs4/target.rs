//! What a file handle stands for.

use std::sync::Arc;

use vfs::handle::Handle;
use vfs::share::Share;

use super::pseudo::Pseudo;

/// What a file handle stands for.
#[derive(Clone)]
pub enum FileHandleTarget {
    /// A directory above the shares.
    Pseudo(Pseudo),
    /// A file of a share.
    File(Target),
}

/// A file of a share.
#[derive(Clone)]
pub struct Target {
    /// The share.
    pub share: Arc<Share>,
    /// The file in it.
    pub handle: Handle,
}

impl FileHandleTarget {
    /// The file of a share, if it is one.
    pub fn target(&self) -> Option<Target> {
        match self {
            Self::Pseudo(_) => None,
            Self::File(target) => Some(target.clone()),
        }
    }

    /// The handle as the client knows it.
    pub fn handle(&self) -> Handle {
        match self {
            Self::Pseudo(pseudo) => pseudo.handle(),
            Self::File(target) => target.handle,
        }
    }
}

impl Target {
    /// Whether it is the directory that the share is named after.
    pub fn is_root(&self) -> bool {
        self.handle == self.share.fs.root()
    }

    /// Another file of the same share.
    pub fn in_same_share(&self, handle: Handle) -> FileHandleTarget {
        FileHandleTarget::File(Self { share: Arc::clone(&self.share), handle })
    }
}
