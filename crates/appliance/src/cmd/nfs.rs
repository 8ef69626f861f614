//! `plimsoll nfs`: the clients of a running server, what they hold, and ending one. It asks the API
//! as the browser does.

mod table;

use control::client::ClientError;
use control::nfs::{Listing, NfsClient, NfsLock, NfsOpen};
use serde::Deserialize;

use super::{parse, unreachable};
use crate::cli::{ExpireArgs, HeldArgs, ListArgs, NfsArgs, NfsCommand, ServerArgs};
use crate::out::{self, Failure};

const PATH: &str = "/api/v1/services/nfs";

/// Runs the command.
///
/// # Errors
/// No server, or a client that is not there.
pub fn run(args: &NfsArgs) -> Result<(), Failure> {
    match &args.command {
        NfsCommand::Clients(args) => clients(args),
        NfsCommand::Opens(args) => {
            let tried = tried("list the opens", args.client.as_deref());
            held::<NfsOpen>("opens", &tried, args, table::opens)
        }
        NfsCommand::Locks(args) => {
            let tried = tried("list the locks", args.client.as_deref());
            held::<NfsLock>("locks", &tried, args, table::locks)
        }
        NfsCommand::Expire(args) => expire(args),
    }
}

fn tried(what: &str, client: Option<&str>) -> String {
    client.map_or_else(|| what.to_owned(), |client| format!("{what} of {client}"))
}

fn clients(args: &ListArgs) -> Result<(), Failure> {
    let tried = "list the NFS clients";
    let text = get(&format!("{PATH}/clients"), tried, &args.server)?;
    if args.json {
        return out::print(&text);
    }
    let all: Listing<NfsClient> = parse(tried, text.as_bytes())?;
    out::print(&table::clients(&all))
}

fn held<T: for<'a> Deserialize<'a>>(
    what: &str,
    tried: &str,
    args: &HeldArgs,
    show: fn(&Listing<T>) -> String,
) -> Result<(), Failure> {
    let whose =
        args.client.as_deref().map(|id| format!("?client={}", out::url_encode(id.as_bytes())));
    let text = get(&format!("{PATH}/{what}{}", whose.unwrap_or_default()), tried, &args.server)?;
    if args.json {
        return out::print(&text);
    }
    out::print(&show(&parse(tried, text.as_bytes())?))
}

fn get(path: &str, tried: &str, server: &ServerArgs) -> Result<String, Failure> {
    let server = super::server(server)?;
    let text = server.get(path).map_err(|e| refused(tried, &e))?;
    Ok(String::from_utf8_lossy(&text).into_owned() + "\n")
}

fn expire(args: &ExpireArgs) -> Result<(), Failure> {
    let tried = format!("expire the client {}", args.client);
    let server = super::server(&args.server)?;
    let path = format!("{PATH}/clients/{}", out::url_encode(args.client.as_bytes()));
    let text = server.delete(&path).map_err(|e| refused(&tried, &e))?;
    if args.json {
        return out::print(&(String::from_utf8_lossy(&text).into_owned() + "\n"));
    }
    let was: NfsClient = parse(&tried, &text)?;
    out::print(&table::expired(&was))
}

/// A client that is not there is a wrong argument.
fn refused(tried: &str, error: &ClientError) -> Failure {
    match error {
        ClientError::Refused { status: 404, failed, .. } => {
            Failure::usage(tried, failed, "`plimsoll nfs clients` lists those there are")
        }
        error => unreachable(tried, error),
    }
}
