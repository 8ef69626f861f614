//! `plimsoll nfs`: the clients of a running server, their state, and the expiry of one. It uses the
//! API as the browser does.

use base::units;
use control::client::Client;
use control::nfs::{NfsClient, NfsLock, NfsOpen};

use super::columns::Column;
use super::columns::Side::{Left, Right};
use super::columns::table;
use super::{print, print_from};
use crate::cli::{HeldArgs, NfsCommand};
use crate::out::{Failure, url_encode};

const PATH: &str = "/api/v1/services/nfs";
/// The command that lists the ids of clients.
const LISTER: &str = "see `plimsoll nfs clients`";

/// Runs the command.
///
/// # Errors
/// No server, or a client that is not there.
pub fn run(command: &NfsCommand) -> Result<(), Failure> {
    match command {
        NfsCommand::Clients(args) => {
            let path = format!("{PATH}/clients");
            let show = |all: &_| table(&CLIENTS, all, NO_CLIENT);
            print(("list the NFS clients", LISTER), args, &path, show)
        }
        NfsCommand::Opens(args) => {
            held("opens", args, |all| table(&OPENS, all, "nothing is held open"))
        }
        NfsCommand::Locks(args) => {
            held("locks", args, |all| table(&LOCKS, all, "nothing is locked"))
        }
        NfsCommand::Expire(args) => {
            let tried = format!("expire the client {}", args.client);
            let path = format!("{PATH}/clients/{}", url_encode(args.client.as_bytes()));
            let delete = |server: &Client| server.delete(&path);
            print_from((&tried, LISTER), (&args.server, args.json), delete, expired)
        }
    }
}

/// Opens or locks, of one client or of all.
fn held<T: for<'a> serde::Deserialize<'a>>(
    what: &str,
    args: &HeldArgs,
    show: fn(&control::nfs::Listing<T>) -> String,
) -> Result<(), Failure> {
    let (mut tried, mut path) = (format!("list the {what}"), format!("{PATH}/{what}"));
    if let Some(client) = &args.client {
        tried += &format!(" of {client}");
        path += &format!("?client={}", url_encode(client.as_bytes()));
    }
    print((&tried, LISTER), &args.list, &path, show)
}

const NO_CLIENT: &str = "no NFS client holds state; one of NFSv3 shows only while it holds locks";

const CLIENTS: [Column<NfsClient>; 11] = [
    Column("id", Left, |c| c.id.clone()),
    Column("client", Left, |c| c.label.clone()),
    Column("version", Left, |c| c.version.clone()),
    Column("state", Left, |c| c.state.clone()),
    Column("silent", Right, silent),
    Column("sessions", Right, |c| c.sessions.to_string()),
    Column("opens", Right, |c| c.opens.to_string()),
    Column("locks", Right, locks_of),
    Column("delegations", Right, |c| c.delegations.to_string()),
    Column("user", Left, |c| c.principal.clone()),
    Column("name", Left, |c| c.name.clone()),
];

const OPENS: [Column<NfsOpen>; 7] = [
    Column("id", Left, |o| o.client.clone()),
    Column("client", Left, |o| o.label.clone()),
    Column("kind", Left, |o| o.kind.clone()),
    Column("access", Left, |o| o.access.clone()),
    Column("deny", Left, |o| o.deny.clone()),
    Column("file", Left, |o| o.file.file.clone()),
    Column("owner", Left, |o| o.owner.clone()),
];

const LOCKS: [Column<NfsLock>; 8] = [
    Column("id", Left, |l| l.client.clone()),
    Column("client", Left, |l| l.label.clone()),
    Column("kind", Left, |l| l.kind.clone()),
    Column("first byte", Right, |l| l.offset.to_string()),
    Column("bytes", Right, |l| l.length.map_or("to the end".to_owned(), |n| n.to_string())),
    Column("held", Left, |l| if l.waiting { "waits" } else { "held" }.to_owned()),
    Column("file", Left, |l| l.file.file.clone()),
    Column("owner", Left, |l| l.owner.clone()),
];

fn silent(client: &NfsClient) -> String {
    client.silent_s.map(|s| units::time_ns((s.max(0.0) * 1e9).round())).unwrap_or_default()
}

/// Locks, and how many are waited for if any are.
fn locks_of(client: &NfsClient) -> String {
    let NfsClient { locks, waiting, .. } = client;
    if *waiting == 0 { locks.to_string() } else { format!("{locks}+{waiting}") }
}

/// What ended with a client.
fn expired(was: &NfsClient) -> String {
    format!(
        "{} at {} is expired; with it ended {} opens, {} locks, {} delegations\n",
        was.id, was.label, was.opens, was.locks, was.delegations
    )
}

#[cfg(test)]
mod tests;
