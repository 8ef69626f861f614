//! SFTP: its settings, its port, its host keys.

use std::net::TcpListener;
use std::sync::Arc;

use base::failure::{Failure, OrFailure};
use base::node::Value;
use base::protocol::ports::SFTP;
use base::protocol::{self, Port};
use control::accounts::identity::Users;
use control::certificates::Certificates;
use control::tree::{Document, Problem};
use serve::files::Files;
use serve::sftp::Settings;
use serve::sftp::server::{Algorithms, Server, ServiceSettings};
use serve::sftp::ssh::{Methods, host_keys};
use serve::transport::Budgets;

use crate::instance::{Drain, Service};
use crate::parts::ServiceParts;
use crate::reach::{self, AccessMethod};
use crate::sign_in::SignInCounter;
use crate::values::Values;

const ID: protocol::Service = protocol::Service::Sftp;

/// SFTP in this program.
pub struct Sftp {
    parts: Arc<ServiceParts>,
    files: Arc<Files>,
    sign_ins: Arc<SignInCounter>,
    server: Arc<Server>,
}

impl Sftp {
    /// The service, with the host keys of the state directory, which are made if there are none.
    ///
    /// # Errors
    /// They cannot be read, or made.
    pub fn new(parts: &Arc<ServiceParts>, document: &Document) -> Result<Self, Failure> {
        let keys = host_keys::read_or_make(&parts.state);
        let keys = keys.or_failure("use the host keys of SFTP")?;
        let (files, sign_ins) = parts.files(ID);
        let server = Server::new(settings(&parts.users, document), keys);
        let sftp = Self { parts: parts.clone(), files, sign_ins, server };
        sftp.trust(document);
        Ok(sftp)
    }

    /// Trusts the user CAs of a configuration.
    fn trust(&self, document: &Document) {
        self.parts.users.set_authorities(Values::of(document, ID).texts("authorities"));
    }
}

impl Service for Sftp {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn check(&self, document: &Document, _certificates: &Certificates) -> Option<Problem> {
        let values = Values::of(document, ID);
        values.check_umask().or_else(|| values.check_ports("dsync_ports"))
    }

    fn set(&self, document: &Document) {
        self.trust(document);
        self.server.set(settings(&self.parts.users, document));
    }

    fn ways(&self) -> Vec<AccessMethod> {
        vec![AccessMethod::to(SFTP, reach::sftp)]
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.files.engine.budgets
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        let sockets = sockets.into_iter().map(|(socket, _)| socket).collect();
        super::drain_of(ID, self.server.start(&self.files, &self.parts.runtimes, sockets))
    }

    fn sign_ins(&self) -> Option<[u64; 2]> {
        Some(self.sign_ins.counts())
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("host_keys", Value::texts(self.server.fingerprints())),
            ("mismatches", Value::texts(self.server.mismatches())),
        ]
    }
}

fn settings(users: &Arc<Users>, document: &Document) -> ServiceSettings {
    let values = Values::of(document, ID);
    ServiceSettings {
        channels: Settings {
            uploads: values.uploads(),
            umask: values.umask().unwrap_or(0o022),
            owners: users.clone(),
            ..Settings::default()
        },
        login_root: values.login_root(),
        algorithms: match values.is("algorithms", "modern") {
            true => Algorithms::Modern,
            false => Algorithms::Compatible,
        },
        methods: Methods { password: values.is_on("passwords"), key: values.is_on("keys") },
        banner: values.text("banner"),
        dsync: values.is_on("dsync"),
        dsync_ports: values.ports("dsync_ports").map_or((0, 0), |ports| ports.into_inner()),
    }
}
