//! The pseudo file system (RFC 8881 §7.3): `/` holds `export`, which holds the shares. Read-only,
//! and always there, so that one root leads to everything.

use vfs::attr::Attr;
use vfs::handle::Handle;
use vfs::share::{Share, ShareTable};

/// First bytes of its handles. Those of files begin with another byte.
const MAGIC: &[u8; 5] = b"\xffroot";
/// Its file system id: no device has it.
pub(super) const PSEUDO_FSID: u64 = 0x706c_696d_736f_6c6c;
/// Inode numbers of shares as seen from above begin here.
const SHARES_FROM: u64 = 16;
/// The only name in the root.
const EXPORT_NAME: &[u8] = b"export";

/// A directory of the pseudo file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    /// `/`.
    Root,
    /// `/export`.
    Export,
}

/// What a name in it leads to.
pub(super) enum Below<'a> {
    /// Another directory of it.
    Pseudo(Pseudo),
    /// The root of a share.
    Share(&'a std::sync::Arc<Share>),
}

impl Pseudo {
    /// Its handle.
    pub fn handle(self) -> Handle {
        let [a, b, c, d, e] = *MAGIC;
        let which = match self {
            Self::Root => 1,
            Self::Export => 2,
        };
        Handle::short([a, b, c, d, e, which, 0, 0])
    }

    /// What a handle stands for, if it is one of these.
    pub fn from_handle(handle: &Handle) -> Option<Self> {
        [Self::Root, Self::Export].into_iter().find(|pseudo| pseudo.handle() == *handle)
    }

    /// Its attributes. Its change attribute is that of the table of shares: `change`.
    pub(super) fn attr(self, change: u64) -> Attr {
        Attr { size: 4096, fsid: PSEUDO_FSID, fileid: self.fileid(), change, ..Attr::of_shares() }
    }

    /// Its inode number.
    pub(super) fn fileid(self) -> u64 {
        match self {
            Self::Root => 1,
            Self::Export => 2,
        }
    }

    /// What is above.
    pub(super) fn parent(self) -> Option<Self> {
        match self {
            Self::Root => None,
            Self::Export => Some(Self::Root),
        }
    }

    /// A name in it.
    pub(super) fn lookup<'a>(self, shares: &'a ShareTable, name: &[u8]) -> Option<Below<'a>> {
        match self {
            Self::Root => (name == EXPORT_NAME).then_some(Below::Pseudo(Self::Export)),
            Self::Export => {
                shares.iter().find(|share| share.name.as_bytes() == name).map(Below::Share)
            }
        }
    }

    /// The names in it after `cookie`, each with its cookie and what it leads to.
    pub(super) fn list<'a>(
        self,
        shares: &'a ShareTable,
        cookie: u64,
    ) -> Vec<(u64, &'a [u8], Below<'a>)> {
        // 0 to 2 are reserved (RFC 8881 §18.23.3). Names that come or go between two calls do not
        // move the others.
        let all: Vec<(u64, &[u8], Below<'a>)> = match self {
            Self::Root => vec![(3, EXPORT_NAME, Below::Pseudo(Self::Export))],
            Self::Export => shares
                .iter()
                .map(|s| (2 + u64::from(s.id), s.name.as_bytes(), Below::Share(s)))
                .collect(),
        };
        all.into_iter().filter(|(at, ..)| *at > cookie).collect()
    }
}

/// The inode number of a share's root as seen from `/export` (`mounted_on_fileid`).
pub(super) fn mounted_on(share: &Share) -> u64 {
    SHARES_FROM + u64::from(share.id)
}

/// Changes when the table of shares does.
pub(super) fn table_change(shares: &ShareTable) -> u64 {
    shares.iter().fold(1, |sum: u64, share| {
        let name = share.name.bytes().fold(0u64, |n, b| n.wrapping_mul(31) + u64::from(b));
        sum.wrapping_mul(1_000_003).wrapping_add(name)
    })
}
