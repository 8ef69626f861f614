//! The protocols' own names for their operations and status numbers, as `schema/` has them, and the
//! way back.

use std::borrow::Cow;

use crate::op::Protocol;
use crate::schema::schema;

/// The names of all operations, by number.
pub fn ops(protocol: Protocol) -> &'static [String] {
    schema().group(protocol.id()).map_or(&[], |group| &group.operations)
}

/// All status numbers with their names.
pub fn statuses(protocol: Protocol) -> &'static [(u16, String)] {
    schema().group(protocol.id()).map_or(&[], |group| &group.statuses)
}

/// The operation's name as its RFC has it, in lower case; its number when it has none.
pub fn op_name(protocol: Protocol, op: u8) -> Cow<'static, str> {
    match ops(protocol).get(usize::from(op)) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(op.to_string()),
    }
}

/// The number of the operation `name`.
pub fn op_number(protocol: Protocol, name: &str) -> Option<u8> {
    schema().group(protocol.id()).and_then(|group| group.op_number(name))
}

/// The status as its RFC writes it; its number when it has no name.
pub fn status_name(protocol: Protocol, status: u16) -> Cow<'static, str> {
    match statuses(protocol).iter().find(|(n, _)| *n == status) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(status.to_string()),
    }
}

/// The number of the status `name`.
pub fn status_number(protocol: Protocol, name: &str) -> Option<u16> {
    schema().group(protocol.id()).and_then(|group| group.status_number(name))
}

#[cfg(test)]
mod tests;
