//! The connection to the helper: that of its unit, or a child of this process if that is root.

use std::io;
use std::path::{Path, PathBuf};

use control::state::effective_uid;
use host_helper::client::Client;
use host_helper::request::{Reply, Request, Status};

/// Where the helper listens that runs as a unit of its own (packaging/plimsoll-host.service).
pub const SOCKET: &str = "/run/plimsoll-host.sock";
/// The folder of a helper that is a child, below the state directory.
const FOLDER: &str = "host";
/// What an administrator does where there is no helper.
const REMEDY: &str = "start the helper (systemctl enable --now plimsoll-host), or start the server \
                      as root";

/// The way to a helper.
pub struct Link {
    client: Option<Client>,
    socket: PathBuf,
    folder: PathBuf,
}

impl Link {
    /// For a server with this state directory.
    pub fn new(state: &Path) -> Self {
        Self { client: None, socket: SOCKET.into(), folder: state.join(FOLDER) }
    }

    /// Why there can be no helper, and what to do; nothing is started.
    pub fn lacks(&self) -> Option<String> {
        if self.client.is_some() {
            return None;
        }
        if let Some(why) = host_network::linux::lacks() {
            return Some(why);
        }
        let is_there = self.socket.exists();
        (!is_there && effective_uid() != 0)
            .then(|| format!("the server is not root and no helper runs: {REMEDY}"))
    }

    /// Whether a helper has worked for this server before, or runs.
    pub fn is_used(&self) -> bool {
        self.socket.exists() || effective_uid() == 0 && self.folder.exists()
    }

    /// Sends a request and waits for its answer, after connecting if need be.
    ///
    /// # Errors
    /// One sentence.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, String> {
        if let Some(why) = self.lacks() {
            return Err(why);
        }
        let failed = |e: io::Error| format!("the helper does not answer: {e}");
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect().map_err(failed)?,
        };
        let reply = client.ask(request).map_err(failed)?;
        self.client = Some(client);
        Ok(reply)
    }

    fn connect(&self) -> io::Result<Client> {
        if self.socket.exists() {
            return Client::connect(&self.socket);
        }
        Client::start(&std::env::current_exe()?, &self.folder)
    }

    /// What the helper has of the network.
    ///
    /// # Errors
    /// One sentence.
    pub fn status(&mut self) -> Result<Status, String> {
        match self.ask(&Request::NetworkStatus {})? {
            Reply::NetworkStatus(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }
}

/// An answer that does not belong to its request, in a sentence.
pub fn unexpected(reply: &Reply) -> String {
    match reply {
        Reply::Failed { why } => why.clone(),
        Reply::Wrong(list) => {
            let sentences: Vec<&str> = list.iter().map(|one| one.sentence.as_str()).collect();
            sentences.join("; ")
        }
        _ => "the helper is of another version: restart both".to_owned(),
    }
}
