//! SFTP: its settings, its port, its host keys.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use base::node::{Context, Value};
use base::protocol::ports::SFTP;
use base::protocol::{Port, Service};
use control::accounts::identity::Users;
use control::tree::{Document, Problem};
use serve::files::Files;
use serve::sftp::server::{Algorithms, Server, ServiceSettings};
use serve::sftp::ssh::{Methods, host_keys};
use serve::sftp::{Owners, Settings, node};
use serve::transport::tls::Tls;
use serve::transport::{Runtimes, Tasks};

use super::values::Values;
use super::ways::Way;
use super::{Protocol, ways};
use crate::out::Failure;

/// SFTP in this program.
pub struct Sftp {
    files: Arc<Files>,
    server: Arc<Server>,
    users: Arc<Users>,
}

/// Names of owners in listings.
struct Names(Arc<Users>);

impl Owners for Names {
    fn user(&self, uid: u32) -> Option<String> {
        self.0.name_of(uid)
    }

    fn group(&self, gid: u32) -> Option<String> {
        self.0.group_of(gid)
    }
}

impl Sftp {
    /// The service on these files, with the host keys of a state directory, which are made if there
    /// are none.
    ///
    /// # Errors
    /// They cannot be read, or made.
    pub fn new(
        files: Arc<Files>,
        users: Arc<Users>,
        state: &Path,
        document: &Document,
    ) -> Result<Self, Failure> {
        let keys = host_keys::read_or_make(state);
        let keys = keys.map_err(|e| Failure::of("use the host keys of SFTP", &e))?;
        let server = Server::new(settings(&users, document), keys);
        let sftp = Self { files, server, users };
        sftp.trust(document);
        Ok(sftp)
    }

    /// Believes the authorities of a configuration.
    fn trust(&self, document: &Document) {
        self.users.set_authorities(Values::of(document, Service::Sftp).texts("authorities"));
    }
}

impl Protocol for Sftp {
    fn node(&self) -> &'static Context {
        &node::NODE
    }

    fn check(&self, document: &Document) -> Option<Problem> {
        let values = Values::of(document, Service::Sftp);
        values.check_umask().or_else(|| values.check_ports("dsync_ports"))
    }

    fn set(&self, document: &Document) {
        self.trust(document);
        self.server.set(settings(&self.users, document));
    }

    fn ports(&self) -> Vec<Port> {
        vec![SFTP]
    }

    fn ways(&self) -> Vec<Way> {
        let (name, note) = (SFTP.name, None);
        vec![Way { name, scheme: name, at: SFTP, command: ways::sftp, note }]
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        None
    }

    fn serve(&self, runtimes: &Runtimes, sockets: Vec<(TcpListener, Port)>) -> Option<Tasks> {
        let sockets = sockets.into_iter().map(|(socket, _)| socket).collect();
        self.server.start(&self.files, runtimes, sockets)
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("host_keys", Value::texts(self.server.fingerprints())),
            ("mismatches", Value::texts(self.server.mismatches())),
        ]
    }
}

fn settings(users: &Arc<Users>, document: &Document) -> ServiceSettings {
    let values = Values::of(document, Service::Sftp);
    ServiceSettings {
        channels: Settings {
            uploads: values.uploads(),
            umask: values.umask().unwrap_or(0o022),
            owners: Arc::new(Names(users.clone())),
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
