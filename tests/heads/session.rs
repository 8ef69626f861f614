//! A client of NFSv4.1 with one open file that continues over restarts of its server as RFC 8881
//! §8.4.2 requires: it connects again, reclaims its open file and its lock, and states that it has
//! reclaimed everything.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use e2e::nfs4::files::Opened;
use e2e::nfs4::locks::Range;
use e2e::{nfs3, nfs4};
use wire::nfs4::{Nfsstat4, Stateid4};

/// How long an answer is waited for, before the client connects again.
pub const ANSWER: Duration = Duration::from_secs(1);
/// Owners of the open file and of the lock.
const OWNER: &str = "open";
const LOCKER: &str = "lock";

/// Why there is no connection.
#[derive(Debug)]
pub enum Trouble {
    /// The server is unreachable, or requests a retry.
    Away(String),
    /// Something is lost.
    Lost(String),
}

/// What became of an attempt to lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It has the lock.
    Granted,
    /// Another client has it.
    Denied,
}

/// What a client has at its server.
struct Held {
    /// Its client id: another one after a restart of the server.
    client: u64,
    file: Opened,
    lock: Option<(Range, Stateid4)>,
    /// Whether it has stated at this server that it has reclaimed everything.
    complete: bool,
}

/// A client.
pub struct Session {
    address: SocketAddr,
    export: String,
    name: String,
    file: String,
    held: Option<Held>,
    connection: Option<nfs4::Client>,
}

/// A connection to a server, for RPC.
pub fn connect(address: SocketAddr) -> Result<nfs3::Client, Trouble> {
    let away = |e: std::io::Error| Trouble::Away(e.to_string());
    let stream = TcpStream::connect_timeout(&address, ANSWER).map_err(away)?;
    let rpc = nfs3::Client::over(stream, 0, 0).map_err(away)?;
    rpc.stream().set_read_timeout(Some(ANSWER)).map_err(away)?;
    Ok(rpc)
}

impl Session {
    /// A client of this name that opens `file` in `export`, and creates it if it does not exist.
    pub fn new(address: SocketAddr, export: &str, name: &str, file: &str) -> Self {
        let (export, name, file) = (export.to_owned(), name.to_owned(), file.to_owned());
        Self { address, export, name, file, held: None, connection: None }
    }

    /// Writes to the file, on disk before the reply.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Trouble> {
        self.with(|client, held| client.write(&held.file, offset, data))
    }

    /// Tries to lock a range; what it gets is reclaimed after each restart of the server.
    pub fn lock(&mut self, range: Range) -> Result<Attempt, Trouble> {
        let attempt = |client: &mut nfs4::Client, held: &mut Held| match client
            .lock(&held.file, LOCKER, range, false)
        {
            Ok(stateid) => {
                held.lock = Some((range, stateid));
                Ok(Attempt::Granted)
            }
            Err(nfs4::Failure::Status(Nfsstat4::DENIED)) => Ok(Attempt::Denied),
            Err(failure) => Err(failure),
        };
        self.with(attempt)
    }

    /// Unlocks what it has locked.
    pub fn unlock(&mut self) -> Result<(), Trouble> {
        self.with(|client, held| {
            if let Some((range, stateid)) = held.lock {
                client.unlock(&held.file.handle, stateid, range)?;
                held.lock = None;
            }
            Ok(())
        })
    }

    /// Renews its lease, and reclaims what it holds if the server has restarted.
    pub fn renew(&mut self) -> Result<(), Trouble> {
        self.with(|client, _| client.compound(&[])?.last().map(|_| ()))
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut nfs4::Client, &mut Held) -> nfs4::Outcome<T>,
    ) -> Result<T, Trouble> {
        let mut client = match self.connection.take() {
            Some(client) => client,
            None => self.begin()?,
        };
        let Some(held) = &mut self.held else { return Err(Trouble::Lost("no file".to_owned())) };
        let done = work(&mut client, held);
        let is_broken = matches!(&done, Err(failure) if is_of_connection(failure));
        if !is_broken {
            self.connection = Some(client);
        }
        done.map_err(of_v4)
    }

    fn begin(&mut self) -> Result<nfs4::Client, Trouble> {
        // The same verifier: the client has not restarted.
        let rpc = connect(self.address)?;
        let mut client = nfs4::Client::over(rpc, 1, &self.name, 1).map_err(of_v4)?;
        match &mut self.held {
            Some(held) if held.client == client.id => {}
            Some(held) => {
                held.file = client.reclaim_open(&held.file.handle, OWNER).map_err(of_v4)?;
                if let Some((range, stateid)) = &mut held.lock {
                    *stateid = client.lock(&held.file, LOCKER, *range, true).map_err(of_v4)?;
                }
                (held.client, held.complete) = (client.id, false);
            }
            None => {
                complete(&mut client)?;
                let root = client.walk(&self.export).map_err(of_v4)?;
                let file = match client.open(&root, &self.file, OWNER, true) {
                    Err(nfs4::Failure::Status(Nfsstat4::EXIST)) => {
                        client.open(&root, &self.file, OWNER, false)
                    }
                    other => other,
                };
                let file = file.map_err(of_v4)?;
                self.held = Some(Held { client: client.id, file, lock: None, complete: true });
            }
        }
        if let Some(held) = self.held.as_mut().filter(|held| !held.complete) {
            complete(&mut client)?;
            held.complete = true;
        }
        Ok(client)
    }
}

/// RECLAIM_COMPLETE; the reply to an earlier one may have been lost.
fn complete(client: &mut nfs4::Client) -> Result<(), Trouble> {
    match client.reclaim_complete() {
        Ok(()) | Err(nfs4::Failure::Status(Nfsstat4::COMPLETE_ALREADY)) => Ok(()),
        Err(failure) => Err(of_v4(failure)),
    }
}

/// After these a client connects again.
const ANEW: [Nfsstat4; 3] = [Nfsstat4::BADSESSION, Nfsstat4::STALE_CLIENTID, Nfsstat4::DEADSESSION];

fn is_of_connection(failure: &nfs4::Failure) -> bool {
    match failure {
        nfs4::Failure::Broken(_) => true,
        nfs4::Failure::Status(status) => ANEW.contains(status),
    }
}

/// What a failure of NFSv3 means for a client.
pub fn of_v3(failure: nfs3::Failure) -> Trouble {
    match failure {
        nfs3::Failure::Broken(why) => Trouble::Away(why),
        // JUKEBOX.
        nfs3::Failure::Status(status) if status.0 == 10_008 => Trouble::Away(status.to_string()),
        nfs3::Failure::Status(status) => Trouble::Lost(status.to_string()),
    }
}

fn of_v4(failure: nfs4::Failure) -> Trouble {
    match failure {
        nfs4::Failure::Status(status @ (Nfsstat4::GRACE | Nfsstat4::DELAY)) => {
            Trouble::Away(status.to_string())
        }
        failure if is_of_connection(&failure) => Trouble::Away(format!("{failure:?}")),
        nfs4::Failure::Status(status) => Trouble::Lost(status.to_string()),
        nfs4::Failure::Broken(why) => Trouble::Away(why),
    }
}
