//! Whole files over FTP, FTPS, HTTPS and SFTP, from the server to clients of the lab with a fixed
//! window. A file is so large that a point ends before it does.

use super::diagnosis::Diagnosis;
use super::plan::{At, Plan};
use super::server::Server;
use super::sockets::{self, Probe};
use super::stream::counted;
use super::transport::{Carried, SweepError, Transport};
use crate::bridge::scene::Scene;
use crate::client::service::at::ServiceAt;
use crate::client::service::{self, Session};
use crate::client::{ClientError, FileSet};
use base::limits::{LAB_STREAM_BUFFER, SWEEP_FILE_TIMES};
use base::tcp_info::TcpInfo;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// In place of a port: there was more than one connection; their accounting cannot be compared.
const SEVERAL: u16 = 1;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Files;

/// What all clients of a point share.
struct Common<'a> {
    at: &'a ServiceAt,
    path: String,
    window: u64,
    /// All clients are signed in, or were refused.
    signed_in: Barrier,
    stop: AtomicBool,
    /// The ports of the connections by which the files come; 0 before one is known, or [`SEVERAL`].
    ports: Vec<AtomicU16>,
}

impl Transport for Files {
    fn carry(&self, plan: &Plan, at: &At, link: &Scene) -> Result<Carried, SweepError> {
        let scheme = plan.carrier.service().ok_or(SweepError::Nothing)?;
        let server = Server::start(plan, at, link)?;
        let set = FileSet { client: 0, files: 1, size: file_size(plan, at) };
        server.make_files(&set)?;
        let (beyond, service) = (Diagnosis::open(&link.second)?, server.service(scheme)?);
        let rtt_s = Probe::new(plan, at, link)?.rtt_s();
        let common = Common {
            at: &service,
            path: format!("{}/{}/{}", service.path, set.dir_name(), set.file_name(0)),
            window: at.window,
            signed_in: Barrier::new(at.instances as usize + 1),
            stop: AtomicBool::new(false),
            ports: (0..at.instances).map(|_| AtomicU16::new(0)).collect(),
        };
        // Threads that are started there stay there, and so do all sockets that they make.
        link.first.within(|| Ok(common.run(plan, at, rtt_s, &beyond)))?
    }
}

/// More than can come over the link until a point is done.
fn file_size(plan: &Plan, at: &At) -> u64 {
    let (warm_ns, measured_ns) = plan.times_ns(at);
    ((warm_ns + measured_ns) as f64 / 1e9 * plan.link() * SWEEP_FILE_TIMES) as u64
}

impl Common<'_> {
    fn run(
        &self,
        plan: &Plan,
        at: &At,
        rtt_s: f64,
        beyond: &Diagnosis,
    ) -> Result<Carried, SweepError> {
        std::thread::scope(|scope| {
            let work = self.ports.iter().map(|port| scope.spawn(move || self.fetch(port)));
            let work: Vec<_> = work.collect();
            self.signed_in.wait();
            let infos = || self.ports.iter().map(|port| info(port, beyond)).collect::<Vec<_>>();
            // A session hands over whole replies, which are too coarse for a short time: what
            // counts is what the receiver's TCP has acknowledged.
            let came = || infos().iter().map(|info| info.as_ref()?.acknowledged()).sum();
            let carried = counted(plan, at, rtt_s, &came, &infos);
            self.stop.store(true, Ordering::Relaxed);
            for thread in work {
                thread.join().unwrap_or(Err(ClientError::Closed))?;
            }
            carried
        })
    }

    /// One client: reads the file repeatedly, until it is stopped.
    fn fetch(&self, port: &AtomicU16) -> Result<(), ClientError> {
        let opened = service::open(self.at, None);
        self.signed_in.wait();
        let (mut session, mut room) = (opened?, vec![0; LAB_STREAM_BUFFER]);
        loop {
            session.open_read(&self.path, 0, None)?;
            self.narrow(&*session, port)?;
            loop {
                let n = session.read(&mut room)?;
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if n == 0 {
                    break;
                }
                if let Some(socket) = session.socket() {
                    let _kept = sockets::clamp(socket, self.window);
                }
            }
            session.close_read()?;
        }
    }

    /// Sets the window of the connection by which a file comes.
    fn narrow(&self, session: &dyn Session, port: &AtomicU16) -> Result<(), ClientError> {
        let none = || ClientError::Protocol("no connection for a file".to_owned());
        let socket = session.socket().ok_or_else(none)?;
        let own = socket.local_addr().map_err(ClientError::io("look at a connection"))?;
        let before = port.load(Ordering::Relaxed);
        let known = if before == 0 || before == own.port() { own.port() } else { SEVERAL };
        port.store(known, Ordering::Relaxed);
        sockets::narrow(socket, self.window).map_err(ClientError::io("set a window"))
    }
}

fn info(port: &AtomicU16, beyond: &Diagnosis) -> Option<TcpInfo> {
    match port.load(Ordering::Relaxed) {
        0 | SEVERAL => None,
        port => beyond.of(port),
    }
}

#[cfg(test)]
mod tests;
