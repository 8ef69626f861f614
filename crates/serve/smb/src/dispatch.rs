//! Which function does a request.

use wire::smb::header::Command;
use wire::smb::status::NtStatus;

pub(super) use super::reply::{About, Outcome, Reply};
pub(super) use super::request::Request;
use super::{close, create, dir, info, io, ioctl, leases, lock, set_info, tree};

/// Carries out a request.
///
/// # Errors
/// The status of the response.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let command = request.header.command;
    // What was opened before stays usable with the rights that were granted then.
    if request.session.is_anonymous.get()
        && matches!(command, Command::TREE_CONNECT | Command::CREATE)
    {
        return Err(NtStatus::ACCESS_DENIED);
    }
    match command {
        Command::LOGOFF => tree::logoff(request).await,
        Command::TREE_CONNECT => tree::connect(request),
        Command::TREE_DISCONNECT => tree::disconnect(request).await,
        Command::CREATE => create::run(request).await,
        Command::CLOSE => close::run(request).await,
        Command::FLUSH => io::flush(request).await,
        Command::READ => io::read(request).await,
        Command::WRITE => io::write(request).await,
        Command::LOCK => lock::run(request).await,
        Command::IOCTL => ioctl::run(request).await,
        Command::ECHO => Ok(request.empty()),
        Command::QUERY_DIRECTORY => dir::run(request).await,
        Command::QUERY_INFO => info::run(request).await,
        Command::SET_INFO => set_info::run(request).await,
        Command::OPLOCK_BREAK => leases::acknowledge(request),
        Command::CHANGE_NOTIFY => dir::notify(request).await,
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}
