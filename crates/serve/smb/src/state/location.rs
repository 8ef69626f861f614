//! Where a file was found.

use vfs::attr::Attr;
use vfs::handle::Handle;

use files::walk::Link;
use files::{Node, Spot};

/// Where a file was found: its directory and its name there. To remove or rename it there is to do
/// that with the link, if it is one that was followed.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The directory.
    pub dir: Handle,
    /// The name.
    pub name: Vec<u8>,
    /// Attributes of the symbolic link that has the name.
    pub link: Option<Box<Attr>>,
}

impl Location {
    /// Whether a link that was followed has the name.
    pub fn is_link(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it is the same name, of the same link or file.
    pub fn is_same(&self, other: &Self) -> bool {
        self.dir == other.dir && self.name == other.name && self.is_link() == other.is_link()
    }

    /// Attributes of what has the name: the link, or the file that it leads to.
    pub fn attr<'a>(&'a self, file: &'a Node) -> &'a Attr {
        self.link.as_deref().unwrap_or(&file.attr)
    }
}

impl From<&Spot> for Location {
    /// Where a path has led, or would have led.
    fn from(spot: &Spot) -> Self {
        match &spot.link {
            Some(Link { dir, name, attr }) => {
                Self { dir: *dir, name: name.clone(), link: Some(Box::new(*attr)) }
            }
            None => Self { dir: spot.dir, name: spot.name.clone(), link: None },
        }
    }
}
