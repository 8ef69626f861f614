//! One file per command, and what they share: how to find a server.

pub mod analytics;
pub mod cli;
mod columns;
pub mod demo;
pub mod doctor;
pub mod head;
pub mod host;
pub mod http;
pub mod inspect;
pub mod lab;
mod memory;
pub mod nfs;
pub mod serve;
pub mod sftp_server;

use std::path::Path;

use control::client::{Client, ClientError};
use control::state::{SOCKET, registry};
use serde::de::DeserializeOwned;

use crate::cli::{ListArgs, ServerArgs};
use crate::out::{self, Failure};

/// The server that a command means: named by URL, by its state directory, or the only one that
/// runs here under this user.
pub fn server(args: &ServerArgs) -> Result<Client, Failure> {
    if let (Some(url), Some(token)) = (&args.server, &args.token_file) {
        let beside = || token.parent().unwrap_or(Path::new("")).join("certificate.pem");
        let certificate = args.ca.clone().unwrap_or_else(beside);
        return Client::remote(url, token, &certificate).map_err(|e| {
            let hint = match &e {
                ClientError::File { path, .. } if *path == certificate => {
                    "use --ca FILE with a copy of certificate.pem from the server's state directory"
                }
                ClientError::File { .. } => {
                    "use a file with the server's api-token from its state directory, or with the \
                     secret of a token from configuration/tokens"
                }
                ClientError::Url(_) => "for example https://nas.example.org:10215",
                _ => "use --ca FILE with the server's certificate, as PEM",
            };
            Failure::of("reach the server", &e).hint(hint)
        });
    }
    if let Some(state) = &args.state {
        return Ok(Client::local_or_starting(&state.join(SOCKET), starts));
    }
    let running: Vec<registry::Entry> =
        registry::default_dirs().iter().flat_map(|dir| registry::running(dir)).collect();
    match running.as_slice() {
        [one] => Ok(Client::local_or_starting(&one.socket, starts)),
        [] => Err(Failure::new(
            "find a server",
            "no server of this user is running on this machine",
            "start one with `plimsoll serve DIR`, or select one with --state DIR or --server URL \
             --token-file FILE",
        )),
        many => {
            let one = |entry: &registry::Entry| {
                let state = out::shell_quote(&entry.state.to_string_lossy());
                format!("--state {state}  (serves {})", entry.dir.display())
            };
            let list: Vec<String> = many.iter().map(one).collect();
            let hint = format!("select one:\n    {}", list.join("\n    "));
            let failed = format!("{} servers run on this machine", many.len());
            Err(Failure::new("select a server", &failed, &hint))
        }
    }
}

/// Reports that a command waits.
fn starts() {
    out::note("plimsoll: the server does not answer yet; waiting until it has started");
}

/// Prints the resource at a path of the API: as JSON, or as `show` formats it. Where the server
/// does not know a name in the path (404), the argument was wrong, and `lister` names the command
/// that lists the valid ones; it is empty if the path has no name.
fn print<T: DeserializeOwned>(
    (tried, lister): (&str, &str),
    args: &ListArgs,
    path: &str,
    show: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    print_from((tried, lister), (&args.server, args.json), |server| server.get(path), show)
}

/// The same for the answer to any request.
fn print_from<T: DeserializeOwned>(
    (tried, lister): (&str, &str),
    (at, json): (&ServerArgs, bool),
    request: impl FnOnce(&Client) -> Result<Vec<u8>, ClientError>,
    show: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let text = request(&server(at)?).map_err(|error| match &error {
        ClientError::Refused { status: 404, failed, .. } if !lister.is_empty() => {
            Failure::usage(tried, failed, lister)
        }
        error => unreachable(tried, error),
    })?;
    print_answer(tried, json, &text, show)
}

/// Prints an answer of the API: as it came, or as `show` has it.
fn print_answer<T: DeserializeOwned>(
    tried: &str,
    json: bool,
    text: &[u8],
    show: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    if json {
        return out::print(&(String::from_utf8_lossy(text).into_owned() + "\n"));
    }
    out::print(&show(&parse(tried, text)?))
}

/// An answer of the API.
fn parse<T: DeserializeOwned>(tried: &str, text: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(text).map_err(|e| {
        Failure::of(tried, &e).hint("the server has another version of the API; try --json")
    })
}

/// A server that does not answer, or not as it should.
fn unreachable(tried: &str, error: &ClientError) -> Failure {
    Failure::of(tried, error).hint(match error {
        ClientError::Unreachable { .. } => "start a server with `plimsoll serve DIR`",
        _ => "",
    })
}
