//! iSCSI: its port, its target, the logical units behind it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use base::node::{Path, Value};
use base::protocol::ports::ISCSI;
use base::protocol::{self, Port};
use base::units;
use control::certificates::Certificates;
use control::tree::{Document, Problem, Tree};
use probe::sample::Sample;
use serve::iscsi::Iscsi as Server;
use serve::iscsi::serving;
use serve::iscsi::settings::Settings;
use serve::transport::Budgets;
use vfs::lun::Medium;

use crate::failure::{Failure, OrFailure};
use crate::files::drain_of;
use crate::instance::{Drain, Service};
use crate::luns::disk::SECRET;
use crate::luns::live::{self, Luns};
use crate::luns::room::{Entry, LunNodes};
use crate::luns::ways::LunAccess;
use crate::luns::{FOLDER, ways};
use crate::node::path;
use crate::parts::ServiceParts;
use crate::reach;

const ID: protocol::Service = protocol::Service::Iscsi;

/// A portal as it is set: an address, with a port if that is another one.
fn portal(text: &str, port: u16) -> Option<SocketAddr> {
    let plain = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match plain.parse() {
        Ok(address) => Some(SocketAddr::new(address, port)),
        Err(_) => text.parse().ok(),
    }
}

/// iSCSI in this program.
pub struct Iscsi {
    parts: Arc<ServiceParts>,
    server: Arc<Server>,
    room: Arc<LunNodes>,
    /// Commands that have waited for memory, as far as that was reported.
    reported: AtomicU64,
}

impl Iscsi {
    /// The service, without units: those come with [`Self::join`], before anything answers.
    pub fn new(parts: &Arc<ServiceParts>) -> Self {
        let server = Server::new(parts.engine(ID), Settings::default());
        let room = LunNodes::new(parts.state.join(FOLDER), &parts.locks, &server);
        Self { parts: parts.clone(), server, room, reported: AtomicU64::new(0) }
    }

    /// Serves the configured units; returns their handler in the tree.
    pub fn join(&self, tree: &Arc<Tree>) -> Arc<Luns> {
        let document = tree.document();
        self.set(&document);
        let secret = |path: &Path, property: &str| tree.secrets().get(&document, path, property);
        self.room.start(&document, &secret);
        Luns::new(&self.room, tree, self.parts.address(ISCSI))
    }

    /// Creates nodes for the units of the command line, once the tree takes changes.
    ///
    /// # Errors
    /// One cannot be made.
    pub fn give(&self, tree: &Arc<Tree>) -> Result<(), Failure> {
        live::follow(&self.room, tree).or_failure("follow the configuration")?;
        live::give(&self.room, tree, &self.parts.luns).map_err(|problem| {
            let tried = format!("make the LUN {}", problem.path);
            Failure::new(&tried, &problem.sentence, &problem.hint)
        })
    }

    /// How each unit is reached from this machine, for people: its name, and lines to type, with
    /// the secret.
    pub fn ways(&self) -> Vec<(String, Vec<String>)> {
        let inner = self.room.inner();
        let at = ways::portal(&self.server, self.parts.address(ISCSI));
        let secret = String::from_utf8_lossy(&inner.secret.secret).into_owned();
        let common = (inner.secret.name.as_str(), secret.as_str());
        let one = |entry: &Entry| {
            let (_, record) = entry.known.as_ref()?;
            let target = inner.targets_of(&entry.config).into_iter().next()?;
            let name = entry.config.path.name().unwrap_or_default().to_owned();
            let is_open = entry.opened.is_some() && entry.config.online;
            // Those of a group have secrets of their own.
            let sign_in = entry.config.initiators.is_none().then_some(common);
            is_open.then(|| (name, ways::lines(at, &target, record.number, sign_in)))
        };
        inner.entries.values().filter_map(one).collect()
    }

    /// How each unit is reached, for programs.
    pub fn access(&self) -> Vec<LunAccess> {
        let inner = self.room.inner();
        let at = ways::portal(&self.server, self.parts.address(ISCSI));
        let one = |entry: &Entry| {
            let (_, record) = entry.known.as_ref()?;
            let is_open = entry.opened.is_some() && entry.config.online;
            let is_common = entry.config.initiators.is_none();
            let is_made = is_common && inner.config.secret.is_none();
            let target = inner.config.targets_of(&entry.config).into_iter().next().flatten();
            let target = target.and_then(|name| inner.config.targets.get(name));
            Some(LunAccess {
                is_open: target.is_some_and(|target| target.is_open),
                name: entry.config.name(),
                portal: reach::host(at),
                target: inner.targets_of(&entry.config).into_iter().next().filter(|_| is_open)?,
                number: record.number,
                user: is_common.then(|| inner.secret.name.clone()),
                secret_file: is_made.then(|| self.parts.state.join(FOLDER).join(SECRET)),
            })
        };
        inner.entries.values().filter_map(one).collect()
    }

    fn units(&self) -> Vec<String> {
        let inner = self.room.inner();
        let one = |entry: &Entry| {
            let (_, record) = entry.known.as_ref()?;
            let size = entry.opened.as_ref().map(|opened| opened.medium.size() as f64);
            let size = size.map_or_else(|| "offline".to_owned(), units::bytes);
            Some(format!("{} {} {size}", record.number, entry.config.name()))
        };
        inner.entries.values().filter_map(one).collect()
    }
}

impl Service for Iscsi {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn check(&self, document: &Document, _certificates: &Certificates) -> Option<Problem> {
        let port = self.parts.address(ISCSI).port();
        let portals = document.texts(&path(ID), "portals");
        let wrong = portals.iter().find(|text| portal(text, port).is_none())?;
        let sentence = format!("portals: {wrong:?} is not an address, or an address with a port");
        let hint = "for example 192.0.2.7 or 192.0.2.7:3260";
        Some(Problem::new(&path(ID), &sentence, hint).property("portals"))
    }

    fn set(&self, document: &Document) {
        let port = self.parts.address(ISCSI).port();
        let portals = document.texts(&path(ID), "portals");
        let portals = portals.iter().filter_map(|text| portal(text, port)).collect();
        self.server.update(|settings| settings.portals = portals);
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.server.engine.budgets
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        let sockets = sockets.into_iter().map(|(socket, _)| socket).collect();
        drain_of(ID, serving::serve(&self.server, &self.parts.runtimes, sockets))
    }

    fn sign_ins(&self) -> Option<[u64; 2]> {
        Some([self.server.logins.load(Relaxed), self.server.refusals.load(Relaxed)])
    }

    fn samples(&self) -> Vec<Sample> {
        let now = self.server.waits.load(Relaxed);
        let before = self.reported.swap(now, Relaxed);
        vec![Sample::raw("iscsi.waits", now.saturating_sub(before) as f64)]
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        let peer = |peer: SocketAddr| peer.ip().to_string();
        // Not within the list: the lock would be held while the units are queried.
        let target = self.room.inner().target.clone();
        let rows = self.server.sessions.rows();
        let sessions = rows.iter().map(|row| format!("{} {}", row.port.name, peer(row.peer)));
        vec![
            ("target", Value::Text(target)),
            ("luns", Value::texts(self.units())),
            ("sessions", Value::texts(sessions.collect::<Vec<_>>())),
        ]
    }
}

#[cfg(test)]
mod tests;
