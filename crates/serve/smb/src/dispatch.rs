//! Which function does a command: each tries it on the thread of its connection, and returns an
//! [`engine::exec::DispatchResult`] as those of every protocol do.

use wire::smb::header::Command;
use wire::smb::status::NtStatus;

pub(super) use super::reply::{Moved, Outcome, Reply};
pub(super) use super::request::{DispatchResult, Handled, Request, Steps, steps};
use super::{close, create, dir, info, io, ioctl, leases, lock, set_info, tree};

/// Tries to carry out a command. It has not begun anything that would have to be done again if it
/// has to be resumed.
///
/// # Errors
/// The status of the response.
pub(super) fn run(request: &Request) -> Handled {
    let command = request.header.command;
    // What was opened before stays usable with the rights that were granted then.
    if request.session.is_anonymous.get() && command == Command::CREATE {
        return Err(NtStatus::ACCESS_DENIED);
    }
    if request.session.is_null && !needs_no_user(command) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    match command {
        Command::LOGOFF => steps(tree::logoff),
        Command::TREE_CONNECT => tree::connect(request),
        Command::TREE_DISCONNECT => steps(tree::disconnect),
        Command::CREATE => steps(create::run),
        Command::CLOSE => steps(close::run),
        Command::FLUSH => steps(io::flush),
        Command::READ => io::read(request),
        Command::WRITE => io::write(request),
        Command::LOCK => steps(lock::run),
        Command::IOCTL => steps(ioctl::run),
        Command::ECHO => request.done(request.empty()),
        Command::QUERY_DIRECTORY => steps(dir::run),
        Command::QUERY_INFO => steps(info::run),
        Command::SET_INFO => steps(set_info::run),
        Command::OPLOCK_BREAK => leases::acknowledge(request),
        Command::CHANGE_NOTIFY => steps(dir::notify),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// Whether it is a command for sessions that have never had a user.
const fn needs_no_user(command: Command) -> bool {
    matches!(
        command,
        Command::LOGOFF
            | Command::TREE_CONNECT
            | Command::TREE_DISCONNECT
            | Command::IOCTL
            | Command::ECHO
    )
}
