//! Which operation takes what from the leases of others, and waits for what: one table.

use super::super::{Caching, Kind};

/// What is about to be done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// An open that reads, renames or removes.
    OpenRead,
    /// An open that writes.
    OpenWrite,
    /// An open that empties the file.
    Overwrite,
    /// An open that a share mode is in the way of.
    Conflict,
    /// A read without an open: NFSv3, and NFSv4 with a special stateid.
    Read,
    /// A look at attributes that must be those of what was written.
    Look,
    /// A change of data or size.
    Write,
    /// A change of other attributes.
    Attributes,
    /// A byte-range lock, shared.
    RangeShared,
    /// A byte-range lock, exclusive.
    RangeExclusive,
    /// A query, or a request that waits, for an exclusive byte-range lock: for a shared one it is
    /// as [`Trigger::Read`].
    TestExclusive,
    /// A name of the file goes, or leads to another file.
    Name,
}

/// What a trigger does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What leases and oplocks of SMB lose.
    pub takes: Caching,
    /// As long as one has any of this, the operation waits.
    pub waits: Caching,
    /// A delegation of NFSv4 that has any of this is recalled, and waited for.
    pub recalls: Caching,
}

const fn rule(takes: Caching, waits: Caching, recalls: Caching) -> Rule {
    Rule { takes, waits, recalls }
}

impl Trigger {
    /// Every one of them.
    pub const ALL: [Self; 12] = [
        Self::OpenRead,
        Self::OpenWrite,
        Self::Overwrite,
        Self::Conflict,
        Self::Read,
        Self::Look,
        Self::Write,
        Self::Attributes,
        Self::RangeShared,
        Self::RangeExclusive,
        Self::TestExclusive,
        Self::Name,
    ];

    /// The row of the table (MS-FSA §2.1.4.12, RFC 8881 §10.4.2). A holder that loses reading
    /// loses all.
    pub const fn rule(self) -> Rule {
        let (none, read, handle) = (Caching::NONE, Caching::READ, Caching::HANDLE);
        let (write, both) = (Caching::WRITE, Caching::READ_WRITE);
        match self {
            Self::OpenRead | Self::Read | Self::Look => rule(write, write, write),
            Self::OpenWrite => rule(write, write, both),
            Self::Overwrite | Self::Write => rule(read, write, both),
            Self::Conflict => rule(handle, handle, none),
            Self::Attributes => rule(none, none, both),
            // Their holders may lock bytes shared (read delegations) or in any way (write
            // delegations) without the server's knowledge (RFC 8881 §10.4).
            Self::RangeShared => rule(read, write, write),
            Self::RangeExclusive => rule(read, write, both),
            Self::TestExclusive => rule(write, write, both),
            Self::Name => rule(handle, handle, both),
        }
    }

    /// That of a byte-range lock.
    pub const fn of_range(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::RangeShared,
            Kind::Write => Self::RangeExclusive,
        }
    }

    /// That of a query for a byte-range lock, or of a request that waits for one.
    pub const fn of_test(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::Read,
            Kind::Write => Self::TestExclusive,
        }
    }

    /// Whether it is an open, which waits for breaks that others have begun, too.
    pub const fn opens(self) -> bool {
        matches!(self, Self::OpenRead | Self::OpenWrite | Self::Overwrite | Self::Conflict)
    }
}

#[cfg(test)]
mod tests;
