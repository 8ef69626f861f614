//! From the numbers in records to the names that are stored and shown.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use base::limits::NAMES_REMEMBERED_MAX;
use probe::hub::Hub;
use probe::labels;
use probe::names::{NO_SHARE, NO_USER, OTHER_CLIENT};
use probe::op::{FileId, Protocol};
use probe::phases::Phase;

use crate::model::{Key, Name};

/// What other rooms know about numbers in records. Called off the request path only.
pub trait Resolver: Send + Sync {
    /// The name of the user with this uid.
    fn user(&self, uid: u32) -> Option<String>;
    /// The name of the share with this number.
    fn share(&self, share: u16) -> Option<String>;
    /// Where the file is now, as a path that begins with its share: `/export/tank/a/b`, or
    /// `inode 12 in tank` when that is not known; `None` when nothing is.
    fn path_of(&self, file: FileId) -> Option<String>;
}

/// Knows the shares that the hub knows, and nothing else.
pub struct HubResolver(pub Arc<Hub>);

impl Resolver for HubResolver {
    fn user(&self, _: u32) -> Option<String> {
        None
    }
    fn share(&self, share: u16) -> Option<String> {
        self.0.shares().name_of(share)
    }
    fn path_of(&self, _: FileId) -> Option<String> {
        None
    }
}

/// A dimension of operation records that has names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Type of operation.
    Op,
    /// Client.
    Client,
    /// User.
    User,
    /// Share.
    Share,
    /// File.
    File,
    /// Status.
    Status,
    /// Logical unit of iSCSI, by the number of its share.
    Lun,
    /// Initiator of iSCSI, by the number of its nexus.
    Initiator,
    /// Target of iSCSI, by the number of the nexus.
    Target,
    /// Whether a call came by RDMA (1) or TCP (0).
    Transport,
    /// Part of the latency.
    Phase,
}

/// Names by number, remembered, because the same few come up each second.
pub struct Names {
    hub: Arc<Hub>,
    resolver: Arc<dyn Resolver>,
    known: Mutex<NameTable>,
}

#[derive(Default)]
struct NameTable {
    of: HashMap<(Protocol, Dimension, u64), Arc<Name>>,
    /// Names of this second, and of the one before: five minutes of seconds that name the same
    /// share the name.
    now: HashSet<Arc<Name>>,
    before: HashSet<Arc<Name>>,
    /// Ids of statistics and dimensions: those of the schema.
    texts: HashSet<Arc<str>>,
}

impl NameTable {
    /// A name, shared with those of this second and the one before.
    fn share(&mut self, name: Name) -> Arc<Name> {
        if let Some(there) = self.now.get(&name) {
            return there.clone();
        }
        let name = self.before.take(&name).unwrap_or_else(|| Arc::new(name));
        if self.now.len() >= NAMES_REMEMBERED_MAX {
            self.now.clear();
        }
        self.now.insert(name.clone());
        name
    }
}

impl Names {
    /// Names of what `hub` records, with the help of `resolver`.
    pub fn new(hub: Arc<Hub>, resolver: Arc<dyn Resolver>) -> Self {
        Self { hub, resolver, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, NameTable> {
        self.known.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Removes everything but what cannot change, so that new names of files and users, and names
    /// that clients have sent, are read again.
    pub fn refresh(&self) {
        let stays =
            |dimension| matches!(dimension, Dimension::Op | Dimension::Status | Dimension::Phase);
        let mut known = self.known();
        known.of.retain(|(_, dimension, _), _| stays(*dimension));
        known.before = std::mem::take(&mut known.now);
    }

    /// The id of a statistic or a dimension of the schema, shared by all that name it.
    pub(crate) fn text(&self, id: &str) -> Arc<str> {
        let mut known = self.known();
        if let Some(there) = known.texts.get(id) {
            return there.clone();
        }
        let text: Arc<str> = id.into();
        known.texts.insert(text.clone());
        text
    }

    /// The name of an element that is its own label.
    pub(crate) fn plain(&self, key: &str) -> Arc<Name> {
        self.known().share(Name { key: key.to_owned(), label: key.to_owned() })
    }

    /// The name of `number`, `Other` for `None` and for what has no value in this dimension.
    pub fn key(&self, protocol: Protocol, dimension: Dimension, number: Option<u64>) -> Key {
        match number {
            None => Key::Other,
            Some(n) if dimension == Dimension::Client && n == u64::from(OTHER_CLIENT) => Key::Other,
            Some(n) => Key::Name(self.name(protocol, dimension, n)),
        }
    }

    /// The name of `number`.
    pub fn name(&self, protocol: Protocol, dimension: Dimension, number: u64) -> Arc<Name> {
        if let Some(name) = self.known().of.get(&(protocol, dimension, number)) {
            return name.clone();
        }
        // Without the lock: the look-up calls other crates.
        let (key, label) = self.look_up(protocol, dimension, number);
        let label = label.unwrap_or_else(|| key.clone());
        let mut known = self.known();
        let name = known.share(Name { key, label });
        if known.of.len() >= NAMES_REMEMBERED_MAX {
            known.of.clear();
        }
        known.of.insert((protocol, dimension, number), name.clone());
        name
    }

    fn look_up(&self, p: Protocol, dimension: Dimension, n: u64) -> (String, Option<String>) {
        match dimension {
            Dimension::Op => (labels::op_name(p, n as u8).into_owned(), None),
            Dimension::Status => (labels::status_name(p, n as u16).into_owned(), None),
            Dimension::Transport => ((if n == 0 { "tcp" } else { "rdma" }).to_owned(), None),
            Dimension::Phase => match Phase::ALL.get(n as usize) {
                Some(phase) => (phase.id().to_owned(), Some(phase.label().to_owned())),
                None => (n.to_string(), None),
            },
            Dimension::Client => {
                let clients = self.hub.clients();
                (clients.name_of(n as u32), clients.label_of(n as u32))
            }
            Dimension::User if n as u32 == NO_USER => ("none".into(), Some("no user".into())),
            Dimension::User => (n.to_string(), self.resolver.user(n as u32)),
            Dimension::Share if n as u16 == NO_SHARE => ("none".into(), Some("no share".into())),
            Dimension::Share => {
                let name = self.resolver.share(n as u16);
                (
                    name.or_else(|| self.hub.shares().name_of(n as u16)).unwrap_or(n.to_string()),
                    None,
                )
            }
            Dimension::Lun if n as u16 == NO_SHARE => ("none".into(), Some("no LUN".into())),
            Dimension::Lun => (self.hub.shares().name_of(n as u16).unwrap_or(n.to_string()), None),
            Dimension::Initiator | Dimension::Target => {
                let Some((initiator, target)) = self.hub.nexuses().names_of(n as u32) else {
                    return ("none".into(), None);
                };
                (if dimension == Dimension::Initiator { initiator } else { target }, None)
            }
            Dimension::File if n == 0 => ("none".into(), Some("no file".into())),
            Dimension::File => {
                let key = format!("{n:016x}");
                let path = self.resolver.path_of(n).unwrap_or_else(|| format!("file {key}"));
                (key, Some(path))
            }
        }
    }
}
