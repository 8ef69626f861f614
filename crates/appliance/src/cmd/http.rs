//! `plimsoll http`: the locks of WebDAV of a running server, and the release of one. It uses the
//! API as the browser does.

use base::units;
use control::client::Client;
use control::dav::DavLock;

use super::columns::Column;
use super::columns::Side::{Left, Right};
use super::columns::table;
use super::{print, print_from};
use crate::cli::HttpCommand;
use crate::out::{Failure, url_encode};

const PATH: &str = "/api/v1/services/http/locks";
/// The command that lists the ids of locks.
const LISTER: &str = "see `plimsoll http locks`";
const NONE: &str = "no WebDAV client holds a lock";

/// Runs the command.
///
/// # Errors
/// No server, or a lock that is not there.
pub fn run(command: &HttpCommand) -> Result<(), Failure> {
    match command {
        HttpCommand::Locks(args) => {
            let tried = "list the WebDAV locks";
            print((tried, LISTER), args, PATH, |all| table(&LOCKS, all, NONE))
        }
        HttpCommand::Release(args) => {
            let tried = format!("release the lock {}", args.lock);
            let path = format!("{PATH}/{}", url_encode(args.lock.as_bytes()));
            let delete = |server: &Client| server.delete(&path);
            print_from((&tried, LISTER), (&args.server, args.json), delete, released)
        }
    }
}

fn released(was: &DavLock) -> String {
    let DavLock { id, user, label, file, .. } = was;
    format!("{id} is released: {user} at {label} had {file} locked\n")
}

const LOCKS: [Column<DavLock>; 10] = [
    Column("id", Left, |l| l.id.clone()),
    Column("user", Left, |l| l.user.clone()),
    Column("client", Left, |l| l.label.clone()),
    Column("kind", Left, |l| l.scope.clone()),
    Column("depth", Left, |l| l.depth.clone()),
    Column("since", Left, |l| l.since.map_or_else(String::new, |s| units::utc(s.cast_signed()))),
    Column("timeout", Right, |l| seconds(l.timeout_s)),
    Column("left", Right, |l| seconds(l.left_s)),
    Column("file", Left, |l| l.file.clone()),
    Column("owner", Left, |l| l.owner.clone()),
];

fn seconds(s: u64) -> String {
    units::time_ns(s as f64 * 1e9)
}

#[cfg(test)]
mod tests;
