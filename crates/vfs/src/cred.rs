//! Who is asking: the identity that the file system decides by.

/// A caller's identity at the file system. Names and squashing are settled before this is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cred {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Supplementary groups; at most 16 by AUTH_SYS.
    pub groups: Vec<u32>,
}

impl Cred {
    /// The superuser.
    pub const fn root() -> Self {
        Self { uid: 0, gid: 0, groups: Vec::new() }
    }

    /// Whether the caller is in `gid`.
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}
