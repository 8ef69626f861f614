//! An appliance that records its calls and returns fixed values.

use std::sync::{Arc, Mutex};

use analytics::names::HubResolver;
use analytics::query::Engine;
use probe::hub::{Hub, HubOptions};

use crate::answer::RequestError;
use crate::appliance::{ActingAs, Appliance, Status};
use crate::dav::{DavLock, DavState};
use crate::lab::{Lab, LabFile};
use crate::nfs::{Listing, NfsClient, NfsFile, NfsLock, NfsOpen, NfsState};
use crate::transfers::Transfers;
use crate::tree::tests::disk::MemoryDisk;

pub struct Fake {
    transfers: Arc<Transfers>,
    engine: Arc<Engine>,
    expired: Mutex<Option<String>>,
    released: Mutex<Option<String>>,
}

impl Default for Fake {
    fn default() -> Self {
        let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
        let transfers = Transfers::open(Arc::new(MemoryDisk::default()), hub.clone()).unwrap();
        let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), None);
        let (expired, released) = (Mutex::default(), Mutex::default());
        Self { transfers, engine, expired, released }
    }
}

impl Fake {
    pub fn switched_off(&self) -> bool {
        !self.engine.hub().collecting()
    }

    /// The last client that was expired, and by which user.
    pub fn expired(&self) -> Option<String> {
        self.expired.lock().unwrap().clone()
    }

    /// The last lock that was released, and by which user.
    pub fn released(&self) -> Option<String> {
        self.released.lock().unwrap().clone()
    }
}

/// The one client that there is.
pub const CLIENT: &str = "nfs4-0000000300000001";

fn nfs_client() -> NfsClient {
    NfsClient {
        id: CLIENT.into(),
        protocol: "nfs4".into(),
        version: "4.2".into(),
        addresses: vec!["10.0.0.7".into()],
        label: "10.0.0.7 (anna)".into(),
        name: "Linux NFSv4.2 anna".into(),
        principal: "root".into(),
        state: "active".into(),
        silent_s: Some(1.5),
        sessions: 1,
        opens: 1,
        locks: 1,
        waiting: 0,
        delegations: 0,
    }
}

fn listing<T>(client: Option<&str>, row: T) -> Option<Listing<T>> {
    let known = client.is_none_or(|id| id == CLIENT);
    known.then(|| Listing { rows: vec![row], more: false })
}

impl NfsState for Fake {
    fn clients(&self) -> Listing<NfsClient> {
        Listing { rows: vec![nfs_client()], more: true }
    }

    fn opens(&self, client: Option<&str>) -> Option<Listing<NfsOpen>> {
        let row = NfsOpen {
            client: CLIENT.into(),
            protocol: "nfs4".into(),
            label: "10.0.0.7 (anna)".into(),
            file: NfsFile { file: "/export/tank/a".into(), share: Some("tank".into()) },
            kind: "open".into(),
            access: "both".into(),
            deny: "none".into(),
            owner: "open id:".into(),
        };
        listing(client, row)
    }

    fn locks(&self, client: Option<&str>) -> Option<Listing<NfsLock>> {
        let row = NfsLock {
            client: CLIENT.into(),
            protocol: "nfs4".into(),
            label: "10.0.0.7 (anna)".into(),
            file: NfsFile { file: "inode 12".into(), share: None },
            kind: "write".into(),
            offset: 5,
            length: None,
            waiting: false,
            owner: "lock id:".into(),
        };
        listing(client, row)
    }

    fn expire(&self, client: &str, by: &str) -> Option<NfsClient> {
        (client == CLIENT).then(|| {
            *self.expired.lock().unwrap() = Some(format!("{by}: {client}"));
            nfs_client()
        })
    }
}

/// The one lock that there is.
pub const LOCK: &str = "0f3c2a11-7be4";
/// A lock that is found and cannot be released.
pub const STUCK: &str = "0f3c2a11-ffff";

impl DavState for Fake {
    fn locks(&self) -> Listing<DavLock> {
        let row = DavLock {
            id: LOCK.into(),
            user: "anna".into(),
            client: Some("10.0.0.7".into()),
            label: "10.0.0.7 (laptop)".into(),
            file: "/tank/a".into(),
            share: "tank".into(),
            scope: "exclusive".into(),
            depth: "0".into(),
            owner: "anna at her laptop".into(),
            since: Some(1_700_000_000),
            timeout_s: 600,
            left_s: 543,
        };
        Listing { rows: vec![row], more: false }
    }

    fn lock(&self, id: &str) -> Option<DavLock> {
        let row = DavState::locks(self).rows.pop();
        row.filter(|_| [LOCK, STUCK].contains(&id))
    }

    fn release(&self, id: &str, by: &str) -> Result<Option<DavLock>, String> {
        if id == STUCK {
            return Err("cannot write dav-locks: no space left".into());
        }
        *self.released.lock().unwrap() = Some(format!("{by}: {id}"));
        Ok(self.lock(id))
    }
}

/// What the server is not called.
pub const FOREIGN: &str = "evil.example";

impl Appliance for Fake {
    fn is_own_host(&self, host: &str) -> bool {
        host != FOREIGN
    }

    fn status(&self) -> Status {
        Status {
            name: "test".into(),
            version: "0".into(),
            started: 1,
            now: 2,
            pid: 3,
            machine_problems: 0,
            healthy: true,
            problems: Vec::new(),
            acting_as: ActingAs { privileged: true, user: "root".into(), note: "n".into() },
            shares: Vec::new(),
            services: Vec::new(),
            budgets: Vec::new(),
        }
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn lab(&self) -> &dyn Lab {
        self
    }

    fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    fn nfs(&self) -> &dyn NfsState {
        self
    }

    fn dav(&self) -> &dyn DavState {
        self
    }
}

impl Lab for Fake {
    fn runs(&self) -> String {
        r#"[{"id":"r1"}]"#.into()
    }

    fn changes(&self, seen: u64) -> (Vec<String>, u64) {
        let first = (seen == 0).then(|| r#"{"id":"r1"}"#.to_owned());
        (first.into_iter().collect(), 1)
    }

    fn file(&self, run: &str, file: LabFile) -> Result<Vec<u8>, RequestError> {
        match (run, file) {
            ("r1", LabFile::Result) => Ok(b"{}".to_vec()),
            ("r1", LabFile::Report) => Ok(b"<!doctype html><script>1</script>".to_vec()),
            _ => {
                Err(RequestError::Wrong { failed: "there is no such run".into(), hint: "h".into() })
            }
        }
    }

    fn figures(&self, run: &str) -> Result<String, RequestError> {
        self.file(run, LabFile::Result).map(|_| r#"{"sections":[]}"#.into())
    }

    fn figures_of(&self, result: serde_json::Value) -> Result<String, RequestError> {
        match result["format"].as_u64() {
            Some(_) => Ok(r#"{"sections":[]}"#.into()),
            None => Err(RequestError::Wrong { failed: "it is none".into(), hint: "h".into() }),
        }
    }

    fn compare(&self, a: &str, b: &str) -> Result<String, RequestError> {
        self.file(a, LabFile::Result).and(self.file(b, LabFile::Result)).map(|_| "{}".into())
    }
}
