//! The identity of the caller: the file system decides by it.

/// A caller's identity at the file system. Names and squashing are settled before this is made.
#[derive(Debug, Clone, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "all fields decide in both")]
pub struct Cred {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Supplementary groups; at most 16 by AUTH_SYS.
    pub groups: Vec<u32>,
}

impl PartialEq for Cred {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid && self.gid == other.gid && self.has_groups(&other.groups)
    }
}

impl Cred {
    /// The superuser.
    pub const fn root() -> Self {
        Self { uid: 0, gid: 0, groups: Vec::new() }
    }

    /// Whether these are the caller's supplementary groups. Most have none, and then nothing is
    /// compared: the C library compares no bytes at all by a masked load, which at the address of
    /// an empty list, where there is no memory, takes a processor with AVX-512 130 ns.
    #[inline]
    pub fn has_groups(&self, groups: &[u32]) -> bool {
        self.groups.len() == groups.len() && (groups.is_empty() || self.groups == groups)
    }

    /// Whether the caller is in `gid`.
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}
