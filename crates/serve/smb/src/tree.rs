//! TREE_CONNECT, TREE_DISCONNECT, LOGOFF.

use std::rc::Rc;

use base::clock::Deadline;
use base::limits::SMB_PARK_WAIT;
use base::log::{ClientLines, Level, limited};
use vfs::share::rules::{Access, Transport};
use vfs::share::{Service, Share};
use wire::smb::create::access;
use wire::smb::negotiate::{Dialect, capabilities};
use wire::smb::status::NtStatus;
use wire::smb::tree::{self, share_capabilities, share_flags, share_type};
use wire::smb::utf16;

use super::broken::Broken;
use super::connection::Connection;
use super::dispatch::{Handled, Reply, Request};
use super::node::NODE;
use super::state::session::{Session, Tree, TreeOf};
use super::state::sessions::End;
use super::status;
use super::{close, durable};

/// The share of pipes.
const PIPES: &str = "IPC$";

/// TREE_CONNECT.
pub(super) fn connect(request: &Request) -> Handled {
    let session = &request.session;
    if !request.is_protected()
        && !session.is_null
        && request.conn.agreed()?.dialect == Dialect::SMB311
    {
        // A negotiation that was changed in transit would be found by this signature (§3.3.5.7).
        request.conn.end(Broken::Order);
        return Err(NtStatus::ACCESS_DENIED);
    }
    let asked = tree::Request::decode(request.message()).map_err(status::of_wire)?;
    let path = utf16::decode(asked.path).map_err(status::of_wire)?;
    let name = path.rsplit('\\').next().unwrap_or_default();
    let (of, kind, maximal_access) = if name.eq_ignore_ascii_case(PIPES) {
        (TreeOf::Pipes, share_type::PIPE, access::READ | access::WRITE)
    } else if session.is_anonymous.get() {
        return Err(NtStatus::ACCESS_DENIED);
    } else {
        let table = request.conn.core.files.shares.load();
        let mut shares = table.iter();
        let share = shares.find(|share| share.name.eq_ignore_ascii_case(name));
        let Some(share) = share.cloned() else {
            refused(request, name, "there is no such share");
            return Err(NtStatus::BAD_NETWORK_NAME);
        };
        // A client without encryption is refused by what the share requires.
        let Ok(reached) = request.session.who.reach(&share) else {
            refused(request, &share.name, why(request, &share));
            return Err(NtStatus::ACCESS_DENIED);
        };
        let rights = match reached.writable {
            true => access::ALL,
            false => access::READ | access::RUN,
        };
        (TreeOf::Share { reached }, share_type::DISK, rights)
    };
    let caches = matches!(&of, TreeOf::Share { reached } if reached.share.caches());
    let agreed = request.conn.agreed()?.capabilities & capabilities::PERSISTENT_HANDLES != 0;
    let capabilities = match &of {
        TreeOf::Share { reached } if agreed && reached.share.is_continuous() => {
            share_capabilities::CONTINUOUS_AVAILABILITY
        }
        _ => 0,
    };
    let tree = Tree::new(of);
    let encrypts = request.session.encrypts || tree.encrypts();
    let id = request.session.add_tree(tree)?;
    let encrypts = if encrypts { share_flags::ENCRYPT } else { 0 };
    let flags = if caches { encrypts } else { share_flags::NO_CACHING | encrypts };
    let mut out = request.reply();
    let response =
        tree::Response { share_type: kind, reserved: 0, flags, capabilities, maximal_access };
    response.put_body(out.vec());
    request.done(Reply { tree: Some(id), ..Reply::new(out) })
}

/// Logs that a user is not connected to a share.
fn refused(request: &Request, share: &str, why: &str) {
    static REFUSED: ClientLines = ClientLines::new();
    let (user, from) = (&request.session.who.person.name, request.conn.peer.0.ip());
    REFUSED.log((NODE.name, Level::Warning), from, || {
        format!("share {} refused: {user} from {from}: {why}", limited::name(share))
    });
}

/// Why a share grants nothing.
fn why(request: &Request, share: &Share) -> &'static str {
    let rules = share.rules_for(Service::Smb).get();
    let peer = request.conn.peer.0;
    match rules.grant_over(peer.ip(), peer.port(), Transport::Tls).access {
        Access::None => "smb and smb_exceptions of the share grant no access",
        _ => "the share requires encryption",
    }
}

/// TREE_DISCONNECT.
pub(super) async fn disconnect(request: Rc<Request>) -> Handled {
    request.tree()?;
    let opens = request.session.remove_tree(request.header.tree_id());
    close::end(&request.conn, &request.session.who, opens).await;
    request.done(request.empty())
}

/// LOGOFF.
pub(super) async fn logoff(request: Rc<Request>) -> Handled {
    // It is still there until its answer is signed, but for no request any more; nor for those of
    // its other connections.
    if request.session.has_channels() {
        request.conn.server.sessions.end(request.session.id, None, End::Replaced);
    }
    request.conn.leave(&request.session);
    request.session.waits_for_others();
    close_all(&request.conn, &request.session, true).await;
    request.done(request.empty())
}

/// Ends a session that leaves its connection.
pub(super) async fn end(conn: Rc<Connection>, session: Rc<Session>) {
    let stays_durable = session.listed.stays_durable() && conn.core.files.is_welcome(&session.who);
    close_all(&conn, &session, stays_durable).await;
}

/// Closes everything of a session, and what requests in progress open, until none is; durable
/// handles wait for their client if they may.
async fn close_all(conn: &Connection, session: &Session, stays_durable: bool) {
    let until = Deadline::after(SMB_PARK_WAIT);
    loop {
        let opens = session.take_opens(|_| true);
        let (mut others, busy) = match stays_durable {
            true => durable::park(conn, session, opens),
            false => (opens, Vec::new()),
        };
        let left = until.left().filter(|_| !busy.is_empty());
        if let Some(left) = left {
            session.put_back(busy);
            close::end(conn, &session.who, others).await;
            let _ = tokio::time::timeout(left, session.has_others()).await;
            continue;
        }
        others.extend(busy);
        close::end(conn, &session.who, others).await;
        if !session.has_others().await {
            break;
        }
    }
    conn.leaving.borrow_mut().retain(|one| one.id != session.id);
}

impl Connection {
    /// A session begins to leave: there is none for requests any more.
    fn leave(&self, session: &Rc<Session>) {
        self.sessions.borrow_mut().remove(&session.id);
        self.leaving.borrow_mut().push(Rc::clone(session));
        self.leave_mail_places();
    }

    /// Closes everything that is open. Nothing is carried out any more.
    pub async fn close_all(&self) {
        let mut sessions = std::mem::take(&mut *self.leaving.borrow_mut());
        sessions.extend(self.sessions.borrow_mut().drain().map(|(_, one)| one));
        self.leave_mail_places();
        let release = |one: &Rc<Session>| {
            if one.remove_channel(&self.mailbox) {
                return None;
            }
            let opens = one.take_opens(|_| true);
            let stays_durable = one.listed.stays_durable();
            let (mut opens, busy) = match stays_durable && self.core.files.is_welcome(&one.who) {
                true => durable::park(self, one, opens),
                false => (opens, Vec::new()),
            };
            opens.extend(busy);
            close::release(self, &one.who, opens)
        };
        let removals: Vec<_> = sessions.iter().filter_map(release).collect();
        for removal in removals {
            let _ = removal.await;
        }
    }
}
