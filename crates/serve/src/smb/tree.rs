//! TREE_CONNECT, TREE_DISCONNECT, LOGOFF.

use std::sync::Arc;

use wire::smb::create::access;
use wire::smb::status::NtStatus;
use wire::smb::tree::{self, share_flags, share_type};
use wire::smb::utf16;

use super::close;
use super::dispatch::{Outcome, Reply, Request};
use super::state::connection::Connection;
use super::state::session::{Tree, TreeOf};
use super::status;

/// The share of pipes.
const PIPES: &str = "IPC$";

/// TREE_CONNECT.
pub(super) fn connect(request: &Request<'_>) -> Outcome {
    let asked = tree::Request::decode(request.message).map_err(status::of_wire)?;
    let path = utf16::decode(asked.path).map_err(status::of_wire)?;
    let name = path.rsplit('\\').next().unwrap_or_default();
    let (of, kind, maximal_access) = if name.eq_ignore_ascii_case(PIPES) {
        (TreeOf::Pipes, share_type::PIPE, access::READ | access::WRITE)
    } else {
        let table = request.conn.core.files.shares.load();
        let mut shares = table.iter();
        let share = shares.find(|share| share.name.eq_ignore_ascii_case(name));
        let share = Arc::clone(share.ok_or(NtStatus::BAD_NETWORK_NAME)?);
        let reached = request.session.who.reach(&share).map_err(|_| NtStatus::ACCESS_DENIED)?;
        let rights = match reached.writable {
            true => access::ALL,
            false => access::READ | access::RUN,
        };
        (TreeOf::Share { reached }, share_type::DISK, rights)
    };
    let id = request.session.add_tree(Tree { of })?;
    let encrypts = if request.session.encrypts { share_flags::ENCRYPT } else { 0 };
    let flags = share_flags::NO_CACHING | encrypts;
    let mut out = request.reply();
    let response =
        tree::Response { share_type: kind, reserved: 0, flags, capabilities: 0, maximal_access };
    response.put_body(out.vec());
    Ok(Reply { tree: Some(id), ..Reply::new(out) })
}

/// TREE_DISCONNECT.
pub(super) async fn disconnect(request: &Request<'_>) -> Outcome {
    request.tree()?;
    for open in request.session.remove_tree(request.header.tree_id()) {
        close::end(request.conn, &request.session.who, &open).await;
    }
    Ok(request.empty())
}

/// LOGOFF.
pub(super) async fn logoff(request: &Request<'_>) -> Outcome {
    for open in request.session.take_opens(|_| true) {
        close::end(request.conn, &request.session.who, &open).await;
    }
    // It is still there until its answer is signed.
    request.conn.sessions.borrow_mut().remove(&request.session.id);
    Ok(request.empty())
}

impl Connection {
    /// Closes everything that is open.
    pub async fn close_all(&self) {
        let sessions: Vec<_> = self.sessions.borrow_mut().drain().map(|(_, one)| one).collect();
        for session in sessions {
            for open in session.take_opens(|_| true) {
                close::end(self, &session.who, &open).await;
            }
        }
    }
}
