//! FTP and FTPS: its settings, its ports.

use std::net::TcpListener;
use std::sync::Arc;

use base::failure::Failure;
use base::protocol::ports::{FTP, FTPS};
use base::protocol::{self, Port};
use control::certificates::Certificates;
use control::tree::{Document, Problem};
use serve::files::Files;
use serve::ftp::{Entry, Server, Settings, TlsUse};
use serve::transport::Budgets;
use serve::transport::tls::Tls;

use crate::instance::{Drain, Service};
use crate::parts::ServiceParts;
use crate::reach::{self, AccessMethod};
use crate::sign_in::SignInCounter;
use crate::values::Values;

const ID: protocol::Service = protocol::Service::Ftp;

/// FTP in this program.
pub struct Ftp {
    parts: Arc<ServiceParts>,
    files: Arc<Files>,
    sign_ins: Arc<SignInCounter>,
    server: Arc<Server>,
    tls: Arc<Tls>,
}

impl Ftp {
    /// The service, with TLS as it is offered.
    pub fn new(parts: &Arc<ServiceParts>, tls: Arc<Tls>, document: &Document) -> Self {
        let (files, sign_ins) = parts.files(ID);
        let server = Server::new(settings(document), Some(tls.clone()));
        Self { parts: parts.clone(), files, sign_ins, server, tls }
    }
}

impl Service for Ftp {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn check(&self, document: &Document, _certificates: &Certificates) -> Option<Problem> {
        let values = Values::of(document, ID);
        let ports = || values.check_ports("passive_ports");
        let masquerade = || {
            let is_right = |text: &str| text.parse::<std::net::Ipv4Addr>().is_ok();
            let hint = "set an IPv4 address, for example 192.0.2.7; IPv6 clients do not need it";
            values.check("masquerade_address", is_right, "an IPv4 address", hint)
        };
        values.check_umask().or_else(ports).or_else(masquerade)
    }

    fn set(&self, document: &Document) {
        self.server.set(settings(document));
    }

    fn ports(&self) -> Vec<Port> {
        if self.server.settings().implicit { vec![FTP, FTPS] } else { vec![FTP] }
    }

    fn ways(&self) -> Vec<AccessMethod> {
        let tls = match self.server.settings().tls {
            TlsUse::Off => None,
            TlsUse::Offered => Some("encrypted if the client asks for it"),
            TlsUse::Required => Some("TLS is required"),
        };
        let ports = self.ports().into_iter();
        let note = |at| tls.filter(|_| at == FTP);
        ports
            .map(|at| AccessMethod { note: note(at), ..AccessMethod::to(at, reach::lftp) })
            .collect()
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        Some(&self.tls)
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.files.engine.budgets
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        let entry = |port| if port == FTPS { Entry::Implicit } else { Entry::Explicit };
        let sockets = sockets.into_iter().map(|(socket, port)| (socket, entry(port))).collect();
        let tasks = self.server.start(&self.files, &self.parts.runtimes, sockets);
        super::drain_of(ID, tasks)
    }

    fn sign_ins(&self) -> Option<[u64; 2]> {
        Some(self.sign_ins.counts())
    }
}

fn settings(document: &Document) -> Settings {
    let values = Values::of(document, ID);
    Settings {
        tls: match values.text("tls").as_deref() {
            Some("off") => TlsUse::Off,
            Some("required") => TlsUse::Required,
            _ => TlsUse::Offered,
        },
        protect_data: values.is_on("protect_data"),
        session_reuse: values.is_on("session_reuse"),
        implicit: values.is_on("implicit"),
        passive_ports: values.ports("passive_ports"),
        masquerade_address: values.text("masquerade_address").and_then(|text| text.parse().ok()),
        connections_max: values.number("connections_max"),
        per_address_max: values.number("per_address_max"),
        attempts_max: values.number("attempts_max"),
        idle: values.time("idle"),
        umask: values.umask().unwrap_or(0o022),
        uploads: values.uploads(),
        login_root: values.login_root(),
        anonymous: values.is_on("anonymous"),
        greeting: values.text("greeting").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
