//! Who is at the other end of a connection, once he has signed in.

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

/// Somebody who has signed in, over one connection.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who.
    pub person: Arc<Person>,
    /// From where; the address is unmapped from v6.
    pub peer: SocketAddr,
    /// How it is protected on the way.
    pub transport: Transport,
    /// The same, as the log of transfers tells it; `None` if it is not known.
    pub security: Option<Security>,
    /// The service that he uses.
    pub service: Service,
    /// His number in the statistics.
    pub client: u32,
    /// His number in the table of locks: no other caller has it in this life of the server.
    pub number: u64,
    /// The state of the users ([`vfs::identity::Identity::generation`]) in which he was found to be
    /// one last, over all copies of this.
    pub(super) stood: Arc<AtomicU64>,
    /// What he sees as `/`: no path and no link of his leads out of it.
    pub root: VPath,
    /// Holders of locks in whose name he acts, because he has shown their tokens (WebDAV): what
    /// these have open for writing is not in his way.
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
    /// Who he is at its files.
    pub cred: Arc<Cred>,
    /// Whether he may change anything, as far as the share is concerned.
    pub writable: bool,
    /// Number of the rules that grant this: as long as they stand, so does what they grant.
    pub(super) rules: u64,
}

impl Caller {
    /// Somebody who calls from `peer`, `client` in the statistics.
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

    /// With this directory as what he sees as `/`.
    pub fn rooted(self, root: VPath) -> Self {
        Self { root, ..self }
    }

    /// Whose names lead to what differs from them only in case, too.
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

    /// With what protects what he sends and receives.
    pub fn secured(self, security: Option<Security>) -> Self {
        Self { security, ..self }
    }

    /// What a share grants to him.
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
