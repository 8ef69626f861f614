//! Extended attributes (RFC 8276). The file contract has none yet: they are refused, and
//! `xattr_support` is not among the supported attributes.

use wire::nfs4::Nfsstat4;

use super::run::{Handled, Run};

pub(super) fn refused(run: &mut Run<'_>) -> Handled {
    run.current()?;
    Err(Nfsstat4::NOTSUPP.into())
}
