//! SMB: its settings, its port, the signed-in users, what clients cache.

mod levels;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use base::failure::{Failure, OrFailure};
use base::node::{Path, Value};
use base::protocol::ports::SMB;
use base::protocol::{self, Port};
use control::certificates::Certificates;
use control::tree::{Document, Problem};
use parking_lot::Mutex;
use probe::sample::Sample;
use serve::files::Files;
use serve::smb::handles::HandleStore;
use serve::smb::node::{CACHING_SHOWN_MAX, PARKED_SHOWN_MAX};
use serve::smb::state::sessions::End;
use serve::smb::{Encryption, Server, Settings};
use serve::transport::Budgets;

use crate::instance::{Drain, Service};
use crate::parts::ServiceParts;
use crate::reach::{self, AccessMethod};
use crate::sign_in::SignInCounter;
use crate::values::Values;

const ID: protocol::Service = protocol::Service::Smb;

/// Windows finds a share at its standard port only.
const NEEDS_PORT: &str = "Windows Explorer requires port 445: start the server with \
     --port-offset 0, or redirect the port";

/// The path that Windows takes, without a port: it has none.
fn unc(_url: &str, at: SocketAddr, share: &str) -> String {
    format!(r"\\{}\{share}", reach::host_name(at.ip()))
}

/// What macOS and Windows take.
fn others(url: &str, at: SocketAddr, share: &str) -> String {
    let path = unc(url, at, share);
    match at.port() == SMB.number {
        true => format!("macOS: {url}; Windows: {path}"),
        false => format!("macOS: {url}; Windows: {path}; {NEEDS_PORT}"),
    }
}

/// SMB in this program.
pub struct Smb {
    parts: Arc<ServiceParts>,
    files: Arc<Files>,
    sign_ins: Arc<SignInCounter>,
    server: Arc<Server>,
    levels: Mutex<levels::Reader>,
}

/// The file of persistent handles in the state directory (`docs/formats/smb-handles.md`).
const HANDLES: &str = "smb-handles";

impl Smb {
    /// The service, with the persistent handles of the state directory: they bind all protocols
    /// from now on.
    ///
    /// # Errors
    /// The handles cannot be read.
    pub fn new(parts: &Arc<ServiceParts>, document: &Document) -> Result<Self, Failure> {
        let store = HandleStore::open(&parts.state.join(HANDLES));
        let (store, unwritten) = store.or_failure("open the file of persistent SMB handles")?;
        if let Some(e) = unwritten {
            base::error!("smb", "persistent handles are refused until they can be recorded: {e}");
        }
        let (files, sign_ins) = parts.files(ID);
        let server = Server::new(settings(document), parts.server_id.guid);
        server.record_in(store);
        if Values::of(document, ID).is_on("enabled") {
            server.restore(&files.locks);
        }
        Ok(Self { parts: parts.clone(), files, sign_ins, server, levels: Mutex::default() })
    }
}

/// The kernel client of Linux.
fn cifs(_url: &str, at: SocketAddr, share: &str) -> String {
    let what = reach::shell_quote(&format!("//{}/{share}", reach::host_name(at.ip())));
    format!("mount -t cifs -o username=USER,port={} {what} /mnt", at.port())
}

impl Service for Smb {
    fn id(&self) -> protocol::Service {
        ID
    }

    fn check(&self, document: &Document, _certificates: &Certificates) -> Option<Problem> {
        Values::of(document, ID).check_umask()
    }

    fn set(&self, document: &Document) {
        self.server.set(settings(document));
    }

    fn ways(&self) -> Vec<AccessMethod> {
        vec![AccessMethod { others: Some(others), unc: Some(unc), ..AccessMethod::to(SMB, cifs) }]
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

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
    ) -> Option<Result<(), Problem>> {
        if action != "end_session" {
            return None;
        }
        let which = parameters.get("session").and_then(Value::as_text).unwrap_or_default();
        let sessions = &self.server.sessions;
        let ids = sessions.rows_now().into_iter();
        let ids = ids.filter(|row| row.user == which || format!("{:x}", row.id) == which);
        let ended = ids.filter(|row| sessions.end(row.id, None, End::Closed)).count();
        let number = u64::from_str_radix(which, 16).ok();
        let ended = ended + self.server.end_parked_of(number, Some(which));
        let hint = "see the property sessions";
        Some(match ended {
            0 => Err(Problem::unknown(path, &format!("{which:?} has no session"), hint)),
            _ => Ok(()),
        })
    }

    fn state(&self) -> Vec<(&'static str, Value)> {
        let rows = self.server.sessions.rows_now();
        let sessions = rows.iter().map(|row| {
            let encrypted = if row.encrypted { ", encrypted" } else { "" };
            format!("{:x} {} {} {}{encrypted}", row.id, row.user, row.from, row.dialect)
        });
        let sessions = Value::texts(sessions.collect::<Vec<_>>());
        let open = i64::try_from(self.server.files_open()).unwrap_or(i64::MAX);
        let parked = self.server.parked(PARKED_SHOWN_MAX).into_iter();
        let parked = parked.map(|(user, from, path, left)| {
            format!("{user} {from} {path}, {} s left", left.as_secs())
        });
        let parked = Value::texts(parked.collect::<Vec<_>>());
        let open = Value::Integer(open);
        let caching = levels::lines(&levels::now(&self.server, &self.files.locks));
        let caching = Value::texts(caching.into_iter().take(CACHING_SHOWN_MAX).collect::<Vec<_>>());
        vec![
            ("sessions", sessions),
            ("files_open", open),
            ("caching", caching),
            ("durable_handles", parked),
        ]
    }

    fn samples(&self) -> Vec<Sample> {
        // Also of a service that could not start.
        self.server.sweep_restored(&self.files);
        self.levels.lock().samples(&self.server, &self.files.locks)
    }
}

fn settings(document: &Document) -> Settings {
    let values = Values::of(document, ID);
    let otherwise = Settings::default();
    Settings {
        name: values.text("name").unwrap_or(otherwise.name),
        encryption: match values.text("encryption").as_deref() {
            Some("required") => Encryption::Required,
            Some("off") => Encryption::Off,
            _ => Encryption::Offered,
        },
        signing_required: !values.is("signing", "offered"),
        anonymous: values.is_on("anonymous"),
        multichannel: values.is_on("multichannel"),
        idle: values.time("idle"),
        umask: values.umask().unwrap_or(otherwise.umask),
    }
}

#[cfg(test)]
mod tests;
