//! Applications that move to another client, and open there what they have open here
//! (AppInstanceId and its version, MS-SMB2 §3.3.5.9.13): what they have here is closed first, so
//! that it is neither in the way nor waited for.

use base::clock::Deadline;
use base::limits::SMB_PREVIOUS_WAIT;
use wire::smb::create::{FileId, access};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::close;
use super::connection::Connection;
use super::dispatch::Request;
use super::server::Server;
use super::state::instances::{AppVersion, InstanceOpen, Opened};
use super::state::replays::Created;
use files::Node;

/// What a CREATE names of its application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Application {
    /// AppInstanceId.
    pub id: Option<[u8; 16]>,
    /// Its version.
    pub version: Option<AppVersion>,
}

impl Application {
    /// What it opens, if it can move in this version of SMB; its version, if that counts there.
    fn opens(
        self,
        request: &Request,
        node: &Node,
    ) -> Result<Option<(Opened, Option<AppVersion>)>, NtStatus> {
        let dialect = request.conn.agreed()?.dialect;
        // An open without an application has an id of 0.
        let id = self.id.filter(|id| *id != [0; 16] && dialect >= Dialect::SMB300);
        let version = self.version.filter(|_| dialect == Dialect::SMB311);
        let (share, file) = (node.reached.share.id, node.key());
        Ok(id.map(|instance| (Opened { instance, share, file }, version)))
    }

    /// Notes another open of it.
    pub fn add(self, request: &Request, node: &Node) -> Result<Option<InstanceOpen>, NtStatus> {
        let client = request.conn.agreed()?.client.0;
        let opens = self.opens(request, node)?;
        let instances = &request.conn.server.instances;
        Ok(opens.map(|(opened, version)| instances.add(opened, (client, version))))
    }

    /// Closes what other clients have open of it, if the user has the right to read the file.
    /// Returns whether anything was closed: then the file is looked at again.
    ///
    /// # Errors
    /// STATUS_FILE_FORCED_CLOSED if it has moved on since; STATUS_CANCELLED.
    pub async fn take_over(
        self,
        request: &Request,
        node: &Node,
        maximal: u32,
    ) -> Result<bool, NtStatus> {
        let Some((opened, version)) = self.opens(request, node)? else { return Ok(false) };
        let client = request.conn.agreed()?.client.0;
        let server = &request.conn.server;
        let others = || {
            let others = server.instances.others(&opened, client, version);
            others.map_err(|_| NtStatus::FILE_FORCED_CLOSED)
        };
        if others()?.is_empty() || maximal & access::READ_DATA == 0 {
            return Ok(false);
        }
        let _waits = request.wait_permit().ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
        let until = Deadline::after(SMB_PREVIOUS_WAIT);
        loop {
            let mut changed = std::pin::pin!(server.instances.changed().notified());
            changed.as_mut().enable();
            let others = others()?;
            if others.is_empty() {
                return Ok(true);
            }
            others.into_iter().for_each(|open| server.end_instance(&opened, open));
            // One that does not end in time is in the way as any other open.
            let Some(left) = until.left() else { return Ok(false) };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(left) => {}
                () = request.cancel().cancelled() => return Err(NtStatus::CANCELLED),
            }
        }
    }
}

impl Server {
    /// Has an open be closed by the core that has it.
    fn end_instance(&self, opened: &Opened, open: Created) {
        match open {
            // It is noted where it is in a moment.
            Created::Pending => {}
            Created::Open(session, volatile) => {
                self.instances.close(opened, (session, volatile));
                self.sessions.wake(session);
            }
            Created::Parked(id) => self.end_parked_one(id),
        }
    }
}

impl Connection {
    /// Closes opens of applications that are elsewhere now.
    pub fn end_instances(&self) {
        let instances = &self.server.instances;
        if !instances.is_closing() {
            return;
        }
        let sessions: Vec<_> = self.sessions.borrow().values().cloned().collect();
        for session in sessions {
            for volatile in instances.take_closing(session.id) {
                let id = |persistent| FileId { persistent, volatile };
                let open = session.by_volatile(volatile);
                let Some((id, tree)) = open.map(|open| (id(open.persistent), open.tree)) else {
                    continue;
                };
                if let Ok(open) = session.close(id, tree) {
                    drop(close::release(self, &session.who, vec![open]));
                }
            }
        }
    }
}
