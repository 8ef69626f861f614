//! The user at the other end of a connection, after sign-in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vfs::cred::Cred;
use vfs::fold::FoldIndex;
use vfs::fs::Result;
use vfs::identity::Person;
use vfs::locks::Owner;
use vfs::share::rules::{Access, Transport};
use vfs::share::{Service, Share};
use vfs::status::Status;
use vfs::transfers::Security;
use vfs::work::Work;

use super::path::VPath;

/// The number of the next caller.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A user that has signed in over one connection.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub person: Arc<Person>,
    /// The address of the client, unmapped from v6.
    pub peer: SocketAddr,
    /// How the connection is protected.
    pub transport: Transport,
    /// The same, as the transfer log records it; `None` if it is not known.
    pub security: Option<Security>,
    /// The service that the user has signed in to.
    pub service: Service,
    /// The caller's number in the statistics.
    pub client: u32,
    /// The caller's number in the table of locks: unique until the server ends.
    pub number: u64,
    /// The generation of the users ([`vfs::identity::Identity::generation`]) at which the caller
    /// was last found to be one, shared by all copies of this.
    pub(super) stood: Arc<AtomicU64>,
    /// The directory that is the caller's `/`: neither a path nor a symbolic link leads out of it.
    pub root: VPath,
    /// Lock owners as which the caller acts, because it has submitted their tokens (WebDAV): their
    /// opens for writing do not conflict with its own.
    pub lent: Vec<Owner>,
    /// With what a name that is not there is looked for in another case; `None`: not at all.
    pub folds: Option<Folding>,
}

/// How names are found in another case.
#[derive(Debug, Clone)]
pub struct Folding {
    /// Names of directories.
    pub index: Arc<FoldIndex>,
    /// What the request at hand may still look at, on its ways and for such names.
    pub work: Arc<Work>,
}

/// What a share grants to a caller.
#[derive(Clone)]
pub struct Reached {
    /// The share.
    pub share: Arc<Share>,
    /// The credentials of the caller for its files.
    pub cred: Arc<Cred>,
    /// Whether the share permits the caller to change anything.
    pub writable: bool,
    /// Number of the rules that grant this: as long as they stand, so does what they grant.
    pub(super) rules: u64,
}

impl Caller {
    /// A caller that connects from `peer`, `client` in the statistics.
    pub fn new(
        person: Arc<Person>,
        (peer, client): (SocketAddr, u32),
        transport: Transport,
        service: Service,
    ) -> Self {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (security, root, lent) = (None, VPath::ROOT, Vec::new());
        let stood = Arc::new(AtomicU64::new(u64::MAX));
        let folds = None;
        Self {
            person,
            peer,
            transport,
            security,
            service,
            client,
            number,
            stood,
            root,
            lent,
            folds,
        }
    }

    /// The queue of the pool that its operations wait in.
    pub fn queue(&self) -> u64 {
        engine::pool::client(self.peer.ip())
    }

    /// With this directory as the caller's `/`.
    pub fn rooted(self, root: VPath) -> Self {
        Self { root, ..self }
    }

    /// With names that are also found in another case.
    pub fn folding(self, index: Arc<FoldIndex>) -> Self {
        let work = Arc::new(Work::new(0));
        Self { folds: Some(Folding { index, work }), ..self }
    }

    /// The same for one request, which may look at as much as `work` has.
    pub fn counted(&self, work: &Arc<Work>) -> Self {
        let mut who = self.clone();
        if let Some(folds) = &mut who.folds {
            folds.work = Arc::clone(work);
        }
        who
    }

    /// With the protection of the connection.
    pub fn secured(self, security: Option<Security>) -> Self {
        Self { security, ..self }
    }

    /// What a share grants to the caller.
    ///
    /// # Errors
    /// [`Status::Access`] if it is nothing.
    pub fn reach(&self, share: &Arc<Share>) -> Result<Reached> {
        let stand = share.rules_for(self.service);
        // Before they are looked at: those that come meanwhile have another number.
        let (number, rules) = (stand.generation(), stand.get());
        let grant = rules.grant_over(self.peer.ip(), self.peer.port(), self.transport);
        if grant.access == Access::None {
            return Err(Status::Access);
        }
        let own = &self.person.cred;
        Ok(Reached {
            share: Arc::clone(share),
            cred: Arc::new(grant.acting(own).unwrap_or_else(|| own.clone())),
            writable: grant.access == Access::ReadWrite && !share.read_only,
            rules: number,
        })
    }
}

impl Reached {
    /// That it may be changed.
    ///
    /// # Errors
    /// [`Status::ReadOnly`].
    pub fn for_change(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Status::ReadOnly) }
    }
}
