//! Sequential reads and writes over NFSv3, as IOzone makes them: each connection has one request of
//! a block in flight and waits for its reply. Writes are UNSTABLE (RFC 1813 §3.3.7), and are not
//! committed.

use super::diagnosis::Diagnosis;
use super::plan::{At, Carrier, Plan};
use super::server::Server;
use super::sockets::Probe;
use super::transport::{Carried, SweepError, Transport};
use super::turns::{self, BlockTransfer};
use crate::bridge::scene::Scene;
use crate::client::{self, Client, ClientError, Completion, Fault, FileSet, Op, Options, Target};
use base::clock::Deadline;
use base::limits::{LAB_SILENCE_MAX, SWEEP_FILE_BLOCKS};
use base::tcp_info::TcpInfo;
use std::os::fd::BorrowedFd;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Nfs;

/// One connection.
struct Thread<'a> {
    client: Box<dyn Client>,
    /// Sees the server's end.
    beyond: &'a Diagnosis,
    writes: bool,
    block: u32,
    size: u64,
    offset: u64,
    done: Vec<Completion>,
}

impl Transport for Nfs {
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError> {
        let server = Server::start(plan, at, link)?;
        let beyond = Diagnosis::open(&link.second)?;
        let mut probe = Probe::new(plan, at, link)?;
        let target = server.nfs()?;
        let mut all = Vec::new();
        for number in 0..at.instances {
            let set = FileSet { client: number, files: 1, size: at.window * SWEEP_FILE_BLOCKS };
            server.make_files(&set)?;
            // Its sockets are made here.
            let opened = link.first.within(|| Ok(open(&target, &set, plan.seed)))?;
            all.push(Thread {
                client: opened?,
                beyond: &beyond,
                writes: plan.carrier == Carrier::NfsWrite,
                block: u32::try_from(at.window).unwrap_or(u32::MAX),
                size: set.size,
                offset: 0,
                done: Vec::new(),
            });
        }
        let sum = turns::run(plan, at, probe.rtt_s(), all)?;
        // What else the machine does now is what it did for the blocks.
        probe.measure()?;
        Ok(Carried { bytes_s: sum.bytes_s, rtt_s: probe.rtt_s(), tcp: sum.tcp })
    }
}

/// A client that has mounted the share and found its file.
fn open(target: &Target, set: &FileSet, seed: u64) -> Result<Box<dyn Client>, ClientError> {
    // What is read is not looked at: files are empty but for their size.
    let options = Options { bind: None, seed, check_one_in: 0, slots: 1 };
    let mut client = client::open(target, &options)?;
    client.prepare(set)?;
    Ok(client)
}

impl Thread<'_> {
    /// One request and its reply.
    fn ask(&mut self) -> Result<(), ClientError> {
        let (offset, len) = (self.offset, self.block);
        let op = match self.writes {
            true => Op::Write { file: 0, offset, len, stable: false },
            false => Op::Read { file: 0, offset, len },
        };
        self.client.submit(0, op)?;
        self.client.flush()?;
        let deadline = Deadline::after(LAB_SILENCE_MAX);
        while self.done.is_empty() {
            self.client.wait(LAB_SILENCE_MAX, &mut self.done)?;
            if deadline.passed() {
                return Err(ClientError::Silent("a request", LAB_SILENCE_MAX));
            }
        }
        let refused = |fault: Fault| {
            let (what, status) = (op.to_string(), fault.to_string());
            Err(ClientError::Refused { what, status })
        };
        self.offset = (offset + u64::from(len)) % self.size;
        self.done.drain(..).try_for_each(|one| one.outcome.map(drop).or_else(refused))
    }
}

impl BlockTransfer for Thread<'_> {
    fn block(&mut self) -> Result<(), SweepError> {
        Ok(self.ask()?)
    }

    fn info(&self) -> Option<TcpInfo> {
        let socket = self.client.descriptor()?;
        if self.writes {
            return TcpInfo::of(&socket);
        }
        // SAFETY: the client has it open, and lives longer than this use of it.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        let own = socket2::SockRef::from(&socket).local_addr().ok()?;
        self.beyond.of(own.as_socket()?.port())
    }
}
