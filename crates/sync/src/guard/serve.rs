//! The server's end of a [`Guard`](super::Guard).

use std::any::Any;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::limits::{DSYNC_GUARD_HIDDEN_MAX, DSYNC_GUARD_OPENS_MAX};

use super::{
    AGAIN, ASK, Access, CLOSE, DONE, GRACE, HELLO, HIDDEN, Inode, KEPT, OPEN, REFUSED, number32,
    number64,
};

/// Why a file is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A client has a lease on it, and was asked to give it back.
    Recalling,
    /// Clients may reclaim what is in the way, until the grace period of the server ends.
    Grace,
    /// A client denies it, or the server has claimed it.
    InUse,
}

/// What a server knows of its shares.
pub trait ShareLayer {
    /// An open file; it is closed when dropped.
    type Open: Any;

    /// How long a run waits for a lease at most.
    fn wait(&self) -> Duration;
    /// What is hidden from clients now.
    fn hidden(&self) -> Vec<Inode>;
    /// Whether what has this device and inode has to keep its name.
    fn keeps_name(&self, entry: Inode) -> bool;
    /// Opens the file at a path, which is this one.
    ///
    /// # Errors
    /// [`Refusal`]
    fn open(&self, path: &Path, file: Inode, access: Access) -> Result<Self::Open, Refusal>;
}

/// Answers a run until it has ended; what it has open is closed then.
pub fn serve<L: ShareLayer>(mut stream: UnixStream, layer: &L) {
    let mut run = Run { process: 0, opens: HashMap::new(), next: 0 };
    let mut ask = [0; ASK];
    while stream.read_exact(&mut ask).is_ok() {
        let (what, one) = (number32(&ask[..4]), number64(&ask[4..12]));
        let (status, pairs) = run.answer(layer, what, (one, number64(&ask[12..])));
        if reply(&mut stream, status, &pairs).is_err() {
            return;
        }
    }
}

fn reply(stream: &mut UnixStream, status: u32, pairs: &[(u64, u64)]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(8 + pairs.len() * 16);
    bytes.extend_from_slice(&status.to_be_bytes());
    bytes.extend_from_slice(&(pairs.len() as u32).to_be_bytes());
    for (one, two) in pairs {
        bytes.extend_from_slice(&one.to_be_bytes());
        bytes.extend_from_slice(&two.to_be_bytes());
    }
    stream.write_all(&bytes)
}

/// A run: its process, and what it has open.
struct Run<O> {
    process: u64,
    opens: HashMap<u64, O>,
    next: u64,
}

impl<O> Run<O> {
    fn answer<L: ShareLayer<Open = O>>(
        &mut self,
        layer: &L,
        what: u32,
        (one, two): (u64, u64),
    ) -> (u32, Vec<(u64, u64)>) {
        match what {
            HELLO => {
                self.process = one;
                (DONE, vec![(layer.wait().as_millis() as u64, 0)])
            }
            HIDDEN => {
                let mut hidden = layer.hidden();
                hidden.truncate(DSYNC_GUARD_HIDDEN_MAX);
                (DONE, hidden)
            }
            KEPT => (DONE, if layer.keeps_name((one, two)) { vec![(one, two)] } else { vec![] }),
            OPEN => match self.open(layer, one, two) {
                Ok(number) => (DONE, vec![(number, 0)]),
                Err(Refusal::Recalling) => (AGAIN, vec![]),
                Err(Refusal::Grace) => (GRACE, vec![]),
                Err(Refusal::InUse) => (REFUSED, vec![]),
            },
            CLOSE => {
                self.opens.remove(&one);
                (DONE, vec![])
            }
            _ => (REFUSED, vec![]),
        }
    }

    fn open<L: ShareLayer<Open = O>>(
        &mut self,
        layer: &L,
        fd: u64,
        access: u64,
    ) -> Result<u64, Refusal> {
        let access = Access::of(access).ok_or(Refusal::InUse)?;
        if self.opens.len() >= DSYNC_GUARD_OPENS_MAX {
            return Err(Refusal::InUse);
        }
        let held = PathBuf::from(format!("/proc/{}/fd/{fd}", self.process));
        // Of the descriptor, whatever has its name now.
        let meta = std::fs::metadata(&held).map_err(|_| Refusal::InUse)?;
        let path = std::fs::read_link(&held).map_err(|_| Refusal::InUse)?;
        let open = layer.open(&path, (meta.dev(), meta.ino()), access)?;
        self.next += 1;
        self.opens.insert(self.next, open);
        Ok(self.next)
    }
}
