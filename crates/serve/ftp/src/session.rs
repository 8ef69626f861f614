//! The session of a control connection: its state, its user, and what handlers use of it.

use files::SpanFacts as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::TRANSFER_LIST_SCANNED_MAX;
use rustls::ServerConfig;
use vfs::attr::SetAttr;
use vfs::fs::Result;
use vfs::status::Status;

use super::Server;
use super::answer::Answer;
use super::data::Plan;
use super::settings::Settings;
use super::state::State;
use engine::transport::link::DisconnectWatch;
use engine::transport::tasks::Ending;
use files::list::{Filter, ListOptions, Listing};
use files::transfer::{Direction, Scheme};
use files::{Caller, Core, Links, Node, PathTarget, Span, Spot, Transfer, VPath};

/// Names of a directory that are compared with one that a client has written with a `?`: some 50 ms
/// of a processor. In a larger directory such a name is what it is written as.
const LISTED_NAMES_MAX: usize = 8 * TRANSFER_LIST_SCANNED_MAX;

/// A user that was disabled, or has another password or other rights now, has to sign in again.
pub(super) const NO_USER: Answer = Answer::of(421, "The account is no longer valid.");
/// The control connection ends with this.
pub(super) const ENDING: Answer = Answer::of(421, "The service is stopping.");

/// Everything about a client but its sockets.
pub(super) struct Session {
    pub(super) core: Rc<Core>,
    pub(super) server: Arc<Server>,
    /// As of the start of the session.
    pub(super) settings: Arc<Settings>,
    pub(super) state: State,
    /// The user that has signed in.
    pub(super) who: Option<Caller>,
    /// The generation of the users at which that was checked.
    pub(super) users: u64,
    /// How the next data connection comes about.
    pub(super) plan: Plan,
    pub(super) peer: SocketAddr,
    /// The local address of the control connection.
    pub(super) local: SocketAddr,
    /// The client's number in the statistics.
    pub(super) client: u32,
    /// The TLS configuration of its connections.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// Detects the end of the control connection while a command is executed.
    pub(super) disconnect_watch: Option<DisconnectWatch>,
    /// Turns true when the service ends.
    pub(super) ending: Ending,
    /// The command that is being answered.
    pub(super) span: Span,
    /// The transfer of the command.
    pub(super) transfer: Transfer,
}

impl Session {
    /// The user that has signed in.
    ///
    /// # Errors
    /// 530: no user has.
    pub(super) fn caller(&self) -> std::result::Result<&Caller, Answer> {
        self.who.as_ref().ok_or(Answer::of(530, "Log in with USER and PASS first."))
    }

    /// Where a path is among the shares, its last name as it is listed too if that is asked for.
    async fn resolve(&self, text: &[u8], last: bool) -> std::result::Result<VPath, Answer> {
        let path = self.state.resolve(text)?;
        if !text.contains(&b'?') {
            return Ok(path);
        }
        let (mut at, count) = (VPath::ROOT, path.parts().len());
        for (number, part) in path.parts().iter().enumerate() {
            let is_asked = part.contains(&b'?') && (last || number + 1 < count);
            let next = at.with(part);
            at = if is_asked { self.as_listed(&at, next).await? } else { next };
        }
        Ok(at.as_written(text))
    }

    /// What a listing cannot have in a line, it has as `?`. If nothing has the name as it is
    /// written, what is listed by it is meant, if that is one.
    async fn as_listed(&self, dir: &VPath, path: VPath) -> std::result::Result<VPath, Answer> {
        let (core, who) = (&self.core, self.caller()?);
        if !matches!(core.find(who, &path, Links::Keep).await, Err(Status::NotFound)) {
            return Ok(path);
        }
        let Ok(PathTarget::Node(node)) = core.find(who, dir, Links::Follow).await else {
            return Ok(path);
        };
        let Some(asked) = path.name().map(<[u8]>::to_vec) else { return Ok(path) };
        let is_listed = move |name: &[u8]| {
            let mut listed = Vec::with_capacity(name.len());
            wire::ftp::list::name(name, &mut listed);
            listed == asked
        };
        // Names alone: to look at their attributes costs ten times as much.
        let filter = Some(Arc::new(is_listed) as Filter);
        let mut listing = Listing::of(node, ListOptions { filter, names_only: true });
        let mut found = None;
        while let Ok(Some(batch)) = listing.next(core, who).await {
            self.may_continue()?;
            for one in batch {
                if found.replace(one.name).is_some() {
                    return Ok(path);
                }
            }
            if listing.looked() >= LISTED_NAMES_MAX {
                return Ok(path);
            }
        }
        Ok(found.map_or(path, |name| dir.with(&name)))
    }

