//! iSCSI: its port, its target, the logical units behind it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::node::Value;
use base::protocol::ports::ISCSI;
use base::protocol::{self, Port};
use base::units;
use control::appliance::Access;
use control::tree::Document;
use serve::iscsi::Iscsi as Server;
use serve::iscsi::serving;
use serve::iscsi::settings::Settings;
use serve::iscsi::targets::{SignIn, Target};
use serve::transport::Budgets;
use serve::transport::tls::Tls;
use vfs::lun::mapping::Initiators;

use crate::failure::Failure;
use crate::files::drain_of;
use crate::instance::{Drain, Instance, Service};
use crate::luns::{self, Luns};
use crate::parts::Parts;

const ID: protocol::Service = protocol::Service::Iscsi;

/// iSCSI in this program.
pub struct Iscsi {
    parts: Arc<Parts>,
    server: Arc<Server>,
    target: Arc<Target>,
    luns: Luns,
}

impl Iscsi {
    /// The service, with the units of the state directory and those that were asked for. All
    /// initiators sign in with one secret, also for discovery: nobody gets in by accident.
    ///
    /// # Errors
    /// A unit cannot be opened or made, or the secret not be read or made.
    pub fn new(parts: &Arc<Parts>) -> Result<Self, Failure> {
        let luns = Luns::open(&parts.state, &parts.luns)?;
        let sign_in = SignIn { common: Some(luns.secret().clone()), ..SignIn::default() };
        let settings = Settings { portals: Vec::new(), discovery: sign_in.clone() };
        let server = Server::new(parts.engine(ID), settings);
        let target = Target::new(luns.target(), sign_in);
        for lun in luns.all() {
            let initiators = Initiators::Everybody;
            let added = target.add(Some(lun.number), initiators, lun.unit.clone());
            let tried = || format!("serve the unit {}", lun.unit.identity.name);
            added.map_err(|e| Failure::of(&tried(), &e))?;
        }
        server.targets.add(target.clone());
        Ok(Self { parts: parts.clone(), server, target, luns })
    }

    /// How each unit is reached from this machine, for people: its name, and lines to type.
    pub fn ways(&self) -> Vec<(String, Vec<String>)> {
        let at = self.parts.address(ISCSI);
        self.luns.all().iter().map(|lun| luns::ways(at, &self.luns, lun)).collect()
    }

    fn units(&self) -> Vec<String> {
        let one = |mapped: &vfs::lun::mapping::Mapped<Arc<serve::iscsi::unit::Unit>>| {
            let (unit, status) = (&mapped.unit, mapped.unit.medium.status());
            let failed = match status.flush_failures {
                0 => String::new(),
                count => format!(", {count} flushes failed"),
            };
            let size = units::bytes(unit.medium.size() as f64);
            format!("{} {} {size}{failed}", mapped.number, unit.identity.name)
        };
        self.target.units().iter().map(one).collect()
    }
}

impl Service for Iscsi {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn set(&self, _document: &Document) {}

    fn ports(&self) -> Vec<Port> {
        vec![ISCSI]
    }

    fn access(&self, _instance: &Instance, _share: &str) -> Vec<Access> {
        // It serves no shares.
        Vec::new()
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        None
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

    fn state(&self) -> Vec<(&'static str, Value)> {
        let peer = |peer: SocketAddr| peer.ip().to_string();
        let rows = self.server.sessions.rows();
        let sessions = rows.iter().map(|row| format!("{} {}", row.port.name, peer(row.peer)));
        vec![
            ("target", Value::Text(self.target.name.clone())),
            ("luns", Value::texts(self.units())),
            ("sessions", Value::texts(sessions.collect::<Vec<_>>())),
        ]
    }
}
