//! `plimsoll http`: the locks of WebDAV of a running server, and releasing one. It asks the API as
//! the browser does.

use base::units;
use control::client::ClientError;
use control::dav::DavLock;
use control::nfs::Listing;

use super::columns::Side::{Left, Right};
use super::columns::table;
use super::{parse, unreachable};
use crate::cli::{HttpArgs, HttpCommand, ListArgs, ReleaseArgs};
use crate::out::{self, Failure};

const PATH: &str = "/api/v1/services/http/locks";

/// Runs the command.
///
/// # Errors
/// No server, or a lock that is not there.
pub fn run(args: &HttpArgs) -> Result<(), Failure> {
    match &args.command {
        HttpCommand::Locks(args) => locks(args),
        HttpCommand::Release(args) => release(args),
    }
}

fn locks(args: &ListArgs) -> Result<(), Failure> {
    let tried = "list the locks of WebDAV";
    let text = super::server(&args.server)?.get(PATH).map_err(|e| refused(tried, &e))?;
    if args.json {
        return out::print(&(String::from_utf8_lossy(&text).into_owned() + "\n"));
    }
    out::print(&shown(&parse(tried, &text)?))
}

fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let tried = format!("release the lock {}", args.lock);
    let path = format!("{PATH}/{}", out::url_encode(args.lock.as_bytes()));
    let text = super::server(&args.server)?.delete(&path).map_err(|e| refused(&tried, &e))?;
    if args.json {
        return out::print(&(String::from_utf8_lossy(&text).into_owned() + "\n"));
    }
    let was: DavLock = parse(&tried, &text)?;
    let DavLock { id, user, label, file, .. } = was;
    out::print(&format!("{id} is released: {user} at {label} had {file} locked\n"))
}

/// A lock that is not there is a wrong argument.
fn refused(tried: &str, error: &ClientError) -> Failure {
    match error {
        ClientError::Refused { status: 404, failed, .. } => {
            Failure::usage(tried, failed, "`plimsoll http locks` lists those there are")
        }
        error => unreachable(tried, error),
    }
}

/// Locks as columns.
fn shown(all: &Listing<DavLock>) -> String {
    if all.rows.is_empty() {
        return "no WebDAV client holds a lock\n".to_owned();
    }
    let head = [
        ("id", Left),
        ("user", Left),
        ("client", Left),
        ("kind", Left),
        ("depth", Left),
        ("since", Left),
        ("timeout", Right),
        ("left", Right),
        ("file", Left),
        ("owner", Left),
    ];
    let seconds = |s: u64| units::time_ns(s as f64 * 1e9);
    let row = |l: &DavLock| {
        [
            l.id.clone(),
            l.user.clone(),
            l.label.clone(),
            l.scope.clone(),
            l.depth.clone(),
            l.since.map_or_else(String::new, |since| units::utc(since.cast_signed())),
            seconds(l.timeout_s),
            seconds(l.left_s),
            l.file.clone(),
            l.owner.clone(),
        ]
    };
    table(head, &all.rows.iter().map(row).collect::<Vec<_>>(), all.more)
}

#[cfg(test)]
mod tests;