    /// What a path leads to.
    pub(super) async fn found(&mut self, path: &[u8]) -> std::result::Result<PathTarget, Answer> {
        let path = self.resolve(path, true).await?;
        let found = self.core.find(self.caller()?, &path, Links::Follow).await?;
        if let PathTarget::Node(node) = &found {
            self.span.of(node);
        }
        Ok(found)
    }

    /// What a path leads to in a share.
    pub(super) async fn node(&mut self, path: &[u8]) -> std::result::Result<Node, Answer> {
        Ok(self.found(path).await?.node()?)
    }

    /// A regular file.
    pub(super) async fn file(&mut self, path: &[u8]) -> std::result::Result<Node, Answer> {
        let node = self.node(path).await?;
        match node.is_file() {
            true => Ok(node),
            false if node.is_dir() => Err(Status::IsDirectory.into()),
            false => Err(Status::Invalid.into()),
        }
    }

    /// The place of an existing file, and its path.
    pub(super) async fn there(
        &mut self,
        path: &[u8],
    ) -> std::result::Result<(Spot, VPath), Answer> {
        let path = self.resolve(path, true).await?;
        let spot = self.core.spot(self.caller()?, &path, Links::Keep).await?;
        self.measures(&spot);
        Ok((spot, path))
    }

    /// The place of the last name of a path.
    pub(super) async fn spot(
        &mut self,
        path: &[u8],
        links: Links,
    ) -> std::result::Result<Spot, Answer> {
        let path = self.resolve(path, false).await?;
        let spot = self.core.spot(self.caller()?, &path, links).await?;
        self.measures(&spot);
        Ok(spot)
    }

    /// The same for the last name of a path to a directory.
    pub(super) async fn spot_for_dir(&mut self, path: &[u8]) -> std::result::Result<Spot, Answer> {
        let path = self.resolve(path, false).await?;
        let spot = self.core.spot_for_dir(self.caller()?, &path, Links::Keep).await?;
        self.measures(&spot);
        Ok(spot)
    }

    fn measures(&mut self, spot: &Spot) {
        self.span.on(&spot.reached);
        if let Ok(node) = spot.node() {
            self.span.of(&node);
        }
    }

    /// The command requests a transfer of this file from `offset` on.
    pub(super) fn asks_for(
        &mut self,
        direction: Direction,
        (path, offset): (&[u8], u64),
    ) -> std::result::Result<(), Answer> {
        let path = self.state.resolve(path)?;
        let protocol = if self.state.secure { Scheme::Ftps } else { Scheme::Ftp };
        self.transfer = self.core.transfer(self.caller()?, (protocol, direction), &path);
        self.transfer.begins_at(offset);
        Ok(())
    }

    /// The attributes that a new file gets, or directory.
    pub(super) fn fresh(&self, mode: u32) -> SetAttr {
        let umask = self.settings.umask & 0o777;
        SetAttr { mode: Some(mode), umask: Some(umask), ..SetAttr::default() }
    }

    /// Whether the signed-in user is still valid.
    pub(super) fn is_welcome(&mut self) -> bool {
        let Some(who) = &self.who else { return true };
        let identity = &self.core.files.identity;
        let now = identity.generation();
        if now == self.users {
            return true;
        }
        self.users = now;
        if who.person.anonymous {
            return self.settings.anonymous;
        }
        // After a change of the password or the rights the user has to sign in again.
        identity.stands(&who.person)
    }

    /// Checks that a long command may continue.
    ///
    /// # Errors
    /// 426 if the client has closed the connection, 421 if its user is no longer valid, or the
    /// service ends.
    pub(super) fn may_continue(&self) -> std::result::Result<(), Answer> {
        if self.disconnect_watch.as_ref().is_some_and(DisconnectWatch::is_disconnected) {
            return Err(Answer::of(426, "The client closed the connection."));
        }
        if *self.ending.borrow() {
            return Err(ENDING);
        }
        match self.who.as_ref().is_none_or(|who| self.core.files.is_welcome(who)) {
            true => Ok(()),
            false => Err(NO_USER),
        }
    }

    /// Whether the signed-in user may enter a directory: it is one, and the user may search it.
    pub(super) async fn may_enter(&self, who: &Caller, found: &PathTarget) -> Result<()> {
        use vfs::fs::access::LOOKUP;
        match found {
            PathTarget::Root => Ok(()),
            PathTarget::Node(node) if !node.is_dir() => Err(Status::NotDirectory),
            PathTarget::Node(node) => match self.core.access(who, node, LOOKUP).await? & LOOKUP {
                0 => Err(Status::Access),
                _ => Ok(()),
            },
        }
    }
}
